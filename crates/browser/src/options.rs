//! How a browser is to be started.

use std::path::PathBuf;

use pagebridge_cdp::Endpoint;

/// Choices of the user about the browser. The defaults are a headless browser with a fresh profile, sandboxed.
#[derive(Debug, Clone, Default)]
pub struct BrowserOptions {
    /// A browser that somebody else runs, to be attached to. What follows is then of no use, the frames excepted.
    pub connect: Option<Endpoint>,
    /// The executable; otherwise one is looked for ([`crate::find`]).
    pub executable: Option<PathBuf>,
    /// Show a window.
    pub headed: bool,
    /// Start without Chromium's sandbox. Never chosen by us: as root nothing else works, and the user must say so.
    pub no_sandbox: bool,
    /// Further command-line arguments, passed last.
    pub extra_args: Vec<String>,
    /// A profile to keep; otherwise a fresh one that is removed at the end.
    pub user_data_dir: Option<PathBuf>,
    /// Origins whose frames may offer tools in pages of other origins.
    pub allowed_frames: Vec<String>,
}
