//! What `evaluate_script` tells of a script's result and of its failure.

mod support;

use std::time::{Duration, Instant};

use serde_json::json;
use support::{World, page};

#[tokio::test]
async fn every_result_is_told_as_json_or_as_javascript_writes_it() {
    let world = World::with_page(&[], "document.title = 'T';").await;
    for (function, told) in [
        ("() => undefined", "undefined"),
        ("() => {}", "undefined"),
        ("() => null", "null"),
        ("() => ''", "\"\""),
        ("() => 0", "0"),
        ("() => -0", "-0"),
        ("() => NaN", "NaN"),
        ("() => -Infinity", "-Infinity"),
        ("() => 10n", "10n"),
        ("() => false", "false"),
        ("() => [1, null, 'x']", r#"[1,null,"x"]"#),
        ("async () => ({ z: 1, a: { b: [] } })", r#"{"z":1,"a":{"b":[]}}"#),
        ("() => 'größe 日本 👩‍👩‍👧'", "\"größe 日本 👩‍👩‍👧\""),
        ("() => ({ 日本: 'é' })", r#"{"日本":"é"}"#),
        ("() => 'a\\u202eb'", r#""a\u202eb""#),
        ("() => document.title // the end", "\"T\""),
        ("function () { return this === window; }", "true"),
        ("() => { JSON.stringify = () => 'forged'; return { a: 1 }; }", r#"{"a":1}"#),
    ] {
        let text = world.bridge.text("evaluate_script", json!({"function": function})).await;
        assert_eq!(text, format!("Script ran on page and returned:\n```json\n{told}\n```"), "{function}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_script_that_fails_tells_why_without_the_stack() {
    let world = World::with_page(&[], "").await;
    for (function, reason) in [
        ("() => { throw new TypeError('no'); }", "TypeError: no"),
        ("async () => { await null; throw new Error('später'); }", "Error: später"),
        ("() => { throw 'words'; }", "words"),
        ("() => Promise.reject(null)", "null"),
        ("() => Promise.reject(undefined)", "undefined"),
        ("() => missing", "ReferenceError: missing is not defined"),
        ("() => {", "SyntaxError: "),
    ] {
        let error = world.bridge.error("evaluate_script", json!({"function": function})).await;
        assert_eq!((&error["kind"], &error["outcome"]), (&json!("threw"), &json!("failed")), "{error:#}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.starts_with(&format!("The script threw: {reason}")), "{function}: {message}");
        assert!(!message.contains("    at "), "{message}");
    }
    assert_eq!(world.evaluate("() => 1").await, 1);
    world.finish().await;
}

#[tokio::test]
async fn a_script_that_leaves_its_page_gives_its_result_and_the_next_call_works() {
    let world = World::with_page(&[], "").await;
    world.site.page("/next", page("document.title = 'Next';"));
    let function = "() => { location.href = '/next'; return 'going'; }";
    let text = world.bridge.text("evaluate_script", json!({"function": function})).await;
    assert!(text.contains("\"going\""), "{text}");
    assert!(text.contains(&format!("The page went to {}.", world.site.url("/next"))), "{text}");
    assert_eq!(world.evaluate("() => document.title").await, "Next");
    let started = Instant::now();
    let function = "() => { setTimeout(() => { location.href = '/'; }, 50); return new Promise(() => {}); }";
    let error = world.bridge.error("evaluate_script", json!({"function": function})).await;
    assert_eq!((&error["kind"], &error["outcome"]), (&json!("navigated"), &json!("unknown")), "{error:#}");
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert_eq!(world.evaluate("() => location.pathname").await, "/");
    world.finish().await;
}
