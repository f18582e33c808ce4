//! Request ids, kept as they were written.

use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The id of a request: the exact JSON text of a string or a number.
///
/// Two ids are equal when their texts are, so `1`, `"1"` and `1.0` are three ids, and `9007199254740993` comes back
/// as itself. Progress tokens have the same shape (spec: `ProgressToken = string | number`) and use this type too.
#[derive(Clone)]
pub struct RequestId(Box<RawValue>);

impl RequestId {
    /// The id in `raw`; `None` for anything but a string or a number. MCP rules out `null` ids.
    #[must_use]
    pub fn from_raw(raw: &RawValue) -> Option<Self> {
        let first = *raw.get().as_bytes().first()?;
        matches!(first, b'"' | b'-' | b'0'..=b'9').then(|| Self(raw.to_owned()))
    }

    /// The JSON text, with quotes when the id is a string.
    #[must_use]
    pub fn as_json(&self) -> &str {
        self.0.get()
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self(RawValue::from_string(number.to_string()).expect("a number is JSON"))
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.as_json() == other.as_json()
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<S: Hasher>(&self, state: &mut S) {
        self.as_json().hash(state);
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl std::fmt::Debug for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RequestId({})", self.as_json())
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(json: &str) -> Option<RequestId> {
        RequestId::from_raw(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn ids_are_equal_by_text() {
        let texts = ["1", "\"1\"", "1.0", "1e0", "0", "-0", "\"\"", "9007199254740993", "1e400"];
        for (at, text) in texts.iter().enumerate() {
            for (other_at, other) in texts.iter().enumerate() {
                assert_eq!(id(text) == id(other), at == other_at, "{text} {other}");
            }
            assert_eq!(id(text).unwrap().as_json(), *text);
        }
    }

    #[test]
    fn only_strings_and_numbers_are_ids() {
        for text in ["null", "true", "false", "[]", "{}", "[1]"] {
            assert!(id(text).is_none(), "{text}");
        }
    }
}
