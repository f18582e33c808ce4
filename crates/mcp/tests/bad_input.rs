//! One bad line harms only itself (field case G14).

mod support;

use std::time::{Duration, Instant};

use pagebridge_mcp::lines::DEFAULT_LIMIT;
use pagebridge_mcp::server::Ended;
use support::{Wire, start};

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}";

async fn refused(wire: &mut Wire, code: i64) {
    let answer = wire.json().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&code.into(), &serde_json::Value::Null));
    wire.ping().await;
}

#[tokio::test]
async fn bad_lines_get_one_error_each_and_the_session_goes_on() {
    let mut wire = start(Duration::from_secs(1));
    for (line, code) in [
        (&b"\xFF\xFE"[..], -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi", -32700),
        (b"[]", -32600),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\"}]", -32600),
        (b"42", -32600),
        (b"{}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600),
    ] {
        wire.send_bytes(line).await;
        wire.send_bytes(b"\n").await;
        refused(&mut wire, code).await;
    }
    let (rest, ended, _) = wire.finish().await;
    assert_eq!((rest.len(), ended), (0, Ended::InputClosed));
}

#[tokio::test]
async fn an_invalid_request_is_answered_with_its_id() {
    let mut wire = start(Duration::from_secs(1));
    wire.send(r#"{"jsonrpc":"2.0","id":"seven"}"#).await;
    let answer = wire.json().await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&(-32600).into(), &"seven".into()));
    wire.ping().await;
}

#[tokio::test]
async fn marks_line_ends_and_blank_lines_are_no_errors() {
    let mut wire = start(Duration::from_secs(1));
    wire.send_bytes(b"\xEF\xBB\xBF").await;
    wire.send_bytes(PING).await;
    wire.send_bytes(b"\r\n\r\n\n  \t\n").await;
    assert_eq!(wire.json().await["id"], 2);
    wire.send_bytes(PING).await;
    wire.send_bytes(b"\r\n").await;
    assert_eq!(wire.json().await["id"], 2);
    // The last line needs no line end.
    wire.send_bytes(PING).await;
    let (rest, ended, _) = wire.finish().await;
    assert_eq!(rest, [r#"{"jsonrpc":"2.0","id":2,"result":{}}"#]);
    assert_eq!(ended, Ended::InputClosed);
}

#[tokio::test]
async fn a_cut_last_line_gets_its_error() {
    let mut wire = start(Duration::from_secs(1));
    wire.send_bytes(b"{\"jsonrpc\":").await;
    let (rest, _, _) = wire.finish().await;
    assert_eq!(rest.len(), 1);
    assert!(rest[0].starts_with(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700"#));
}

#[tokio::test]
async fn a_hundred_megabytes_without_a_newline() {
    let started = Instant::now();
    let mut wire = start(Duration::from_secs(1));
    let chunk = vec![b'x'; 1 << 16];
    for _ in 0..(100 << 20) / chunk.len() {
        wire.send_bytes(&chunk).await;
    }
    wire.send("").await;
    refused(&mut wire, -32700).await;
    eprintln!("100 MiB refused after {:?}, peak memory {:?} MiB", started.elapsed(), peak_mebibytes());
    if let Some(peak) = peak_mebibytes() {
        // The line at its limit, once more while its buffer grows, and the program.
        assert!(peak < 2 * (DEFAULT_LIMIT >> 20) + 48, "{peak} MiB");
    }
}

fn peak_mebibytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? >> 10)
}
