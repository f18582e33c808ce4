//! Which tools each document offers now.
//!
//! The protocol's events say *that* something changed and in which frame; after each, the documents are asked
//! what they offer ([`super::discover`]). Until they have answered, the events alone are the list.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use pagebridge_cdp::{CdpSession, decode};
use pagebridge_core::{limits, text};
use serde_json::value::RawValue;

use super::discover::{self, Look, SeenTool};
use super::merge::DocumentTools;
use super::page_api::PageApi;
use super::{Definition, PageTool, PageToolList, Skipped, Via};
use crate::events::{AnnouncedTool, PageEvent, RemovedTool};
use crate::targets::{Document, DocumentId, PageId, Targets};

/// Between two looks at a page that keeps changing its tools.
const BREATH: Duration = Duration::from_millis(5);

/// The tools of all pages of one browser.
pub struct Registry {
    pages: Mutex<HashMap<PageId, PageTools>>,
    /// Origins whose frames may offer tools wherever they are.
    allowed_frames: Vec<String>,
}

#[derive(Default)]
struct PageTools {
    documents: HashMap<DocumentId, DocumentTools>,
    /// Counts what may have changed the tools.
    epoch: u64,
    /// The epoch that the last finished look saw.
    seen: u64,
    looking: bool,
    changed_at: Option<Instant>,
}

/// What one document said in one look.
struct Seen {
    document: DocumentId,
    look: Option<Look>,
    page_api: Option<PageApi>,
    own: Option<Vec<SeenTool>>,
}

impl Registry {
    /// An empty registry. Frames of these origins may offer tools in pages of other origins.
    pub fn new(allowed_frames: Vec<String>) -> Self {
        Self { pages: Mutex::default(), allowed_frames }
    }

    /// `WebMCP.toolsAdded`: one odd tool is passed over, its neighbours are not.
    pub(crate) fn added(
        self: &Arc<Self>,
        targets: &Arc<Targets>,
        page: PageId,
        session: &CdpSession,
        tools: &[Box<RawValue>],
    ) {
        for raw in tools {
            match decode::<AnnouncedTool>(raw) {
                Ok(tool) => self.add(targets, page, session, tool),
                Err(error) => tracing::debug!(%error, "a page tool of unknown shape was passed over"),
            }
        }
        self.look_again(targets, page);
    }

    fn add(&self, targets: &Targets, page: PageId, session: &CdpSession, mut tool: AnnouncedTool) {
        let Some(document) = document_of_frame(targets, page, session, &tool.frame_id) else { return };
        // A page may describe a tool with megabytes; nothing beyond the limits is ever shown.
        tool.description = text::bounded(&tool.description, limits::DESCRIPTION_CHARS);
        tool.input_schema = tool.input_schema.filter(|raw| raw.get().len() <= limits::SCHEMA_KEPT_BYTES);
        let mut pages = self.pages();
        let entry = pages.entry(page).or_default();
        let known: usize = entry.documents.values().map(|d| d.announced.len()).sum();
        let offered = entry.documents.entry(document).or_default();
        if known < limits::TOOLS_PER_PAGE || offered.announced.contains_key(&tool.name) {
            offered.changed();
            offered.announced.insert(tool.name.clone(), tool);
        }
    }

    /// `WebMCP.toolsRemoved`.
    pub(crate) fn removed(
        self: &Arc<Self>,
        targets: &Arc<Targets>,
        page: PageId,
        session: &CdpSession,
        tools: &[RemovedTool],
    ) {
        for tool in tools {
            let Some(document) = document_of_frame(targets, page, session, &tool.frame_id) else { continue };
            let mut pages = self.pages();
            let Some(known) = pages.entry(page).or_default().documents.get_mut(&document) else { continue };
            known.changed();
            known.announced.remove(&tool.name);
            if let Some(look) = &mut known.look {
                look.tools.retain(|seen| seen.name != tool.name);
            }
        }
        self.look_again(targets, page);
    }

    pub(crate) fn remove_document(&self, page: PageId, document: DocumentId) {
        let mut pages = self.pages();
        if let Some(page) = pages.get_mut(&page) {
            page.documents.remove(&document);
        }
    }

    pub(crate) fn remove_page(&self, page: PageId) {
        self.pages().remove(&page);
    }

    pub(crate) fn end(&self) {
        self.pages().clear();
    }

