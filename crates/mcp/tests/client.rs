//! The client role, against our server and against odd ones.

mod support;

use std::time::Duration;

use pagebridge_mcp::client::{Client, ClientError};
use pagebridge_mcp::lines::{Frame, LineReader};
use pagebridge_mcp::server::Ended;
use support::{PATIENCE, connect, raw};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::time::timeout;

#[tokio::test]
async fn handshake_requests_and_the_end() {
    let (client, script, server) = connect();
    let mut notifications = client.notifications();
    let result = client.initialize("me", "1").await.unwrap();
    assert!(result.get().contains("\"script\""));
    assert_eq!(notifications.recv().await.unwrap().0, "notifications/tools/list_changed");
    assert_eq!(script.noted(), ["initialize me", "initialized"]);

    let payload = raw(r#"{"z":18446744073709551617,"a":"\ud800"}"#);
    assert_eq!(client.request("echo", &payload).await.unwrap().get(), payload.get());
    assert_eq!(client.request("null", ()).await.unwrap().get(), "null");
    let Err(ClientError::Rpc(error)) = client.request("nothing", ()).await else { panic!() };
    assert_eq!(error.code, -32601);

    client.close_input().await;
    assert!(matches!(client.request("echo", ()).await, Err(ClientError::Closed)));
    assert_eq!(server.await.unwrap(), Ended::InputClosed);
    assert!(notifications.recv().await.is_none());
    assert!(client.notifications().recv().await.is_none());
}

#[tokio::test]
async fn answers_still_arrive_after_the_input_was_closed() {
    let (client, _, _) = connect();
    let calls: Vec<_> = (0..3).map(|_| client.start_request("slow", 100).unwrap()).collect();
    client.close_input().await;
    for call in calls {
        assert_eq!(timeout(PATIENCE, call).await.unwrap().unwrap().get(), "\"done\"");
    }
}

#[tokio::test]
async fn cancelling_ends_the_wait_on_both_sides() {
    let (client, script, _) = connect();
    let mut call = client.start_request("slow", 60_000).unwrap();
    let other = client.start_request("slow", 200).unwrap();
    assert!(timeout(Duration::from_millis(50), &mut call).await.is_err());
    client.cancel(call.id());
    assert!(matches!(call.await, Err(ClientError::Cancelled)));
    assert_eq!(other.await.unwrap().get(), "\"done\"");
    assert_eq!(script.noted(), ["slow 1", "slow 2", "cancelled 1"]);
}

#[tokio::test]
async fn dropping_the_client_ends_the_server() {
    let (client, _, server) = connect();
    drop(client.clone());
    client.request("echo", ()).await.unwrap();
    let call = client.start_request("slow", 60_000).unwrap();
    drop(client);
    assert!(matches!(call.await, Err(ClientError::Closed)));
    let ended = timeout(PATIENCE, server).await.unwrap().unwrap();
    assert!(matches!(ended, Ended::InputClosed | Ended::PeerGone));
}

/// A client whose server is played by the test.
fn played() -> (Client, LineReader<DuplexStream>, DuplexStream) {
    let (to_server, requests) = tokio::io::duplex(1 << 16);
    let (answers, from_server) = tokio::io::duplex(1 << 16);
    (Client::connect(from_server, to_server), LineReader::new(requests), answers)
}

async fn line(requests: &mut LineReader<DuplexStream>) -> String {
    match requests.next().await.unwrap() {
        Some(Frame::Line(line)) => String::from_utf8(line).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn odd_lines_harm_nobody_and_malformed_answers_end_their_own_wait() {
    let (client, _requests, mut server) = played();
    let one = client.start_request("one", ()).unwrap();
    let two = client.start_request("two", ()).unwrap();
    let three = client.start_request("three", ()).unwrap();
    let lines = concat!(
        "starting up...\n[]\n\n{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":1}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":2}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":3000000000,\"message\":\"big\"}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"日本語\"}\n",
    );
    for byte in lines.as_bytes() {
        server.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(one.await.unwrap().get(), "\"日本語\"");
    assert!(matches!(two.await, Err(ClientError::Malformed(_))));
    assert!(matches!(three.await, Err(ClientError::Rpc(error)) if error.code == 3_000_000_000));
}

#[tokio::test]
async fn the_servers_own_requests_are_answered() {
    let (_client, mut requests, mut server) = played();
    server.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"method\":\"ping\"}\n").await.unwrap();
    assert_eq!(line(&mut requests).await, r#"{"jsonrpc":"2.0","id":"1","result":{}}"#);
    server.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"roots/list\"}\n").await.unwrap();
    assert!(line(&mut requests).await.contains("-32601"));
}

#[tokio::test]
async fn every_wait_ends_when_either_stream_does() {
    let (client, requests, server) = played();
    let call = client.start_request("one", ()).unwrap();
    drop(server);
    assert!(matches!(timeout(PATIENCE, call).await.unwrap(), Err(ClientError::Closed)));
    assert!(matches!(client.request("two", ()).await, Err(ClientError::Closed)));
    drop(requests);

    let (client, requests, _server) = played();
    drop(requests);
    let call = client.start_request("one", ()).unwrap();
    assert!(matches!(timeout(PATIENCE, call).await.unwrap(), Err(ClientError::Closed)));
}

#[tokio::test]
async fn an_answer_written_before_the_server_died_is_not_lost() {
    let (client, requests, mut server) = played();
    let call = client.start_request("one", ()).unwrap();
    server.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":true}\n").await.unwrap();
    drop(requests);
    client.notify("notifications/x", ()).unwrap();
    assert_eq!(call.await.unwrap().get(), "true");
}

#[tokio::test]
async fn an_unknown_version_is_refused() {
    let (client, mut requests, mut server) = played();
    let answer = tokio::spawn(async move {
        assert!(line(&mut requests).await.contains("2025-11-25"));
        let result = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"1999\"}}\n";
        server.write_all(result.as_bytes()).await.unwrap();
        (requests, server)
    });
    let result = client.initialize("me", "1").await;
    assert!(matches!(result, Err(ClientError::Version(version)) if version == "1999"));
    answer.await.unwrap();
}
