//! Every ending takes the browser and its folders along, whatever is going on at that moment.

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pagebridge_mcp::client::{ClientError, Pending};
use pagebridge_testkit::bridge::{Bridge, browser_args};
use pagebridge_testkit::raw::Raw;
use pagebridge_testkit::site::Site;
use pagebridge_testkit::watch::{Proc, descendants, processes_mentioning, still_running};
use serde_json::{Value, json};
use support::{EXE, page};
use tempfile::TempDir;

const PENDING: &str = r#"offer("pend", () => { fetch("/started"); return new Promise(() => {}); });"#;
/// Within this everything must be gone.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
enum End {
    CloseInput,
    Signal(Signal),
}

const ENDS: [End; 3] = [End::CloseInput, End::Signal(Signal::SIGTERM), End::Signal(Signal::SIGINT)];

/// A bridge whose temporary files, and those of all below it, are in a folder of its own.
struct Life {
    bridge: Bridge,
    temp: TempDir,
    site: Site,
    _workspace: TempDir,
}

impl Life {
    async fn begin() -> Self {
        let (temp, workspace) = (folder(), folder());
        let env = [("TMPDIR", Some(temp.path().to_str().expect("UTF-8")))];
        let args = browser_args();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let bridge = Bridge::start_with(EXE, workspace.path(), &args, &env).await;
        let site = Site::start();
        site.page("/", page(PENDING));
        Self { bridge, temp, site, _workspace: workspace }
    }

    fn start_call(&self, tool: &str, arguments: Value) -> Pending {
        let params = json!({"name": tool, "arguments": arguments});
        self.bridge.client.start_request("tools/call", params).expect("JSON")
    }

    async fn open(&self) {
        self.bridge.text("new_page", json!({"url": self.site.url("/")})).await;
    }

    async fn end(&mut self, end: End) -> Instant {
        let at = Instant::now();
        match end {
            End::CloseInput => self.bridge.client.close_input().await,
            End::Signal(signal) => self.bridge.signal(signal),
        }
        at
    }

