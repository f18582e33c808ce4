//! Addresses, history, and lists that keep up with what the page does.

mod support;

use std::time::{Duration, Instant};

use serde_json::json;
use support::{World, page};

const ONE: &str = r#"offer("one", () => "one");"#;

#[tokio::test]
async fn local_files_and_the_browsers_own_pages_are_refused() {
    let world = World::with_page(&[], ONE).await;
    for (url, kind) in [
        ("file:///etc/passwd", "not_allowed"),
        ("FILE:///etc/passwd", "not_allowed"),
        ("view-source:file:///etc/passwd", "not_allowed"),
        ("chrome://settings", "not_allowed"),
        ("chrome://crash", "not_allowed"),
        ("devtools://devtools/bundled/inspector.html", "not_allowed"),
        ("javascript:alert(1)", "not_allowed"),
        ("no address", "invalid_arguments"),
        ("", "invalid_arguments"),
    ] {
        for tool in ["new_page", "navigate_page"] {
            let error = world.bridge.error(tool, json!({"url": url})).await;
            assert_eq!(
                (&error["kind"], &error["outcome"]),
                (&json!(kind), &json!("not_run")),
                "{tool} {url}: {error:#}"
            );
        }
    }
    let pages = world.bridge.text("list_pages", json!({})).await;
    assert_eq!(pages.lines().count(), 2, "no page was opened: {pages}");
    assert_eq!(world.result("one", json!({})).await, "one");
    world.finish().await;
}

#[tokio::test]
async fn an_address_that_cannot_be_loaded_is_an_error_and_the_next_call_works() {
    let world = World::with_page(&[], ONE).await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    for url in
        [format!("http://{free}/"), "http://no-such-host.invalid/".into(), "http://127.0.0.1:1/".into()]
    {
        let error = world.bridge.error("navigate_page", json!({"url": url})).await;
        assert_eq!(
            (&error["kind"], &error["outcome"]),
            (&json!("navigation_failed"), &json!("failed")),
            "{error:#}"
        );
        assert!(error["message"].as_str().is_some_and(|m| m.contains("net::ERR_")), "{error:#}");
        assert_eq!(world.names().await, Vec::<String>::new(), "an error page offers nothing");
        world.bridge.text("navigate_page", json!({"url": world.site.url("/")})).await;
        assert_eq!(world.result("one", json!({})).await, "one");
    }
    // A page that answers 404 is a page.
    let text = world.bridge.text("navigate_page", json!({"url": world.site.url("/missing")})).await;
    assert!(text.contains("Page tools that are gone: page_one."), "{text}");
    world.finish().await;
}

