//! The task that owns a child: it waits for the end, and ends what the child leaves behind.

use crate::job::{Exit, Progress, Urgency};
use crate::ledger::Entry;
use crate::stdin::StdinCloser;
use crate::tail::Tail;
use crate::tree::Tree;
use crate::{Ladder, Polite};
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How long descendants may outlive a child that closed down politely, before they get SIGTERM.
const LEFTOVER_GRACE: Duration = Duration::from_millis(300);
/// How long the kernel may take to end killed processes, before we give up on them.
const KILL_WAIT: Duration = Duration::from_secs(2);
/// How long stderr may take to reach its end after the child's, when nobody else holds it.
const STDERR_WAIT: Duration = Duration::from_millis(50);
const TEMP_TRIES: u32 = 10;
const TEMP_PAUSE: Duration = Duration::from_millis(50);

/// The waiting steps of the ladder.
#[derive(Clone, Copy)]
enum Step {
    Polite,
    /// After the child's own polite end.
    Leftover,
    Term,
}

/// A child and all that belongs to it. The order of the fields matters: the reaper must go before the child.
pub(crate) struct Actor {
    pub(crate) reaper: Reaper,
    pub(crate) child: Child,
    pub(crate) label: String,
    pub(crate) ladder: Ladder,
    pub(crate) stdin: Option<StdinCloser>,
    pub(crate) stderr: JoinHandle<()>,
    pub(crate) urgency: watch::Receiver<Urgency>,
    pub(crate) progress: watch::Sender<Progress>,
}

impl Actor {
    /// Runs the job to its end.
    pub(crate) async fn run(mut self) {
        let mut urgency = self.urgency.clone();
        let asked = async {
            // An error means that all handles are gone: nobody is left who could want the child.
            let _ = urgency.wait_for(|urgency| *urgency > Urgency::Run).await;
        };
        let gone = tokio::select! {
            status = self.child.wait() => {
                self.ended(status).await;
                !self.reaper.tree.has_descendants()
            }
            () = asked => {
                self.reaper.tree.note();
                self.ask().await
            }
        };
        let gone = gone || self.terminate().await || self.kill().await;
        if self.reaper.remove_temp_dirs().await && gone {
            self.reaper.strike_out();
        }
        self.reaper.finished = true;
        self.stderr.abort();
        self.progress.send_modify(|progress| progress.done = true);
    }

    /// The polite step. True if it was enough.
    async fn ask(&mut self) -> bool {
        let begun = Instant::now();
        match (self.ladder.polite, &self.stdin) {
            (Polite::CloseStdin, None) => return false,
            (Polite::CloseStdin, Some(stdin)) => stdin.close(),
            (Polite::Terminate, _) => self.reaper.tree.terminate_group(),
            (Polite::Asked, _) => {}
        }
        if !self.wait_child(begun, Step::Polite).await {
            self.reaper.tree.note();
            return false;
        }
        // Who got SIGTERM was asked as well and keeps the time; who did not will hear nothing any more.
        match self.ladder.polite {
            Polite::Terminate => self.wait_tree(begun, Step::Polite).await,
            Polite::CloseStdin | Polite::Asked => self.wait_tree(Instant::now(), Step::Leftover).await,
        }
    }

    /// The SIGTERM step. True if it was enough.
    async fn terminate(&mut self) -> bool {
        self.reaper.tree.terminate();
        let begun = Instant::now();
        self.wait_child(begun, Step::Term).await && self.wait_tree(begun, Step::Term).await
    }

    /// The SIGKILL step, repeated for what was forked meanwhile. True if it was enough.
    async fn kill(&mut self) -> bool {
        let deadline = Instant::now() + KILL_WAIT;
        loop {
            self.reaper.tree.note();
            self.reaper.tree.kill();
            if self.progress.borrow().exit.is_some() {
                sleep(Duration::from_millis(5)).await;
            } else if let Ok(status) = timeout(Duration::from_millis(20), self.child.wait()).await {
                self.ended(status).await;
            }
            if self.progress.borrow().exit.is_some() && !self.reaper.tree.has_descendants() {
                return true;
            }
            if Instant::now() >= deadline {
                let pids = self.reaper.tree.pids();
                tracing::error!(job = self.label, ?pids, "processes do not end after SIGKILL; given up");
                return false;
            }
        }
    }

