//! The list of what a pagebridge has started, in a file that outlives it.
//!
//! It is a log: a line is added before a child or a folder comes to be and after it is gone. A line that was cut in
//! half, or that is no line of ours, says nothing. The owner and its guard each hold a shared lock on the file, so
//! whoever gets it alone knows that both are dead.

use crate::HostEnv;
use crate::stat::{Identity, Place};
use nix::fcntl::{Flock, FlockArg, OFlag};
use nix::unistd::{AccessFlags, access, geteuid};
use serde::{Deserialize, Serialize};
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the name of a ledger ends in.
pub(crate) const EXTENSION: &str = "ledger";
/// No ledger is as long; what is longer is no ledger.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// One line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// Whose ledger it is. The first line.
    Owner { process: Identity, place: Place },
    /// A guard was started.
    Guard(Identity),
    /// A temporary folder is about to be made.
    Folder(PathBuf),
    /// A job is about to be started, and once more when it has a process.
    Job { id: u64, mark: String, process: Option<Identity>, folders: Vec<PathBuf> },
    /// A job and its folders are gone.
    Gone(u64),
}

/// A job that may be there still.
#[derive(Debug)]
pub(crate) struct OpenJob {
    pub(crate) mark: String,
    pub(crate) process: Option<Identity>,
    folders: Vec<PathBuf>,
}

/// What the lines of a ledger come to.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) owner: Option<(Identity, Place)>,
    pub(crate) guards: Vec<Identity>,
    pub(crate) folders: BTreeSet<PathBuf>,
    pub(crate) jobs: BTreeMap<u64, OpenJob>,
}

impl Contents {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let mut contents = Self::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            if let Ok(line) = serde_json::from_slice(line) {
                contents.apply(line);
            }
        }
        contents
    }

    fn apply(&mut self, line: Line) {
        match line {
            Line::Owner { process, place } => self.owner = Some((process, place)),
            Line::Guard(guard) => self.guards.push(guard),
            Line::Folder(folder) => {
                self.folders.insert(folder);
            }
            Line::Job { id, mark, process, folders } => {
                self.folders.extend(folders.iter().cloned());
                self.jobs.insert(id, OpenJob { mark, process, folders });
            }
            Line::Gone(id) => {
                for folder in self.jobs.remove(&id).into_iter().flat_map(|job| job.folders) {
                    self.folders.remove(&folder);
                }
            }
        }
    }

    /// Whether nothing can be left of all that was started.
    fn is_done(&self) -> bool {
        self.jobs.is_empty() && !self.folders.iter().any(|folder| folder.symlink_metadata().is_ok())
    }
}

/// The ledger of this process.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: Flock<File>,
    contents: Contents,
    /// The last line may be there in part.
    torn: bool,
}

impl Ledger {
    /// A path for a new one, in the first folder that can be used. The file is not made yet.
    pub(crate) fn place(env: &HostEnv) -> io::Result<PathBuf> {
        let mut refused = io::Error::from(io::ErrorKind::NotFound);
        for folder in folders(env) {
            match make_private(&folder) {
                Ok(()) => {
                    let random = RandomState::new().hash_one("ledger");
                    return Ok(folder.join(format!("{}-{random:016x}.{EXTENSION}", std::process::id())));
                }
                Err(error) => {
                    refused = io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
                }
            }
        }
        Err(refused)
    }

    /// A new one.
    pub(crate) fn create(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
        // Where there are no locks a sweep gets none either, and touches nothing.
        let file = Flock::lock(file, FlockArg::LockSharedNonblock).map_err(|(_, error)| {
            let _ = std::fs::remove_file(&path);
            io::Error::from(error)
        })?;
        let state = State { file, contents: Contents::default(), torn: false };
        let ledger = Self { path, state: Mutex::new(state) };
        ledger.write(Line::Owner { process: Identity::of(std::process::id()), place: Place::here() })?;
        Ok(ledger)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line. Nothing waits for the disk: the lines need to outlive us, not the machine.
    pub(crate) fn write(&self, line: Line) -> io::Result<()> {
        let text = serde_json::to_string(&line)?;
        let mut state = self.lock();
        state.contents.apply(line);
        let start = if state.torn { "\n" } else { "" };
        let written = state.file.write_all(format!("{start}{text}\n").as_bytes());
        state.torn = written.is_err();
        written
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`write`](Self::write); a failure is only told.
    pub(crate) fn note(&self, line: Line) {
        if let Err(error) = self.write(line) {
            let ledger = self.path.display();
            tracing::warn!(%ledger, %error, "cannot write down what was started; it may outlive a kill of this process");
        }
    }

    /// Writes down a job that is about to be started.
    pub(crate) fn job(self: &Arc<Self>, id: u64, mark: &str, folders: &[PathBuf]) -> Entry {
        let entry = Entry { ledger: self.clone(), id, mark: mark.to_owned(), folders: folders.to_vec() };
        entry.note(None);
        entry
    }

    /// Removes the file if nothing is left to be ended. Else it stays, for the guard or the next start.
    pub(crate) fn close(&self) {
        if self.lock().contents.is_done() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.close();
    }
}

/// A job in the ledger. It stays there until it is said to be gone.
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Arc<Ledger>,
    id: u64,
    mark: String,
    folders: Vec<PathBuf>,
}

