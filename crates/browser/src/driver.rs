//! The one task that reads the browser's events, in wire order, and carries them to their owners.
//!
//! It never waits for the browser: what must be asked is asked in tasks of its own.

use std::sync::Arc;
use std::time::Duration;

use pagebridge_cdp::{CdpError, CdpSession, Event, Events, decode};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::events::{
    Attached, Detached, DialogOpening, FrameAttached, FrameDetached, FrameNavigated, FrameTreeReply,
    Lifecycle, PageEvent, RequestedNavigation, StartedNavigating, StoppedLoading, TargetInfoChanged,
    ToolsAdded, ToolsRemoved, WithinDocument,
};
use crate::page_tools::Registry;
use crate::targets::{PageId, Targets};

/// Carries events to the owner of pages and the registry of page tools.
#[derive(Clone)]
pub(crate) struct Driver {
    pub targets: Arc<Targets>,
    pub registry: Arc<Registry>,
    /// Whether pages and frames that come are held back until they are prepared. In a browser of somebody else
    /// they are not: if we stopped, his tabs would.
    pub holds: bool,
}

/// A page that has not answered by then is listed all the same, as one that does not answer.
pub(crate) const TO_PREPARE: Duration = Duration::from_secs(2);

/// Events of unknown shape are passed over.
type Outcome = Result<(), serde_json::Error>;

impl Driver {
    /// Reads events until the pipe closes.
    pub async fn drive(self, mut events: Events) {
        while let Some(event) = events.recv().await {
            if let Err(error) = self.on_event(&event) {
                tracing::debug!(method = %event.method, %error, "an event of unknown shape was passed over");
            }
            self.targets.took_in_event();
        }
        self.targets.end();
        self.registry.end();
    }

    fn on_event(&self, event: &Event) -> Outcome {
        let page = event.session.as_ref().map(|session| {
            let page = self.targets.state().id_of_session(session);
            (page, self.targets.browser().session(session.clone()))
        });
        match page {
            _ if event.method.starts_with("Target.") => self.on_target_event(event),
            Some((Some(page), session)) if event.method.starts_with("WebMCP.") => {
                self.on_tool_event(page, &session, event)
            }
            Some((Some(page), session)) => self.on_page_event(page, &session, event),
            _ => Ok(()),
        }
    }

    fn on_target_event(&self, event: &Event) -> Outcome {
        match &*event.method {
            "Target.attachedToTarget" => self.attached(&of(event)?, event.session.as_deref()),
            "Target.detachedFromTarget" => {
                let detached: Detached = of(event)?;
                let removed = self.targets.state().remove_session(&detached.session_id);
                if let Some((page, changes)) = removed {
                    self.tell(page, &changes);
                }
            }
            "Target.targetInfoChanged" => {
                let changed: TargetInfoChanged = of(event)?;
                self.targets.state().target_info_changed(&changed.target_info);
            }
            _ => {}
        }
        Ok(())
    }

    fn attached(&self, attached: &Attached, parent: Option<&str>) {
        let session = self.targets.browser().session(attached.session_id.clone());
        let page = match (attached.target_info.kind.as_str(), parent) {
            ("page", _) => Some(self.targets.state().add_page(session.clone(), &attached.target_info)),
            ("iframe", Some(parent)) => {
                let mut state = self.targets.state();
                let page = state.id_of_session(parent);
                if let Some(page) = page {
                    state.add_session(&session, page, &attached.target_info.target_id);
                }
                page
            }
            _ => None,
        };
        match page {
            Some(page) => drop(tokio::spawn(self.clone().prepare(session, page, parent.is_none()))),
            // Not ours to look at, but it waits for us.
            None => drop(session.call("Runtime.runIfWaitingForDebugger", json!({}))),
        }
    }

