//! The ways to start and stop a run in a page.
//!
//! The protocol's `WebMCP.invokeTool` is the rule: it works while the page is busy, sees what was thrown and
//! gets the answer of a run that navigates. Chromium 156 refuses property names there that are not ASCII; such
//! arguments go through `executeTool()` in our isolated world. Tools of a page's own API run through that API.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use pagebridge_cdp::{Call, CdpError, CdpSession};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::page_api::{self, PageApi};
use super::{PageTool, discover};
use crate::targets::{Document, Targets};

const EXECUTE: &str = include_str!("execute.js");
const PREPARE: &str = "token => { (globalThis.prepared ??= new Set()).add(token) }";
const ABORT: &str = "token => globalThis.running?.get(token)?.abort()";

/// What came of starting a run.
pub(super) enum Started {
    /// The protocol runs it, under this id; the answer comes as an event.
    Invoked(String),
    /// It ran to its end in the page, which gave a text.
    Returned(Option<String>),
    /// It ran to its end in the page's own API, which gave a value.
    Gave(Box<RawValue>),
    /// It failed in the page, which tells in-page callers no reason.
    Failed(String),
    /// There is no such tool any more.
    Missing,
    /// The document went away under it.
    Interrupted,
}

pub(super) type Starting = Pin<Box<dyn Future<Output = Result<Started, CdpError>> + Send>>;

pub(super) enum Route {
    Protocol,
    InPage {
        token: u64,
        /// Our world in the tool's document, once it is known.
        context: Arc<OnceLock<i64>>,
    },
    PageApi {
        api: PageApi,
        /// The page's `AbortController`, once it is made.
        controller: Arc<OnceLock<String>>,
    },
}

impl Route {
    pub fn of(page_api: Option<PageApi>, arguments: &Map<String, Value>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if let Some(api) = page_api {
            return Self::PageApi { api, controller: Arc::default() };
        }
        if arguments.iter().all(|(key, value)| key.is_ascii() && has_ascii_keys(value)) {
            Self::Protocol
        } else {
            Self::InPage { token: NEXT.fetch_add(1, Ordering::Relaxed), context: Arc::default() }
        }
    }

    /// Starts the run. Dropping the future before it is polled starts nothing in the page's route.
    pub fn start(
        &self,
        targets: &Arc<Targets>,
        document: &Document,
        tool: &PageTool,
        arguments: &Map<String, Value>,
    ) -> Starting {
        let name = tool.definition.name.clone();
        let session = &document.session;
        match self {
            Self::Protocol => {
                let params = json!({"frameId": tool.frame, "toolName": name, "input": arguments});
                Box::pin(invoke(session.call("WebMCP.invokeTool", params)))
            }
            Self::InPage { token, context } => {
                let input = Value::Object(arguments.clone()).to_string();
                Box::pin(execute(targets.clone(), document.clone(), name, input, *token, context.clone()))
            }
            Self::PageApi { api, controller } => {
                Box::pin(run_in_page_api(api.clone(), name, arguments.clone(), controller.clone()))
            }
        }
    }

    /// Asks the page to stop the run. `None` when there is nothing yet that could be stopped.
    pub fn stop(&self, session: &CdpSession, invocation: Option<&str>) -> Option<Call> {
        match self {
            Self::Protocol => {
                invocation.map(|id| session.call("WebMCP.cancelInvocation", json!({"invocationId": id})))
            }
            Self::InPage { token, context } => context.get().map(|context| {
                let params = json!({"functionDeclaration": ABORT, "executionContextId": context,
                    "arguments": [{"value": token}]});
                session.call("Runtime.callFunctionOn", params)
            }),
            Self::PageApi { controller, .. } => controller.get().map(|c| page_api::abort(session, c)),
        }
    }
}

fn has_ascii_keys(value: &Value) -> bool {
    match value {
        Value::Object(object) => object.iter().all(|(key, value)| key.is_ascii() && has_ascii_keys(value)),
        Value::Array(items) => items.iter().all(has_ascii_keys),
        _ => true,
    }
}

async fn invoke(call: Call) -> Result<Started, CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Invoked {
        invocation_id: String,
    }
    match call.await {
        Ok(reply) => Ok(Started::Invoked(reply.decode::<Invoked>()?.invocation_id)),
        Err(CdpError::Refused { message, .. }) if message.contains("ool not found") => Ok(Started::Missing),
        Err(CdpError::Refused { message, .. }) if message.contains("No frame for given id") => {
            Ok(Started::Missing)
        }
        Err(error) => Err(error),
    }
}

/// Commands to a busy page wait, and Chromium carries those that wait over to the frame's next document, be it
/// of another origin. So the world is marked first, and only when the document is surely still the one that the
/// tool belongs to (its successor would have been told before the answer) is the tool run, where the mark is.
async fn execute(
    targets: Arc<Targets>,
    document: Document,
    name: String,
    input: String,
    token: u64,
    context: Arc<OnceLock<i64>>,
) -> Result<Started, CdpError> {
    #[derive(Deserialize)]
    struct Reply {
        result: Returned,
    }
    #[derive(Deserialize)]
    struct Returned {
        value: Ran,
    }
    #[derive(Deserialize)]
    struct Ran {
        #[serde(default)]
        missing: bool,
        #[serde(default)]
        returned: Option<String>,
        #[serde(default)]
        failure: Option<String>,
    }
    let session = &document.session;
    let world = discover::isolated_world(session, &document.frame).await?;
    let mark =
        json!({"functionDeclaration": PREPARE, "executionContextId": world, "arguments": [{"value": token}]});
    let marked = session.call("Runtime.callFunctionOn", mark).await;
    targets.caught_up().await;
    if marked.is_err() || targets.document(document.id).is_none() {
        return Ok(Started::Missing);
    }
    let _ = context.set(world);
    let params = json!({
        "functionDeclaration": EXECUTE,
        "executionContextId": world,
        "arguments": [{"value": name}, {"value": input}, {"value": token}],
        "awaitPromise": true,
        "returnByValue": true,
    });
    let ran = match session.call("Runtime.callFunctionOn", params).await {
        Ok(reply) => reply.decode::<Reply>()?.result.value,
        // "Execution context was destroyed", "Inspected target navigated or closed", …
        Err(CdpError::Refused { .. }) => return Ok(Started::Interrupted),
        Err(error) => return Err(error),
    };
    Ok(match ran {
        Ran { missing: true, .. } => Started::Missing,
        Ran { failure: Some(failure), .. } => Started::Failed(failure),
        Ran { returned, .. } => Started::Returned(returned),
    })
}

async fn run_in_page_api(
    api: PageApi,
    name: String,
    arguments: Map<String, Value>,
    controller: Arc<OnceLock<String>>,
) -> Result<Started, CdpError> {
    let made = api.controller().await?;
    let ran = api.run(&name, &arguments, controller.get_or_init(|| made)).await;
    match ran {
        Ok(ran) if ran.missing => Ok(Started::Missing),
        Ok(page_api::Ran { failure: Some(failure), .. }) => Ok(Started::Failed(failure)),
        Ok(ran) => Ok(Started::Gave(ran.value.unwrap_or_default())),
        Err(CdpError::Refused { .. }) => Ok(Started::Interrupted),
        Err(error) => Err(error),
    }
}
