//! What a page tool gave, as a result: values, MCP-shaped answers, JSON text and thrown errors. Pure.

use pagebridge_core::json::{depth, mend_surrogates, readable};
use pagebridge_core::{ErrorKind, ToolError, limits, text};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::blocks::{self, Blocks};
use crate::events::{RemoteObject, ToolResponded};

const MESSAGE_CHARS: usize = 2_000;
/// A page tool's answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The value, as JSON of at most [`limits::JSON_LEVELS`] levels.
    pub value: Box<RawValue>,
    /// The value as text: strings as they are, everything else as JSON.
    pub text: String,
    /// Content blocks, when the page answered in the shape of an MCP result.
    pub content: Option<Vec<Value>>,
    /// Whether the page itself says that the call failed.
    pub is_error: bool,
}

impl Answer {
    /// The answer in a text that `executeTool()` returned: the value's JSON, or a string as it is.
    /// `None` is what Chromium gives for a string that is no Unicode.
    pub(crate) fn from_text(returned: Option<String>) -> Self {
        match returned {
            None => Self::of_json(raw("null".into())),
            Some(returned) => {
                let json = RawValue::from_string(mend_surrogates(&returned).trim().to_owned());
                json.map_or_else(|_| Self::of_string(returned), Self::of_json)
            }
        }
    }

    /// The answer in the `output` of the protocol.
    pub(crate) fn from_output(output: Option<&RawValue>) -> Self {
        let Some(output) = output else { return Self::of_json(raw("null".into())) };
        match serde_json::from_str::<String>(&mend_surrogates(output.get())) {
            Ok(string) => Self::of_returned_string(string),
            Err(_) => Self::of_json(raw(readable(&mend_surrogates(output.get())).into_owned())),
        }
    }

    /// A string from the browser: plain text, or JSON that it did not parse. (Chromium 156 leaves objects as
    /// text when their only non-ASCII characters are Latin-1.)
    fn of_returned_string(string: String) -> Self {
        let looks_like_json = string.trim_start().starts_with(['{', '[']);
        match RawValue::from_string(string.trim().to_owned()) {
            Ok(json) if looks_like_json => Self { text: string, ..Self::of_json(json) },
            _ => Self::of_string(string),
        }
    }

    fn of_string(string: String) -> Self {
        Self { value: raw(quoted(&string)), text: string, content: None, is_error: false }
    }

    fn of_json(json: Box<RawValue>) -> Self {
        if depth(json.get()) > limits::JSON_LEVELS {
            return Self::of_string(json.get().to_owned());
        }
        if let Some(shaped) = Self::mcp_shaped(&json) {
            return shaped;
        }
        Self { text: json.get().to_owned(), value: json, content: None, is_error: false }
    }

    /// Pages written for MCP return `{content: […], isError?, structuredContent?}`.
    fn mcp_shaped(json: &RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shaped {
            content: Vec<Value>,
            #[serde(default)]
            is_error: Option<bool>,
            #[serde(default)]
            structured_content: Option<Box<RawValue>>,
        }
        let shaped: Shaped = serde_json::from_str(json.get()).ok()?;
        let Blocks { blocks, text } = blocks::read(shaped.content)?;
        let structured = shaped.structured_content.filter(|s| s.get().trim_start().starts_with('{'));
        Some(Self {
            value: structured.unwrap_or_else(|| raw(quoted(&text))),
            text,
            is_error: shaped.is_error == Some(true),
            content: Some(blocks),
        })
    }
}

/// The end of a call as the protocol tells it.
pub(crate) fn of_response(tool: &str, response: &ToolResponded) -> Result<Answer, ToolError> {
    match response.status.as_str() {
        "Completed" | "Success" => Ok(Answer::from_output(response.output.as_deref())),
        "Canceled" => Err(ToolError::unknown(
            ErrorKind::Cancelled,
            format!("The page cancelled its tool {tool:?}{}", reason(response)),
        )),
        _ => Err(ToolError::failed(
            ErrorKind::Threw,
            format!("The page's tool {tool:?} failed{}", reason(response)),
        )),
    }
}

fn reason(response: &ToolResponded) -> String {
    let told = response.error_text.clone().filter(|told| !told.is_empty());
    let thrown = response.exception.as_ref().map(thrown_text);
    match told.or(thrown).map(|reason| text::bounded(&reason, MESSAGE_CHARS)) {
        Some(reason) if !reason.trim().is_empty() => format!(": {}", reason.trim()),
        _ => " and gave no reason.".into(),
    }
}

/// What was thrown, in one short text: of an error its class and message, without the page's stack.
pub(crate) fn thrown_text(thrown: &RemoteObject) -> String {
    let string = thrown.value.as_deref().filter(|_| thrown.kind == "string");
    if let Some(string) = string.and_then(|raw| pagebridge_cdp::decode::<String>(raw).ok()) {
        return string;
    }
    if let Some(description) = &thrown.description {
        return description.split("\n    at ").next().unwrap_or_default().to_owned();
    }
    match (&thrown.unserializable_value, &thrown.value) {
        (Some(odd), _) => odd.clone(),
        (None, Some(value)) => value.get().to_owned(),
        (None, None) => thrown.kind.clone(),
    }
}

