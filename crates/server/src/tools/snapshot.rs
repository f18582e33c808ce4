//! `take_snapshot`, and the snapshot at the end of other tools' results.

use pagebridge_browser::{Browser, CallOptions, PageId, Snapshot, SnapshotCut, SnapshotOptions};
use pagebridge_core::ToolError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, definition, object};
use crate::output::ToolOutput;

/// Lines of a snapshot that goes to a file.
const FILE_LINES: usize = 10_000;
/// Bytes of one.
const FILE_BYTES: usize = 16 * 1024 * 1024;
/// What is kept free beside a snapshot, of the lines and bytes that a text may have.
const ROOM: (usize, usize) = (20, 2_000);

pub(super) fn definitions() -> Vec<Value> {
    vec![definition(
        "take_snapshot",
        "Take snapshot",
        "Shows a page as text: one line an element, with a uid that click, fill and take_screenshot take.",
        object(
            json!({
                "verbose": {"type": "boolean", "description": "Also what only structures the page."},
                "uid": {"type": "string", "description": "Only this element and what is in it."},
                "filePath": {"type": "string", "description": "File in the workspace to write to instead."},
                "pageId": {"type": "integer"},
            }),
            &[],
        ),
        json!({"readOnlyHint": true}),
    )]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TakeSnapshot {
    #[serde(default)]
    verbose: bool,
    uid: Option<String>,
    file_path: Option<String>,
    page_id: Option<u32>,
}

pub(super) async fn run(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: TakeSnapshot = call.parse()?;
    let (browser, page) = call.session.page(wanted.page_id)?;
    let file = wanted.file_path.map(|given| call.session.workspace.output(&given, &["txt"])).transpose()?;
    let limits = &call.session.options;
    let (max_lines, max_bytes) = match file {
        Some(_) => (FILE_LINES, FILE_BYTES),
        None => (limits.max_text_lines, limits.max_text_bytes),
    };
    let options = SnapshotOptions {
        verbose: wanted.verbose,
        uid: wanted.uid,
        max_lines: max_lines.saturating_sub(ROOM.0).max(1),
        max_bytes: max_bytes.saturating_sub(ROOM.1).max(1),
    };
    let snapshot = browser.snapshot(page.id, &options, &timing(call)).await?;
    let text = section(&snapshot);
    Ok(ToolOutput::text(match file {
        None => text,
        Some(file) => format!("Saved snapshot to {}.", file.write(text.as_bytes())?.display()),
    }))
}

/// The snapshot that a tool appends that was asked to. That it fails does not make the tool fail.
pub(super) async fn appended(call: &Call<'_>, browser: &Browser, page: PageId) -> String {
    let limits = &call.session.options;
    let options = SnapshotOptions {
        verbose: false,
        uid: None,
        max_lines: limits.max_text_lines.saturating_sub(ROOM.0).max(1),
        max_bytes: limits.max_text_bytes.saturating_sub(ROOM.1).max(1),
    };
    match browser.snapshot(page, &options, &timing(call)).await {
        Ok(snapshot) => section(&snapshot),
        Err(error) => format!("There is no snapshot: {}", error.message),
    }
}

fn timing(call: &Call<'_>) -> CallOptions {
    CallOptions { deadline: call.session.options.page_call_timeout, cancel: call.cancel.clone() }
}

fn section(snapshot: &Snapshot) -> String {
    let mark = snapshot.cut.map(|SnapshotCut { lines, of }| {
        let of = of.map_or_else(|| "many more".to_owned(), |of| of.to_string());
        format!("[cut after {lines} of {of} lines: take_snapshot with the uid of an element shows what is in it; with filePath it writes more to a file]\n")
    });
    format!("## Latest page snapshot\n{}{}", snapshot.text, mark.unwrap_or_default())
}
