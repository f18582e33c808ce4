//! A session whose browser is somebody else's: the first call attaches to it, and so does the next after a loss.

use pagebridge_browser::PageId;
use pagebridge_core::{ErrorKind, ToolError};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::session::Session;

/// What is told once when the connection was lost and made anew.
pub(crate) const CONNECTED_AGAIN: &str =
    "The connection to the browser was lost and made anew. Its pages have new numbers.";

impl Session {
    /// Before a local tool runs: attaches if the browser is somebody else's and nobody has yet, and waits, a
    /// bounded time, for the pages that the tool is about. Tools that need no browser start nothing.
    pub(crate) async fn ensure_attached(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        cancel: &CancellationToken,
    ) -> Result<(), ToolError> {
        if self.slot.endpoint().is_none() || tool == "bridge_info" {
            return Ok(());
        }
        let cancelled = || ToolError::not_run(ErrorKind::Cancelled, "The call was cancelled.");
        let was_lost = self.slot.generation() > 0 && self.slot.peek().is_none();
        let browser = cancel.run_until_cancelled(self.slot.get()).await.ok_or_else(cancelled)??;
        self.select_first_of(&browser, self.slot.generation());
        let page = match (tool, arguments.get("pageId").and_then(Value::as_u64)) {
            ("new_page", _) => return Ok(()),
            ("list_pages", _) => None,
            ("page_tools", _) if arguments.get("allPages") == Some(&Value::Bool(true)) => None,
            (_, Some(page)) => u32::try_from(page).ok().map(PageId),
            // It means a page that is gone, and must not happen to another one.
            (_, None) if self.slot.take_restart() || was_lost => {
                let message =
                    format!("{CONNECTED_AGAIN} Nothing was done. list_pages tells which there are.");
                return Err(ToolError::not_run(ErrorKind::BrowserLost, message));
            }
            (_, None) => *self.selection().borrow(),
        };
        cancel.run_until_cancelled(browser.until_ready(page)).await.ok_or_else(cancelled)
    }

    /// The error of a tool as the user of a browser of somebody else must understand it.
    pub(crate) fn told(&self, error: ToolError) -> ToolError {
        match self.slot.endpoint() {
            Some(endpoint) if error.kind == ErrorKind::BrowserLost => {
                let message = format!(
                    "The connection to the browser at {endpoint} is lost; the browser may go on without us. The next call connects again; its pages then have new numbers."
                );
                ToolError { message, ..error }
            }
            _ => error,
        }
    }
}
