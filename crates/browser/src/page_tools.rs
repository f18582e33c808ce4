//! Page tools: what a document offers of its own, found, listed and called.
//!
//! * [`registry`]: which tools each document offers now. Two sources are merged, because each alone is wrong:
//!   the protocol's `WebMCP` events (the frame, the moment, forms) and `getTools()` asked from an isolated
//!   world (titles, schemas with Latin-1 characters, tools that were there before we attached).
//! * [`discover`]: asks `getTools()`; [`page_api`]: asks a polyfill that the page brings; [`merge`]: makes one of
//!   what they say.
//! * [`arguments`]: checks a call's arguments against the tool's schema and fills in defaults.
//! * [`route`]: the two ways to start and stop a run; [`call`]: one run, until one of its many ends.
//! * [`answer`]: what the page gave, as a result; [`blocks`]: where it is shaped like one of MCP.

pub(crate) mod answer;
pub(crate) mod arguments;
mod blocks;
pub(crate) mod call;
mod discover;
mod merge;
mod page_api;
mod registry;
mod route;

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::events::FrameId;
use crate::targets::{DocumentId, PageId};
pub use answer::Answer;
pub use call::CallOptions;
pub(crate) use discover::isolated_world;
pub use registry::Registry;

/// A tool that a document offers, bound to that document.
#[derive(Debug, Clone)]
pub struct PageTool {
    /// The page of the document.
    pub page: PageId,
    /// The document that offers it. When it is gone, so is the tool.
    pub document: DocumentId,
    /// The frame that shows the document.
    pub frame: FrameId,
    /// The frame's place in the page: `0` for the top one.
    pub frame_path: String,
    /// The document's origin.
    pub origin: String,
    /// How it is reached.
    pub via: Via,
    /// What the page says of it.
    pub definition: Arc<Definition>,
}

/// How a tool is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// Through the browser's own WebMCP.
    Browser,
    /// Through an API that the page brings itself, in the page's own world.
    PageApi,
}

/// What a page says of its tool. Two equal definitions are the same tool to a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The name that the page gave: unique in its document, `[A-Za-z0-9_.-]{1,128}` in Chromium.
    pub name: String,
    /// A name for people, cleaned and bounded.
    pub title: Option<String>,
    /// What it does, cleaned and bounded.
    pub description: String,
    /// The input schema exactly as the page gave it, where there is one and it can be read.
    pub schema: Option<Value>,
    /// The hints that the page gave. They are claims.
    pub annotations: Annotations,
    /// Whether it is made from a form.
    pub form: bool,
    /// Where the page's code registered it, as `address:line`.
    pub registered_at: Option<String>,
}

/// A page's hints about its tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Annotations {
    /// It changes nothing.
    #[serde(rename = "readOnlyHint")]
    pub read_only: bool,
    /// What it returns may be written by third parties.
    #[serde(rename = "untrustedContentHint")]
    pub untrusted_content: bool,
    /// It does what cannot be undone: buying, sending, deleting.
    #[serde(rename = "consequentialHint")]
    pub consequential: bool,
    /// It is meant for developers.
    pub debugging: bool,
}

/// Whether a page can offer tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// The browser has `document.modelContext` there.
    Native,
    /// The page brings an API of its own.
    Page,
    /// It has not.
    Absent,
}

/// The tools of one page, and what is known about them.
#[derive(Debug, Clone)]
pub struct PageToolList {
    /// Whether the page can offer tools.
    pub support: Support,
    /// Why not, or why the list may be short.
    pub reason: Option<String>,
    /// The tools: the top document's first, then by frame, each sorted by name.
    pub tools: Vec<PageTool>,
    /// What was left out, by name.
    pub skipped: Vec<Skipped>,
}

impl PageToolList {
    pub(crate) fn empty() -> Self {
        let reason = Some("The page is gone.".to_owned());
        Self { support: Support::Absent, reason, tools: Vec::new(), skipped: Vec::new() }
    }
}

/// A tool that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The name that the page gave.
    pub name: String,
    /// Why it is not offered.
    pub reason: String,
}
