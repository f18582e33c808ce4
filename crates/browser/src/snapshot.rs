//! A page as text: its accessibility tree, one line a node, each with a name that other tools take.
//!
//! * [`uids`]: the names; [`source`]: two ways to ask Chromium; [`tree`]: the nodes in order, frames in their places;
//! * [`interest`]: which of them matter; [`render`]: their lines.

mod ax;
mod interest;
mod render;
mod source;
mod tree;
pub(crate) mod uids;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pagebridge_cdp::{CdpError, CdpSession};
use pagebridge_core::{ErrorKind, Outcome, ToolError};
use serde_json::json;

use crate::browser::Browser;
use crate::loss;
use crate::page_tools::CallOptions;
use crate::targets::{Document, PageId};
use render::Limits;
use tree::{Collector, Most, Tree};

/// Nodes that are asked for, where not every one of them will be shown.
const NODES_PER_LINE: usize = 6;

/// Which part of a page, and how much of it.
#[derive(Debug, Clone)]
pub struct SnapshotOptions {
    /// Also what only structures the page.
    pub verbose: bool,
    /// Only what lies at and below this element.
    pub uid: Option<String>,
    /// Most lines.
    pub max_lines: usize,
    /// Most bytes.
    pub max_bytes: usize,
}

/// A page as text.
#[derive(Debug)]
pub struct Snapshot {
    /// Lines, each with its line feed.
    pub text: String,
    /// Where it is cut, if it is.
    pub cut: Option<SnapshotCut>,
}

/// Where a snapshot is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotCut {
    /// Lines that there are.
    pub lines: usize,
    /// Lines that there would be; `None` where they were not counted.
    pub of: Option<usize>,
}

/// How many snapshots of each session are being made: while there are some, Chromium keeps its tree.
#[derive(Debug, Default)]
pub(crate) struct KeptTrees(Mutex<HashMap<Option<Arc<str>>, usize>>);

impl Browser {
    /// What a page shows, as text.
    pub async fn snapshot(
        &self,
        page: PageId,
        wanted: &SnapshotOptions,
        options: &CallOptions,
    ) -> Result<Snapshot, ToolError> {
        self.uids.shrink(|document| self.has_document(document));
        let work = async {
            let tree = match &wanted.uid {
                None => self.page_tree(page, wanted).await?,
                Some(uid) => self.subtree(page, uid, wanted).await?,
            };
            Ok(self.rendered(page, &tree, wanted))
        };
        self.observe(page, "The snapshot", options, work).await
    }

    async fn page_tree(&self, page: PageId, wanted: &SnapshotOptions) -> Result<Tree, ToolError> {
        // A document that goes while it is read is read again: the next one is what is meant.
        let mut attempts = 0..3;
        loop {
            let session = self.session(page)?;
            let documents = self.targets.documents_of(page);
            let Some(top) = documents.first() else { return Err(loss::page_closed(Outcome::NotRun)) };
            let _kept = self.keep_tree(&session);
            let collected = collect(&documents, top, wanted).await;
            match collected {
                Err(CdpError::Refused { .. }) if !self.has_document(top.id) && attempts.next().is_some() => {}
                Err(CdpError::Refused { .. }) if !self.has_document(top.id) => {
                    let message = "The page keeps going to other documents, so that none could be read.";
                    return Err(ToolError::not_run(ErrorKind::Navigated, message));
                }
                collected => return collected.map_err(|error| loss::tool_error(&error, Outcome::NotRun)),
            }
        }
    }

    async fn subtree(&self, page: PageId, uid: &str, wanted: &SnapshotOptions) -> Result<Tree, ToolError> {
        let element = self.element(page, uid).await?;
        let _kept = self.keep_tree(&element.document.session);
        let documents = self.targets.documents_of(page);
        let collector = Collector::new(&documents, most(wanted)).await;
        let tree = match collector {
            Ok(collector) => collector.below(&element.document, element.backend).await,
            Err(error) => Err(error),
        };
        let tree = tree.map_err(|error| loss::tool_error(&error, Outcome::NotRun))?;
        if tree.nodes.is_empty() {
            let message = format!("The element uid={uid} is in the page but has no place in a snapshot now.");
            return Err(ToolError::not_run(ErrorKind::NotFound, message));
        }
        Ok(tree)
    }

    fn rendered(&self, page: PageId, tree: &Tree, wanted: &SnapshotOptions) -> Snapshot {
        let limits = Limits { lines: wanted.max_lines, bytes: wanted.max_bytes };
        let rendered = render::render(&tree.nodes, wanted.verbose, limits, |node| {
            node.id.map(|(document, backend)| self.uids.of(page, document, backend))
        });
        let is_cut = tree.is_cut || rendered.lines < rendered.of;
        let of = (!tree.is_cut).then_some(rendered.of);
        Snapshot { cut: is_cut.then_some(SnapshotCut { lines: rendered.lines, of }), text: rendered.text }
    }

    /// Makes Chromium keep the tree until the guard goes, instead of making it anew for every question.
    fn keep_tree(&self, session: &CdpSession) -> KeptTree<'_> {
        let id = session.id().cloned();
        let mut kept = self.kept_trees.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = kept.entry(id).or_insert(0);
        *count += 1;
        if *count == 1 {
            drop(session.call("Accessibility.enable", json!({})));
        }
        KeptTree { kept: &self.kept_trees, session: session.clone() }
    }
}

async fn collect(documents: &[Document], top: &Document, wanted: &SnapshotOptions) -> Result<Tree, CdpError> {
    Collector::new(documents, most(wanted)).await?.page(top).await
}

/// What is enough to fill the lines that are wanted, and little more.
fn most(wanted: &SnapshotOptions) -> Most {
    let per_line = if wanted.verbose { 1 } else { NODES_PER_LINE };
    Most {
        nodes: wanted.max_lines.saturating_mul(per_line).saturating_add(1),
        texts: wanted.max_lines.saturating_add(wanted.max_lines / 10),
    }
}

struct KeptTree<'a> {
    kept: &'a KeptTrees,
    session: CdpSession,
}

impl Drop for KeptTree<'_> {
    fn drop(&mut self) {
        let id = self.session.id().cloned();
        let mut kept = self.kept.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = kept.get_mut(&id) else { return };
        *count -= 1;
        if *count == 0 {
            kept.remove(&id);
            drop(self.session.call("Accessibility.disable", json!({})));
        }
    }
}
