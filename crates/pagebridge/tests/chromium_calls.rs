//! The many ways in which a call of a page tool ends, and that the next call works.

mod support;

use std::time::{Duration, Instant};

use pagebridge_testkit::bridge::browser_args;
use pagebridge_testkit::raw::Raw;
use pagebridge_testkit::site::Site;
use pagebridge_testkit::watch::descendants;
use serde_json::{Value, json};
use support::{EXE, World, page};

/// Tools that do not end by themselves and tell what became of them.
const PENDING: &str = r#"
self.log = [];
const pend = (input, { signal } = {}) => new Promise((_, reject) => {
  log.push("started");
  signal?.addEventListener("abort", () => { log.push("aborted"); reject(signal.reason); });
});
offer("pend", pend, { inputSchema: {} });
offer("loop", () => { for (;;); });
offer("quick", () => "quick");
"#;

/// Calls `pend`, does `meanwhile` once it runs, and gives the error of the call and how long after it came.
async fn during_pend(world: &World, meanwhile: impl Future<Output = ()>) -> (Value, Duration) {
    let act = async {
        while world.site.hits("/started") == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let acted = Instant::now();
        meanwhile.await;
        acted
    };
    let call = async { (world.page_call("pend", json!({})).await, Instant::now()) };
    let ((answer, ended), acted) = tokio::join!(call, act);
    assert_eq!(answer["isError"], true, "{answer:#}");
    assert_eq!(answer["structuredContent"]["tool"], "pend", "{answer:#}");
    (answer["structuredContent"]["error"].clone(), ended.saturating_duration_since(acted))
}

