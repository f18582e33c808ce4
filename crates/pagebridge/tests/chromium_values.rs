//! What page tools return and throw, as a client gets it.

mod support;

use std::time::{Duration, Instant};

use pagebridge_testkit::bridge::text_of;
use serde_json::{Value, json};
use support::World;

/// What Chromium 156 makes of some values before anyone else sees them: an empty text is told as "Operation succeeded", and
/// a text that is JSON (also `null` and `42`) is given as the value that it says.
const VALUES: &str = r#"
offer("undefined_", () => undefined);
offer("nothing", () => {});
offer("null_", () => null);
offer("empty", () => "");
offer("zero", () => 0);
offer("false_", () => false);
offer("list", () => []);
offer("word", () => "undefined");
offer("null_word", () => "null");
offer("nan", () => NaN);
offer("infinity", () => [Infinity, -0]);
offer("date", () => new Date(0));
offer("map", () => new Map([["a", 1]]));
offer("function_", () => () => 1);
offer("number", async () => 1e21);
offer("big", () => 10n);
offer("nested", () => ({ z: 1, a: [{ b: null }], "10": 1 }));
offer("json_text", () => JSON.stringify({ a: "é", b: [1] }));
offer("number_text", () => "42");
offer("lines", () => "one\ntwo\t\u0007three");
offer("lone", () => "a\ud800b");
offer("node", () => document.body);
"#;

