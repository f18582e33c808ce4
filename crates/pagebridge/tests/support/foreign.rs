//! A browser that a test starts itself, for bridges that attach to it.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::disallowed_methods, reason = "tests start real processes")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use pagebridge_process::HostEnv;
use pagebridge_testkit::bridge::{Bridge, browser_args};
use pagebridge_testkit::watch::descendants;
use serde_json::{Value, json};
use tempfile::TempDir;

const EXE: &str = env!("CARGO_BIN_EXE_pagebridge");
const TO_START: Duration = Duration::from_secs(30);

/// Somebody else's browser. It ends with the test.
pub struct Foreign {
    child: Child,
    pub port: u16,
    /// The path of its WebSocket.
    pub path: String,
    profile: TempDir,
}

impl Foreign {
    /// A browser that shows this address.
    pub fn start(url: &str) -> Self {
        Self::start_with(0, &["--enable-features=WebMCP"], url)
    }

    pub fn start_with(port: u16, args: &[&str], url: &str) -> Self {
        let env = HostEnv::capture();
        let named = env.get("PAGEBRIDGE_EXECUTABLE_PATH").map(Into::into);
        let program = named.or_else(|| pagebridge_browser::find::find(&env)).expect("a Chromium");
        let profile = tempfile::tempdir().expect("a profile");
        let child = Command::new(program)
            .args(["--headless", "--disable-gpu", "--mute-audio", "--no-first-run", "--disable-quic"])
            .args(["--disable-background-networking", "--disable-component-update"])
            .args(browser_args())
            .args(args)
            .arg(format!("--remote-debugging-port={port}"))
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // It leaves files there when it is killed.
            .env("TMPDIR", profile.path())
            .process_group(0)
            .spawn()
            .expect("Chromium starts");
        let mut foreign = Self { child, port, path: String::new(), profile };
        let started = Instant::now();
        while !foreign.has_port() {
            foreign.assert_alive();
            assert!(started.elapsed() < TO_START, "Chromium opens no port");
            std::thread::sleep(Duration::from_millis(20));
        }
        while !foreign.has_tab(url) {
            assert!(started.elapsed() < TO_START, "Chromium opens no tab");
            std::thread::sleep(Duration::from_millis(20));
        }
        foreign
    }

    fn has_port(&mut self) -> bool {
        if self.port != 0 {
            return TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        }
        let told = std::fs::read_to_string(self.profile.path().join("DevToolsActivePort"));
        let Some((port, path)) = told.ok().and_then(|told| {
            let (port, path) = told.split_once('\n')?;
            Some((port.parse().ok()?, path.trim().to_owned()))
        }) else {
            return false;
        };
        (self.port, self.path) = (port, path);
        true
    }

    /// Its own process.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    /// Asks its debugging port, past the bridge.
    pub fn http(&self, method: &str, path: &str) -> Value {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("the browser listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            let text = String::from_utf8_lossy(&answer).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length:"));
                let length: usize = length.expect("a length").trim().parse().unwrap();
                if body.len() >= length {
                    return serde_json::from_str(&body[..length]).unwrap_or(Value::Null);
                }
            }
            match stream.read(&mut chunk).expect("an answer") {
                0 => panic!("no whole answer: {text}"),
                n => answer.extend_from_slice(&chunk[..n]),
            }
        }
    }

    /// Titles and addresses of its pages.
    pub fn tabs(&self) -> Vec<(String, String)> {
        let list = self.http("GET", "/json/list");
        let pages = list.as_array().expect("a list").iter().filter(|target| target["type"] == "page");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        pages.map(|page| (text(&page["title"]), text(&page["url"]))).collect()
    }

    pub fn has_tab(&self, url: &str) -> bool {
        self.tabs().iter().any(|(_, found)| found == url)
    }

    /// The user opens a tab.
    pub fn open_tab(&self, url: &str) {
        self.http("PUT", &format!("/json/new?{url}"));
    }

    /// The renderer that has used the most processor time.
    pub fn busiest_renderer(&self) -> Pid {
        let below = descendants(self.child.id());
        let renderers = below.iter().filter(|process| {
            process.cmdline.contains("--type=renderer") && !process.cmdline.contains("--top-chrome-webui")
        });
        let busiest = renderers.max_by_key(|process| cpu_time(process.pid)).expect("a renderer");
        Pid::from_raw(i32::try_from(busiest.pid).unwrap())
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        let _ = killpg(self.pid(), Signal::SIGKILL);
        let _ = self.child.wait();
    }

    pub fn assert_alive(&mut self) {
        assert!(self.child.try_wait().unwrap().is_none(), "the browser ended");
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        for process in descendants(self.child.id()) {
            let _ = kill(Pid::from_raw(i32::try_from(process.pid).unwrap()), Signal::SIGCONT);
        }
        self.kill();
    }
}

fn cpu_time(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    fields.iter().skip(11).take(2).filter_map(|time| time.parse::<u64>().ok()).sum()
}

/// A bridge that attaches, and its workspace.
pub struct Attached {
    pub bridge: Bridge,
    pub workspace: TempDir,
}

impl Attached {
    pub async fn to(connect: &str) -> Self {
        Self::with(EXE, connect, &[]).await
    }

    pub async fn with(exe: &str, connect: &str, env: &[(&str, Option<&str>)]) -> Self {
        let workspace = tempfile::tempdir().expect("a workspace");
        let mut all = vec![("PAGEBRIDGE_EXECUTABLE_PATH", None), ("PAGEBRIDGE_HEADED", None)];
        all.extend_from_slice(env);
        let bridge = Bridge::start_with(exe, workspace.path(), &["--connect", connect], &all).await;
        Self { bridge, workspace }
    }

    pub async fn pages(&self) -> String {
        self.bridge.text("list_pages", json!({})).await
    }

    /// Waits until the list of pages says so.
    pub async fn pages_say(&self, wanted: &str) -> String {
        let started = Instant::now();
        loop {
            let pages = self.pages().await;
            if pages.contains(wanted) {
                return pages;
            }
            assert!(started.elapsed() < Duration::from_secs(5), "no {wanted:?} in {pages}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The number of the page whose line says this.
    pub async fn number_of(&self, page: &str) -> u32 {
        let pages = self.pages_say(page).await;
        let line = pages.lines().find(|line| line.contains(page)).unwrap();
        line.split(':').next().unwrap().parse().unwrap()
    }
}

/// A listener that counts who comes, and answers nobody.
pub struct Counter {
    pub port: u16,
    count: Arc<AtomicUsize>,
}

impl Counter {
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        std::thread::spawn(move || {
            for _ in listener.incoming() {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { port, count }
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// A port that leads to another one, counts who comes, and can be cut.
pub struct Forwarder {
    pub port: u16,
    count: Arc<AtomicUsize>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Forwarder {
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (count, streams) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let forwarder = Self { port, count: count.clone(), streams: streams.clone() };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::Relaxed);
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    streams.lock().unwrap().push(from.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(std::net::Shutdown::Both);
                    });
                }
            }
        });
        forwarder
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Ends every connection that is open.
    pub fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}
