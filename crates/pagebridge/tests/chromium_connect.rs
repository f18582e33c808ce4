//! `--connect`: a browser that somebody else runs is found under every name, used, and never ended.
#![allow(clippy::disallowed_methods, reason = "tests start real processes")]

#[path = "support/foreign.rs"]
mod foreign;
mod support;

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use foreign::{Attached, Counter, Foreign};
use nix::sys::signal::{Signal, kill};
use pagebridge_testkit::bridge::text_of;
use pagebridge_testkit::site::Site;
use serde_json::{Value, json};
use support::{EXE, named, page};

const ADD: &str = "offer('add', ({ a = 1 }) => a + 1);";

/// A site with a page that offers a tool, and a browser that shows it.
fn shown(script: &str) -> (Site, Foreign) {
    let site = Site::start();
    site.page("/", page(script));
    let browser = Foreign::start(&site.url("/"));
    (site, browser)
}

async fn tools_of(attached: &Attached, page: u32) -> Value {
    let result = attached.bridge.call("page_tools", json!({"pageId": page})).await;
    assert!(result["isError"].is_null(), "{result:#}");
    result["structuredContent"]["pages"][0].clone()
}

async fn info(attached: &Attached) -> Value {
    attached.bridge.call("bridge_info", json!({})).await["structuredContent"].clone()
}

#[tokio::test]
async fn every_form_of_the_address_connects_past_any_proxy() {
    let (site, mut browser) = shown(ADD);
    let proxy = Counter::start();
    let proxy_url = format!("http://127.0.0.1:{}", proxy.port);
    let names = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
    let mut env: Vec<(&str, Option<&str>)> = names.map(|name| (name, Some(proxy_url.as_str()))).to_vec();
    env.extend([("NO_PROXY", None), ("no_proxy", None)]);
    let port = browser.port;
    for address in [
        port.to_string(),
        format!("localhost:{port}"),
        format!("http://localhost:{port}"),
        format!("http://127.0.0.1:{port}/"),
        format!("ws://127.0.0.1:{port}{}", browser.path),
    ] {
        let attached = Attached::with(EXE, &address, &env).await;
        attached.bridge.tools().await;
        let before = info(&attached).await;
        assert_eq!((&before["engine"], &before["browser"]["state"]), (&json!("attach"), &json!("idle")));
        let started = Instant::now();
        let pages = attached.pages().await;
        assert!(started.elapsed() < Duration::from_secs(2), "{address}: {:?}", started.elapsed());
        assert!(pages.contains("1: ") && pages.contains("[selected]"), "{address}: {pages}");
        // It may be on its way there still.
        attached.pages_say(&site.url("/")).await;
        let browser = info(&attached).await["browser"].clone();
        assert_eq!((&browser["state"], &browser["headless"]), (&json!("ready"), &json!(true)), "{browser}");
        assert!(browser["product"].as_str().unwrap().contains("Chrome/"), "{browser}");
        assert!(!browser.to_string().contains("devtools"), "{browser}");
        attached.bridge.finish().await;
    }
    browser.assert_alive();
    assert_eq!(proxy.count(), 0);
}

#[tokio::test]
async fn names_are_resolved_here() {
    let private = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script]).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    if !private("mount --bind /etc/hosts /etc/hosts").status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: no private mount namespace can be had here (it takes root)");
        return;
    }
    let (site, mut browser) = shown(ADD);
    let dir = tempfile::tempdir().unwrap();
    let (hosts, wrapper) = (dir.path().join("hosts"), dir.path().join("pagebridge"));
    std::fs::write(
        &hosts,
        "::1 localhost\n127.0.0.1 localhost\n127.0.0.1 chromebox\n::1 sixfirst\n127.0.0.1 sixfirst\n",
    )
    .unwrap();
    let script = format!(
        "#!/bin/sh\nexec unshare -m sh -c 'mount --bind {} /etc/hosts && exec {EXE} \"$@\"' sh \"$@\"\n",
        hosts.display()
    );
    std::fs::write(&wrapper, script).unwrap();
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let port = browser.port;
    for address in [
        format!("http://chromebox:{port}"),
        format!("http://localhost:{port}"),
        format!("sixfirst:{port}"),
        format!("ws://chromebox:{port}{}", browser.path),
    ] {
        let attached = Attached::with(wrapper.to_str().unwrap(), &address, &[]).await;
        let started = Instant::now();
        let pages = attached.pages().await;
        assert!(started.elapsed() < Duration::from_secs(2), "{address}: {:?}", started.elapsed());
        assert!(pages.contains("1: "), "{address}: {pages}");
        attached.pages_say(&site.url("/")).await;
        attached.bridge.finish().await;
    }
    let attached = Attached::with(wrapper.to_str().unwrap(), "sixfirst:9", &[]).await;
    let error = attached.bridge.error("list_pages", json!({})).await;
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("[::1]:9 (refused)") && message.contains("127.0.0.1:9 (refused)"), "{error}");
    attached.bridge.finish().await;
    browser.assert_alive();
}

