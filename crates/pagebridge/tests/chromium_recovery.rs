//! What is lost when a browser, a renderer or a page goes, and what is not.

mod support;

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use support::World;

/// The browser's main process: the child of the bridge that drives it.
fn browser_pid(world: &World) -> Pid {
    let main = world.bridge.marker.alive().into_iter().filter(|process| {
        process.cmdline.contains("--remote-debugging-pipe") && !process.cmdline.contains("--type=")
    });
    let pids: Vec<u32> = main.map(|process| process.pid).collect();
    let [pid] = pids.as_slice() else { panic!("not one browser: {pids:?}") };
    Pid::from_raw(i32::try_from(*pid).unwrap())
}

/// The renderer below this browser that has used the most processor time. Renderers have no environment to
/// find them by: Chromium writes its own words over it.
fn busiest_renderer(browser: Pid) -> Pid {
    let mut renderers: Vec<(u64, i32)> = Vec::new();
    let processes: Vec<(i32, i32, u64)> =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(stat).collect();
    for &(pid, parent, time) in &processes {
        let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let grandparent = processes.iter().find(|(pid, ..)| *pid == parent).map(|(_, parent, _)| *parent);
        let is_below = [
            Some(parent),
            grandparent,
            grandparent.and_then(|g| processes.iter().find(|p| p.0 == g)).map(|p| p.1),
        ];
        let shows_pages = command.contains("--type=renderer") && !command.contains("--top-chrome-webui");
        if shows_pages && is_below.contains(&Some(browser.as_raw())) {
            renderers.push((time, pid));
        }
    }
    Pid::from_raw(renderers.iter().max().expect("a renderer").1)
}

/// Pid, parent and processor time of a `/proc` entry.
fn stat(entry: std::fs::DirEntry) -> Option<(i32, i32, u64)> {
    let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let time = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((entry.file_name().to_str()?.parse().ok()?, fields.get(1)?.parse().ok()?, time))
}

const TOOLS: &str = "offer('add', ({ a = 1 }) => a + 1);
offer('post', async () => { await fetch('/posted', { method: 'POST', body: 'x' }); return new Promise(() => {}) });
offer('pend', () => new Promise(() => {}));";

#[tokio::test]
async fn a_browser_killed_while_idle_is_started_once_for_all_who_ask() {
    let world = World::with_page(&[], TOOLS).await;
    kill(browser_pid(&world), Signal::SIGKILL).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let lost = world.error("add", json!({})).await;
    assert_eq!((&lost["kind"], &lost["outcome"]), (&json!("browser_lost"), &json!("not_run")), "{lost}");
    assert!(world.bridge.text("list_pages", json!({})).await.contains("gone"));
    assert!(world.bridge.dynamic_names().await.is_empty());
    let url = world.site.url("/");
    let open = || world.bridge.text("new_page", json!({"url": url}));
    let (one, two, three) = tokio::join!(open(), open(), open());
    let told = [&one, &two, &three].iter().filter(|text| text.contains("was lost")).count();
    assert_eq!(told, 1, "{one}\n{two}\n{three}");
    assert!(
        [&one, &two, &three].iter().all(|text| !text.contains("page 1 ")),
        "numbers are given once: {one}"
    );
    browser_pid(&world);
    let info = world.bridge.call("bridge_info", json!({})).await["structuredContent"]["browser"].clone();
    assert_eq!((&info["state"], &info["generation"]), (&json!("ready"), &json!(2)));
    assert_eq!(world.result("add", json!({"a": 4})).await, 5);
    world.finish().await;
}

