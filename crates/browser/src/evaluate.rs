//! Runs a function of the caller in a page.

use std::sync::Arc;
use std::time::Duration;

use pagebridge_cdp::CdpError;
use pagebridge_core::json::readable;
use pagebridge_core::{ErrorKind, Outcome, ToolError, duration, limits, text};
use serde::Deserialize;
use serde_json::json;

use crate::browser::Browser;
use crate::dialogs::{self, Dialog};
use crate::events::{PageEvent, RemoteObject};
use crate::loss;
use crate::page_tools::CallOptions;
use crate::page_tools::answer::thrown_text;
use crate::targets::PageId;
use crate::targets::Subscription;

/// For the browser to end a script that went on too long.
const TO_STOP: Duration = Duration::from_millis(300);

/// What a function returned.
#[derive(Debug)]
pub struct Evaluated {
    /// As JSON where JSON can say it, else as JavaScript writes it (`undefined`, `NaN`, `10n`).
    pub text: String,
}

impl Browser {
    /// Calls `function` (the source of a JavaScript function) in the page's top document and awaits its result.
    /// The result is copied by the browser itself; the page's own `JSON` is not used.
    pub async fn evaluate(
        &self,
        page: PageId,
        function: &str,
        options: &CallOptions,
    ) -> Result<Evaluated, ToolError> {
        self.check_usable(page)?;
        let session = self.session(page)?;
        let mut events = self.targets.subscribe(page);
        let params = json!({
            // The line break ends a comment that the source may end with.
            "expression": format!("({function}\n)()"),
            "awaitPromise": true,
            "returnByValue": true,
            "userGesture": true,
        });
        let evaluated = session.call("Runtime.evaluate", params);
        let ended = tokio::select! {
            reply = evaluated => return finish(reply),
            dialog = next_dialog(&mut events) => {
                return Err(dialogs::in_the_way(&dialog, "The script has not ended", Outcome::Unknown));
            }
            () = options.cancel.cancelled() => {
                ToolError::unknown(ErrorKind::Cancelled, "The script was cancelled. What it did before is done.")
            }
            () = tokio::time::sleep(options.deadline) => ToolError::unknown(
                ErrorKind::Timeout,
                format!("The script did not end within {} and was stopped. What it did before is done.", duration::show(options.deadline)),
            ),
        };
        let stopped = session.call("Runtime.terminateExecution", json!({}));
        let _ = tokio::time::timeout(TO_STOP, stopped).await;
        Err(ended)
    }
}

/// The next dialog. Never ends otherwise: what else happens to the page, the call itself is told.
async fn next_dialog(events: &mut Subscription) -> Arc<Dialog> {
    while let Some(event) = events.recv().await {
        if let PageEvent::DialogOpened(dialog) = event {
            return dialog;
        }
    }
    std::future::pending().await
}

fn finish(reply: Result<pagebridge_cdp::Reply, CdpError>) -> Result<Evaluated, ToolError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Reply {
        result: RemoteObject,
        #[serde(default)]
        exception_details: Option<Exception>,
    }
    #[derive(Deserialize)]
    struct Exception {
        #[serde(default)]
        text: String,
        #[serde(default)]
        exception: Option<RemoteObject>,
    }
    let reply: Reply = reply.and_then(|reply| reply.decode()).map_err(|error| refused(&error))?;
    if let Some(thrown) = reply.exception_details {
        let reason = thrown.exception.as_ref().map_or(thrown.text, thrown_text);
        let message = text::bounded(&format!("The script threw: {reason}"), limits::DESCRIPTION_CHARS);
        return Err(ToolError::failed(ErrorKind::Threw, message));
    }
    let RemoteObject { kind, value, unserializable_value, .. } = reply.result;
    let text = unserializable_value
        .or_else(|| value.map(|value| readable(value.get()).into_owned()))
        .unwrap_or(kind);
    Ok(Evaluated { text })
}

fn refused(error: &CdpError) -> ToolError {
    match error {
        CdpError::Refused { message, .. } if message.contains("navigated") || message.contains("context") => {
            ToolError::unknown(
                ErrorKind::Navigated,
                "The page went to another document while the script ran; its result is lost.",
            )
        }
        CdpError::Refused { message, .. } => ToolError::failed(
            ErrorKind::Unsupported,
            format!("The script's result cannot be copied out of the page ({message}). Return plain data."),
        ),
        other => loss::tool_error(other, Outcome::Unknown),
    }
}
