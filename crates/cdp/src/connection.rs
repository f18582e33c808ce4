//! Sessions, the request table, and the two tasks that move messages.

pub(crate) mod socket;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::error::CdpError;
use crate::message::{Envelope, decode, id_of_head};
use crate::pipe::{Frame, FrameReader, MESSAGE_LIMIT, write_all};

/// An event of the browser or of one session, in wire order.
#[derive(Debug)]
pub struct Event {
    /// The session that it belongs to; `None` for the browser itself.
    pub session: Option<Arc<str>>,
    /// Domain and name, like `Page.frameNavigated`.
    pub method: Box<str>,
    /// The parameters, undecoded.
    pub params: Box<RawValue>,
}

/// The stream of all events. It ends when the connection closes.
pub type Events = mpsc::UnboundedReceiver<Event>;

/// The browser, or one page or frame of it, to send commands to. Cheap to clone.
///
/// There is no call without a session: several clients will share one connection, and each has its own.
#[derive(Clone)]
pub struct CdpSession {
    shared: Arc<Shared>,
    id: Option<Arc<str>>,
}

impl std::fmt::Debug for CdpSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CdpSession({})", self.id.as_deref().unwrap_or("browser"))
    }
}

struct Shared {
    next_id: AtomicU64,
    /// Events that were handed out so far.
    events: AtomicU64,
    table: Mutex<Table>,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    closed: CancellationToken,
}

#[derive(Default)]
struct Table {
    closed: bool,
    pending: HashMap<u64, Pending>,
}

struct Pending {
    session: Option<Arc<str>>,
    method: &'static str,
    reply: oneshot::Sender<Result<Box<RawValue>, CdpError>>,
}

/// Starts the client on two byte streams. Gives the browser's own session and the events.
pub fn connect(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> (CdpSession, Events) {
    connect_with_limit(input, output, MESSAGE_LIMIT)
}

fn connect_with_limit(
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    limit: usize,
) -> (CdpSession, Events) {
    let (shared, queue) = Shared::new();
    let (events, receiver) = mpsc::unbounded_channel();
    let closed = shared.closed.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = write_all(output, queue) => {}
            () = closed.cancelled() => {}
        }
    });
    let reader = shared.clone();
    tokio::spawn(async move {
        let mut frames = FrameReader::new(input, limit);
        // Ends with the pipe, or when the owner lets go of the browser.
        while let Some(Some(frame)) = reader.closed.run_until_cancelled(frames.next()).await {
            reader.dispatch(frame, &events);
        }
        reader.close();
    });
    (CdpSession { shared, id: None }, receiver)
}

impl CdpSession {
    /// Sends a command now; the returned future gives the answer. Dropping it forgets the call (the browser
    /// still carries it out).
    pub fn call(&self, method: &'static str, params: impl Serialize) -> Call {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, receiver) = oneshot::channel();
        let call = Call { id, method, shared: self.shared.clone(), receiver };
        let message = match encode(id, method, self.id.as_deref(), params) {
            Ok(message) => message,
            Err(reason) => {
                let _ = reply.send(Err(CdpError::Unexpected { method, reason: reason.to_string() }));
                return call;
            }
        };
        {
            let mut table = self.shared.table();
            if table.closed {
                let _ = reply.send(Err(CdpError::Closed));
                return call;
            }
            table.pending.insert(id, Pending { session: self.id.clone(), method, reply });
        }
        let _ = self.shared.outgoing.send(message);
        call
    }

    /// The session with this id on the same connection.
    pub fn session(&self, id: Arc<str>) -> Self {
        Self { shared: self.shared.clone(), id: Some(id) }
    }

    /// The id of this session; `None` for the browser's own.
    pub fn id(&self) -> Option<&Arc<str>> {
        self.id.as_ref()
    }

    /// How many events have come so far. Answers go straight to their callers and may overtake events that came
    /// before them; with this number a caller can wait until those are taken in.
    pub fn events_so_far(&self) -> u64 {
        self.shared.events.load(Ordering::Acquire)
    }

    /// Whether the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.shared.table().closed
    }

    /// Closes the connection from our side: every wait ends with [`CdpError::Closed`]. A Chromium at the end of a
    /// pipe ends itself; one at the end of a WebSocket goes on without us.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Completes when the connection is closed.
    pub async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }
}

fn encode(
    id: u64,
    method: &str,
    session: Option<&str>,
    params: impl Serialize,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Command<'a, P> {
        id: u64,
        method: &'a str,
        params: P,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<&'a str>,
    }
    serde_json::to_vec(&Command { id, method, params, session_id: session })
}

/// A command under way. Its entry in the request table ends with it.
#[must_use = "an answer, or an error, comes out of it"]
pub struct Call {
    id: u64,
    method: &'static str,
    shared: Arc<Shared>,
    receiver: oneshot::Receiver<Result<Box<RawValue>, CdpError>>,
}

