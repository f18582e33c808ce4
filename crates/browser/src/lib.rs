//! Real browsers: launch, pages and documents, navigation, scripts, and the tools that pages offer.
//!
//! ```text
//!  Browser ── launch ──► process + pipe ──► cdp events ──► driver ──► targets (owner of pages, frames, documents)
//!     │                                                       └────► page_tools::Registry
//!     ├─ navigate · evaluate ───► a page's session, until one of its PageEvents ends the wait
//!     ├─ snapshot · click · fill · press_key · screenshot · wait_for_text ──► the same, through our isolated world
//!     └─ call_tool ──► arguments ──► call ──► answer
//! ```

mod arrival;
mod attach;
mod browser;
mod dialogs;
mod driver;
mod element;
mod evaluate;
mod events;
pub mod find;
mod flags;
mod input;
mod launch;
mod loss;
mod navigate;
mod options;
mod page_tools;
mod screenshot;
mod snapshot;
mod start_failure;
mod targets;
mod underway;
mod wait;
mod wait_for;

pub use arrival::Arrival;
pub use browser::Browser;
pub use dialogs::{Dialog, DialogAnswered};
pub use evaluate::Evaluated;
pub use flags::{arguments, refuse_argument};
pub use navigate::{Leaving, Navigation};
pub use options::BrowserOptions;
pub use page_tools::{
    Annotations, Answer, CallOptions, Definition, PageTool, PageToolList, Skipped, Support, Via,
};
pub use pagebridge_cdp::Endpoint;
pub use screenshot::{Picture, PictureFormat, Pictures, Shot};
pub use snapshot::{Snapshot, SnapshotCut, SnapshotOptions};
pub use start_failure::StartError;
pub use targets::{Document, DocumentId, PageId, PageInfo};
