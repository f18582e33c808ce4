//! Pages, frames and documents as data, and the changes that events make to them. No I/O.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indexmap::IndexMap;
use pagebridge_cdp::CdpSession;

use super::{Document, DocumentId, PageId, PageInfo};
use crate::dialogs::Dialog;
use crate::events::{DialogOpening, Frame, FrameId, FrameTree, PageEvent, TargetInfo};

/// What a session is attached to.
struct Attached {
    page: PageId,
    /// The first frame of its process in the page.
    root: FrameId,
}

/// Counts over all browsers: a tool of a browser that is gone must never fit a document of the next.
static NEXT_DOCUMENT: AtomicU64 = AtomicU64::new(1);

#[derive(Default)]
pub(crate) struct State {
    pub pages: IndexMap<PageId, Page>,
    /// Every attached session, those of frames in other processes included.
    sessions: HashMap<Arc<str>, Attached>,
    last_page: u32,
}

pub(crate) struct Page {
    id: PageId,
    pub target: Arc<str>,
    pub session: CdpSession,
    title: String,
    /// Set when the page is prepared, or does not let itself be: before, it is nobody's business.
    pub ready: bool,
    /// Set while its renderer process has not answered us even once, and time is up.
    pub unresponsive: bool,
    pub crashed: bool,
    /// Whether the top frame is on its way to another document, or has not loaded it.
    pub loading: bool,
    /// The dialog that stops the page's scripts.
    pub dialog: Option<OpenDialog>,
    /// The top frame first. Each frame always has a document, at first an unknown one.
    pub frames: IndexMap<FrameId, Document>,
    /// Children that each frame has had, so that places are given once.
    children: IndexMap<FrameId, u32>,
}

/// A dialog and the session that answers it.
#[derive(Clone)]
pub(crate) struct OpenDialog {
    pub dialog: Arc<Dialog>,
    pub session: CdpSession,
}

impl Page {
    pub fn info(&self) -> PageInfo {
        let url = self.top().map(|document| document.url.clone()).unwrap_or_default();
        PageInfo {
            id: self.id,
            title: self.title.clone(),
            url,
            crashed: self.crashed,
            loading: self.loading,
            unresponsive: self.unresponsive,
        }
    }

    pub fn top(&self) -> Option<&Document> {
        self.frames.first().map(|(_, document)| document)
    }

    /// Removes a frame with its descendants; their documents are gone.
    fn remove_frame(&mut self, frame: &str) -> Vec<DocumentId> {
        let Some(path) = self.frames.get(frame).map(|document| document.frame_path.clone()) else {
            return Vec::new();
        };
        self.remove_where(|document| document.frame_path == path || is_below(&document.frame_path, &path))
    }

    fn remove_where(&mut self, gone: impl Fn(&Document) -> bool) -> Vec<DocumentId> {
        let mut ids = Vec::new();
        self.frames.retain(|frame, document| {
            let goes = gone(document);
            if goes {
                ids.push(document.id);
                self.children.shift_remove(frame);
            }
            !goes
        });
        ids
    }
}

fn is_below(path: &str, ancestor: &str) -> bool {
    path.strip_prefix(ancestor).is_some_and(|rest| rest.starts_with('.'))
}

impl State {
    /// No pages yet; the first one gets the number after `last_page`.
    pub fn new(last_page: u32) -> Self {
        Self { last_page, ..Self::default() }
    }

    /// The number that was given last.
    pub fn last_page(&self) -> u32 {
        self.last_page
    }

    /// A target that we are attached to now. Its top frame has the target's id.
    pub fn add_page(&mut self, session: CdpSession, target: &TargetInfo) -> PageId {
        self.last_page += 1;
        let id = PageId(self.last_page);
        let document = Document {
            id: self.next_document(),
            page: id,
            frame: target.target_id.clone(),
            session: session.clone(),
            frame_path: "0".into(),
            loader: "".into(),
            url: target.url.clone(),
            protocol_origin: String::new(),
        };
        self.add_session(&session, id, &target.target_id);
        let page = Page {
            id,
            target: target.target_id.clone(),
            session,
            title: target.title.clone(),
            ready: false,
            unresponsive: false,
            crashed: false,
            loading: false,
            dialog: None,
            frames: IndexMap::from([(target.target_id.clone(), document)]),
            children: IndexMap::new(),
        };
        self.pages.insert(id, page);
        id
    }

    /// A session of a frame that lives in a process of its own.
    pub fn add_session(&mut self, session: &CdpSession, page: PageId, root: &FrameId) {
        if let Some(id) = session.id() {
            self.sessions.insert(id.clone(), Attached { page, root: root.clone() });
        }
    }

    pub fn id_of_session(&self, session: &str) -> Option<PageId> {
        self.sessions.get(session).map(|attached| attached.page)
    }

