//! The server role: one legacy session over a byte stream (spec: Lifecycle, Utilities, Transports "stdio").
//!
//! This crate owns what every server must do alike (handshake, `ping`, requests in flight, cancellation, batches,
//! the end); a [`Handler`] owns the methods.

mod handshake;
mod in_flight;
mod peer;
mod session;
mod sink;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

pub use handshake::{ClientInfo, InitializeParams, InitializeResult};
pub use peer::{Peer, Progress};

use crate::lines::LineReader;
use crate::wire::{RequestId, RpcError};
use crate::writer;

/// What a server does with the requests of its client.
pub trait Handler: Send + Sync + 'static {
    /// Answers `initialize`; the protocol version is negotiated by this crate. Called in order with the other
    /// messages, so it must not block.
    fn initialize(&self, params: &InitializeParams) -> InitializeResult;

    /// Answers any request except `initialize` and `ping`, with [`RpcError::method_not_found`] for what it does not
    /// know. Each call is a task of its own. Once `cx.cancel` fires, the answer is dropped or soon will be.
    fn call(
        &self,
        cx: RequestContext,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> impl Future<Output = Result<Box<RawValue>, RpcError>> + Send;

    /// The client said `notifications/initialized`: notifications may be sent from now on. Must not block.
    fn initialized(&self, peer: &Peer) {
        let _ = peer;
    }

    /// Any notification except `notifications/initialized` and `notifications/cancelled`. Must not block.
    fn notification(&self, method: &str, params: Option<&RawValue>) {
        let _ = (method, params);
    }
}

/// What a handler gets along with a request.
#[derive(Clone, Debug)]
pub struct RequestContext {
    /// The client's id, exactly as it was sent.
    pub id: RequestId,
    /// Fires when the client cancels this request, goes away, or the server ends.
    pub cancel: CancellationToken,
    /// The way to the client.
    pub peer: Peer,
    /// Present when the client asked for progress.
    pub progress: Option<Progress>,
}

/// Why [`serve`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The client closed our input; every accepted request was answered.
    InputClosed,
    /// The client closed our output; there was nobody left to answer.
    PeerGone,
    /// `shutdown` fired; every accepted request was answered.
    Shutdown,
}

/// Serves one client until it leaves or `shutdown` fires.
///
/// At the end every accepted request is still answered: handlers get `drain` to finish by themselves, then they are
/// cancelled and get 250 ms more, then the rest is answered with an error and dropped. A client that reads no more
/// without closing holds the return up by `drain`, or a second when that is longer.
///
/// Dropping the future drops the handlers' futures. When `input` is `tokio::io::stdin`, its blocking read outlives
/// this function: end the runtime with `shutdown_background`.
pub async fn serve<H, R, W>(
    handler: Arc<H>,
    input: R,
    output: W,
    shutdown: CancellationToken,
    drain: Duration,
) -> Ended
where
    H: Handler,
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (outbox, writer) = writer::spawn(output);
    let mut session = session::Session::new(handler, outbox);
    let ended = session.run(LineReader::new(input), &shutdown).await;
    let ended = session.wind_down(ended, drain).await;
    writer.abort();
    ended
}