fn quoted(string: &str) -> String {
    Value::from(string).to_string()
}

fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(output: &str) -> Answer {
        Answer::from_output(Some(&RawValue::from_string(output.into()).unwrap()))
    }

    #[test]
    fn values_and_texts_of_every_kind() {
        for (output, value, text) in [
            (r#""undefined""#, r#""undefined""#, "undefined"),
            (r#""plain é""#, r#""plain é""#, "plain é"),
            ("null", "null", "null"),
            ("42", "42", "42"),
            ("0", "0", "0"),
            ("false", "false", "false"),
            ("[]", "[]", "[]"),
            (
                r#"{"z":1,"a":18446744073709551617}"#,
                r#"{"z":1,"a":18446744073709551617}"#,
                r#"{"z":1,"a":18446744073709551617}"#,
            ),
            // Chromium escapes what is not ASCII.
            (r#"{"\u65e5":"\u00e9"}"#, r#"{"日":"é"}"#, r#"{"日":"é"}"#),
            // JSON that Chromium left as text is not encoded twice.
            (r#""{\"é\":\"ü\"}""#, r#"{"é":"ü"}"#, r#"{"é":"ü"}"#),
            (r#""{broken""#, r#""{broken""#, "{broken"),
            (r#""a\ud800""#, "\"a\u{fffd}\"", "a\u{fffd}"),
        ] {
            let answer = from(output);
            assert_eq!((answer.value.get(), answer.text.as_str()), (value, text), "{output}");
            assert!(answer.content.is_none() && !answer.is_error);
        }
        assert_eq!(Answer::from_output(None).value.get(), "null");
    }

    #[test]
    fn the_in_page_route_gives_the_same_values() {
        for (returned, value) in [
            (Some("undefined"), r#""undefined""#),
            (Some("42"), "42"),
            (Some(r#"{"é":1}"#), r#"{"é":1}"#),
            (Some("NaN"), r#""NaN""#),
            (None, "null"),
        ] {
            assert_eq!(Answer::from_text(returned.map(Into::into)).value.get(), value, "{returned:?}");
        }
    }

    #[test]
    fn mcp_shaped_answers_keep_their_blocks_and_their_failure() {
        let answer = from(
            r#"{"content":[{"type":"text","text":"no"},{"type":"image","data":"aa","mimeType":"image/png"}],"isError":true}"#,
        );
        assert!(answer.is_error);
        assert_eq!(
            (answer.content.unwrap().len(), answer.value.get(), answer.text.as_str()),
            (2, r#""no""#, "no")
        );
        let structured = from(r#"{"content":[],"structuredContent":{"b":1,"a":2}}"#);
        assert_eq!(structured.value.get(), r#"{"b":1,"a":2}"#);
        for plain in [
            r#"{"content":"text"}"#,
            r#"{"content":[1]}"#,
            r#"{"content":[{"type":"text"}]}"#,
            r#"{"content":[{"type":"new"}]}"#,
        ] {
            assert!(from(plain).content.is_none(), "{plain}");
        }
    }

    #[test]
    fn deep_values_travel_as_text() {
        let deep = format!("{}1{}", "[".repeat(250), "]".repeat(250));
        let answer = from(&deep);
        assert_eq!(answer.text, deep);
        assert!(answer.value.get().starts_with('"'));
    }

    #[test]
    fn failures_have_a_short_reason_without_stack() {
        let response = |json: &str| serde_json::from_str::<ToolResponded>(json).unwrap();
        for (json, kind, message) in [
            (
                r#"{"invocationId":"1","status":"Error","errorText":"","exception":{"type":"object","subtype":"error","description":"TypeError: secret\n    at f (http://x:1:2)"}}"#,
                ErrorKind::Threw,
                "failed: TypeError: secret",
            ),
            (
                r#"{"invocationId":"1","status":"Error","errorText":"","exception":{"type":"string","value":"plain"}}"#,
                ErrorKind::Threw,
                "failed: plain",
            ),
            (
                r#"{"invocationId":"1","status":"Error","errorText":"","exception":{"type":"undefined"}}"#,
                ErrorKind::Threw,
                "failed: undefined",
            ),
            (
                r#"{"invocationId":"1","status":"Error","errorText":"Form validation failed: q"}"#,
                ErrorKind::Threw,
                "failed: Form validation failed: q",
            ),
            (
                r#"{"invocationId":"1","status":"Canceled","errorText":""}"#,
                ErrorKind::Cancelled,
                "gave no reason",
            ),
            (r#"{"invocationId":"1","status":"StatusOfTomorrow"}"#, ErrorKind::Threw, "gave no reason"),
        ] {
            let error = of_response("t", &response(json)).unwrap_err();
            assert_eq!(error.kind, kind);
            assert!(error.message.contains(message) && !error.message.contains("at f"), "{}", error.message);
        }
    }
}
