//! One client's session: the loop that reads, and the end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::AsyncRead;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::in_flight::{InFlight, Ticket};
use super::sink::{Batch, Sink};
use super::{Ended, Handler, InitializeParams, Peer, Progress, RequestContext};
use crate::lines::{Frame, LineReader};
use crate::version;
use crate::wire::{
    Incoming, ParseFailure, RequestId, RpcError, code, error_response, parse, parse_batch, response,
};
use crate::writer::Outbox;

/// How long cancelled handlers may take to answer.
const GRACE: Duration = Duration::from_millis(250);
/// The least time that a client gets to read the last answers.
const FLUSH: Duration = Duration::from_secs(1);
/// A batch of one-byte members would be answered with eighty times its size.
const MAX_BATCH: usize = 1024;

type Answer = Result<Box<RawValue>, RpcError>;

pub(super) struct Session<H> {
    handler: Arc<H>,
    outbox: Outbox,
    peer: Peer,
    open: Arc<InFlight>,
    tasks: JoinSet<()>,
    /// Parent of every request's token.
    root: CancellationToken,
    /// Fires `root` when the session is dropped half-way.
    _root: DropGuard,
    version: Option<&'static str>,
}

impl<H: Handler> Session<H> {
    pub(super) fn new(handler: Arc<H>, outbox: Outbox) -> Self {
        let root = CancellationToken::new();
        Self {
            handler,
            peer: Peer::new(outbox.clone()),
            outbox,
            open: Arc::default(),
            tasks: JoinSet::new(),
            _root: root.clone().drop_guard(),
            root,
            version: None,
        }
    }

    /// Accepts messages until there are no more.
    pub(super) async fn run<R>(&mut self, mut lines: LineReader<R>, shutdown: &CancellationToken) -> Ended
    where
        R: AsyncRead + Unpin,
    {
        let gone = self.outbox.gone().clone();
        loop {
            let frame = tokio::select! {
                biased;
                () = gone.cancelled() => return Ended::PeerGone,
                () = shutdown.cancelled() => return Ended::Shutdown,
                // Only to let go of what has ended.
                Some(_) = self.tasks.join_next() => continue,
                frame = lines.next() => frame,
            };
            match frame {
                Ok(Some(Frame::Line(line))) => self.line(&line),
                Ok(Some(Frame::TooLong { bytes })) => self.too_long(bytes, lines.limit()),
                Ok(None) => return Ended::InputClosed,
                Err(error) => {
                    tracing::warn!(%error, "the input cannot be read any more");
                    return Ended::InputClosed;
                }
            }
        }
    }

    fn too_long(&self, bytes: u64, limit: usize) {
        let message = format!("Parse error: the message has {bytes} bytes, more than the limit of {limit}");
        self.outbox.send(error_response(None, &RpcError::parse_error(message)));
    }

    fn line(&mut self, line: &[u8]) {
        let sink = Sink::Line(self.outbox.clone());
        match parse(line) {
            Err(ParseFailure::Batch) if self.version == Some(version::BATCHING) => self.batch(line, sink),
            parsed => self.message(parsed, sink),
        }
    }

    fn batch(&mut self, line: &[u8], sink: Sink) {
        let members = parse_batch(line).unwrap_or_default();
        if members.is_empty() || members.len() > MAX_BATCH {
            let message =
                format!("Invalid request: a batch has 1 to {MAX_BATCH} messages, not {}", members.len());
            sink.put(error_response(None, &RpcError::invalid_request(message)));
            return;
        }
        let batch = Batch::new(self.outbox.clone());
        for member in members {
            let sink = Sink::Batch(Arc::clone(&batch));
            match member {
                Ok(Incoming::Request { id, method, .. }) if method == "initialize" => {
                    let error =
                        RpcError::invalid_request("Invalid request: initialize must not be in a batch");
                    sink.put(error_response(Some(&id), &error));
                }
                member => self.message(member, sink),
            }
        }
    }

    fn message(&mut self, parsed: Result<Incoming, ParseFailure>, sink: Sink) {
        match parsed {
            Ok(Incoming::Request { id, method, params }) => self.request(id, method, params, sink),
            Ok(Incoming::Notification { method, params }) => self.notification(&method, params.as_deref()),
            Ok(Incoming::Response { id, .. }) => {
                tracing::debug!(?id, "an answer, but nothing was asked");
            }
            Err(failure) => sink.put(error_response(failure.id(), &failure.to_error())),
        }
    }

