//! The processes that descend from a job's child, and how to reach them after their parents are gone.

use crate::stat::{Identity, Stat};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;

/// The variable that marks every process of a job. Its value lists the marks of all jobs that enclose the process,
/// separated by colons, so that a pagebridge inside a pagebridge still belongs to the outer job too.
pub const JOB_MARK_VARIABLE: &str = "PAGEBRIDGE_JOB";

/// The tree under one child of ours, or under the child of a pagebridge that is no more.
pub(crate) struct Tree {
    /// The child: its pid is also the id of its process group.
    root: i32,
    root_start: u64,
    /// It was never our own child. It is then one of the `noted` as long as it runs.
    adopted: bool,
    /// While the child is ours and not reaped, neither its pid nor its group id can be reused.
    reaped: bool,
    mark: String,
    /// Descendants that were alive when last looked at, the root excepted.
    noted: BTreeMap<i32, Stat>,
}

impl Tree {
    /// The tree of a child that was just started with `mark` in [`JOB_MARK_VARIABLE`].
    pub(crate) fn new(root: u32, mark: String) -> Self {
        let Identity { pid: root, start: root_start } = Identity::of(root);
        Self { root, root_start, adopted: false, reaped: false, mark, noted: BTreeMap::new() }
    }

    /// The tree of somebody else's child. Without a root (it was only about to be started) the mark alone finds it.
    pub(crate) fn adopted(root: Option<Identity>, mark: String) -> Self {
        let known = root.filter(|root| root.start > 0 || !cfg!(target_os = "linux"));
        let Identity { pid: root, start: root_start } = known.unwrap_or(Identity { pid: 0, start: 0 });
        Self { root, root_start, adopted: true, reaped: true, mark, noted: BTreeMap::new() }
    }

    /// The child, also after its end.
    pub(crate) fn root(&self) -> Identity {
        Identity { pid: self.root, start: self.root_start }
    }

    /// The child was waited for.
    pub(crate) fn root_reaped(&mut self) {
        self.reaped = true;
    }

    /// The pids of the known descendants.
    pub(crate) fn pids(&self) -> Vec<i32> {
        self.noted.keys().copied().collect()
    }

    /// Looks for descendants: children of known ones, members of the group, bearers of the mark.
    pub(crate) fn note(&mut self) {
        let own = Pid::this().as_raw();
        let mut rest = Stat::all();
        let is_root = |stat: &Stat| stat.pid == self.root && stat.start == self.root_start;
        // Nobody keeps the pid of an adopted root from being given again, but for the root itself.
        let group_is_ours = !self.adopted || rest.iter().any(is_root);
        rest.retain(|stat| {
            (self.adopted || stat.pid != self.root) && stat.pid != own && stat.start >= self.root_start
        });
        let known = std::mem::take(&mut self.noted);
        loop {
            let mine = |stat: &Stat, noted: &BTreeMap<i32, Stat>| {
                known.get(&stat.pid).is_some_and(|known| known.start == stat.start)
                    || (stat.group == self.root && group_is_ours)
                    || (self.adopted && is_root(stat))
                    || (stat.parent == self.root && !self.reaped)
                    || noted.contains_key(&stat.parent)
            };
            let (found, others): (Vec<_>, Vec<_>) =
                rest.into_iter().partition(|stat| mine(stat, &self.noted));
            rest = others;
            let more = if found.is_empty() {
                let (marked, others): (Vec<_>, Vec<_>) =
                    rest.into_iter().partition(|stat| !stat.dead && self.bears_mark(stat.pid));
                rest = others;
                marked
            } else {
                found
            };
            if more.is_empty() {
                break;
            }
            self.noted.extend(more.into_iter().map(|stat| (stat.pid, stat)));
        }
        self.drop_dead();
    }

    fn bears_mark(&self, pid: i32) -> bool {
        let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else { return false };
        environ
            .split(|byte| *byte == 0)
            .filter_map(|var| var.strip_prefix(JOB_MARK_VARIABLE.as_bytes())?.strip_prefix(b"="))
            .any(|marks| marks.split(|byte| *byte == b':').any(|mark| mark == self.mark.as_bytes()))
    }

    /// Forgets those that ended. Reaps those that the system gave to us (as process 1 of a container).
    fn drop_dead(&mut self) {
        let own = Pid::this().as_raw();
        self.noted.retain(|pid, noted| match Stat::read(*pid) {
            Some(now) if now.start == noted.start && now.dead => {
                if now.parent == own {
                    let _ = waitpid(Pid::from_raw(*pid), Some(WaitPidFlag::WNOHANG));
                }
                false
            }
            now => now.is_some_and(|now| now.start == noted.start),
        });
    }

    /// Whether any descendant is alive, the root excepted. Cheap while a known one is.
    pub(crate) fn has_descendants(&mut self) -> bool {
        self.drop_dead();
        if self.noted.is_empty() {
            self.note();
        }
        !self.noted.is_empty() || (self.is_blind() && self.reaped && self.signal_group(None))
    }

    /// Whether the root is still running (a zombie is not).
    pub(crate) fn root_runs(&self) -> bool {
        !self.reaped && (self.is_blind() || Stat::read(self.root).is_some_and(|stat| !stat.dead))
    }

    /// There is no `/proc`; the group is all that we have.
    fn is_blind(&self) -> bool {
        self.root_start == 0 && self.root > 1
    }

    /// Sends to the group alone, as long as its id is surely ours.
    fn signal_group(&self, signal: impl Into<Option<Signal>>) -> bool {
        (!self.reaped || self.is_blind()) && killpg(Pid::from_raw(self.root), signal) == Ok(())
    }

    /// SIGTERM to the group, and outside of it to the leading process of each group (a browser's helpers must outlive
    /// its clean end). SIGCONT follows, since a stopped process would never act on it.
    pub(crate) fn terminate(&self) {
        self.signal_group(Signal::SIGTERM);
        self.signal_group(Signal::SIGCONT);
        for noted in self.noted.values() {
            let leads = noted.group == noted.pid || !self.noted.contains_key(&noted.group);
            let in_group = noted.group == self.root && !self.adopted;
            if if in_group { self.reaped } else { leads } {
                send(noted, Signal::SIGTERM);
                send(noted, Signal::SIGCONT);
            }
        }
    }

    /// SIGTERM to the group only: the polite step.
    pub(crate) fn terminate_group(&self) {
        self.signal_group(Signal::SIGTERM);
        self.signal_group(Signal::SIGCONT);
    }

    /// SIGKILL to the group and to every known descendant.
    pub(crate) fn kill(&self) {
        self.signal_group(Signal::SIGKILL);
        self.noted.values().for_each(|noted| send(noted, Signal::SIGKILL));
    }
}

/// Sends a signal, if the pid still names the same process.
fn send(noted: &Stat, signal: Signal) {
    if Stat::read(noted.pid).is_some_and(|now| now.start == noted.start && !now.dead) {
        match kill(Pid::from_raw(noted.pid), signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => tracing::warn!(pid = noted.pid, %signal, %error, "cannot signal a descendant"),
        }
    }
}
