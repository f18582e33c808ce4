//! At the start: the end of what earlier pagebridges left, when their guards died too.

use crate::HostEnv;
use crate::ledger::{self, EXTENSION};
use crate::remains::Remains;
use crate::stat::Place;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// No sweep looks at more ledgers than this.
const MAX_LEDGERS: usize = 1_000;
/// An unreadable ledger is removed when it has not changed for so long. A younger one may be just in the making.
const KEEP_UNREADABLE: Duration = Duration::from_secs(3_600);

/// Ends what the ledgers of dead pagebridges name, and removes those ledgers. Takes 4.5 s at most.
pub(crate) fn sweep(env: &HostEnv) {
    let here = Place::here();
    let mut remains = Remains::default();
    let mut swept: Vec<(PathBuf, Flock<File>)> = Vec::new();
    for path in ledgers(env) {
        let Some((lock, contents)) = abandoned(&path) else { continue };
        match contents.owner {
            None => {
                if is_old(&lock) {
                    let _ = fs::remove_file(&path);
                }
            }
            Some((_, ref place)) if place.host != here.host => {}
            Some((owner, ref place)) => {
                let same = *place == here;
                let lives =
                    same && (owner.is_alive() || contents.guards.iter().any(|guard| guard.is_alive()));
                if !lives {
                    // Without `/proc` nobody knows whether a pid was given to another one since.
                    remains.add(contents, same && cfg!(target_os = "linux"));
                    swept.push((path, lock));
                }
            }
        }
    }
    if swept.is_empty() {
        return;
    }
    tracing::info!(ledgers = swept.len(), "cleaning up after a pagebridge that was killed");
    if remains.end() {
        for (path, _lock) in swept {
            let _ = fs::remove_file(path);
        }
    }
}

fn ledgers(env: &HostEnv) -> Vec<PathBuf> {
    let folders = ledger::folders(env).into_iter().filter(|folder| ledger::is_private(folder));
    let entries = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|e| e == EXTENSION)).take(MAX_LEDGERS).collect()
}

/// What a ledger says, if nobody holds it. As long as the lock is kept no other sweep will take it.
fn abandoned(path: &Path) -> Option<(Flock<File>, ledger::Contents)> {
    let lock = Flock::lock(ledger::open(path).ok()?, FlockArg::LockExclusiveNonblock).ok()?;
    let contents = ledger::read(&lock).ok()?;
    Some((lock, contents))
}

fn is_old(file: &File) -> bool {
    let changed = file.metadata().and_then(|metadata| metadata.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > KEEP_UNREADABLE))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::ledger::{Ledger, Line};
    use crate::stat::Identity;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    /// A home with a place for ledgers, and a folder for everything else.
    struct World {
        home: TempDir,
        temp: TempDir,
    }

    impl World {
        fn new() -> Self {
            let world = Self { home: tempfile::tempdir().unwrap(), temp: tempfile::tempdir().unwrap() };
            std::fs::create_dir(world.home.path().join("run")).unwrap();
            world
        }

        fn env(&self) -> HostEnv {
            HostEnv::from_vars([("PAGEBRIDGE_HOME", self.home.path())])
        }

        /// A folder with a file in it.
        fn folder(&self, name: &str) -> PathBuf {
            let folder = self.temp.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("file"), "x").unwrap();
            folder
        }

        fn ledger(&self, name: &str, lines: &[Line]) -> PathBuf {
            let path = self.home.path().join("run").join(name);
            let text: String = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
            fs::write(&path, text).unwrap();
            path
        }
    }

    fn dead() -> Line {
        let own = Identity::of(std::process::id());
        Line::Owner { process: Identity { start: own.start + 1, ..own }, place: Place::here() }
    }

    #[test]
    fn folders_of_the_dead_go_and_all_others_stay() {
        let world = World::new();
        let ours = world.folder("pagebridge-ours");
        let precious = world.folder("precious");
        symlink(&precious, ours.join("inside")).unwrap();
        let link = world.temp.path().join("pagebridge-link");
        symlink(&precious, &link).unwrap();
        let around = world.temp.path().join("x/../pagebridge-around");
        let hidden = world.folder("pagebridge-around");
        let names = [ours.clone(), precious.clone(), link.clone(), around, "pagebridge-relative".into()];
        let lines: Vec<Line> = [dead()].into_iter().chain(names.map(Line::Folder)).collect();
        let path = world.ledger("dead.ledger", &lines);
        sweep(&world.env());
        assert!(!ours.exists() && !path.exists());
        assert!(precious.join("file").exists() && link.exists() && hidden.join("file").exists());
    }

    #[test]
    fn the_living_are_left_alone() {
        let world = World::new();
        let owner = Identity::of(std::process::id());
        let here = Place::here();
        let mut elsewhere = here.clone();
        elsewhere.host = "elsewhere".into();
        let Line::Owner { process: gone, .. } = dead() else { unreachable!() };
        let kept: Vec<(PathBuf, PathBuf)> = [
            ("owner", vec![Line::Owner { process: owner, place: here.clone() }]),
            ("guard", vec![dead(), Line::Guard(owner)]),
            ("host", vec![Line::Owner { process: gone, place: elsewhere }]),
            ("garbage", vec![]),
        ]
        .into_iter()
        .map(|(name, mut lines)| {
            let folder = world.folder(&format!("pagebridge-{name}"));
            lines.push(Line::Folder(folder.clone()));
            (world.ledger(&format!("{name}.ledger"), &lines), folder)
        })
        .collect();
        let held = Ledger::create(Ledger::place(&world.env()).unwrap()).unwrap();
        let folder = world.folder("pagebridge-held");
        held.write(dead()).unwrap();
        held.write(Line::Folder(folder.clone())).unwrap();
        sweep(&world.env());
        for (ledger, folder) in kept.iter().chain([&(held.path().to_owned(), folder)]) {
            assert!(ledger.exists() && folder.exists(), "{}", ledger.display());
        }
    }

    #[test]
    fn garbage_deletes_nothing() {
        let world = World::new();
        let folder = world.folder("pagebridge-kept");
        let named = format!("{{\"folder\":{folder:?}}}");
        for (name, text) in [
            ("cut.ledger", serde_json::to_string(&dead()).unwrap() + "\n" + &named),
            ("other.txt", serde_json::to_string(&dead()).unwrap() + "\n" + &named + "\n"),
            ("noise.ledger", format!("\0\u{7f}{named}\nnull\n{{\"owner\":1}}\n{named}\n")),
        ] {
            fs::write(world.home.path().join("run").join(name), text).unwrap();
        }
        fs::create_dir(world.home.path().join("run/folder.ledger")).unwrap();
        sweep(&world.env());
        assert!(folder.join("file").exists());
    }
}
