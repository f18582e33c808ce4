//! The outer MCP server: sessions, local tools, and the page's tools merged into one list.
//!
//! ```text
//!  client ─stdio─► mcp::server ─► SessionHandler ─┬─ tools::run ──► pages · evaluate · page_tools · info
//!                                                 └─ dynamic name ─► page_call ─► Browser::call_tool
//!                      ▲                                                  │
//!                      └── output::finish (the only way out) ◄────────────┘
//! ```

mod attached;
mod base64;
mod changes;
mod handler;
pub mod listing;
pub mod options;
pub mod output;
mod output_file;
pub mod page_call;
pub mod session;
mod slot;
mod stdio;
pub mod tools;
mod workspace;

pub use handler::SessionHandler;
pub use options::{Consequential, SessionOptions};
pub use pagebridge_mcp::server::Ended;
pub use session::Session;
pub use slot::BrowserSlot;
pub use stdio::serve_stdio;
pub use workspace::Workspace;

/// The product's name.
pub const NAME: &str = "pagebridge";
/// The product's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
