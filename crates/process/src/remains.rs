//! What dead pagebridges left behind, and its end. Guard and sweep both use this.

use crate::ledger::Contents;
use crate::tree::Tree;
use nix::unistd::geteuid;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What the names of our temporary folders begin with.
pub(crate) const PREFIX: &str = "pagebridge-";

/// For ending by oneself: Chromium notices the end of its pipe, and writes its profile.
const GRACE: Duration = Duration::from_millis(1_000);
/// For SIGTERM to work.
const TERM_WAIT: Duration = Duration::from_millis(1_500);
/// For the kernel to end killed processes.
const KILL_WAIT: Duration = Duration::from_millis(1_500);
/// For folders to be removed, in which somebody may still have written.
const REMOVE_WAIT: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(20);

/// The processes and folders that are left.
#[derive(Default)]
pub(crate) struct Remains {
    trees: Vec<Tree>,
    folders: BTreeSet<PathBuf>,
}

impl Remains {
    /// Adds what a ledger names. Its processes are left out if they belong to another boot or another space of pids.
    pub(crate) fn add(&mut self, contents: Contents, with_processes: bool) {
        let (ours, others): (BTreeSet<_>, BTreeSet<_>) =
            contents.folders.into_iter().partition(|folder| may_be_removed(folder));
        for folder in others.iter().filter(|folder| folder.symlink_metadata().is_ok()) {
            tracing::warn!(folder = %folder.display(), "a ledger names a folder that is not ours; it stays");
        }
        self.folders.extend(ours);
        if with_processes {
            let jobs = contents.jobs.into_values().filter(|job| is_mark(&job.mark));
            self.trees.extend(jobs.map(|job| Tree::adopted(job.process, job.mark)));
        }
    }

    /// Ends the processes (a moment, SIGTERM, SIGKILL) and removes the folders, within 4.5 s. True if nothing is left.
    pub(crate) fn end(mut self) -> bool {
        self.trees.iter_mut().for_each(Tree::note);
        let ended = self.end_by_itself(GRACE) || {
            self.trees.iter().for_each(Tree::terminate);
            self.end_by_itself(TERM_WAIT) || self.kill()
        };
        // Not `&&`: what is left of one must not keep the other.
        self.remove_folders() & ended
    }

    /// Forgets the trees that have ended. True if all have, before the time is over.
    fn end_by_itself(&mut self, limit: Duration) -> bool {
        let begun = Instant::now();
        loop {
            self.trees.retain_mut(Tree::has_descendants);
            if self.trees.is_empty() {
                return true;
            }
            if begun.elapsed() >= limit {
                return false;
            }
            sleep(PAUSE);
        }
    }

    fn kill(&mut self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < KILL_WAIT {
            for tree in &mut self.trees {
                tree.note();
                tree.kill();
            }
            if self.end_by_itself(PAUSE) {
                return true;
            }
        }
        let pids: Vec<i32> = self.trees.iter().flat_map(Tree::pids).collect();
        tracing::error!(?pids, "processes do not end after SIGKILL; given up");
        false
    }

    fn remove_folders(&mut self) -> bool {
        let begun = Instant::now();
        loop {
            self.folders.retain(|folder| match fs::remove_dir_all(folder) {
                Ok(()) => false,
                Err(_) => folder.symlink_metadata().is_ok(),
            });
            if self.folders.is_empty() || begun.elapsed() >= REMOVE_WAIT {
                return self.folders.is_empty();
            }
            sleep(PAUSE);
        }
    }
}

/// Whether a folder that a ledger names is surely one of our temporary folders: its name, and that it is ours and no
/// link. (`remove_dir_all` follows no links inside.)
fn may_be_removed(folder: &Path) -> bool {
    let named =
        folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX));
    let plain = folder.is_absolute() && !folder.components().any(|part| part == Component::ParentDir);
    let own = |metadata: fs::Metadata| metadata.is_dir() && metadata.uid() == geteuid().as_raw();
    named && plain && folder.symlink_metadata().is_ok_and(own)
}

/// Whether a mark is one that a supervisor gives. A shorter text could be that of a stranger.
fn is_mark(mark: &str) -> bool {
    mark.len() >= 16 && mark.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