    /// Until when a step that began at `begun` may take. It depends on the urgency, which may rise meanwhile.
    fn deadline(&self, begun: Instant, step: Step) -> Instant {
        let (own, exit) = (self.ladder, Ladder::exit());
        let (own, exit) = match step {
            Step::Polite => (own.polite_wait, exit.polite_wait),
            Step::Leftover => (own.polite_wait.min(LEFTOVER_GRACE), LEFTOVER_GRACE),
            Step::Term => (own.term_wait, exit.term_wait),
        };
        begun
            + match *self.urgency.borrow() {
                Urgency::Run | Urgency::Stop => own,
                Urgency::Exit => own.min(exit),
                Urgency::Kill => Duration::ZERO,
            }
    }

    /// Waits for the child's end. False at the deadline.
    async fn wait_child(&mut self, begun: Instant, step: Step) -> bool {
        while self.progress.borrow().exit.is_none() {
            let deadline = self.deadline(begun, step);
            tokio::select! {
                biased;
                status = self.child.wait() => self.ended(status).await,
                () = sleep_until(deadline) => return false,
                () = changed(&mut self.urgency) => {}
            }
        }
        true
    }

    /// Waits for the end of all descendants. False at the deadline.
    async fn wait_tree(&mut self, begun: Instant, step: Step) -> bool {
        let mut pause = Duration::from_millis(2);
        while self.reaper.tree.has_descendants() {
            let deadline = self.deadline(begun, step);
            if Instant::now() >= deadline {
                return false;
            }
            tokio::select! {
                () = sleep_until(deadline.min(Instant::now() + pause)) => {}
                () = changed(&mut self.urgency) => {}
            }
            pause = (pause * 2).min(Duration::from_millis(30));
        }
        true
    }

    /// Takes note of the child's end, and tells everybody.
    async fn ended(&mut self, status: io::Result<ExitStatus>) {
        self.reaper.tree.root_reaped();
        let asked = *self.urgency.borrow() > Urgency::Run;
        let _ = timeout(STDERR_WAIT, &mut self.stderr).await;
        let exit = match status {
            Ok(status) => Exit::new(status, asked),
            Err(error) => {
                tracing::error!(job = self.label, %error, "cannot wait for the child");
                Exit { code: None, signal: None, asked }
            }
        };
        tracing::debug!(job = self.label, %exit, asked, "ended");
        self.progress.send_modify(|progress| progress.exit = Some(exit));
    }
}

/// Waits for a change; forever, if all handles are gone.
async fn changed(urgency: &mut watch::Receiver<Urgency>) {
    if urgency.changed().await.is_err() {
        std::future::pending().await
    }
}

/// Reads stderr to its end, so that the child never blocks on it.
pub(crate) async fn drain(mut stderr: ChildStderr, tail: Arc<Mutex<Tail>>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..length]);
    }
}

/// What must happen even if the actor's task is dropped, as at the end of its runtime.
pub(crate) struct Reaper {
    pub(crate) tree: Tree,
    pub(crate) temp_dirs: Vec<PathBuf>,
    /// The job's place in the ledger. What stays there is left to the guard and the next start.
    pub(crate) entry: Option<Entry>,
    pub(crate) finished: bool,
}

impl Reaper {
    /// Nothing is left that the ledger would have to name.
    fn strike_out(&mut self) {
        if let Some(entry) = self.entry.take() {
            entry.gone();
        }
    }

    /// True if all are gone.
    async fn remove_temp_dirs(&mut self) -> bool {
        let mut gone = true;
        for dir in std::mem::take(&mut self.temp_dirs) {
            for attempt in 1.. {
                match tokio::fs::remove_dir_all(&dir).await {
                    Ok(()) => break,
                    Err(error) if error.kind() == io::ErrorKind::NotFound && !dir.exists() => break,
                    Err(error) if attempt >= TEMP_TRIES => {
                        tracing::warn!(dir = %dir.display(), %error, "cannot remove a temporary folder");
                        gone = false;
                        break;
                    }
                    Err(_) => sleep(TEMP_PAUSE).await,
                }
            }
        }
        gone
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let mut gone = false;
        for _ in 0..50 {
            self.tree.note();
            self.tree.kill();
            if !self.tree.root_runs() && !self.tree.has_descendants() {
                gone = true;
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        if remove_dirs_now(&self.temp_dirs) && gone {
            self.strike_out();
        }
    }
}

/// Removes folders where nothing can be awaited. True if all are gone.
pub(crate) fn remove_dirs_now(dirs: &[PathBuf]) -> bool {
    let mut gone = true;
    for dir in dirs {
        match std::fs::remove_dir_all(dir) {
            Err(error) if dir.exists() => {
                tracing::warn!(dir = %dir.display(), %error, "cannot remove a temporary folder");
                gone = false;
            }
            _ => {}
        }
    }
    gone
}
