//! The local tools: names, parameters and texts follow chrome-devtools-mcp where it has the same tool.

mod evaluate;
mod info;
mod input;
mod page_tools;
mod pages;
mod screenshot;
mod snapshot;
mod wait_for;

use std::time::Duration;

use pagebridge_core::{ErrorKind, ToolError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::output::ToolOutput;
use crate::session::Session;

/// One call of a local tool.
pub struct Call<'a> {
    /// The caller's world.
    pub session: &'a Session,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Cancelled when the client, or our end, says so.
    pub cancel: CancellationToken,
}

impl Call<'_> {
    /// The arguments as a type. Unknown names are mistakes.
    fn parse<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        serde_json::from_value(Value::Object(self.arguments.clone())).map_err(|error| {
            ToolError::not_run(ErrorKind::InvalidArguments, format!("The arguments do not fit: {error}."))
        })
    }
}

/// The arguments of a tool that takes none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Our tools, by name.
const NAMES: [&str; 16] = [
    "list_pages",
    "new_page",
    "navigate_page",
    "select_page",
    "close_page",
    "handle_dialog",
    "wait_for",
    "take_snapshot",
    "take_screenshot",
    "click",
    "fill",
    "press_key",
    "evaluate_script",
    "page_tools",
    "page_call",
    "bridge_info",
];

/// The names of all local tools.
pub fn names() -> &'static [&'static str] {
    &NAMES
}

/// The definitions for `tools/list`.
pub fn definitions() -> Vec<Value> {
    let mut all = pages::definitions();
    all.extend(wait_for::definitions());
    all.extend(snapshot::definitions());
    all.extend(screenshot::definitions());
    all.extend(input::definitions());
    all.push(evaluate::definition());
    all.extend(page_tools::definitions());
    all.push(info::definition());
    all
}

/// Runs a local tool. `None` when there is none of this name.
pub async fn run(name: &str, call: Call<'_>) -> Option<Result<ToolOutput, ToolError>> {
    if !names().contains(&name) {
        return None;
    }
    if let Err(error) = call.session.ensure_attached(name, &call.arguments, &call.cancel).await {
        return Some(Err(error));
    }
    let outcome = match name {
        "list_pages" => pages::list(&call),
        "new_page" => pages::new(&call).await,
        "navigate_page" => pages::navigate(&call).await,
        "select_page" => pages::select(&call).await,
        "close_page" => pages::close(&call).await,
        "handle_dialog" => pages::handle_dialog(&call).await,
        "wait_for" => wait_for::run(&call).await,
        "take_snapshot" => snapshot::run(&call).await,
        "take_screenshot" => screenshot::run(&call).await,
        "click" => input::click(&call).await,
        "fill" => input::fill(&call).await,
        "press_key" => input::press_key(&call).await,
        "evaluate_script" => evaluate::run(&call).await,
        "page_tools" => page_tools::list(&call).await,
        "page_call" => page_tools::call(&call).await,
        "bridge_info" => info::run(&call),
        _ => return None,
    };
    Some(outcome.map_err(|error| call.session.told(error)))
}

/// A definition of ours. `hints` are MCP annotations.
fn definition(name: &str, title: &str, description: &str, schema: Value, hints: Value) -> Value {
    let mut annotations = hints;
    annotations["title"] = json!(title);
    json!({
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": schema,
        "annotations": annotations,
    })
}

fn object(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// A time in milliseconds as clients give it, `0` meaning the default as chrome-devtools-mcp has it.
fn time(millis: Option<u64>, default: Duration) -> Duration {
    let most = pagebridge_core::limits::CALL_MAX;
    millis.filter(|millis| *millis > 0).map_or(default, |millis| Duration::from_millis(millis).min(most))
}
