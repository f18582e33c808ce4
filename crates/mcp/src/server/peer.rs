//! What a server sends on its own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::in_flight::Ticket;
use crate::wire::{RequestId, notification};
use crate::writer::Outbox;

/// The way to the client, for notifications. Sending after the client left does nothing.
#[derive(Clone, Debug)]
pub struct Peer {
    outbox: Outbox,
}

impl Peer {
    pub(super) fn new(outbox: Outbox) -> Self {
        Self { outbox }
    }

    /// Sends a notification. Params that serialize to `null`, such as `()`, are left out.
    pub fn notify(&self, method: &str, params: impl Serialize) {
        match to_raw_value(&params) {
            Ok(params) => {
                let params = (params.get() != "null").then_some(&*params);
                self.outbox.send(notification(method, params));
            }
            Err(error) => tracing::warn!(method, %error, "a notification could not be written as JSON"),
        }
    }
}

/// Reports on one request to a client that asked for it (spec: Utilities, "Progress"). Says nothing once the request
/// is answered or cancelled.
#[derive(Clone, Debug)]
pub struct Progress {
    token: RequestId,
    ticket: Arc<Ticket>,
    peer: Peer,
}

impl Progress {
    /// The reporter for a request, when its params carry a token.
    pub(super) fn for_request(params: Option<&RawValue>, ticket: &Arc<Ticket>, peer: &Peer) -> Option<Self> {
        let token = progress_token(params?)?;
        Some(Self { token, ticket: Arc::clone(ticket), peer: peer.clone() })
    }

    /// Sends `notifications/progress`. `progress` must grow from report to report; what is not finite is not sent.
    pub fn report(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            progress_token: &'a RequestId,
            progress: serde_json::Number,
            #[serde(skip_serializing_if = "Option::is_none")]
            total: Option<serde_json::Number>,
            #[serde(skip_serializing_if = "Option::is_none")]
            message: Option<&'a str>,
        }
        let Some(progress) = number(progress) else { return };
        let params = Params { progress_token: &self.token, progress, total: total.and_then(number), message };
        self.ticket.while_open(|| self.peer.notify("notifications/progress", &params));
    }
}

/// Whole numbers are written without a fraction, as everybody else writes them.
fn number(value: f64) -> Option<serde_json::Number> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Some((value as i64).into());
    }
    serde_json::Number::from_f64(value)
}

/// `params._meta.progressToken`, a string or a number.
fn progress_token(params: &RawValue) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Meta<'a> {
        #[serde(borrow)]
        progress_token: Option<&'a RawValue>,
    }
    let params: Params = serde_json::from_str(params.get()).ok()?;
    let meta: Meta = serde_json::from_str(params.meta?.get()).ok()?;
    RequestId::from_raw(meta.progress_token?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(json: &str) -> Option<String> {
        progress_token(serde_json::from_str(json).unwrap()).map(|token| token.as_json().to_owned())
    }

    #[test]
    fn tokens_keep_their_type() {
        assert_eq!(token(r#"{"_meta":{"progressToken":7}}"#).unwrap(), "7");
        assert_eq!(token(r#"{"_meta":{"x":1,"progressToken":"7"}}"#).unwrap(), "\"7\"");
        for json in ["null", "{}", "[]", r#"{"_meta":null}"#, r#"{"_meta":{"progressToken":null}}"#] {
            assert!(token(json).is_none(), "{json}");
        }
    }

    #[test]
    fn numbers_as_others_write_them() {
        let text = |value| number(value).map(|number| number.to_string());
        assert_eq!(text(30.0).unwrap(), "30");
        assert_eq!(text(0.5).unwrap(), "0.5");
        assert_eq!(text(1e300).unwrap(), "1e+300");
        assert!(text(f64::NAN).is_none());
    }
}