impl Future for Call {
    type Output = Result<Reply, CdpError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let method = self.method;
        Pin::new(&mut self.receiver).poll(cx).map(|answer| {
            let raw = answer.unwrap_or(Err(CdpError::Closed))?;
            Ok(Reply { method, raw })
        })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.shared.table().pending.remove(&self.id);
    }
}

/// A command's result.
#[derive(Debug)]
pub struct Reply {
    method: &'static str,
    raw: Box<RawValue>,
}

impl Reply {
    /// The result as a type; unknown fields are ignored.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, CdpError> {
        decode(&self.raw)
            .map_err(|error| CdpError::Unexpected { method: self.method, reason: error.to_string() })
    }
}

impl Shared {
    /// No calls yet, and the queue of what is to be sent.
    fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Vec<u8>>) {
        let (outgoing, queue) = mpsc::unbounded_channel();
        let (next_id, events) = (AtomicU64::new(1), AtomicU64::new(0));
        let closed = CancellationToken::new();
        (Arc::new(Self { next_id, events, table: Mutex::default(), outgoing, closed }), queue)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dispatch(&self, frame: Frame, events: &mpsc::UnboundedSender<Event>) {
        let bytes = match frame {
            Frame::Message(bytes) => bytes,
            Frame::Oversized { head, bytes } => return self.drop_oversized(&head, bytes),
        };
        let text = String::from_utf8_lossy(&bytes);
        match Envelope::parse(&text) {
            Ok(Envelope { id: Some(id), result, error, .. }) => self.answer(id, result, error),
            Ok(envelope) => self.announce(&envelope, events),
            Err(error) => self.drop_unreadable(&bytes, &error),
        }
    }

    fn answer(&self, id: u64, result: Option<&RawValue>, error: Option<crate::message::WireError>) {
        let Some(pending) = self.table().pending.remove(&id) else { return };
        let method = pending.method;
        let answer = match error {
            Some(error) => Err(CdpError::Refused { method, code: error.code, message: error.message }),
            None => Ok(result.map_or_else(empty_object, ToOwned::to_owned)),
        };
        let _ = pending.reply.send(answer);
    }

    fn announce(&self, envelope: &Envelope<'_>, events: &mpsc::UnboundedSender<Event>) {
        let Some(method) = envelope.method.as_deref() else { return };
        let session: Option<Arc<str>> = envelope.session_id.as_deref().map(Arc::from);
        let params = envelope.params.map_or_else(empty_object, ToOwned::to_owned);
        match method {
            // Chromium answers nothing that was under way when a session ends or its renderer dies.
            "Target.detachedFromTarget" => self.fail_session(detached_id(&params), &CdpError::Detached),
            "Inspector.targetCrashed" => self.fail_session(session.clone(), &CdpError::Crashed),
            _ => {}
        }
        // Counted first: who has an answer in hand knows of every event that came before it.
        self.events.fetch_add(1, Ordering::Release);
        let _ = events.send(Event { session, method: method.into(), params });
    }

    fn drop_oversized(&self, head: &[u8], bytes: usize) {
        let pending = id_of_head(head).and_then(|id| self.table().pending.remove(&id));
        match pending {
            Some(pending) => {
                let _ = pending.reply.send(Err(CdpError::TooLarge { method: pending.method, bytes }));
            }
            None => tracing::warn!(bytes, "an event of the browser was too large and was thrown away"),
        }
    }

    fn drop_unreadable(&self, bytes: &[u8], error: &serde_json::Error) {
        tracing::debug!(%error, bytes = bytes.len(), "a message of the browser was not understood");
        if let Some(pending) = id_of_head(bytes).and_then(|id| self.table().pending.remove(&id)) {
            let unexpected = CdpError::Unexpected { method: pending.method, reason: error.to_string() };
            let _ = pending.reply.send(Err(unexpected));
        }
    }

    fn fail_session(&self, session: Option<Arc<str>>, error: &CdpError) {
        if session.is_none() {
            return;
        }
        let mut table = self.table();
        let ids: Vec<u64> =
            table.pending.iter().filter(|(_, p)| p.session == session).map(|(id, _)| *id).collect();
        for pending in ids.into_iter().filter_map(|id| table.pending.remove(&id)) {
            let _ = pending.reply.send(Err(error.clone()));
        }
    }

    fn close(&self) {
        let mut table = self.table();
        table.closed = true;
        for (_, pending) in table.pending.drain() {
            let _ = pending.reply.send(Err(CdpError::Closed));
        }
        drop(table);
        self.closed.cancel();
    }
}

fn detached_id(params: &RawValue) -> Option<Arc<str>> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Detached {
        session_id: Arc<str>,
    }
    decode::<Detached>(params).ok().map(|d| d.session_id)
}

fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".into()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
