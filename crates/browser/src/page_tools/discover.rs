//! Asks a document for its tools with `getTools()`, from a world that the page cannot tamper with.

use std::collections::HashSet;
use std::time::Duration;

use pagebridge_cdp::{CdpError, CdpSession};
use pagebridge_core::json::mend_surrogates;
use pagebridge_core::limits;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Annotations;
use crate::events::RemoteObject;
use crate::targets::Document;

const SCRIPT: &str = include_str!("discover.js");
/// A page whose main thread is busy for longer is listed by what the protocol told.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a document said of itself.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Look {
    /// Its real origin, inherited ones included; `null` for an opaque one.
    pub origin: String,
    /// Its title: the browser learns of it a little later.
    #[serde(default)]
    pub title: String,
    /// Whether it is a secure context.
    pub secure: bool,
    /// Whether it has `document.modelContext`.
    pub present: bool,
    /// Why `getTools()` failed.
    #[serde(default)]
    pub failure: Option<String>,
    pub tools: Vec<SeenTool>,
    /// What frames of other origins expose to this document: origin and name.
    #[serde(default)]
    pub exposed: HashSet<(String, String)>,
}

/// A tool as `getTools()` tells it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SeenTool {
    pub name: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub input_schema: Option<Box<RawValue>>,
    #[serde(default)]
    pub annotations: Option<SeenAnnotations>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SeenAnnotations {
    read_only_hint: bool,
    untrusted_content_hint: bool,
    consequential_hint: bool,
    debugging: bool,
}

impl From<SeenAnnotations> for Annotations {
    fn from(seen: SeenAnnotations) -> Self {
        Self {
            read_only: seen.read_only_hint,
            untrusted_content: seen.untrusted_content_hint,
            consequential: seen.consequential_hint,
            debugging: seen.debugging,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct World {
    execution_context_id: i64,
}

#[derive(Deserialize)]
struct Evaluated {
    result: RemoteObject,
}

/// The execution context of our isolated world in a document's frame. Chromium makes it once per document.
pub(crate) async fn isolated_world(session: &CdpSession, frame: &str) -> Result<i64, CdpError> {
    let params = json!({"frameId": frame, "worldName": "pagebridge"});
    let world: World = session.call("Page.createIsolatedWorld", params).await?.decode()?;
    Ok(world.execution_context_id)
}

/// Asks one document, also for what frames of `other_origins` expose to it. `None` when it does not answer in
/// time, or is gone.
pub(super) async fn look(document: &Document, other_origins: &[String]) -> Option<Look> {
    let asked = tokio::time::timeout(PATIENCE, ask(document, other_origins)).await;
    match asked {
        Ok(Ok(look)) => Some(look),
        Ok(Err(error)) => {
            tracing::debug!(%error, url = %document.url, "a document could not be asked for its tools");
            None
        }
        Err(_) => {
            tracing::debug!(url = %document.url, "a document is too busy to tell its tools");
            None
        }
    }
}

async fn ask(document: &Document, other_origins: &[String]) -> Result<Look, CdpError> {
    let session = &document.session;
    let context = isolated_world(session, &document.frame).await?;
    let arguments: Vec<Value> = other_origins.iter().map(|origin| json!({"value": origin})).collect();
    let params = json!({
        "functionDeclaration": SCRIPT,
        "executionContextId": context,
        "arguments": arguments,
        "awaitPromise": true,
        "returnByValue": true,
    });
    let evaluated: Evaluated = session.call("Runtime.callFunctionOn", params).await?.decode()?;
    let unexpected = |reason: String| CdpError::Unexpected { method: "Runtime.callFunctionOn", reason };
    let value = evaluated.result.value.ok_or_else(|| unexpected("no value".into()))?;
    let text: String = serde_json::from_str(value.get()).map_err(|e| unexpected(e.to_string()))?;
    let mut look: Look =
        serde_json::from_str(&mend_surrogates(&text)).map_err(|e| unexpected(e.to_string()))?;
    look.tools.truncate(limits::TOOLS_PER_PAGE);
    for tool in &mut look.tools {
        tool.input_schema =
            tool.input_schema.take().filter(|raw| raw.get().len() <= limits::SCHEMA_KEPT_BYTES);
    }
    Ok(look)
}
