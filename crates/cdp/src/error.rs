//! How a call can end badly.

/// Why a call got no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CdpError {
    /// The connection is closed: the browser is gone, or going, or out of reach.
    #[error("the browser closed the connection")]
    Closed,
    /// The target of this session is gone, or somebody detached from it.
    #[error("the page is gone")]
    Detached,
    /// The renderer process behind this session crashed while the call was under way.
    #[error("the page's renderer process crashed")]
    Crashed,
    /// The browser refused the call.
    #[error("{method}: {message} ({code})")]
    Refused {
        /// The method that was called.
        method: &'static str,
        /// JSON-RPC code, as Chromium gives it.
        code: i64,
        /// Chromium's own words.
        message: String,
    },
    /// The answer was larger than [`crate::MESSAGE_LIMIT`] and was thrown away; the connection goes on.
    #[error("{method}: the browser's answer has {bytes} bytes, more than is read")]
    TooLarge {
        /// The method that was called.
        method: &'static str,
        /// Size of the answer.
        bytes: usize,
    },
    /// The answer does not have the shape that was asked for.
    #[error("{method}: unexpected answer: {reason}")]
    Unexpected {
        /// The method that was called.
        method: &'static str,
        /// What the decoder said.
        reason: String,
    },
}

impl CdpError {
    /// Whether the browser, page or renderer is gone, so that trying again on this session is useless.
    pub fn is_loss(&self) -> bool {
        matches!(self, Self::Closed | Self::Detached | Self::Crashed)
    }
}
