//! Pages that bring WebMCP themselves: a polyfill, or one of the API's earlier generations.

mod support;

use std::time::Duration;

use serde_json::json;
use support::World;

/// A shim with the browser's own API out of the way. `where_` is the entry point, `schema` and `input` say how
/// the generation writes a schema and reads an input.
fn shim(where_: &str, schema: &str, input: &str) -> String {
    format!(
        r#"<script>
        delete Document.prototype.modelContext;
        const tools = new Map(), target = new EventTarget();
        const api = {{
          addEventListener: (...a) => target.addEventListener(...a),
          registerTool(tool) {{ tools.set(tool.name, tool); target.dispatchEvent(new Event("toolchange")); }},
          async getTools() {{ return [...tools.values()].map((t) => ({{ name: t.name, description: t.description, inputSchema: {schema}(t.inputSchema), window }})); }},
          async executeTool(tool, input) {{ return JSON.stringify(await tools.get(tool.name).execute({input}(input))); }},
        }};
        Object.defineProperty({where_}, "modelContext", {{ value: api, configurable: true }});
        const add = {{ name: "add", description: "Adds.", inputSchema: {{ type: "object", properties: {{ "größe": {{ type: "number" }} }}, required: ["größe"] }},
          execute: (given) => ({{ sum: given["größe"] + 1, "é": "ü" }}) }};
        api.registerTool(add);
        api.registerTool({{ name: "broken", description: "b", inputSchema: "{{", execute: () => 1 }});
        window.late = () => api.registerTool({{ ...add, name: "late" }});
        </script>"#
    )
}

const OBJECT: &str = "((x) => x)";
const TEXT: &str = "JSON.stringify";
const PARSE: &str = "JSON.parse";

#[tokio::test]
async fn every_generation_gives_the_same_list_and_the_same_results() {
    let world = World::new(&[]).await;
    for (place, schema, input) in [
        ("navigator", TEXT, PARSE),
        ("document", TEXT, PARSE),
        ("document", OBJECT, OBJECT),
        ("navigator", OBJECT, OBJECT),
    ] {
        world.site.page("/", shim(place, schema, input));
        world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
        let list = world.bridge.call("page_tools", json!({})).await["structuredContent"]["pages"][0].clone();
        assert_eq!(list["support"], "page", "{place} {schema}: {list:#}");
        let add = list["tools"].as_array().unwrap().iter().find(|t| t["name"] == "add").unwrap();
        assert_eq!(add["inputSchema"]["properties"]["größe"]["type"], "number");
        let broken = list["tools"].as_array().unwrap().iter().find(|t| t["name"] == "broken").unwrap();
        assert_eq!(broken["inputSchema"], json!({"type": "object"}));
        let sum = world.bridge.page_call("add", json!({"größe": 2})).await;
        assert_eq!(sum["result"], json!({"sum": 3, "é": "ü"}), "{place} {schema}");
        let mistake =
            world.bridge.error("page_call", json!({"tool": "add", "arguments": {"größe": "x"}})).await;
        assert_eq!(mistake["kind"], "invalid_arguments");
    }
    world.finish().await;
}

#[tokio::test]
async fn tools_that_a_polyfill_gets_late_are_announced() {
    let mut world = World::new(&[]).await;
    world.site.page("/", shim("document", OBJECT, OBJECT));
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(world.bridge.dynamic_names().await, ["page_add", "page_broken"]);
    world.bridge.pending_list_changes();
    world.bridge.text("evaluate_script", json!({"function": "() => late()"})).await;
    assert!(world.bridge.list_changed(Duration::from_secs(2)).await);
    assert_eq!(world.bridge.dynamic_names().await, ["page_add", "page_broken", "page_late"]);
    world.finish().await;
}

