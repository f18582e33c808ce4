//! What a user does with mouse and keyboard: real events, which the page sees as trusted.
//!
//! * [`target`]: where to click, once the element is ready for it; [`geometry`]: rectangles;
//! * [`keys`]: key combinations; [`fill`]: gives each kind of control a value.

mod fill;
pub(crate) mod geometry;
mod keys;
pub(crate) mod target;

use std::time::Duration;

use pagebridge_cdp::{Call, CdpSession};
use pagebridge_core::{ErrorKind, Outcome, ToolError};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::loss;
use crate::page_tools::{CallOptions, isolated_world};
use crate::targets::PageId;
use crate::wait::{Met, Progress};
use geometry::Point;
use keys::{Combination, Key};

/// For the page to go on by one turn, in which it begins the navigations that it was told to begin.
const TO_TURN: Duration = Duration::from_secs(1);

impl Browser {
    /// Clicks an element, once it can be clicked. Ends when the page has handled it, or shows a dialog.
    pub async fn click(
        &self,
        page: PageId,
        uid: &str,
        double: bool,
        options: &CallOptions,
    ) -> Result<(), ToolError> {
        let progress = Progress::default();
        let work = async {
            let element = self.element(page, uid).await?;
            let at = self.point_of(&element).await?;
            self.click_at(page, at, double, &progress).await
        };
        self.act(page, "The click", options, &progress, work).await.map(drop)
    }

    /// Presses keys as on a keyboard, like `Control+A` or `Enter`. What has the focus gets them.
    pub async fn press_key(&self, page: PageId, keys: &str, options: &CallOptions) -> Result<(), ToolError> {
        let combination = keys::parse(keys).map_err(|reason| {
            ToolError::not_run(ErrorKind::InvalidArguments, format!("No key was pressed: {reason}"))
        })?;
        let progress = Progress::default();
        let work = async { self.press(page, &combination, &progress).await };
        self.act(page, "The key press", options, &progress, work).await.map(drop)
    }

    /// Waits for something that changes the page, and one turn longer. A dialog ends it well when the thing is done;
    /// then there is no result.
    async fn act<T>(
        &self,
        page: PageId,
        what: &str,
        options: &CallOptions,
        progress: &Progress,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<Option<T>, ToolError> {
        let whole = async {
            let result = work.await?;
            self.turn(page).await;
            Ok(result)
        };
        match self.attend(page, what, options, progress, whole).await? {
            Met::Done(result) => Ok(Some(result)),
            Met::Dialog(_) if progress.is_done() => Ok(None),
            Met::Dialog(dialog) => {
                let what = format!("{what} has not ended");
                Err(crate::dialogs::in_the_way(&dialog, &what, progress.outcome()))
            }
        }
    }

    /// Lets the page go on by one turn of its event loop.
    async fn turn(&self, page: PageId) {
        let Some(top) = self.targets.top_document(page) else { return };
        let turn = async {
            let context = isolated_world(&top.session, &top.frame).await?;
            let params = json!({
                "functionDeclaration": "() => new Promise((done) => setTimeout(done, 0))",
                "executionContextId": context, "awaitPromise": true, "returnByValue": true,
            });
            top.session.call("Runtime.callFunctionOn", params).await
        };
        // That the document is gone is no failure: it went where it was sent.
        let _ = tokio::time::timeout(TO_TURN, turn).await;
    }

    async fn click_at(
        &self,
        page: PageId,
        at: Point,
        double: bool,
        progress: &Progress,
    ) -> Result<(), ToolError> {
        let session = self.session(page)?;
        progress.begin();
        // All are sent at once: whatever the first one sets off, the button does not stay down.
        let mut sent = vec![mouse(&session, "mouseMoved", at, 0)];
        for count in 1..=if double { 2 } else { 1 } {
            sent.push(mouse(&session, "mousePressed", at, count));
            sent.push(mouse(&session, "mouseReleased", at, count));
        }
        progress.done();
        answered(sent).await
    }

    async fn press(&self, page: PageId, wanted: &Combination, progress: &Progress) -> Result<(), ToolError> {
        let session = self.session(page)?;
        progress.begin();
        let mut held = 0;
        let mut sent = Vec::new();
        for modifier in &wanted.modifiers {
            held |= modifier.bit();
            sent.push(key_event(&session, "rawKeyDown", &modifier.key(), held));
        }
        let down = if wanted.key.text.is_empty() { "rawKeyDown" } else { "keyDown" };
        sent.push(key_event(&session, down, &wanted.key, held));
        sent.push(key_event(&session, "keyUp", &wanted.key, held));
        for modifier in wanted.modifiers.iter().rev() {
            held &= !modifier.bit();
            sent.push(key_event(&session, "keyUp", &modifier.key(), held));
        }
        progress.done();
        answered(sent).await
    }
}

/// Waits until the page has handled what was sent. A page that closed over it has handled it.
async fn answered(sent: Vec<Call>) -> Result<(), ToolError> {
    for call in sent {
        call.await.map_err(|error| loss::tool_error(&error, Outcome::Unknown))?;
    }
    Ok(())
}

fn mouse(session: &CdpSession, kind: &str, at: Point, clicks: u32) -> Call {
    let is_button = clicks > 0;
    let params = json!({
        "type": kind, "x": at.0, "y": at.1, "clickCount": clicks,
        "button": if is_button { "left" } else { "none" },
        "buttons": u32::from(kind == "mousePressed"),
    });
    session.call("Input.dispatchMouseEvent", params)
}

fn key_event(session: &CdpSession, kind: &str, key: &Key, modifiers: u32) -> Call {
    let mut params = json!({
        "type": kind, "modifiers": modifiers, "key": key.key, "code": key.code,
        "windowsVirtualKeyCode": key.number, "nativeVirtualKeyCode": key.number, "location": key.location,
    });
    if kind == "keyDown" {
        params["text"] = Value::from(key.text.as_str());
        params["unmodifiedText"] = Value::from(key.text.as_str());
    }
    session.call("Input.dispatchKeyEvent", params)
}
