//! Pages that do odd things: the list tells what is really there, calls end with what really happened, and the
//! next call works.

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::World;

/// Ten calls of a well-behaved tool, to show that what came before left nothing behind.
async fn ten_good_calls(world: &World) {
    for n in 0..10 {
        assert_eq!(world.result("add", json!({"a": n})).await, n + 1);
    }
}

const ADD: &str = "offer('add', ({ a }) => a + 1);";

#[tokio::test]
async fn results_that_are_hard_to_carry() {
    let world = World::with_page(
        &[],
        &format!(
            "{ADD}
            offer('megabytes', () => 'x'.repeat(20 * 1024 * 1024));
            offer('levels', () => {{ let v = 1; for (let i = 0; i < 200; i++) v = [v]; return v }});
            offer('many_levels', () => {{ let v = 1; for (let i = 0; i < 2000; i++) v = {{ v }}; return JSON.stringify(v) }});
            offer('lone', () => ({{ text: 'a\\ud800b' }}));
            offer('cycle', () => {{ const c = {{}}; c.c = c; return c }});"
        ),
    )
    .await;
    let big = world.page_call("megabytes", json!({})).await;
    assert!(big["isError"].is_null(), "{}", big["content"]);
    assert!(big.to_string().len() < 400_000);
    assert_eq!(big["structuredContent"]["status"], "cut");
    let file = big["structuredContent"]["result"]["file"].as_str().unwrap();
    assert_eq!(std::fs::metadata(file).unwrap().len(), 20 * 1024 * 1024 + 2);
    for deep in ["levels", "many_levels"] {
        let result = world.result(deep, json!({})).await;
        assert!(result.as_str().unwrap().starts_with(['[', '{']), "{deep}");
    }
    assert_eq!(world.result("lone", json!({})).await, json!({"text": "a\u{fffd}b"}));
    let cycle = world.error("cycle", json!({})).await;
    assert_eq!((&cycle["kind"], &cycle["outcome"]), (&json!("threw"), &json!("failed")));
    ten_good_calls(&world).await;
    world.finish().await;
}

#[tokio::test]
async fn a_result_that_crashes_the_renderer_is_told_and_the_page_can_be_loaded_again() {
    let world = World::with_page(&[], &format!("{ADD} offer('symbol', () => Symbol('x'));")).await;
    let started = Instant::now();
    let error = world.error("symbol", json!({})).await;
    assert!(started.elapsed() < Duration::from_secs(3));
    // A Chromium that does not crash any more may answer in its own way.
    assert!(["crashed", "threw"].contains(&error["kind"].as_str().unwrap()), "{error}");
    world.bridge.text("navigate_page", json!({"type": "reload"})).await;
    ten_good_calls(&world).await;
    world.finish().await;
}

#[tokio::test]
async fn forms_that_navigate_answer_with_what_the_next_page_says() {
    let world = World::new(&[]).await;
    let form = |action: &str| {
        format!(
            "<form toolname=go tooldescription=Goes. toolautosubmit action={action}><input name=q><button>Go</button></form>"
        )
    };
    world.site.page(
        "/",
        format!("{}<script>{ADD}</script>", form("/next")).replace("offer('add', ({ a }) => a + 1);", ""),
    );
    world.site.page("/silent", form("/plain"));
    world.site.page("/plain", "<title>Plain</title>nothing here");
    world.site.page(
        "/next",
        "<script type='application/ld+json'>{\"@type\":\"Thing\",\"name\":\"é\"}</script><script>document.modelContext.registerTool({name: 'arrived', description: 'd', execute: () => 1})</script>",
    );
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    let told = world.bridge.page_call("go", json!({"q": "x"})).await;
    assert_eq!(told["result"], json!([{"@type": "Thing", "name": "é"}]), "{told}");
    assert_eq!(told["navigatedTo"], world.site.url("/next?q=x"));
    assert_eq!((&told["toolsAdded"], &told["toolsRemoved"]), (&json!(["page_arrived"]), &json!(["page_go"])));
    assert_eq!(world.result("arrived", json!({})).await, 1);
    world.bridge.text("navigate_page", json!({"url": world.site.url("/silent")})).await;
    let silent = world.bridge.page_call("go", json!({})).await;
    assert_eq!(silent["navigatedTo"], world.site.url("/plain?q="), "{silent}");
    assert_eq!(world.site.hits("/next") + world.site.hits("/plain"), 2, "each form went once");
    world.finish().await;
}

