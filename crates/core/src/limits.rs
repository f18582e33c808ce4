//! Numbers that bound what a page may put before a client (see `docs/limits.md`).

use std::time::Duration;

/// Characters of a page tool's description that are shown; the rest is cut with a mark.
pub const DESCRIPTION_CHARS: usize = 1_000;
/// Characters of a title, an address or another short text of a page.
pub const SHORT_TEXT_CHARS: usize = 300;
/// Bytes of a page tool's input schema, as compact JSON, that are shown.
pub const SCHEMA_BYTES: usize = 16 * 1024;
/// Bytes of an input schema beyond which it is not kept, and arguments are not checked.
pub const SCHEMA_KEPT_BYTES: usize = 256 * 1024;
/// Page tools that one answer of `page_tools` lists, and the bytes of their schemas together.
pub const LISTED_TOOLS: (usize, usize) = (100, 128 * 1024);
/// Page tools that one page may have as tools of their own; the rest is reached through `page_tools`.
pub const DYNAMIC_TOOLS: usize = 64;
/// Tools that one page's registry holds; a page that registers more is cut there, and told.
pub const TOOLS_PER_PAGE: usize = 2_000;
/// Lines of a text result that are shown.
pub const TEXT_LINES: usize = 2_000;
/// Bytes of a text result that are shown.
pub const TEXT_BYTES: usize = 50 * 1024;
/// Bytes of an image, as the text that carries it.
pub const IMAGE_BYTES: usize = 5 * 1024 * 1024;
/// Bytes of `structuredContent` that are shown.
pub const STRUCTURED_BYTES: usize = 256 * 1024;
/// Nesting levels of a page's JSON that are passed on as JSON; deeper values travel as their text.
pub const JSON_LEVELS: usize = 100;
/// Characters of a dynamic tool's name.
pub const DYNAMIC_NAME_CHARS: usize = 40;

/// Time a page tool may take.
pub const PAGE_CALL: Duration = Duration::from_secs(50);
/// Most that a caller may ask for with `timeoutMs`.
pub const CALL_MAX: Duration = Duration::from_secs(600);
/// Time a navigation may take.
pub const NAVIGATION: Duration = Duration::from_secs(30);
/// A page's tools count as settled after this long without a change.
pub const SETTLE_QUIET: Duration = Duration::from_millis(50);
/// Most that is waited for a page's tools to settle.
pub const SETTLE_MAX: Duration = Duration::from_millis(300);
/// `tools/list_changed` waits this long for further changes.
pub const LIST_CHANGED_DEBOUNCE: Duration = Duration::from_millis(50);
/// A slow call reports progress this often, to clients that gave a token.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(10);