#[tokio::test]
async fn tools_that_were_there_before_are_listed_and_run() {
    let site = Site::start();
    site.page("/frame", page("offer('inner', () => 'from the frame');"));
    let schema = r#"{ inputSchema: { type: "object", properties: { prénom: { type: "string", description: "Äöü ÿ" } }, required: ["prénom"] } }"#;
    site.page(
        "/",
        page(&format!(
            "{ADD} offer('gruß', ({{ prénom }}) => `Grüße, ${{prénom}}`, {{ name: 'gruss', ...{schema} }});
             addEventListener('DOMContentLoaded', () => document.body.insertAdjacentHTML('beforeend', '<iframe src=/frame></iframe>'));"
        )),
    );
    let mut browser = Foreign::start(&site.url("/"));
    let mut attached = Attached::to(&browser.port.to_string()).await;
    assert!(attached.bridge.dynamic_names().await.is_empty(), "listing tools attaches to nothing");
    let number = attached.number_of(&site.url("/")).await;
    // It may be loading still.
    let started = Instant::now();
    let listed = loop {
        let listed = tools_of(&attached, number).await;
        if support::names(&listed["tools"]).len() == 3 || started.elapsed() > Duration::from_secs(5) {
            break listed;
        }
    };
    assert_eq!(listed["support"], "native", "{listed:#}");
    let tools = &listed["tools"];
    assert_eq!(support::names(tools), ["add", "gruss", "inner"], "{listed:#}");
    let shown = &named(tools, "gruss")["inputSchema"]["properties"]["prénom"]["description"];
    assert_eq!(shown, "Äöü ÿ");
    for (tool, arguments, result) in [
        ("add", json!({"a": 4}), json!(5)),
        ("gruss", json!({"prénom": "Zoë"}), json!("Grüße, Zoë")),
        ("inner", json!({}), json!("from the frame")),
    ] {
        assert_eq!(attached.bridge.page_call(tool, arguments).await["result"], result, "{tool}");
    }
    assert!(attached.bridge.list_changed(Duration::from_secs(2)).await);
    let names = attached.bridge.dynamic_names().await;
    assert!(names.iter().any(|name| name == "page_add"), "{names:?}");
    let called = attached.bridge.call("page_add", json!({"a": 1})).await;
    assert_eq!(called["structuredContent"]["result"], 2, "{called}");
    attached.bridge.finish().await;
    browser.assert_alive();
}

#[tokio::test]
async fn pages_that_we_open_go_with_us_and_others_stay() {
    let (site, mut browser) = shown(ADD);
    site.page("/ours", page("offer('ours', () => 'ours');"));
    let attached = Attached::to(&browser.port.to_string()).await;
    let opened = attached.bridge.text("new_page", json!({"url": site.url("/ours")})).await;
    assert!(opened.contains("page_ours"), "{opened}");
    assert_eq!(attached.bridge.page_call("ours", json!({})).await["result"], "ours");
    // A tab of the user comes, with its tools, and one goes.
    site.page("/later", page("offer('later', () => 'later');"));
    browser.open_tab(&site.url("/later"));
    let later = attached.number_of(&site.url("/later")).await;
    let started = Instant::now();
    while support::names(&tools_of(&attached, later).await["tools"]) != ["later"] {
        assert!(started.elapsed() < Duration::from_secs(3), "{}", tools_of(&attached, later).await);
    }
    assert!(browser.has_tab(&site.url("/ours")));
    attached.bridge.finish().await;
    let started = Instant::now();
    while browser.has_tab(&site.url("/ours")) {
        assert!(started.elapsed() < Duration::from_secs(2), "our page stays: {:?}", browser.tabs());
    }
    assert!(browser.has_tab(&site.url("/")) && browser.has_tab(&site.url("/later")));
    browser.assert_alive();
}