#[tokio::test]
async fn a_form_that_waits_for_a_person_ends_at_its_deadline_and_can_be_called_again() {
    let world = World::new(&[]).await;
    world
        .site
        .page("/", "<form toolname=wait tooldescription=Waits.><input name=q><button>Go</button></form>");
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    for _ in 0..2 {
        let error = world
            .bridge
            .error("page_call", json!({"tool": "wait", "arguments": {"q": "x"}, "timeoutMs": 400}))
            .await;
        assert_eq!((&error["kind"], &error["outcome"]), (&json!("timeout"), &json!("unknown")), "{error}");
    }
    world.finish().await;
}

#[tokio::test]
async fn pages_without_tools_list_none_and_back_brings_them_once() {
    let world = World::with_page(&[], ADD).await;
    world.site.answer(
        "/file",
        200,
        &[("content-disposition", "attachment"), ("content-type", "application/octet-stream")],
        "x",
    );
    world.site.page("/other", support::page("offer('other', () => 2);"));
    assert_eq!(world.names().await, ["add"]);
    world.bridge.call("navigate_page", json!({"url": world.site.url("/file")})).await;
    assert_eq!(world.names().await, ["add"], "a download leaves the page where it is");
    for address in ["about:blank", "data:text/html,x", "http://127.0.0.1:9/"] {
        world.bridge.call("navigate_page", json!({"url": address})).await;
        let list = world.page_tools().await;
        assert_eq!(list["tools"], json!([]), "{address}: {list}");
        assert!(list["reason"].is_string(), "{address}: {list}");
    }
    world.bridge.text("navigate_page", json!({"url": world.site.url("/")})).await;
    world.bridge.text("navigate_page", json!({"url": world.site.url("/other")})).await;
    for (step, names) in [("back", "add"), ("forward", "other"), ("back", "add"), ("reload", "add")] {
        world.bridge.text("navigate_page", json!({"type": step})).await;
        assert_eq!(world.names().await, [names], "after {step}");
    }
    ten_good_calls(&world).await;
    world.finish().await;
}

#[tokio::test]
async fn workers_of_every_kind_start_and_their_pages_work() {
    let world = World::new(&[]).await;
    for script in ["/worker.js", "/service.js"] {
        world.site.answer(script, 200, &[("content-type", "text/javascript")], "self.onmessage = () => self.postMessage('up'); self.onconnect = (e) => e.ports[0].postMessage('up'); self.onfetch = () => {};");
    }
    world.site.page(
        "/",
        support::page(&format!(
            "{ADD}
            window.state = {{}};
            const worker = new Worker('/worker.js'); worker.onmessage = () => state.dedicated = true; worker.postMessage(1);
            const shared = new SharedWorker('/worker.js'); shared.port.onmessage = () => state.shared = true; shared.port.start();
            navigator.serviceWorker.register('/service.js').then(() => navigator.serviceWorker.ready).then(() => state.service = true);
            navigator.serviceWorker.register('/none.js').catch(() => state.refused = true);"
        )),
    );
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    let all = json!({"dedicated": true, "shared": true, "service": true, "refused": true});
    let started = Instant::now();
    let mut state = Value::Null;
    while started.elapsed() < Duration::from_secs(5) {
        state = world.evaluate("() => ({ dedicated: state.dedicated, shared: state.shared, service: state.service, refused: state.refused })").await;
        if state == all {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(state, all);
    world.bridge.text("navigate_page", json!({"type": "reload"})).await;
    ten_good_calls(&world).await;
    world.finish().await;
}

#[tokio::test]
async fn windows_that_a_page_opens_are_pages_with_tools() {
    let world = World::with_page(&[], &format!("{ADD} offer('open_it', () => {{ open('/child'); open('/child', '_blank', 'noopener'); return 1 }});")).await;
    world.site.page("/child", support::page("offer('child', () => 'from the child');"));
    // A tool has no user activation; Chromium may block what it opens. A script of ours has.
    world.evaluate("() => { open('/child'); return 1 }").await;
    let started = Instant::now();
    let child = loop {
        let called = world.bridge.call("page_call", json!({"tool": "child", "pageId": 2})).await;
        if called["isError"].is_null() || started.elapsed() > Duration::from_secs(5) {
            break called;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(child["structuredContent"]["result"], "from the child", "{child}");
    ten_good_calls(&world).await;
    world.finish().await;
}

#[tokio::test]
async fn arguments_arrive_as_the_client_wrote_them() {
    let world = World::with_page(&[], "offer('echo', (x) => JSON.stringify(x));").await;
    let odd = json!({"z": 1, "a": {"名前": ["é", null, 1.5, -2.5, 1e21, "\u{2028}\u{0}"]}, "b": "\\ud800", "": {}, "__proto__": 1});
    assert_eq!(world.result("echo", odd.clone()).await, odd);
    let plain = json!({"z": 1, "a": [true, {"b": "ü"}], "n": 9007199254740991u64});
    assert_eq!(world.result("echo", plain.clone()).await, plain);
    world.finish().await;
}
