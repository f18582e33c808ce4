//! Tells a client that the list of tools changed, once for a burst of changes.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use pagebridge_core::limits;
use pagebridge_mcp::server::Peer;
use serde_json::json;
use tokio::sync::watch;

use crate::session::Session;

/// A page that loads for longer is listed as it is.
const LOADING_MAX: Duration = Duration::from_secs(1);

/// Sends `notifications/tools/list_changed`.
pub fn notify(peer: &Peer) {
    peer.notify("notifications/tools/list_changed", json!({}));
}

/// Announces changes for as long as the session lives.
pub async fn announce(session: Arc<Session>, peer: Peer) {
    let mut signals = Signals::of(&session);
    let session = Arc::downgrade(&session);
    while signals.next().await.is_some() {
        tokio::time::sleep(limits::LIST_CHANGED_DEBOUNCE).await;
        until_loaded(&session).await;
        let Some(session) = session.upgrade() else { return };
        // New ears before the look: what happens after the look must wake us again.
        signals = Signals::of(&session);
        if session.take_list_change() {
            notify(&peer);
        }
    }
}

/// A page that is changing documents has no tools for a moment; nobody needs to be told of that moment.
async fn until_loaded(session: &Weak<Session>) {
    let is_loading = || session.upgrade().is_some_and(|session| session.is_loading());
    let started = Instant::now();
    while is_loading() && started.elapsed() < LOADING_MAX {
        tokio::time::sleep(limits::LIST_CHANGED_DEBOUNCE).await;
    }
}

/// Everything that may change the list.
struct Signals {
    selection: watch::Receiver<Option<pagebridge_browser::PageId>>,
    browsers: watch::Receiver<u32>,
    revision: Option<watch::Receiver<u64>>,
}

impl Signals {
    fn of(session: &Session) -> Self {
        Self {
            selection: session.selection(),
            browsers: session.slot.changes(),
            revision: session.slot.peek().map(|browser| browser.revision()),
        }
    }

    /// The next signal; `None` when the session is gone.
    async fn next(&mut self) -> Option<()> {
        let revision = async {
            match &mut self.revision {
                Some(revision) => {
                    // A browser that is gone says nothing more; the next one is told by `browsers`.
                    if revision.changed().await.is_err() {
                        std::future::pending::<()>().await;
                    }
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.selection.changed() => changed.ok(),
            changed = self.browsers.changed() => changed.ok(),
            () = revision => Some(()),
        }
    }
}