    /// Whether a document is in the first frame of its process.
    pub fn is_session_root(&self, document: &Document) -> bool {
        let attached = document.session.id().and_then(|id| self.sessions.get(id));
        attached.is_some_and(|attached| attached.root == document.frame)
    }

    /// Ends a session. With the page's own the page is gone; with another the documents that it reached are.
    pub fn remove_session(&mut self, session: &str) -> Option<(PageId, Vec<PageEvent>)> {
        let id = self.sessions.remove(session)?.page;
        let is_root = self.pages.get(&id)?.session.id().is_some_and(|root| &**root == session);
        if is_root {
            self.pages.shift_remove(&id);
            self.sessions.retain(|_, attached| attached.page != id);
            return Some((id, vec![PageEvent::Closed]));
        }
        let lost = self.documents_of_session(id, session);
        let events = lost.into_iter().flat_map(|frame| self.forget_document(id, &frame)).collect();
        Some((id, events))
    }

    /// The renderer process behind a session crashed. That of the page takes the page's documents with it.
    pub fn session_crashed(&mut self, page: PageId, session: &str) -> Vec<PageEvent> {
        let Some(crashed) = self.pages.get_mut(&page) else { return Vec::new() };
        if crashed.session.id().is_some_and(|root| &**root == session) {
            crashed.crashed = true;
            // There is nothing left to be prepared.
            crashed.ready = true;
            crashed.loading = false;
            crashed.dialog = None;
            return vec![PageEvent::Crashed];
        }
        let frames = self.documents_of_session(page, session);
        let documents = frames.iter().filter_map(|frame| self.pages.get(&page)?.frames.get(frame));
        let mut events: Vec<PageEvent> = documents.map(|d| PageEvent::DocumentCrashed(d.id)).collect();
        for frame in &frames {
            events.extend(self.forget_document(page, frame));
        }
        events
    }

    /// A crashed renderer process has a successor. Whether it is that of the page itself.
    pub fn reloaded(&mut self, page: PageId, session: &CdpSession) -> bool {
        let of_page = self.pages.get_mut(&page).filter(|page| page.session.id() == session.id());
        of_page.map(|page| page.crashed = false).is_some()
    }

    fn documents_of_session(&self, page: PageId, session: &str) -> Vec<FrameId> {
        let documents = self.pages.get(&page).into_iter().flat_map(|page| page.frames.values());
        let of_session = documents.filter(|d| d.session.id().is_some_and(|id| &**id == session));
        of_session.map(|document| document.frame.clone()).collect()
    }

    /// The frame stays, but nobody knows what it shows: it moves to another process, or its process is gone.
    fn forget_document(&mut self, page: PageId, frame: &str) -> Vec<PageEvent> {
        let id = self.next_document();
        let Some(page) = self.pages.get_mut(&page) else { return Vec::new() };
        let Some(path) = page.frames.get(frame).map(|document| document.frame_path.clone()) else {
            return Vec::new();
        };
        let mut gone = page.remove_where(|document| is_below(&document.frame_path, &path));
        page.children.shift_remove(frame);
        if let Some(document) = page.frames.get_mut(frame) {
            gone.push(std::mem::replace(&mut document.id, id));
            document.session = page.session.clone();
            document.loader = "".into();
            document.url.clear();
            document.protocol_origin.clear();
        }
        gone.into_iter().map(PageEvent::DocumentGone).collect()
    }

    pub fn page_of_target(&self, target: &str) -> Option<&Page> {
        self.pages.values().find(|page| &*page.target == target)
    }

    pub fn target_info_changed(&mut self, info: &TargetInfo) -> Option<PageId> {
        let page = self.pages.values_mut().find(|page| page.target == info.target_id)?;
        page.title.clone_from(&info.title);
        Some(page.id)
    }

    /// The title that a top document told.
    pub fn title_of_document(&mut self, document: DocumentId, title: &str) {
        let page = self.pages.values_mut().find(|page| page.top().is_some_and(|top| top.id == document));
        if let Some(page) = page {
            title.clone_into(&mut page.title);
        }
    }

    pub fn dialog_opened(
        &mut self,
        page: PageId,
        session: &CdpSession,
        opening: &DialogOpening,
    ) -> Arc<Dialog> {
        let dialog = Arc::new(Dialog::from(opening));
        if let Some(page) = self.pages.get_mut(&page) {
            page.dialog = Some(OpenDialog { dialog: dialog.clone(), session: session.clone() });
        }
        dialog
    }

    pub fn dialog_closed(&mut self, page: PageId) {
        if let Some(page) = self.pages.get_mut(&page) {
            page.dialog = None;
        }
    }

    pub fn documents(&self) -> impl Iterator<Item = &Document> {
        self.pages.values().flat_map(|page| page.frames.values())
    }

