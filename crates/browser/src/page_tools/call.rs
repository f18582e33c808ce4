//! One run of a page tool, from the first byte to whichever of its ends comes first: an answer, the page going
//! elsewhere, closing or crashing, the browser ending, cancellation, the deadline.
//!
//! A run is started once and never again. The subscription to the page's events is made before the start, so
//! that no end can be missed.

use std::sync::Arc;
use std::time::Duration;

use pagebridge_cdp::{CdpError, CdpSession};
use pagebridge_core::{ErrorKind, Outcome, ToolError, duration};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, of_response};
use super::route::{Route, Started, Starting};
use super::{PageTool, Registry, Via};
use crate::events::{PageEvent, ToolInvoked, ToolResponded};
use crate::targets::{Subscription, Targets};
use crate::{dialogs, loss};

/// A tool whose document went away may still be answered for by the next document, this soon after it.
const AFTER_NAVIGATION: Duration = Duration::from_millis(800);
/// The same, once the next document has loaded.
const AFTER_LOAD: Duration = Duration::from_millis(300);
/// For the words of a thrown error, which come beside the in-page answer.
const FOR_DETAILS: Duration = Duration::from_millis(100);
/// For the browser to stop a run that was cancelled, before harder means are used.
const TO_STOP: Duration = Duration::from_millis(300);

/// Answers that are kept until it is known whether they are ours.
const EARLY: usize = 32;

/// How long a call may take, and how it is called off.
#[derive(Debug, Clone)]
pub struct CallOptions {
    /// Counted from the start of the call.
    pub deadline: Duration,
    /// Cancels the call, and the page's run with it.
    pub cancel: CancellationToken,
}

/// Runs a tool once.
pub(crate) async fn run(
    targets: &Arc<Targets>,
    registry: &Registry,
    tool: &PageTool,
    arguments: &Map<String, Value>,
    options: &CallOptions,
) -> Result<Answer, ToolError> {
    let events = targets.subscribe(tool.page);
    let Some(document) = targets.document(tool.document) else { return Err(gone(tool)) };
    let page_api = match tool.via {
        Via::Browser => None,
        Via::PageApi => Some(registry.page_api(tool.page, tool.document).ok_or_else(|| gone(tool))?),
    };
    let route = Route::of(page_api, arguments);
    let starting = route.start(targets, &document, tool, arguments);
    let run = Run {
        tool,
        input: arguments,
        route,
        session: document.session,
        events,
        invocation: None,
        early: Vec::new(),
        document_gone: false,
        failure: None,
        last_call: None,
    };
    run.until_end(starting, options).await
}

/// The error for a tool that is not offered any more.
pub(crate) fn gone(tool: &PageTool) -> ToolError {
    let name = &tool.definition.name;
    ToolError::not_run(
        ErrorKind::Gone,
        format!(
            "The document that offered {name:?} is gone, or has taken the tool back. page_tools lists what there is now."
        ),
    )
}

struct Run<'a> {
    tool: &'a PageTool,
    input: &'a Map<String, Value>,
    route: Route,
    session: CdpSession,
    events: Subscription,
    /// Chromium's id of our run, once known.
    invocation: Option<String>,
    /// Answers that came before it was known whether they are ours, or before they counted.
    early: Vec<Arc<ToolResponded>>,
    document_gone: bool,
    /// A failure in the page whose reason is still to come.
    failure: Option<String>,
    /// When to stop waiting for a last word, after the document went away or the page reported a failure.
    last_call: Option<Instant>,
}

type End = Result<Answer, ToolError>;

