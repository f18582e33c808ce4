//! Navigation: sends a page somewhere and waits until it is there.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use pagebridge_cdp::{CdpError, CdpSession, Reply};
use pagebridge_core::{ErrorKind, Outcome, ToolError, duration};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep_until, timeout};

use crate::browser::Browser;
use crate::dialogs::{self, Dialog};
use crate::events::PageEvent;
use crate::loss;
use crate::page_tools::CallOptions;
use crate::targets::{PageId, Subscription, Targets};

/// For the browser's own error page to take the place of a page that could not be left for another.
const FOR_ERROR_PAGE: Duration = Duration::from_millis(500);

/// Where a page is sent.
#[derive(Debug, Clone)]
pub enum Navigation {
    /// To an address, which has been checked before.
    Url(String),
    /// One entry of the history back.
    Back,
    /// One entry of the history forward.
    Forward,
    /// To the same address again.
    Reload {
        /// Asks the servers again for everything.
        ignore_cache: bool,
    },
}

/// What a page is told that asks, by a `beforeunload` dialog, whether it may be left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// It is left.
    Accept,
    /// It stays.
    Decline,
}

impl Browser {
    /// Navigates and waits for the page's load event, or for a dialog that stops the load; then the page shows
    /// it still. The address that it ended at is the page's.
    pub async fn navigate(
        &self,
        page: PageId,
        navigation: &Navigation,
        leaving: Leaving,
        options: &CallOptions,
    ) -> Result<(), ToolError> {
        self.check_no_dialog(page)?;
        let session = self.session(page)?;
        let _trip = self.underway.begin(page);
        let mut waiting = Waiting {
            targets: self.targets.clone(),
            page,
            events: self.targets.subscribe(page),
            session: session.clone(),
            expected: Expected::Any,
            early: VecDeque::new(),
            leaving,
        };
        let deadline = Instant::now() + options.deadline;
        tokio::select! {
            arrived = waiting.go(navigation) => arrived,
            () = options.cancel.cancelled() => {
                drop(session.call("Page.stopLoading", json!({})));
                Err(ToolError::unknown(ErrorKind::Cancelled, "The navigation was cancelled."))
            }
            () = sleep_until(deadline) => Err(too_slow(options.deadline)),
        }
    }
}

fn too_slow(limit: Duration) -> ToolError {
    ToolError::unknown(
        ErrorKind::Timeout,
        format!(
            "The page has not finished loading within {}. It stays open, with what has come so far, and goes on loading.",
            duration::show(limit)
        ),
    )
}

/// The load that is waited for.
enum Expected {
    /// The next document of the page.
    Any,
    /// The one with this loader id.
    Loader(Arc<str>),
}

struct Waiting {
    targets: Arc<Targets>,
    page: PageId,
    events: Subscription,
    session: CdpSession,
    expected: Expected,
    /// Events that came while the browser had not answered yet.
    early: VecDeque<PageEvent>,
    leaving: Leaving,
}

impl Waiting {
    async fn go(&mut self, navigation: &Navigation) -> Result<(), ToolError> {
        match navigation {
            Navigation::Url(url) => self.go_to_url(url).await,
            Navigation::Back => self.through_history(-1).await,
            Navigation::Forward => self.through_history(1).await,
            Navigation::Reload { ignore_cache } => {
                self.answer("Page.reload", json!({"ignoreCache": ignore_cache})).await?;
                self.until_loaded().await
            }
        }
    }

