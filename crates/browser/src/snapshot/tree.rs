//! The nodes of a page in document order, its frames in their places.

use std::collections::{HashMap, VecDeque};

use pagebridge_cdp::CdpError;
use pagebridge_core::{limits, text};
use serde::Deserialize;
use serde_json::json;

use super::ax::{AxNode, Node};
use super::source::{self, BATCH, Source};
use crate::targets::{Document, DocumentId};

/// A page's nodes, each before its descendants.
pub(super) struct Tree {
    pub nodes: Vec<Node>,
    /// Whether there is more.
    pub is_cut: bool,
}

/// How much is taken in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Most {
    /// Nodes of all kinds.
    pub nodes: usize,
    /// Texts, nearly each of which makes a line.
    pub texts: usize,
}

/// What an `iframe` element shows.
enum Content {
    /// A document of the same process.
    Here(Document),
    /// A document of another process, by its address.
    Elsewhere(String),
}

/// A node whose children are being taken in.
struct Open {
    /// Its place among the nodes.
    at: usize,
    /// Which document and source its children come from.
    from: usize,
    /// Children to ask for.
    wanted: VecDeque<Box<str>>,
    /// Children that have come.
    here: VecDeque<AxNode>,
}

/// Takes in a tree.
pub(super) struct Collector {
    tree: Tree,
    most: Most,
    texts: usize,
    frames: HashMap<(DocumentId, i64), Content>,
    sources: Vec<(Document, Source)>,
    open: Vec<Open>,
}

impl Collector {
    /// For a page with these documents, the top one first.
    pub async fn new(documents: &[Document], most: Most) -> Result<Self, CdpError> {
        let frames = frames(documents).await?;
        let tree = Tree { nodes: Vec::new(), is_cut: false };
        Ok(Self { tree, most, texts: 0, frames, sources: Vec::new(), open: Vec::new() })
    }

    /// The whole page.
    pub async fn page(mut self, top: &Document) -> Result<Tree, CdpError> {
        self.enter(top.clone()).await?;
        self.collect().await
    }

    /// What lies at and below one node; nothing when it has no place in the tree.
    pub async fn below(mut self, document: &Document, backend: i64) -> Result<Tree, CdpError> {
        let Some(first) = source::one(document, backend).await? else { return Ok(self.tree) };
        self.sources.push((document.clone(), Source::pieces(true)));
        self.take(first, 0).await?;
        self.collect().await
    }

    async fn enter(&mut self, document: Document) -> Result<(), CdpError> {
        let (source, root) = Source::of(&document).await?;
        self.sources.push((document, source));
        Box::pin(self.take(root, self.sources.len() - 1)).await
    }

    /// Takes a node in; its children follow.
    async fn take(&mut self, node: AxNode, from: usize) -> Result<(), CdpError> {
        if node.role.value.as_str() == Some("InlineTextBox") {
            return Ok(());
        }
        let document = self.sources[from].0.id;
        let at = self.tree.nodes.len();
        let mut kept = Node::of(document, &node);
        kept.depth = self.open.len();
        let content = kept.id.and_then(|id| self.frames.remove(&id));
        if let Some(Content::Elsewhere(url)) = &content {
            kept.remark = Some(format!("shows {url} in another process: its content cannot be read here"));
        }
        self.texts += usize::from(&*kept.role == "StaticText" && !kept.name.trim().is_empty());
        self.tree.nodes.push(kept);
        self.open.push(Open { at, from, wanted: node.child_ids.into(), here: VecDeque::new() });
        if let Some(Content::Here(document)) = content {
            match self.enter(document).await {
                Ok(()) => {}
                // The frame went elsewhere meanwhile.
                Err(CdpError::Refused { .. }) => {
                    self.tree.nodes[at].remark = Some("its content could not be read".into());
                }
                Err(lost) => return Err(lost),
            }
        }
        Ok(())
    }

    async fn collect(mut self) -> Result<Tree, CdpError> {
        while let Some(open) = self.open.last_mut() {
            if let Some(child) = open.here.pop_front() {
                let from = open.from;
                if self.tree.nodes.len() >= self.most.nodes || self.texts > self.most.texts {
                    self.tree.is_cut = true;
                    break;
                }
                self.take(child, from).await?;
            } else if open.wanted.is_empty() {
                let at = open.at;
                self.open.pop();
                self.tree.nodes[at].end = self.tree.nodes.len();
            } else {
                let wanted: Vec<_> = open.wanted.drain(..open.wanted.len().min(BATCH)).collect();
                let (document, source) = &mut self.sources[open.from];
                open.here.extend(source.nodes(document, &wanted).await?);
            }
        }
        for open in &self.open {
            self.tree.nodes[open.at].end = self.tree.nodes.len();
        }
        Ok(self.tree)
    }
}

/// What each `iframe` element shows, by its document and number.
async fn frames(documents: &[Document]) -> Result<HashMap<(DocumentId, i64), Content>, CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Owner {
        backend_node_id: i64,
    }
    let parent_of = |child: &Document| {
        let (parent, _) = child.frame_path.rsplit_once('.')?;
        documents.iter().find(|document| document.frame_path == parent)
    };
    let asked: Vec<_> = documents
        .iter()
        .filter_map(|child| {
            let parent = parent_of(child)?;
            let owner = parent.session.call("DOM.getFrameOwner", json!({"frameId": child.frame}));
            Some((child, parent, owner))
        })
        .collect();
    let mut frames = HashMap::new();
    for (child, parent, owner) in asked {
        let owner: Owner = match owner.await {
            Ok(reply) => reply.decode()?,
            Err(CdpError::Refused { .. }) => continue,
            Err(lost) => return Err(lost),
        };
        let content = if child.session.id() == parent.session.id() {
            Content::Here(child.clone())
        } else {
            Content::Elsewhere(text::quoted(&text::one_line(&child.url, limits::SHORT_TEXT_CHARS)))
        };
        frames.insert((parent.id, owner.backend_node_id), content);
    }
    Ok(frames)
}