impl Run<'_> {
    async fn until_end(mut self, mut starting: Starting, options: &CallOptions) -> End {
        let deadline = Instant::now() + options.deadline;
        let mut is_started = false;
        loop {
            let until = self.last_call.map_or(deadline, |at| at.min(deadline));
            let end = tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    Some(event) => self.on_event(event),
                    None => Some(Err(loss::browser_lost(Outcome::Unknown))),
                },
                started = &mut starting, if !is_started => {
                    is_started = true;
                    self.on_started(started)
                }
                () = options.cancel.cancelled() => Some(Err(self.cancelled().await)),
                () = sleep_until(until) => Some(Err(self.too_late(options.deadline).await)),
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    fn on_started(&mut self, started: Result<Started, CdpError>) -> Option<End> {
        match started {
            Ok(Started::Invoked(id)) => {
                self.invocation = Some(id);
                self.early_answer()
            }
            Ok(Started::Returned(text)) => Some(Ok(Answer::from_text(text))),
            Ok(Started::Gave(value)) => Some(Ok(Answer::from_output(Some(&value)))),
            Ok(Started::Failed(reason)) => {
                self.failure = Some(reason);
                self.last_call = Some(Instant::now() + FOR_DETAILS);
                self.early_answer()
            }
            Ok(Started::Missing) => Some(Err(gone(self.tool))),
            Ok(Started::Interrupted) => {
                self.document_gone = true;
                self.last_call = Some(Instant::now() + AFTER_NAVIGATION);
                None
            }
            // The event that tells what was lost follows, or the subscription ends.
            Err(error) if error.is_loss() => None,
            Err(error) => Some(Err(loss::tool_error(&error, Outcome::NotRun))),
        }
    }

    fn early_answer(&self) -> Option<End> {
        let ours = self.early.iter().find(|response| self.is_ours(response))?;
        Some(self.answered(ours))
    }

    fn on_event(&mut self, event: PageEvent) -> Option<End> {
        match event {
            PageEvent::ToolInvoked(invoked) => self.on_invoked(&invoked),
            PageEvent::ToolResponded(response) => return self.on_response(response),
            PageEvent::DialogOpened(dialog) => {
                let what = format!("The page's tool {:?} has not ended", self.tool.definition.name);
                return Some(Err(dialogs::in_the_way(&dialog, &what, Outcome::Unknown)));
            }
            PageEvent::DocumentCrashed(document) if document == self.tool.document => {
                return Some(Err(loss::page_crashed(Outcome::Unknown)));
            }
            PageEvent::DocumentGone(document) if document == self.tool.document => {
                self.document_gone = true;
                self.last_call = Some(Instant::now() + AFTER_NAVIGATION);
            }
            PageEvent::Loaded(_) if self.document_gone => {
                let soon = Instant::now() + AFTER_LOAD;
                self.last_call = Some(self.last_call.map_or(soon, |at| at.min(soon)));
            }
            PageEvent::Closed => return Some(Err(loss::page_closed(Outcome::Unknown))),
            PageEvent::Crashed => return Some(Err(loss::page_crashed(Outcome::Unknown))),
            _ => {}
        }
        None
    }

    /// A run in the page has its id told by an event only: it is the next run of this tool with our arguments.
    fn on_invoked(&mut self, invoked: &ToolInvoked) {
        let is_ours = matches!(self.route, Route::InPage { .. })
            && self.invocation.is_none()
            && invoked.tool_name == self.tool.definition.name
            && invoked.frame_id == self.tool.frame
            && serde_json::from_str::<Map<String, Value>>(&invoked.input)
                .is_ok_and(|input| input == *self.input);
        if is_ours {
            self.invocation = Some(invoked.invocation_id.clone());
        }
    }

    /// Over the protocol the event is the answer. In the page the answer is what the page returned, and the
    /// event only tells the reason of a failure, or speaks for a document that went away.
    fn on_response(&mut self, response: Arc<ToolResponded>) -> Option<End> {
        let is_answer = matches!(self.route, Route::Protocol) || self.failure.is_some() || self.document_gone;
        if is_answer && self.is_ours(&response) {
            return Some(self.answered(&response));
        }
        // A page's own API tells nothing by events. Else ours is among the last ones; a page may answer other
        // calls all the time, with large results.
        let may_be_ours = self.invocation.is_none() && !matches!(self.route, Route::PageApi { .. });
        if may_be_ours || self.is_ours(&response) {
            if self.early.len() == EARLY {
                self.early.remove(0);
            }
            self.early.push(response);
        }
        None
    }

    fn is_ours(&self, response: &ToolResponded) -> bool {
        self.invocation.as_ref() == Some(&response.invocation_id)
    }

    fn answered(&self, response: &ToolResponded) -> End {
        if let Some(object) = response.exception.as_ref().and_then(|thrown| thrown.object_id.as_ref()) {
            drop(self.session.call("Runtime.releaseObject", json!({"objectId": object})));
        }
        of_response(&self.tool.definition.name, response)
    }

    async fn cancelled(&self) -> ToolError {
        self.stop().await;
        let name = &self.tool.definition.name;
        ToolError::unknown(
            ErrorKind::Cancelled,
            format!(
                "The call of {name:?} was cancelled and the page was told. What the tool did before is done."
            ),
        )
    }

    async fn too_late(&self, deadline: Duration) -> ToolError {
        let name = &self.tool.definition.name;
        if self.document_gone {
            return ToolError::unknown(
                ErrorKind::Navigated,
                format!(
                    "The page went to another document while its tool {name:?} ran, and gave no answer. Whether the tool did its work is unknown: look before you call it again."
                ),
            );
        }
        if let Some(reason) = &self.failure {
            let message = format!("The page's tool {name:?} failed: {reason}");
            return ToolError::failed(ErrorKind::Threw, message);
        }
        self.stop().await;
        ToolError::unknown(
            ErrorKind::Timeout,
            format!("The page's tool {name:?} gave no answer within {} and was cancelled. It may have done its work in part: look before you call it again, or allow more time with timeoutMs.", duration::show(deadline)),
        )
        .with_details(json!({"delivered": self.invocation.is_some()}))
    }

    /// Ends the run in the page: politely, then by ending the script that keeps the page busy.
    async fn stop(&self) {
        let Some(polite) = self.route.stop(&self.session, self.invocation.as_deref()) else { return };
        if timeout(TO_STOP, polite).await.is_err() {
            let ended = self.session.call("Runtime.terminateExecution", json!({}));
            let _ = timeout(TO_STOP, ended).await;
        }
    }
}