#[tokio::test]
async fn every_value_has_a_text_and_a_json_form() {
    let world = World::with_page(&[], VALUES).await;
    for (tool, result, text) in [
        ("undefined_", json!("undefined"), "undefined"),
        ("nothing", json!("undefined"), "undefined"),
        ("null_", json!(null), "null"),
        ("empty", json!("Operation succeeded"), "Operation succeeded"),
        ("zero", json!(0), "0"),
        ("false_", json!(false), "false"),
        ("list", json!([]), "[]"),
        ("word", json!("undefined"), "undefined"),
        ("null_word", json!(null), "null"),
        ("nan", json!("NaN"), "NaN"),
        ("infinity", json!([null, 0]), "[null,0]"),
        ("date", json!("1970-01-01T00:00:00.000Z"), "1970-01-01T00:00:00.000Z"),
        ("map", json!({}), "{}"),
        ("function_", json!("undefined"), "undefined"),
        ("number", json!(1e21), "1e+21"),
        ("big", json!(10), "10"),
        ("nested", json!({"10": 1, "z": 1, "a": [{"b": null}]}), r#"{"10":1,"z":1,"a":[{"b":null}]}"#),
        ("json_text", json!({"a": "é", "b": [1]}), r#"{"a":"é","b":[1]}"#),
        ("number_text", json!(42), "42"),
        ("lines", json!("one\ntwo\t\u{7}three"), "one\ntwo\tthree"),
        ("lone", json!("a\u{fffd}b"), "a\u{fffd}b"),
        ("node", json!({}), "{}"),
    ] {
        let answer = world.page_call(tool, json!({})).await;
        assert!(answer["isError"].is_null(), "{tool}: {answer:#}");
        assert_eq!(answer["structuredContent"]["tool"], tool, "{answer:#}");
        assert_eq!(answer["structuredContent"]["result"], result, "{tool}: {answer:#}");
        assert_eq!(answer["content"], json!([{"type": "text", "text": text}]), "{tool}: {answer:#}");
    }
    world.finish().await;
}

#[tokio::test]
async fn answers_in_the_shape_of_mcp_keep_their_blocks_and_their_failure() {
    let world = World::with_page(
        &[],
        r#"
const text = (text) => ({ type: "text", text });
offer("plain", () => ({ content: [text("one"), text("two")] }));
offer("failed", () => ({ content: [text("out of stock")], isError: true }));
offer("not_failed", () => ({ content: [text("fine")], isError: false }));
offer("image", () => ({ content: [text("a dot"), { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }] }));
offer("structured", () => ({ content: [text("sum")], structuredContent: { z: 1, a: 2 } }));
offer("not_mcp", () => ({ content: "just a field", isError: true }));
"#,
    )
    .await;
    let text = |text: &str| json!({"type": "text", "text": text});
    for (tool, is_error, content, result) in [
        ("plain", json!(null), json!([text("one"), text("two")]), json!("one\ntwo")),
        ("failed", json!(true), json!([text("out of stock")]), json!("out of stock")),
        ("not_failed", json!(null), json!([text("fine")]), json!("fine")),
        (
            "image",
            json!(null),
            json!([text("a dot"), {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}]),
            json!("a dot"),
        ),
        ("structured", json!(null), json!([text("sum")]), json!({"z": 1, "a": 2})),
        (
            "not_mcp",
            json!(null),
            json!([text(r#"{"content":"just a field","isError":true}"#)]),
            json!({"content": "just a field", "isError": true}),
        ),
    ] {
        let answer = world.page_call(tool, json!({})).await;
        assert_eq!(answer["isError"], is_error, "{tool}: {answer:#}");
        assert_eq!(answer["content"], content, "{tool}: {answer:#}");
        assert_eq!(answer["structuredContent"]["result"], result, "{tool}: {answer:#}");
        assert_eq!(answer["structuredContent"]["tool"], tool, "{answer:#}");
    }
    world.finish().await;
}

#[tokio::test]
async fn what_a_tool_throws_is_told_in_short_and_without_the_stack() {
    let world = World::with_page(
        &[],
        r#"
offer("error", () => { throw new TypeError("no such item"); });
offer("async_error", async () => { await null; throw new RangeError("größer 日本"); });
offer("string", () => { throw "just words"; });
offer("rejects_undefined", () => Promise.reject(undefined));
offer("rejects_null", () => Promise.reject(null));
offer("number", () => { throw 42; });
offer("object", () => { throw { code: 7 }; });
offer("big", () => [10n]);
offer("cycle", () => { const a = {}; a.a = a; return a; });
offer("to_json", () => ({ toJSON() { throw new Error("not for you"); } }));
offer("long", () => { throw new Error("x".repeat(100000)); });
offer("hidden", () => { throw new Error("a\u001b[31mb\u202ec"); });
"#,
    )
    .await;
    for (tool, reason) in [
        ("error", "TypeError: no such item"),
        ("async_error", "RangeError: größer 日本"),
        ("string", "just words"),
        ("rejects_undefined", "undefined"),
        ("rejects_null", "null"),
        ("number", "42"),
        ("object", "Object"),
        ("big", "TypeError: Do not know how to serialize a BigInt"),
        ("cycle", "TypeError: Converting circular structure to JSON"),
        ("to_json", "Error: not for you"),
        ("long", "Error: xxx"),
        ("hidden", "Error: a[31mbc"),
    ] {
        let answer = world.page_call(tool, json!({})).await;
        let error = &answer["structuredContent"]["error"];
        assert_eq!(answer["isError"], true, "{tool}: {answer:#}");
        assert_eq!(answer["structuredContent"]["tool"], tool, "{answer:#}");
        assert_eq!(
            (&error["kind"], &error["outcome"]),
            (&json!("threw"), &json!("failed")),
            "{tool}: {answer:#}"
        );
        let message = error["message"].as_str().expect("a message");
        let wanted = format!("The page's tool {tool:?} failed: {reason}");
        assert!(message.starts_with(&wanted), "{tool}: {message}");
        assert!(message.len() < 2_500 && !message.contains("    at "), "{tool}: {message}");
        assert!(!message.contains(&world.site.url("")), "{tool}: {message}");
        assert_eq!(text_of(&answer), message, "{tool}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_tool_that_takes_itself_back_still_delivers_its_result() {
    let world = World::with_page(
        &[],
        r#"
const self_ = offer("self", async () => { self_.abort(); return "delivered"; });
const later = offer("later", async () => { self.started = true; await new Promise((done) => setTimeout(done, 400)); return "delivered too"; });
offer("stays", () => "here");
"#,
    )
    .await;
    let answer = world.bridge.page_call("self", json!({})).await;
    assert_eq!(answer["result"], "delivered", "{answer:#}");
    assert_eq!(answer["toolsRemoved"], json!(["page_self"]), "{answer:#}");
    world.tools_become(&["later", "stays"]).await;
    let again = world.error("self", json!({})).await;
    assert_eq!((&again["kind"], &again["outcome"]), (&json!("not_found"), &json!("not_run")), "{again:#}");
    // Taken back from outside while it runs.
    let taken = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        world.evaluate("() => { later.abort(); return self.started; }").await
    };
    let started = Instant::now();
    let (answer, was_running) = tokio::join!(world.page_call("later", json!({})), taken);
    assert_eq!(was_running, true);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(answer["structuredContent"]["result"], "delivered too", "{answer:#}");
    world.tools_become(&["stays"]).await;
    assert_eq!(world.result("stays", json!({})).await, "here");
    world.finish().await;
}

#[tokio::test]
async fn a_long_result_is_cut_and_lies_whole_in_the_workspace() {
    let world = World::with_page(
        &[],
        r#"
offer("long", () => "é".repeat(150000));
offer("many", () => Array.from({ length: 40000 }, (_, at) => ({ at })));
offer("short", () => "short");
"#,
    )
    .await;
    let whole = "é".repeat(150_000);
    let answer = world.page_call("long", json!({})).await;
    assert!(answer["isError"].is_null());
    let text = text_of(&answer);
    assert!(text.starts_with(&"é".repeat(25_600)), "the head is shown");
    assert!(text.len() < 52_000, "{} bytes", text.len());
    let file = text
        .split("the whole is in ")
        .nth(1)
        .and_then(|rest| rest.strip_suffix(']'))
        .expect("a file is named");
    assert!(file.starts_with(world.workspace.path().to_str().expect("UTF-8")), "{file}");
    assert!(text.contains("cut after 51200 of 300000 bytes"), "{}", &text[text.len() - 300..]);
    assert_eq!(std::fs::read_to_string(file).expect("the file"), whole);
    let data = &answer["structuredContent"];
    assert_eq!(data["status"], "cut");
    assert_eq!(data["result"]["bytes"], 300_002, "the JSON text with its quotes");
    assert_eq!(data["result"]["head"].as_str().map(str::len), Some(51_200));
    let kept = std::fs::read_to_string(data["result"]["file"].as_str().expect("a file")).expect("the file");
    assert_eq!(serde_json::from_str::<Value>(&kept).expect("JSON"), json!(whole));
    assert_eq!(world.result("short", json!({})).await, "short");

    let data = world.bridge.page_call("many", json!({})).await;
    assert_eq!(data["status"], "cut");
    let kept = std::fs::read_to_string(data["result"]["file"].as_str().expect("a file")).expect("the file");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    assert_eq!((kept.as_array().map(Vec::len), &kept[39_999]), (Some(40_000), &json!({"at": 39_999})));
    assert_eq!(world.result("short", json!({})).await, "short");
    world.finish().await;
}
