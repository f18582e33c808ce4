//! Nothing outlives us, also when we are killed: the guard, and the sweep at the next start.

#[path = "support/ground.rs"]
mod ground;

use std::path::{Path, PathBuf};
use std::time::Duration;

use ground::{ClientProcess, Ground, SOON, browser, call, entries, guard, handshake, one, send};
use nix::sys::signal::Signal;
use pagebridge_testkit::bridge::Bridge;
use serde_json::json;

const BLANK: &str = "about:blank";

async fn with_page(ground: &Ground) -> (Bridge, u32) {
    let bridge = ground.start(&[]).await;
    bridge.text("new_page", json!({"url": BLANK})).await;
    let browser = browser(&bridge.marker);
    (bridge, browser)
}

async fn kill(bridge: &mut Bridge) {
    bridge.signal(Signal::SIGKILL);
    bridge.ended(SOON).await;
}

/// Waits until the marked process is there.
async fn seen(bridge: &Bridge, text: &str) -> u32 {
    for _ in 0..1_000 {
        if let Some(pid) = one(&bridge.marker, text) {
            return pid;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no {text}: {:?}", bridge.marker.alive());
}

#[tokio::test]
async fn a_killed_bridge_leaves_nothing() {
    let ground = Ground::new();
    let (mut bridge, browser) = with_page(&ground).await;
    assert_eq!((entries(&ground.temp()).len(), entries(&ground.ledgers()).len()), (1, 1));
    kill(&mut bridge).await;
    ground.clean(&bridge.marker, &[browser], SOON).await;
}

#[tokio::test]
async fn a_frozen_browser_goes_too() {
    let ground = Ground::new();
    let (mut bridge, browser) = with_page(&ground).await;
    // The kernel wakes a frozen group that its session has lost; so it is frozen again and again.
    let group = nix::unistd::Pid::from_raw(i32::try_from(browser).unwrap());
    let freeze = move || nix::sys::signal::killpg(group, Signal::SIGSTOP);
    freeze().unwrap();
    let freezer = std::thread::spawn(move || {
        while freeze().is_ok() {
            std::thread::sleep(Duration::from_micros(100));
        }
    });
    kill(&mut bridge).await;
    ground.clean(&bridge.marker, &[browser], SOON).await;
    freezer.join().unwrap();
}

#[tokio::test]
async fn a_kill_during_the_start_leaves_nothing() {
    for wait in [0, 1, 3, 10, 30, 100, 200] {
        let ground = Ground::new();
        let mut bridge = ground.start(&[]).await;
        let (client, marker) = (bridge.client, bridge.marker.clone());
        let params = json!({"name": "new_page", "arguments": {"url": BLANK}});
        let asked = tokio::spawn(async move { client.request("tools/call", params).await.is_ok() });
        tokio::time::sleep(Duration::from_millis(wait)).await;
        bridge.child.kill().await.unwrap();
        ground.clean(&marker, &[], SOON).await;
        asked.abort();
    }
}

#[tokio::test]
async fn what_heeds_no_signal_is_killed_with_its_children() {
    let ground = Ground::new();
    let mut bridge = ground.start(&["--executable-path", &ground.stubborn_browser()]).await;
    let asked = bridge.client.request("tools/call", json!({"name": "new_page", "arguments": {"url": BLANK}}));
    tokio::select! {
        _ = asked => panic!("this browser never answers"),
        _ = seen(&bridge, "stubborn-child") => {}
    }
    kill(&mut bridge).await;
    ground.clean(&bridge.marker, &[], SOON).await;
}

#[tokio::test]
async fn a_killed_client_leaves_nothing() {
    let ground = Ground::new();
    let mut requests = handshake();
    requests.push(call(2, "new_page", json!({"url": BLANK})));
    let mut client = ClientProcess::start(&ground, &requests);
    client.answer(2).await;
    let browser = browser(&client.marker);
    client.child.kill().await.unwrap();
    ground.clean(&client.marker, &[browser], SOON).await;
}

#[tokio::test]
async fn the_next_start_sweeps_what_nobody_guards() {
    let ground = Ground::new();
    let mut bridge = ground.start(&["--executable-path", &ground.stubborn_browser()]).await;
    let asked = bridge.client.request("tools/call", json!({"name": "new_page", "arguments": {"url": BLANK}}));
    tokio::select! {
        _ = asked => panic!("this browser never answers"),
        _ = seen(&bridge, "stubborn-child") => {}
    }
    send(guard(&bridge.marker).expect("a guard"), Signal::SIGKILL);
    kill(&mut bridge).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let left = ground.left(&bridge.marker, &[]);
    assert!(left.len() >= 4, "processes, a folder and a ledger: {left:?}");
    let next = ground.start(&[]).await;
    ground.clean(&bridge.marker, &[], SOON).await;
    next.finish().await;
}

#[tokio::test]
async fn a_good_end_leaves_neither_guard_nor_ledger() {
    let ground = Ground::new();
    let (bridge, _) = with_page(&ground).await;
    let marker = bridge.marker.clone();
    assert!(guard(&marker).is_some());
    bridge.finish().await;
    assert_eq!(ground.left(&marker, &[]), Vec::<String>::new());
}

#[tokio::test]
async fn a_session_without_a_browser_starts_nothing() {
    let ground = Ground::new();
    let bridge = ground.start(&[]).await;
    bridge.tools().await;
    bridge.text("list_pages", json!({})).await;
    assert_eq!(bridge.marker.alive().len(), 1);
    assert!(entries(&ground.ledgers()).is_empty() && entries(&ground.temp()).is_empty());
    bridge.finish().await;
}

#[tokio::test]
async fn bridges_do_not_touch_each_other() {
    let ground = Ground::new();
    let (mut one, one_browser) = with_page(&ground).await;
    let mine: Vec<PathBuf> = [ground.temp(), ground.ledgers()]
        .iter()
        .flat_map(|folder| entries(folder))
        .map(PathBuf::from)
        .collect();
    let (two, _) = with_page(&ground).await;
    kill(&mut one).await;
    // A third one sweeps beside the guard.
    let three = ground.start(&[]).await;
    let gone = || mine.iter().all(|path| !path.exists()) && ground_is_clear(&one, one_browser);
    for _ in 0..500 {
        if gone() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(gone());
    assert_eq!((entries(&ground.temp()).len(), entries(&ground.ledgers()).len()), (1, 1));
    assert!(two.text("list_pages", json!({})).await.contains(BLANK));
    two.text("new_page", json!({"url": BLANK})).await;
    three.finish().await;
    two.finish().await;
    assert!(entries(&ground.temp()).is_empty() && entries(&ground.ledgers()).is_empty());
}

fn ground_is_clear(bridge: &Bridge, group: u32) -> bool {
    bridge.marker.alive().is_empty() && pagebridge_testkit::watch::processes_in_group(group).is_empty()
}

#[tokio::test]
async fn a_guard_heeds_no_sigterm_and_a_lost_one_is_replaced() {
    let ground = Ground::new();
    let (mut bridge, first_browser) = with_page(&ground).await;
    let first = guard(&bridge.marker).expect("a guard");
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        send(first, signal);
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(guard(&bridge.marker), Some(first));
    send(first, Signal::SIGKILL);
    send(first_browser, Signal::SIGKILL);
    tokio::time::sleep(Duration::from_millis(500)).await;
    bridge.text("new_page", json!({"url": BLANK})).await;
    assert!(guard(&bridge.marker).is_some_and(|second| second != first));
    let second_browser = browser(&bridge.marker);
    kill(&mut bridge).await;
    ground.clean(&bridge.marker, &[first_browser, second_browser], SOON).await;
}

#[tokio::test]
async fn a_forged_ledger_deletes_nothing() {
    let ground = Ground::new();
    let precious = ground.workspace().join("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::create_dir_all(ground.ledgers()).unwrap();
    std::os::unix::fs::symlink(&precious, ground.temp().join("pagebridge-link")).unwrap();
    let place = |file: &str| std::fs::read_to_string(file).unwrap().trim().to_owned();
    let owner = json!({"owner": {"process": {"pid": 1, "start": 1}, "place": {
        "host": place("/proc/sys/kernel/hostname"),
        "boot": place("/proc/sys/kernel/random/boot_id"),
        "pids": std::fs::read_link("/proc/self/ns/pid").unwrap(),
    }}});
    let named = |path: &Path| json!({"folder": path}).to_string();
    let text =
        [owner.to_string(), named(&precious), named(&ground.temp().join("pagebridge-link"))].join("\n");
    std::fs::write(ground.ledgers().join("1-0.ledger"), text + "\n").unwrap();
    std::fs::write(ground.ledgers().join("2-0.ledger"), named(&precious) + "\nnoise\0\n{").unwrap();
    let bridge = ground.start(&[]).await;
    for _ in 0..300 {
        if !ground.ledgers().join("1-0.ledger").exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!ground.ledgers().join("1-0.ledger").exists(), "it was read:\n{}", bridge.stderr());
    assert!(precious.exists() && ground.temp().join("pagebridge-link").is_symlink());
    bridge.finish().await;
}
