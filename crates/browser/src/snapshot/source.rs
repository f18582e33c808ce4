//! Two ways to get a document's accessibility tree: at once, which is quick for ordinary pages, and piece by piece,
//! which is the only way to see the beginning of a huge one. Chromium needs 10 to 25 s to tell 200,000 nodes.

use std::collections::HashMap;

use pagebridge_cdp::CdpError;
use serde::Deserialize;
use serde_json::json;

use super::ax::{AxNode, AxReply, AxRoot, AxValue, TEXT_CHARS};
use crate::events::RemoteObject;
use crate::page_tools::isolated_world;
use crate::targets::Document;

const SIZE: &str = include_str!("size.js");
/// Nodes of the DOM up to which the tree is asked for at once.
const AT_ONCE_NODES: u64 = 10_000;
/// Nodes that are counted at most, which takes Chromium less than a second.
const COUNTED_NODES: u64 = 1_000_000;
/// Characters up to which it is.
const AT_ONCE_TEXT: u64 = 2_000_000;
/// A text that is longer is not asked for: each node that holds it would tell it again.
const LONG_TEXT: u64 = 100_000;
/// Nodes that are asked for together.
pub(super) const BATCH: usize = 64;
/// Nodes that are asked for before they are needed.
const AHEAD: usize = 256;
/// What Chromium's `DOM.describeNode` tells of a text is cut at this.
const DESCRIBED_CHARS: usize = 10_000;

/// Where the nodes of one document come from.
pub(super) enum Source {
    /// All are here already.
    Whole(HashMap<Box<str>, AxNode>),
    /// They are asked for when they are needed.
    Pieces {
        /// Look at each node before asking for it, because there are very long texts.
        careful: bool,
        /// What was asked for together with its parents, and not needed so far.
        ahead: HashMap<Box<str>, AxNode>,
    },
}

#[derive(Debug, Deserialize)]
struct Size {
    nodes: u64,
    text: u64,
    longest: u64,
}

impl Source {
    /// The way that suits a document, and its first node.
    pub async fn of(document: &Document) -> Result<(Self, AxNode), CdpError> {
        let size = size(document).await.unwrap_or(Size { nodes: u64::MAX, text: 0, longest: u64::MAX });
        if size.nodes <= AT_ONCE_NODES && size.text <= AT_ONCE_TEXT {
            return Self::whole(document).await;
        }
        let careful = size.longest > LONG_TEXT || size.nodes > COUNTED_NODES;
        let root = Self::root(document).await?;
        Ok((Self::pieces(careful), root))
    }

    /// Asks for what is needed.
    pub fn pieces(careful: bool) -> Self {
        Self::Pieces { careful, ahead: HashMap::new() }
    }

    async fn root(document: &Document) -> Result<AxNode, CdpError> {
        let params = json!({"frameId": document.frame});
        let root: AxRoot = document.session.call("Accessibility.getRootAXNode", params).await?.decode()?;
        Ok(root.node)
    }

    async fn whole(document: &Document) -> Result<(Self, AxNode), CdpError> {
        let method = "Accessibility.getFullAXTree";
        let params = json!({"frameId": document.frame});
        let reply: AxReply = document.session.call(method, params).await?.decode()?;
        let first = reply.nodes.first().map(|node| node.node_id.clone());
        let mut nodes: HashMap<_, _> =
            reply.nodes.into_iter().map(|node| (node.node_id.clone(), node)).collect();
        let root = first.and_then(|id| nodes.remove(&id));
        let root = root.ok_or_else(|| CdpError::Unexpected { method, reason: "no node".into() })?;
        Ok((Self::Whole(nodes), root))
    }

    /// These nodes of a document, without those that are no more.
    pub async fn nodes(&mut self, document: &Document, ids: &[Box<str>]) -> Result<Vec<AxNode>, CdpError> {
        match self {
            Self::Whole(nodes) => Ok(ids.iter().filter_map(|id| nodes.remove(id)).collect()),
            Self::Pieces { careful, ahead } => {
                if ids.iter().any(|id| !ahead.contains_key(id)) {
                    fetch(document, ids, *careful, ahead).await?;
                }
                Ok(ids.iter().filter_map(|id| ahead.remove(id)).collect())
            }
        }
    }
}

/// One node of the document's accessibility tree, by Chromium's number of it in the DOM.
pub(super) async fn one(document: &Document, backend: i64) -> Result<Option<AxNode>, CdpError> {
    let params = json!({"backendNodeId": backend, "fetchRelatives": false});
    let reply: AxReply = document.session.call("Accessibility.getPartialAXTree", params).await?.decode()?;
    Ok(reply.nodes.into_iter().next())
}

