//! What can go wrong with a browser that somebody else runs: the connection is lost, the browser is, it has no
//! WebMCP, its tabs have crashed, and we are the ones who stand still.
#![allow(clippy::disallowed_methods, reason = "tests start real processes")]

#[path = "support/foreign.rs"]
mod foreign;
mod support;

use std::time::{Duration, Instant};

use foreign::{Attached, Foreign, Forwarder};
use nix::sys::signal::Signal;
use pagebridge_testkit::bridge::text_of;
use pagebridge_testkit::site::Site;
use serde_json::json;
use support::page;

const TOOLS: &str = "offer('add', ({ a = 1 }) => a + 1);
offer('post', async () => { await fetch('/posted', { method: 'POST', body: 'x' }); return new Promise(() => {}) });";

fn shown() -> (Site, Foreign) {
    let site = Site::start();
    site.page("/", page(TOOLS));
    let browser = Foreign::start(&site.url("/"));
    (site, browser)
}

async fn add(attached: &Attached) -> serde_json::Value {
    attached.bridge.call("page_call", json!({"tool": "add"})).await["structuredContent"]["result"].clone()
}

async fn until_it_adds(attached: &Attached) {
    let started = Instant::now();
    while add(attached).await != 2 {
        assert!(started.elapsed() < Duration::from_secs(5), "{}", attached.pages().await);
    }
}

#[tokio::test]
async fn a_lost_connection_is_made_anew_once_for_all_who_ask() {
    let (site, mut browser) = shown();
    // What the browser calls its own address is not the way that we came.
    let forwarder = Forwarder::to(browser.port);
    let attached = Attached::to(&forwarder.port.to_string()).await;
    until_it_adds(&attached).await;
    assert_eq!(forwarder.count(), 2, "one question, one WebSocket");
    let pending = attached.bridge.error("page_call", json!({"tool": "post"}));
    let cutting = async {
        while site.posts("/posted").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        forwarder.cut();
        Instant::now()
    };
    let (error, cut) = tokio::join!(pending, cutting);
    assert!(cut.elapsed() < Duration::from_secs(1));
    assert_eq!((&error["kind"], &error["outcome"]), (&json!("browser_lost"), &json!("unknown")), "{error}");
    assert!(error["message"].as_str().unwrap().contains("The connection to the browser at"), "{error}");
    // All three wait for the same attempt. A call that means the page that was selected is told.
    let named = attached.bridge.error("page_call", json!({"tool": "add", "pageId": 1}));
    let (meant, named, again) = tokio::join!(
        attached.bridge.error("page_call", json!({"tool": "add"})),
        named,
        named_again(&attached)
    );
    let lost = [&meant, &named, &again].into_iter().filter(|error| error["kind"] == "browser_lost").count();
    let missing = [&meant, &named, &again].into_iter().filter(|error| error["kind"] == "not_found").count();
    assert_eq!((lost, missing), (1, 2), "{meant}\n{named}\n{again}");
    assert_eq!(forwarder.count(), 4);
    let pages = attached.pages().await;
    assert!(pages.contains("2: ") && !pages.contains("1: "), "{pages}");
    until_it_adds(&attached).await;
    assert_eq!(site.posts("/posted").len(), 1, "nothing ran twice");
    // Asked for the pages, it says so beside them.
    forwarder.cut();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let pages = attached.pages().await;
    assert!(pages.contains("made anew") && pages.contains("3: "), "{pages}");
    assert!(!attached.pages().await.contains("made anew"));
    attached.bridge.finish().await;
    browser.assert_alive();
}

async fn named_again(attached: &Attached) -> serde_json::Value {
    attached.bridge.error("evaluate_script", json!({"function": "() => 1", "pageId": 1})).await
}

#[tokio::test]
async fn a_browser_that_is_gone_is_told_and_another_at_its_place_is_taken() {
    let (site, mut browser) = shown();
    let attached = Attached::to(&browser.port.to_string()).await;
    until_it_adds(&attached).await;
    let port = browser.port;
    browser.kill();
    for _ in 0..2 {
        let error = attached.bridge.error("list_pages", json!({})).await;
        assert_eq!((&error["kind"], &error["outcome"]), (&json!("browser_start_failed"), &json!("not_run")));
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("127.0.0.1:{port} (refused)")), "{error}");
        assert!(error["details"]["hint"].as_str().unwrap().contains("--remote-debugging-port"), "{error}");
    }
    let _next = Foreign::start_with(port, &["--enable-features=WebMCP"], &site.url("/"));
    let opened = attached.bridge.text("new_page", json!({"url": site.url("/")})).await;
    assert!(opened.contains("made anew") && opened.contains("page_add"), "{opened}");
    assert_eq!(add(&attached).await, 2);
    attached.bridge.finish().await;
}

