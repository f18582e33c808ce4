//! The client role: enough to talk to a legacy server over a byte stream.
//!
//! Nothing here times out by itself: every wait ends when the stream does. For anything shorter use
//! [`Client::start_request`] with `tokio::time::timeout`, then [`Client::cancel`].

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::lines::{Frame, LineReader};
use crate::version;
use crate::wire::{self, Incoming, RequestId, RpcError};
use crate::writer::{self, Outbox};

/// A notification from the server: method and params.
pub type ServerNotification = (String, Option<Box<RawValue>>);

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server answered with an error.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// The stream ended before the answer; whether the server did the work is unknown.
    #[error("the server closed the connection before it answered")]
    Closed,
    /// We cancelled the request.
    #[error("the request was cancelled")]
    Cancelled,
    /// The server's answer was no JSON-RPC response.
    #[error("the server's answer is malformed: {0}")]
    Malformed(String),
    /// The server speaks only a version that we do not.
    #[error("the server speaks protocol version {0:?}, which is unknown here")]
    Version(String),
    /// The params could not be written as JSON; nothing was sent.
    #[error("the params cannot be written as JSON: {0}")]
    Params(#[from] serde_json::Error),
}

type Answer = Result<Box<RawValue>, ClientError>;

/// A connection to a server. Clones share it; when the last one is dropped, the server's input is closed.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    outbox: Outbox,
    next_id: Arc<AtomicU64>,
    /// Ends the reading task with the last clone.
    _alive: Arc<DropGuard>,
}

#[derive(Debug, Default)]
struct Shared {
    /// `None` once the stream has ended.
    waiting: Mutex<Option<HashMap<RequestId, oneshot::Sender<Answer>>>>,
    subscribers: Mutex<Vec<mpsc::UnboundedSender<ServerNotification>>>,
}

impl Client {
    /// Starts to talk over a pair of streams: the server's output is our input.
    pub fn connect<R, W>(input: R, output: W) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (outbox, _writer) = writer::spawn(output);
        let shared = Arc::new(Shared { waiting: Mutex::new(Some(HashMap::new())), ..Shared::default() });
        let dropped = CancellationToken::new();
        let alive = Arc::new(dropped.clone().drop_guard());
        tokio::spawn(read(LineReader::new(input), Arc::clone(&shared), outbox.clone(), dropped));
        Self { shared, outbox, next_id: Arc::new(AtomicU64::new(1)), _alive: alive }
    }

    /// Does the handshake and gives the server's `initialize` result.
    ///
    /// # Errors
    ///
    /// As for [`Client::request`], and when the server chose a version that we do not know.
    pub async fn initialize(&self, name: &str, version: &str) -> Answer {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Chosen {
            protocol_version: String,
        }
        let params = serde_json::json!({
            "protocolVersion": version::NEWEST,
            "capabilities": {},
            "clientInfo": { "name": name, "version": version },
        });
        let result = self.request("initialize", params).await?;
        let chosen: Chosen = serde_json::from_str(result.get())
            .map_err(|error| ClientError::Malformed(format!("initialize: {error}")))?;
        if !version::KNOWN.contains(&chosen.protocol_version.as_str()) {
            return Err(ClientError::Version(chosen.protocol_version));
        }
        self.notify("notifications/initialized", ())?;
        Ok(result)
    }

    /// Sends a request and waits for its result. Params that serialize to `null`, such as `()`, are left out.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub async fn request(&self, method: &str, params: impl Serialize) -> Answer {
        self.start_request(method, params)?.await
    }

    /// Sends a request; its result comes from the returned future, which also knows the id.
    ///
    /// # Errors
    ///
    /// The params cannot be written as JSON.
    pub fn start_request(&self, method: &str, params: impl Serialize) -> Result<Pending, ClientError> {
        let params = raw_params(params)?;
        let id = RequestId::from(self.next_id.fetch_add(1, Ordering::Relaxed));
        let (sender, answer) = oneshot::channel();
        let mut waiting = lock(&self.shared.waiting);
        // When nothing can be sent or received any more, the sender is dropped here, and the future says so.
        if let Some(waiting) = waiting.as_mut().filter(|_| !self.outbox.is_closed()) {
            waiting.insert(id.clone(), sender);
            self.outbox.send(wire::request(&id, method, params.as_deref()));
        }
        Ok(Pending { id, answer })
    }

    /// Sends a notification. Params that serialize to `null`, such as `()`, are left out.
    ///
    /// # Errors
    ///
    /// The params cannot be written as JSON.
    pub fn notify(&self, method: &str, params: impl Serialize) -> Result<(), ClientError> {
        let params = raw_params(params)?;
        self.outbox.send(wire::notification(method, params.as_deref()));
        Ok(())
    }

    /// Cancels a request of ours: its wait ends with [`ClientError::Cancelled`] and the server is told. Does
    /// nothing when the answer is already here.
    pub fn cancel(&self, id: &RequestId) {
        if let Some(sender) = self.shared.take(id) {
            // Nobody may be waiting any more; the server is told all the same.
            let _ = sender.send(Err(ClientError::Cancelled));
            // A map with an id in it is always JSON.
            let _ = self.notify("notifications/cancelled", HashMap::from([("requestId", id)]));
        }
    }

    /// The server's notifications from now on, in order. Each caller gets all of them; those that came earlier are
    /// gone, so ask before [`Client::initialize`].
    #[must_use]
    pub fn notifications(&self) -> mpsc::UnboundedReceiver<ServerNotification> {
        let (sender, receiver) = mpsc::unbounded_channel();
        // Held while subscribing: after the end of the stream the receiver must end too.
        let waiting = lock(&self.shared.waiting);
        if waiting.is_some() {
            lock(&self.shared.subscribers).push(sender);
        }
        receiver
    }

    /// Closes the server's input after everything queued was written. Answers still arrive; new requests do not
    /// reach the server any more and end with it.
    pub async fn close_input(&self) {
        self.outbox.finish().await;
    }
}

