//! The binary on standard input and output, byte by byte, without a browser.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagebridge_testkit::raw::{HANDSHAKE, Raw};
use serde_json::{Value, json};

const EXE: &str = env!("CARGO_BIN_EXE_pagebridge");
const INIT: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}"#;

/// Every name that a local tool may have.
const NAMES: &str = "list_pages select_page new_page close_page navigate_page wait_for resize_page emulate handle_dialog \
    click hover drag fill fill_form type_text press_key upload_file \
    take_snapshot take_screenshot evaluate_script list_console_messages get_console_message list_network_requests get_network_request \
    page_tools page_call list_webmcp_tools execute_webmcp_tool list_3p_developer_tools execute_3p_developer_tool \
    bridge_info binary_info bridge_servers browser_session_open browser_session_list browser_session_close";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

async fn bridge(folder: &Path) -> Raw {
    Raw::start_initialized(EXE, folder, &["serve"], &[]).await
}

/// A program in place of a browser.
fn script(folder: &Path, body: &str) -> PathBuf {
    let file = folder.join("browser");
    std::fs::write(&file, format!("#!/bin/sh\n{body}\n")).expect("a script");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("an executable script");
    file
}

async fn finish(mut raw: Raw) {
    raw.close_input();
    assert_eq!(raw.rest().await, Vec::<Value>::new(), "nothing is said after the last answer");
    let status = raw.ended(Duration::from_secs(5)).await;
    assert_eq!(status.code(), Some(0), "{}", raw.stderr());
    raw.marker.assert_gone_within(Duration::from_secs(1));
}

/// Sends bytes that are no message, then a ping. Gives the error that the bytes got, if any.
async fn after_bad_bytes(raw: &mut Raw, bytes: &[u8], ping: u32) -> Option<Value> {
    raw.send(bytes).await;
    raw.send(format!("\n{{\"jsonrpc\":\"2.0\",\"id\":{ping},\"method\":\"ping\"}}\n")).await;
    let first = raw.message().await;
    let (bad, pong) = if first["id"] == ping { (None, first) } else { (Some(first), raw.message().await) };
    assert_eq!(pong, json!({"jsonrpc": "2.0", "id": ping, "result": {}}), "after {bytes:?}");
    bad
}

#[tokio::test]
async fn odd_bytes_get_one_error_at_most_and_the_session_goes_on() {
    let dir = folder();
    let mut raw = bridge(dir.path()).await;
    let cases: [(&[u8], Option<i64>); 16] = [
        (b"\xFF\xFE", Some(-32700)),
        (b"\xFF\xFE{\"jsonrpc\":\"2.0\",\"method\":\"x\"}", Some(-32700)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":", Some(-32700)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"caf\xE9\",\"method\":\"ping\"}", Some(-32700)),
        (b"not json at all", Some(-32700)),
        (b"\0", Some(-32700)),
        (b"", None),
        (b"\n\r\n \t \n", None),
        (b"[]", Some(-32600)),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}]", Some(-32600)),
        (b"5", Some(-32600)),
        (b"null", Some(-32600)),
        (b"{}", Some(-32600)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", Some(-32600)),
        (b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/of_tomorrow\",\"params\":[1]}", None),
        (b"{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}", None),
    ];
    for (number, (bytes, code)) in (100..).zip(cases) {
        let shown = String::from_utf8_lossy(bytes);
        let bad = after_bad_bytes(&mut raw, bytes, number).await;
        assert_eq!(bad.as_ref().and_then(|bad| bad["error"]["code"].as_i64()), code, "{shown}: {bad:?}");
        if let Some(bad) = bad {
            assert_eq!(bad["id"], Value::Null, "{shown}: {bad}");
        }
    }
    finish(raw).await;
}

