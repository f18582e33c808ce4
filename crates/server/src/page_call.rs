//! A page tool called by a client: found, allowed, run, and told together with what it did to the page.

use std::sync::Arc;
use std::time::Duration;

use pagebridge_browser::{Answer, Browser, CallOptions, Dialog, PageId, PageTool};
use pagebridge_core::{ErrorKind, ToolError, limits, text};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::listing::{Entry, Listing, named};
use crate::options::Consequential;
use crate::output::{ToolOutput, kept_whole};
use crate::session::Session;

/// Which tool a client means by `page_call`.
#[derive(Debug, Default)]
pub struct Wanted<'a> {
    /// The page's name for it, or the name of its MCP tool.
    pub tool: &'a str,
    /// The page; the selected one if absent.
    pub page: Option<u32>,
    /// The frame, where several offer the tool: its id or its place.
    pub frame: Option<&'a str>,
}

/// Lets a navigation of ours end before its page is asked for a tool.
pub async fn until_arrived(
    session: &Session,
    page: Option<u32>,
    cancel: &CancellationToken,
) -> Result<(), ToolError> {
    let Ok((browser, page)) = session.page(page) else { return Ok(()) };
    let cancelled = || ToolError::not_run(ErrorKind::Cancelled, "The call was cancelled before it began.");
    cancel.run_until_cancelled(browser.until_arrived(page.id)).await.ok_or_else(cancelled)
}

/// Finds the one tool that is meant.
pub fn find(session: &Session, wanted: &Wanted<'_>) -> Result<(Arc<Browser>, Entry), ToolError> {
    let (browser, page) = session.page(wanted.page)?;
    browser.check_usable(page.id)?;
    let entries = named(browser.page_tools(page.id).tools);
    let in_frame = |entry: &&Entry| {
        wanted.frame.is_none_or(|frame| *entry.tool.frame == *frame || entry.tool.frame_path == frame)
    };
    let by_original: Vec<&Entry> =
        entries.iter().filter(|e| e.tool.definition.name == wanted.tool).filter(in_frame).collect();
    let found = match by_original.as_slice() {
        [one] => *one,
        [] => entries
            .iter()
            .filter(in_frame)
            .find(|e| e.exposed == wanted.tool)
            .ok_or_else(|| unknown(wanted, &entries, page.id))?,
        several => return Err(ambiguous(wanted.tool, several)),
    };
    Ok((browser, found.clone()))
}

fn unknown(wanted: &Wanted<'_>, entries: &[Entry], page: PageId) -> ToolError {
    let names: Vec<&str> = entries.iter().map(|e| e.tool.definition.name.as_str()).take(30).collect();
    let there = match names.as_slice() {
        [] => "It offers no tools now; page_tools tells why.".into(),
        names => format!("It offers: {}.", names.join(", ")),
    };
    let place = wanted.frame.map(|frame| format!(" in frame {frame:?}")).unwrap_or_default();
    ToolError::not_run(
        ErrorKind::NotFound,
        format!("The page {page} offers no tool {:?}{place}. {there}", wanted.tool),
    )
}

fn ambiguous(tool: &str, several: &[&Entry]) -> ToolError {
    let frames: Vec<String> = several
        .iter()
        .map(|e| format!("{} (frame {}, {}: {})", e.tool.frame, e.tool.frame_path, e.tool.origin, e.exposed))
        .collect();
    ToolError::not_run(
        ErrorKind::Ambiguous,
        format!("Several frames offer {tool:?}; say which with frameId: {}.", frames.join("; ")),
    )
}

/// Refuses what the user did not allow.
fn permit(session: &Session, tool: &PageTool) -> Result<(), ToolError> {
    let name = &tool.definition.name;
    let hints = tool.definition.annotations;
    if hints.debugging && !session.options.page_tools_debugging {
        return Err(ToolError::not_run(
            ErrorKind::NotAllowed,
            format!(
                "{name:?} is a developer tool of the page. The option --page-tools-debugging permits it."
            ),
        ));
    }
    match session.options.consequential {
        Consequential::Ask if hints.consequential => Err(ToolError::not_run(
            ErrorKind::ConfirmationUnavailable,
            format!(
                "{name:?} says of itself that it has consequences and needs the user's consent, and there is no way to ask here. The user can permit such tools with --consequential allow."
            ),
        )),
        Consequential::Deny if hints.consequential => Err(ToolError::not_run(
            ErrorKind::NotAllowed,
            format!("{name:?} has consequences, and the option --consequential deny forbids such tools."),
        )),
        _ => Ok(()),
    }
}

/// The shape of a successful call.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    tool: &'a str,
    origin: &'a str,
    page_id: u32,
    url: String,
    result: Box<RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    untrusted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    navigated_to: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools_added: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools_removed: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
}