/// Asks for nodes and, level by level, for some of what is below them: a question for each alone would take long.
async fn fetch(
    document: &Document,
    ids: &[Box<str>],
    careful: bool,
    ahead: &mut HashMap<Box<str>, AxNode>,
) -> Result<(), CdpError> {
    let mut level: Vec<Box<str>> = ids.iter().filter(|id| !ahead.contains_key(*id)).cloned().collect();
    while !level.is_empty() {
        let nodes = pieces(document, &level, careful).await?;
        level =
            nodes.iter().flat_map(|node| node.child_ids.iter().take(BATCH)).take(AHEAD).cloned().collect();
        ahead.extend(nodes.into_iter().map(|node| (node.node_id.clone(), node)));
        if ahead.len() >= AHEAD {
            break;
        }
    }
    Ok(())
}

/// The number of a node in the tree is its number in the DOM, where it has one; the others are negative.
async fn pieces(document: &Document, ids: &[Box<str>], careful: bool) -> Result<Vec<AxNode>, CdpError> {
    let backends: Vec<i64> = ids.iter().filter_map(|id| id.parse().ok()).filter(|id| *id > 0).collect();
    let mut texts = HashMap::new();
    if careful {
        let asked: Vec<_> = backends
            .iter()
            .map(|backend| {
                (*backend, document.session.call("DOM.describeNode", json!({"backendNodeId": backend})))
            })
            .collect();
        for (backend, call) in asked {
            if let Some(text) = long_text(call.await)? {
                texts.insert(backend, text);
            }
        }
    }
    let asked: Vec<_> = backends
        .iter()
        .map(|backend| {
            let params = json!({"backendNodeId": backend, "fetchRelatives": false});
            let call = (!texts.contains_key(backend))
                .then(|| document.session.call("Accessibility.getPartialAXTree", params));
            (*backend, call)
        })
        .collect();
    let mut nodes = Vec::with_capacity(asked.len());
    for (backend, call) in asked {
        let Some(call) = call else {
            nodes.push(static_text(backend, texts.remove(&backend).unwrap_or_default()));
            continue;
        };
        match call.await {
            Ok(reply) => nodes.extend(reply.decode::<AxReply>()?.nodes.into_iter().next()),
            // It went away meanwhile.
            Err(CdpError::Refused { .. }) => {}
            Err(lost) => return Err(lost),
        }
    }
    Ok(nodes)
}

/// The beginning of a text node that is too long to be told whole.
fn long_text(described: Result<pagebridge_cdp::Reply, CdpError>) -> Result<Option<String>, CdpError> {
    #[derive(Deserialize)]
    struct Described {
        node: Dom,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Dom {
        node_type: u32,
        #[serde(default)]
        node_value: String,
    }
    let node = match described {
        Ok(reply) => reply.decode::<Described>()?.node,
        Err(CdpError::Refused { .. }) => return Ok(None),
        Err(lost) => return Err(lost),
    };
    let is_cut = node.node_type == 3 && node.node_value.len() >= DESCRIBED_CHARS;
    Ok(is_cut.then(|| {
        let head: String = node.node_value.chars().take(TEXT_CHARS - 40).collect();
        format!("{head}… [cut: a very long text]")
    }))
}

fn static_text(backend: i64, text: String) -> AxNode {
    let value = |text: &str| AxValue { value: text.into() };
    AxNode {
        node_id: backend.to_string().into(),
        role: value("StaticText"),
        name: value(&text),
        backend: Some(backend),
        ..AxNode::default()
    }
}

async fn size(document: &Document) -> Result<Size, CdpError> {
    #[derive(Deserialize)]
    struct Evaluated {
        result: RemoteObject,
    }
    let context = isolated_world(&document.session, &document.frame).await?;
    let method = "Runtime.callFunctionOn";
    let params = json!({
        "functionDeclaration": SIZE,
        "executionContextId": context,
        "arguments": [{"value": COUNTED_NODES}, {"value": LONG_TEXT}],
        "returnByValue": true,
    });
    let evaluated: Evaluated = document.session.call(method, params).await?.decode()?;
    let value = evaluated.result.value.as_deref().map_or("null", serde_json::value::RawValue::get);
    serde_json::from_str(value).map_err(|error| CdpError::Unexpected { method, reason: error.to_string() })
}
