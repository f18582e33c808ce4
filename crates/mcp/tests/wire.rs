//! Envelopes: what is a message, what is not, and that payloads come through byte for byte.

use pagebridge_mcp::wire::{
    Incoming, ParseFailure, code, notification, parse, parse_batch, request, response,
};
use serde_json::value::RawValue;

fn failure(line: &[u8]) -> (i64, Option<String>) {
    let failure = parse(line).expect_err(&String::from_utf8_lossy(line));
    (failure.to_error().code, failure.id().map(|id| id.as_json().to_owned()))
}

#[test]
fn what_is_not_json() {
    let nested = "[".repeat(100_000);
    let lines: [&[u8]; 10] = [
        b"\xFF\xFE",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xFF\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"meth",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"} x",
        b"[1,",
        b"hello",
        b"{\"a\":01}",
        b"{'a':1}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"a\x01\"}",
        nested.as_bytes(),
    ];
    for line in lines {
        assert_eq!(failure(line), (code::PARSE_ERROR, None), "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn what_is_json_but_no_message() {
    for (line, id) in [
        ("1", None),
        ("\"x\"", None),
        ("null", None),
        ("{}", None),
        (" [] ", None),
        (r#"["2.0",1,"ping"]"#, None),
        (r#"{"jsonrpc":"2.0","id":7}"#, Some("7")),
        (r#"{"jsonrpc":"2.0","id":"7","params":{}}"#, Some("\"7\"")),
        (r#"{"id":7,"method":"m"}"#, Some("7")),
        (r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#, Some("7")),
        (r#"{"jsonrpc":2.0,"id":1.0,"method":"m"}"#, Some("1.0")),
        (r#"{"jsonrpc":"2.0","id":7,"method":3}"#, Some("7")),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, None),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, None),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, None),
        (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#, None),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","\ud800":1}"#, None),
        (r#"{"jsonrpc":"2.0","result":1}"#, None),
        (r#"{"jsonrpc":"2.0","id":4,"result":1,"error":{}}"#, Some("4")),
    ] {
        assert_eq!(failure(line.as_bytes()), (code::INVALID_REQUEST, id.map(Into::into)), "{line}");
    }
}

#[test]
fn requests_and_notifications() {
    let line = br#" { "params" : null, "method" : "a\u002fb", "x": [], "id" : 1e3, "jsonrpc" : "2.0" } "#;
    let Ok(Incoming::Request { id, method, params }) = parse(line) else { panic!() };
    assert_eq!((id.as_json(), method.as_str(), params.unwrap().get()), ("1e3", "a/b", "null"));
    let Ok(Incoming::Notification { method, params }) = parse(br#"{"jsonrpc":"2.0","method":"n"}"#) else {
        panic!()
    };
    assert_eq!((method.as_str(), params.is_none()), ("n", true));
}

#[test]
fn responses() {
    let read = |line: &str| match parse(line.as_bytes()) {
        Ok(Incoming::Response { id, result }) => {
            let result = result.map(|raw| raw.get().to_owned()).map_err(|error| error.code);
            (id.map(|id| id.as_json().to_owned()), result)
        }
        other => panic!("{line}: {other:?}"),
    };
    let one = || Some("1".to_owned());
    let null = || Ok("null".to_owned());
    assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"result":null}"#), (one(), null()));
    assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#), (one(), null()));
    assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":5}}"#), (one(), Err(5)));
    assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":""}}"#), (one(), Err(5)));
    assert_eq!(read(r#"{"jsonrpc":"2.0","id":1,"error":"boom"}"#), (one(), Err(code::INTERNAL)));
    assert_eq!(read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}"#), (None, Err(-32700)));
    assert_eq!(read(r#"{"jsonrpc":"2.0","error":{"code":-32700}}"#), (None, Err(-32700)));
}

#[test]
fn batches() {
    let line = br#"[1,{"jsonrpc":"2.0","id":1,"method":"m"},[],{"jsonrpc":"2.0","method":"n"}]"#;
    assert!(matches!(parse(line), Err(ParseFailure::Batch)));
    let members = parse_batch(line).unwrap();
    assert!(matches!(members[0], Err(ParseFailure::Invalid { .. })));
    assert!(matches!(members[1], Ok(Incoming::Request { .. })));
    assert!(matches!(members[2], Err(ParseFailure::Batch)));
    assert!(matches!(members[3], Ok(Incoming::Notification { .. })));
    assert!(parse_batch(b"[]").unwrap().is_empty());
    assert!(parse_batch(b"{}").is_err());
}

/// Payloads that a bridge which decodes them would change or refuse.
fn hard_payloads() -> Vec<String> {
    vec![
        r#"{"vendor":{"unknown":[null,true]},"priority":0.1234567890123456789}"#.to_owned(),
        r#"{"n":18446744073709551617,"e":1e400,"f":1.0,"g":-0,"h":0.7}"#.to_owned(),
        r#"{"z":1,"a":2,"m":{"y":1,"b":2}}"#.to_owned(),
        r#"{"dup":1,"dup":2}"#.to_owned(),
        r#"{"s":"\ud800","t":"\udc00\ud800","\ud800":"key","u":"\u0000\/\b"}"#.to_owned(),
        r#"{"emoji":"👩‍👩‍👧‍👦","cjk":"日本語","sep":"  "}"#.to_owned(),
        format!("{{\"deep\":{}{}}}", "[".repeat(5000), "]".repeat(5000)),
        format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000)),
        "null".to_owned(),
    ]
}

#[test]
fn payloads_pass_byte_for_byte() {
    for payload in hard_payloads() {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{payload}}}"#);
        let Ok(Incoming::Request { id, method, params }) = parse(line.as_bytes()) else { panic!("{line}") };
        let params: Box<RawValue> = params.unwrap();
        assert_eq!(params.get(), payload);
        assert_eq!(request(&id, &method, Some(&params)), line.as_bytes());

        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{payload}}}"#);
        let Ok(Incoming::Response { id: Some(id), result: Ok(result) }) = parse(line.as_bytes()) else {
            panic!("{line}")
        };
        assert_eq!(response(&id, Ok(&result)), line.as_bytes());

        let line =
            format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"","data":{payload}}}}}"#);
        let Ok(Incoming::Response { result: Err(error), .. }) = parse(line.as_bytes()) else {
            panic!("{line}")
        };
        assert_eq!(response(&id, Err(&error)), line.as_bytes());

        let line = format!(r#"{{"jsonrpc":"2.0","method":"n","params":{payload}}}"#);
        let Ok(Incoming::Notification { method, params }) = parse(line.as_bytes()) else { panic!("{line}") };
        assert_eq!(notification(&method, params.as_deref()), line.as_bytes());
    }
}
