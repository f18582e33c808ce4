//! The session's browser: none until a call needs one, and a new one after a loss.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pagebridge_browser::{Browser, BrowserOptions, Endpoint};
use pagebridge_core::{ErrorKind, ToolError};
use pagebridge_process::Supervisor;
use serde_json::json;
use tokio::sync::watch;

/// Holds at most one browser.
pub struct BrowserSlot {
    supervisor: Supervisor,
    options: BrowserOptions,
    current: Mutex<Option<Arc<Browser>>>,
    /// Held while a browser starts, so that all who wait share one start.
    starting: tokio::sync::Mutex<()>,
    is_starting: AtomicBool,
    generation: AtomicU32,
    untold_restart: AtomicBool,
    changed: watch::Sender<u32>,
}

impl BrowserSlot {
    /// An empty slot.
    pub fn new(supervisor: Supervisor, options: BrowserOptions) -> Arc<Self> {
        Arc::new(Self {
            supervisor,
            options,
            current: Mutex::default(),
            starting: tokio::sync::Mutex::default(),
            is_starting: AtomicBool::new(false),
            generation: AtomicU32::new(0),
            untold_restart: AtomicBool::new(false),
            changed: watch::Sender::new(0),
        })
    }

    /// The browser, if one runs. Starts nothing.
    pub fn peek(&self) -> Option<Arc<Browser>> {
        self.current().clone().filter(|browser| browser.is_alive())
    }

    /// Whether the browser took the place of a lost one and nobody was told so yet. Asking counts as telling.
    pub fn take_restart(&self) -> bool {
        self.untold_restart.swap(false, Ordering::Relaxed)
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Browser>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The browser; starts one where none runs. A caller that gives up does not stop the start for others.
    pub async fn get(self: &Arc<Self>) -> Result<Arc<Browser>, ToolError> {
        if let Some(browser) = self.peek() {
            return Ok(browser);
        }
        let slot = self.clone();
        let started = tokio::spawn(async move { slot.start().await }).await;
        started.unwrap_or_else(|_| {
            Err(ToolError::not_run(ErrorKind::BrowserStartFailed, "The start was broken off."))
        })
    }

    async fn start(&self) -> Result<Arc<Browser>, ToolError> {
        let _alone = self.starting.lock().await;
        if let Some(browser) = self.peek() {
            return Ok(browser);
        }
        self.is_starting.store(true, Ordering::Relaxed);
        let last_page = self.current().as_ref().map_or(0, |lost| lost.last_page());
        let launched = match &self.options.connect {
            Some(endpoint) => Browser::attach(endpoint, &self.options, last_page).await,
            None => Browser::launch(&self.supervisor, &self.options, last_page).await,
        };
        self.is_starting.store(false, Ordering::Relaxed);
        let browser = Arc::new(launched.map_err(|error| {
            let details = json!({"hint": error.hint});
            ToolError::not_run(ErrorKind::BrowserStartFailed, error.message).with_details(details)
        })?);
        *self.current() = Some(browser.clone());
        let generation = self.generation.fetch_add(1, Ordering::Relaxed) + 1;
        self.untold_restart.store(generation > 1, Ordering::Relaxed);
        self.changed.send_modify(|changes| *changes += 1);
        Ok(browser)
    }

    /// Changes when another browser takes the place.
    pub fn changes(&self) -> watch::Receiver<u32> {
        self.changed.subscribe()
    }

    /// How many browsers there have been.
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// `idle`, `starting`, `ready` or `lost`.
    pub fn state(&self) -> &'static str {
        match () {
            () if self.is_starting.load(Ordering::Relaxed) => "starting",
            () if self.peek().is_some() => "ready",
            () if self.generation() > 0 => "lost",
            () => "idle",
        }
    }

    /// Where the browser is that somebody else runs, if that is what the user wants.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.options.connect.as_ref()
    }

    /// Whether the browser shows no windows; of one of somebody else that is known once we are attached.
    pub fn is_headless(&self) -> Option<bool> {
        match self.endpoint() {
            Some(_) => self.peek()?.is_headless(),
            None => Some(!self.options.headed),
        }
    }

    /// Ends the browser (one of somebody else is only left), and every other child of the supervisor, within `deadline`.
    pub async fn shutdown(&self, deadline: Duration) {
        if let Some(browser) = self.peek() {
            let _ = tokio::time::timeout(deadline / 2, browser.close()).await;
        }
        self.supervisor.shutdown(deadline / 2).await;
    }
}