/// The wait for one answer. Dropping it does not cancel the request.
#[derive(Debug)]
pub struct Pending {
    id: RequestId,
    answer: oneshot::Receiver<Answer>,
}

impl Pending {
    /// The request's id, for [`Client::cancel`].
    #[must_use]
    pub fn id(&self) -> &RequestId {
        &self.id
    }
}

impl Future for Pending {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let answer = ready!(Pin::new(&mut self.answer).poll(cx));
        Poll::Ready(answer.unwrap_or(Err(ClientError::Closed)))
    }
}

async fn read<R: AsyncRead + Unpin>(
    mut lines: LineReader<R>,
    shared: Arc<Shared>,
    outbox: Outbox,
    dropped: CancellationToken,
) {
    loop {
        let frame = tokio::select! {
            biased;
            () = dropped.cancelled() => break,
            // Before the next branch: a server that died may have left answers in the pipe.
            frame = lines.next() => frame,
            () = outbox.gone().cancelled() => break,
        };
        match frame {
            Ok(Some(Frame::Line(line))) => shared.line(&line, &outbox),
            Ok(Some(Frame::TooLong { bytes })) => {
                tracing::warn!(bytes, "a message over the size limit was dropped");
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "the server's output cannot be read any more");
                break;
            }
        }
    }
    shared.end();
}

impl Shared {
    fn take(&self, id: &RequestId) -> Option<oneshot::Sender<Answer>> {
        lock(&self.waiting).as_mut()?.remove(id)
    }

    fn line(&self, line: &[u8], outbox: &Outbox) {
        match wire::parse(line) {
            Ok(Incoming::Response { id: Some(id), result }) => {
                self.answer(&id, result.map_err(ClientError::Rpc))
            }
            Ok(Incoming::Response { id: None, result }) => {
                tracing::warn!(error = ?result.err(), "the server could not read a message");
            }
            Ok(Incoming::Notification { method, params }) => self.publish(&method, params.as_deref()),
            Ok(Incoming::Request { id, method, .. }) => outbox.send(answer_server(&id, &method)),
            Err(failure) => match failure.id() {
                Some(id) => self.answer(id, Err(ClientError::Malformed(failure.to_string()))),
                None => tracing::warn!(%failure, "the server sent a line that is no message"),
            },
        }
    }

    fn answer(&self, id: &RequestId, answer: Answer) {
        match self.take(id) {
            // The one who asked may have stopped waiting.
            Some(sender) => drop(sender.send(answer)),
            None => tracing::debug!(%id, "an answer that nobody waits for"),
        }
    }

    fn publish(&self, method: &str, params: Option<&RawValue>) {
        let notification = || (method.to_owned(), params.map(ToOwned::to_owned));
        lock(&self.subscribers).retain(|subscriber| subscriber.send(notification()).is_ok());
    }

    /// Ends every wait, now and later.
    fn end(&self) {
        lock(&self.waiting).take();
        lock(&self.subscribers).clear();
    }
}

/// We offer no client features, so a server may ask only whether we are there.
fn answer_server(id: &RequestId, method: &str) -> Vec<u8> {
    if method == "ping" {
        let empty: &RawValue = serde_json::from_str("{}").expect("an object is JSON");
        return wire::response(id, Ok(empty));
    }
    wire::response(id, Err(&RpcError::method_not_found(method)))
}

fn raw_params(params: impl Serialize) -> Result<Option<Box<RawValue>>, ClientError> {
    let params = to_raw_value(&params)?;
    Ok((params.get() != "null").then_some(params))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
