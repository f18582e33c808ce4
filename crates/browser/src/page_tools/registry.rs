//! Which tools each document offers now.
//!
//! The protocol's events say *that* something changed and in which frame; after each, the documents are asked
//! what they offer ([`super::discover`]). Until they have answered, the events alone are the list.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use pagebridge_cdp::decode;
use pagebridge_core::json::depth;
use pagebridge_core::{limits, text};
use serde_json::Value;
use serde_json::value::RawValue;

use super::discover::{self, Look, SeenTool};
use super::{Annotations, Definition, PageTool, PageToolList, Skipped, Support};
use crate::events::{AnnouncedTool, PageEvent, RemovedTool};
use crate::targets::{Document, DocumentId, PageId, Targets};

/// Between two looks at a page that keeps changing its tools.
const BREATH: Duration = Duration::from_millis(5);

/// The tools of all pages of one browser.
#[derive(Default)]
pub struct Registry {
    pages: Mutex<HashMap<PageId, PageTools>>,
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

#[derive(Default)]
struct DocumentTools {
    announced: BTreeMap<String, AnnouncedTool>,
    look: Option<Look>,
}

impl Registry {
    /// `WebMCP.toolsAdded`: one odd tool is passed over, its neighbours are not.
    pub(crate) fn added(self: &Arc<Self>, targets: &Arc<Targets>, page: PageId, tools: &[Box<RawValue>]) {
        for raw in tools {
            match decode::<AnnouncedTool>(raw) {
                Ok(tool) => self.add(targets, page, tool),
                Err(error) => tracing::debug!(%error, "a page tool of unknown shape was passed over"),
            }
        }
        self.look_again(targets, page);
    }

    fn add(&self, targets: &Targets, page: PageId, mut tool: AnnouncedTool) {
        let Some(document) = document_of_frame(targets, page, &tool.frame_id) else { return };
        // A page may describe a tool with megabytes; nothing beyond the limits is ever shown.
        tool.description = text::bounded(&tool.description, limits::DESCRIPTION_CHARS);
        let mut pages = self.pages();
        let entry = pages.entry(page).or_default();
        let known: usize = entry.documents.values().map(|d| d.announced.len()).sum();
        let tools = &mut entry.documents.entry(document).or_default().announced;
        if known < limits::TOOLS_PER_PAGE || tools.contains_key(&tool.name) {
            tools.insert(tool.name.clone(), tool);
        }
    }

    /// `WebMCP.toolsRemoved`.
    pub(crate) fn removed(self: &Arc<Self>, targets: &Arc<Targets>, page: PageId, tools: &[RemovedTool]) {
        for tool in tools {
            let Some(document) = document_of_frame(targets, page, &tool.frame_id) else { continue };
            let mut pages = self.pages();
            let Some(known) = pages.entry(page).or_default().documents.get_mut(&document) else { continue };
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
            page.epoch += 1;
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
            let Some(session) = targets.session(page) else { return };
            let documents = targets.documents_of(page);
            let asked = documents.iter().filter(|document| may_be_of_top_origin(document, &documents));
            let looks = join_all(asked.map(|d| async { (d.id, discover::look(&session, d).await) })).await;
            for (document, look) in &looks {
                if let Some(look) = look {
                    targets.state().title_of_document(*document, &look.title);
                }
            }
            let quiet = self.take_looks(page, epoch, looks);
            targets.announce(page, &PageEvent::ToolsChanged);
            if quiet {
                return;
            }
            tokio::time::sleep(BREATH).await;
        }
    }

    /// Takes in what the documents said. True when nothing happened meanwhile.
    fn take_looks(&self, page: PageId, epoch: u64, looks: Vec<(DocumentId, Option<Look>)>) -> bool {
        let mut pages = self.pages();
        let Some(entry) = pages.get_mut(&page) else { return true };
        for (document, look) in looks {
            // What a document said before its last change is better than nothing; the next look follows.
            if let Some(look) = look {
                entry.documents.entry(document).or_default().look = Some(look);
            }
        }
        entry.seen = epoch;
        entry.looking = entry.epoch != epoch;
        !entry.looking
    }

