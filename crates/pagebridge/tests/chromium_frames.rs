//! Tools in frames: of the page's origin, of others, in processes of their own.

mod support;

use std::time::Duration;

use pagebridge_testkit::site::Site;
use serde_json::{Value, json};
use support::World;

fn tool(name: &str, options: &str) -> String {
    format!(
        "document.modelContext.registerTool({{name: '{name}', description: 'd', execute() {{ return location.href }}}}, {options});"
    )
}

/// A page on 127.0.0.1 with a frame from localhost that exposes one tool and keeps one to itself, and in that
/// frame another one from 127.0.0.1.
fn nested(site: &Site) {
    let top = site.url("/").trim_end_matches('/').to_owned();
    let frame = site.localhost_url("/frame");
    site.page(
        "/",
        format!("<iframe allow='tools *' src='{frame}'></iframe><script>{}</script>", tool("top", "{}")),
    );
    let exposed = tool("exposed", &format!("{{exposedTo: ['{top}']}}"));
    let inner = site.url("/inner");
    let hidden = tool("hidden", "{}");
    site.page(
        "/frame",
        format!("<iframe allow='tools *' src='{inner}'></iframe><script>{exposed}{hidden}</script>"),
    );
    site.page("/inner", format!("<script>{}</script>", tool("inner", "{}")));
}

async fn listed(world: &World) -> (Vec<String>, Vec<String>) {
    let list = world.bridge.call("page_tools", json!({})).await["structuredContent"]["pages"][0].clone();
    let names = |key: &str| {
        let mut names: Vec<String> =
            list[key].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    (names("tools"), names("skipped"))
}

/// The list once it holds as many tools as expected: frames of other processes load on their own.
async fn listed_when(world: &World, tools: usize) -> (Vec<String>, Vec<String>) {
    for _ in 0..100 {
        let found = listed(world).await;
        if found.0.len() == tools {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    listed(world).await
}

#[tokio::test]
async fn frames_of_other_origins_offer_only_what_they_expose() {
    let world = World::new(&[]).await;
    nested(&world.site);
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    let (tools, skipped) = listed_when(&world, 3).await;
    assert_eq!(tools, ["exposed", "inner", "top"]);
    assert_eq!(skipped, ["hidden"]);
    let called = world.bridge.page_call("exposed", json!({})).await;
    assert_eq!(called["result"], world.site.localhost_url("/frame"));
    assert_eq!(called["origin"], world.site.localhost_url("/frame").trim_end_matches("/frame"));
    assert_eq!(world.bridge.page_call("inner", json!({})).await["result"], world.site.url("/inner"));
    let error = world.bridge.error("page_call", json!({"tool": "hidden"})).await;
    assert_eq!(error["kind"], "not_found");
    world.finish().await;
}

#[tokio::test]
async fn an_allowed_origin_offers_all_its_tools() {
    let site = Site::start();
    let origin = site.localhost_url("/").trim_end_matches('/').to_owned();
    let world = World { site, ..World::new(&["--allow-frames", &origin]).await };
    nested(&world.site);
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    let (tools, skipped) = listed_when(&world, 4).await;
    assert_eq!(tools, ["exposed", "hidden", "inner", "top"]);
    assert!(skipped.is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_frame_may_reload_leave_its_process_come_back_and_be_replaced() {
    let world = World::new(&[]).await;
    nested(&world.site);
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    listed_when(&world, 3).await;
    let run = async |script: String| {
        world.bridge.text("evaluate_script", json!({"function": format!("() => {{ {script} }}")})).await;
    };
    let frame = "document.querySelector('iframe')";
    run(format!("{frame}.src = '{}'", world.site.url("/inner"))).await;
    let (tools, _) = listed_when(&world, 2).await;
    assert_eq!(tools, ["inner", "top"]);
    assert_eq!(world.bridge.page_call("inner", json!({})).await["result"], world.site.url("/inner"));
    run(format!("{frame}.src = '{}'", world.site.localhost_url("/frame"))).await;
    let (tools, skipped) = listed_when(&world, 3).await;
    assert_eq!((tools.join(" "), skipped.join(" ")), ("exposed inner top".into(), "hidden".into()));
    world.bridge.page_call("exposed", json!({})).await;
    run(format!("const f = {frame}; f.remove(); document.body.append(f)")).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    listed_when(&world, 3).await;
    world.bridge.page_call("exposed", json!({})).await;
    run(format!("{frame}.remove()")).await;
    assert_eq!(listed_when(&world, 1).await.0, ["top"]);
    world.finish().await;
}

#[tokio::test]
async fn a_frame_that_goes_ends_its_calls_and_no_others() {
    let world = World::new(&[]).await;
    let pend = "document.modelContext.registerTool({name: 'pend', description: 'd', execute() { return new Promise(() => {}) }}, {exposedTo: ['TOP']});"
        .replace("TOP", world.site.url("/").trim_end_matches('/'));
    world.site.page("/pend", format!("<script>{pend}</script>"));
    let frame = world.site.localhost_url("/pend");
    world.site.page(
        "/",
        format!("<iframe allow='tools *' src='{frame}'></iframe><script>{}</script>", tool("top", "{}")),
    );
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    for (script, kind) in [
        ("document.querySelector('iframe').remove()", "navigated"),
        ("document.querySelector('iframe').src = 'about:blank'", "navigated"),
    ] {
        listed_when(&world, 2).await;
        let pending = world.bridge.call("page_call", json!({"tool": "pend"}));
        let removal = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            world.bridge.text("evaluate_script", json!({"function": format!("() => {{ {script} }}")})).await;
            let started = std::time::Instant::now();
            world.bridge.page_call("top", json!({})).await;
            assert!(started.elapsed() < Duration::from_secs(1));
        };
        let started = std::time::Instant::now();
        let (ended, ()) = tokio::join!(pending, removal);
        assert_eq!(ended["structuredContent"]["error"]["kind"], kind, "{ended}");
        assert_eq!(ended["structuredContent"]["error"]["outcome"], "unknown");
        assert!(started.elapsed() < Duration::from_secs(3));
        world.bridge.text("navigate_page", json!({"type": "reload"})).await;
    }
    world.finish().await;
}

#[tokio::test]
async fn a_sandboxed_frame_and_a_data_frame_offer_nothing_and_harm_nothing() {
    let world = World::new(&[]).await;
    world.site.page("/box", format!("<script>{}</script>", tool("boxed", "{}")));
    world.site.page(
        "/",
        format!(
            "<iframe sandbox='allow-scripts' allow='tools *' src='/box'></iframe><iframe src='data:text/html,x'></iframe>\
             <script>{}</script>",
            tool("top", "{}")
        ),
    );
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (tools, skipped) = listed(&world).await;
    assert_eq!(tools, ["top"]);
    assert!(skipped.is_empty() || skipped == ["boxed"], "{skipped:?}");
    let _: Value = world.bridge.page_call("top", json!({})).await;
    world.finish().await;
}
