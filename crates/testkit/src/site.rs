//! A page server for tests: pages that come and go at run time, counts of hits, records of posts, answers that take
//! their time. It runs on a thread of its own, so tests with and without a runtime may use it.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Most that a post may bring.
const BODY_MAX: usize = 64 * 1024 * 1024;
/// Requests in flight have this long to end when the site goes.
const GRACE: Duration = Duration::from_secs(1);

/// The page server. As `http://127.0.0.1:P` and as `http://localhost:P` it is two origins and two sites with the same
/// pages. Dropping it ends it; what is still in flight has a second to finish.
#[derive(Debug)]
pub struct Site {
    port: u16,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    pages: Mutex<HashMap<String, Page>>,
    delays: Mutex<HashMap<String, Duration>>,
    hits: Mutex<HashMap<String, usize>>,
    posts: Mutex<HashMap<String, Vec<Vec<u8>>>>,
}

#[derive(Debug, Clone)]
struct Page {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Site {
    /// Starts a site without pages on a free port.
    ///
    /// # Panics
    /// When no port can be had.
    pub fn start() -> Self {
        let listener =
            std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on 127.0.0.1");
        let port = listener.local_addr().expect("a bound listener has an address").port();
        // `localhost` may mean ::1 first. Where that cannot be had, browsers go on to 127.0.0.1.
        let second = std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, port)).ok();
        let listeners = std::iter::once(listener).chain(second).collect();
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = watch::channel(false);
        let served = shared.clone();
        let thread = std::thread::Builder::new()
            .name(format!("site-{port}"))
            .spawn(move || serve(listeners, served, stopped))
            .expect("a thread for the site");
        Self { port, shared, stop, thread: Some(thread) }
    }

    /// The port, on 127.0.0.1 and on localhost.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address of `path` (which begins with a slash) at 127.0.0.1.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The same page at localhost: another origin and another site.
    pub fn localhost_url(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.port)
    }

    /// Puts an HTML page at `path`, or replaces the one that is there. A path with a query (`/a?b`) is for requests with
    /// just that query; one without is for all others.
    pub fn page(&self, path: &str, html: impl Into<Vec<u8>>) {
        self.page_with_headers(path, &[], html);
    }

    /// As [`Site::page`], with headers; a `content-type` among them replaces HTML's.
    ///
    /// # Panics
    /// When a header is malformed.
    pub fn page_with_headers(&self, path: &str, headers: &[(&str, &str)], html: impl Into<Vec<u8>>) {
        self.answer(path, 200, headers, html);
    }

    /// As [`Site::page_with_headers`], with a status: redirects, errors.
    ///
    /// # Panics
    /// When the status or a header is malformed.
    pub fn answer(&self, path: &str, status: u16, headers: &[(&str, &str)], body: impl Into<Vec<u8>>) {
        let mut map = HeaderMap::new();
        map.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        for (name, _) in headers {
            map.remove(*name);
        }
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
            map.append(name, HeaderValue::from_str(value).expect("a header value"));
        }
        let status = StatusCode::from_u16(status).expect("an HTTP status");
        lock(&self.shared.pages).insert(path.to_owned(), Page { status, headers: map, body: body.into() });
    }

    /// Takes a page away; its path answers 404 from now on.
    pub fn remove(&self, path: &str) {
        lock(&self.shared.pages).remove(path);
    }

    /// Every later answer at `path` waits this long first. Zero ends that.
    pub fn delay(&self, path: &str, delay: Duration) {
        lock(&self.shared.delays).insert(path.to_owned(), delay);
    }

    /// How many requests `path` has had, whatever their method and query, and whether or not there is a page.
    pub fn hits(&self, path: &str) -> usize {
        lock(&self.shared.hits).get(path).copied().unwrap_or_default()
    }

    /// The bodies of the posts to `path`, in the order of their arrival. A post to a path without a page is recorded too
    /// and answered with 204.
    pub fn posts(&self, path: &str) -> Vec<Vec<u8>> {
        lock(&self.shared.posts).get(path).cloned().unwrap_or_default()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A test that panicked while it held a lock must not hide its own message behind a second panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(listeners: Vec<std::net::TcpListener>, shared: Arc<Shared>, stopped: watch::Receiver<bool>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut servers = tokio::task::JoinSet::new();
        for listener in listeners {
            listener.set_nonblocking(true).expect("a non-blocking listener");
            let listener = TcpListener::from_std(listener).expect("a listener for the runtime");
            let (shared, stopped) = (shared.clone(), stopped.clone());
            servers.spawn(serve_on(listener, shared, stopped));
        }
        wait_for_stop(stopped).await;
        let _ = tokio::time::timeout(GRACE, async { while servers.join_next().await.is_some() {} }).await;
    });
    runtime.shutdown_background();
}

async fn serve_on(listener: TcpListener, shared: Arc<Shared>, stopped: watch::Receiver<bool>) {
    let state = Served { shared, stopped: stopped.clone() };
    let app = Router::new().fallback(answer).with_state(state);
    let _ = axum::serve(listener, app).with_graceful_shutdown(wait_for_stop(stopped)).await;
}