#[tokio::test]
async fn a_byte_order_mark_and_crlf_line_ends_are_read() {
    let dir = folder();
    let mut raw = Raw::start(EXE, dir.path(), &["serve"], &[]);
    let lines = HANDSHAKE.replace('\n', "\r\n");
    raw.send(format!("\u{feff}{lines}")).await;
    assert_eq!(raw.message().await["result"]["serverInfo"]["name"], "pagebridge");
    raw.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n").await;
    assert_eq!(raw.line().await.as_deref(), Some(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    finish(raw).await;
}

#[tokio::test]
async fn a_hundred_megabytes_without_a_newline_are_refused_in_bounded_memory() {
    let dir = folder();
    let mut raw = bridge(dir.path()).await;
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        raw.send(&chunk).await;
    }
    let bad = after_bad_bytes(&mut raw, b"", 1).await.expect("an error");
    assert_eq!((&bad["id"], &bad["error"]["code"]), (&Value::Null, &json!(-32700)), "{bad}");
    assert!(bad["error"]["message"].as_str().is_some_and(|m| m.contains("104857600")), "{bad}");
    let peak = raw.peak_memory();
    assert!(peak < 220 << 20, "{} MiB at most", peak >> 20);
    finish(raw).await;
}

#[tokio::test]
async fn a_message_cut_into_single_bytes_arrives_whole() {
    let dir = folder();
    let mut raw = bridge(dir.path()).await;
    for byte in "{\"jsonrpc\":\"2.0\",\"id\":\"日本語👩‍👩‍👧é\",\"method\":\"ping\"}\n".as_bytes()
    {
        raw.send([*byte]).await;
    }
    assert_eq!(raw.message().await["id"], "日本語👩‍👩‍👧é");
    finish(raw).await;
}

#[tokio::test]
async fn batches_are_answered_in_the_one_version_that_knows_them() {
    let dir = folder();
    let mut raw = Raw::start(EXE, dir.path(), &["serve"], &[]);
    let params = INIT.replace("2025-11-25", "2025-03-26");
    let answer = raw.request("0", "initialize", Some(&params)).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-03-26");
    raw.send("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},5,{\"jsonrpc\":\"2.0\",\"method\":\"x\"},{\"jsonrpc\":\"2.0\",\"id\":\"2\",\"method\":\"no/such\"}]\n").await;
    let answers = raw.message().await;
    let mut codes: Vec<_> = answers
        .as_array()
        .expect("a batch")
        .iter()
        .map(|a| (a["id"].to_string(), a["error"]["code"].clone()))
        .collect();
    codes.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        codes,
        [("\"2\"".into(), json!(-32601)), ("1".into(), Value::Null), ("null".into(), json!(-32600))]
    );
    finish(raw).await;
}

