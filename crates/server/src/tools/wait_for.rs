//! `wait_for`.

use std::time::Duration;

use pagebridge_browser::CallOptions;
use pagebridge_core::{ErrorKind, ToolError, text};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, definition, object, snapshot, time};
use crate::output::ToolOutput;

/// How long is waited where the caller does not say.
const DEFAULT: Duration = Duration::from_secs(5);

pub(super) fn definitions() -> Vec<Value> {
    vec![definition(
        "wait_for",
        "Wait for text",
        "Waits until a page shows a text, then gives a snapshot.",
        object(
            json!({
                "text": {"type": ["string", "array"], "items": {"type": "string"}, "description": "The text, or several of which one suffices."},
                "timeout": {"type": "integer", "minimum": 0, "description": "Most milliseconds; 5000 if absent."},
                "pageId": {"type": "integer"},
            }),
            &["text"],
        ),
        json!({"readOnlyHint": true}),
    )]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WaitFor {
    text: Texts,
    timeout: Option<u64>,
    page_id: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "text must be a string or a list of strings")]
enum Texts {
    One(String),
    Several(Vec<String>),
}

pub(super) async fn run(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: WaitFor = call.parse()?;
    let texts = match wanted.text {
        Texts::One(text) => vec![text],
        Texts::Several(texts) => texts,
    };
    if texts.is_empty() || texts.iter().any(|text| text.trim().is_empty()) {
        let message = "Give the text to wait for: it must not be empty.";
        return Err(ToolError::not_run(ErrorKind::InvalidArguments, message));
    }
    let (browser, page) = call.session.page(wanted.page_id)?;
    let options = CallOptions { deadline: time(wanted.timeout, DEFAULT), cancel: call.cancel.clone() };
    let found = browser.wait_for_text(page.id, &texts, &options).await?;
    let shown = texts.get(found).map(|text| text::quoted(&text::one_line(text, 200))).unwrap_or_default();
    let snapshot = snapshot::appended(call, &browser, page.id).await;
    Ok(ToolOutput::text(format!("Element with text {shown} found.\n{snapshot}")))
}
