//! Dialogs, wherever they come up: nobody waits behind them, everybody is told, and they can be answered.

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::World;

const SOON: Duration = Duration::from_secs(2);

/// Runs ten calls of many kinds: those of the page tell of the dialog, all others work, none waits.
async fn ten_calls(world: &World, page: u64, said: &str) {
    for tool in ["evaluate_script", "page_call", "navigate_page"] {
        let arguments = match tool {
            "evaluate_script" => json!({"function": "() => 1", "pageId": page}),
            "page_call" => json!({"tool": "add", "pageId": page}),
            _ => json!({"type": "reload", "pageId": page}),
        };
        let started = Instant::now();
        let error = world.bridge.error(tool, arguments).await;
        assert!(started.elapsed() < SOON, "{tool} waited");
        assert_eq!(
            (&error["kind"], &error["outcome"]),
            (&json!("dialog"), &json!("not_run")),
            "{tool}: {error}"
        );
        assert!(error["message"].as_str().unwrap().contains(said), "{tool}: {error}");
    }
    let started = Instant::now();
    assert!(world.bridge.text("list_pages", json!({})).await.contains(said));
    world.bridge.text("bridge_info", json!({})).await;
    world.bridge.request("ping", json!({})).await;
    world.bridge.tools().await;
    world.bridge.call("page_tools", json!({"pageId": page})).await;
    world.bridge.text("new_page", json!({"url": world.site.url("/plain")})).await;
    world.bridge.text("evaluate_script", json!({"function": "() => 1"})).await;
    assert!(started.elapsed() < 3 * SOON, "something waited behind the dialog: {:?}", started.elapsed());
}

async fn answer(world: &World, page: u64, arguments: Value) -> String {
    let mut arguments = arguments;
    arguments["pageId"] = json!(page);
    let started = Instant::now();
    let text = world.bridge.text("handle_dialog", arguments).await;
    assert!(started.elapsed() < SOON + SOON, "handle_dialog waited");
    text
}

async fn world() -> World {
    let world = World::new(&[]).await;
    world.site.page("/plain", "plain");
    world
}

const ADD: &str = "document.modelContext.registerTool({name: 'add', description: 'd', execute: () => 7});";

#[tokio::test]
async fn an_alert_while_a_page_loads() {
    let world = world().await;
    world.site.page("/", format!("<script>{ADD} alert('hello é'); document.title = 'after'</script>"));
    let opened = world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    assert!(opened.contains("alert dialog \"hello é\"") && opened.contains("handle_dialog"), "{opened}");
    ten_calls(&world, 1, "hello é").await;
    answer(&world, 1, json!({"action": "accept"})).await;
    assert!(!world.bridge.text("list_pages", json!({})).await.contains("dialog"));
    world.bridge.text("select_page", json!({"pageId": 1})).await;
    assert_eq!(world.bridge.page_call("add", json!({})).await["result"], 7);
    let none = world.bridge.error("handle_dialog", json!({"action": "accept"})).await;
    assert_eq!(none["kind"], "not_found");
    world.finish().await;
}

#[tokio::test]
async fn a_dialog_inside_a_page_tool() {
    let world = world().await;
    world.site.page("/", format!("<script>{ADD} document.modelContext.registerTool({{name: 'ask', description: 'd', execute: () => [confirm('sure?'), prompt('name?', 'Zoë')]}});</script>"));
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    let started = Instant::now();
    let error = world.bridge.error("page_call", json!({"tool": "ask"})).await;
    assert!(started.elapsed() < SOON);
    assert_eq!((&error["kind"], &error["outcome"]), (&json!("dialog"), &json!("unknown")));
    assert_eq!(error["details"]["dialog"], json!({"type": "confirm", "message": "sure?"}));
    ten_calls(&world, 1, "sure?").await;
    let next = answer(&world, 1, json!({"action": "accept"})).await;
    assert!(next.contains("prompt dialog \"name?\" (suggesting \"Zoë\")"), "{next}");
    let done = answer(&world, 1, json!({"action": "accept", "promptText": "Ünal"})).await;
    assert!(done.contains(r#"gave: [true,"Ünal"]"#), "{done}");
    world.bridge.text("select_page", json!({"pageId": 1})).await;
    assert_eq!(world.bridge.page_call("add", json!({})).await["result"], 7);
    world.finish().await;
}

#[tokio::test]
async fn a_dialog_in_a_script_after_a_while_and_in_a_background_page() {
    let world = world().await;
    world.site.page("/", format!("<script>{ADD}</script>"));
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    let error = world.bridge.error("evaluate_script", json!({"function": "() => prompt('now')"})).await;
    assert_eq!((&error["kind"], &error["outcome"]), (&json!("dialog"), &json!("unknown")));
    answer(&world, 1, json!({"action": "dismiss"})).await;
    world
        .bridge
        .text("evaluate_script", json!({"function": "() => void setTimeout(() => alert('late'), 100)"}))
        .await;
    world.bridge.text("new_page", json!({"url": world.site.url("/plain")})).await;
    // Timers of a page in the background may be slowed down to one a second.
    let started = Instant::now();
    while !world.bridge.text("list_pages", json!({})).await.contains("late") {
        assert!(started.elapsed() < Duration::from_secs(10), "no dialog came up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ten_calls(&world, 1, "late").await;
    answer(&world, 1, json!({"action": "accept"})).await;
    assert_eq!(
        world.bridge.call("page_call", json!({"tool": "add", "pageId": 1})).await["structuredContent"]["result"],
        7
    );
    world.finish().await;
}

#[tokio::test]
async fn a_page_that_asks_before_it_is_left() {
    let world = world().await;
    world.site.page("/", "<button style='width:100vw;height:100vh'>x</button><script>addEventListener('beforeunload', (e) => e.preventDefault())</script>");
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    // Chromium asks only when the user has touched the page; a script run by us counts as one.
    world
        .bridge
        .text("evaluate_script", json!({"function": "() => document.querySelector('button').click()"}))
        .await;
    let stay = world
        .bridge
        .call("navigate_page", json!({"url": world.site.url("/plain"), "handleBeforeUnload": "decline"}))
        .await;
    if stay["isError"] == true {
        assert_eq!(stay["structuredContent"]["error"]["kind"], "declined", "{stay}");
        assert!(world.bridge.text("list_pages", json!({})).await.contains(&world.site.url("/")));
        let left = world.bridge.text("navigate_page", json!({"url": world.site.url("/plain")})).await;
        assert!(left.contains("/plain"), "{left}");
    }
    world.bridge.text("close_page", json!({"pageId": 1})).await;
    world.finish().await;
}

#[tokio::test]
async fn a_dialog_goes_with_its_page() {
    let world = world().await;
    world.site.page("/", "<script>setTimeout(() => alert('x'), 50)</script>");
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    let started = Instant::now();
    while !world.bridge.text("list_pages", json!({})).await.contains("alert") {
        assert!(started.elapsed() < Duration::from_secs(10), "no dialog came up");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.bridge.text("close_page", json!({"pageId": 1})).await;
    assert!(!world.bridge.text("list_pages", json!({})).await.contains("alert"));
    world.bridge.text("new_page", json!({"url": world.site.url("/plain")})).await;
    world.finish().await;
}
