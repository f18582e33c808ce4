//! Fixtures of the tests: the real binary as a client sees it, a page site, a process watcher.
#![allow(clippy::disallowed_methods, reason = "tests start real processes")]

pub mod bridge;
pub mod raw;
pub mod site;
pub mod watch;
