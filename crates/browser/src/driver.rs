//! The one task that reads the browser's events, in wire order, and carries them to their owners.
//!
//! It never waits for the browser: what must be asked is asked in tasks of its own.

use std::sync::Arc;

use pagebridge_cdp::{CdpSession, Event, Events, decode};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::dialogs;
use crate::events::{
    Attached, Detached, DialogOpening, FrameAttached, FrameDetached, FrameNavigated, FrameTreeReply,
    Lifecycle, PageEvent, StartedNavigating, StoppedLoading, TargetInfoChanged, ToolsAdded, ToolsRemoved,
    WithinDocument,
};
use crate::page_tools::Registry;
use crate::targets::{PageId, Targets};

/// Reads events until the pipe closes.
pub(crate) async fn drive(targets: Arc<Targets>, registry: Arc<Registry>, mut events: Events) {
    while let Some(event) = events.recv().await {
        let outcome = match &event.session {
            None => browser_event(&targets, &registry, &event),
            Some(session) => {
                let page = targets.state().id_of_session(session);
                page.map_or(Ok(()), |page| page_event(&targets, &registry, page, &event))
            }
        };
        if let Err(error) = outcome {
            tracing::debug!(method = %event.method, %error, "an event of unknown shape was passed over");
        }
    }
    targets.end();
    registry.end();
}

type Outcome = Result<(), serde_json::Error>;

fn browser_event(targets: &Arc<Targets>, registry: &Arc<Registry>, event: &Event) -> Outcome {
    match &*event.method {
        "Target.attachedToTarget" => {
            let attached: Attached = of(event)?;
            let session = targets.browser().session(attached.session_id);
            if attached.target_info.kind == "page" {
                let page = targets.state().add_page(session.clone(), &attached.target_info);
                tokio::spawn(prepare(targets.clone(), registry.clone(), session, page));
            } else {
                // Not ours to look at, but it waits for us.
                drop(session.call("Runtime.runIfWaitingForDebugger", json!({})));
            }
        }
        "Target.detachedFromTarget" => {
            let detached: Detached = of(event)?;
            let page = targets.state().remove_page(&detached.session_id);
            if let Some(page) = page {
                registry.remove_page(page);
                targets.announce(page, &PageEvent::Closed);
            }
        }
        "Target.targetInfoChanged" => {
            let changed: TargetInfoChanged = of(event)?;
            targets.state().target_info_changed(&changed.target_info);
        }
        _ => {}
    }
    Ok(())
}

