//! The process that stays behind when we are killed, and cleans up.
//!
//! It is our own executable in a session of its own. Its stdin is a pipe whose other end only we hold: when that
//! closes we are gone, however it came. It then reads our ledger and ends what is left.
//!
//! It does not heed SIGTERM, SIGINT and SIGHUP: a service manager sends SIGTERM to everybody at once, and a guard
//! that went first would guard nothing. It ends with the process that it guards.

use crate::ledger;
use crate::remains::Remains;
use nix::fcntl::{Flock, FlockArg};
use std::io;
use std::path::{Path, PathBuf};
use tokio::signal::unix::{SignalKind, signal};

/// How the guard is started.
#[derive(Clone, Debug)]
pub struct GuardCommand {
    /// The executable: our own.
    pub program: PathBuf,
    /// The argument before the path of the ledger. With both, the program must call [`guard`].
    pub subcommand: &'static str,
}

/// Is the guard of the process at the other end of stdin, whose ledger this is. Returns when there is nothing to guard
/// any more: at once after that process's own good end, else within 4.5 s of its death.
pub async fn guard(ledger: &Path) {
    let deaf = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
    // Fails only for the leader of a process group, whom nobody's signals to our group reach either.
    let _ = nix::unistd::setsid();
    let path = ledger.to_owned();
    let _ = tokio::task::spawn_blocking(move || watch(&path)).await;
    drop(deaf);
}

fn watch(path: &Path) {
    // Opened and locked now, whatever happens to the name later. It may not be there yet.
    let early = ledger::open(path).ok();
    let copy = early.as_ref().and_then(|file| file.try_clone().ok());
    let lock = copy.and_then(|file| Flock::lock(file, FlockArg::LockSharedNonblock).ok());
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    let Some(file) = early.or_else(|| ledger::open(path).ok()) else { return };
    let Ok(contents) = ledger::read(&file) else { return };
    let mut remains = Remains::default();
    remains.add(contents, true);
    if remains.end() {
        let _ = std::fs::remove_file(path);
    }
    drop(lock);
}
