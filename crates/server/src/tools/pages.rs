//! Pages: list, open, navigate, select, close.

use std::sync::Arc;
use std::time::Duration;

use pagebridge_browser::{Browser, CallOptions, Leaving, Navigation, PageId, PageInfo};
use pagebridge_core::{ErrorKind, ToolError, address, limits, text};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Nothing, definition, object, time};
use crate::attached::CONNECTED_AGAIN;
use crate::listing::Listing;
use crate::output::ToolOutput;
use crate::page_call::{Changes, ToolChanges};

/// Most that `waitForTools` may wait.
const TOOLS_MAX: Duration = Duration::from_secs(60);

const RESTARTED: &str =
    "The browser was lost and a new one was started. The pages that were open, and what they held, are gone.";

pub(super) fn definitions() -> Vec<Value> {
    let page = json!({"type": "integer", "description": "Number of the page; the selected page if absent."});
    let timeout = json!({"type": "integer", "minimum": 0, "description": "Most milliseconds to wait for the load; 0 means the default."});
    let wait = json!({"type": "integer", "minimum": 0, "description": "Milliseconds to wait for the page to offer a first tool, for pages that offer theirs late."});
    vec![
        definition(
            "list_pages",
            "List pages",
            "Lists the pages open in the browser.",
            object(json!({}), &[]),
            json!({"readOnlyHint": true}),
        ),
        definition(
            "new_page",
            "New page",
            "Opens a page, loads an address in it and selects it. Starts the browser if none runs. Tells which tools the page offers.",
            object(
                json!({
                    "url": {"type": "string", "description": "Address to load."},
                    "background": {"type": "boolean", "description": "Leave the selection as it is."},
                    "timeout": timeout, "waitForTools": wait,
                }),
                &["url"],
            ),
            json!({"destructiveHint": false, "openWorldHint": true}),
        ),
        definition(
            "navigate_page",
            "Navigate page",
            "Loads another address in a page, or goes back, forward, or reloads. Tells which page tools came and went.",
            object(
                json!({
                    "type": {"type": "string", "enum": ["url", "back", "forward", "reload"], "description": "What to do; url if an address is given."},
                    "url": {"type": "string", "description": "Address to load."},
                    "ignoreCache": {"type": "boolean", "description": "On reload, ask the servers for everything again."},
                    "handleBeforeUnload": {"type": "string", "enum": ["accept", "decline"], "description": "What a page is told that asks whether it may be left; accept if absent."},
                    "pageId": page, "timeout": timeout, "waitForTools": wait,
                }),
                &[],
            ),
            json!({"destructiveHint": false, "openWorldHint": true}),
        ),
        definition(
            "select_page",
            "Select page",
            "Selects the page that calls without pageId mean. Its tools become the page_* tools.",
            object(
                json!({
                    "pageId": {"type": "integer", "description": "Number of the page."},
                    "bringToFront": {"type": "boolean", "description": "Also show it on top; true if absent."},
                }),
                &["pageId"],
            ),
            json!({"destructiveHint": false, "idempotentHint": true}),
        ),
        definition(
            "close_page",
            "Close page",
            "Closes a page. What it held in memory is lost.",
            object(json!({"pageId": {"type": "integer", "description": "Number of the page."}}), &["pageId"]),
            json!({"destructiveHint": true}),
        ),
        definition(
            "handle_dialog",
            "Handle dialog",
            "Answers the JavaScript dialog (alert, confirm, prompt, beforeunload) that a page shows. Until then the page does nothing else.",
            object(
                json!({
                    "action": {"type": "string", "enum": ["accept", "dismiss"]},
                    "promptText": {"type": "string", "description": "Text for a prompt."},
                    "pageId": page,
                }),
                &["action"],
            ),
            json!({"destructiveHint": true}),
        ),
    ]
}

pub(super) fn list(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    call.parse::<Nothing>()?;
    let Some(browser) = call.session.slot.peek() else {
        let lost =
            if call.session.slot.generation() > 0 { "The browser is gone, with its pages. " } else { "" };
        return Ok(ToolOutput::text(format!(
            "{lost}No pages are open. new_page opens one, and starts the browser."
        )));
    };
    // A browser of somebody else may have been attached to anew by this very call.
    let restarted = if call.session.slot.endpoint().is_some() { restarted(call) } else { "" };
    let newline = if restarted.is_empty() { "" } else { "\n" };
    Ok(ToolOutput::text(format!("{restarted}{newline}{}", pages_text(call, &browser))))
}

