//! Messages to lines. Written by hand around the raw payloads, so that nothing in them can change.

use serde_json::value::RawValue;

use super::{RequestId, RpcError};

const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\"";

/// A request on one line, without the line end.
#[must_use]
pub fn request(id: &RequestId, method: &str, params: Option<&RawValue>) -> Vec<u8> {
    let mut line = start(params);
    put(&mut line, "id", id.as_json());
    put_call(line, method, params)
}

/// A notification on one line, without the line end.
#[must_use]
pub fn notification(method: &str, params: Option<&RawValue>) -> Vec<u8> {
    put_call(start(params), method, params)
}

/// The answer to request `id` on one line, without the line end.
#[must_use]
pub fn response(id: &RequestId, result: Result<&RawValue, &RpcError>) -> Vec<u8> {
    match result {
        Ok(result) => {
            let mut line = start(Some(result));
            put(&mut line, "id", id.as_json());
            put(&mut line, "result", result.get());
            end(line)
        }
        Err(error) => error_response(Some(id), error),
    }
}

/// An error answer on one line, without the line end; id `null` when the request's id could not be read.
#[must_use]
pub fn error_response(id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
    let mut line = start(error.data.as_deref());
    put(&mut line, "id", id.map_or("null", RequestId::as_json));
    line.extend_from_slice(b",\"error\":{\"code\":");
    line.extend_from_slice(error.code.to_string().as_bytes());
    put(&mut line, "message", &quote(&error.message));
    if let Some(data) = &error.data {
        put(&mut line, "data", data.get());
    }
    line.push(b'}');
    end(line)
}

fn start(payload: Option<&RawValue>) -> Vec<u8> {
    let mut line = Vec::with_capacity(128 + payload.map_or(0, |payload| payload.get().len()));
    line.extend_from_slice(HEAD);
    line
}

fn put_call(mut line: Vec<u8>, method: &str, params: Option<&RawValue>) -> Vec<u8> {
    put(&mut line, "method", &quote(method));
    if let Some(params) = params {
        put(&mut line, "params", params.get());
    }
    end(line)
}

fn put(line: &mut Vec<u8>, key: &str, json: &str) {
    line.extend_from_slice(b",\"");
    line.extend_from_slice(key.as_bytes());
    line.extend_from_slice(b"\":");
    line.extend_from_slice(json.as_bytes());
}

/// Closes the message and puts it on one line. JSON strings cannot hold raw control characters, so any line break
/// in the text is white space between tokens.
fn end(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'}');
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    fn text(line: Vec<u8>) -> String {
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn messages_of_every_kind() {
        let id = RequestId::from_raw(raw("1e3")).unwrap();
        let params = raw(r#"{"z":1,"a":2}"#);
        assert_eq!(
            text(request(&id, "m\"\n", Some(params))),
            r#"{"jsonrpc":"2.0","id":1e3,"method":"m\"\n","params":{"z":1,"a":2}}"#
        );
        assert_eq!(text(notification("n", None)), r#"{"jsonrpc":"2.0","method":"n"}"#);
        assert_eq!(text(response(&id, Ok(raw("null")))), r#"{"jsonrpc":"2.0","id":1e3,"result":null}"#);
        let error = RpcError::invalid_params("no").with_data(params.to_owned());
        assert_eq!(
            text(response(&id, Err(&error))),
            r#"{"jsonrpc":"2.0","id":1e3,"error":{"code":-32602,"message":"no","data":{"z":1,"a":2}}}"#
        );
        let error = RpcError::parse_error("x");
        assert_eq!(
            text(error_response(None, &error)),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#
        );
    }

    #[test]
    fn pretty_printed_payloads_go_on_one_line_and_escapes_stay() {
        let params = raw("{\r\n  \"a\": \"x\\n\\r\u{2028}y\"\n}");
        let line = text(notification("n", Some(params)));
        assert_eq!(
            line,
            "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{    \"a\": \"x\\n\\r\u{2028}y\" }}"
        );
    }
}