    pub fn frame_attached(&mut self, page: PageId, frame: &FrameId, parent: &FrameId) {
        let document = self.next_document();
        let Some(page) = self.pages.get_mut(&page) else { return };
        if page.frames.contains_key(frame) {
            return;
        }
        let Some(parent_path) = page.frames.get(parent).map(|parent| parent.frame_path.clone()) else {
            return;
        };
        let place = page.children.entry(parent.clone()).or_insert(0);
        let frame_path = format!("{parent_path}.{place}");
        *place += 1;
        let document = Document {
            id: document,
            page: page.id,
            frame: frame.clone(),
            session: page.session.clone(),
            frame_path,
            loader: "".into(),
            url: String::new(),
            protocol_origin: String::new(),
        };
        page.frames.insert(frame.clone(), document);
    }

    /// A frame is removed, or (`swapped`) leaves the process behind `session` for another one. The other one
    /// may have told of the new document already, which then is not touched.
    pub fn frame_detached(
        &mut self,
        page: PageId,
        session: &str,
        frame: &str,
        swapped: bool,
    ) -> Vec<PageEvent> {
        if swapped {
            let is_there = self.documents_of_session(page, session).iter().any(|there| &**there == frame);
            return if is_there { self.forget_document(page, frame) } else { Vec::new() };
        }
        let Some(page) = self.pages.get_mut(&page) else { return Vec::new() };
        page.remove_frame(frame).into_iter().map(PageEvent::DocumentGone).collect()
    }

    /// A frame has another document; the one before, and those of its child frames, are gone.
    pub fn frame_navigated(
        &mut self,
        page: PageId,
        session: &CdpSession,
        frame: &Frame,
        restored: bool,
    ) -> Vec<PageEvent> {
        if let Some(parent) = &frame.parent_id {
            self.frame_attached(page, &frame.id, parent);
        }
        let id = self.next_document();
        let Some(page) = self.pages.get_mut(&page) else { return Vec::new() };
        let Some(path) = page.frames.get(&frame.id).map(|document| document.frame_path.clone()) else {
            return Vec::new();
        };
        let mut gone = page.remove_where(|document| is_below(&document.frame_path, &path));
        page.children.shift_remove(&frame.id);
        page.crashed = page.crashed && path != "0";
        let Some(document) = page.frames.get_mut(&frame.id) else { return Vec::new() };
        gone.push(document.id);
        document.id = id;
        document.session = session.clone();
        fill(document, frame);
        let document = document.clone();
        let mut events: Vec<PageEvent> = gone.into_iter().map(PageEvent::DocumentGone).collect();
        events.push(PageEvent::Committed { document, restored });
        events
    }

    pub fn within_document(&mut self, page: PageId, frame: &str, url: &str) {
        let Some(page) = self.pages.get_mut(&page) else { return };
        if let Some(document) = page.frames.get_mut(frame) {
            url.clone_into(&mut document.url);
        }
    }

    /// Takes in what was there before we attached. Whatever events have told since is newer and stays.
    pub fn frame_tree(&mut self, page: PageId, session: &CdpSession, tree: &FrameTree) {
        if let Some(parent) = &tree.frame.parent_id {
            self.frame_attached(page, &tree.frame.id, parent);
        }
        let known = self.pages.get_mut(&page).and_then(|page| page.frames.get_mut(&tree.frame.id));
        if let Some(known) = known.filter(|known| known.loader.is_empty()) {
            known.session = session.clone();
            fill(known, &tree.frame);
        }
        for child in &tree.child_frames {
            self.frame_tree(page, session, child);
        }
    }

    fn next_document(&self) -> DocumentId {
        DocumentId(NEXT_DOCUMENT.fetch_add(1, Ordering::Relaxed))
    }
}