/// What is told once when the browser, or the connection to it, was lost.
fn restarted(call: &Call<'_>) -> &'static str {
    match (call.session.slot.take_restart(), call.session.slot.endpoint()) {
        (false, _) => "",
        (true, None) => RESTARTED,
        (true, Some(_)) => CONNECTED_AGAIN,
    }
}

fn pages_text(call: &Call<'_>, browser: &Browser) -> String {
    let selected = call.session.selected_page(browser).map(|page| page.id);
    let mut lines = vec!["## Pages".to_owned()];
    for page in browser.pages() {
        let mark = if Some(page.id) == selected { " [selected]" } else { "" };
        let crashed = match () {
            () if page.crashed => " [crashed: navigate_page loads it again]",
            () if page.unresponsive => " [unresponsive: it is stopped, or busy]",
            () => "",
        };
        let dialog = browser.dialog(page.id).map(|d| format!(" [shows a {d}: handle_dialog answers it]"));
        let dialog = dialog.unwrap_or_default();
        lines.push(format!("{}: {}{mark}{crashed}{dialog}", page.id, described(&page)));
    }
    if lines.len() == 1 {
        lines.push("No pages are open.".into());
    }
    lines.join("\n")
}

/// Address and title, quoted, so that a page cannot write a line of ours.
fn described(page: &PageInfo) -> String {
    let url = text::one_line(&page.url, limits::SHORT_TEXT_CHARS);
    let title = text::one_line(&page.title, limits::SHORT_TEXT_CHARS);
    if title.is_empty() || title == url { url } else { format!("{url} {}", text::quoted(&title)) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct NewPage {
    url: String,
    #[serde(default)]
    background: bool,
    timeout: Option<u64>,
    wait_for_tools: Option<u64>,
}

pub(super) async fn new(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: NewPage = call.parse()?;
    let url = address::check(&wanted.url, call.session.options.allow_file_urls)?;
    let browser = or_cancelled(call, call.session.slot.get()).await??;
    let page = or_cancelled(call, browser.new_page()).await??;
    if !wanted.background {
        call.session.select(page);
    }
    let visit = Visit {
        page,
        navigation: Navigation::Url(url),
        leaving: Leaving::Accept,
        timeout: wanted.timeout,
        wait: wanted.wait_for_tools,
    };
    let (place, changes) = visit.go(call, &browser).await.map_err(|error| {
        let told = format!("{} The new page {page} stays open.", error.message);
        ToolError { message: told, ..error }
    })?;
    Ok(visited(call, &browser, &format!("Opened page {page} at {place}"), &changes))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Navigate {
    #[serde(rename = "type")]
    kind: Option<Kind>,
    url: Option<String>,
    #[serde(default)]
    ignore_cache: bool,
    handle_before_unload: Option<BeforeUnload>,
    page_id: Option<u32>,
    timeout: Option<u64>,
    wait_for_tools: Option<u64>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum BeforeUnload {
    Accept,
    Decline,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Url,
    Back,
    Forward,
    Reload,
}

impl Navigate {
    fn navigation(&self, allow_files: bool) -> Result<Navigation, ToolError> {
        match (self.kind, &self.url) {
            (Some(Kind::Url) | None, Some(url)) => Ok(Navigation::Url(address::check(url, allow_files)?)),
            (Some(Kind::Back), None) => Ok(Navigation::Back),
            (Some(Kind::Forward), None) => Ok(Navigation::Forward),
            (Some(Kind::Reload), None) => Ok(Navigation::Reload { ignore_cache: self.ignore_cache }),
            (Some(Kind::Url) | None, None) => {
                Err(invalid("Give the url to load, or type back, forward or reload."))
            }
            (Some(_), Some(_)) => Err(invalid("A url goes with type url only.")),
        }
    }
}

fn invalid(message: &str) -> ToolError {
    ToolError::not_run(ErrorKind::InvalidArguments, message)
}

pub(super) async fn navigate(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: Navigate = call.parse()?;
    let navigation = wanted.navigation(call.session.options.allow_file_urls)?;
    let (browser, page) = page_to_navigate(call, &wanted, &navigation).await?;
    let leaving = match wanted.handle_before_unload {
        Some(BeforeUnload::Decline) => Leaving::Decline,
        _ => Leaving::Accept,
    };
    let visit = Visit { page, navigation, leaving, timeout: wanted.timeout, wait: wanted.wait_for_tools };
    let (place, changes) = visit.go(call, &browser).await?;
    Ok(visited(call, &browser, &format!("Page {page} is at {place}"), &changes))
}

/// The page that is meant; where none is open and an address is given, a new one.
async fn page_to_navigate(
    call: &Call<'_>,
    wanted: &Navigate,
    navigation: &Navigation,
) -> Result<(Arc<Browser>, PageId), ToolError> {
    match call.session.page(wanted.page_id) {
        Ok((browser, page)) => Ok((browser, page.id)),
        Err(_) if wanted.page_id.is_none() && matches!(navigation, Navigation::Url(_)) => {
            let browser = or_cancelled(call, call.session.slot.get()).await??;
            let page = or_cancelled(call, browser.new_page()).await??;
            call.session.select(page);
            Ok((browser, page))
        }
        Err(error) => Err(error),
    }
}

/// A navigation and what is waited for after it.
struct Visit {
    page: PageId,
    navigation: Navigation,
    leaving: Leaving,
    timeout: Option<u64>,
    wait: Option<u64>,
}

impl Visit {
    /// Where the page is now, as the end of a sentence, and what changed.
    async fn go(&self, call: &Call<'_>, browser: &Browser) -> Result<(String, Changes), ToolError> {
        let before = Listing::of(browser, self.page, &call.session.options);
        let options = CallOptions {
            deadline: time(self.timeout, call.session.options.navigation_timeout),
            cancel: call.cancel.clone(),
        };
        browser.navigate(self.page, &self.navigation, self.leaving, &options).await?;
        let dialog = browser.dialog(self.page);
        if dialog.is_none() {
            browser.settle(self.page).await;
        }
        if let Some(wait) = self.wait.filter(|_| browser.page_tools(self.page).tools.is_empty()) {
            let wait = Duration::from_millis(wait).min(TOOLS_MAX);
            or_cancelled(call, browser.wait_for_tools(self.page, wait)).await?;
        }
        let after = Listing::of(browser, self.page, &call.session.options);
        let changes = Changes { navigated_to: None, tools: ToolChanges::between(&before, &after), dialog };
        let mut place = browser.page(self.page).map(|page| described(&page)).unwrap_or_default();
        place.push('.');
        if after.entries.is_empty() && changes.dialog.is_none() {
            place.push_str(" It offers no tools of its own so far; waitForTools waits for late ones.");
        }
        Ok((place, changes))
    }
}

fn visited(call: &Call<'_>, browser: &Browser, first: &str, changes: &Changes) -> ToolOutput {
    let parts = [restarted(call).to_owned(), first.to_owned(), changes.block(), pages_text(call, browser)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    ToolOutput::text(parts.join("\n"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SelectPage {
    page_id: u32,
    bring_to_front: Option<bool>,
}

pub(super) async fn select(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: SelectPage = call.parse()?;
    let (browser, page) = call.session.page(Some(wanted.page_id))?;
    call.session.select(page.id);
    if wanted.bring_to_front.unwrap_or(true) {
        or_cancelled(call, browser.bring_to_front(page.id)).await??;
    }
    let tools = Listing::of(&browser, page.id, &call.session.options);
    let names: Vec<&str> = tools.entries.iter().map(|entry| entry.exposed.as_str()).collect();
    let offered =
        if names.is_empty() { String::new() } else { format!("\nIts tools: {}.", names.join(", ")) };
    Ok(ToolOutput::text(format!("Selected page {}.{offered}\n{}", page.id, pages_text(call, &browser))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ClosePage {
    page_id: u32,
}

pub(super) async fn close(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: ClosePage = call.parse()?;
    let (browser, page) = call.session.page(Some(wanted.page_id))?;
    or_cancelled(call, browser.close_page(page.id)).await??;
    Ok(ToolOutput::text(format!("Closed page {}.\n{}", page.id, pages_text(call, &browser))))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct HandleDialog {
    action: DialogAction,
    prompt_text: Option<String>,
    page_id: Option<u32>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum DialogAction {
    Accept,
    Dismiss,
}

pub(super) async fn handle_dialog(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: HandleDialog = call.parse()?;
    let (browser, page) = call.session.page(wanted.page_id)?;
    let accept = wanted.action == DialogAction::Accept;
    let answered =
        or_cancelled(call, browser.answer_dialog(page.id, accept, wanted.prompt_text.as_deref())).await??;
    let done = if accept { "Accepted" } else { "Dismissed" };
    let mut lines = vec![format!("{done} the {} of page {}.", answered.dialog, page.id)];
    lines.extend(answered.answer.map(|answer| format!("A page tool that waited behind it gave: {answer}")));
    lines.extend(answered.next.map(|next| format!("The page shows a {next} now.")));
    lines.push(pages_text(call, &browser));
    Ok(ToolOutput::text(lines.join("\n")))
}

/// Ends a wait when the call is cancelled. What was begun goes on in the browser.
async fn or_cancelled<T>(call: &Call<'_>, wait: impl Future<Output = T>) -> Result<T, ToolError> {
    call.cancel
        .run_until_cancelled(wait)
        .await
        .ok_or_else(|| ToolError::unknown(ErrorKind::Cancelled, "The call was cancelled."))
}
