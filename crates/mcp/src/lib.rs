//! The Model Context Protocol on the wire, lossless.
//!
//! A bridge must hand on what it was given: unknown fields, key order, numbers beyond `f64`, lone surrogate
//! escapes. So this crate reads only the JSON-RPC envelope; every payload stays a
//! [`RawValue`](serde_json::value::RawValue), the text as it arrived. The one change made on the way out is that
//! line breaks between tokens become spaces, because on stdio a message is one line.
//!
//! This version speaks the legacy era (2024-11-05 to 2025-11-25) over byte streams, in both roles. The layers:
//!
//! | module | knows |
//! |---|---|
//! | [`lines`] | bytes to bounded lines |
//! | [`wire`] | lines to envelopes and back |
//! | [`writer`] | the one task that owns the output |
//! | [`version`] | protocol revisions |
//! | [`server`], [`client`] | the two roles: requests in flight, cancellation, progress, the end |

pub mod client;
pub mod lines;
pub mod server;
pub mod version;
pub mod wire;
pub mod writer;
