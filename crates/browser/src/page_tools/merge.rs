//! What the sources say of one document's tools, made one.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use pagebridge_cdp::decode;
use pagebridge_core::json::depth;
use pagebridge_core::{limits, text};
use serde_json::Value;
use serde_json::value::RawValue;

use super::discover::{Look, SeenTool};
use super::page_api::PageApi;
use super::{Annotations, Definition, Support, Via};
use crate::events::AnnouncedTool;
use crate::targets::Document;

/// What is known of one document.
#[derive(Debug, Default)]
pub(super) struct DocumentTools {
    /// What the protocol told.
    pub announced: BTreeMap<String, AnnouncedTool>,
    /// What the document told.
    pub look: Option<Look>,
    /// The way to an API of the page's own.
    pub page_api: Option<PageApi>,
    /// Whether somebody listens to that API.
    pub followed: bool,
    /// What the page's own API told, where there is one.
    pub own: Option<Vec<SeenTool>>,
    /// What all of them say together, made when it is first asked for after a change.
    merged: OnceCell<Vec<(Arc<Definition>, Via)>>,
}

impl DocumentTools {
    /// All tools with the way to call them, sorted by name. The browser's own come first where names meet.
    pub fn definitions(&self) -> &[(Arc<Definition>, Via)] {
        self.merged.get_or_init(|| self.merge())
    }

    /// Must be called after every change.
    pub fn changed(&mut self) {
        self.merged.take();
    }

    fn merge(&self) -> Vec<(Arc<Definition>, Via)> {
        let seen = self.look.iter().flat_map(|look| &look.tools);
        let seen: BTreeMap<&str, &SeenTool> = seen.map(|tool| (tool.name.as_str(), tool)).collect();
        let own = self.own.iter().flatten();
        let own: BTreeMap<&str, &SeenTool> = own.map(|tool| (tool.name.as_str(), tool)).collect();
        let announced = self.announced.keys().map(String::as_str);
        let mut names: Vec<&str> = announced.chain(seen.keys().copied()).chain(own.keys().copied()).collect();
        names.sort_unstable();
        names.dedup();
        let definition = |name: &str| match (self.announced.get(name), seen.get(name), own.get(name)) {
            (None, None, Some(own)) => (definition(name, None, Some(own)).into(), Via::PageApi),
            (announced, seen, _) => (definition(name, announced, seen.copied()).into(), Via::Browser),
        };
        names.into_iter().map(definition).collect()
    }

    /// The origin of the document: what it said itself, else what the protocol tells, which cannot tell the one
    /// that `about:` documents inherit.
    pub fn origin(&self, document: &Document) -> String {
        let told = document.protocol_origin.as_str();
        match &self.look {
            Some(look) => look.origin.clone(),
            None if told.is_empty() || told.ends_with("://") => "null".into(),
            None => told.trim_end_matches('/').to_owned(),
        }
    }

    /// Whether the document can offer tools, and why not.
    pub fn support(&self) -> (Support, Option<String>) {
        support(self.look.as_ref(), self.own.as_deref())
    }
}

fn support(look: Option<&Look>, own: Option<&[SeenTool]>) -> (Support, Option<String>) {
    let absent = |reason: &str| (Support::Absent, Some(reason.to_owned()));
    match look {
        None => absent("The page has not told yet what it offers: it is still loading, or busy."),
        Some(look) if !look.secure => {
            absent("The page is no secure context: WebMCP exists only over HTTPS and on localhost.")
        }
        Some(look) if own.is_some_and(|own| !look.present || !own.is_empty()) => (Support::Page, None),
        Some(look) if !look.present => absent(
            "This browser has no WebMCP: it is too old (Chromium 156 is known to work) or has it switched off (--enable-features=WebMCP switches it on).",
        ),
        Some(Look { failure: Some(failure), .. }) => {
            (Support::Native, Some(format!("The browser refuses to list the page's tools: {failure}")))
        }
        Some(_) => (Support::Native, None),
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
    if raw.get().len() > limits::SCHEMA_KEPT_BYTES || depth(raw.get()) > limits::JSON_LEVELS {
        return None;
    }
    match decode::<Value>(raw).ok()? {
        // An older generation of the API has schemas as text; a broken one is no schema.
        Value::String(text) => serde_json::from_str(&text).ok(),
        Value::Null => None,
        schema => Some(schema),
    }
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
