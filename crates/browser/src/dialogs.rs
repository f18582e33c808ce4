//! JavaScript dialogs. An open one stops its page's scripts, so every call that needs the page is told of it
//! at once, and [`Browser::answer_dialog`] works whatever else is going on.

use std::sync::Arc;
use std::time::Duration;

use pagebridge_cdp::CdpError;
use pagebridge_core::{ErrorKind, Outcome, ToolError, limits, text};
use serde_json::json;

use crate::browser::Browser;
use crate::events::{DialogOpening, PageEvent};
use crate::loss;
use crate::page_tools::answer::of_response;
use crate::targets::{PageId, Subscription};

/// For a dialog to be gone after its answer.
const TO_CLOSE: Duration = Duration::from_secs(2);
/// For a page tool that waited behind the dialog to answer.
const TO_GO_ON: Duration = Duration::from_millis(300);

/// A JavaScript dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// `alert`, `confirm`, `prompt` or `beforeunload`.
    pub kind: String,
    /// The page's text, cleaned and bounded.
    pub message: String,
    /// What a prompt suggests.
    pub default_prompt: String,
}

impl From<&DialogOpening> for Dialog {
    fn from(opening: &DialogOpening) -> Self {
        let short = |page_text: &str| text::one_line(page_text, limits::SHORT_TEXT_CHARS);
        Self {
            kind: short(&opening.kind),
            message: short(&opening.message),
            default_prompt: short(&opening.default_prompt),
        }
    }
}

impl std::fmt::Display for Dialog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} dialog {:?}", self.kind, self.message)?;
        if !self.default_prompt.is_empty() {
            write!(f, " (suggesting {:?})", self.default_prompt)?;
        }
        Ok(())
    }
}

/// The error of a call that a dialog stops.
pub(crate) fn in_the_way(dialog: &Dialog, what: &str, outcome: Outcome) -> ToolError {
    let message =
        format!("{what}: the page shows a {dialog} and waits for an answer. handle_dialog gives one.");
    let details = json!({"dialog": {"type": dialog.kind, "message": dialog.message}});
    ToolError { kind: ErrorKind::Dialog, message, outcome, details: Some(details) }
}

/// What came of answering a dialog.
#[derive(Debug)]
pub struct DialogAnswered {
    /// The dialog.
    pub dialog: Arc<Dialog>,
    /// The dialog that the page shows now, if it went straight to another.
    pub next: Option<Arc<Dialog>>,
    /// What a page tool that waited behind it answered, if it answered at once.
    pub answer: Option<String>,
}

impl Browser {
    /// The dialog that a page shows.
    pub fn dialog(&self, page: PageId) -> Option<Arc<Dialog>> {
        self.targets.state().pages.get(&page)?.dialog.as_ref().map(|open| open.dialog.clone())
    }

    /// Refuses what cannot go on while the page shows a dialog, or when its renderer process is gone.
    pub fn check_usable(&self, page: PageId) -> Result<(), ToolError> {
        let page_info = self.page(page);
        if page_info.as_ref().is_some_and(|page| page.crashed) {
            return Err(loss::page_crashed(Outcome::NotRun));
        }
        if page_info.is_some_and(|page| page.unresponsive) {
            return Err(loss::page_unresponsive());
        }
        self.check_no_dialog(page)
    }

    /// Refuses what cannot go on while the page shows a dialog.
    pub fn check_no_dialog(&self, page: PageId) -> Result<(), ToolError> {
        match self.dialog(page) {
            Some(dialog) => Err(in_the_way(&dialog, "Nothing was done", Outcome::NotRun)),
            None => Ok(()),
        }
    }

    /// Accepts or dismisses the dialog that a page shows. `prompt_text` is what a prompt gets.
    pub async fn answer_dialog(
        &self,
        page: PageId,
        accept: bool,
        prompt_text: Option<&str>,
    ) -> Result<DialogAnswered, ToolError> {
        let mut events = self.targets.subscribe(page);
        let open = self.targets.state().pages.get(&page).and_then(|page| page.dialog.clone());
        let Some(open) = open else {
            return Err(ToolError::not_run(ErrorKind::NotFound, format!("The page {page} shows no dialog.")));
        };
        let mut params = json!({"accept": accept});
        if let Some(text) = prompt_text {
            params["promptText"] = json!(text);
        }
        let answered = open.session.call("Page.handleJavaScriptDialog", params).await;
        match answered {
            Ok(_) => {}
            // It went away by itself: answered by somebody else, or with its page.
            Err(CdpError::Refused { .. }) => self.targets.state().dialog_closed(page),
            Err(error) => return Err(loss::tool_error(&error, Outcome::Unknown)),
        }
        let _ = tokio::time::timeout(TO_CLOSE, closed(&mut events)).await;
        let answer = tokio::time::timeout(TO_GO_ON, next_answer(&mut events)).await.ok().flatten();
        Ok(DialogAnswered { dialog: open.dialog, next: self.dialog(page), answer })
    }
}

async fn closed(events: &mut Subscription) {
    while let Some(event) = events.recv().await {
        if matches!(event, PageEvent::DialogClosed | PageEvent::Closed | PageEvent::Crashed) {
            return;
        }
    }
}

/// What the next page tool answers, unless another dialog comes first.
async fn next_answer(events: &mut Subscription) -> Option<String> {
    while let Some(event) = events.recv().await {
        match event {
            PageEvent::ToolResponded(response) => {
                let answer = of_response("of the page", &response);
                return Some(answer.map_or_else(|error| error.message, |answer| answer.text));
            }
            PageEvent::DialogOpened(_) | PageEvent::Closed | PageEvent::Crashed => return None,
            _ => {}
        }
    }
    None
}
