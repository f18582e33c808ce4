//! Nodes of Chromium's accessibility tree, as the protocol tells them, and lean ones as we keep them.

use pagebridge_core::text;
use serde::Deserialize;
use serde_json::Value;

use crate::targets::DocumentId;

/// Characters of a name or value that are shown.
pub(super) const TEXT_CHARS: usize = 2_000;

#[derive(Debug, Deserialize)]
pub(super) struct AxReply {
    pub nodes: Vec<AxNode>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AxRoot {
    pub node: AxNode,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AxNode {
    pub node_id: Box<str>,
    pub ignored: bool,
    pub role: AxValue,
    pub name: AxValue,
    pub description: AxValue,
    pub value: AxValue,
    pub properties: Vec<AxProperty>,
    pub child_ids: Vec<Box<str>>,
    #[serde(rename = "backendDOMNodeId")]
    pub backend: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AxValue {
    pub value: Value,
}

impl AxValue {
    /// As bounded text; `None` where there is nothing.
    fn text(&self) -> Option<String> {
        match &self.value {
            Value::Null | Value::Array(_) | Value::Object(_) => None,
            Value::String(long) => Some(text::bounded(long, TEXT_CHARS)),
            other => Some(other.to_string()),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct AxProperty {
    pub name: Box<str>,
    pub value: AxValue,
}

/// A node as it is kept: bounded, and in its place in the tree.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Its document and Chromium's number of it there, where it has one.
    pub id: Option<(DocumentId, i64)>,
    pub role: Box<str>,
    pub ignored: bool,
    pub name: String,
    pub description: String,
    pub value: String,
    /// Name and value of each property, booleans as `true` and `false`.
    pub properties: Vec<(Box<str>, String)>,
    /// What we say of it.
    pub remark: Option<String>,
    /// How deep it lies below the first node.
    pub depth: usize,
    /// The place after its last descendant.
    pub end: usize,
}

impl Node {
    /// The lean form of a node.
    pub fn of(document: DocumentId, node: &AxNode) -> Self {
        let properties = node.properties.iter();
        Self {
            id: node.backend.map(|backend| (document, backend)),
            role: node.role.value.as_str().unwrap_or_default().into(),
            ignored: node.ignored,
            name: node.name.text().unwrap_or_default(),
            description: node.description.text().unwrap_or_default(),
            value: node.value.text().unwrap_or_default(),
            properties: properties
                .filter_map(|property| Some((property.name.clone(), property.value.text()?)))
                .collect(),
            ..Self::default()
        }
    }

    /// A property's value, unless it says that there is nothing to say.
    pub fn property(&self, name: &str) -> Option<&str> {
        let found = self.properties.iter().find(|(known, _)| &**known == name)?;
        Some(found.1.as_str()).filter(|value| !value.is_empty())
    }

    /// Whether a property is there and true.
    pub fn is(&self, name: &str) -> bool {
        self.property(name) == Some("true")
    }
}
