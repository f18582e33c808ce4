//! A thin Chrome DevTools Protocol (CDP) client.
//!
//! A browser of ours is spoken to over `--remote-debugging-pipe` only, so that no port is ever open: a loopback
//! port can be reached by every page of every session. One that somebody else runs has a port, and is spoken to
//! over a WebSocket ([`Endpoint`]); closing that only detaches. Messages are matched to their callers and otherwise left alone: results
//! and event parameters stay raw until somebody asks for a type, and what this client does not know (events,
//! enum values, fields) is passed over, because every Chromium brings new ones.
//!
//! ```text
//!  CdpSession::call ──► request table ──► writer ──► pipe ──► Chromium
//!                            ▲                                   │
//!        the caller ◄────────┴── reader ◄── pipe ◄───────────────┘
//!                                   └──► Events (one reader, in wire order)
//! ```

mod connection;
mod endpoint;
mod error;
mod message;
mod pipe;

pub use connection::{Call, CdpSession, Event, Events, Reply, connect};
pub use endpoint::{ConnectError, Connected, Endpoint};
pub use error::CdpError;
pub use message::decode;
pub use pipe::MESSAGE_LIMIT;
