//! The one error shape of all local tools: what happened, whether the thing ran, what to do next.

use serde::Serialize;
use serde_json::{Value, json};

/// What kind of failure it was. The names are part of the surface that clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The arguments do not fit the tool's schema.
    InvalidArguments,
    /// No such page, frame or tool.
    NotFound,
    /// Several frames offer the tool; say which.
    Ambiguous,
    /// The document that offered the tool is no more.
    Gone,
    /// The tool's definition is not the one that was listed.
    Changed,
    /// The deadline passed.
    Timeout,
    /// The caller, or the page, cancelled the call.
    Cancelled,
    /// The page went to another document while the call ran.
    Navigated,
    /// The address could not be loaded.
    NavigationFailed,
    /// The page was closed.
    Closed,
    /// The page's renderer process crashed.
    Crashed,
    /// A dialog stands in the way.
    Dialog,
    /// The user said no.
    Declined,
    /// The tool needs the user's consent and there is no way to ask.
    ConfirmationUnavailable,
    /// The page's code threw or rejected.
    Threw,
    /// More data than one message may carry.
    TooLarge,
    /// Too much is going on; try again later.
    Busy,
    /// This page, browser or platform cannot do it.
    Unsupported,
    /// Policy forbids it.
    NotAllowed,
    /// No browser could be started.
    BrowserStartFailed,
    /// The browser is gone, and with it its tabs and page state.
    BrowserLost,
}

/// Whether the thing that was asked for has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It surely did not run: trying again is safe.
    NotRun,
    /// It ran and failed.
    Failed,
    /// It may have run, wholly or in part: trying again may do it twice.
    Unknown,
}

/// A failed local tool or page tool, as the caller sees it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The kind, for programs.
    pub kind: ErrorKind,
    /// One honest text for a person or a model: what happened, what is lost, what to do next.
    pub message: String,
    /// Whether it ran.
    pub outcome: Outcome,
    /// Further facts (an object), when there are any.
    pub details: Option<Value>,
}

impl ToolError {
    /// An error of a thing that did not run.
    pub fn not_run(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), outcome: Outcome::NotRun, details: None }
    }

    /// An error of a thing that ran and failed.
    pub fn failed(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), outcome: Outcome::Failed, details: None }
    }

    /// An error that leaves open whether the thing ran.
    pub fn unknown(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), outcome: Outcome::Unknown, details: None }
    }

    /// The same error with further facts.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// The `error` member of a result's `structuredContent`.
    pub fn to_json(&self) -> Value {
        let mut error = json!({"kind": self.kind, "message": self.message, "outcome": self.outcome});
        if let Some(details) = &self.details {
            error["details"] = details.clone();
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_names_are_snake_case_and_details_are_optional() {
        let plain = ToolError::not_run(ErrorKind::ConfirmationUnavailable, "ask first");
        assert_eq!(
            plain.to_json(),
            json!({"kind": "confirmation_unavailable", "message": "ask first", "outcome": "not_run"})
        );
        let detailed =
            ToolError::unknown(ErrorKind::Timeout, "late").with_details(json!({"delivered": true}));
        assert_eq!(detailed.to_json()["details"]["delivered"], json!(true));
    }
}
