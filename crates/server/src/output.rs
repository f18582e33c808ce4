//! The only way out: what a tool gives becomes an MCP result that stays within bounds.

use pagebridge_core::{ToolError, limits, text};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use crate::options::SessionOptions;
use crate::workspace::Workspace;

/// Most bytes that the content blocks of one result may have together, so that a message stays under 8 MiB.
const CONTENT_BYTES: usize = 7 * 1024 * 1024;

/// Most bytes of `structuredContent`: a page's result within its own limit, and what is told beside it.
const STRUCTURED_BYTES: usize = 2 * limits::STRUCTURED_BYTES;

/// What a tool gives.
#[derive(Debug, Default)]
pub struct ToolOutput {
    /// The text for the model. Empty where blocks say everything.
    pub text: String,
    /// Content blocks that come before the text.
    pub blocks: Vec<Value>,
    /// The same for programs.
    pub structured: Option<Box<RawValue>>,
    /// Whether it is a failure.
    pub is_error: bool,
}

impl ToolOutput {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A text, and the same as data.
    pub fn with_data(text: impl Into<String>, data: &impl Serialize) -> Self {
        Self { text: text.into(), structured: to_raw_value(data).ok(), ..Self::default() }
    }

    /// A failure of a tool, in the one shape that all have.
    pub fn failure(tool: &str, error: &ToolError) -> Self {
        let data = json!({"tool": tool, "error": error.to_json()});
        Self { is_error: true, ..Self::with_data(error.message.clone(), &data) }
    }
}

/// The result of `tools/call`.
pub fn finish(
    tool: &str,
    output: ToolOutput,
    options: &SessionOptions,
    workspace: &Workspace,
) -> Box<RawValue> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct CallResult {
        content: Vec<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        structured_content: Option<Box<RawValue>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    }
    let mut content = output.blocks;
    for block in &mut content {
        if let Some(Value::String(long)) = block.get_mut("text") {
            *long = shown(tool, long, options, workspace);
        }
    }
    if !output.text.is_empty() || content.is_empty() {
        content.push(json!({"type": "text", "text": shown(tool, &output.text, options, workspace)}));
    }
    leave_out_large_media(&mut content, options.max_image_bytes);
    keep_within(&mut content, CONTENT_BYTES);
    let structured_content = output.structured.map(|whole| bounded(tool, whole, workspace));
    let result = CallResult { content, structured_content, is_error: output.is_error };
    to_raw_value(&result).unwrap_or_default()
}

/// The text, cleaned; a long one is cut, and the whole kept in a file that is named.
fn shown(tool: &str, whole: &str, options: &SessionOptions, workspace: &Workspace) -> String {
    let cut = text::head(whole, options.max_text_lines, options.max_text_bytes);
    let head = text::clean(cut.head);
    if !cut.is_cut {
        return head;
    }
    let rest = match workspace.keep(tool, "txt", whole) {
        Ok(file) => format!("the whole is in {}", file.display()),
        Err(error) => format!(
            "the rest is lost, because it could not be written to {}: {error}",
            workspace.root().display()
        ),
    };
    format!("{head}\n[cut after {} of {} bytes; {rest}]", cut.head.len(), whole.len())
}

/// Data that is too large for a client lies in the workspace.
fn bounded(tool: &str, whole: Box<RawValue>, workspace: &Workspace) -> Box<RawValue> {
    let bytes = whole.get().len();
    if bytes <= STRUCTURED_BYTES {
        return whole;
    }
    kept_whole(json!({"cut": true, "bytes": bytes}), tool, whole.get(), workspace)
}

/// What stands for data that is too large: what is told of it, and where the whole lies.
pub(crate) fn kept_whole(mut told: Value, name: &str, whole: &str, workspace: &Workspace) -> Box<RawValue> {
    match workspace.keep(name, "json", whole) {
        Ok(file) => told["file"] = json!(file),
        Err(error) => told["lost"] = json!(format!("the whole could not be written: {error}")),
    }
    to_raw_value(&told).unwrap_or_default()
}

/// Replaces pictures and sounds above the limit by a note.
fn leave_out_large_media(content: &mut [Value], max_bytes: usize) {
    for block in content {
        // Four characters of base64 for three bytes.
        let bytes = block.get("data").and_then(Value::as_str).map_or(0, |data| data.len() / 4 * 3);
        if bytes > max_bytes {
            *block = json!({"type": "text", "text": format!("[a block of {bytes} bytes was left out: more than {max_bytes} are not shown]")});
        }
    }
}

/// Replaces blocks that would make the message too large by a note.
fn keep_within(content: &mut [Value], most: usize) {
    let mut left = most;
    for block in content {
        let size = block.to_string().len();
        match left.checked_sub(size) {
            Some(rest) => left = rest,
            None => {
                let kind = block.get("type").and_then(Value::as_str).unwrap_or("content").to_owned();
                *block = json!({"type": "text", "text": format!("[a block of type {kind:?} with {size} bytes was left out: the result would be too large]")});
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagebridge_core::ErrorKind;

    fn finished(output: ToolOutput) -> (Value, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let options = SessionOptions::new(dir.path().into());
        let result = finish("a_tool", output, &options, &Workspace::new(dir.path().into()));
        (serde_json::from_str(result.get()).unwrap(), dir)
    }

    #[test]
    fn a_long_text_is_cut_and_kept_whole() {
        let whole = "é line\n".repeat(10_000);
        let (result, dir) = finished(ToolOutput::text(whole.clone()));
        let shown = result["content"][0]["text"].as_str().unwrap();
        assert!(shown.len() < 52_000 && shown.contains("the whole is in"));
        let file = dir.path().join(".pagebridge/results/a_tool-1.txt");
        assert!(shown.contains(&file.display().to_string()));
        assert_eq!(std::fs::read_to_string(file).unwrap(), whole);
    }

    #[test]
    fn failures_have_one_shape() {
        let error = ToolError::not_run(ErrorKind::NotFound, "no such page");
        let (result, _dir) = finished(ToolOutput::failure("close_page", &error));
        assert_eq!(result["isError"], true);
        assert_eq!(result["content"][0]["text"], "no such page");
        assert_eq!(result["structuredContent"]["tool"], "close_page");
        assert_eq!(result["structuredContent"]["error"]["kind"], "not_found");
    }

    #[test]
    fn blocks_that_do_not_fit_are_told() {
        let image = |size: usize| json!({"type": "image", "data": "a".repeat(size), "mimeType": "image/png"});
        let blocks = vec![image(5_000_000), image(5_000_000), image(1_000_000)];
        let (result, _dir) = finished(ToolOutput { blocks, ..ToolOutput::default() });
        let kinds: Vec<_> = result["content"].as_array().unwrap().iter().map(|b| b["type"].clone()).collect();
        assert_eq!(kinds, ["image", "text", "image"]);
    }

    #[test]
    fn an_empty_result_has_a_block_and_no_flags() {
        let (result, _dir) = finished(ToolOutput::default());
        assert_eq!(result, json!({"content": [{"type": "text", "text": ""}]}));
    }
}