#[tokio::test]
async fn a_page_that_loads_too_long_times_out_and_stays() {
    let world = World::with_page(&[], ONE).await;
    world.site.page("/slow", page(r#"offer("slow", () => "slow");"#));
    world.site.delay("/slow", Duration::from_secs(2));
    let started = Instant::now();
    let error =
        world.bridge.error("navigate_page", json!({"url": world.site.url("/slow"), "timeout": 300})).await;
    assert_eq!((&error["kind"], &error["outcome"]), (&json!("timeout"), &json!("unknown")), "{error:#}");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    while world.names().await != ["slow"] {
        assert!(started.elapsed() < Duration::from_secs(10), "it goes on loading");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(world.result("slow", json!({})).await, "slow");
    world.finish().await;
}

#[tokio::test]
async fn back_forward_and_reload_leave_each_tool_there_once() {
    let world = World::new(&[]).await;
    world.site.page("/two", page(r#"offer("two", () => "two");"#));
    // A page kept alive counts on; one loaded anew begins again.
    let counting = r#"self.count = 0; offer("one", () => ++count);"#;
    world.open("/one", counting).await;
    assert_eq!(world.result("one", json!({})).await, 1);
    world.bridge.text("navigate_page", json!({"url": world.site.url("/two")})).await;
    assert_eq!(world.names().await, ["two"]);
    for _ in 0..2 {
        let text = world.bridge.text("navigate_page", json!({"type": "back"})).await;
        assert!(text.contains("New page tools: page_one."), "{text}");
        assert_eq!(world.names().await, ["one"]);
        assert_eq!(world.bridge.dynamic_names().await, ["page_one"]);
        let answer = world.bridge.call("page_one", json!({})).await;
        assert!(answer["structuredContent"]["result"].is_u64(), "{answer:#}");
        world.bridge.text("navigate_page", json!({"type": "forward"})).await;
        assert_eq!(world.names().await, ["two"]);
        assert_eq!(world.bridge.dynamic_names().await, ["page_two"]);
        assert_eq!(world.result("two", json!({})).await, "two");
    }
    assert_eq!(world.site.hits("/one"), 1, "the page came back from the browser's memory");
    world.bridge.text("navigate_page", json!({"type": "back"})).await;
    assert_eq!(world.result("one", json!({})).await, 4, "and is the very same page");
    let text = world.bridge.text("navigate_page", json!({"type": "reload"})).await;
    assert!(!text.contains("page tools"), "nothing came or went: {text}");
    assert_eq!(world.names().await, ["one"]);
    assert_eq!(world.result("one", json!({})).await, 1, "it was loaded anew");
    // Before it there is only the blank page that every page begins as.
    world.bridge.text("navigate_page", json!({"type": "back"})).await;
    assert_eq!(world.bridge.dynamic_names().await, Vec::<String>::new());
    let error = world.bridge.error("navigate_page", json!({"type": "back"})).await;
    assert_eq!((&error["kind"], &error["outcome"]), (&json!("not_found"), &json!("not_run")), "{error:#}");
    world.finish().await;
}

#[tokio::test]
async fn a_view_change_within_the_document_changes_the_list() {
    let mut world = World::with_page(
        &[],
        r#"
self.list = offer("list", () => "list");
offer("kept", () => "kept");
self.go = () => { history.pushState(null, "", "/detail"); list.abort(); offer("detail", () => "detail"); return 1; };
"#,
    )
    .await;
    world.bridge.pending_list_changes();
    assert_eq!(world.bridge.dynamic_names().await, ["page_kept", "page_list"]);
    world.evaluate("() => go()").await;
    assert!(world.bridge.list_changed(Duration::from_secs(2)).await);
    world.tools_become(&["detail", "kept"]).await;
    let error = world.error("list", json!({})).await;
    assert_eq!(error["kind"], "not_found", "{error:#}");
    let answer = world.page_call("detail", json!({})).await;
    assert_eq!(answer["structuredContent"]["url"], world.site.url("/detail"), "{answer:#}");
    world.finish().await;
}

#[tokio::test]
async fn a_page_that_changes_its_tools_all_the_time_is_announced_with_measure() {
    let mut world = World::with_page(&[], ONE).await;
    world.bridge.dynamic_names().await;
    world.bridge.pending_list_changes();
    let flicker = "() => { let n = 0; const t = setInterval(() => { const c = offer('f' + n, () => n); \
        if (++n < 200) setTimeout(() => c.abort(), 5); else { clearInterval(t); document.title = 'done'; } }, 10); return 1; }";
    let started = Instant::now();
    world.evaluate(flicker).await;
    // A second of quiet is the end.
    let mut announced = 0;
    let mut last = started;
    while world.bridge.list_changed(Duration::from_secs(1)).await {
        announced += 1;
        last = Instant::now();
        assert!(started.elapsed() < Duration::from_secs(20), "the page is done some time");
    }
    let took = last - started;
    // One in 50 ms at most; two hundred tools came and went.
    let most = usize::try_from(took.as_millis() / 50).expect("few") + 2;
    assert!((2..=most).contains(&announced), "{announced} notifications in {took:?}");
    assert!(announced <= 50, "{announced} notifications in {took:?}");
    let pages = world.bridge.text("list_pages", json!({})).await;
    assert!(pages.contains("\"done\""), "{pages}");
    assert_eq!(world.names().await, ["f199", "one"]);
    assert_eq!(world.bridge.dynamic_names().await, ["page_f199", "page_one"]);
    assert_eq!(world.result("f199", json!({})).await, 200);
    assert!(!world.bridge.list_changed(Duration::from_millis(300)).await, "and then it is quiet");
    world.finish().await;
}
