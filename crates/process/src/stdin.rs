//! A child's stdin, which both the caller and the job can close.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use tokio::io::AsyncWrite;
use tokio::process::ChildStdin;

#[derive(Default)]
struct State {
    pipe: Option<ChildStdin>,
    /// A writer that waits for room in the pipe; it must hear of a close.
    writer: Option<Waker>,
}

/// The writing end of a child's stdin. It closes when it is dropped, shut down, or when the job's ladder closes it;
/// writing then fails with `BrokenPipe`.
#[derive(Debug)]
pub struct JobStdin(Arc<Mutex<State>>);

/// The job's side of a [`JobStdin`].
pub(crate) struct StdinCloser(Weak<Mutex<State>>);

pub(crate) fn shared(pipe: ChildStdin) -> (JobStdin, StdinCloser) {
    let state = Arc::new(Mutex::new(State { pipe: Some(pipe), writer: None }));
    let closer = StdinCloser(Arc::downgrade(&state));
    (JobStdin(state), closer)
}

impl StdinCloser {
    pub(crate) fn close(&self) {
        if let Some(state) = self.0.upgrade() {
            close(&state);
        }
    }
}

fn close(state: &Mutex<State>) {
    let State { pipe, writer } = std::mem::take(&mut *state.lock().unwrap_or_else(PoisonError::into_inner));
    drop(pipe);
    if let Some(writer) = writer {
        writer.wake();
    }
}

impl JobStdin {
    fn with<T>(
        &self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(Pin<&mut ChildStdin>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pipe) = state.pipe.as_mut() else {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        };
        let result = poll(Pin::new(pipe), cx);
        state.writer = result.is_pending().then(|| cx.waker().clone());
        result
    }
}

impl AsyncWrite for JobStdin {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.with(cx, |pipe, cx| pipe.poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(cx, |pipe, cx| pipe.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        close(&self.0);
        Poll::Ready(Ok(()))
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("open", &self.pipe.is_some()).finish()
    }
}
