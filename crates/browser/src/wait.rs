//! Waits on one page: each ends with the work, or with whatever makes the work's end unlikely to come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use pagebridge_core::{ErrorKind, Outcome, ToolError, duration};

use crate::browser::Browser;
use crate::dialogs::{self, Dialog};
use crate::events::PageEvent;
use crate::loss;
use crate::page_tools::CallOptions;
use crate::targets::{PageId, Subscription};

/// How far something that changes a page has come, which decides what its failure means.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU8);

impl Progress {
    /// From now on the page may have noticed.
    pub fn begin(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// What was asked for is done; only its echo is waited for.
    pub fn done(&self) {
        self.0.fetch_max(2, Ordering::Relaxed);
    }

    /// Whether it is done.
    pub fn is_done(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 2
    }

    /// What is to be said of something that ends now.
    pub fn outcome(&self) -> Outcome {
        if self.0.load(Ordering::Relaxed) == 0 { Outcome::NotRun } else { Outcome::Unknown }
    }
}

/// What a wait met.
#[derive(Debug)]
pub(crate) enum Met<T> {
    /// The work's result.
    Done(T),
    /// A dialog, behind which the work waits.
    Dialog(Arc<Dialog>),
}

impl Browser {
    /// Waits for something that only looks at the page. `what` begins its failures: "The snapshot".
    pub(crate) async fn observe<T>(
        &self,
        page: PageId,
        what: &str,
        options: &CallOptions,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        match self.attend(page, what, options, &Progress::default(), work).await? {
            Met::Done(result) => Ok(result),
            Met::Dialog(dialog) => {
                Err(dialogs::in_the_way(&dialog, &format!("{what} has not ended"), Outcome::NotRun))
            }
        }
    }

    /// Waits for work on a page, its dialog, its end, the caller's cancellation or the deadline.
    pub(crate) async fn attend<T>(
        &self,
        page: PageId,
        what: &str,
        options: &CallOptions,
        progress: &Progress,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<Met<T>, ToolError> {
        let mut events = self.targets.subscribe_to(page, cares_for);
        self.check_usable(page)?;
        let error = |kind, message| ToolError { kind, message, outcome: progress.outcome(), details: None };
        tokio::select! {
            biased;
            ended = next_end(&mut events, progress) => ended.map(Met::Dialog),
            result = work => result.map(Met::Done),
            () = options.cancel.cancelled() => {
                Err(error(ErrorKind::Cancelled, format!("{what} was cancelled.")))
            }
            () = tokio::time::sleep(options.deadline) => {
                let limit = duration::show(options.deadline);
                Err(error(ErrorKind::Timeout, format!("{what} did not end within {limit}.")))
            }
        }
    }
}

fn cares_for(event: &PageEvent) -> bool {
    matches!(event, PageEvent::DialogOpened(_) | PageEvent::Closed | PageEvent::Crashed)
}

async fn next_end(events: &mut Subscription, progress: &Progress) -> Result<Arc<Dialog>, ToolError> {
    loop {
        match events.recv().await {
            Some(PageEvent::DialogOpened(dialog)) => return Ok(dialog),
            Some(PageEvent::Closed) => return Err(loss::page_closed(progress.outcome())),
            Some(PageEvent::Crashed) => return Err(loss::page_crashed(progress.outcome())),
            Some(_) => {}
            None => return Err(loss::browser_lost(progress.outcome())),
        }
    }
}