#[tokio::test]
async fn a_browser_killed_during_a_call_runs_nothing_twice() {
    let world = World::with_page(&[], TOOLS).await;
    let call = world.error("post", json!({}));
    let killing = async {
        while world.site.posts("/posted").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        kill(browser_pid(&world), Signal::SIGKILL).unwrap();
        Instant::now()
    };
    let (error, killed) = tokio::join!(call, killing);
    assert!(killed.elapsed() < Duration::from_secs(1));
    assert_eq!((&error["kind"], &error["outcome"]), (&json!("browser_lost"), &json!("unknown")));
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    assert_eq!(world.result("add", json!({})).await, 2);
    assert_eq!(world.site.posts("/posted").len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_browser_killed_while_it_starts_is_told_and_tried_again() {
    let world = World::new(&[]).await;
    let url = "data:text/html,x";
    let opening = world.bridge.call("new_page", json!({"url": url}));
    let killing = async {
        loop {
            let starting = world
                .bridge
                .marker
                .alive()
                .into_iter()
                .find(|p| p.cmdline.contains("--remote-debugging-pipe"));
            if let Some(process) = starting {
                let _ = kill(Pid::from_raw(i32::try_from(process.pid).unwrap()), Signal::SIGKILL);
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let (opened, ()) = tokio::join!(opening, killing);
    let kind = &opened["structuredContent"]["error"]["kind"];
    assert!(kind == "browser_start_failed" || kind == "browser_lost", "{opened}");
    world.bridge.text("new_page", json!({"url": url})).await;
    world.finish().await;
}

#[tokio::test]
async fn a_crashed_renderer_costs_its_page_only() {
    let world = World::with_page(&[], TOOLS).await;
    let busy = "() => { for (const end = Date.now() + 700; Date.now() < end;); return 1 }";
    world.evaluate(busy).await;
    world.bridge.text("new_page", json!({"url": world.site.localhost_url("/")})).await;
    let pending = world.bridge.error("page_call", json!({"tool": "pend", "pageId": 1}));
    let crash = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        kill(busiest_renderer(browser_pid(&world)), Signal::SIGKILL).unwrap();
        Instant::now()
    };
    let (error, crashed) = tokio::join!(pending, crash);
    assert_eq!((&error["kind"], &error["outcome"]), (&json!("crashed"), &json!("unknown")), "{error}");
    assert!(crashed.elapsed() < Duration::from_secs(1));
    assert!(world.bridge.text("list_pages", json!({})).await.contains("crashed"));
    let refused = world.bridge.error("page_call", json!({"tool": "add", "pageId": 1})).await;
    assert_eq!((&refused["kind"], &refused["outcome"]), (&json!("crashed"), &json!("not_run")));
    assert_eq!(world.result("add", json!({"a": 1})).await, 2, "the other page goes on");
    let again = world.bridge.text("navigate_page", json!({"type": "reload", "pageId": 1})).await;
    assert!(!again.contains("crashed"), "{again}");
    let called = world.bridge.call("page_call", json!({"tool": "add", "pageId": 1})).await;
    assert_eq!(called["structuredContent"]["result"], 2, "{called}");
    world.finish().await;
}

#[tokio::test]
async fn a_page_that_closes_itself_leaves_another_selected() {
    let world = World::with_page(&[], TOOLS).await;
    world.evaluate("() => { open('/'); return 1 }").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.bridge.text("select_page", json!({"pageId": 2})).await;
    let pending = world.bridge.error("page_call", json!({"tool": "pend"}));
    let close = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        world.bridge.call("evaluate_script", json!({"function": "() => window.close()"})).await;
        Instant::now()
    };
    let (error, closed) = tokio::join!(pending, close);
    assert_eq!((&error["kind"], &error["outcome"]), (&json!("closed"), &json!("unknown")), "{error}");
    assert!(closed.elapsed() < Duration::from_secs(1));
    assert!(world.bridge.text("list_pages", json!({})).await.contains("1: "));
    assert_eq!(world.result("add", json!({})).await, 2);
    world.finish().await;
}

#[tokio::test]
async fn a_stuck_page_delays_nobody_else() {
    let world = World::with_page(&[], &format!("{TOOLS} offer('loop', () => {{ for (;;); }});")).await;
    world.bridge.text("new_page", json!({"url": world.site.localhost_url("/")})).await;
    let stuck = world.bridge.error("page_call", json!({"tool": "loop", "pageId": 1, "timeoutMs": 4000}));
    let others = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let started = Instant::now();
        for _ in 0..5 {
            assert_eq!(world.result("add", json!({"a": 2})).await, 3);
            world.bridge.tools().await;
            world.bridge.request("ping", json!({})).await;
            world.bridge.text("list_pages", json!({})).await;
        }
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    };
    let (error, ()) = tokio::join!(stuck, others);
    assert_eq!(error["kind"], "timeout");
    let called = world.bridge.call("page_call", json!({"tool": "add", "pageId": 1})).await;
    assert_eq!(called["structuredContent"]["result"], 2, "the loop was ended: {called}");
    world.finish().await;
}
