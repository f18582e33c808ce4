//! Pure building blocks of pagebridge: no I/O, no clock, no async runtime.
//!
//! Everything here is a function of its arguments, which is what makes the rules that users depend on
//! (names, limits, error kinds, what an address may be) testable in microseconds.

pub mod address;
pub mod duration;
pub mod error;
pub mod json;
pub mod limits;
pub mod names;
pub mod schema;
pub mod text;

pub use error::{ErrorKind, Outcome, ToolError};
