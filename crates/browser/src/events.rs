//! What the browser tells us, as types: the CDP side coming in, and the page events that go out.
//!
//! Only fields that something here uses are named; Chromium may add, drop or rename all others.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::dialogs::Dialog;
use crate::targets::Document;

/// Ids that Chromium gives: strings to pass back, never to interpret.
pub type FrameId = Arc<str>;

/// Something that happened to one page, in the order in which it happened.
#[derive(Debug, Clone)]
pub enum PageEvent {
    /// A frame has a new document.
    Committed {
        /// The new document.
        document: Document,
        /// It came back, alive, from the back/forward cache.
        restored: bool,
    },
    /// A document is no more: its frame has another one, or is gone.
    DocumentGone(crate::DocumentId),
    /// The process of a document in a frame of another site crashed; that the document is gone follows.
    DocumentCrashed(crate::DocumentId),
    /// The page's script asked that the top frame go to another document. Most often it starts a moment later.
    NavigationRequested,
    /// The top frame is on its way to another document.
    NavigationStarted,
    /// The top frame is not on its way any more, whether it got there or not.
    NavigationEnded,
    /// A document changed its address without loading: by a fragment or the history API.
    WithinDocument,
    /// A document (by its loader id) fired its load event.
    Loaded(Arc<str>),
    /// The list of the page's tools changed, or was confirmed.
    ToolsChanged,
    /// A page tool was called, by anyone.
    ToolInvoked(Arc<ToolInvoked>),
    /// A page tool's call ended.
    ToolResponded(Arc<ToolResponded>),
    /// A dialog came up.
    DialogOpened(Arc<Dialog>),
    /// The dialog is gone.
    DialogClosed,
    /// The renderer process of the page is gone.
    Crashed,
    /// The page is gone.
    Closed,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Attached {
    pub session_id: Arc<str>,
    pub target_info: TargetInfo,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TargetInfo {
    pub target_id: Arc<str>,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub url: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TargetInfoChanged {
    pub target_info: TargetInfo,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Detached {
    pub session_id: Arc<str>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Frame {
    pub id: FrameId,
    #[serde(default)]
    pub parent_id: Option<FrameId>,
    #[serde(default)]
    pub loader_id: Option<Arc<str>>,
    #[serde(default)]
    pub url: String,
    #[serde(default)]
    pub url_fragment: Option<String>,
    #[serde(default)]
    pub security_origin: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct FrameNavigated {
    pub frame: Frame,
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FrameTree {
    pub frame: Frame,
    #[serde(default)]
    pub child_frames: Vec<FrameTree>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FrameTreeReply {
    pub frame_tree: FrameTree,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FrameAttached {
    pub frame_id: FrameId,
    pub parent_frame_id: FrameId,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FrameDetached {
    pub frame_id: FrameId,
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WithinDocument {
    pub frame_id: FrameId,
    pub url: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StartedNavigating {
    pub frame_id: FrameId,
    #[serde(default)]
    pub navigation_type: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RequestedNavigation {
    pub frame_id: FrameId,
    #[serde(default)]
    pub disposition: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoppedLoading {
    pub frame_id: FrameId,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Lifecycle {
    pub loader_id: Arc<str>,
    pub name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DialogOpening {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub default_prompt: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToolsAdded {
    pub tools: Vec<Box<RawValue>>,
}

/// One tool of `WebMCP.toolsAdded`. The schema stays raw: it may be nested deeper than parsers like.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AnnouncedTool {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub input_schema: Option<Box<RawValue>>,
    #[serde(default)]
    pub annotations: Option<AnnouncedAnnotations>,
    pub frame_id: FrameId,
    #[serde(default)]
    pub backend_node_id: Option<i64>,
    #[serde(default)]
    pub stack_trace: Option<StackTrace>,
}

/// The protocol's names for the hints: without "Hint".
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AnnouncedAnnotations {
    pub read_only: bool,
    pub untrusted_content: bool,
    pub consequential: bool,
    pub debugging: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StackTrace {
    #[serde(default)]
    pub call_frames: Vec<CallFrame>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallFrame {
    #[serde(default)]
    pub url: String,
    #[serde(default)]
    pub line_number: u32,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToolsRemoved {
    pub tools: Vec<RemovedTool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RemovedTool {
    pub name: String,
    pub frame_id: FrameId,
}

/// A call of a page tool that has begun, whoever made it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolInvoked {
    /// The name that the page gave.
    pub tool_name: String,
    /// The frame that runs it.
    pub frame_id: FrameId,
    /// Chromium's id of the call.
    pub invocation_id: String,
    /// The arguments as JSON text.
    #[serde(default)]
    pub input: String,
}

/// The end of a page tool's call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResponded {
    /// Chromium's id of the call.
    pub invocation_id: String,
    /// `Completed` (once called `Success`), `Canceled`, `Error`, or what a newer Chromium invents.
    pub status: String,
    /// What the tool returned, parsed by the browser where it could.
    #[serde(default)]
    pub output: Option<Box<RawValue>>,
    /// The browser's own words about a failure; empty when the page's code threw.
    #[serde(default)]
    pub error_text: Option<String>,
    /// What the page's code threw.
    #[serde(default)]
    pub exception: Option<RemoteObject>,
}

/// Keeps an explicit `null`, which serde's own `Option` takes for absence.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

/// A JavaScript value as the protocol describes it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RemoteObject {
    /// `object`, `string`, `undefined`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// The value itself, where it was returned by value; `null` is a value too.
    #[serde(deserialize_with = "present")]
    pub value: Option<Box<RawValue>>,
    /// `NaN`, `-0`, `Infinity`, `10n`: what JSON cannot say.
    pub unserializable_value: Option<String>,
    /// The value in words; of an error, its stack.
    pub description: Option<String>,
    /// A handle that keeps the value alive in the page.
    pub object_id: Option<String>,
}
