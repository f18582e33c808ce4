//! Asks a debugging port for the address of its WebSocket: one plain HTTP request, written by hand so that no
//! proxy and no redirect can come into it.

use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use super::reason::Reason;

/// A browser's answer has some hundred bytes.
const ANSWER_LIMIT: usize = 64 * 1024;
const HEADERS: usize = 64;

/// What is asked of whom.
pub(super) struct Request<'a> {
    pub host: &'a str,
    pub path: &'a str,
    pub authorization: Option<&'a str>,
}

impl Request<'_> {
    fn text(&self) -> String {
        let Self { host, path, .. } = self;
        let authorization =
            self.authorization.map(|value| format!("Authorization: {value}\r\n")).unwrap_or_default();
        format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n{authorization}Connection: close\r\n\r\n"
        )
    }
}

/// The path of the browser's WebSocket.
pub(super) async fn web_socket_path(mut stream: TcpStream, request: &Request<'_>) -> Result<String, Reason> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Version {
        web_socket_debugger_url: String,
    }
    stream.write_all(request.text().as_bytes()).await?;
    let body = body(&mut stream).await?;
    let version: serde_json::Value =
        serde_json::from_slice(&body).map_err(|_| Reason::NoDevTools("its answer is no JSON"))?;
    let version: Version = serde_json::from_value(version)
        .map_err(|_| Reason::NoDevTools("it names no webSocketDebuggerUrl"))?;
    let url = Url::parse(&version.web_socket_debugger_url)
        .ok()
        .filter(|url| matches!(url.scheme(), "ws" | "wss"))
        .ok_or(Reason::NoDevTools("its webSocketDebuggerUrl is no WebSocket address"))?;
    Ok(super::path_and_query(&url))
}

async fn body(stream: &mut TcpStream) -> Result<Vec<u8>, Reason> {
    let mut read = Vec::new();
    loop {
        let ended = stream.read_buf(&mut read).await? == 0;
        if let Some(body) = parse(&read, ended)? {
            return Ok(body);
        }
        if ended {
            let why = if read.is_empty() { "it hung up" } else { "its answer ended in the middle" };
            return Err(Reason::NoDevTools(why));
        }
        if read.len() > ANSWER_LIMIT {
            return Err(Reason::NoDevTools("its answer is too large"));
        }
    }
}

/// The body of an answer, once it is there whole.
fn parse(read: &[u8], ended: bool) -> Result<Option<Vec<u8>>, Reason> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    let head = match answer.parse(read) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Reason::NoDevTools("it does not speak HTTP")),
    };
    match answer.code {
        Some(200) => {}
        code => return Err(Reason::Status(code.unwrap_or_default())),
    }
    let body = &read[head..];
    let header = |name: &str| {
        let found = answer.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.and_then(|header| std::str::from_utf8(header.value).ok()).map(str::trim)
    };
    if header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        return unchunked(body);
    }
    match header("content-length").map(str::parse::<usize>) {
        Some(Ok(length)) => Ok(body.get(..length).map(<[u8]>::to_vec)),
        Some(Err(_)) => Err(Reason::NoDevTools("it does not speak HTTP")),
        None => Ok(ended.then(|| body.to_vec())),
    }
}

fn unchunked(mut body: &[u8]) -> Result<Option<Vec<u8>>, Reason> {
    let broken = Reason::NoDevTools("it does not speak HTTP");
    let mut whole = Vec::new();
    loop {
        let (start, length) = match httparse::parse_chunk_size(body) {
            Ok(httparse::Status::Complete((start, length))) => (start, length),
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(broken),
        };
        if length == 0 {
            return Ok(Some(whole));
        }
        let Some(end) = usize::try_from(length).ok().and_then(|length| start.checked_add(length)) else {
            return Err(broken);
        };
        let Some(chunk) = body.get(start..end) else { return Ok(None) };
        whole.extend_from_slice(chunk);
        match body.get(end..end + 2) {
            Some(b"\r\n") => body = &body[end + 2..],
            Some(_) => return Err(broken),
            None => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(answer: &str, ended: bool) -> Result<Option<String>, Reason> {
        parse(answer.as_bytes(), ended).map(|body| body.map(|body| String::from_utf8(body).unwrap()))
    }

    #[test]
    fn an_answer_is_whole_by_its_length_its_chunks_or_its_end() {
        let head = "HTTP/1.1 200 OK\r\n";
        for (rest, ended, body) in [
            ("Content-Length: 4\r\n\r\n{\"a\"and more", false, Some("{\"a\"")),
            ("content-length:4\r\n\r\n{\"a", false, None),
            ("Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n1;x=y\r\n \r\n0\r\n\r\n", false, Some("{} ")),
            ("Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", false, None),
            ("\r\n{}", true, Some("{}")),
            ("\r\n{}", false, None),
            ("X: ", true, None),
        ] {
            assert_eq!(whole(&format!("{head}{rest}"), ended).unwrap().as_deref(), body, "{rest}");
        }
    }

    #[test]
    fn other_answers_are_told_apart() {
        for (answer, reason) in [
            ("HTTP/1.1 500 Internal Server Error\r\n\r\n", Reason::Status(500)),
            ("HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n", Reason::Status(302)),
            ("SSH-2.0-OpenSSH_9.2\r\n", Reason::NoDevTools("it does not speak HTTP")),
            ("\u{15}\u{3}\u{1}", Reason::NoDevTools("it does not speak HTTP")),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
                Reason::NoDevTools("it does not speak HTTP"),
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Reason::NoDevTools("it does not speak HTTP")),
        ] {
            assert_eq!(whole(answer, false).unwrap_err(), reason, "{answer}");
        }
    }
}
