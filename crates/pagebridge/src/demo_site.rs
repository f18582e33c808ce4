//! The bundled demo site: a small shop whose pages offer tools. `pagebridge demo` and `pagebridge doctor` open it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What the site consists of: path, content type, content.
const FILES: [(&str, &str, &str); 6] = [
    ("/", HTML, include_str!("demo_site/index.html")),
    ("/checkout", HTML, include_str!("demo_site/checkout.html")),
    ("/shop.css", "text/css; charset=utf-8", include_str!("demo_site/shop.css")),
    ("/shop.js", JS, include_str!("demo_site/shop.js")),
    ("/catalogue.js", JS, include_str!("demo_site/catalogue.js")),
    ("/checkout.js", JS, include_str!("demo_site/checkout.js")),
];
const HTML: &str = "text/html; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
/// The pages need nothing from elsewhere and have no inline scripts or styles.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'";

/// Requests in flight have this long when the site is stopped.
const GRACE: Duration = Duration::from_secs(1);

/// A running site. Dropping it ends it.
#[derive(Debug)]
pub struct DemoSite {
    address: SocketAddr,
    stop: DropGuard,
    server: JoinHandle<()>,
}

/// Serves the site on a free port of 127.0.0.1.
pub async fn start() -> std::io::Result<DemoSite> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let stop = CancellationToken::new();
    let stopped = stop.clone().cancelled_owned();
    let app = Router::new().fallback(answer).with_state(address.port());
    let server = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, app).with_graceful_shutdown(stopped).await {
            tracing::warn!(%error, "the demo site ended early");
        }
    });
    Ok(DemoSite { address, stop: stop.drop_guard(), server })
}

impl DemoSite {
    /// The address of the shop's first page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Ends the site and waits for that: no further connection is taken, requests in flight are answered.
    pub async fn stop(self) {
        drop(self.stop);
        let _ = tokio::time::timeout(GRACE, self.server).await;
    }
}

async fn answer(State(port): State<u16>, request: Request) -> Response {
    if !is_for_us(request.headers(), port) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let path = request.uri().path();
    let Some((_, content_type, content)) = FILES.iter().find(|(known, ..)| *known == path) else {
        return (StatusCode::NOT_FOUND, "The shop has no such page.").into_response();
    };
    let head_only = match *request.method() {
        Method::GET => false,
        Method::HEAD => true,
        _ => return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, "GET, HEAD")]).into_response(),
    };
    let headers: [(HeaderName, &str); 4] = [
        (CONTENT_TYPE, content_type),
        // Asked again each time, but not `no-store`, which would keep pages out of the back/forward cache.
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let body = if head_only { Body::empty() } else { Body::from(*content) };
    (headers, body).into_response()
}

/// Whether a request means this site: another name for this address, or another site's page, is turned away.
fn is_for_us(headers: &HeaderMap, port: u16) -> bool {
    let ours =
        |authority: &str| ["127.0.0.1", "localhost"].iter().any(|host| authority == format!("{host}:{port}"));
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin =
        headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default().strip_prefix("http://"));
    host.is_some_and(ours) && origin.is_none_or(|origin| origin.is_some_and(ours))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    /// The answer to `request_line`, headers included.
    async fn ask(site: &DemoSite, request_line: &str, host: &str, more: &str) -> String {
        let mut stream = TcpStream::connect(site.address).await.expect("the site listens");
        let request = format!("{request_line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n");
        stream.write_all(request.as_bytes()).await.expect("the request is written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("the answer is text");
        answer
    }

    #[tokio::test]
    async fn every_file_has_its_type() {
        let site = start().await.expect("a free port");
        let host = site.address.to_string();
        for (path, content_type, content) in FILES {
            let answer = ask(&site, &format!("GET {path}"), &host, "").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
            assert!(answer.contains(&format!("content-type: {content_type}\r\n")), "{path}: {answer}");
            assert!(answer.ends_with(content), "{path} is cut");
        }
        assert!(ask(&site, "GET /?from=elsewhere", &host, "").await.starts_with("HTTP/1.1 200"));
        assert!(ask(&site, "HEAD /", &host, "").await.ends_with("\r\n\r\n"));
        assert!(ask(&site, "GET /nothing", &host, "").await.starts_with("HTTP/1.1 404"));
        assert!(ask(&site, "POST /", &host, "").await.starts_with("HTTP/1.1 405"));
    }

    #[tokio::test]
    async fn strangers_are_turned_away() {
        let site = start().await.expect("a free port");
        let own = site.address.to_string();
        let localhost = format!("localhost:{}", site.address.port());
        assert!(ask(&site, "GET /", &localhost, "").await.starts_with("HTTP/1.1 200"));
        assert!(ask(&site, "GET /", "evil.test", "").await.starts_with("HTTP/1.1 403"));
        assert!(ask(&site, "GET /", "127.0.0.1:1", "").await.starts_with("HTTP/1.1 403"));
        for (origin, status) in
            [(format!("http://{own}"), 200), ("http://evil.test".into(), 403), ("null".into(), 403)]
        {
            let answer = ask(&site, "GET /shop.js", &own, &format!("Origin: {origin}\r\n")).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{origin}: {answer}");
        }
    }

    #[test]
    fn pages_name_only_files_that_are_there() {
        for (path, _, content) in FILES.iter().filter(|(_, content_type, _)| *content_type == HTML) {
            let named = content.split([' ', '>']).filter_map(|word| {
                let value = word.strip_prefix("href=\"").or_else(|| word.strip_prefix("src=\""))?;
                value.split('"').next().filter(|value| value.starts_with('/'))
            });
            for file in named {
                assert!(FILES.iter().any(|(known, ..)| *known == file), "{path} names {file}");
            }
        }
    }

    #[tokio::test]
    async fn it_ends() {
        let site = start().await.expect("a free port");
        let address = site.address;
        assert_eq!(site.url(), format!("http://{address}/"));
        site.stop().await;
        assert!(TcpStream::connect(address).await.is_err(), "the site still listens");

        let site = start().await.expect("a free port");
        let address = site.address;
        drop(site);
        for _ in 0..100 {
            if TcpStream::connect(address).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the dropped site still listens");
    }
}