    /// Checks that the end that began `at` ends everything in time.
    async fn assert_ended(mut self, at: Instant, below: &[Proc], what: &str) {
        let status = self.bridge.ended(LIMIT.saturating_sub(at.elapsed())).await;
        assert_eq!(status.code(), Some(0), "{what}: {}", self.bridge.stderr());
        self.bridge.marker.assert_gone_within(LIMIT.saturating_sub(at.elapsed()));
        let left = || [still_running(below), processes_mentioning(self.temp.path())].concat();
        while !left().is_empty() {
            assert!(at.elapsed() < LIMIT, "{what}: {:#?}", left());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(files(self.temp.path()), Vec::<String>::new(), "{what}: temporary files are left");
        let stderr = self.bridge.stderr();
        assert!(!stderr.contains("panicked"), "{what}: {stderr}");
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The call was answered, by a result or by an error, rather than left alone.
async fn assert_answered(call: Pending, what: &str) {
    match tokio::time::timeout(LIMIT, call).await.unwrap_or_else(|_| panic!("{what}: no answer")) {
        Ok(_) | Err(ClientError::Rpc(_)) => {}
        Err(other) => panic!("{what}: {other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_page_open_every_ending_leaves_nothing() {
    for end in ENDS {
        let mut life = Life::begin().await;
        life.open().await;
        let below = descendants(life.bridge.pid());
        assert!(below.iter().any(|process| process.cmdline.contains("--type=renderer")), "{below:#?}");
        assert!(!files(life.temp.path()).is_empty(), "the browser's folder is where it should be");
        let at = life.end(end).await;
        life.assert_ended(at, &below, &format!("{end:?}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn during_a_call_every_ending_answers_it_and_leaves_nothing() {
    for end in ENDS {
        let mut life = Life::begin().await;
        life.open().await;
        let call = life.start_call("page_call", json!({"tool": "pend"}));
        while life.site.hits("/started") == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let below = descendants(life.bridge.pid());
        let at = life.end(end).await;
        let what = format!("{end:?}");
        assert_answered(call, &what).await;
        life.assert_ended(at, &below, &what).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn during_the_start_of_the_browser_every_ending_answers_and_leaves_nothing() {
    // From the first moment of the browser to about the first page.
    for (end, delay) in ENDS.iter().flat_map(|end| [0, 60, 200].map(|delay| (*end, delay))) {
        let mut life = Life::begin().await;
        let call = life.start_call("new_page", json!({"url": life.site.url("/")}));
        let started = Instant::now();
        while descendants(life.bridge.pid()).is_empty() {
            assert!(started.elapsed() < Duration::from_secs(20), "a browser is started");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(delay)).await;
        let below = descendants(life.bridge.pid());
        let at = life.end(end).await;
        let what = format!("{end:?} after {delay} ms");
        assert_answered(call, &what).await;
        life.assert_ended(at, &below, &what).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_before_any_browser_ends_it_at_once() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let mut life = Life::begin().await;
        let at = life.end(End::Signal(signal)).await;
        life.bridge.ended(Duration::from_secs(1)).await;
        life.assert_ended(at, &[], &format!("{signal:?}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_in_flight_at_the_end_of_input_still_get_their_results() {
    for run in 0..5 {
        let mut life = Life::begin().await;
        life.site.page(
            "/",
            page(r#"offer("slow", async ({ n }) => { await new Promise((done) => setTimeout(done, 600)); return n; });"#),
        );
        life.open().await;
        let below = descendants(life.bridge.pid());
        let calls =
            [1, 2, 3].map(|n| life.start_call("page_call", json!({"tool": "slow", "arguments": {"n": n}})));
        let at = life.end(End::CloseInput).await;
        for (n, call) in (1..).zip(calls) {
            let answer = tokio::time::timeout(LIMIT, call).await.expect("an answer in time");
            let answer = answer.unwrap_or_else(|error| panic!("run {run}, call {n}: {error}"));
            let answer: Value = serde_json::from_str(answer.get()).expect("JSON");
            assert_eq!(answer["structuredContent"]["result"], n, "run {run}: {answer:#}");
        }
        life.assert_ended(at, &below, &format!("run {run}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_reading_ends_the_browser_too() {
    let (temp, workspace, site) = (folder(), folder(), Site::start());
    site.page("/", page(PENDING));
    let sandbox = browser_args();
    let args: Vec<&str> = ["serve"].into_iter().chain(sandbox.iter().map(String::as_str)).collect();
    let env = [("TMPDIR", temp.path().to_str().expect("UTF-8"))];
    let mut raw = Raw::start_initialized(EXE, workspace.path(), &args, &env).await;
    let open = json!({"name": "new_page", "arguments": {"url": site.url("/")}}).to_string();
    raw.request("1", "tools/call", Some(&open)).await;
    let below = descendants(raw.child.id().expect("it runs"));
    assert!(!below.is_empty());
    raw.close_output();
    let at = Instant::now();
    raw.try_send("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\n").await;
    assert_eq!(raw.ended(LIMIT).await.code(), Some(0), "{}", raw.stderr());
    raw.marker.assert_gone_within(LIMIT.saturating_sub(at.elapsed()));
    while !still_running(&below).is_empty() {
        assert!(at.elapsed() < LIMIT, "{:#?}", still_running(&below));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(files(temp.path()), Vec::<String>::new());
    assert!(!raw.stderr().contains("panicked"), "{}", raw.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_cancelled_while_the_browser_starts_harms_nothing() {
    let mut life = Life::begin().await;
    let call = life.start_call("new_page", json!({"url": life.site.url("/")}));
    let started = Instant::now();
    while descendants(life.bridge.pid()).is_empty() {
        assert!(started.elapsed() < Duration::from_secs(20), "a browser is started");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    life.bridge.client.cancel(call.id());
    assert!(matches!(call.await, Err(ClientError::Cancelled)));
    life.open().await;
    assert_eq!(life.site.hits("/"), 1, "the cancelled call opened nothing");
    let info = life.bridge.call("bridge_info", json!({})).await;
    assert_eq!(info["structuredContent"]["browser"]["generation"], 1, "one browser was started: {info:#}");
    let below = descendants(life.bridge.pid());
    let at = life.end(End::CloseInput).await;
    life.assert_ended(at, &below, "after a cancelled start").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_browser_leaves_no_folder_and_the_next_page_gets_a_new_one() {
    let mut life = Life::begin().await;
    life.open().await;
    let before = files(life.temp.path());
    let mut below = descendants(life.bridge.pid());
    // The guard stays as long as the bridge.
    below.retain(|p| !p.cmdline.contains("pagebridge guard "));
    let main = below.iter().find(|p| p.cmdline.contains("--remote-debugging-pipe")).expect("a browser").pid;
    let call = life.start_call("page_call", json!({"tool": "pend"}));
    while life.site.hits("/started") == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let at = Instant::now();
    kill(Pid::from_raw(i32::try_from(main).expect("a pid")), Signal::SIGKILL).expect("it runs");
    let answer = tokio::time::timeout(LIMIT, call).await.expect("an answer in time").expect("a result");
    assert!(at.elapsed() < Duration::from_secs(2), "{:?}", at.elapsed());
    let answer: Value = serde_json::from_str(answer.get()).expect("JSON");
    let error = &answer["structuredContent"]["error"];
    assert_eq!(
        (&error["kind"], &error["outcome"]),
        (&json!("browser_lost"), &json!("unknown")),
        "{answer:#}"
    );
    while !still_running(&below).is_empty() || files(life.temp.path()) == before {
        assert!(at.elapsed() < 2 * LIMIT, "{:#?} {before:?}", still_running(&below));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    life.open().await;
    assert_eq!(life.site.hits("/started"), 1, "the lost call is not made again");
    let info = life.bridge.call("bridge_info", json!({})).await;
    let browser = &info["structuredContent"]["browser"];
    assert_eq!((&browser["state"], &browser["generation"]), (&json!("ready"), &json!(2)), "{info:#}");
    assert_eq!(life.bridge.dynamic_names().await, ["page_pend"]);
    let below = descendants(life.bridge.pid());
    let at = life.end(End::CloseInput).await;
    life.assert_ended(at, &below, "the second browser").await;
}