    fn on_page_event(&self, page: PageId, session: &CdpSession, event: &Event) -> Outcome {
        let targets = &self.targets;
        match &*event.method {
            "Page.frameAttached" => {
                let attached: FrameAttached = of(event)?;
                targets.state().frame_attached(page, &attached.frame_id, &attached.parent_frame_id);
            }
            "Page.frameNavigated" => {
                let navigated: FrameNavigated = of(event)?;
                let restored = navigated.kind.as_deref() == Some("BackForwardCacheRestore");
                let changes = targets.state().frame_navigated(page, session, &navigated.frame, restored);
                self.tell(page, &changes);
                if restored {
                    // A page that comes back from the back/forward cache has its tools told *before* its
                    // document, and its frames not at all: both are asked for.
                    self.registry.look_again(targets, page);
                    tokio::spawn(self.clone().synchronise(session.clone(), page));
                }
            }
            "Page.frameDetached" => {
                let detached: FrameDetached = of(event)?;
                let swapped = detached.reason.as_deref() == Some("swap");
                let id = session.id().map(|id| &**id).unwrap_or_default();
                let changes = targets.state().frame_detached(page, id, &detached.frame_id, swapped);
                self.tell(page, &changes);
            }
            "Page.navigatedWithinDocument" => {
                let within: WithinDocument = of(event)?;
                targets.state().within_document(page, &within.frame_id, &within.url);
                targets.announce(page, &PageEvent::WithinDocument);
            }
            "Inspector.targetCrashed" => {
                let id = session.id().map(|id| &**id).unwrap_or_default();
                let changes = targets.state().session_crashed(page, id);
                self.tell(page, &changes);
            }
            // It may have crashed before we came, and then nothing could be switched on.
            "Inspector.targetReloadedAfterCrash" if !self.holds => {
                let is_page = targets.state().reloaded(page, session);
                tokio::spawn(self.clone().prepare(session.clone(), page, is_page));
            }
            _ => self.on_progress(page, session, event)?,
        }
        Ok(())
    }

    /// How a page's load goes on, and the dialogs in its way.
    fn on_progress(&self, page: PageId, session: &CdpSession, event: &Event) -> Outcome {
        let targets = &self.targets;
        match &*event.method {
            "Page.frameRequestedNavigation" => {
                let requested: RequestedNavigation = of(event)?;
                if requested.disposition == "currentTab" && self.is_top(page, &requested.frame_id) {
                    targets.announce(page, &PageEvent::NavigationRequested);
                }
            }
            "Page.frameStartedNavigating" => {
                let started: StartedNavigating = of(event)?;
                // A same-document one is over before anybody could wait for it.
                let leaves = !started.navigation_type.to_ascii_lowercase().contains("samedocument");
                if leaves && self.is_top(page, &started.frame_id) {
                    self.set_loading(page, true);
                    targets.announce(page, &PageEvent::NavigationStarted);
                }
            }
            "Page.frameStoppedLoading" => {
                let stopped: StoppedLoading = of(event)?;
                if self.is_top(page, &stopped.frame_id) {
                    self.set_loading(page, false);
                    targets.announce(page, &PageEvent::NavigationEnded);
                }
            }
            "Page.lifecycleEvent" => {
                let lifecycle: Lifecycle = of(event)?;
                if lifecycle.name == "load" {
                    self.registry.look_again(targets, page);
                    targets.announce(page, &PageEvent::Loaded(lifecycle.loader_id));
                }
            }
            "Page.javascriptDialogOpening" => {
                let opening: DialogOpening = of(event)?;
                let dialog = targets.state().dialog_opened(page, session, &opening);
                targets.announce(page, &PageEvent::DialogOpened(dialog));
            }
            "Page.javascriptDialogClosed" => {
                targets.state().dialog_closed(page);
                targets.announce(page, &PageEvent::DialogClosed);
            }
            _ => {}
        }
        Ok(())
    }

    fn on_tool_event(&self, page: PageId, session: &CdpSession, event: &Event) -> Outcome {
        match &*event.method {
            "WebMCP.toolsAdded" => {
                let added: ToolsAdded = of(event)?;
                self.registry.added(&self.targets, page, session, &added.tools);
            }
            "WebMCP.toolsRemoved" => {
                let removed: ToolsRemoved = of(event)?;
                self.registry.removed(&self.targets, page, session, &removed.tools);
            }
            "WebMCP.toolInvoked" => {
                self.targets.announce(page, &PageEvent::ToolInvoked(Arc::new(of(event)?)));
            }
            "WebMCP.toolResponded" => {
                self.targets.announce(page, &PageEvent::ToolResponded(Arc::new(of(event)?)));
            }
            _ => {}
        }
        Ok(())
    }

