//! JSON-RPC errors.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Error codes (spec: JSON-RPC 2.0 §5.1; -32000 to -32019 belong to implementations).
pub mod code {
    /// The line is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The line is JSON but no JSON-RPC message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// Nobody knows the method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method does not take these parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The receiver failed.
    pub const INTERNAL: i64 = -32603;
    /// The receiver ends and could not finish the request.
    pub const SHUTTING_DOWN: i64 = -32000;
}

/// The error of a response.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// See [`code`].
    pub code: i64,
    /// One sentence for people.
    pub message: String,
    /// Anything else, as it was sent.
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// -32700: the line is not JSON.
    pub fn parse_error(message: impl Into<String>) -> Self {
        Self::new(code::PARSE_ERROR, message)
    }

    /// -32600: JSON, but not a JSON-RPC message.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    /// -32601: nobody knows `method`.
    #[must_use]
    pub fn method_not_found(method: &str) -> Self {
        Self::new(code::METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }

    /// -32602: the parameters do not fit the method.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    /// -32603: the receiver failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL, message)
    }

    /// Adds `data`.
    #[must_use]
    pub fn with_data(self, data: Box<RawValue>) -> Self {
        Self { data: Some(data), ..self }
    }

    /// Reads the `error` member of a response. Never fails, because a request must not stay open over an odd
    /// error: what has no readable code becomes -32603 with the whole member as data.
    pub(super) fn from_raw(raw: &RawValue) -> Self {
        #[derive(Deserialize)]
        struct Shape<'a> {
            code: serde_json::Number,
            #[serde(default)]
            message: String,
            #[serde(borrow, default, deserialize_with = "super::parse::present")]
            data: Option<&'a RawValue>,
        }
        let known = serde_json::from_str::<Shape>(raw.get()).ok().and_then(|shape| {
            let code = integer(&shape.code)?;
            Some(Self { code, message: shape.message, data: shape.data.map(ToOwned::to_owned) })
        });
        known.unwrap_or_else(|| {
            Self::internal("The peer answered with a malformed error").with_data(raw.to_owned())
        })
    }
}

/// Some peers write codes as `-32000.0`.
fn integer(number: &serde_json::Number) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        (float.fract() == 0.0 && float.abs() <= EXACT).then_some(float as i64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> RpcError {
        RpcError::from_raw(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn usual_and_odd_codes() {
        for (json, code) in [
            (r#"{"code":-32601,"message":"no"}"#, -32601),
            (r#"{"code":3000000000,"message":"no"}"#, 3_000_000_000),
            (r#"{"code":-32000.0,"message":"no","more":1}"#, -32000),
        ] {
            let error = read(json);
            assert_eq!((error.code, error.message.as_str()), (code, "no"), "{json}");
        }
        assert_eq!(read(r#"{"code":1}"#).message, "");
    }

    #[test]
    fn data_is_kept_even_when_null() {
        assert_eq!(read(r#"{"code":1,"data":null}"#).data.unwrap().get(), "null");
        assert_eq!(read(r#"{"code":1,"data": {"z":1e400} }"#).data.unwrap().get(), r#"{"z":1e400}"#);
    }

    #[test]
    fn malformed_errors_become_internal_ones_that_show_what_came() {
        for json in ["null", "\"boom\"", r#"{"message":"x"}"#, r#"{"code":"E1"}"#, r#"{"code":1.5}"#] {
            let error = read(json);
            assert_eq!(error.code, code::INTERNAL);
            assert_eq!(error.data.unwrap().get(), json);
        }
    }
}
