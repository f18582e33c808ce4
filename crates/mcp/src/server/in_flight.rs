//! Requests that still owe an answer (spec: Utilities, "Cancellation").

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::sink::Sink;
use crate::wire::{RequestId, RpcError, response};

/// The right to answer one request, once. Open until the answer went out or the client gave the request up; what is
/// sent about the request is sent under the same lock, so nothing can follow the answer or the cancellation.
#[derive(Debug)]
pub(super) struct Ticket {
    id: RequestId,
    pub(super) cancel: CancellationToken,
    sink: Mutex<Option<Sink>>,
}

impl Ticket {
    fn answer(&self, message: Vec<u8>) {
        let mut sink = lock(&self.sink);
        if let Some(sink) = sink.take() {
            sink.put(message);
        }
    }

    fn give_up(&self) {
        lock(&self.sink).take();
        self.cancel.cancel();
    }

    /// Runs `send` unless the request is over.
    pub(super) fn while_open(&self, send: impl FnOnce()) {
        let sink = lock(&self.sink);
        if sink.is_some() {
            send();
        }
    }
}

/// All open tickets of a session, by exact id.
#[derive(Debug, Default)]
pub(super) struct InFlight(Mutex<HashMap<RequestId, Arc<Ticket>>>);

impl InFlight {
    pub(super) fn contains(&self, id: &RequestId) -> bool {
        lock(&self.0).contains_key(id)
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    /// Opens a ticket. The caller has made sure that the id is free.
    pub(super) fn open(&self, id: RequestId, cancel: CancellationToken, sink: Sink) -> Arc<Ticket> {
        let ticket = Arc::new(Ticket { id: id.clone(), cancel, sink: Mutex::new(Some(sink)) });
        lock(&self.0).insert(id, Arc::clone(&ticket));
        ticket
    }

    /// Answers and forgets a request; after a cancellation it only forgets.
    pub(super) fn finish(&self, ticket: &Arc<Ticket>, result: &Result<Box<RawValue>, RpcError>) {
        let message = response(&ticket.id, result.as_deref());
        // In one step: the client may use the id again as soon as it has the answer, and an empty table says that
        // everything was answered. After a cancellation the id may be another request's, so only our own entry goes.
        let mut table = lock(&self.0);
        if table.get(&ticket.id).is_some_and(|entry| Arc::ptr_eq(entry, ticket)) {
            table.remove(&ticket.id);
        }
        ticket.answer(message);
    }

    /// The client gave this request up. Unknown ids are late cancellations and mean nothing.
    pub(super) fn cancel(&self, id: &RequestId) {
        let ticket = lock(&self.0).remove(id);
        match ticket {
            Some(ticket) => ticket.give_up(),
            None => tracing::debug!(%id, "a cancellation for no open request"),
        }
    }

    /// Answers everything that is left.
    pub(super) fn fail_all(&self, error: &RpcError) {
        let tickets = std::mem::take(&mut *lock(&self.0));
        for ticket in tickets.into_values() {
            ticket.answer(response(&ticket.id, Err(error)));
        }
    }
}

/// A panic elsewhere leaves these tables whole: no code panics while it holds a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
