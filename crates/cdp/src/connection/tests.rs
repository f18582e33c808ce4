//! The client against a scripted browser at the other end of the pipe.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};
use tokio::time::timeout;

use super::*;

/// The browser's end: reads commands, writes whatever the test says.
struct Browser {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
}

impl Browser {
    async fn command(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.input.read_until(0, &mut bytes).await.unwrap();
        bytes.pop();
        serde_json::from_slice(&bytes).unwrap()
    }

    async fn say(&mut self, text: &str) {
        self.output.write_all(text.as_bytes()).await.unwrap();
        self.output.write_all(&[0]).await.unwrap();
    }
}

fn pair(limit: usize) -> (CdpSession, Events, Browser) {
    let (ours, theirs) = duplex(64 * 1024);
    let (input, output) = split(ours);
    let (session, events) = connect_with_limit(input, output, limit);
    let (input, output) = split(theirs);
    (session, events, Browser { input: BufReader::new(input), output })
}

async fn soon<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(5), future).await.expect("a wait did not end")
}

#[tokio::test]
async fn answers_find_their_callers_in_any_order() {
    let (browser_session, _events, mut browser) = pair(MESSAGE_LIMIT);
    let page = browser_session.session("S1".into());
    let first = browser_session.call("Browser.getVersion", json!({}));
    let second = page.call("Page.enable", json!({"x": 1}));
    let (one, two) = (browser.command().await, browser.command().await);
    assert_eq!(one.get("sessionId"), None);
    assert_eq!((&two["sessionId"], &two["params"]["x"]), (&json!("S1"), &json!(1)));
    browser.say(&format!(r#"{{"id":{},"sessionId":"S1","result":{{"n":2}}}}"#, two["id"])).await;
    browser.say(&format!(r#"{{"id":{},"result":{{"n":1}},"extra":[]}}"#, one["id"])).await;
    assert_eq!(soon(first).await.unwrap().decode::<Value>().unwrap()["n"], 1);
    assert_eq!(soon(second).await.unwrap().decode::<Value>().unwrap()["n"], 2);
}

#[tokio::test]
async fn odd_messages_neither_end_the_connection_nor_hide_the_answer() {
    let (session, mut events, mut browser) = pair(MESSAGE_LIMIT);
    let call = session.call("X.y", json!({}));
    let id = browser.command().await["id"].clone();
    for odd in [
        "",
        "not json",
        "[]",
        "42",
        r#"{"id":99999999999999999999,"result":{}}"#,
        r#"{"id":4242,"result":{}}"#,
        r#"{"params":{}}"#,
        r#"{"method":"New.event","params":{"enum":"valueOfTomorrow"},"unknown":true}"#,
    ] {
        browser.say(odd).await;
    }
    browser.output.write_all(b"{\"id\":\xff\xfe}\0").await.unwrap();
    browser.say(&format!(r#"{{"id":{id}}}"#)).await;
    let reply = soon(call).await.unwrap();
    assert_eq!(reply.decode::<Value>().unwrap(), json!({}), "a reply without result is an empty result");
    let event = soon(events.recv()).await.unwrap();
    assert_eq!((&*event.method, event.params.get()), ("New.event", r#"{"enum":"valueOfTomorrow"}"#));
}

#[tokio::test]
async fn an_error_reply_is_told_in_the_browsers_words() {
    let (session, _events, mut browser) = pair(MESSAGE_LIMIT);
    let call = session.call("Page.navigate", json!({}));
    let id = browser.command().await["id"].clone();
    browser
        .say(&format!(r#"{{"id":{id},"error":{{"code":-32000,"message":"no such frame","data":1}}}}"#))
        .await;
    let error = soon(call).await.unwrap_err();
    assert_eq!(error.to_string(), "Page.navigate: no such frame (-32000)");
}

#[tokio::test]
async fn an_unreadable_answer_ends_its_call() {
    let (session, _events, mut browser) = pair(MESSAGE_LIMIT);
    let call = session.call("X.y", json!({}));
    let id = browser.command().await["id"].clone();
    browser.say(&format!(r#"{{"id":{id},"error":{{"code":"text"}}}}"#)).await;
    assert!(matches!(soon(call).await, Err(CdpError::Unexpected { .. })));
}

#[tokio::test]
async fn a_closed_pipe_ends_every_wait_and_refuses_new_calls() {
    let (session, mut events, mut browser) = pair(MESSAGE_LIMIT);
    let page = session.session("S".into());
    let calls = [session.call("A.a", json!({})), page.call("B.b", json!({}))];
    browser.command().await;
    drop(browser);
    for call in calls {
        assert!(matches!(soon(call).await, Err(CdpError::Closed)));
    }
    assert!(soon(events.recv()).await.is_none());
    soon(session.closed()).await;
    assert!(matches!(soon(page.call("C.c", json!({}))).await, Err(CdpError::Closed)));
}

#[tokio::test]
async fn a_lost_session_ends_its_own_calls_only() {
    let (session, _events, mut browser) = pair(MESSAGE_LIMIT);
    let (gone, crashed, alive) =
        (session.session("A".into()), session.session("B".into()), session.session("C".into()));
    let of_gone = gone.call("X.x", json!({}));
    let of_crashed = crashed.call("X.x", json!({}));
    let mut of_alive = alive.call("X.x", json!({}));
    browser.say(r#"{"method":"Target.detachedFromTarget","params":{"sessionId":"A","targetId":"T"}}"#).await;
    browser.say(r#"{"method":"Inspector.targetCrashed","params":{},"sessionId":"B"}"#).await;
    assert!(matches!(soon(of_gone).await, Err(CdpError::Detached)));
    assert!(matches!(soon(of_crashed).await, Err(CdpError::Crashed)));
    assert!(timeout(Duration::from_millis(20), &mut of_alive).await.is_err());
    let id = loop {
        let command = browser.command().await;
        if command["sessionId"] == "C" {
            break command["id"].clone();
        }
    };
    browser.say(&format!(r#"{{"id":{id},"result":{{}}}}"#)).await;
    soon(of_alive).await.unwrap();
}

#[tokio::test]
async fn a_too_large_answer_fails_its_own_call_with_the_size() {
    let (session, _events, mut browser) = pair(10_000);
    let (big, small) = (session.call("Big.get", json!({})), session.call("Small.get", json!({})));
    let (big_id, small_id) = (browser.command().await["id"].clone(), browser.command().await["id"].clone());
    let blob = "x".repeat(1_000_000);
    browser.say(&format!(r#"{{"id":{big_id},"result":{{"data":"{blob}"}}}}"#)).await;
    browser.say(&format!(r#"{{"id":{small_id},"result":{{}}}}"#)).await;
    let Err(CdpError::TooLarge { bytes, .. }) = soon(big).await else { panic!("not refused") };
    assert!(bytes > 1_000_000);
    soon(small).await.unwrap();
}

#[tokio::test]
async fn large_answers_arrive_whole() {
    let (session, _events, mut browser) = pair(MESSAGE_LIMIT);
    let call = session.call("Big.get", json!({}));
    let id = browser.command().await["id"].clone();
    let blob = "é".repeat(35 * 1024 * 1024);
    browser.say(&format!(r#"{{"id":{id},"result":{{"data":"{blob}"}}}}"#)).await;
    let reply: Value = timeout(Duration::from_secs(60), call).await.unwrap().unwrap().decode().unwrap();
    assert_eq!(reply["data"].as_str().unwrap().len(), blob.len());
}

#[tokio::test]
async fn entries_end_with_their_callers() {
    let (session, _events, _browser) = pair(MESSAGE_LIMIT);
    for _ in 0..100 {
        drop(session.call("X.x", json!({})));
    }
    assert_eq!(session.shared.table().pending.len(), 0);
}
