//! Where answers go: a line each, or together in one batch.

use std::sync::{Arc, Mutex, PoisonError};

use crate::writer::Outbox;

/// Takes the answer to one message. Dropping it unused means that there is none.
#[derive(Clone, Debug)]
pub(super) enum Sink {
    Line(Outbox),
    Batch(Arc<Batch>),
}

impl Sink {
    pub(super) fn put(self, message: Vec<u8>) {
        match self {
            Self::Line(outbox) => outbox.send(message),
            Self::Batch(batch) => {
                batch.answers.lock().unwrap_or_else(PoisonError::into_inner).push(message);
            }
        }
    }
}

/// The answers to a batch (spec 2025-03-26). Every member that may still answer holds a reference, so the array goes
/// out when the last one has answered or given up; with nothing in it, it does not go out at all.
#[derive(Debug)]
pub(super) struct Batch {
    outbox: Outbox,
    answers: Mutex<Vec<Vec<u8>>>,
}

impl Batch {
    pub(super) fn new(outbox: Outbox) -> Arc<Self> {
        Arc::new(Self { outbox, answers: Mutex::default() })
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let answers = std::mem::take(self.answers.get_mut().unwrap_or_else(PoisonError::into_inner));
        if !answers.is_empty() {
            let array = answers.join(&b","[..]);
            self.outbox.send([b"[", &array[..], b"]"].concat());
        }
    }
}
