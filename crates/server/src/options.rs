//! What a session may do and how long it may take, as the user chose.

use std::path::PathBuf;
use std::time::Duration;

use pagebridge_browser::BrowserOptions;
use pagebridge_core::limits;

/// What happens when a page tool that calls itself consequential is called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Consequential {
    /// The user is asked first; where nobody can be asked, the call is refused.
    #[default]
    Ask,
    /// It runs.
    Allow,
    /// It is refused.
    Deny,
}

/// The options of a session.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// How the browser is started.
    pub browser: BrowserOptions,
    /// The folder for what the session writes.
    pub workspace: PathBuf,
    /// Whether each tool of the selected page is an MCP tool of its own.
    pub dynamic_tools: bool,
    /// Whether page tools marked `debugging` may be called and are listed like others.
    pub page_tools_debugging: bool,
    /// What happens to consequential page tools.
    pub consequential: Consequential,
    /// Whether `file:` addresses may be opened.
    pub allow_file_urls: bool,
    /// Time a page tool or script may take.
    pub page_call_timeout: Duration,
    /// Time a navigation may take.
    pub navigation_timeout: Duration,
    /// Lines of a text that are shown.
    pub max_text_lines: usize,
    /// Bytes of a text that are shown.
    pub max_text_bytes: usize,
    /// Bytes of an image, as the text that carries it.
    pub max_image_bytes: usize,
}

impl SessionOptions {
    /// The defaults, with this workspace.
    pub fn new(workspace: PathBuf) -> Self {
        Self {
            browser: BrowserOptions::default(),
            workspace,
            dynamic_tools: true,
            page_tools_debugging: false,
            consequential: Consequential::default(),
            allow_file_urls: false,
            page_call_timeout: limits::PAGE_CALL,
            navigation_timeout: limits::NAVIGATION,
            max_text_lines: limits::TEXT_LINES,
            max_text_bytes: limits::TEXT_BYTES,
            max_image_bytes: limits::IMAGE_BYTES,
        }
    }
}
