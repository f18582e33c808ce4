//! `evaluate_script`.

use pagebridge_browser::CallOptions;
use pagebridge_core::ToolError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, object, time};
use crate::output::ToolOutput;
use crate::page_call::Changes;

pub(super) fn definition() -> Value {
    let schema = object(
        json!({
            "function": {"type": "string", "description": "Source of a JavaScript function, like () => document.title; it may be async. It returns plain data."},
            "pageId": {"type": "integer", "description": "Number of the page; the selected page if absent."},
            "timeout": {"type": "integer", "minimum": 0, "description": "Most milliseconds that it may take; 0 means the default."},
        }),
        &["function"],
    );
    super::definition(
        "evaluate_script",
        "Evaluate script",
        "Calls a JavaScript function in the page's top document and returns its result as JSON. Prefer the page's own tools where it offers some.",
        schema,
        json!({"destructiveHint": true, "openWorldHint": true}),
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Evaluate {
    function: String,
    page_id: Option<u32>,
    timeout: Option<u64>,
}

pub(super) async fn run(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: Evaluate = call.parse()?;
    let (browser, page) = call.session.page(wanted.page_id)?;
    let arrival = browser.watch_arrival(page.id);
    let options = CallOptions {
        deadline: time(wanted.timeout, call.session.options.page_call_timeout),
        cancel: call.cancel.clone(),
    };
    let evaluated = browser.evaluate(page.id, &wanted.function, &options).await?;
    let navigated_to = browser.arrived(arrival).await.map(|document| document.url);
    let changes = Changes { navigated_to, dialog: browser.dialog(page.id), ..Changes::default() };
    let note = changes.block();
    let note = if note.is_empty() { note } else { format!("\n{note}") };
    Ok(ToolOutput::text(format!("Script ran on page and returned:\n```json\n{}\n```{note}", evaluated.text)))
}