    /// Something may have changed: asks the page's documents, once at a time, until nothing changes any more.
    pub(crate) fn look_again(self: &Arc<Self>, targets: &Arc<Targets>, page: PageId) {
        let mut pages = self.pages();
        let entry = pages.entry(page).or_default();
        entry.epoch += 1;
        entry.changed_at = Some(Instant::now());
        if !entry.looking {
            entry.looking = true;
            tokio::spawn(self.clone().look_until_quiet(targets.clone(), page));
        }
    }

    async fn look_until_quiet(self: Arc<Self>, targets: Arc<Targets>, page: PageId) {
        loop {
            let Some(epoch) = self.pages().get(&page).map(|entry| entry.epoch) else { return };
            let documents = targets.documents_of(page);
            let origins = other_origins(&documents);
            let asked = documents.iter().filter(|document| self.is_of_interest(page, document, &documents));
            let looks = join_all(asked.map(|document| self.look(&targets, document, &origins))).await;
            // What was said after a document had gone was said by its successor, and is dropped below.
            targets.caught_up().await;
            for seen in &looks {
                if let Some(look) = &seen.look {
                    targets.state().title_of_document(seen.document, &look.title);
                }
            }
            let quiet = self.take_looks(&targets, page, epoch, looks);
            targets.announce(page, &PageEvent::ToolsChanged);
            if quiet {
                return;
            }
            tokio::time::sleep(BREATH).await;
        }
    }

    /// Documents that are asked: the top one, those that may be of its origin, and those that have told a tool.
    fn is_of_interest(&self, page: PageId, document: &Document, all: &[Document]) -> bool {
        let has_told = |tools: &DocumentTools| !tools.announced.is_empty();
        let told = self.pages().get(&page).and_then(|p| p.documents.get(&document.id)).is_some_and(has_told);
        let top = all.first();
        told || document.is_top()
            || document.url.starts_with("about:")
            || document.url.starts_with("blob:")
            || top.is_some_and(|top| top.protocol_origin == document.protocol_origin)
            || self.allowed_frames.contains(&document.protocol_origin)
    }

    async fn look(&self, targets: &Targets, document: &Document, origins: &[String]) -> Seen {
        let origins = if document.is_top() { origins } else { &[] };
        let look = discover::look(document, origins).await;
        let known = self
            .pages()
            .get(&document.page)
            .and_then(|page| page.documents.get(&document.id)?.page_api.clone());
        let page_api = match (&look, known) {
            (_, Some(known)) => Some(known),
            (Some(look), None) if targets.is_session_root(document) => {
                PageApi::enter(&document.session, look.present).await.ok()
            }
            _ => None,
        };
        let own = match &page_api {
            Some(api) => api.list().await,
            None => None,
        };
        Seen { document: document.id, look, page_api, own }
    }

    /// Takes in what the documents said. True when nothing happened meanwhile.
    fn take_looks(
        self: &Arc<Self>,
        targets: &Arc<Targets>,
        page: PageId,
        epoch: u64,
        looks: Vec<Seen>,
    ) -> bool {
        let current: HashSet<DocumentId> = targets.documents_of(page).iter().map(|d| d.id).collect();
        let mut pages = self.pages();
        let Some(entry) = pages.get_mut(&page) else { return true };
        for seen in looks.into_iter().filter(|seen| current.contains(&seen.document)) {
            let known = entry.documents.entry(seen.document).or_default();
            // What a document said before its last change is better than nothing; the next look follows.
            known.look = seen.look.or(known.look.take());
            if let (Some(api), true, false) = (&seen.page_api, seen.own.is_some(), known.followed) {
                known.followed = true;
                tokio::spawn(follow_page_api(Arc::downgrade(self), targets.clone(), page, api.clone()));
            }
            known.page_api = seen.page_api;
            known.own = seen.own;
            known.changed();
        }
        entry.seen = epoch;
        entry.looking = entry.epoch != epoch;
        !entry.looking
    }

    /// The way to an API of the page's own, for a call.
    pub(super) fn page_api(&self, page: PageId, document: DocumentId) -> Option<PageApi> {
        self.pages().get(&page)?.documents.get(&document)?.page_api.clone()
    }

