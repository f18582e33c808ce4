//! Navigations of ours that are under way. A tool that is called meanwhile waits for the end: its document is about to
//! go, and Chromium 156 may crash the renderer when a frame's tool is invoked after its page began to leave.

use std::time::Duration;

use tokio::sync::watch;

use crate::browser::Browser;
use crate::targets::PageId;

/// A page that takes longer to arrive is used as it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// The pages that are on their way, once for each navigation.
#[derive(Debug, Default)]
pub(crate) struct Underway(watch::Sender<Vec<PageId>>);

impl Underway {
    /// Counts until it is dropped.
    pub fn begin(&self, page: PageId) -> Trip<'_> {
        self.0.send_modify(|pages| pages.push(page));
        Trip { underway: self, page }
    }
}

/// One navigation.
pub(crate) struct Trip<'a> {
    underway: &'a Underway,
    page: PageId,
}

impl Drop for Trip<'_> {
    fn drop(&mut self) {
        self.underway.0.send_modify(|pages| {
            if let Some(at) = pages.iter().position(|page| *page == self.page) {
                pages.swap_remove(at);
            }
        });
    }
}

impl Browser {
    /// Waits until no navigation of ours is under way in the page, for a while.
    pub async fn until_arrived(&self, page: PageId) {
        let mut pages = self.underway.0.subscribe();
        let _ = tokio::time::timeout(PATIENCE, pages.wait_for(|pages| !pages.contains(&page))).await;
    }
}