#[derive(Clone)]
struct Served {
    shared: Arc<Shared>,
    stopped: watch::Receiver<bool>,
}

async fn wait_for_stop(mut stopped: watch::Receiver<bool>) {
    // An error means that the site is gone, which is a stop too.
    let _ = stopped.wait_for(|stop| *stop).await;
}

async fn answer(State(served): State<Served>, request: Request) -> Response {
    let shared = &served.shared;
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    // Counted before the body is read: a client may hang up in the middle of one.
    *lock(&shared.hits).entry(path.clone()).or_default() += 1;
    let posted = head.method == Method::POST;
    if posted {
        match to_bytes(body, BODY_MAX).await {
            Ok(body) => lock(&shared.posts).entry(path.clone()).or_default().push(body.to_vec()),
            Err(_) => return StatusCode::BAD_REQUEST.into_response(),
        }
    }
    let delay = lock(&shared.delays).get(&path).copied().unwrap_or_default();
    if !delay.is_zero() {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = wait_for_stop(served.stopped.clone()) => {}
        }
    }
    let page = {
        let pages = lock(&shared.pages);
        let exact = head.uri.path_and_query().and_then(|exact| pages.get(exact.as_str()));
        exact.or_else(|| pages.get(&path)).cloned()
    };
    match page {
        Some(page) => (page.status, page.headers, page.body).into_response(),
        None if posted => StatusCode::NO_CONTENT.into_response(),
        None => (StatusCode::NOT_FOUND, "There is no such page.").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Instant;

    use super::*;

    /// Status line, headers and body, as they come.
    fn ask(host: &str, port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect((host, port)).expect("the site listens");
        stream.write_all(request.as_bytes()).expect("the request is written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the answer is text");
        answer
    }

    fn get(site: &Site, path: &str) -> String {
        ask("127.0.0.1", site.port(), &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
    }

    #[test]
    fn pages_come_change_and_go() {
        let site = Site::start();
        assert!(get(&site, "/a").starts_with("HTTP/1.1 404"));
        site.page("/a", "<p>one");
        let one = get(&site, "/a");
        assert!(one.starts_with("HTTP/1.1 200") && one.ends_with("<p>one"), "{one}");
        assert!(one.contains("content-type: text/html; charset=utf-8"), "{one}");
        site.page("/a", String::from("<p>two"));
        assert!(get(&site, "/a?with=query").ends_with("<p>two"));
        site.page("/a?b", "<p>three");
        assert!(get(&site, "/a?b").ends_with("<p>three"));
        site.remove("/a");
        assert!(get(&site, "/a").starts_with("HTTP/1.1 404"));
        assert_eq!((site.hits("/a"), site.hits("/b")), (5, 0));
    }

    #[test]
    fn headers_and_status_are_free() {
        let site = Site::start();
        site.page_with_headers(
            "/p",
            &[("content-type", "text/plain"), ("permissions-policy", "tools=()")],
            "x",
        );
        let plain = get(&site, "/p");
        assert!(plain.contains("content-type: text/plain") && plain.contains("permissions-policy: tools=()"));
        assert!(!plain.contains("text/html"), "{plain}");
        site.answer("/r", 302, &[("location", "/p")], "");
        assert!(get(&site, "/r").starts_with("HTTP/1.1 302"));
    }

    #[test]
    fn both_names_reach_it() {
        let site = Site::start();
        site.page("/", "here");
        let port = site.port();
        assert_eq!(site.url("/"), format!("http://127.0.0.1:{port}/"));
        assert_eq!(site.localhost_url("/"), format!("http://localhost:{port}/"));
        let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        assert!(ask("localhost", port, request).ends_with("here"));
        assert_eq!(site.hits("/"), 1);
    }

    #[tokio::test]
    async fn posts_are_recorded_under_a_runtime_too() {
        let site = Site::start();
        site.page("/form", "thanks");
        for (path, body) in [("/form", "a=1"), ("/form", "a=2"), ("/elsewhere", "b")] {
            let length = body.len();
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
            );
            ask("127.0.0.1", site.port(), &format!("{head}{body}"));
        }
        assert_eq!(site.posts("/form"), [b"a=1", b"a=2"]);
        assert_eq!(site.posts("/elsewhere"), [b"b"]);
        assert!(site.posts("/never").is_empty());
    }

    #[test]
    fn a_delay_holds_an_answer_but_not_the_end() {
        let site = Site::start();
        site.page("/slow", "at last");
        site.delay("/slow", Duration::from_millis(150));
        let started = Instant::now();
        assert!(get(&site, "/slow").ends_with("at last"));
        assert!(started.elapsed() >= Duration::from_millis(150));

        site.delay("/slow", Duration::from_secs(60));
        let port = site.port();
        let waiting = std::thread::spawn(move || {
            ask("127.0.0.1", port, "GET /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        });
        while site.hits("/slow") < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let idle = TcpStream::connect(("127.0.0.1", port)).expect("an idle connection");
        let started = Instant::now();
        drop(site);
        assert!(started.elapsed() < Duration::from_secs(5), "the end took {:?}", started.elapsed());
        assert!(waiting.join().expect("the waiting client").ends_with("at last"));
        drop(idle);
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    }
}
