//! An element that a caller names by its uid, held in our isolated world so that functions of ours can look at it.

use std::sync::atomic::{AtomicU64, Ordering};

use pagebridge_cdp::CdpError;
use pagebridge_core::{ErrorKind, Outcome, ToolError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::events::RemoteObject;
use crate::loss;
use crate::page_tools::isolated_world;
use crate::snapshot::uids::Meaning;
use crate::targets::{Document, PageId};

static GROUPS: AtomicU64 = AtomicU64::new(1);

/// A live element. Chromium forgets our handles when it goes.
#[derive(Debug)]
pub(crate) struct Element {
    pub uid: String,
    pub document: Document,
    /// Chromium's number of it in its process.
    pub backend: i64,
    context: i64,
    object: String,
    group: String,
}

impl Browser {
    /// The element of a uid, if its document is still shown and it is still in it.
    pub(crate) async fn element(&self, page: PageId, uid: &str) -> Result<Element, ToolError> {
        let (document, backend) = self.named_node(page, uid)?;
        let group = format!("pagebridge-{}", GROUPS.fetch_add(1, Ordering::Relaxed));
        let resolved = resolve(&document, backend, &group).await;
        let (context, object) = resolved.map_err(|error| self.unreachable(&error, &document, uid))?;
        let element = Element { uid: uid.to_owned(), document, backend, context, object, group };
        let is_there: bool =
            self.ask(&element, "function () { return this.isConnected; }", json!([])).await?;
        if is_there { Ok(element) } else { Err(removed(uid)) }
    }

    fn named_node(&self, page: PageId, uid: &str) -> Result<(Document, i64), ToolError> {
        let shown = pagebridge_core::text::one_line(uid, 60);
        let not_found = |message: String| ToolError::not_run(ErrorKind::NotFound, message);
        match self.uids.meaning(uid) {
            Meaning::Nothing => Err(not_found(format!(
                "No element uid={shown} is known. take_snapshot gives the uids of a page."
            ))),
            Meaning::Node { page: other, .. } if other != page => Err(not_found(format!(
                "The element uid={shown} belongs to page {other}, not to page {page}. Give pageId, or take_snapshot of page {page}."
            ))),
            Meaning::Node { document, backend, .. } => match self.targets.document(document) {
                Some(document) => Ok((document, backend)),
                None => Err(document_gone(&shown)),
            },
        }
    }

    /// Calls a function of ours with the element as `this`.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        element: &Element,
        function: &str,
        arguments: Value,
    ) -> Result<T, ToolError> {
        let answered = element.call(function, arguments).await;
        answered.map_err(|error| self.unreachable(&error, &element.document, &element.uid))
    }

    /// What it means to a caller that Chromium does not do something with an element.
    pub(crate) fn unreachable(&self, error: &CdpError, document: &Document, uid: &str) -> ToolError {
        match error {
            CdpError::Refused { .. } if !self.has_document(document.id) => document_gone(uid),
            CdpError::Refused { message, .. } if is_about_absence(message) => removed(uid),
            error => loss::tool_error(error, Outcome::NotRun),
        }
    }
}

fn is_about_absence(message: &str) -> bool {
    ["No node", "does not belong", "detached", "Could not find node", "context with specified id"]
        .iter()
        .any(|words| message.contains(words))
}

pub(crate) fn removed(uid: &str) -> ToolError {
    let message =
        format!("The element uid={uid} was removed from the page. take_snapshot shows what is there now.");
    ToolError::not_run(ErrorKind::Gone, message)
}

fn document_gone(uid: &str) -> ToolError {
    let message = format!(
        "The document that had the element uid={uid} is gone: the page, or a frame of it, went elsewhere. take_snapshot shows what is there now."
    );
    ToolError::not_run(ErrorKind::Gone, message)
}

async fn resolve(document: &Document, backend: i64, group: &str) -> Result<(i64, String), CdpError> {
    let context = isolated_world(&document.session, &document.frame).await?;
    Ok((context, handle(document, backend, context, group).await?))
}

async fn handle(document: &Document, backend: i64, context: i64, group: &str) -> Result<String, CdpError> {
    #[derive(Deserialize)]
    struct Resolved {
        object: RemoteObject,
    }
    let method = "DOM.resolveNode";
    let params = json!({"backendNodeId": backend, "executionContextId": context, "objectGroup": group});
    let resolved: Resolved = document.session.call(method, params).await?.decode()?;
    resolved.object.object_id.ok_or_else(|| CdpError::Unexpected { method, reason: "no handle".into() })
}

impl Element {
    /// A handle of another node in the same document, that goes with this element's.
    pub async fn other(&self, backend: i64) -> Result<String, CdpError> {
        handle(&self.document, backend, self.context, &self.group).await
    }

    /// Calls a function with the element as `this`. Its promise is awaited, its value copied.
    pub async fn call<T: DeserializeOwned>(&self, function: &str, arguments: Value) -> Result<T, CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Called {
            result: RemoteObject,
            #[serde(default)]
            exception_details: Option<Value>,
        }
        let method = "Runtime.callFunctionOn";
        let params = json!({
            "functionDeclaration": function, "objectId": self.object, "arguments": arguments,
            "awaitPromise": true, "returnByValue": true,
        });
        let called: Called = self.document.session.call(method, params).await?.decode()?;
        if let Some(thrown) = called.exception_details {
            let reason = pagebridge_core::text::one_line(&thrown.to_string(), 1_000);
            return Err(CdpError::Unexpected { method, reason });
        }
        let value = called.result.value.as_deref().map_or("null", RawValue::get);
        let mended = pagebridge_core::json::mend_surrogates(value);
        serde_json::from_str(&mended)
            .map_err(|error| CdpError::Unexpected { method, reason: error.to_string() })
    }
}

impl Drop for Element {
    fn drop(&mut self) {
        drop(self.document.session.call("Runtime.releaseObjectGroup", json!({"objectGroup": self.group})));
    }
}
