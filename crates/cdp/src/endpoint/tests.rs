//! Addresses as people write them, and a scripted endpoint that answers oddly.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

fn parsed(given: &str) -> Endpoint {
    Endpoint::parse(given).unwrap_or_else(|reason| panic!("{given}: {reason}"))
}

#[test]
fn addresses_are_read_in_every_form_that_people_use() {
    for (given, shown, path) in [
        ("9222", "http://localhost:9222", "/json/version"),
        (" 9222 ", "http://localhost:9222", "/json/version"),
        ("localhost:9222", "http://localhost:9222", "/json/version"),
        ("chromebox:9222", "http://chromebox:9222", "/json/version"),
        ("[::1]:9222", "http://[::1]:9222", "/json/version"),
        ("http://127.0.0.1:9222/", "http://127.0.0.1:9222", "/json/version"),
        ("http://127.0.0.1:9222/json/version", "http://127.0.0.1:9222", "/json/version"),
        ("http://127.0.0.1:9222/json", "http://127.0.0.1:9222", "/json/version"),
        ("http://h:1/cdp/secret/", "http://h:1", "/cdp/secret/json/version"),
        ("http://h:1/?token=x", "http://h:1", "/json/version?token=x"),
        ("http://chromebox", "http://chromebox:80", "/json/version"),
        ("ws://127.0.0.1:9222/devtools/browser/a-b", "ws://127.0.0.1:9222", "/devtools/browser/a-b"),
        ("ws://u:p@h:1/x?token=y#z", "ws://h:1", "/x?token=y"),
    ] {
        let endpoint = parsed(given);
        let (Way::Ask(found) | Way::WebSocket(found)) = &endpoint.way;
        assert_eq!((endpoint.to_string().as_str(), found.as_str()), (shown, path), "{given}");
    }
}

#[test]
fn what_is_no_address_is_refused_without_being_repeated() {
    for given in [
        "",
        "0",
        "99999",
        "CANARY",
        "http://",
        "http://CANARY:CANARY/",
        "ftp://CANARY@h/",
        "https://CANARY@h:1/CANARY",
        "wss://h:1/?token=CANARY",
        "ws://h:1/devtools/page/CANARY",
        "h:1:CANARY",
        "h:/CANARY",
        "9222?token=CANARY",
    ] {
        let reason = Endpoint::parse(given).unwrap_err();
        assert!(!reason.contains("CANARY") && !reason.is_empty(), "{given}: {reason}");
    }
}

#[test]
fn secrets_are_sent_and_never_shown() {
    let endpoint = parsed("ws://us%65r:CAN%3AARY@127.0.0.1:1/CANARY?token=CANARY");
    assert_eq!(endpoint.authorization.as_deref(), Some("Basic dXNlcjpDQU46QVJZ"));
    let error = ConnectError::new(endpoint.to_string(), Vec::new());
    let shown = format!("{endpoint} {endpoint:?} {error} {error:?} {}", error.hint());
    assert!(!shown.contains("CAN"), "{shown}");
}

/// An endpoint that gives every connection the same answer, and keeps the heads of the requests.
struct Fake {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// `{port}` in the answer becomes the port. Without an answer it says nothing and hangs.
    async fn answering(answer: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answer = answer.map(|answer| answer.replace("{port}", &port.to_string()));
        let heads = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (answer, heads) = (answer.clone(), heads.clone());
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.unwrap() > 0 {}
                    heads.lock().unwrap().push(String::from_utf8(head).unwrap());
                    match answer {
                        Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
                        None => std::future::pending().await,
                    }
                });
            }
        });
        Self { port, asked }
    }

    async fn error(&self, address: &str) -> String {
        let endpoint = parsed(&address.replace("{port}", &self.port.to_string()));
        let error = endpoint.connect().await.unwrap_err();
        assert!(!error.hint().is_empty());
        error.to_string()
    }
}