    /// The tools of a page now.
    pub fn list(&self, targets: &Targets, page: PageId) -> PageToolList {
        let mut documents = targets.documents_of(page);
        documents.sort_by_cached_key(Document::place);
        let pages = self.pages();
        let nothing = DocumentTools::default();
        let known = pages.get(&page);
        let tools_of = |id: &DocumentId| known.and_then(|known| known.documents.get(id)).unwrap_or(&nothing);
        let Some(top) = documents.first() else { return PageToolList::empty() };
        let offered = tools_of(&top.id);
        let (support, reason) = offered.support();
        let admission = Admission {
            top_origin: offered.origin(top),
            exposed: offered.look.as_ref().map(|look| &look.exposed),
            allowed_frames: &self.allowed_frames,
        };
        let mut list = PageToolList { support, reason, tools: Vec::new(), skipped: Vec::new() };
        for document in &documents {
            let offered = tools_of(&document.id);
            let origin = offered.origin(document);
            for (definition, via) in offered.definitions() {
                let via = *via;
                if document.is_top() || admission.admits(&origin, &definition.name) {
                    list.tools.push(page_tool(document, &origin, definition.clone(), via));
                } else {
                    let reason = format!(
                        "a frame of another origin ({origin}) offers it and does not expose it to this page; --allow-frames {origin} admits it"
                    );
                    list.skipped.push(Skipped { name: definition.name.clone(), reason });
                }
            }
        }
        list
    }

    /// Waits until the page's tools have been quiet for `quiet`, and no longer than `most`.
    pub async fn settle(&self, page: PageId, quiet: Duration, most: Duration) {
        let started = Instant::now();
        while started.elapsed() < most {
            let wait = {
                let pages = self.pages();
                let Some(entry) = pages.get(&page) else { return };
                let calm = entry.changed_at.unwrap_or(started).elapsed();
                if calm >= quiet && entry.seen == entry.epoch {
                    return;
                }
                quiet.saturating_sub(calm).max(Duration::from_millis(2))
            };
            tokio::time::sleep(wait.min(most.saturating_sub(started.elapsed()))).await;
        }
    }

    fn pages(&self) -> MutexGuard<'_, HashMap<PageId, PageTools>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn document_of_frame(
    targets: &Targets,
    page: PageId,
    session: &CdpSession,
    frame: &str,
) -> Option<DocumentId> {
    let state = targets.state();
    let document = state.pages.get(&page)?.frames.get(frame)?;
    // A frame that has moved to another process is spoken for by that one.
    let is_spoken_for = document.session.id() == session.id() || document.loader.is_empty();
    is_spoken_for.then_some(document.id)
}

/// Which tools of frames may be offered.
struct Admission<'a> {
    top_origin: String,
    /// What frames of other origins expose to the top document.
    exposed: Option<&'a HashSet<(String, String)>>,
    allowed_frames: &'a [String],
}

impl Admission<'_> {
    fn admits(&self, origin: &str, name: &str) -> bool {
        let is_exposed =
            || self.exposed.is_some_and(|exposed| exposed.contains(&(origin.to_owned(), name.to_owned())));
        origin != "null"
            && (origin == self.top_origin || self.allowed_frames.iter().any(|o| o == origin) || is_exposed())
    }
}

/// Origins of the page's frames that are not the top document's.
fn other_origins(documents: &[Document]) -> Vec<String> {
    let top = documents.first().map(|top| top.protocol_origin.as_str()).unwrap_or_default();
    let origins = documents.iter().map(|document| document.protocol_origin.as_str());
    let others: HashSet<&str> =
        origins.filter(|origin| *origin != top && !origin.is_empty() && !origin.ends_with("://")).collect();
    others.into_iter().map(Into::into).collect()
}

/// Looks again whenever a page's own API says that its list changed, for as long as its document lives.
async fn follow_page_api(registry: Weak<Registry>, targets: Arc<Targets>, page: PageId, api: PageApi) {
    while api.changed().await.is_ok() {
        let Some(registry) = registry.upgrade() else { return };
        registry.look_again(&targets, page);
        // A page that says so all the time is looked at now and then.
        tokio::time::sleep(BREATH * 10).await;
    }
}

fn page_tool(document: &Document, origin: &str, definition: Arc<Definition>, via: Via) -> PageTool {
    PageTool {
        page: document.page,
        document: document.id,
        frame: document.frame.clone(),
        frame_path: document.frame_path.clone(),
        origin: origin.to_owned(),
        via,
        definition,
    }
}