    async fn go_to_url(&mut self, url: &str) -> Result<(), ToolError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Navigated {
            #[serde(default)]
            loader_id: Option<Arc<str>>,
            #[serde(default)]
            error_text: Option<String>,
        }
        let reply = self.answer("Page.navigate", json!({"url": url})).await?;
        let navigated: Navigated = reply.decode().map_err(|e| loss::tool_error(&e, Outcome::Unknown))?;
        match navigated {
            Navigated { error_text: Some(reason), loader_id } => {
                // The browser's error page comes a moment later; until then the old document seems to be there still.
                if let Some(loader) = loader_id.filter(|_| reason != "net::ERR_ABORTED") {
                    self.expected = Expected::Loader(loader);
                    let _ = timeout(FOR_ERROR_PAGE, self.until_loaded()).await;
                }
                Err(failed(url, &reason))
            }
            // Only the fragment changed: the document stays.
            Navigated { loader_id: None, .. } => Ok(()),
            Navigated { loader_id: Some(loader), .. } => {
                self.expected = Expected::Loader(loader);
                self.until_loaded().await
            }
        }
    }

    async fn through_history(&mut self, step: i64) -> Result<(), ToolError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct History {
            current_index: i64,
            entries: Vec<Entry>,
        }
        #[derive(Deserialize)]
        struct Entry {
            id: i64,
        }
        let reply = self.answer("Page.getNavigationHistory", json!({})).await?;
        let history: History = reply.decode().map_err(|e| loss::tool_error(&e, Outcome::NotRun))?;
        let wanted =
            usize::try_from(history.current_index + step).ok().and_then(|at| history.entries.get(at));
        let Some(entry) = wanted else {
            let direction = if step < 0 { "back" } else { "forward" };
            return Err(ToolError::not_run(
                ErrorKind::NotFound,
                format!("The page's history has no entry to go {direction} to."),
            ));
        };
        self.answer("Page.navigateToHistoryEntry", json!({"entryId": entry.id})).await?;
        self.until_loaded().await
    }

    async fn until_loaded(&mut self) -> Result<(), ToolError> {
        loop {
            match self.event().await? {
                PageEvent::Loaded(loader) => match &self.expected {
                    Expected::Loader(expected) if *expected == loader => return Ok(()),
                    _ => {}
                },
                PageEvent::Committed { restored: true, document } if document.is_top() => return Ok(()),
                // A redirect by script takes the place of what was asked for.
                PageEvent::Committed { document, .. } if document.is_top() => {
                    self.expected = Expected::Loader(document.loader);
                }
                PageEvent::WithinDocument if matches!(self.expected, Expected::Any) => return Ok(()),
                // The load does not go on before somebody answers.
                PageEvent::DialogOpened(dialog) if !self.leave(&dialog).await? => return Ok(()),
                _ => {}
            }
        }
    }

    async fn event(&mut self) -> Result<PageEvent, ToolError> {
        if let Some(event) = self.early.pop_front() {
            return Ok(event);
        }
        match self.events.recv().await {
            None => Err(loss::browser_lost(Outcome::Unknown)),
            Some(PageEvent::Closed) => Err(loss::page_closed(Outcome::Unknown)),
            Some(PageEvent::Crashed) => Err(loss::page_crashed(Outcome::Unknown)),
            Some(event) => Ok(event),
        }
    }

    /// Answers a page that asks whether it may be left. False for every other dialog.
    async fn leave(&self, dialog: &Dialog) -> Result<bool, ToolError> {
        if dialog.kind != "beforeunload" {
            return Ok(false);
        }
        let accept = self.leaving == Leaving::Accept;
        let answered = self.session.call("Page.handleJavaScriptDialog", json!({"accept": accept})).await;
        answered.map_err(|error| loss::tool_error(&error, Outcome::Unknown))?;
        // The event that says so may still be on its way, and the next call must not find the dialog.
        self.targets.state().dialog_closed(self.page);
        if accept {
            return Ok(true);
        }
        let stays = "The page asked whether it may be left and was told to stay, as you wished.";
        Err(ToolError::not_run(ErrorKind::Declined, stays))
    }

    async fn answer(&mut self, method: &'static str, params: serde_json::Value) -> Result<Reply, ToolError> {
        let mut call = self.session.call(method, params);
        let answered: Result<Reply, CdpError> = loop {
            tokio::select! {
                biased;
                event = self.events.recv() => match event {
                    None => return Err(loss::browser_lost(Outcome::Unknown)),
                    Some(PageEvent::DialogOpened(dialog)) => if !self.leave(&dialog).await? {
                        return Err(dialogs::in_the_way(&dialog, "The navigation has not ended", Outcome::Unknown));
                    },
                    Some(event) => self.early.push_back(event),
                },
                answered = &mut call => break answered,
            }
        };
        answered.map_err(|error| match error {
            CdpError::Refused { message, .. } => ToolError::not_run(
                ErrorKind::NavigationFailed,
                format!("The browser refuses to go there: {message}."),
            ),
            lost => loss::tool_error(&lost, Outcome::Unknown),
        })
    }
}

fn failed(url: &str, reason: &str) -> ToolError {
    let hint = match reason {
        "net::ERR_CONNECTION_REFUSED" => " Nothing listens there.",
        "net::ERR_NAME_NOT_RESOLVED" => " There is no such host.",
        "net::ERR_ABORTED" => " The load was broken off, or it is a download, which is refused.",
        reason if reason.starts_with("net::ERR_CERT") => " The server's certificate is not trusted.",
        _ => "",
    };
    ToolError::failed(ErrorKind::NavigationFailed, format!("{url} could not be loaded: {reason}.{hint}"))
}