impl Entry {
    fn note(&self, process: Option<Identity>) {
        let (mark, folders) = (self.mark.clone(), self.folders.clone());
        self.ledger.note(Line::Job { id: self.id, mark, process, folders });
    }

    /// It runs.
    pub(crate) fn started(&self, process: Identity) {
        self.note(Some(process));
    }

    /// Nothing of it is left.
    pub(crate) fn gone(self) {
        self.ledger.note(Line::Gone(self.id));
    }
}

/// Opens a ledger of our own for reading. Nothing else is opened: no link, no pipe, no file of somebody else.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.uid() == geteuid().as_raw() && metadata.len() <= MAX_BYTES {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a ledger of ours"))
}

/// What an open ledger says now.
pub(crate) fn read(file: &File) -> io::Result<Contents> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(Contents::parse(&bytes))
}

/// The folders where ledgers may lie, the best first. They need not exist.
pub(crate) fn folders(env: &HostEnv) -> Vec<PathBuf> {
    let named = |name| env.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let last = std::env::temp_dir().join(format!("pagebridge-run-{}", geteuid()));
    let chosen = match named("PAGEBRIDGE_HOME") {
        Some(home) => vec![home.join("run"), last],
        None => {
            let state = named("XDG_STATE_HOME").or_else(|| Some(named("HOME")?.join(".local/state")));
            let runtime = named("XDG_RUNTIME_DIR").filter(|folder| folder.is_dir());
            let runtime = runtime.map(|folder| folder.join("pagebridge"));
            let state = state.map(|folder| folder.join("pagebridge/run"));
            [runtime, state, Some(last)].into_iter().flatten().collect()
        }
    };
    chosen.into_iter().filter_map(|folder| std::path::absolute(folder).ok()).collect()
}

fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if is_private(folder) {
        return Ok(access(folder, AccessFlags::W_OK)?);
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may write there"))
}

/// Whether this is a folder (no link) of our own that only we can write to.
pub(crate) fn is_private(folder: &Path) -> bool {
    folder.symlink_metadata().is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o022 == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[Line]) -> String {
        lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect()
    }

    fn job(id: u64, folder: &str) -> Line {
        let mark = format!("1-0123456789abcdef-{id}");
        Line::Job { id, mark, process: Some(Identity { pid: 7, start: 8 }), folders: vec![folder.into()] }
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let all = [Line::Folder("/t/a".into()), job(0, "/t/a"), job(1, "/t/b"), Line::Gone(0), Line::Gone(9)];
        let contents = Contents::parse(lines(&all).as_bytes());
        assert_eq!(contents.jobs.keys().copied().collect::<Vec<_>>(), [1]);
        assert_eq!(contents.folders, BTreeSet::from([PathBuf::from("/t/b")]));
    }

    #[test]
    fn a_ledger_cut_anywhere_names_nothing_new() {
        let all = lines(&[
            Line::Folder("/t/a\nb".into()),
            job(0, "/t/a\nb"),
            Line::Gone(0),
            job(1, "/t/c"),
            Line::Guard(Identity { pid: 3, start: 4 }),
        ]);
        let folders = [PathBuf::from("/t/a\nb"), PathBuf::from("/t/c")];
        for end in 0..all.len() {
            for part in [&all.as_bytes()[..end], &all.as_bytes()[end..]] {
                let contents = Contents::parse(part);
                assert!(contents.folders.iter().all(|folder| folders.contains(folder)), "{contents:?}");
                assert!(contents.jobs.keys().all(|id| *id <= 1) && contents.owner.is_none());
            }
        }
        assert!(Contents::parse(b"\n{}\n[1]\n\xff\xfe\nnull\n{\"folder\":7}\n").folders.is_empty());
    }

    #[test]
    fn a_ledger_is_private_and_goes_with_its_last_job() {
        let home = tempfile::tempdir().unwrap();
        let env = HostEnv::from_vars([("PAGEBRIDGE_HOME", home.path())]);
        let ledger = Arc::new(Ledger::create(Ledger::place(&env).unwrap()).unwrap());
        let path = ledger.path().to_owned();
        assert_eq!(path.parent(), Some(home.path().join("run").as_path()));
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700);
        let kept = home.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        let entry = ledger.job(3, "1-0123456789abcdef-3", std::slice::from_ref(&kept));
        ledger.close();
        assert!(path.exists());
        let read = super::read(&open(&path).unwrap()).unwrap();
        assert_eq!((read.jobs.len(), read.folders.len()), (1, 1));
        assert_eq!(read.owner.unwrap().1, Place::here());
        entry.gone();
        drop(ledger);
        assert!(!path.exists());
    }

    #[test]
    fn others_do_not_lead_us_astray() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("target");
        std::fs::write(&target, "x").unwrap();
        let link = home.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(open(&target).is_ok() && open(&link).is_err() && open(home.path()).is_err());
        std::os::unix::fs::symlink(home.path(), home.path().join("run")).unwrap();
        assert!(!is_private(&home.path().join("run")) && is_private(home.path()));
        let env = HostEnv::from_vars([("PAGEBRIDGE_HOME", home.path())]);
        let other = Ledger::place(&env).unwrap();
        assert!(!other.starts_with(home.path()), "{}", other.display());
    }
}
