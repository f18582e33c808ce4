//! Notices that a page went to another document while something else was going on.

use std::time::Duration;

use crate::browser::Browser;
use crate::events::PageEvent;
use crate::targets::{Document, PageId, Subscription};

/// For the new document to load, before its tools are looked at.
const TO_LOAD: Duration = Duration::from_secs(2);

/// For a navigation that the page's script asked for to start: it may come to nothing, and nothing tells.
const TO_START: Duration = Duration::from_millis(150);

/// Watches one page from its making on.
pub struct Arrival {
    page: PageId,
    events: Subscription,
}

impl Browser {
    /// Begins to watch for another top document.
    pub fn watch_arrival(&self, page: PageId) -> Arrival {
        Arrival { page, events: self.targets.subscribe_to(page, Seen::cares_for) }
    }

    /// The top document that the page went to since, loaded if it loads in time. `None` when it stayed.
    pub async fn arrived(&self, mut arrival: Arrival) -> Option<Document> {
        self.targets.caught_up().await;
        let mut seen = Seen::default();
        while let Ok(event) = arrival.events.try_recv() {
            seen.take(event);
        }
        arrival.follow(&mut seen, TO_START, |seen| seen.requested).await;
        arrival.follow(&mut seen, TO_LOAD, Seen::is_on_the_way).await;
        seen.committed?;
        self.top_document(arrival.page)
    }
}

impl Arrival {
    /// Takes events in for as long as it is worth waiting, and no longer than `most`.
    async fn follow(&mut self, seen: &mut Seen, most: Duration, worth: fn(&Seen) -> bool) {
        let _ = tokio::time::timeout(most, async {
            while worth(seen) {
                let Some(event) = self.events.recv().await else { return };
                seen.take(event);
            }
        })
        .await;
    }
}

#[derive(Default)]
struct Seen {
    requested: bool,
    started: bool,
    committed: Option<Document>,
    loaded: bool,
}

impl Seen {
    fn cares_for(event: &PageEvent) -> bool {
        !matches!(event, PageEvent::ToolInvoked(_) | PageEvent::ToolResponded(_) | PageEvent::ToolsChanged)
    }

    fn take(&mut self, event: PageEvent) {
        match event {
            PageEvent::NavigationRequested => self.requested = true,
            PageEvent::NavigationStarted => {
                self.requested = false;
                self.started = true;
            }
            PageEvent::NavigationEnded => self.started = false,
            PageEvent::Committed { document, restored } if document.is_top() => {
                self.requested = false;
                self.started = false;
                self.loaded = restored;
                self.committed = Some(document);
            }
            PageEvent::Loaded(loader) => {
                self.loaded |= self.committed.as_ref().is_some_and(|document| document.loader == loader);
            }
            // A dialog stops the load; nobody knows for how long.
            PageEvent::DialogOpened(_) => {
                self.requested = false;
                self.started = false;
                self.loaded = true;
            }
            PageEvent::Closed | PageEvent::Crashed => {
                *self = Self { loaded: true, ..Self::default() };
            }
            _ => {}
        }
    }

    fn is_on_the_way(&self) -> bool {
        self.started || (self.committed.is_some() && !self.loaded)
    }
}