fn telling() -> String {
    PENDING.replace(r#"log.push("started");"#, r#"log.push("started"); fetch("/started");"#)
}

/// A page whose `pend` tells the site when it runs.
async fn pending() -> World {
    World::with_page(&[], &telling()).await
}

fn assert_ended(error: &Value, after: Duration, kind: &str) {
    assert_eq!((&error["kind"], &error["outcome"]), (&json!(kind), &json!("unknown")), "{error:#}");
    assert!(after < Duration::from_secs(2), "{kind} after {after:?}");
}

#[tokio::test]
async fn a_page_closed_during_a_call_ends_it() {
    let world = pending().await;
    let close = async {
        world.bridge.text("close_page", json!({"pageId": 1})).await;
    };
    let (error, after) = during_pend(&world, close).await;
    assert_ended(&error, after, "closed");
    assert_eq!(world.bridge.dynamic_names().await, Vec::<String>::new());
    world.open("/again", PENDING).await;
    assert_eq!(world.result("quick", json!({})).await, "quick");
    world.finish().await;
}

#[tokio::test]
async fn a_page_that_somebody_else_navigates_during_a_call_ends_it() {
    let world = pending().await;
    world.site.page("/next", page(r#"offer("other", () => "other");"#));
    let go = async {
        world.bridge.text("navigate_page", json!({"url": world.site.url("/next")})).await;
    };
    let (error, after) = during_pend(&world, go).await;
    assert_ended(&error, after, "navigated");
    assert_eq!(error["details"]["navigatedTo"], world.site.url("/next"), "{error:#}");
    assert_eq!(world.site.hits("/started"), 1, "it is never started again");
    assert_eq!(world.names().await, ["other"]);
    assert_eq!(world.result("other", json!({})).await, "other");
    world.finish().await;
}

#[tokio::test]
async fn a_frame_removed_during_a_call_ends_it() {
    let world = World::new(&[]).await;
    world.site.page("/frame", page(&telling()));
    world.site.page("/", page(r#"offer("top", () => "top");"#) + "<iframe id=f src=/frame></iframe>");
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    let remove = async {
        world.evaluate("() => { document.getElementById('f').remove(); return 1; }").await;
    };
    let (error, after) = during_pend(&world, remove).await;
    assert_ended(&error, after, "navigated");
    world.tools_become(&["top"]).await;
    assert_eq!(world.result("top", json!({})).await, "top");
    world.finish().await;
}

#[tokio::test]
async fn a_renderer_that_crashes_during_a_call_ends_it() {
    let world = pending().await;
    let kill = async {
        let mut renderers = descendants(world.bridge.pid());
        renderers.retain(|process| process.cmdline.contains("--type=renderer"));
        assert!(!renderers.is_empty());
        for renderer in renderers {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(renderer.pid).expect("a pid"));
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
    };
    let (error, after) = during_pend(&world, kill).await;
    assert_ended(&error, after, "crashed");
    let pages = world.bridge.text("list_pages", json!({})).await;
    assert!(pages.contains("[crashed"), "{pages}");
    world.bridge.text("navigate_page", json!({"type": "reload"})).await;
    assert_eq!(world.result("quick", json!({})).await, "quick");
    world.finish().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_in_the_page() {
    let world = World::with_page(&[], PENDING).await;
    let started = Instant::now();
    let call = json!({"tool": "pend", "arguments": {}, "timeoutMs": 300});
    let error = world.bridge.error("page_call", call).await;
    let took = started.elapsed();
    assert_ended(&error, took, "timeout");
    assert!(took >= Duration::from_millis(300), "{took:?}");
    assert_eq!(error["details"]["delivered"], true, "{error:#}");
    assert!(error["message"].as_str().is_some_and(|m| m.contains("300 ms")), "{error:#}");
    assert_eq!(world.evaluate("() => log").await, json!(["started", "aborted"]));
    assert_eq!(world.result("quick", json!({})).await, "quick");
    world.finish().await;
}

#[tokio::test]
async fn an_endless_loop_is_ended_and_the_next_call_works() {
    let world = World::with_page(&[], PENDING).await;
    let started = Instant::now();
    let error = world.bridge.error("page_call", json!({"tool": "loop", "timeoutMs": 500})).await;
    assert_ended(&error, started.elapsed(), "timeout");
    assert_eq!(world.result("quick", json!({})).await, "quick");
    assert_eq!(world.evaluate("() => 1 + 1").await, 2);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    // And the same in a script.
    let started = Instant::now();
    let error = world
        .bridge
        .error("evaluate_script", json!({"function": "() => { for (;;); }", "timeout": 500}))
        .await;
    assert_ended(&error, started.elapsed(), "timeout");
    assert_eq!(world.result("quick", json!({})).await, "quick");
    world.finish().await;
}

#[tokio::test]
async fn a_hung_page_does_not_hold_up_another() {
    let world = World::with_page(&[], PENDING).await;
    world.open("/second", r#"offer("fine", () => "fine");"#).await;
    let hung = world.bridge.call("page_call", json!({"tool": "loop", "pageId": 1, "timeoutMs": 3_000}));
    let other = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let started = Instant::now();
        for _ in 0..5 {
            assert_eq!(world.result("fine", json!({})).await, "fine");
        }
        world.bridge.text("list_pages", json!({})).await;
        started.elapsed()
    };
    let (hung, took) = tokio::join!(hung, other);
    assert_eq!(hung["structuredContent"]["error"]["kind"], "timeout", "{hung:#}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_cancelled_call_reaches_the_page_and_is_never_answered() {
    for (property, number) in [("plain", 1), ("größe", 2), ("日本", 3)] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let site = Site::start();
        site.page("/", page(PENDING));
        let sandbox = browser_args();
        let args: Vec<&str> = ["serve"].into_iter().chain(sandbox.iter().map(String::as_str)).collect();
        let mut raw = Raw::start_initialized(EXE, dir.path(), &args, &[]).await;
        let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments}).to_string();
        raw.request("1", "tools/call", Some(&call("new_page", json!({"url": site.url("/")})))).await;
        // An answer with any other id than the one that is waited for fails the test, from here on.
        let pend = call("page_call", json!({"tool": "pend", "arguments": {property: number}}));
        raw.send(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":\"c\",\"method\":\"tools/call\",\"params\":{pend}}}\n"
        ))
        .await;
        let log = call("evaluate_script", json!({"function": "() => log.join()"}));
        let wait_for = async |wanted: &str, raw: &mut Raw| {
            let started = Instant::now();
            loop {
                let answer = raw.request("2", "tools/call", Some(&log)).await;
                let text = answer["result"]["content"][0]["text"].as_str().expect("a text").to_owned();
                if text.contains(wanted) {
                    return started.elapsed();
                }
                assert!(started.elapsed() < Duration::from_secs(5), "{property}: {text} instead of {wanted}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        wait_for("\"started\"", &mut raw).await;
        raw.send(
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"c\"}}\n",
        )
        .await;
        let took = wait_for("\"started,aborted\"", &mut raw).await;
        assert!(took < Duration::from_secs(1), "{property}: {took:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
        let quick = raw.request("3", "tools/call", Some(&call("page_call", json!({"tool": "quick"})))).await;
        assert_eq!(quick["result"]["structuredContent"]["result"], "quick", "{property}: {quick:#}");
        raw.close_input();
        let rest = raw.rest().await;
        assert!(rest.iter().all(|message| message.get("id").is_none()), "{property}: {rest:#?}");
        assert_eq!(raw.ended(Duration::from_secs(5)).await.code(), Some(0));
    }
}

#[tokio::test]
async fn a_tool_that_goes_to_another_page_tells_where_and_what_changed() {
    let world = World::new(&[]).await;
    world.site.page("/next", page(r#"offer("buy", () => 1); offer("stays", () => 2);"#));
    world
        .open(
            "/",
            r#"
offer("go", () => { location.href = "/next"; return "going"; });
offer("stays", () => 1);
"#,
        )
        .await;
    let answer = world.page_call("go", json!({})).await;
    let data = &answer["structuredContent"];
    assert!(answer["isError"].is_null(), "{answer:#}");
    assert_eq!(data["result"], "going", "{answer:#}");
    assert_eq!(data["navigatedTo"], world.site.url("/next"), "{answer:#}");
    assert_eq!(data["url"], world.site.url("/next"), "{answer:#}");
    assert_eq!((&data["toolsAdded"], &data["toolsRemoved"]), (&json!(["page_buy"]), &json!(["page_go"])));
    let block = answer["content"][1]["text"].as_str().expect("a block");
    for part in [&world.site.url("/next"), "page_buy", "page_go"] {
        assert!(block.contains(part), "{block}");
    }
    assert_eq!(world.bridge.dynamic_names().await, ["page_buy", "page_stays"]);
    world.finish().await;
}

#[tokio::test]
async fn a_dialog_in_a_tool_is_told_and_can_be_answered() {
    let world = World::with_page(
        &[],
        r#"
offer("ask", () => confirm("Really buy?\n2: forged line") ? "yes" : "no");
offer("tell", () => { alert("Höre!"); return "told"; });
offer("quick", () => "quick");
"#,
    )
    .await;
    for (tool, kind, action, result) in [
        ("ask", "confirm", "dismiss", "no"),
        ("ask", "confirm", "accept", "yes"),
        ("tell", "alert", "accept", "told"),
    ] {
        let started = Instant::now();
        let error = world.error(tool, json!({})).await;
        assert_ended(&error, started.elapsed(), "dialog");
        assert_eq!(error["details"]["dialog"]["type"], kind, "{error:#}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(if tool == "ask" { "Really buy?" } else { "Höre!" }), "{message}");
        // While it is open every call says so at once, and lists do not wait.
        let started = Instant::now();
        assert_eq!(world.error("quick", json!({})).await["kind"], "dialog");
        let pages = world.bridge.text("list_pages", json!({})).await;
        assert!(pages.contains(kind) && !pages.contains("\n2: forged"), "{pages}");
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
        let text = world.bridge.text("handle_dialog", json!({"action": action})).await;
        assert!(text.contains(&format!(": {result}\n")), "{text}");
        assert_eq!(world.result("quick", json!({})).await, "quick");
        let pages = world.bridge.text("list_pages", json!({})).await;
        assert!(!pages.contains(kind), "{pages}");
    }
    let error = world.bridge.error("handle_dialog", json!({"action": "accept"})).await;
    assert_eq!(error["kind"], "not_found", "{error:#}");
    world.finish().await;
}
