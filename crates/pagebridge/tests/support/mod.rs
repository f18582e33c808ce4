//! What the tests with real pages share.
#![allow(dead_code, reason = "each test file uses its part")]

use std::time::{Duration, Instant};

use pagebridge_testkit::bridge::Bridge;
use pagebridge_testkit::site::Site;
use serde_json::{Value, json};
use tempfile::TempDir;

pub const EXE: &str = env!("CARGO_BIN_EXE_pagebridge");

/// A bridge, its workspace and a site for its pages.
pub struct World {
    pub bridge: Bridge,
    pub workspace: TempDir,
    pub site: Site,
}

impl World {
    /// A bridge without a browser yet.
    pub async fn new(args: &[&str]) -> Self {
        let workspace = tempfile::tempdir().expect("a temporary folder");
        let bridge = Bridge::start(EXE, workspace.path(), args).await;
        Self { bridge, workspace, site: Site::start() }
    }

    /// The same, with a page open that runs this script.
    pub async fn with_page(args: &[&str], script: &str) -> Self {
        let world = Self::new(args).await;
        world.open("/", script).await;
        world
    }

    /// Opens a page at `path` that runs this script, and gives the text of the answer.
    pub async fn open(&self, path: &str, script: &str) -> String {
        self.site.page(path, page(script));
        self.bridge.text("new_page", json!({"url": self.site.url(path)})).await
    }

    /// Runs JavaScript in the selected page and gives its value.
    pub async fn evaluate(&self, function: &str) -> Value {
        let text = self.bridge.text("evaluate_script", json!({"function": function})).await;
        let json = text.split("```json\n").nth(1).and_then(|rest| rest.split("\n```").next());
        serde_json::from_str(json.expect("a block")).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    /// What `page_tools` says of the selected page.
    pub async fn page_tools(&self) -> Value {
        let result = self.bridge.call("page_tools", json!({})).await;
        assert!(result["isError"].is_null(), "{result:#}");
        result["structuredContent"]["pages"][0].clone()
    }

    /// The names of the selected page's tools.
    pub async fn names(&self) -> Vec<String> {
        names(&self.page_tools().await["tools"])
    }

    /// Waits until the selected page's tools, and the dynamic ones, are these: what a script changes is told by the browser
    /// in its own time, a little after the script's result.
    pub async fn tools_become(&self, wanted: &[&str]) {
        let started = Instant::now();
        loop {
            let (names, mut dynamic) = (self.names().await, self.bridge.dynamic_names().await);
            dynamic.iter_mut().for_each(|name| *name = name.replacen("page_", "", 1));
            if names == wanted && dynamic == wanted {
                return;
            }
            assert!(
                started.elapsed() < Duration::from_secs(3),
                "{names:?}, {dynamic:?} instead of {wanted:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Calls a page's tool with arguments, whatever comes of it.
    pub async fn page_call(&self, tool: &str, arguments: Value) -> Value {
        self.bridge.call("page_call", json!({"tool": tool, "arguments": arguments})).await
    }

    /// The `result` of a page's tool that must not fail.
    pub async fn result(&self, tool: &str, arguments: Value) -> Value {
        self.bridge.page_call(tool, arguments).await["result"].clone()
    }

    /// The `error` of a page's tool that must fail.
    pub async fn error(&self, tool: &str, arguments: Value) -> Value {
        self.bridge.error("page_call", json!({"tool": tool, "arguments": arguments})).await
    }

    /// Ends the bridge and checks that it leaves nothing.
    pub async fn finish(self) {
        self.bridge.finish().await;
    }
}

/// A page that runs this script, in which `offer(name, execute, more)` registers a tool and gives the controller that
/// takes it back.
pub fn page(script: &str) -> String {
    format!(
        r#"<!doctype html><meta charset="utf-8"><title>Test page</title><script>
function offer(name, execute, more = {{}}) {{
  const controller = new AbortController();
  const tool = {{ name, description: `The tool ${{name}}.`, inputSchema: {{ type: "object" }}, execute, ...more }};
  document.modelContext.registerTool(tool, {{ signal: controller.signal }});
  return controller;
}}
{script}
</script>"#
    )
}

/// The names in a list of tools.
pub fn names(tools: &Value) -> Vec<String> {
    let tools = tools.as_array().expect("a list");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

/// The one tool of this name.
pub fn named<'a>(tools: &'a Value, name: &str) -> &'a Value {
    let found = tools.as_array().expect("a list").iter().find(|tool| tool["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {tools:#}"))
}