fn fill(document: &mut Document, frame: &Frame) {
    document.loader = frame.loader_id.clone().unwrap_or_default();
    document.url = format!("{}{}", frame.url, frame.url_fragment.as_deref().unwrap_or_default());
    document.protocol_origin.clone_from(&frame.security_origin);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (State, PageId, CdpSession) {
        let (ours, _theirs) = tokio::io::duplex(64);
        let (input, output) = tokio::io::split(ours);
        let (browser, _) = pagebridge_cdp::connect(input, output);
        let mut state = State::default();
        let target = TargetInfo {
            target_id: "top".into(),
            kind: "page".into(),
            title: String::new(),
            url: "about:blank".into(),
        };
        let session = browser.session("S".into());
        let page = state.add_page(session.clone(), &target);
        (state, page, session)
    }

    fn frame(id: &str, parent: Option<&str>, loader: &str) -> Frame {
        Frame {
            id: id.into(),
            parent_id: parent.map(Into::into),
            loader_id: Some(loader.into()),
            url: format!("http://x/{loader}"),
            url_fragment: Some("#f".into()),
            security_origin: "http://x".into(),
        }
    }

    fn paths(state: &State) -> Vec<(String, String)> {
        state.documents().map(|d| (d.frame_path.clone(), d.url.clone())).collect()
    }

    #[tokio::test]
    async fn a_new_document_takes_the_child_frames_of_the_old_one_with_it() {
        let (mut state, page, session) = state();
        state.frame_navigated(page, &session, &frame("top", None, "1"), false);
        for child in ["a", "b"] {
            state.frame_attached(page, &child.into(), &"top".into());
        }
        state.frame_navigated(page, &session, &frame("b", Some("top"), "2"), false);
        state.frame_attached(page, &"b0".into(), &"b".into());
        assert_eq!(
            paths(&state).iter().map(|p| p.0.as_str()).collect::<Vec<_>>(),
            ["0", "0.0", "0.1", "0.1.0"]
        );
        let events = state.frame_navigated(page, &session, &frame("top", None, "3"), false);
        let gone = events.iter().filter(|e| matches!(e, PageEvent::DocumentGone(_))).count();
        assert_eq!((gone, events.len()), (4, 5));
        assert_eq!(paths(&state), [("0".to_owned(), "http://x/3#f".to_owned())]);
        state.frame_attached(page, &"c".into(), &"top".into());
        assert_eq!(paths(&state)[1].0, "0.0", "places start anew with the document");
    }

    #[tokio::test]
    async fn a_late_frame_tree_does_not_overwrite_what_events_told() {
        let (mut state, page, session) = state();
        state.frame_navigated(page, &session, &frame("top", None, "new"), false);
        let tree = FrameTree {
            frame: frame("top", None, "old"),
            child_frames: vec![FrameTree { frame: frame("a", Some("top"), "child"), child_frames: vec![] }],
        };
        state.frame_tree(page, &session, &tree);
        assert_eq!(paths(&state)[0].1, "http://x/new#f");
        assert_eq!(paths(&state)[1], ("0.0".to_owned(), "http://x/child#f".to_owned()));
    }

    #[tokio::test]
    async fn unknown_frames_and_pages_change_nothing() {
        let (mut state, page, session) = state();
        state.frame_attached(page, &"x".into(), &"nobody".into());
        assert!(state.frame_detached(page, "S", "nobody", false).is_empty());
        assert!(state.frame_navigated(page, &session, &frame("x", Some("nobody"), "1"), false).is_empty());
        assert!(state.frame_navigated(PageId(99), &session, &frame("top", None, "1"), false).is_empty());
        assert_eq!(paths(&state).len(), 1);
    }

    #[tokio::test]
    async fn a_frame_that_moves_between_processes_keeps_its_place() {
        let (mut state, page, top) = state();
        let other = top.session("C".into());
        state.frame_navigated(page, &top, &frame("top", None, "1"), false);
        state.frame_attached(page, &"a".into(), &"top".into());
        state.add_session(&other, page, &"a".into());
        // Chromium tells of the new document before the old process lets the frame go.
        state.frame_navigated(page, &other, &frame("a", Some("top"), "2"), false);
        assert!(state.frame_detached(page, "S", "a", true).is_empty());
        assert_eq!(paths(&state)[1], ("0.0".to_owned(), "http://x/2#f".to_owned()));
        // Its process ends: the document is gone, the frame is not.
        let (_, events) = state.remove_session("C").unwrap();
        assert!(matches!(events.as_slice(), [PageEvent::DocumentGone(_)]));
        state.frame_navigated(page, &top, &frame("a", Some("top"), "3"), false);
        assert_eq!(paths(&state)[1], ("0.0".to_owned(), "http://x/3#f".to_owned()));
        assert!(matches!(state.remove_session("S").unwrap().1.as_slice(), [PageEvent::Closed]));
        assert!(state.pages.is_empty() && state.id_of_session("S").is_none());
    }

    #[tokio::test]
    async fn a_crash_costs_the_documents_of_its_process() {
        let (mut state, page, top) = state();
        let other = top.session("C".into());
        state.frame_navigated(page, &top, &frame("top", None, "1"), false);
        state.frame_attached(page, &"a".into(), &"top".into());
        state.add_session(&other, page, &"a".into());
        state.frame_navigated(page, &other, &frame("a", Some("top"), "2"), false);
        let events = state.session_crashed(page, "C");
        assert!(matches!(events.as_slice(), [PageEvent::DocumentCrashed(_), PageEvent::DocumentGone(_)]));
        assert!(matches!(state.session_crashed(page, "S").as_slice(), [PageEvent::Crashed]));
        assert!(state.pages[&page].crashed);
    }
}
