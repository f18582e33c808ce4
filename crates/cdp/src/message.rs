//! Envelopes: only what is needed to find the receiver of a message is parsed.

use std::borrow::Cow;

use pagebridge_core::json::mend_surrogates;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// One message of the browser, its payload still raw.
#[derive(Debug, Deserialize)]
pub(crate) struct Envelope<'a> {
    #[serde(default)]
    pub id: Option<u64>,
    #[serde(default, rename = "sessionId", borrow)]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub method: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub result: Option<&'a RawValue>,
    #[serde(default)]
    pub error: Option<WireError>,
}

/// The error member of a reply. Fields may be missing or of odd types in other browsers' replies.
#[derive(Debug, Deserialize)]
pub(crate) struct WireError {
    #[serde(default)]
    pub code: i64,
    #[serde(default)]
    pub message: String,
}

impl<'a> Envelope<'a> {
    /// Reads an envelope. Raw members are not decoded, so neither lone surrogates nor deep nesting in them matter.
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}

/// The id in the first bytes of a message that is too large to be read whole.
pub(crate) fn id_of_head(head: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(head);
    let (_, rest) = text.split_once("\"id\":")?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Decodes a raw payload into a type, with lone surrogates mended. Unknown fields are ignored; members that
/// may nest deeply belong in a `RawValue` field, which is not recursed into.
pub fn decode<T: DeserializeOwned>(raw: &RawValue) -> Result<T, serde_json::Error> {
    serde_json::from_str(&mend_surrogates(raw.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_payloads_do_not_hide_the_receiver() {
        let deep = format!("{}1{}", "[".repeat(20_000), "]".repeat(20_000));
        for payload in [r#""\ud800""#, deep.as_str(), "1e400", "null"] {
            let text = format!(r#"{{"id":7,"result":{payload},"sessionId":"S","newThing":{{"x":[1]}}}}"#);
            let envelope = Envelope::parse(&text).unwrap();
            assert_eq!((envelope.id, envelope.session_id.as_deref()), (Some(7), Some("S")));
        }
    }

    #[test]
    fn decoding_mends_and_ignores() {
        #[derive(Deserialize)]
        struct Wanted {
            text: String,
            #[serde(default)]
            missing: Option<u8>,
        }
        let raw = RawValue::from_string(r#"{"text":"a\ud800","other":{"deep":[]}}"#.into()).unwrap();
        let wanted: Wanted = decode(&raw).unwrap();
        assert_eq!((wanted.text.as_str(), wanted.missing), ("a\u{fffd}", None));
    }

    #[test]
    fn the_id_of_an_oversized_message_is_found_in_its_head() {
        assert_eq!(id_of_head(br#"{"id":42,"result":{"x":"aaaa"#), Some(42));
        assert_eq!(id_of_head(br#"{"method":"Page.frameNavigated","params":{"#), None);
    }
}
