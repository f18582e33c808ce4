//! What each address said that is no browser.

use std::fmt;
use std::io;

use tokio_tungstenite::tungstenite;

/// Why one address is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reason {
    Refused,
    TimedOut,
    /// The system's words.
    Io(String),
    Unresolved,
    /// The status of the answer to a plain request.
    Status(u16),
    /// The status of the answer to the request for a WebSocket.
    NoWebSocket(u16),
    NoDevTools(&'static str),
}

impl From<io::Error> for Reason {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::TimedOut => Self::TimedOut,
            kind => Self::Io(kind.to_string()),
        }
    }
}

impl From<tungstenite::Error> for Reason {
    fn from(error: tungstenite::Error) -> Self {
        match error {
            tungstenite::Error::Http(answer) => Self::NoWebSocket(answer.status().as_u16()),
            tungstenite::Error::Io(error) => error.into(),
            // The error's own words may repeat the address.
            _ => Self::NoDevTools("it does not speak WebSocket"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => write!(f, "refused"),
            Self::TimedOut => write!(f, "timed out"),
            Self::Io(words) => write!(f, "{words}"),
            Self::Unresolved => write!(f, "the name cannot be resolved"),
            Self::Status(status) => write!(f, "HTTP status {status} to /json/version"),
            Self::NoWebSocket(status) => write!(f, "HTTP status {status} to the request for a WebSocket"),
            Self::NoDevTools(why) => write!(f, "not a DevTools endpoint: {why}"),
        }
    }
}

/// No address of an endpoint is a browser.
#[derive(Debug, Clone)]
pub struct ConnectError {
    endpoint: String,
    /// Each address, and what it said.
    tried: Vec<(String, Reason)>,
}

impl ConnectError {
    pub(super) fn new(endpoint: String, tried: Vec<(String, Reason)>) -> Self {
        Self { endpoint, tried }
    }

    /// What helps.
    pub fn hint(&self) -> &'static str {
        let said = |wanted: fn(&Reason) -> bool| self.tried.iter().any(|(_, reason)| wanted(reason));
        if said(|reason| {
            matches!(reason, Reason::Status(401 | 403 | 407) | Reason::NoWebSocket(401 | 403 | 407))
        }) {
            "It wants credentials or refuses ours: give them in the address (http://user:password@host:port), or ask whoever runs it."
        } else if said(|reason| matches!(reason, Reason::NoWebSocket(_))) {
            "A browser's id changes with every start: give http://host:port, and it is asked for."
        } else if said(|reason| matches!(reason, Reason::Status(_) | Reason::NoDevTools(_))) {
            "Something else may listen there: correct --connect, or give the browser's whole ws:// address."
        } else if said(|reason| matches!(reason, Reason::Unresolved)) {
            "Correct the host name in --connect."
        } else if said(|reason| matches!(reason, Reason::TimedOut)) {
            "The browser may hang, or something on the way swallows what is sent; or correct --connect."
        } else {
            "Start the browser with --remote-debugging-port=PORT (Chrome opens none for its default profile: give it a --user-data-dir too), or correct --connect."
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tried: Vec<String> =
            self.tried.iter().map(|(address, reason)| format!("{address} ({reason})")).collect();
        write!(f, "No browser could be reached at {}. Tried: {}.", self.endpoint, tried.join(", "))
    }
}

impl std::error::Error for ConnectError {}
