//! Handshake, requests in flight, progress, batches.

mod support;

use std::time::{Duration, Instant};

use support::{Wire, start};

const DRAIN: Duration = Duration::from_secs(5);

fn ask(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn cancel(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

async fn settled(wire: &Wire, text: &str) {
    let started = Instant::now();
    while !wire.script.noted().iter().any(|noted| noted == text) {
        assert!(started.elapsed() < support::PATIENCE, "{text} never happened");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn versions_are_echoed_or_answered_with_the_newest() {
    let mut wire = start(DRAIN);
    for (asked, got) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ] {
        assert_eq!(wire.initialize(asked).await["result"]["protocolVersion"], got);
    }
    for params in ["{}", "null", "[]", r#"{"protocolVersion":3,"clientInfo":4}"#] {
        wire.send(&ask("1", "initialize", params)).await;
        let answer = wire.line().await.unwrap();
        let expected = concat!(
            r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"#,
            r#""serverInfo":{"name":"script","version":"0"}}}"#
        );
        assert_eq!(answer, expected);
    }
}

#[tokio::test]
async fn hooks_are_called_and_their_panics_are_their_own() {
    let mut wire = start(DRAIN);
    wire.send(&ask("1", "initialize", r#"{"clientInfo":{"name":"panic"}}"#)).await;
    assert_eq!(wire.json().await["error"]["code"], -32603);
    wire.initialize("2025-11-25").await;
    wire.send(r#"{"jsonrpc":"2.0","method":"panic"}"#).await;
    wire.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    assert_eq!(
        wire.line().await.unwrap(),
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#
    );
    wire.send(r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"z":1e400}}"#).await;
    wire.ping().await;
    assert_eq!(wire.script.noted(), ["initialize nobody", "initialized", r#"notifications/x {"z":1e400}"#]);
}

#[tokio::test]
async fn requests_before_initialize_and_unknown_methods() {
    let mut wire = start(DRAIN);
    wire.ping().await;
    wire.send(&ask("1", "echo", "[1]")).await;
    assert_eq!(wire.json().await["result"][0], 1);
    for method in ["server/discover", "nothing"] {
        wire.send(&ask("1", method, "{}")).await;
        assert_eq!(wire.json().await["error"]["code"], -32601);
    }
    // Answers to questions that nobody asked.
    wire.send(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    wire.send(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":""}}"#).await;
    wire.ping().await;
}

#[tokio::test]
async fn payloads_come_back_byte_for_byte() {
    let mut wire = start(DRAIN);
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for payload in [
        r#"{"z":18446744073709551617,"a":1e400,"_meta":{"x":0.7},"s":"\ud800 👩‍👩‍👧‍👦"}"#,
        r#"{"dup":1,"dup":2,"\udc00":null}"#,
        "null",
        &deep,
    ] {
        wire.send(&ask("1", "echo", payload)).await;
        assert_eq!(wire.line().await.unwrap(), format!(r#"{{"jsonrpc":"2.0","id":1,"result":{payload}}}"#));
    }
    wire.send(r#"{"jsonrpc":"2.0","id":1,"method":"null"}"#).await;
    assert_eq!(wire.line().await.unwrap(), r#"{"jsonrpc":"2.0","id":1,"result":null}"#);
}

#[tokio::test]
async fn ids_come_back_exactly_and_only_the_cancelled_one_ends() {
    let long = format!("\"{}\"", "long ü ".repeat(500));
    let ids = ["1", "\"1\"", "0", "\"\"", long.as_str(), "9007199254740993", "1e3", "1.0"];
    let mut delays = Vec::new();
    for cancelled in ids {
        let mut wire = start(Duration::from_millis(10));
        for id in ids {
            wire.send(&ask(id, "slow", "60000")).await;
        }
        // All are open, and a ping is not behind them.
        wire.ping().await;
        let sent = Instant::now();
        wire.send(&cancel(cancelled)).await;
        settled(&wire, &format!("cancelled {cancelled}")).await;
        delays.push(sent.elapsed());
        wire.send(&cancel(cancelled)).await;
        wire.ping().await;
        let ends = wire.script.noted().iter().filter(|noted| noted.starts_with("cancelled")).count();
        assert_eq!(ends, 1);

        // The others are answered when the session ends, each with its own id.
        let (mut answers, _, _) = wire.finish().await;
        let head = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#);
        for id in ids.iter().filter(|id| **id != cancelled) {
            let at = answers.iter().position(|answer| answer.starts_with(&head(id))).expect(id);
            answers.remove(at);
        }
        assert!(answers.is_empty(), "{answers:?}");
    }
    // The median, because the machine may be busy with other tests.
    delays.sort();
    assert!(delays[delays.len() / 2] < Duration::from_millis(100), "{delays:?}");
}

#[tokio::test]
async fn nothing_follows_a_cancellation() {
    let mut wire = start(DRAIN);
    wire.send(&ask("5", "stubborn", r#"{"_meta":{"progressToken":5}}"#)).await;
    wire.ping().await;
    wire.send(&cancel("5")).await;
    settled(&wire, "stubborn answers").await;
    wire.ping().await;
    // The id is free again.
    wire.send(&ask("5", "echo", "1")).await;
    assert_eq!(wire.json().await["result"], 1);
}

#[tokio::test]
async fn late_unknown_and_malformed_cancellations_are_ignored() {
    let mut wire = start(DRAIN);
    wire.send(&ask("1", "echo", "1")).await;
    assert_eq!(wire.json().await["result"], 1);
    wire.send(&cancel("1")).await;
    wire.send(&cancel("\"unknown\"")).await;
    wire.send(&cancel("null")).await;
    wire.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#).await;
    wire.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}"#).await;
    wire.send(&ask("\"i\"", "initialize", "{}")).await;
    wire.send(&cancel("\"i\"")).await;
    assert_eq!(wire.json().await["id"], "i");
    wire.ping().await;
}

#[tokio::test]
async fn an_id_in_flight_cannot_be_used_again() {
    let mut wire = start(DRAIN);
    wire.send(&ask("1", "slow", "300")).await;
    for method in ["echo", "ping", "initialize"] {
        wire.send(&ask("1", method, "{}")).await;
        let refused = wire.json().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&1.into(), &(-32600).into()));
    }
    wire.send(&ask("\"1\"", "echo", "2")).await;
    assert_eq!(wire.json().await["result"], 2);
    assert_eq!(wire.json().await["result"], "done");
}

#[tokio::test]
async fn a_panic_harms_only_its_own_request() {
    let mut wire = start(DRAIN);
    wire.send(&ask("1", "slow", "200")).await;
    wire.send(&ask("2", "panic", "{}")).await;
    let answer = wire.json().await;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&2.into(), &(-32603).into()));
    wire.ping().await;
    assert_eq!(wire.json().await["result"], "done");
}

#[tokio::test]
async fn progress_carries_the_clients_own_token() {
    let mut wire = start(DRAIN);
    for token in ["7", "\"7\"", "9007199254740993"] {
        wire.send(&ask("1", "progress", &format!(r#"{{"_meta":{{"progressToken":{token}}}}}"#))).await;
        let head = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"#;
        assert_eq!(wire.line().await.unwrap(), format!(r#"{head}{token},"progress":1}}}}"#));
        assert_eq!(
            wire.line().await.unwrap(),
            format!(r#"{head}{token},"progress":2.5,"total":10,"message":"zwei ½"}}}}"#)
        );
        assert_eq!(
            wire.line().await.unwrap(),
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"z":1,"a":2}}"#
        );
        assert_eq!(wire.json().await["result"], true);
    }
    wire.send(&ask("1", "progress", "{}")).await;
    assert_eq!(wire.json().await["method"], "notifications/x");
    assert_eq!(wire.json().await["result"], true);
}

#[tokio::test]
async fn batches_only_in_the_one_version_that_has_them() {
    let mut wire = start(DRAIN);
    let batch = format!("[{},{}]", ask("1", "echo", "1"), ask("2", "ping", "{}"));
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        wire.initialize(version).await;
        wire.send(&batch).await;
        let answer = wire.json().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&serde_json::Value::Null, &(-32600).into()));
        wire.ping().await;
    }
    wire.initialize("2025-03-26").await;
    wire.send(&batch).await;
    let answer = wire.json().await;
    assert_eq!(answer.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_batch_is_answered_with_one_array() {
    let mut wire = start(DRAIN);
    wire.initialize("2025-03-26").await;
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    let members = [
        &ask("1", "slow", "150"),
        notification,
        &ask("2", "echo", r#"{"z":1e400}"#),
        "17",
        &ask("\"i\"", "initialize", "{}"),
        &ask("3", "stubborn", "{}"),
    ];
    wire.send(&format!("[{}]", members.join(","))).await;
    wire.ping().await;
    wire.send(&cancel("3")).await;
    let line = wire.line().await.unwrap();
    assert!(line.contains(r#"{"jsonrpc":"2.0","id":2,"result":{"z":1e400}}"#), "{line}");
    let answers: Vec<&serde_json::value::RawValue> = serde_json::from_str(&line).unwrap();
    let of = |text: &str| answers.iter().filter(|answer| answer.get().contains(text)).count();
    assert_eq!(answers.len(), 4, "{line}");
    assert_eq!(
        (of(r#""id":1,"result":"done""#), of(r#""id":null,"error""#), of(r#""id":"i","error""#)),
        (1, 1, 1)
    );

    wire.send(&format!("[{notification},{notification}]")).await;
    wire.ping().await;
    for refused in ["[]".to_owned(), format!("[{}1]", "1,".repeat(5000))] {
        wire.send(&refused).await;
        assert_eq!(wire.json().await["error"]["code"], -32600);
        wire.ping().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_are_all_answered_once() {
    let mut wire = start(DRAIN);
    for id in 0..500 {
        wire.send(&ask(&id.to_string(), "slow", &(id % 7).to_string())).await;
    }
    let mut seen = vec![0; 500];
    for _ in 0..500 {
        seen[usize::try_from(wire.json().await["id"].as_u64().unwrap()).unwrap()] += 1;
    }
    assert_eq!(seen, [1; 500]);
}