    fn tell(&self, page: PageId, changes: &[PageEvent]) {
        for change in changes {
            match change {
                PageEvent::DocumentGone(document) => self.registry.remove_document(page, *document),
                PageEvent::Closed | PageEvent::Crashed => self.registry.remove_page(page),
                _ => {}
            }
            self.targets.announce(page, change);
        }
    }

    fn is_top(&self, page: PageId, frame: &str) -> bool {
        self.targets.top_document(page).is_some_and(|top| &*top.frame == frame)
    }

    fn set_loading(&self, page: PageId, loading: bool) {
        if let Some(page) = self.targets.state().pages.get_mut(&page) {
            page.loading = loading;
        }
    }

    /// Makes a page, or a frame in a process of its own, ready. A page that does not let itself be is known for
    /// it from some time on, until it does.
    async fn prepare(self, session: CdpSession, page: PageId, is_page: bool) {
        let set_ready = |unresponsive: bool| {
            if let Some(page) = self.targets.state().pages.get_mut(&page).filter(|_| is_page) {
                page.ready = true;
                page.unresponsive = unresponsive;
            }
            self.targets.announce(page, &PageEvent::ToolsChanged);
        };
        let mut switched_on = std::pin::pin!(self.clone().switch_on(session, page));
        if tokio::time::timeout(TO_PREPARE, &mut switched_on).await.is_err() {
            set_ready(true);
            switched_on.await;
        }
        set_ready(false);
    }

    /// Switches everything on that tells of a page, before its first script runs where it is held back.
    async fn switch_on(self, session: CdpSession, page: PageId) {
        // Tells of a crash, or of a page that is not loaded at all, from before we came.
        drop((!self.holds).then(|| session.call("Inspector.enable", json!({}))));
        let enabled = session.call("Page.enable", json!({}));
        let lifecycle = session.call("Page.setLifecycleEventsEnabled", json!({"enabled": true}));
        let frames = follow_frames(&session, self.holds);
        self.clone().synchronise(session.clone(), page).await;
        let resumed = session.call("Runtime.runIfWaitingForDebugger", json!({}));
        let _ = (enabled.await, lifecycle.await, frames.await, resumed.await);
    }

    /// Takes in the frames and tools that a page has already.
    async fn synchronise(self, session: CdpSession, page: PageId) {
        // The frames must be known before the tools in them are told.
        let reply = session.call("Page.getFrameTree", json!({})).await;
        if let Ok(FrameTreeReply { frame_tree }) = reply.and_then(|reply| reply.decode()) {
            self.targets.state().frame_tree(page, &session, &frame_tree);
        }
        let _ = session.call("WebMCP.enable", json!({})).await;
        self.registry.look_again(&self.targets, page);
    }
}

/// Attaches to the browser's pages, now and later, before their first script runs where they are held back.
/// Titles are told to those who discover targets.
pub(crate) fn follow_pages(
    browser: &CdpSession,
    holds: bool,
) -> impl Future<Output = Result<(), CdpError>> + Send + use<> {
    let attach = follow(browser, holds, &pages_only());
    let discover =
        browser.call("Target.setDiscoverTargets", json!({"discover": true, "filter": pages_only()}));
    async move {
        attach.await?;
        discover.await.map(drop)
    }
}

/// The filter that lets pages through and nothing else.
pub(crate) fn pages_only() -> serde_json::Value {
    json!([{"type": "page"}, {"exclude": true}])
}

/// Attaches to the frames of a page that have processes of their own. Workers come along: Chromium 156 holds a
/// dedicated worker back for us even where a filter leaves it out, and only who is attached can let it go.
fn follow_frames(
    page: &CdpSession,
    holds: bool,
) -> impl Future<Output = Result<(), CdpError>> + Send + use<> {
    follow(page, holds, &json!([{"type": "browser", "exclude": true}, {"type": "tab", "exclude": true}, {}]))
}

fn follow(
    session: &CdpSession,
    holds: bool,
    filter: &serde_json::Value,
) -> impl Future<Output = Result<(), CdpError>> + Send + use<> {
    let call = session.call(
        "Target.setAutoAttach",
        json!({"autoAttach": true, "waitForDebuggerOnStart": holds, "flatten": true, "filter": filter}),
    );
    async move { call.await.map(drop) }
}

fn of<T: DeserializeOwned>(event: &Event) -> Result<T, serde_json::Error> {
    decode(&event.params)
}
