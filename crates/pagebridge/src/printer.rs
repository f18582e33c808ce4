//! The one place where commands write: results to stdout, everything else to stderr.

use std::io::{IsTerminal, Write};

/// A line of a command's result. A reader that has gone away is no mistake.
pub fn result(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// A line beside the result: progress, hints.
pub fn note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// What went wrong.
pub fn problem(line: &str) {
    note(&format!("pagebridge: {line}"));
}

/// Whether a person sits in front of standard input.
pub fn stdin_is_terminal() -> bool {
    std::io::stdin().is_terminal()
}
