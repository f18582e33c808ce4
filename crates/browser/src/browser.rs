//! One running browser and what can be done with its pages.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pagebridge_cdp::{CdpError, CdpSession, Endpoint};
use pagebridge_core::{ErrorKind, Outcome, ToolError, limits};
use pagebridge_process::Job;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::attach::Foreign;
use crate::loss;
use crate::page_tools::{Answer, CallOptions, PageTool, PageToolList, Registry, arguments, call};
use crate::snapshot::{KeptTrees, uids::Uids};
use crate::targets::{Document, DocumentId, PageId, PageInfo, Targets};
use crate::underway::Underway;

/// For a new tab to be made and prepared.
const NEW_PAGE: Duration = Duration::from_secs(15);
/// For the browser to close by itself, before signals are used.
const POLITE_CLOSE: Duration = Duration::from_secs(1);

/// Who answers for a browser's process.
pub(crate) enum Owner {
    /// We do: it is a child of ours.
    Child { job: Job, program: PathBuf },
    /// Somebody else does.
    Foreign(Foreign),
}

/// A running browser. Dropping it leaves it to the supervisor's end; [`Browser::close`] ends it in good order.
pub struct Browser {
    owner: Owner,
    pub(crate) targets: Arc<Targets>,
    pub(crate) registry: Arc<Registry>,
    /// The names of elements that snapshots gave.
    pub(crate) uids: Uids,
    pub(crate) kept_trees: KeptTrees,
    product: String,
    /// Navigations of ours.
    pub(crate) underway: Underway,
}

impl Browser {
    pub(crate) fn new(owner: Owner, targets: Arc<Targets>, registry: Arc<Registry>, product: String) -> Self {
        Self {
            owner,
            targets,
            registry,
            uids: Uids::default(),
            kept_trees: KeptTrees::default(),
            product,
            underway: Underway::default(),
        }
    }

    /// Whether it still runs and listens.
    pub fn is_alive(&self) -> bool {
        let runs = match &self.owner {
            Owner::Child { job, .. } => job.try_exit().is_none(),
            Owner::Foreign(_) => true,
        };
        runs && !self.targets.browser().is_closed()
    }

    /// Product and version, like `Chrome/156.0.8078.114`.
    pub fn product(&self) -> &str {
        &self.product
    }

    /// The executable of a browser of ours.
    pub fn program(&self) -> Option<&Path> {
        match &self.owner {
            Owner::Child { program, .. } => Some(program),
            Owner::Foreign(_) => None,
        }
    }

    /// Where a browser of somebody else is: as it was given, and the address that answered.
    pub fn endpoint(&self) -> Option<(&Endpoint, SocketAddr)> {
        self.foreign().map(|foreign| (foreign.endpoint(), foreign.address()))
    }

    /// Whether a browser of somebody else shows no windows. `None` for one of ours, which does as it was told.
    pub fn is_headless(&self) -> Option<bool> {
        self.foreign().map(Foreign::is_headless)
    }

    fn foreign(&self) -> Option<&Foreign> {
        match &self.owner {
            Owner::Child { .. } => None,
            Owner::Foreign(foreign) => Some(foreign),
        }
    }

    /// The number of the page that came last, here or in an earlier browser.
    pub fn last_page(&self) -> u32 {
        self.targets.state().last_page()
    }

    /// The process id of a browser of ours.
    pub fn pid(&self) -> Option<u32> {
        match &self.owner {
            Owner::Child { job, .. } => Some(job.pid()),
            Owner::Foreign(_) => None,
        }
    }

    /// Changes with every page, document and tool that comes or goes.
    pub fn revision(&self) -> tokio::sync::watch::Receiver<u64> {
        self.targets.revision()
    }

    /// All pages, in the order in which they came.
    pub fn pages(&self) -> Vec<PageInfo> {
        self.targets.pages()
    }

    /// The page that came first of those that are there, prepared or not.
    pub fn first_page(&self) -> Option<PageId> {
        self.targets.state().pages.first().map(|(page, _)| *page)
    }

    /// One page, if it is there.
    pub fn page(&self, page: PageId) -> Option<PageInfo> {
        self.targets.page(page)
    }

    /// The current top document of a page.
    pub fn top_document(&self, page: PageId) -> Option<Document> {
        self.targets.top_document(page)
    }

    /// Whether a document is still shown.
    pub fn has_document(&self, document: DocumentId) -> bool {
        self.targets.document(document).is_some()
    }

    /// Opens a blank page, prepared before anything runs in it.
    pub async fn new_page(&self) -> Result<PageId, ToolError> {
        let opened = async {
            let page = self.create_page().await?;
            // Where its first process died before anything was switched on, nothing would ever tell of the page.
            // Nothing ran in it, so another one is as good.
            if !self.page(page).is_some_and(|page| page.crashed) {
                return Ok(page);
            }
            let _ = self.close_page(page).await;
            self.create_page().await
        };
        match tokio::time::timeout(NEW_PAGE, opened).await {
            Ok(page) => page.map_err(|error| loss::tool_error(&error, Outcome::NotRun)),
            Err(_) => {
                Err(ToolError::not_run(ErrorKind::Timeout, "The browser did not open a new page in time."))
            }
        }
    }

