//! The one owner of pages, frames and documents.
//!
//! One task reads every CDP event once, in wire order ([`crate::driver`]). It changes the state here, and
//! everything else either asks this state or subscribes to the [`PageEvent`]s of a page. Nobody else keeps a
//! copy of which document is where: a page tool, a call or an answer names its [`DocumentId`] and asks.

mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pagebridge_cdp::CdpSession;
use tokio::sync::{mpsc, watch};

use crate::events::{FrameId, PageEvent};
pub(crate) use state::{Page, State};

/// A page (tab) of one browser. Numbers are given once and never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId(pub u32);

impl std::fmt::Display for PageId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// One document that a frame shows or has shown. Numbers are given once and never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DocumentId(pub u64);

/// A frame's current document.
#[derive(Debug, Clone)]
pub struct Document {
    /// What tools, calls and answers are bound to.
    pub id: DocumentId,
    /// The page that it belongs to.
    pub page: PageId,
    /// The frame that shows it.
    pub frame: FrameId,
    /// The session that reaches it: the page's own, or that of another process for a frame of another site.
    pub session: CdpSession,
    /// The frame's place in the page: `0` for the top one, `0.2` for its third child.
    pub frame_path: String,
    /// Chromium's id of the load that made it; empty while unknown.
    pub loader: Arc<str>,
    /// Its address.
    pub url: String,
    /// The origin that the protocol tells; it cannot tell the one that `about:` documents inherit.
    pub protocol_origin: String,
}

impl Document {
    /// Whether it is the page's top document.
    pub fn is_top(&self) -> bool {
        self.frame_path == "0"
    }

    /// The frame's place as numbers, for sorting.
    pub fn place(&self) -> Vec<u32> {
        self.frame_path.split('.').map(|number| number.parse().unwrap_or(u32::MAX)).collect()
    }
}

/// What is known of a page, without asking it.
#[derive(Debug, Clone)]
pub struct PageInfo {
    /// Its number.
    pub id: PageId,
    /// The title as the page gave it.
    pub title: String,
    /// The top document's address.
    pub url: String,
    /// Whether its renderer process is gone.
    pub crashed: bool,
    /// Whether it is on its way to another document, or has not loaded it.
    pub loading: bool,
    /// Whether its renderer process has not answered us even once: it is stopped, or busy for good.
    pub unresponsive: bool,
}

/// A page's events from the moment of subscription on. `None` from it: the browser is gone.
pub type Subscription = mpsc::UnboundedReceiver<PageEvent>;

struct Subscriber {
    page: PageId,
    wanted: fn(&PageEvent) -> bool,
    events: mpsc::UnboundedSender<PageEvent>,
}

/// The owner; see the module's text.
pub struct Targets {
    browser: CdpSession,
    state: Mutex<State>,
    /// `None` when the browser is gone.
    subscribers: Mutex<Option<Vec<Subscriber>>>,
    revision: watch::Sender<u64>,
    /// Events that the driver has taken in.
    taken_in: watch::Sender<u64>,
}

impl Targets {
    pub(crate) fn new(browser: CdpSession, last_page: u32) -> Self {
        Self {
            browser,
            state: Mutex::new(State::new(last_page)),
            subscribers: Mutex::new(Some(Vec::new())),
            revision: watch::Sender::new(0),
            taken_in: watch::Sender::new(0),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The browser's own session.
    pub fn browser(&self) -> &CdpSession {
        &self.browser
    }

    /// All pages, in the order in which they came.
    pub fn pages(&self) -> Vec<PageInfo> {
        self.state().pages.values().filter(|page| page.ready).map(|page| page.info()).collect()
    }

    /// One page, if it is there.
    pub fn page(&self, id: PageId) -> Option<PageInfo> {
        self.state().pages.get(&id).map(|page| page.info())
    }

    /// The session of a page.
    pub fn session(&self, id: PageId) -> Option<CdpSession> {
        self.state().pages.get(&id).map(|page| page.session.clone())
    }

    /// The document, if its frame still shows it.
    pub fn document(&self, id: DocumentId) -> Option<Document> {
        self.state().documents().find(|document| document.id == id).cloned()
    }

    /// The current documents of a page, the top one first.
    pub fn documents_of(&self, page: PageId) -> Vec<Document> {
        self.state().pages.get(&page).map(|page| page.frames.values().cloned().collect()).unwrap_or_default()
    }

    /// Whether a document is in the first frame of its process, whose own world can be entered.
    pub(crate) fn is_session_root(&self, document: &Document) -> bool {
        self.state().is_session_root(document)
    }

    /// The current top document of a page.
    pub fn top_document(&self, page: PageId) -> Option<Document> {
        self.state().pages.get(&page)?.top().cloned()
    }

    /// Follows one page.
    pub fn subscribe(&self, page: PageId) -> Subscription {
        self.subscribe_to(page, |_| true)
    }

    /// Follows some events of one page. Whoever listens without reading for long should take no answers of
    /// tools, which may be large.
    pub fn subscribe_to(&self, page: PageId, wanted: fn(&PageEvent) -> bool) -> Subscription {
        let (events, receiver) = mpsc::unbounded_channel();
        if let Some(subscribers) = &mut *self.subscribers() {
            subscribers.push(Subscriber { page, wanted, events });
        }
        receiver
    }

    /// Changes with every page, document and tool that comes or goes.
    pub fn revision(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    pub(crate) fn announce(&self, page: PageId, event: &PageEvent) {
        if let Some(subscribers) = &mut *self.subscribers() {
            subscribers.retain(|subscriber| {
                let takes = subscriber.page == page && (subscriber.wanted)(event);
                if takes {
                    subscriber.events.send(event.clone()).is_ok()
                } else {
                    !subscriber.events.is_closed()
                }
            });
        }
        self.revision.send_modify(|revision| *revision += 1);
    }

    pub(crate) fn took_in_event(&self) {
        self.taken_in.send_modify(|count| *count += 1);
    }

    /// Waits until every event is taken in that came before now: an answer may overtake them.
    pub(crate) async fn caught_up(&self) {
        let so_far = self.browser.events_so_far();
        let mut taken_in = self.taken_in.subscribe();
        // Fails with the browser, when nothing more will come.
        let _ = taken_in.wait_for(|count| *count >= so_far).await;
    }

    /// Ends every subscription: the browser is gone.
    pub(crate) fn end(&self) {
        *self.subscribers() = None;
        self.taken_in.send_replace(u64::MAX);
        self.state().pages.clear();
        self.revision.send_modify(|revision| *revision += 1);
    }

    fn subscribers(&self) -> MutexGuard<'_, Option<Vec<Subscriber>>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
