//! What it means to a caller that the browser, a page or a renderer is gone.

use pagebridge_cdp::CdpError;
use pagebridge_core::{ErrorKind, Outcome, ToolError};

/// The error of a call that met a protocol error. `outcome` is what is known of the call by then.
pub(crate) fn tool_error(error: &CdpError, outcome: Outcome) -> ToolError {
    let (kind, message) = match error {
        CdpError::Closed => return browser_lost(outcome),
        CdpError::Detached => return page_closed(outcome),
        CdpError::Crashed => return page_crashed(outcome),
        CdpError::TooLarge { .. } => (ErrorKind::TooLarge, format!("{error}. Ask for less.")),
        CdpError::Refused { .. } | CdpError::Unexpected { .. } => {
            (ErrorKind::Unsupported, format!("The browser refused: {error}."))
        }
    };
    ToolError { kind, message, outcome, details: None }
}

pub(crate) fn browser_lost(outcome: Outcome) -> ToolError {
    let message = "The browser is gone, with its tabs and their state. The next call that needs one starts a new browser.";
    ToolError { kind: ErrorKind::BrowserLost, message: message.into(), outcome, details: None }
}

pub(crate) fn page_closed(outcome: Outcome) -> ToolError {
    let message = "The page was closed. list_pages tells which are open.";
    ToolError { kind: ErrorKind::Closed, message: message.into(), outcome, details: None }
}

pub(crate) fn page_crashed(outcome: Outcome) -> ToolError {
    let message = "The page's renderer process crashed; what the page held in memory is lost. navigate_page loads it again.";
    ToolError { kind: ErrorKind::Crashed, message: message.into(), outcome, details: None }
}

/// The error of a call to a page that has never answered: what is asked of it now comes after what was asked before.
pub(crate) fn page_unresponsive() -> ToolError {
    let message = "The page does not answer: its renderer process is stopped or busy, or a dialog from before stands open. Nothing was done. Try again later; navigate_page may free it, close_page closes it.";
    ToolError::not_run(ErrorKind::Timeout, message)
}