fn json(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn odd_answers_are_told_by_address() {
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(100_000));
    for (answer, told) in [
        ("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n".to_owned(), "HTTP status 500"),
        ("HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\n\r\n".to_owned(), "HTTP status 302"),
        ("\u{7}garbage\r\n\r\n".to_owned(), "does not speak HTTP"),
        (json("no json"), "no JSON"),
        (json("[]"), "names no webSocketDebuggerUrl"),
        (json(r#"{"Browser":"x"}"#), "names no webSocketDebuggerUrl"),
        (json(r#"{"webSocketDebuggerUrl":7}"#), "names no webSocketDebuggerUrl"),
        (json(r#"{"webSocketDebuggerUrl":"file:///etc/passwd"}"#), "no WebSocket address"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_owned(), "ended in the middle"),
        (endless, "too large"),
        (String::new(), "hung up"),
        // The second request, for a WebSocket, gets the same answer as the first.
        (json(r#"{"webSocketDebuggerUrl":"ws://x/y"}"#), "HTTP status 200 to the request for a WebSocket"),
    ] {
        let fake = Fake::answering(Some(&answer)).await;
        let error = fake.error("http://127.0.0.1:{port}/CANARY?CANARY").await;
        let address = format!("127.0.0.1:{} (", fake.port);
        assert!(error.contains(&address) && error.contains(told), "{told}: {error}");
        assert!(!error.contains("CANARY"), "{error}");
    }
}

#[tokio::test]
async fn an_endpoint_that_hangs_is_given_up_in_time() {
    let fake = Fake::answering(None).await;
    let started = Instant::now();
    for address in ["{port}", "ws://127.0.0.1:{port}/devtools/browser/x"] {
        let error = fake.error(address).await;
        assert!(error.contains("timed out"), "{error}");
    }
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
}

#[tokio::test]
async fn every_address_is_named_that_was_tried() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let error = parsed(&free.to_string()).connect().await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains(&format!("127.0.0.1:{free} (refused)")), "{told}");
    assert!(told.contains(&format!("[::1]:{free} (")), "{told}");
    assert!(error.hint().contains("--remote-debugging-port"));
    let error = parsed("no-such-host.invalid:9222").connect().await.unwrap_err().to_string();
    assert!(error.contains("no-such-host.invalid (the name cannot be resolved)"), "{error}");
}

#[tokio::test]
async fn the_address_that_answered_is_the_one_that_is_used() {
    let found = json(r#"{"webSocketDebuggerUrl":"ws://evil.test:1/devtools/browser/id?a=b"}"#);
    let fake = Fake::answering(Some(&found)).await;
    fake.error("http://user:pass@localhost:{port}").await;
    let asked = fake.asked.lock().unwrap().clone();
    let host = format!("Host: 127.0.0.1:{}\r\n", fake.port);
    assert!(asked[0].starts_with("GET /json/version HTTP/1.1\r\n"), "{asked:?}");
    assert!(asked[1].starts_with("GET /devtools/browser/id?a=b HTTP/1.1\r\n"), "{asked:?}");
    for request in &asked {
        assert!(request.contains(&host), "{request}");
        assert!(request.to_lowercase().contains("authorization: basic dxnlcjpwyxnz"), "{request}");
        assert!(!request.to_lowercase().contains("\r\norigin:"), "{request}");
    }
}

#[tokio::test]
async fn a_slow_address_does_not_hold_up_the_next() {
    // The IPv4 side hangs, the IPv6 side is a browser.
    let fake = Fake::answering(None).await;
    let Ok(listener) = TcpListener::bind(("::1", fake.port)).await else { return };
    let port = fake.port;
    tokio::spawn(async move {
        let body = json(&format!(r#"{{"webSocketDebuggerUrl":"ws://127.0.0.1:{port}/b"}}"#));
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_buf(&mut Vec::new()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let _open = tokio_tungstenite::accept_async(stream).await.unwrap();
        std::future::pending::<()>().await;
    });
    let started = Instant::now();
    let connected = parsed(&port.to_string()).connect().await.unwrap();
    assert_eq!(connected.address.to_string(), format!("[::1]:{port}"));
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}
