//! One running browser and what can be done with its pages.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pagebridge_cdp::{CdpError, CdpSession};
use pagebridge_core::{ErrorKind, Outcome, ToolError, limits};
use pagebridge_process::Job;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::loss;
use crate::page_tools::{Answer, CallOptions, PageTool, PageToolList, Registry, arguments, call};
use crate::targets::{Document, DocumentId, PageId, PageInfo, Targets};

/// For a new tab to be made and prepared.
const NEW_PAGE: Duration = Duration::from_secs(15);
/// For the browser to close by itself, before signals are used.
const POLITE_CLOSE: Duration = Duration::from_secs(1);

/// A running browser. Dropping it leaves it to the supervisor's end; [`Browser::close`] ends it in good order.
pub struct Browser {
    job: Job,
    pub(crate) targets: Arc<Targets>,
    pub(crate) registry: Arc<Registry>,
    product: String,
    program: PathBuf,
}

impl Browser {
    pub(crate) fn new(
        job: Job,
        targets: Arc<Targets>,
        registry: Arc<Registry>,
        product: String,
        program: PathBuf,
    ) -> Self {
        Self { job, targets, registry, product, program }
    }

    /// Whether it still runs and listens.
    pub fn is_alive(&self) -> bool {
        !self.targets.browser().is_closed() && self.job.try_exit().is_none()
    }

    /// Product and version, like `Chrome/156.0.8078.114`.
    pub fn product(&self) -> &str {
        &self.product
    }

    /// The executable.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The number of the page that came last, here or in an earlier browser.
    pub fn last_page(&self) -> u32 {
        self.targets.state().last_page()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.job.pid()
    }

    /// Changes with every page, document and tool that comes or goes.
    pub fn revision(&self) -> tokio::sync::watch::Receiver<u64> {
        self.targets.revision()
    }

    /// All pages, in the order in which they came.
    pub fn pages(&self) -> Vec<PageInfo> {
        self.targets.pages()
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
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Created {
            target_id: Arc<str>,
        }
        let opened = async {
            let created: Created = self
                .targets
                .browser()
                .call("Target.createTarget", json!({"url": "about:blank"}))
                .await?
                .decode()?;
            self.prepared(&created.target_id).await
        };
        match tokio::time::timeout(NEW_PAGE, opened).await {
            Ok(page) => page.map_err(|error| loss::tool_error(&error, Outcome::NotRun)),
            Err(_) => {
                Err(ToolError::not_run(ErrorKind::Timeout, "The browser did not open a new page in time."))
            }
        }
    }

    async fn prepared(&self, target: &str) -> Result<PageId, CdpError> {
        let mut revision = self.targets.revision();
        loop {
            revision.borrow_and_update();
            let ready =
                self.targets.state().page_of_target(target).filter(|page| page.ready).map(|p| p.info().id);
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

    /// Ends the browser: politely, so that a kept profile is written, then by signals. Returns when it is gone.
    pub async fn close(&self) {
        drop(self.targets.browser().call("Browser.close", json!({})));
        if tokio::time::timeout(POLITE_CLOSE, self.job.exited()).await.is_err() {
            tracing::debug!(pid = self.job.pid(), "the browser did not close by itself");
        }
        self.job.stop().await;
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
