//! Content blocks of a page that answers in the shape of an MCP result. They are the page's: each is read member
//! by member, and what could lead a client elsewhere (resources, links) becomes text. Pure.

use serde::Deserialize;
use serde_json::{Value, json};

use pagebridge_core::limits;

/// Blocks beyond this many are made one text, or left out.
const MOST: usize = 100;

/// A page's blocks, fit to be passed on.
pub(super) struct Blocks {
    /// Text, image and audio blocks only.
    pub blocks: Vec<Value>,
    /// All texts.
    pub text: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
    },
    #[serde(rename_all = "camelCase")]
    Audio {
        data: String,
        mime_type: String,
    },
    Resource {
        resource: Resource,
    },
    ResourceLink {
        uri: String,
        name: String,
    },
}

#[derive(Deserialize)]
struct Resource {
    uri: String,
    text: Option<String>,
    blob: Option<String>,
}

/// The blocks, if all of them are blocks.
pub(super) fn read(content: Vec<Value>) -> Option<Blocks> {
    let blocks: Vec<Block> =
        content.into_iter().map(serde_json::from_value).collect::<Result<_, _>>().ok()?;
    let shown: Vec<Shown> = blocks.into_iter().map(Shown::of).collect::<Option<_>>()?;
    let texts: Vec<&str> = shown.iter().filter_map(Shown::text).collect();
    let text = texts.join("\n");
    if shown.len() <= MOST && text.len() <= limits::TEXT_BYTES {
        return Some(Blocks { blocks: shown.into_iter().map(Shown::into_block).collect(), text });
    }
    let mut blocks = vec![json!({"type": "text", "text": text})];
    blocks.extend(shown.into_iter().filter(|s| s.text().is_none()).take(MOST).map(Shown::into_block));
    Some(Blocks { blocks, text })
}

enum Shown {
    Text(String),
    Media { kind: &'static str, data: String, mime_type: String },
}

impl Shown {
    fn of(block: Block) -> Option<Self> {
        Some(match block {
            Block::Text { text } => Self::Text(text),
            Block::Image { data, mime_type } => Self::media("image", data, mime_type)?,
            Block::Audio { data, mime_type } => Self::media("audio", data, mime_type)?,
            Block::Resource { resource: Resource { uri, text: Some(text), .. } } => {
                Self::Text(format!("Resource {uri}:\n{text}"))
            }
            Block::Resource { resource: Resource { uri, blob: Some(blob), .. } } => {
                Self::Text(format!("[Resource {uri}: {} characters of base64, left out]", blob.len()))
            }
            Block::Resource { .. } => return None,
            Block::ResourceLink { uri, name } => Self::Text(format!("Link {name}: {uri}")),
        })
    }

    fn media(kind: &'static str, data: String, mime_type: String) -> Option<Self> {
        let is_base64 = data.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
        let is_kind = mime_type.strip_prefix(kind).is_some_and(|rest| rest.starts_with('/'));
        (is_base64 && is_kind).then_some(Self::Media { kind, data, mime_type })
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Media { .. } => None,
        }
    }

    fn into_block(self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Media { kind, data, mime_type } => {
                json!({"type": kind, "data": data, "mimeType": mime_type})
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_blocks_are_no_blocks() {
        for block in [
            json!({"type": "text", "text": {"a": 1}}),
            json!({"type": "text"}),
            json!({"type": "image", "data": 5, "mimeType": {}}),
            json!({"type": "image", "data": "not base64!", "mimeType": "image/png"}),
            json!({"type": "image", "data": "aa", "mimeType": "text/html"}),
            json!({"type": "resource", "resource": "x"}),
            json!({"type": "resource", "resource": {"uri": "x:y"}}),
            json!({"type": "new"}),
            json!(1),
        ] {
            assert!(read(vec![block.clone()]).is_none(), "{block}");
        }
    }

    #[test]
    fn only_known_members_pass_and_nothing_leads_elsewhere() {
        let given = vec![
            json!({"type": "text", "text": "é", "_meta": {"x": 1}, "annotations": "bad"}),
            json!({"type": "image", "data": "aa", "mimeType": "image/png", "x": 1}),
            json!({"type": "resource", "resource": {"uri": "file:///etc/passwd", "text": "t"}}),
            json!({"type": "resource_link", "uri": "file:///etc/passwd", "name": "n"}),
        ];
        let kinds: Vec<Value> = read(given).unwrap().blocks;
        assert_eq!(kinds[0], json!({"type": "text", "text": "é"}));
        assert_eq!(kinds[1], json!({"type": "image", "data": "aa", "mimeType": "image/png"}));
        assert!(kinds[2..].iter().all(|block| block["type"] == "text"));
    }

    #[test]
    fn a_flood_of_blocks_becomes_one_text() {
        let flood = vec![json!({"type": "text", "text": "q"}); 100_000];
        let read = read(flood).unwrap();
        assert_eq!((read.blocks.len(), read.text.len()), (1, 199_999));
    }
}