    fn request(&mut self, id: RequestId, method: String, params: Option<Box<RawValue>>, sink: Sink) {
        if self.open.contains(&id) {
            let error = RpcError::invalid_request("Invalid request: this id is already in flight");
            sink.put(error_response(Some(&id), &error));
            return;
        }
        match method.as_str() {
            // Answered on the spot: initialize because the next line may depend on it, ping because it asks whether
            // we are there.
            "initialize" => {
                let answer = self.initialize(params.as_deref());
                sink.put(response(&id, answer.as_deref()));
            }
            "ping" => sink.put(response(&id, Ok(empty_object()))),
            _ => self.spawn_call(id, method, params, sink),
        }
    }

    fn initialize(&mut self, params: Option<&RawValue>) -> Answer {
        let params = InitializeParams::from_raw(params);
        let version = version::negotiate(params.protocol_version.as_deref());
        self.version = Some(version);
        let result = guarded(|| self.handler.initialize(&params))?;
        result.to_raw(version).map_err(|error| RpcError::internal(error.to_string()))
    }

    fn spawn_call(&mut self, id: RequestId, method: String, params: Option<Box<RawValue>>, sink: Sink) {
        let ticket = self.open.open(id.clone(), self.root.child_token(), sink);
        let cx = RequestContext {
            id,
            cancel: ticket.cancel.clone(),
            peer: self.peer.clone(),
            progress: Progress::for_request(params.as_deref(), &ticket, &self.peer),
        };
        let call = call(Arc::clone(&self.handler), cx, method, params);
        self.tasks.spawn(finish(Arc::clone(&self.open), ticket, call));
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        // A panic in a hook is the handler's own; there is nobody to tell.
        match method {
            "notifications/cancelled" => self.cancelled(params),
            "notifications/initialized" => drop(guarded(|| self.handler.initialized(&self.peer))),
            _ => drop(guarded(|| self.handler.notification(method, params))),
        }
    }

    /// `initialize` and `ping` are never open, so they cannot be cancelled either.
    fn cancelled(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let params = params.and_then(|params| serde_json::from_str::<Params>(params.get()).ok());
        match params.and_then(|params| RequestId::from_raw(params.request_id)) {
            Some(id) => self.open.cancel(&id),
            None => tracing::debug!("a cancellation that names no request"),
        }
    }

    /// Sees to it that what was accepted is answered, then ends everything.
    pub(super) async fn wind_down(&mut self, ended: Ended, drain: Duration) -> Ended {
        let gone = self.outbox.gone().clone();
        tokio::select! {
            biased;
            () = gone.cancelled() => {}
            _ = timeout(drain, self.all_answered()) => {}
        }
        self.root.cancel();
        // Also without a client: a cancelled handler may have something to put in order.
        let _ = timeout(GRACE, self.all_ended()).await;
        let error =
            RpcError::new(code::SHUTTING_DOWN, "The bridge is shutting down; the request was not finished");
        self.open.fail_all(&error);
        self.tasks.abort_all();
        if gone.is_cancelled() {
            return Ended::PeerGone;
        }
        match timeout(drain.max(FLUSH), self.outbox.finish()).await {
            Ok(true) => ended,
            Ok(false) => Ended::PeerGone,
            Err(_) => {
                tracing::warn!("the client did not read the last answers in time");
                ended
            }
        }
    }

    async fn all_answered(&mut self) {
        // Cancelled requests may still run but owe nothing.
        while !self.open.is_empty() && self.tasks.join_next().await.is_some() {}
    }

    async fn all_ended(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn call<H: Handler>(
    handler: Arc<H>,
    cx: RequestContext,
    method: String,
    params: Option<Box<RawValue>>,
) -> Answer {
    handler.call(cx, &method, params).await
}

async fn finish(open: Arc<InFlight>, ticket: Arc<Ticket>, call: impl Future<Output = Answer>) {
    let answer = AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| Err(panicked()));
    open.finish(&ticket, &answer);
}

/// Runs a handler's code so that a panic harms only the message at hand.
fn guarded<T>(code: impl FnOnce() -> T) -> Result<T, RpcError> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|_| panicked())
}

fn panicked() -> RpcError {
    RpcError::internal("Internal error: the request handler panicked")
}

fn empty_object() -> &'static RawValue {
    serde_json::from_str("{}").expect("an object is JSON")
}
