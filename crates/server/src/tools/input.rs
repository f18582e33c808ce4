//! `click`, `fill`, `press_key`.

use std::sync::Arc;

use pagebridge_browser::{Browser, CallOptions, PageId};
use pagebridge_core::{ToolError, limits, text};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, definition, object, snapshot};
use crate::listing::Listing;
use crate::output::ToolOutput;
use crate::page_call::{Changes, ToolChanges};

pub(super) fn definitions() -> Vec<Value> {
    let uid = json!({"type": "string", "description": "Its uid in a snapshot."});
    let after = json!({"type": "boolean", "description": "Also give a snapshot."});
    let page = json!({"type": "integer"});
    let hints = json!({"destructiveHint": true, "openWorldHint": true});
    vec![
        definition(
            "click",
            "Click",
            "Clicks an element, once it is visible, still and uncovered.",
            object(
                json!({
                    "uid": uid,
                    "dblClick": {"type": "boolean", "description": "Click twice."},
                    "includeSnapshot": after, "pageId": page,
                }),
                &["uid"],
            ),
            hints.clone(),
        ),
        definition(
            "fill",
            "Fill",
            "Gives a text field, select, checkbox, radio button, date, colour or range a value.",
            object(
                json!({
                    "uid": uid,
                    "value": {"type": "string", "description": "Text; a select's option by value or label; true or false for checkboxes."},
                    "includeSnapshot": after, "pageId": page,
                }),
                &["uid", "value"],
            ),
            hints.clone(),
        ),
        definition(
            "press_key",
            "Press key",
            "Presses a key or combination where the focus is.",
            object(
                json!({
                    "key": {"type": "string", "description": "Like Enter, a, Control+Shift+R."},
                    "includeSnapshot": after, "pageId": page,
                }),
                &["key"],
            ),
            hints,
        ),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Click {
    uid: String,
    #[serde(default)]
    dbl_click: bool,
    #[serde(default)]
    include_snapshot: bool,
    page_id: Option<u32>,
}

pub(super) async fn click(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: Click = call.parse()?;
    let act = Act::begin(call, wanted.page_id)?;
    act.browser.click(act.page, &wanted.uid, wanted.dbl_click, &act.options).await?;
    let how = if wanted.dbl_click { "double clicked" } else { "clicked" };
    Ok(act.end(call, format!("Successfully {how} on the element"), wanted.include_snapshot).await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Fill {
    uid: String,
    value: String,
    #[serde(default)]
    include_snapshot: bool,
    page_id: Option<u32>,
}

pub(super) async fn fill(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: Fill = call.parse()?;
    let act = Act::begin(call, wanted.page_id)?;
    let note = act.browser.fill(act.page, &wanted.uid, &wanted.value, &act.options).await?;
    let note = note.map(|note| format!(". {note}")).unwrap_or_default();
    Ok(act.end(call, format!("Successfully filled out the element{note}"), wanted.include_snapshot).await)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PressKey {
    key: String,
    #[serde(default)]
    include_snapshot: bool,
    page_id: Option<u32>,
}

pub(super) async fn press_key(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: PressKey = call.parse()?;
    let act = Act::begin(call, wanted.page_id)?;
    act.browser.press_key(act.page, &wanted.key, &act.options).await?;
    let key = text::one_line(&wanted.key, limits::SHORT_TEXT_CHARS);
    Ok(act.end(call, format!("Successfully pressed key: {key}"), wanted.include_snapshot).await)
}

/// Something that a user does, and what is compared before and after it.
struct Act {
    browser: Arc<Browser>,
    page: PageId,
    options: CallOptions,
    arrival: pagebridge_browser::Arrival,
    tools: Listing,
    pages: Vec<PageId>,
}

impl Act {
    fn begin(call: &Call<'_>, page: Option<u32>) -> Result<Self, ToolError> {
        let (browser, page) = call.session.page(page)?;
        let options =
            CallOptions { deadline: call.session.options.page_call_timeout, cancel: call.cancel.clone() };
        Ok(Self {
            page: page.id,
            options,
            arrival: browser.watch_arrival(page.id),
            tools: Listing::of(&browser, page.id, &call.session.options),
            pages: browser.pages().into_iter().map(|page| page.id).collect(),
            browser,
        })
    }

    /// Waits for the document that the page is on its way to, if it is, and tells what changed.
    async fn end(self, call: &Call<'_>, done: String, include_snapshot: bool) -> ToolOutput {
        let Self { browser, page, arrival, tools, pages, .. } = self;
        let arrived = browser.arrived(arrival).await;
        if arrived.is_some() {
            browser.settle(page).await;
        }
        // A tab that was opened over it counts once it is prepared.
        browser.until_ready(None).await;
        let after = Listing::of(&browser, page, &call.session.options);
        let changes = Changes {
            navigated_to: arrived.map(|document| document.url),
            tools: ToolChanges::between(&tools, &after),
            dialog: browser.dialog(page),
        };
        let opened = browser.pages().into_iter().filter(|open| !pages.contains(&open.id)).map(|open| {
            let url = text::one_line(&open.url, limits::SHORT_TEXT_CHARS);
            format!("Page {} was opened: {}.", open.id, if url.is_empty() { "about:blank" } else { &url })
        });
        let mut parts = vec![done, changes.block()];
        parts.extend(opened);
        if include_snapshot {
            parts.push(snapshot::appended(call, &browser, page).await);
        }
        parts.retain(|part| !part.is_empty());
        ToolOutput::text(parts.join("\n"))
    }
}
