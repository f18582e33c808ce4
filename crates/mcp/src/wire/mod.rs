//! JSON-RPC envelopes (spec: Base Protocol, "Messages"). Payloads stay raw.

mod encode;
mod error;
mod id;
mod parse;

pub use encode::{error_response, notification, request, response};
pub use error::{RpcError, code};
pub use id::RequestId;
pub use parse::{Incoming, ParseFailure, parse, parse_batch};
