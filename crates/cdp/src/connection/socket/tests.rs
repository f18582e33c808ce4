//! The WebSocket transport against a scripted browser.

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::*;
use crate::error::CdpError;

const SOON: Duration = Duration::from_secs(10);

async fn pair(limit: usize) -> (CdpSession, Events, Socket) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = async {
        let (stream, _) = listener.accept().await.unwrap();
        tokio_tungstenite::accept_async_with_config(stream, Some(config(MESSAGE_LIMIT))).await.unwrap()
    };
    let client = async {
        let stream = TcpStream::connect(address).await.unwrap();
        let request = format!("ws://{address}/").into_client_request().unwrap();
        client_async_with_config(request, stream, Some(config(limit))).await.unwrap().0
    };
    let (server, client) = tokio::join!(server, client);
    let (session, events) = connect(client, limit);
    (session, events, server)
}

async fn command(browser: &mut Socket) -> Value {
    let message = timeout(SOON, browser.next()).await.unwrap().unwrap().unwrap();
    serde_json::from_str(message.to_text().unwrap()).unwrap()
}

async fn say(browser: &mut Socket, text: impl Into<Utf8Bytes>) {
    browser.send(Message::Text(text.into())).await.unwrap();
}

#[tokio::test]
async fn commands_answers_and_events_pass_and_a_ping_is_answered() {
    let (session, mut events, mut browser) = pair(MESSAGE_LIMIT).await;
    let call = session.session("S".into()).call("Page.enable", json!({"é": "\u{1f600}"}));
    let asked = command(&mut browser).await;
    assert_eq!((&asked["sessionId"], &asked["params"]["é"]), (&json!("S"), &json!("\u{1f600}")));
    browser.send(Message::Ping("are you there".into())).await.unwrap();
    assert!(browser.next().await.unwrap().unwrap().is_pong());
    say(&mut browser, "not json").await;
    say(&mut browser, r#"{"method":"X.y","params":{"a":1}}"#).await;
    browser
        .send(Message::Binary(format!(r#"{{"id":{},"result":{{"n":1}}}}"#, asked["id"]).into()))
        .await
        .unwrap();
    assert_eq!(timeout(SOON, call).await.unwrap().unwrap().decode::<Value>().unwrap()["n"], 1);
    assert_eq!(&*timeout(SOON, events.recv()).await.unwrap().unwrap().method, "X.y");
}

#[tokio::test]
async fn a_message_of_70_mib_arrives_whole() {
    let (session, _events, mut browser) = pair(MESSAGE_LIMIT).await;
    let call = session.call("Big.get", json!({}));
    let id = command(&mut browser).await["id"].clone();
    let blob = "x".repeat(70 * 1024 * 1024);
    let (_, reply) = tokio::join!(
        say(&mut browser, format!(r#"{{"id":{id},"result":{{"data":"{blob}"}}}}"#)),
        timeout(Duration::from_secs(60), call)
    );
    assert_eq!(reply.unwrap().unwrap().decode::<Value>().unwrap()["data"], blob.as_str());
}

#[tokio::test]
async fn a_message_over_the_limit_fails_its_own_call() {
    let (session, _events, mut browser) = pair(10_000).await;
    let (big, small) = (session.call("Big.get", json!({})), session.call("Small.get", json!({})));
    let (big_id, small_id) =
        (command(&mut browser).await["id"].clone(), command(&mut browser).await["id"].clone());
    let blob = "x".repeat(15_000);
    say(&mut browser, format!(r#"{{"id":{big_id},"result":{{"data":"{blob}"}}}}"#)).await;
    say(&mut browser, format!(r#"{{"id":{small_id},"result":{{}}}}"#)).await;
    assert!(matches!(timeout(SOON, big).await.unwrap(), Err(CdpError::TooLarge { bytes: 15_000.., .. })));
    timeout(SOON, small).await.unwrap().unwrap();
    assert!(!session.is_closed());
}

#[tokio::test]
async fn a_message_far_over_the_limit_ends_the_connection_and_every_wait() {
    let (session, mut events, mut browser) = pair(10_000).await;
    let call = session.call("Big.get", json!({}));
    command(&mut browser).await;
    let _ = browser.send(Message::text("x".repeat(100_000))).await;
    assert!(matches!(timeout(SOON, call).await.unwrap(), Err(CdpError::Closed)));
    assert!(timeout(SOON, events.recv()).await.unwrap().is_none());
}

#[tokio::test]
async fn both_sides_can_end_it() {
    let (session, mut events, browser) = pair(MESSAGE_LIMIT).await;
    drop(browser);
    timeout(SOON, session.closed()).await.unwrap();
    assert!(timeout(SOON, events.recv()).await.unwrap().is_none());
    assert!(matches!(session.call("X.y", json!({})).await, Err(CdpError::Closed)));

    let (session, _events, mut browser) = pair(MESSAGE_LIMIT).await;
    session.close();
    let good_bye = timeout(SOON, browser.next()).await.unwrap().unwrap().unwrap();
    assert!(good_bye.is_close(), "{good_bye:?}");
    assert!(timeout(SOON, browser.next()).await.unwrap().is_none());
}