/// Calls the tool and tells what came of it.
pub async fn call(
    session: &Session,
    browser: &Browser,
    tool: &PageTool,
    arguments: &Map<String, Value>,
    deadline: Option<Duration>,
    cancel: CancellationToken,
) -> Result<ToolOutput, ToolError> {
    permit(session, tool)?;
    let before = Listing::of(browser, tool.page, &session.options);
    let arrival = browser.watch_arrival(tool.page);
    let deadline = deadline.unwrap_or(session.options.page_call_timeout).min(limits::CALL_MAX);
    let result = browser.call_tool(tool, arguments, &CallOptions { deadline, cancel }).await;
    let arrived = browser.arrived(arrival).await;
    if arrived.is_some() {
        browser.settle(tool.page).await;
    }
    let url = browser.page(tool.page).map(|page| page.url).unwrap_or_default();
    let changes = Changes {
        navigated_to: arrived.map(|document| document.url),
        tools: ToolChanges::between(&before, &Listing::of(browser, tool.page, &session.options)),
        dialog: browser.dialog(tool.page),
    };
    match result {
        Ok(answer) => Ok(told(session, tool, url, answer, &changes)),
        Err(error) => Err(changes.add_to(error)),
    }
}

fn told(session: &Session, tool: &PageTool, url: String, answer: Answer, changes: &Changes) -> ToolOutput {
    let name = &tool.definition.name;
    let (result, status) = bounded_result(session, name, &answer);
    let data = Told {
        tool: name,
        origin: &tool.origin,
        page_id: tool.page.0,
        url,
        result,
        untrusted: tool.definition.annotations.untrusted_content,
        navigated_to: changes.navigated_to.clone(),
        tools_added: first_names(&changes.tools.added),
        tools_removed: first_names(&changes.tools.removed),
        status,
    };
    let note = changes.block();
    let mut output = ToolOutput {
        is_error: answer.is_error,
        structured: to_raw_value(&data).ok(),
        ..ToolOutput::default()
    };
    output.blocks = answer.content.unwrap_or_else(|| vec![json!({"type": "text", "text": answer.text})]);
    output.text = note;
    output
}

/// The value for `structuredContent`; one that is too large lies in the workspace.
fn bounded_result(session: &Session, name: &str, answer: &Answer) -> (Box<RawValue>, Option<&'static str>) {
    let whole = answer.value.get();
    if whole.len() <= limits::STRUCTURED_BYTES {
        return (answer.value.clone(), None);
    }
    let head = text::head(&answer.text, session.options.max_text_lines, session.options.max_text_bytes).head;
    let told = json!({"bytes": whole.len(), "head": head});
    (kept_whole(told, name, whole, &session.workspace), Some("cut"))
}

/// What a call did to its page.
#[derive(Debug, Default)]
pub struct Changes {
    /// Where the page went.
    pub navigated_to: Option<String>,
    /// Which tools came and went.
    pub tools: ToolChanges,
    /// The dialog that the page shows.
    pub dialog: Option<Arc<Dialog>>,
}

impl Changes {
    /// The short block at the end of a result; empty when nothing changed.
    pub fn block(&self) -> String {
        let dialog = self.dialog.iter();
        let mut lines: Vec<String> = dialog
            .map(|d| format!("The page shows a {d} and waits for an answer. handle_dialog gives one."))
            .collect();
        if let Some(url) = &self.navigated_to {
            lines.push(format!("The page went to {}.", text::one_line(url, limits::SHORT_TEXT_CHARS)));
        }
        lines.extend(self.tools.lines());
        lines.join("\n")
    }

    fn add_to(mut self, mut error: ToolError) -> ToolError {
        if error.kind == ErrorKind::Dialog {
            self.dialog = None;
        }
        let block = self.block();
        if !block.is_empty() {
            error.message = format!("{}\n{block}", error.message);
        }
        if let Some(url) = &self.navigated_to {
            let details = error.details.get_or_insert_with(|| json!({}));
            details["navigatedTo"] = json!(url);
        }
        error
    }
}

/// Page tools that came and went, by their MCP names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ToolChanges {
    /// New ones.
    pub added: Vec<String>,
    /// Those that are no more.
    pub removed: Vec<String>,
}

impl ToolChanges {
    /// The difference of two lists. A tool that is the same in another document neither came nor went.
    pub fn between(before: &Listing, after: &Listing) -> Self {
        let missing = |from: &Listing, of: &Listing| {
            let gone = of.entries.iter().filter(|entry| from.find(&entry.exposed).is_none());
            gone.map(|entry| entry.exposed.clone()).collect()
        };
        Self { added: missing(before, after), removed: missing(after, before) }
    }

    fn lines(&self) -> impl Iterator<Item = String> + use<> {
        let line = |what: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{what}: {}.", first_names(names).join(", ")))
        };
        [line("New page tools", &self.added), line("Page tools that are gone", &self.removed)]
            .into_iter()
            .flatten()
    }
}

/// Names that are told at once; the rest is a number.
const NAMES: usize = 64;

fn first_names(names: &[String]) -> Vec<String> {
    let mut told: Vec<String> = names.iter().take(NAMES).cloned().collect();
    if names.len() > NAMES {
        told.push(format!("and {} more", names.len() - NAMES));
    }
    told
}
