//! JavaScript dialogs. An open one stops its page's scripts, so each is answered at once, and told.

use std::sync::Arc;

use pagebridge_core::{limits, text};
use serde_json::json;

use crate::events::{Dialog, DialogOpening, PageEvent};
use crate::targets::{PageId, Targets};

/// Answers a dialog: `alert` and `beforeunload` are accepted (nothing else lets the page go on), `confirm` and
/// `prompt` are dismissed, because consent is not ours to give.
pub(crate) fn answer(targets: &Arc<Targets>, page: PageId, opening: &DialogOpening) {
    let accepted = matches!(opening.kind.as_str(), "alert" | "beforeunload");
    let Some(session) = targets.session(page) else { return };
    let answered = session.call("Page.handleJavaScriptDialog", json!({"accept": accepted}));
    let dialog = Arc::new(Dialog {
        kind: text::one_line(&opening.kind, limits::SHORT_TEXT_CHARS),
        message: text::one_line(&opening.message, limits::SHORT_TEXT_CHARS),
        accepted,
    });
    let targets = targets.clone();
    tokio::spawn(async move {
        if let Err(error) = answered.await {
            tracing::debug!(%error, "a dialog was gone before it could be answered");
        }
        targets.announce(page, &PageEvent::DialogAnswered(dialog));
    });
}