#[tokio::test]
async fn a_polyfill_that_throws_hangs_or_lies_harms_only_its_own_page() {
    let world = World::new(&[]).await;
    for (name, api) in [
        ("throws", "{ getTools() { throw 1 }, executeTool() {} }"),
        ("hangs", "{ getTools: () => new Promise(() => {}), executeTool() {} }"),
        (
            "lies",
            "{ getTools: () => [null, 7, { get name() { throw 1 } }, { name: 'ok', description: 'x'.repeat(1e6), inputSchema: (() => { const a = {}; a.a = a; return a })() }], executeTool: () => { const c = { v: 1n }; c.c = c; return c } }",
        ),
        ("is text", "'text'"),
    ] {
        world.site.page(
            "/",
            format!("<script>Object.defineProperty(document, 'modelContext', {{ value: {api} }})</script>"),
        );
        world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
        let list = world.bridge.call("page_tools", json!({})).await;
        let tools = list["structuredContent"]["pages"][0]["tools"].as_array().unwrap().len();
        assert_eq!(tools, usize::from(name == "lies"), "{name}: {list:#}");
    }
    world.site.page("/", "<script>Object.defineProperty(document, 'modelContext', { value: { getTools: () => [{ name: 'odd', description: 'd' }], executeTool: () => { const c = { v: 1n }; c.c = c; return c } } })</script>");
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    let odd = world.bridge.page_call("odd", json!({})).await;
    assert_eq!(odd["result"], json!({"v": "1", "c": "<circular>"}));
    world.finish().await;
}

#[tokio::test]
async fn a_call_into_a_polyfill_ends_in_every_way() {
    let world = World::new(&[]).await;
    world.site.page(
        "/",
        "<script>Object.defineProperty(document, 'modelContext', { value: { getTools: () => [{ name: 'pend', description: 'd' }, { name: 'fails', description: 'd' }], \
         executeTool: (tool, input, { signal }) => tool.name === 'fails' ? Promise.reject(new TypeError('no')) : new Promise(() => signal.onabort = () => window.aborted = true) } })</script>",
    );
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    let failed = world.bridge.error("page_call", json!({"tool": "fails"})).await;
    assert_eq!(failed["kind"], "threw");
    assert!(failed["message"].as_str().unwrap().contains("no"));
    let late = world.bridge.error("page_call", json!({"tool": "pend", "timeoutMs": 300})).await;
    assert_eq!(late["kind"], "timeout");
    let aborted = world.bridge.text("evaluate_script", json!({"function": "() => window.aborted"})).await;
    assert!(aborted.contains("true"), "{aborted}");
    let pending = world.bridge.call("page_call", json!({"tool": "pend"}));
    let leave = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        world.bridge.text("navigate_page", json!({"url": "about:blank"})).await;
    };
    let (ended, ()) = tokio::join!(pending, leave);
    assert_eq!(ended["structuredContent"]["error"]["kind"], "navigated", "{ended}");
    world.finish().await;
}

#[tokio::test]
async fn pages_that_patch_builtins_change_only_what_they_say_themselves() {
    let world = World::new(&[]).await;
    world.site.page_with_headers(
        "/",
        &[("content-security-policy", "script-src 'nonce-x'; require-trusted-types-for 'script'")],
        "<script nonce=x>\
         document.modelContext.registerTool({name: 'echo', description: 'é', inputSchema: {type: 'object', properties: {ö: {type: 'array'}}}, execute: (x) => x});\
         Array.prototype.toJSON = () => 'patched'; JSON.stringify = () => 'patched'; JSON.parse = () => 'patched';\
         Promise = null; Object.keys = () => []; Map = null; console.log = null; URL = 'x'; Function = null;\
         Document.prototype.createElement = null; ModelContext.prototype.getTools = () => [];</script>",
    );
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    let list = world.bridge.call("page_tools", json!({})).await["structuredContent"]["pages"][0].clone();
    assert_eq!(list["tools"][0]["name"], "echo", "{list:#}");
    assert_eq!(list["tools"][0]["description"], "é");
    assert_eq!(list["tools"][0]["inputSchema"]["properties"]["ö"]["type"], "array");
    let text = world.bridge.text("evaluate_script", json!({"function": "() => ({a: [1, 2]})"})).await;
    assert!(text.contains(r#"{"a":[1,2]}"#), "{text}");
    // The browser itself runs the page's toJSON on a tool's input and output; that is the page's affair.
    world.bridge.page_call("echo", json!({"x": [1]})).await;
    world.finish().await;
}