#[tokio::test]
async fn a_stopped_renderer_delays_nobody() {
    let busy = format!("{ADD} for (const end = Date.now() + 1500; Date.now() < end;);");
    let site = Site::start();
    site.page("/stuck", page(&busy));
    site.page("/well", page(ADD));
    // Two sites, and so two renderers.
    let (stuck, well) = (site.url("/stuck"), site.localhost_url("/well"));
    let mut browser = Foreign::start(&well);
    browser.open_tab(&stuck);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let renderer = browser.busiest_renderer();
    kill(renderer, Signal::SIGSTOP).unwrap();
    let attached = Attached::to(&browser.port.to_string()).await;
    let started = Instant::now();
    let pages = attached.pages().await;
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    let line = |url: &str| pages.lines().find(|line| line.contains(url)).unwrap_or_else(|| panic!("{pages}"));
    assert!(line(&stuck).contains("unresponsive") && !line(&well).contains("unresponsive"), "{pages}");
    let (stuck_page, well_page) = (attached.number_of(&stuck).await, attached.number_of(&well).await);
    let started = Instant::now();
    for _ in 0..5 {
        let called = json!({"tool": "add", "arguments": {"a": 2}, "pageId": well_page});
        assert_eq!(attached.bridge.call("page_call", called).await["structuredContent"]["result"], 3);
        attached.pages().await;
    }
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    let started = Instant::now();
    for (tool, mut arguments) in
        [("page_call", json!({"tool": "add"})), ("evaluate_script", json!({"function": "() => 1"}))]
    {
        arguments["pageId"] = json!(stuck_page);
        let error = attached.bridge.error(tool, arguments).await;
        assert_eq!((&error["kind"], &error["outcome"]), (&json!("timeout"), &json!("not_run")), "{error}");
    }
    assert_eq!(tools_of(&attached, stuck_page).await["support"], "absent");
    attached.bridge.text("select_page", json!({"pageId": stuck_page})).await;
    attached.bridge.text("select_page", json!({"pageId": well_page})).await;
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    // It goes on, and is a page like any other.
    kill(renderer, Signal::SIGCONT).unwrap();
    let started = Instant::now();
    while attached.pages().await.contains("unresponsive") {
        assert!(started.elapsed() < Duration::from_secs(3));
    }
    let called = json!({"tool": "add", "arguments": {"a": 6}, "pageId": stuck_page});
    assert_eq!(attached.bridge.call("page_call", called).await["structuredContent"]["result"], 7);
    attached.bridge.finish().await;
    browser.assert_alive();
}

#[tokio::test]
async fn no_ending_of_ours_ends_the_browser_or_its_pages() {
    let (site, mut browser) = shown(&format!("{ADD} offer('pend', () => new Promise(() => {{}}));"));
    for signal in [None, Some(Signal::SIGTERM), Some(Signal::SIGINT), Some(Signal::SIGKILL)] {
        let mut attached = Attached::to(&browser.port.to_string()).await;
        attached.pages().await;
        let pending = attached
            .bridge
            .client
            .start_request("tools/call", json!({"name": "page_call", "arguments": {"tool": "pend"}}));
        tokio::time::sleep(Duration::from_millis(100)).await;
        match signal {
            Some(signal) => attached.bridge.signal(signal),
            None => attached.bridge.client.close_input().await,
        }
        attached.bridge.ended(Duration::from_secs(5)).await;
        drop(pending);
        attached.bridge.marker.assert_gone_within(Duration::from_secs(1));
        browser.assert_alive();
        assert!(browser.has_tab(&site.url("/")), "{signal:?}: {:?}", browser.tabs());
    }
    // The tab works as before.
    let attached = Attached::to(&browser.port.to_string()).await;
    assert_eq!(
        attached.bridge.call("page_call", json!({"tool": "add"})).await["structuredContent"]["result"],
        2
    );
    attached.bridge.finish().await;
}

#[tokio::test]
async fn secrets_of_the_address_are_told_to_nobody() {
    let address = "ws://user:CANARY@127.0.0.1:1/?token=CANARY2";
    let mut told = String::new();
    let attached = Attached::with(EXE, address, &[("PAGEBRIDGE_LOG_LEVEL", Some("trace"))]).await;
    for (tool, arguments) in [
        ("bridge_info", json!({})),
        ("list_pages", json!({})),
        ("new_page", json!({"url": "about:blank"})),
        ("page_tools", json!({})),
    ] {
        let result = attached.bridge.call(tool, arguments).await;
        assert_eq!(result["isError"] == true, tool != "bridge_info", "{result}");
        told.push_str(&result.to_string());
        told.push_str(&text_of(&result));
    }
    assert!(told.contains("browser_start_failed") && told.contains("127.0.0.1:1 (refused)"), "{told}");
    told.push_str(&attached.bridge.stderr());
    attached.bridge.finish().await;
    let run = |args: &[&str], env: Option<&str>| {
        let mut command = Command::new(EXE);
        command.env_remove("PAGEBRIDGE_EXECUTABLE_PATH").args(args).stdin(Stdio::null());
        if let Some(address) = env {
            command.env("PAGEBRIDGE_CONNECT", address);
        }
        let ended = command.output().unwrap();
        let text = [ended.stdout, ended.stderr].concat();
        (ended.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
    };
    for (args, env, status) in [
        (vec!["doctor", "--connect", address], None, 69),
        (vec!["doctor", "--json"], Some(address), 69),
        (vec!["tools", "about:blank", "--connect", address], None, 69),
        (vec!["help", "serve"], Some(address), 0),
        (vec!["serve", "--help"], Some(address), 0),
        (vec!["serve", "--headed"], Some(address), 2),
        (vec!["serve", "--connect", "wss://CANARY@h/CANARY2"], None, 2),
        (vec!["serve", "--connect", "CANARY"], None, 2),
        (vec!["demo"], Some("http://CANARY:CANARY@127.0.0.1:1/CANARY2"), 1),
    ] {
        let (code, text) = run(&args, env);
        assert_eq!(code, status, "{args:?}: {text}");
        told.push_str(&text);
    }
    assert!(!told.contains("CANARY"), "{told}");
}