#[tokio::test]
async fn a_browser_without_webmcp_is_told_of() {
    let site = Site::start();
    site.page("/", "<title>plain</title>");
    let mut browser = Foreign::start_with(0, &["--disable-features=WebMCP"], &site.url("/"));
    let attached = Attached::to(&browser.port.to_string()).await;
    attached.pages_say("plain").await;
    let listed = attached.bridge.call("page_tools", json!({})).await;
    let page = &listed["structuredContent"]["pages"][0];
    assert_eq!(page["support"], "absent", "{listed}");
    assert!(page["reason"].as_str().unwrap().contains("--enable-features=WebMCP"), "{listed}");
    let evaluated =
        attached.bridge.text("evaluate_script", json!({"function": "() => document.title"})).await;
    assert!(evaluated.contains("plain"));
    attached.bridge.finish().await;
    browser.assert_alive();
}

#[tokio::test]
async fn a_bridge_that_stands_still_holds_nobody_up() {
    let (site, mut browser) = shown();
    let attached = Attached::to(&browser.port.to_string()).await;
    until_it_adds(&attached).await;
    attached.bridge.signal(Signal::SIGSTOP);
    // A tab of the user loads, with a frame of another site and a worker.
    site.page("/inner", "<script>fetch('/inner-ran')</script>");
    site.page_with_headers("/worker.js", &[("content-type", "text/javascript")], "fetch('/worker-ran')");
    let frame = site.localhost_url("/inner");
    site.page(
        "/new",
        format!("<iframe src={frame}></iframe><script>fetch('/ran'); new Worker('/worker.js')</script>"),
    );
    browser.open_tab(&site.url("/new"));
    let started = Instant::now();
    while ["/ran", "/inner-ran", "/worker-ran"].iter().any(|path| site.hits(path) == 0) {
        let hits = ["/new", "/ran", "/inner-ran", "/worker-ran"].map(|path| site.hits(path));
        assert!(started.elapsed() < Duration::from_secs(5), "{hits:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    attached.bridge.signal(Signal::SIGCONT);
    attached.number_of(&site.url("/new")).await;
    attached.bridge.finish().await;
    browser.assert_alive();
}

#[tokio::test]
async fn a_tab_that_crashed_before_is_told_and_can_be_used_again() {
    let (site, mut browser) = shown();
    browser.open_tab("chrome://crash/");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let attached = Attached::to(&browser.port.to_string()).await;
    let started = Instant::now();
    let crashed = attached.number_of("[crashed").await;
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    let error = attached.bridge.error("page_call", json!({"tool": "add", "pageId": crashed})).await;
    assert_eq!((&error["kind"], &error["outcome"]), (&json!("crashed"), &json!("not_run")), "{error}");
    let url = site.url("/");
    let loaded = attached.bridge.text("navigate_page", json!({"pageId": crashed, "url": url})).await;
    assert!(!loaded.contains("crashed"), "{loaded}");
    let called = attached.bridge.call("page_call", json!({"tool": "add", "pageId": crashed})).await;
    assert_eq!(called["structuredContent"]["result"], 2, "{called}");
    attached.bridge.finish().await;
    browser.assert_alive();
}

#[tokio::test]
async fn large_answers_arrive_and_leave_the_connection_open() {
    let (_site, mut browser) = shown();
    let attached = Attached::to(&browser.port.to_string()).await;
    for mib in [20, 70] {
        let function = format!("() => 'x'.repeat({mib} * 1024 * 1024)");
        let result = attached.bridge.call("evaluate_script", json!({"function": function})).await;
        assert_ne!(result["isError"], true, "{}", text_of(&result).chars().take(500).collect::<String>());
    }
    until_it_adds(&attached).await;
    let info = attached.bridge.call("bridge_info", json!({})).await;
    assert_eq!(info["structuredContent"]["browser"]["generation"], 1);
    attached.bridge.finish().await;
    browser.assert_alive();
}
