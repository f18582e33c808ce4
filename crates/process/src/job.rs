//! The handle to a running child.

use crate::tail::Tail;
use std::fmt;
use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit status, if it ended by itself.
    pub code: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// Whether it had been asked to end before.
    pub asked: bool,
}

impl Exit {
    /// What is said when the runtime went away before the child was waited for.
    const UNKNOWN: Self = Self { code: None, signal: None, asked: true };

    pub(crate) fn new(status: ExitStatus, asked: bool) -> Self {
        Self { code: status.code(), signal: status.signal(), asked }
    }

    /// Whether the exit status is 0.
    pub fn success(&self) -> bool {
        self.code == Some(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit status {code}"),
            (None, Some(signal)) => write!(f, "killed by signal {signal}"),
            (None, None) => f.write_str("ended in an unknown way"),
        }
    }
}

/// How urgently a job is to end. It only ever rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// Let it run.
    Run,
    /// With the full grace of its ladder.
    Stop,
    /// With the ladder cut to the times of our own exit.
    Exit,
    /// Without any wait.
    Kill,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) exit: Option<Exit>,
    /// The whole tree and its temporary folders are gone (or given up on, with a warning).
    pub(crate) done: bool,
}

/// A handle to a child. Clones share it. The job ends when the last handle is dropped, the supervisor's among them.
#[derive(Clone)]
pub struct Job(Arc<Handle>);

struct Handle {
    pid: u32,
    tail: Arc<Mutex<Tail>>,
    urgency: watch::Sender<Urgency>,
    progress: watch::Receiver<Progress>,
}

impl Job {
    pub(crate) fn new(
        pid: u32,
        tail: Arc<Mutex<Tail>>,
        urgency: watch::Sender<Urgency>,
        progress: watch::Receiver<Progress>,
    ) -> Self {
        Self(Arc::new(Handle { pid, tail, urgency, progress }))
    }

    /// The child's process id, which is also the id of its process group. It may be reused once the child has ended.
    pub fn pid(&self) -> u32 {
        self.0.pid
    }

    /// The last lines that the child wrote to stderr: at most 20, of 16 KiB in all, decoded as UTF-8 with losses, a
    /// last line without newline included. Not redacted.
    pub fn stderr_tail(&self) -> Vec<String> {
        self.0.tail.lock().unwrap_or_else(PoisonError::into_inner).lines()
    }

    /// How the child ended, if it has.
    pub fn try_exit(&self) -> Option<Exit> {
        self.0.progress.borrow().exit
    }

    /// Waits for the end of the child itself; its stderr has been read by then. Descendants may take a little longer:
    /// [`stop`](Self::stop) waits for those. The future does not keep the job alive.
    pub fn exited(&self) -> impl Future<Output = Exit> + Send + 'static {
        let mut progress = self.0.progress.clone();
        async move {
            let seen = progress.wait_for(|progress| progress.exit.is_some()).await;
            seen.ok().and_then(|progress| progress.exit).unwrap_or(Exit::UNKNOWN)
        }
    }

    /// Begins to end the job and returns at once.
    pub fn begin_stop(&self) {
        self.hurry(Urgency::Stop);
    }

    /// Ends the job by its ladder and waits until its whole tree and its temporary folders are gone. Any number of
    /// callers may do so, at any time. Dropping the future does not call the stop off.
    pub async fn stop(&self) -> Exit {
        self.begin_stop();
        self.done().await
    }

    /// Waits until everything of the job is gone.
    pub(crate) async fn done(&self) -> Exit {
        let mut progress = self.0.progress.clone();
        let seen = progress.wait_for(|progress| progress.done).await;
        seen.ok().and_then(|progress| progress.exit).unwrap_or(Exit::UNKNOWN)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.0.progress.borrow().done
    }

    pub(crate) fn hurry(&self, urgency: Urgency) {
        self.0.urgency.send_if_modified(|now| {
            let rises = urgency > *now;
            *now = urgency.max(*now);
            rises
        });
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("pid", &self.0.pid).field("exit", &self.try_exit()).finish()
    }
}