    async fn create_page(&self) -> Result<PageId, CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Created {
            target_id: Arc<str>,
        }
        let created = self.targets.browser().call("Target.createTarget", json!({"url": "about:blank"}));
        let created: Created = created.await?.decode()?;
        if let Some(foreign) = self.foreign() {
            foreign.opened(created.target_id.clone());
        }
        self.prepared(&created.target_id).await
    }

    async fn prepared(&self, target: &str) -> Result<PageId, CdpError> {
        let mut revision = self.targets.revision();
        loop {
            revision.borrow_and_update();
            let is_prepared = |page: &&crate::targets::Page| page.ready && !page.unresponsive;
            let ready =
                self.targets.state().page_of_target(target).filter(is_prepared).map(|page| page.info().id);
            if let Some(page) = ready {
                return Ok(page);
            }
            if self.targets.browser().is_closed() || revision.changed().await.is_err() {
                return Err(CdpError::Closed);
            }
        }
    }

    /// Closes a page. It is gone from [`Browser::pages`] when this returns.
    pub async fn close_page(&self, page: PageId) -> Result<(), ToolError> {
        let target = self.targets.state().pages.get(&page).map(|page| page.target.clone());
        let Some(target) = target else { return Err(loss::page_closed(Outcome::NotRun)) };
        let mut events = self.targets.subscribe(page);
        let closed = async {
            self.targets.browser().call("Target.closeTarget", json!({"targetId": target})).await?;
            while self.targets.page(page).is_some() && events.recv().await.is_some() {}
            Ok(())
        };
        match tokio::time::timeout(NEW_PAGE, closed).await {
            Ok(closed) => closed.map_err(|error: CdpError| loss::tool_error(&error, Outcome::Unknown)),
            Err(_) => Err(ToolError::unknown(ErrorKind::Timeout, "The page did not close in time.")),
        }
    }

    /// Brings a page to the front.
    pub async fn bring_to_front(&self, page: PageId) -> Result<(), ToolError> {
        let session = self.session(page)?;
        let brought = session.call("Page.bringToFront", json!({})).await;
        brought.map(drop).map_err(|error| loss::tool_error(&error, Outcome::Unknown))
    }

    /// The tools of a page now. Starts nothing and waits for nothing.
    pub fn page_tools(&self, page: PageId) -> PageToolList {
        self.registry.list(&self.targets, page)
    }

    /// Waits, a bounded time, until the page's tools have stopped changing.
    pub async fn settle(&self, page: PageId) {
        self.registry.settle(page, limits::SETTLE_QUIET, limits::SETTLE_MAX).await;
    }

    /// Waits until the page offers a first tool, and no longer than `most`.
    pub async fn wait_for_tools(&self, page: PageId, most: Duration) {
        let mut revision = self.targets.revision();
        let _ = tokio::time::timeout(most, async {
            while self.page_tools(page).tools.is_empty() && revision.changed().await.is_ok() {}
        })
        .await;
        self.settle(page).await;
    }

    /// Calls a page tool: checks the arguments against its schema, fills in defaults, runs it once.
    pub async fn call_tool(
        &self,
        tool: &PageTool,
        arguments: &Map<String, Value>,
        options: &CallOptions,
    ) -> Result<Answer, ToolError> {
        self.check_usable(tool.page)?;
        let arguments = arguments::check(tool.definition.schema.as_ref(), arguments)
            .map_err(|mistakes| invalid_arguments(&tool.definition.name, &mistakes))?;
        call::run(&self.targets, &self.registry, tool, &arguments, options).await
    }

    /// Ends a browser of ours: politely, so that a kept profile is written, then by signals. Returns when it is
    /// gone. One of somebody else only loses the pages that we opened, and us.
    pub async fn close(&self) {
        let job = match &self.owner {
            Owner::Child { job, .. } => job,
            Owner::Foreign(foreign) => return foreign.leave(&self.targets).await,
        };
        drop(self.targets.browser().call("Browser.close", json!({})));
        if tokio::time::timeout(POLITE_CLOSE, job.exited()).await.is_err() {
            tracing::debug!(pid = job.pid(), "the browser did not close by itself");
        }
        job.stop().await;
    }

    pub(crate) fn session(&self, page: PageId) -> Result<CdpSession, ToolError> {
        self.targets.session(page).ok_or_else(|| {
            if self.is_alive() {
                loss::page_closed(Outcome::NotRun)
            } else {
                loss::browser_lost(Outcome::NotRun)
            }
        })
    }
}

fn invalid_arguments(tool: &str, mistakes: &[String]) -> ToolError {
    let message = format!("The arguments do not fit the schema of {tool:?}:\n- {}", mistakes.join("\n- "));
    ToolError::not_run(ErrorKind::InvalidArguments, message).with_details(json!({"mistakes": mistakes}))
}