    /// The tools of a page now.
    pub fn list(&self, targets: &Targets, page: PageId) -> PageToolList {
        let mut documents = targets.documents_of(page);
        documents.sort_by(|a, b| a.frame_path.cmp(&b.frame_path));
        let pages = self.pages();
        let known = pages.get(&page);
        let tools_of = |id: &DocumentId| known.and_then(|known| known.documents.get(id));
        let top = documents.first();
        let top_origin = top.map(|top| origin_of(top, tools_of(&top.id)));
        let (support, reason) = support(top.and_then(|top| tools_of(&top.id)?.look.as_ref()));
        let mut list = PageToolList { support, reason, tools: Vec::new(), skipped: Vec::new() };
        for document in &documents {
            let Some(offered) = tools_of(&document.id) else { continue };
            let origin = origin_of(document, Some(offered));
            let same_origin = origin != "null" && Some(&origin) == top_origin.as_ref();
            for definition in offered.definitions() {
                if document.is_top() || same_origin {
                    list.tools.push(page_tool(document, &origin, definition));
                } else {
                    let reason = format!("a frame of another origin ({origin}) offers it");
                    list.skipped.push(Skipped { name: definition.name, reason });
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

fn document_of_frame(targets: &Targets, page: PageId, frame: &str) -> Option<DocumentId> {
    targets.state().pages.get(&page)?.frames.get(frame).map(|document| document.id)
}

/// Documents whose tools may be offered: the top one, those of its origin, and those that inherit theirs.
fn may_be_of_top_origin(document: &Document, all: &[Document]) -> bool {
    let top = all.iter().find(|document| document.is_top());
    document.is_top()
        || document.url.starts_with("about:")
        || document.url.starts_with("blob:")
        || top.is_some_and(|top| top.protocol_origin == document.protocol_origin)
}

fn origin_of(document: &Document, tools: Option<&DocumentTools>) -> String {
    match tools.and_then(|tools| tools.look.as_ref()) {
        Some(look) => look.origin.clone(),
        None if document.protocol_origin.ends_with("://") || document.protocol_origin.is_empty() => {
            "null".into()
        }
        None => document.protocol_origin.trim_end_matches('/').to_owned(),
    }
}

fn support(look: Option<&Look>) -> (Support, Option<String>) {
    let absent = |reason: &str| (Support::Absent, Some(reason.to_owned()));
    match look {
        None => absent("The page has not told yet what it offers: it is still loading, or busy."),
        Some(look) if !look.secure => {
            absent("The page is no secure context: WebMCP exists only over HTTPS and on localhost.")
        }
        Some(look) if !look.present => absent(
            "This browser has no WebMCP: it is too old (Chromium 156 is known to work) or has it switched off.",
        ),
        Some(Look { failure: Some(failure), .. }) => {
            (Support::Native, Some(format!("The browser refuses to list the page's tools: {failure}")))
        }
        Some(_) => (Support::Native, None),
    }
}

fn page_tool(document: &Document, origin: &str, definition: Definition) -> PageTool {
    PageTool {
        page: document.page,
        document: document.id,
        frame: document.frame.clone(),
        frame_path: document.frame_path.clone(),
        origin: origin.to_owned(),
        definition: Arc::new(definition),
    }
}

impl DocumentTools {
    /// What both sources say together, sorted by name.
    fn definitions(&self) -> Vec<Definition> {
        let seen: BTreeMap<&str, &SeenTool> =
            self.look.iter().flat_map(|look| &look.tools).map(|tool| (tool.name.as_str(), tool)).collect();
        let mut names: Vec<&str> =
            self.announced.keys().map(String::as_str).chain(seen.keys().copied()).collect();
        names.sort_unstable();
        names.dedup();
        names
            .into_iter()
            .map(|name| definition(name, self.announced.get(name), seen.get(name).copied()))
            .collect()
    }
}

fn definition(name: &str, announced: Option<&AnnouncedTool>, seen: Option<&SeenTool>) -> Definition {
    let description = announced.map_or_else(|| seen.map_or("", |s| &s.description), |a| &a.description);
    let title = seen.map(|s| text::one_line(&s.title, limits::SHORT_TEXT_CHARS)).filter(|t| !t.is_empty());
    let schema = seen
        .and_then(|s| s.input_schema.as_deref())
        .or_else(|| announced.and_then(|a| a.input_schema.as_deref()));
    Definition {
        name: name.to_owned(),
        title,
        description: text::bounded(description, limits::DESCRIPTION_CHARS),
        schema: schema.and_then(readable_schema),
        annotations: annotations(announced, seen),
        form: announced.is_some_and(|a| a.backend_node_id.is_some()),
        registered_at: announced.and_then(registration_site),
    }
}

/// The schema, unless it is nested so deeply that no reader could use it.
fn readable_schema(raw: &RawValue) -> Option<Value> {
    (depth(raw.get()) <= limits::JSON_LEVELS).then(|| decode(raw).ok()).flatten()
}

/// A hint counts when either source gives it: a form's hints, for one, come from the protocol alone.
fn annotations(announced: Option<&AnnouncedTool>, seen: Option<&SeenTool>) -> Annotations {
    let told = announced.and_then(|a| a.annotations.clone()).unwrap_or_default();
    let seen: Annotations = seen.and_then(|s| s.annotations).unwrap_or_default().into();
    Annotations {
        read_only: told.read_only || seen.read_only,
        untrusted_content: told.untrusted_content || seen.untrusted_content,
        consequential: told.consequential || seen.consequential,
        debugging: told.debugging || seen.debugging,
    }
}

fn registration_site(tool: &AnnouncedTool) -> Option<String> {
    let frame = tool.stack_trace.as_ref()?.call_frames.first()?;
    let site = format!("{}:{}", frame.url, frame.line_number.saturating_add(1));
    Some(text::one_line(&site, limits::SHORT_TEXT_CHARS))
}
