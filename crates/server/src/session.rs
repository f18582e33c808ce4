//! One client's world: its workspace, at most one browser, the selected page, the list that it last saw.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pagebridge_browser::{Browser, PageId, PageInfo};
use pagebridge_core::{ErrorKind, ToolError};
use pagebridge_process::Supervisor;
use tokio::sync::watch;

use crate::listing::{Entry, Fingerprint, Listing};
use crate::options::SessionOptions;
use crate::slot::BrowserSlot;
use crate::workspace::Workspace;

/// A session. It starts nothing until a call needs a browser.
pub struct Session {
    /// What the user chose.
    pub options: SessionOptions,
    /// Where large results go.
    pub workspace: Workspace,
    /// The browser.
    pub slot: Arc<BrowserSlot>,
    selected: watch::Sender<Option<PageId>>,
    /// The generation of a browser of somebody else whose first page was selected.
    adopted: Mutex<u32>,
    /// The list that the client fetched last: what its dynamic calls mean.
    listed: Mutex<Listing>,
    /// What the client knows of the list. Held while the list is made, so that lists are told in order.
    announced: Mutex<Fingerprint>,
}

impl Session {
    /// A session whose children belong to this supervisor.
    pub fn new(supervisor: Supervisor, options: SessionOptions) -> Arc<Self> {
        Arc::new(Self {
            workspace: Workspace::new(options.workspace.clone()),
            slot: BrowserSlot::new(supervisor, options.browser.clone()),
            options,
            selected: watch::Sender::new(None),
            adopted: Mutex::new(0),
            listed: Mutex::default(),
            announced: Mutex::default(),
        })
    }

    /// The browser and the page that a call means: the one it names, else the selected one. Starts nothing.
    pub fn page(&self, wanted: Option<u32>) -> Result<(Arc<Browser>, PageInfo), ToolError> {
        let Some(browser) = self.slot.peek() else { return Err(self.no_browser()) };
        let page = match wanted {
            Some(number) => browser.page(PageId(number)),
            None => self.selected_page(&browser),
        };
        let page = page.ok_or_else(|| match wanted {
            Some(number) => not_found(format!("There is no page {number}. {}", open_pages(&browser))),
            None => not_found("No page is open. new_page opens one."),
        })?;
        Ok((browser, page))
    }

    fn no_browser(&self) -> ToolError {
        if self.slot.generation() == 0 {
            return not_found("No page is open yet. new_page opens one, and starts the browser.");
        }
        let lost = "The browser is gone, with its tabs and their state. new_page starts a new one.";
        ToolError::not_run(ErrorKind::BrowserLost, lost)
    }

    /// The selected page; when it is gone, the page that was opened last.
    pub fn selected_page(&self, browser: &Browser) -> Option<PageInfo> {
        let selected = *self.selected.borrow();
        selected.and_then(|page| browser.page(page)).or_else(|| browser.pages().pop())
    }

    /// Whether the selected page is on its way to another document.
    pub fn is_loading(&self) -> bool {
        let page = self.slot.peek().and_then(|browser| self.selected_page(&browser));
        page.is_some_and(|page| page.loading)
    }

    /// Selects a page.
    pub fn select(&self, page: PageId) {
        self.selected.send_replace(Some(page));
    }

    /// Selects the first page of a browser that was just attached to.
    pub(crate) fn select_first_of(&self, browser: &Browser, generation: u32) {
        let mut adopted = self.adopted.lock().unwrap_or_else(PoisonError::into_inner);
        if *adopted != generation {
            *adopted = generation;
            self.selected.send_replace(browser.first_page());
        }
    }

    /// Changes with the selection.
    pub fn selection(&self) -> watch::Receiver<Option<PageId>> {
        self.selected.subscribe()
    }

    /// The selected page's tools now.
    pub fn current_listing(&self) -> Listing {
        if !self.options.dynamic_tools {
            return Listing::default();
        }
        let Some(browser) = self.slot.peek() else { return Listing::default() };
        let Some(page) = self.selected_page(&browser) else { return Listing::default() };
        Listing::of(&browser, page.id, &self.options)
    }

    /// The list for a client that asks; from now on its dynamic calls mean these entries.
    pub fn list_for_client(&self) -> Listing {
        let mut announced = self.announced();
        let listing = self.current_listing();
        *announced = listing.fingerprint();
        self.listed().clone_from(&listing);
        listing
    }

    /// What a dynamic name means: the entry of the list that the client fetched last, else of the page now.
    pub fn dynamic_entry(&self, exposed: &str) -> Option<Entry> {
        let listed = self.listed().find(exposed).cloned();
        listed.or_else(|| self.current_listing().find(exposed).cloned())
    }

    /// A dynamic name whose document is gone means what the page offers now, from the next call on.
    pub fn forget_dynamic(&self, exposed: &str) {
        self.listed().forget(exposed);
    }

    /// Whether the client must be told that the list changed. Asking counts as telling.
    pub fn take_list_change(&self) -> bool {
        let mut announced = self.announced();
        let now = self.current_listing().fingerprint();
        let changed = *announced != now;
        *announced = now;
        changed
    }

    /// Ends the session's browser within `deadline`.
    pub async fn shutdown(&self, deadline: Duration) {
        self.slot.shutdown(deadline).await;
    }

    fn listed(&self) -> MutexGuard<'_, Listing> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn announced(&self) -> MutexGuard<'_, Fingerprint> {
        self.announced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn not_found(message: impl Into<String>) -> ToolError {
    ToolError::not_run(ErrorKind::NotFound, message)
}

fn open_pages(browser: &Browser) -> String {
    let numbers: Vec<String> = browser.pages().iter().map(|page| page.id.to_string()).collect();
    match numbers.as_slice() {
        [] => "No page is open.".into(),
        numbers => format!("Open pages: {}.", numbers.join(", ")),
    }
}
