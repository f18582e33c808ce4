//! Lines to messages.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{RequestId, RpcError};

/// A message from the peer.
#[derive(Debug)]
pub enum Incoming {
    /// Wants an answer.
    Request {
        /// To be given back with the answer.
        id: RequestId,
        /// For example `tools/call`.
        method: String,
        /// As sent: an explicit `null` is `Some`.
        params: Option<Box<RawValue>>,
    },
    /// Wants none.
    Notification {
        /// For example `notifications/cancelled`.
        method: String,
        /// As sent: an explicit `null` is `Some`.
        params: Option<Box<RawValue>>,
    },
    /// Answers one of our requests.
    Response {
        /// `None` only for an error: the peer could not read the id of what it complains about.
        id: Option<RequestId>,
        /// The payload; `null` is a result.
        result: Result<Box<RawValue>, RpcError>,
    },
}

/// Why a line is no message.
#[derive(Debug, thiserror::Error)]
pub enum ParseFailure {
    /// Not UTF-8, or not JSON.
    #[error("Parse error: {0}")]
    NotJson(String),
    /// A JSON array: a batch, which only protocol version 2025-03-26 knows. See [`parse_batch`].
    #[error("Invalid request: JSON-RPC batches are not supported in this protocol version")]
    Batch,
    /// JSON, but not a JSON-RPC message.
    #[error("Invalid request: {reason}")]
    Invalid {
        /// The message's id, when there is a usable one.
        id: Option<RequestId>,
        /// What is wrong with it.
        reason: &'static str,
    },
}

impl ParseFailure {
    /// The id to answer with; `None` stands for `null`.
    #[must_use]
    pub fn id(&self) -> Option<&RequestId> {
        match self {
            Self::Invalid { id, .. } => id.as_ref(),
            Self::NotJson(_) | Self::Batch => None,
        }
    }

    /// The error to answer with: -32700 or -32600.
    #[must_use]
    pub fn to_error(&self) -> RpcError {
        match self {
            Self::NotJson(_) => RpcError::parse_error(self.to_string()),
            Self::Batch | Self::Invalid { .. } => RpcError::invalid_request(self.to_string()),
        }
    }
}

/// Reads one message from a line.
///
/// Only the envelope is looked at. Payloads are checked to be JSON but not decoded, so that neither their depth nor
/// lone surrogate escapes nor numbers out of range can make a message fail.
///
/// # Errors
///
/// The line is no message; see [`ParseFailure`].
pub fn parse(line: &[u8]) -> Result<Incoming, ParseFailure> {
    parse_text(utf8(line)?)
}

/// Reads the members of a batch (spec 2025-03-26: Base Protocol, "Batching"); call it after [`parse`] said
/// [`ParseFailure::Batch`]. A bad member is its own failure and harms no other.
///
/// # Errors
///
/// The line is no array after all.
pub fn parse_batch(line: &[u8]) -> Result<Vec<Result<Incoming, ParseFailure>>, ParseFailure> {
    let members: Vec<&RawValue> = serde_json::from_str(utf8(line)?).map_err(not_json)?;
    Ok(members.into_iter().map(|member| parse_text(member.get())).collect())
}

fn utf8(line: &[u8]) -> Result<&str, ParseFailure> {
    std::str::from_utf8(line).map_err(|error| ParseFailure::NotJson(error.to_string()))
}

fn not_json(error: serde_json::Error) -> ParseFailure {
    ParseFailure::NotJson(error.to_string())
}

fn parse_text(text: &str) -> Result<Incoming, ParseFailure> {
    // The first byte decides: serde would also read an array as an envelope, field by field.
    let envelope = match text.trim_start_matches([' ', '\t', '\r', '\n']).as_bytes().first() {
        Some(b'{') => serde_json::from_str::<Envelope>(text).ok(),
        _ => None,
    };
    match envelope {
        Some(envelope) => envelope.classify(),
        None => Err(why_no_envelope(text)),
    }
}

fn why_no_envelope(text: &str) -> ParseFailure {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return not_json(error);
    }
    match text.trim_ascii_start().as_bytes().first() {
        Some(b'[') => ParseFailure::Batch,
        Some(b'{') => invalid(None, "a field of the envelope is given twice or has an unreadable name"),
        _ => invalid(None, "a message is an object"),
    }
}

fn invalid(id: Option<RequestId>, reason: &'static str) -> ParseFailure {
    ParseFailure::Invalid { id, reason }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Keeps an explicit `null`, which serde's own `Option` takes for absence.
pub(super) fn present<'de, D>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error>
where
    D: Deserializer<'de>,
{
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Envelope<'_> {
    fn classify(self) -> Result<Incoming, ParseFailure> {
        let id = self.id.and_then(RequestId::from_raw);
        if self.jsonrpc.and_then(string).as_deref() != Some("2.0") {
            return Err(invalid(id, "\"jsonrpc\" is not \"2.0\""));
        }
        match self.method {
            Some(method) => self.call(id, method),
            None => self.answer(id),
        }
    }

    fn call(&self, id: Option<RequestId>, method: &RawValue) -> Result<Incoming, ParseFailure> {
        let Some(method) = string(method) else {
            return Err(invalid(id, "\"method\" is not a string"));
        };
        let params = self.params.map(ToOwned::to_owned);
        match (self.id, id) {
            (None, _) => Ok(Incoming::Notification { method, params }),
            (Some(_), Some(id)) => Ok(Incoming::Request { id, method, params }),
            (Some(_), None) => Err(invalid(None, "\"id\" is neither a string nor a number")),
        }
    }

    fn answer(&self, id: Option<RequestId>) -> Result<Incoming, ParseFailure> {
        // Some peers send the other member as null.
        let is_null = |raw: &RawValue| raw.get() == "null";
        match (id, self.result, self.error) {
            (id, None, Some(error)) => Ok(failed(id, error)),
            (id, Some(result), Some(error)) if is_null(result) && !is_null(error) => Ok(failed(id, error)),
            (Some(id), Some(result), None) => Ok(done(id, result)),
            (Some(id), Some(result), Some(error)) if is_null(error) => Ok(done(id, result)),
            (id, Some(_), Some(_)) => Err(invalid(id, "both \"result\" and \"error\" are given")),
            (None, Some(_), None) => Err(invalid(None, "a result without a usable \"id\"")),
            (id, None, None) => Err(invalid(id, "\"method\" is missing")),
        }
    }
}

fn done(id: RequestId, result: &RawValue) -> Incoming {
    Incoming::Response { id: Some(id), result: Ok(result.to_owned()) }
}

fn failed(id: Option<RequestId>, error: &RawValue) -> Incoming {
    Incoming::Response { id, result: Err(RpcError::from_raw(error)) }
}

fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}