#[tokio::test]
async fn initialize_answers_within_a_second_and_nothing_starts_until_a_page_is_wanted() {
    let dir = folder();
    let started = Instant::now();
    let mut raw = Raw::start(EXE, dir.path(), &["serve"], &[]);
    let answer = raw.request("0", "initialize", Some(INIT)).await["result"].clone();
    let took = started.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(answer["protocolVersion"], "2025-11-25");
    assert_eq!(answer["capabilities"], json!({"tools": {"listChanged": true}}));
    assert_eq!(answer["serverInfo"]["name"], "pagebridge");
    assert_eq!(answer["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    raw.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").await;
    raw.request("1", "tools/list", None).await;
    raw.request("2", "ping", None).await;
    for (id, tool) in [("3", "list_pages"), ("4", "bridge_info")] {
        let answer = raw.request(id, "tools/call", Some(&json!({"name": tool}).to_string())).await;
        assert!(answer["result"]["isError"].is_null(), "{answer}");
    }
    let without_page = raw.request("5", "tools/call", Some(r#"{"name":"page_tools"}"#)).await;
    assert_eq!(without_page["result"]["structuredContent"]["error"]["kind"], "not_found", "{without_page}");
    let info = raw.request("6", "tools/call", Some(r#"{"name":"bridge_info"}"#)).await;
    let browser = &info["result"]["structuredContent"]["browser"];
    assert_eq!((&browser["state"], &browser["generation"]), (&json!("idle"), &json!(0)), "{info}");
    let alive = raw.marker.alive();
    assert_eq!(alive.len(), 1, "{alive:?}");
    assert_eq!(Some(alive[0].pid), raw.child.id());
    assert_eq!(std::fs::read_dir(dir.path()).expect("the workspace").count(), 0, "nothing is written either");
    finish(raw).await;
}

#[tokio::test]
async fn every_known_version_is_echoed_and_any_other_gets_the_newest() {
    let dir = folder();
    for (asked, given) in [
        (r#""2024-11-05""#, "2024-11-05"),
        (r#""2025-03-26""#, "2025-03-26"),
        (r#""2025-06-18""#, "2025-06-18"),
        (r#""2025-11-25""#, "2025-11-25"),
        (r#""2026-07-28""#, "2025-11-25"),
        (r#""2099-01-01""#, "2025-11-25"),
        (r#""""#, "2025-11-25"),
        ("7", "2025-11-25"),
        ("null", "2025-11-25"),
    ] {
        let mut raw = Raw::start(EXE, dir.path(), &["serve"], &[]);
        let params = INIT.replace(r#""2025-11-25""#, asked);
        let answer = raw.request("0", "initialize", Some(&params)).await;
        assert_eq!(answer["result"]["protocolVersion"], given, "{asked}: {answer}");
        finish(raw).await;
    }
    let mut raw = Raw::start(EXE, dir.path(), &["serve"], &[]);
    let answer = raw.request("0", "initialize", None).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
    finish(raw).await;
}

#[tokio::test]
async fn ids_of_every_kind_come_back_as_they_were_written() {
    let dir = folder();
    let mut raw = bridge(dir.path()).await;
    let long = format!("\"{}\"", "i".repeat(100_000));
    let ids = [
        "1",
        "\"1\"",
        "0",
        "-7",
        "\"\"",
        "1.5",
        "1e3",
        "1.0",
        "9007199254740993",
        "18446744073709551617",
        "\"\\u00e9\"",
        "\"é😀\"",
        "\"\\ud800\"",
        "\"a\\\"b\\\\\\n\"",
        &long,
    ];
    for id in ids {
        assert_eq!(raw.request(id, "ping", None).await["result"], json!({}), "{id}");
        let answer = raw.request(id, "tools/list", Some("{}")).await;
        assert!(answer["result"]["tools"].is_array(), "{id}");
    }
    finish(raw).await;
}

#[tokio::test]
async fn unknown_methods_and_tools_are_refused_with_their_codes() {
    let dir = folder();
    let mut raw = bridge(dir.path()).await;
    for method in ["server/discover", "resources/list", "prompts/list", "tools/LIST", ""] {
        let answer = raw.request("1", method, Some("{}")).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    for params in [
        r#"{"name":"no_such_tool"}"#,
        r#"{"name":"page_no_such_tool","arguments":{}}"#,
        r#"{"name":""}"#,
        r#"{"name":5}"#,
        "{}",
        "[]",
        "null",
    ] {
        let answer = raw.request("2", "tools/call", Some(params)).await;
        assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
    }
    assert_eq!(raw.request("3", "tools/call", None).await["error"]["code"], -32602);
    finish(raw).await;
}

#[tokio::test]
async fn absent_and_null_arguments_are_empty_ones_and_other_kinds_are_refused() {
    let dir = folder();
    let mut raw = bridge(dir.path()).await;
    for tool in ["bridge_info", "list_pages"] {
        for arguments in ["", r#","arguments":null"#, r#","arguments":{}"#] {
            let params = format!(r#"{{"name":"{tool}"{arguments}}}"#);
            let answer = raw.request("1", "tools/call", Some(&params)).await;
            assert!(answer["result"]["content"][0]["text"].is_string(), "{params}: {answer}");
            assert!(answer["result"]["isError"].is_null(), "{params}: {answer}");
        }
        for arguments in ["[]", r#""{}""#, "1", "true"] {
            let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
            let answer = raw.request("2", "tools/call", Some(&params)).await;
            assert_eq!(answer["error"]["code"], -32602, "{params}: {answer}");
        }
    }
    // Of the right kind, but not what the tool takes: an answer that a model can read.
    for (tool, arguments) in [
        ("new_page", json!({})),
        ("new_page", json!({"url": 5})),
        ("new_page", json!({"url": "http://127.0.0.1/", "nonsense": 1})),
        ("list_pages", json!({"nonsense": 1})),
        ("bridge_info", json!({"nonsense": 1})),
    ] {
        let params = json!({"name": tool, "arguments": arguments}).to_string();
        let result = raw.request("3", "tools/call", Some(&params)).await["result"].clone();
        assert_eq!(result["isError"], true, "{params}: {result}");
        let data = &result["structuredContent"];
        assert_eq!(data["tool"], tool, "{params}: {result}");
        assert_eq!(data["error"]["kind"], "invalid_arguments", "{params}: {result}");
        assert_eq!(data["error"]["outcome"], "not_run", "{params}: {result}");
        assert_eq!(result["content"][0]["text"], data["error"]["message"], "{result}");
    }
    finish(raw).await;
}

#[tokio::test]
async fn stdout_has_nothing_but_messages_however_much_is_logged() {
    let dir = folder();
    let browser = script(dir.path(), "echo noise on stdout; echo noise on stderr >&2; exit 3");
    let browser = browser.to_str().expect("UTF-8");
    let args = ["serve", "--log-level", "trace", "--executable-path", browser];
    let env = [("RUST_LOG", "trace"), ("RUST_BACKTRACE", "1")];
    let mut raw = Raw::start_initialized(EXE, dir.path(), &args, &env).await;
    raw.send("garbage\n").await;
    assert_eq!(raw.message().await["error"]["code"], -32700);
    let call = json!({"name": "new_page", "arguments": {"url": "http://127.0.0.1/"}}).to_string();
    let answer = raw.request("1", "tools/call", Some(&call)).await;
    let error = &answer["result"]["structuredContent"]["error"];
    assert_eq!(error["kind"], "browser_start_failed", "{answer}");
    assert!(error["message"].as_str().is_some_and(|m| m.contains("noise on stderr")), "{answer}");
    raw.request("2", "tools/list", None).await;
    assert!(
        raw.stderr().contains("DEBUG") || raw.stderr().contains("TRACE"),
        "it does log: {}",
        raw.stderr()
    );
    finish(raw).await;
}

#[tokio::test]
async fn help_and_version_succeed_and_a_wrong_option_is_a_usage_error() {
    let dir = folder();
    for (args, code, on_stdout) in [
        (&["--help"][..], 0, true),
        (&["serve", "--help"], 0, true),
        (&["--version"], 0, true),
        (&["--no-such-option"], 2, false),
        (&["no-such-command"], 2, false),
        (&["serve", "--page-call-timeout", "soon"], 2, false),
        (&["serve", "--browser-arg=--remote-debugging-port=1"], 2, false),
        (&["tools"], 2, false),
    ] {
        let mut raw = Raw::start(EXE, dir.path(), args, &[]);
        raw.close_input();
        let mut stdout = Vec::new();
        while let Some(line) = raw.line().await {
            stdout.push(line);
        }
        let status = raw.ended(Duration::from_secs(5)).await;
        assert_eq!(status.code(), Some(code), "{args:?}: {}", raw.stderr());
        assert_eq!(!stdout.is_empty(), on_stdout, "{args:?}: {stdout:?}");
    }
}

#[tokio::test]
async fn requests_in_flight_at_the_end_of_input_are_all_answered() {
    let dir = folder();
    // Three starts, one after the other, are what takes its time here.
    let browser = script(dir.path(), "sleep 0.1; exit 1");
    let args = ["serve", "--executable-path", browser.to_str().expect("UTF-8")];
    let mut input = HANDSHAKE.to_owned();
    let open = json!({"name": "new_page", "arguments": {"url": "http://127.0.0.1/"}});
    for id in 1..=3 {
        input +=
            &format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": open}));
    }
    input += "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/list\"}\n";
    // The last line has no line end.
    input += "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}";
    for run in 0..20 {
        let mut raw = Raw::start(EXE, dir.path(), &args, &[]);
        raw.send(&input).await;
        raw.close_input();
        let answers = raw.rest().await;
        let mut ids: Vec<i64> = answers.iter().filter_map(|answer| answer["id"].as_i64()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [0, 1, 2, 3, 4, 5], "run {run}: {answers:#?}");
        for answer in answers.iter().filter(|answer| (1..=3).contains(&answer["id"].as_i64().unwrap_or(0))) {
            assert_eq!(
                answer["result"]["structuredContent"]["error"]["kind"], "browser_start_failed",
                "{answer}"
            );
        }
        let status = raw.ended(Duration::from_secs(5)).await;
        assert_eq!(status.code(), Some(0), "run {run}: {}", raw.stderr());
        raw.marker.assert_gone_within(Duration::from_secs(1));
    }
}

#[tokio::test]
async fn a_client_that_stops_reading_for_good_ends_the_bridge_without_a_panic() {
    let dir = folder();
    // Closed while idle, and in the middle of an answer of 5 MB.
    for size in [10, 5_000_000] {
        let mut raw = bridge(dir.path()).await;
        let id = "i".repeat(size);
        if size < 1000 {
            raw.close_output();
        }
        raw.try_send(format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"method\":\"ping\"}}\n")).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        raw.close_output();
        let status = raw.ended(Duration::from_secs(5)).await;
        assert_eq!(status.code(), Some(0), "{size}: {}", raw.stderr());
        let stderr = raw.stderr();
        assert!(!stderr.contains("panicked") && !stderr.contains("RUST_BACKTRACE"), "{stderr}");
        raw.marker.assert_gone_within(Duration::from_secs(1));
    }
}

#[tokio::test]
async fn the_listed_tools_are_short_and_fit_every_client() {
    let dir = folder();
    let mut raw = bridge(dir.path()).await;
    raw.send("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{}}\n").await;
    let line = raw.line().await.expect("the list");
    assert!(line.len() < 12 * 1024, "{} bytes", line.len());
    let list: Value = serde_json::from_str(&line).expect("JSON");
    let tools = list["result"]["tools"].as_array().expect("tools");
    let mut names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    for (tool, name) in tools.iter().zip(&names) {
        assert!(NAMES.split_whitespace().any(|known| known == *name), "{name} is no name of the contract");
        assert!(tool["description"].as_str().is_some_and(|d| d.len() > 20), "{tool}");
        assert_eq!(tool["annotations"]["title"], tool["title"], "{name}");
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object", "{name}: {schema}");
        assert_eq!(schema["additionalProperties"], false, "{name}: {schema}");
        for union in ["anyOf", "oneOf", "allOf", "not", "$ref", "$schema"] {
            assert!(schema.get(union).is_none(), "{name}: {schema}");
        }
        let properties = schema["properties"].as_object().expect("properties");
        for (property, described) in properties {
            let is_typed = described["type"].is_string() || described["type"].is_array();
            assert!(is_typed, "{name}.{property}: {described}");
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(properties.contains_key(required.as_str().unwrap_or_default()), "{name}: {required}");
        }
    }
    for needed in [
        "list_pages",
        "select_page",
        "new_page",
        "close_page",
        "navigate_page",
        "evaluate_script",
        "page_tools",
        "page_call",
        "bridge_info",
    ] {
        assert!(names.contains(&needed), "{needed} is missing from {names:?}");
    }
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "no name is listed twice");
    let always: Vec<_> =
        tools.iter().filter(|t| t["_meta"]["anthropic/alwaysLoad"] == true).map(|t| &t["name"]).collect();
    assert_eq!(always, ["page_tools", "page_call"]);
    finish(raw).await;
}

#[test]
#[allow(clippy::disallowed_methods, reason = "tests start real processes")]
fn an_option_before_the_command_is_a_mistake_and_not_lost() {
    for (arguments, code) in [
        (&["--consequential", "deny", "doctor"][..], 2),
        (&["--no-sandbox", "tools", "about:blank"][..], 2),
        (&["--log-level", "debug", "completions", "bash"][..], 0),
    ] {
        let output = std::process::Command::new(EXE).args(arguments).output().expect("it runs");
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