fn page_event(targets: &Arc<Targets>, registry: &Arc<Registry>, page: PageId, event: &Event) -> Outcome {
    match &*event.method {
        "Page.frameAttached" => {
            let attached: FrameAttached = of(event)?;
            targets.state().frame_attached(page, &attached.frame_id, &attached.parent_frame_id);
        }
        "Page.frameNavigated" => {
            let navigated: FrameNavigated = of(event)?;
            let restored = navigated.kind.as_deref() == Some("BackForwardCacheRestore");
            let changes = targets.state().frame_navigated(page, &navigated.frame, restored);
            tell(targets, registry, page, &changes);
        }
        "Page.frameDetached" => {
            let detached: FrameDetached = of(event)?;
            let changes = targets.state().frame_detached(page, &detached.frame_id);
            tell(targets, registry, page, &changes);
        }
        "Page.navigatedWithinDocument" => {
            let within: WithinDocument = of(event)?;
            targets.state().within_document(page, &within.frame_id, &within.url);
            targets.announce(page, &PageEvent::WithinDocument);
        }
        "Page.frameStartedNavigating" => {
            let started: StartedNavigating = of(event)?;
            // A same-document one is over before anybody could wait for it.
            let leaves = !started.navigation_type.to_ascii_lowercase().contains("samedocument");
            if leaves && is_top(targets, page, &started.frame_id) {
                set_loading(targets, page, true);
                targets.announce(page, &PageEvent::NavigationStarted);
            }
        }
        "Page.frameStoppedLoading" => {
            let stopped: StoppedLoading = of(event)?;
            if is_top(targets, page, &stopped.frame_id) {
                set_loading(targets, page, false);
                targets.announce(page, &PageEvent::NavigationEnded);
            }
        }
        "Page.lifecycleEvent" => {
            let lifecycle: Lifecycle = of(event)?;
            if lifecycle.name == "load" {
                registry.look_again(targets, page);
                targets.announce(page, &PageEvent::Loaded(lifecycle.loader_id));
            }
        }
        "Page.javascriptDialogOpening" => {
            let opening: DialogOpening = of(event)?;
            dialogs::answer(targets, page, &opening);
        }
        "Inspector.targetCrashed" => {
            if let Some(page) = targets.state().pages.get_mut(&page) {
                page.crashed = true;
            }
            registry.remove_page(page);
            targets.announce(page, &PageEvent::Crashed);
        }
        "WebMCP.toolsAdded" => {
            let added: ToolsAdded = of(event)?;
            registry.added(targets, page, &added.tools);
        }
        "WebMCP.toolsRemoved" => {
            let removed: ToolsRemoved = of(event)?;
            registry.removed(targets, page, &removed.tools);
        }
        "WebMCP.toolInvoked" => {
            targets.announce(page, &PageEvent::ToolInvoked(Arc::new(of(event)?)));
        }
        "WebMCP.toolResponded" => {
            targets.announce(page, &PageEvent::ToolResponded(Arc::new(of(event)?)));
        }
        _ => {}
    }
    Ok(())
}

fn is_top(targets: &Targets, page: PageId, frame: &str) -> bool {
    targets.top_document(page).is_some_and(|top| &*top.frame == frame)
}

fn set_loading(targets: &Targets, page: PageId, loading: bool) {
    if let Some(page) = targets.state().pages.get_mut(&page) {
        page.loading = loading;
    }
}

fn tell(targets: &Arc<Targets>, registry: &Arc<Registry>, page: PageId, changes: &[PageEvent]) {
    for change in changes {
        match change {
            PageEvent::DocumentGone(document) => registry.remove_document(page, *document),
            PageEvent::Committed { restored: true, .. } => {
                // A page that comes back from the back/forward cache has its tools told *before* its document,
                // and its frames not at all: both are asked for.
                registry.look_again(targets, page);
                if let Some(session) = targets.session(page) {
                    tokio::spawn(synchronise(targets.clone(), registry.clone(), session, page));
                }
            }
            _ => {}
        }
        targets.announce(page, change);
    }
}

/// Makes a page that has just been attached ready: everything is switched on before its first script runs.
async fn prepare(targets: Arc<Targets>, registry: Arc<Registry>, session: CdpSession, page: PageId) {
    let enabled = session.call("Page.enable", json!({}));
    let lifecycle = session.call("Page.setLifecycleEventsEnabled", json!({"enabled": true}));
    synchronise(targets.clone(), registry, session.clone(), page).await;
    let resumed = session.call("Runtime.runIfWaitingForDebugger", json!({}));
    let _ = (enabled.await, lifecycle.await, resumed.await);
    if let Some(page) = targets.state().pages.get_mut(&page) {
        page.ready = true;
    }
    targets.announce(page, &PageEvent::ToolsChanged);
}

/// Takes in the frames and tools that a page has already.
async fn synchronise(targets: Arc<Targets>, registry: Arc<Registry>, session: CdpSession, page: PageId) {
    // The frames must be known before the tools in them are told.
    if let Ok(reply) = session.call("Page.getFrameTree", json!({})).await
        && let Ok(FrameTreeReply { frame_tree }) = reply.decode()
    {
        targets.state().frame_tree(page, &frame_tree);
    }
    let _ = session.call("WebMCP.enable", json!({})).await;
    registry.look_again(&targets, page);
}

fn of<T: DeserializeOwned>(event: &Event) -> Result<T, serde_json::Error> {
    decode(&event.params)
}
