//! How a session ends (field case G16).

mod support;

use std::time::{Duration, Instant};

use pagebridge_mcp::server::{Ended, serve};
use support::{PATIENCE, start, start_with};

fn ask(id: u32, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_calls_are_answered_after_the_input_closed() {
    for _ in 0..20 {
        let mut wire = start(Duration::from_secs(5));
        let calls: Vec<String> = (1..=3).map(|id| ask(id, "slow", "50")).collect();
        wire.send(&calls.join("\n")).await;
        let (answers, ended, _) = wire.finish().await;
        assert_eq!((answers.len(), ended), (3, Ended::InputClosed));
        assert!(answers.iter().all(|answer| answer.ends_with(r#""result":"done"}"#)), "{answers:?}");
    }
}

#[tokio::test]
async fn what_is_not_done_in_time_is_cancelled_and_answered() {
    let started = Instant::now();
    let mut wire = start(Duration::from_millis(100));
    wire.send(&ask(1, "polite", "{}")).await;
    wire.send(&ask(2, "deaf", "{}")).await;
    wire.send(&ask(3, "slow", "20")).await;
    let (mut answers, ended, _) = wire.finish().await;
    answers.sort();
    assert_eq!(answers[0], r#"{"jsonrpc":"2.0","id":1,"result":"cut short"}"#);
    assert!(answers[1].starts_with(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32000"#), "{answers:?}");
    assert!(answers[1].contains("shutting down"));
    assert_eq!(answers[2], r#"{"jsonrpc":"2.0","id":3,"result":"done"}"#);
    assert_eq!((answers.len(), ended), (3, Ended::InputClosed));
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[tokio::test]
async fn a_cancelled_but_running_call_does_not_delay_the_end() {
    let started = Instant::now();
    let mut wire = start(Duration::from_secs(30));
    wire.send(&ask(1, "deaf", "{}")).await;
    wire.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    let (answers, ended, _) = wire.finish().await;
    assert_eq!((answers.len(), ended), (0, Ended::InputClosed));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn shutdown_answers_what_was_accepted() {
    let mut wire = start(Duration::from_secs(5));
    wire.send(&ask(1, "slow", "100")).await;
    wire.ping().await;
    wire.shutdown.cancel();
    assert_eq!(wire.json().await["result"], "done");
    assert_eq!(wire.line().await, None);
    assert_eq!(wire.server.await.unwrap(), Ended::Shutdown);
}

#[tokio::test]
async fn a_reader_that_leaves_during_a_big_answer_ends_the_session() {
    let mut wire = start(Duration::from_secs(30));
    wire.send(&ask(1, "slow", "60000")).await;
    wire.send(&ask(2, "big", "{}")).await;
    wire.ping_is_sent_but_not_read().await;
    let started = Instant::now();
    drop(wire.output);
    let ended = tokio::time::timeout(PATIENCE, wire.server).await.unwrap().unwrap();
    assert_eq!(ended, Ended::PeerGone);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    assert!(wire.script.noted().contains(&"cancelled 1".to_owned()));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_real_pipe_that_is_closed_during_a_big_answer() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::unix::pipe::pipe;

    let (mut to_server, input) = pipe().unwrap();
    let (output, mut from_server) = pipe().unwrap();
    let shutdown = tokio_util::sync::CancellationToken::new();
    let script = std::sync::Arc::<support::Script>::default();
    let server = tokio::spawn(serve(script, input, output, shutdown, Duration::from_secs(30)));
    to_server.write_all(format!("{}\n", ask(1, "big", "{}")).as_bytes()).await.unwrap();
    from_server.read_exact(&mut [0; 1000]).await.unwrap();
    drop(from_server);
    let ended = tokio::time::timeout(PATIENCE, server).await.unwrap().unwrap();
    assert_eq!(ended, Ended::PeerGone);
}

#[tokio::test]
async fn a_reader_that_leaves_while_the_session_drains() {
    let mut wire = start(Duration::from_secs(30));
    wire.send(&ask(1, "slow", "60000")).await;
    wire.send(&ask(2, "big", "{}")).await;
    drop(wire.input);
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(wire.output);
    let ended = tokio::time::timeout(PATIENCE, wire.server).await.unwrap().unwrap();
    assert_eq!(ended, Ended::PeerGone);
}

#[tokio::test]
async fn a_client_that_neither_reads_nor_leaves_cannot_hold_the_end_up() {
    let mut wire = start_with(Duration::from_millis(50), 1 << 10);
    wire.send(&ask(1, "big", "{}")).await;
    drop(wire.input);
    let ended = tokio::time::timeout(PATIENCE, wire.server).await.unwrap().unwrap();
    assert_eq!(ended, Ended::InputClosed);
}

#[tokio::test]
async fn a_big_answer_arrives_whole_through_a_small_pipe() {
    let mut wire = start_with(Duration::from_secs(20), 1 << 10);
    wire.send(&ask(1, "big", "{}")).await;
    let (answers, ended, _) = wire.finish().await;
    assert_eq!(answers[0].len(), (5 << 20) + r#"{"jsonrpc":"2.0","id":1,"result":""}"#.len());
    assert_eq!(ended, Ended::InputClosed);
}

impl support::Wire {
    async fn ping_is_sent_but_not_read(&mut self) {
        self.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
