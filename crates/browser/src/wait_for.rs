//! Waits until a page shows a text.

use std::collections::HashMap;
use std::time::Duration;

use pagebridge_cdp::CdpError;
use pagebridge_core::{ErrorKind, Outcome, ToolError, duration, text};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::browser::Browser;
use crate::events::RemoteObject;
use crate::loss;
use crate::page_tools::{CallOptions, isolated_world};
use crate::targets::{Document, DocumentId, PageId};

const SCRIPT: &str = include_str!("wait_text.js");
/// Between two looks. A look that took longer is followed by as long a rest, so that the page gets its turn.
const BETWEEN: Duration = Duration::from_millis(40);

impl Browser {
    /// Waits until the page, or a frame in its process, shows one of the texts, and gives its place among them. A page that
    /// goes elsewhere meanwhile is waited for there.
    pub async fn wait_for_text(
        &self,
        page: PageId,
        texts: &[String],
        options: &CallOptions,
    ) -> Result<usize, ToolError> {
        let wanted: Vec<String> = texts.iter().map(|one| text::quoted(&text::one_line(one, 200))).collect();
        let what = format!("The wait for the text {}", wanted.join(" or "));
        let work = async {
            let mut contexts = HashMap::new();
            loop {
                let started = Instant::now();
                if let Some(found) = self.find_text(page, texts, &mut contexts).await? {
                    return Ok(found);
                }
                tokio::time::sleep(BETWEEN.max(started.elapsed())).await;
            }
        };
        self.observe(page, &what, options, work).await.map_err(|error| match error.kind {
            ErrorKind::Timeout => {
                let limit = duration::show(options.deadline);
                let message = format!(
                    "The page {page} did not show the text {} within {limit}. take_snapshot shows what it does show; timeout waits longer.",
                    wanted.join(" or ")
                );
                ToolError { message, ..error }
            }
            _ => error,
        })
    }

    async fn find_text(
        &self,
        page: PageId,
        texts: &[String],
        contexts: &mut HashMap<DocumentId, i64>,
    ) -> Result<Option<usize>, ToolError> {
        let session = self.session(page)?;
        for document in self.targets.documents_of(page) {
            if document.session.id() != session.id() {
                continue;
            }
            match look(&document, texts, contexts).await {
                Ok(Some(at)) => return Ok(Some(at)),
                Ok(None) => {}
                // It went elsewhere, or is not there yet: the next look meets what comes.
                Err(CdpError::Refused { .. } | CdpError::Unexpected { .. }) => {
                    contexts.remove(&document.id);
                }
                Err(lost) => return Err(loss::tool_error(&lost, Outcome::NotRun)),
            }
        }
        Ok(None)
    }
}

async fn look(
    document: &Document,
    texts: &[String],
    contexts: &mut HashMap<DocumentId, i64>,
) -> Result<Option<usize>, CdpError> {
    #[derive(Deserialize)]
    struct Called {
        result: RemoteObject,
    }
    let context = match contexts.get(&document.id) {
        Some(context) => *context,
        None => isolated_world(&document.session, &document.frame).await?,
    };
    contexts.insert(document.id, context);
    let method = "Runtime.callFunctionOn";
    let params = json!({
        "functionDeclaration": SCRIPT, "executionContextId": context,
        "arguments": [{"value": texts}], "returnByValue": true,
    });
    let called: Called = document.session.call(method, params).await?.decode()?;
    let value = called.result.value.as_deref().map_or("null", RawValue::get);
    serde_json::from_str(value).map_err(|error| CdpError::Unexpected { method, reason: error.to_string() })
}
