//! The process watcher: which processes of a test are still there? Reads `/proc`, so it sees nothing off Linux.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::fs;
use std::hash::BuildHasher;
use std::path::Path;
use std::time::{Duration, Instant};

/// The name of the marking variable. `XDG_*` is on the allow-list of the spawn policy, so it reaches every child.
pub const MARK_VARIABLE: &str = "XDG_PAGEBRIDGE_TEST_MARK";

/// A process that the watcher found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proc {
    /// Its id.
    pub pid: u32,
    /// Its command line, arguments joined by spaces; the bare name for a zombie.
    pub cmdline: String,
    /// Its state letter, as `ps` shows it.
    pub state: char,
}

impl fmt::Display for Proc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}] {}", self.pid, self.state, self.cmdline)
    }
}

/// A unique value of [`MARK_VARIABLE`]. Put it into the environment of what a test starts; all descendants inherit it.
#[derive(Clone, Debug)]
pub struct Marker {
    value: String,
}

impl Default for Marker {
    fn default() -> Self {
        Self::new()
    }
}

impl Marker {
    /// A new mark, unlike any other.
    pub fn new() -> Self {
        // A RandomState is seeded from the system's random source.
        let random = RandomState::new().hash_one(std::process::id());
        Self { value: format!("{random:016x}-{}", std::process::id()) }
    }

    /// The value of the variable.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Name and value, for an environment.
    pub fn var(&self) -> (String, String) {
        (MARK_VARIABLE.to_owned(), self.value.clone())
    }

    /// The processes that carry this mark. A zombie has no environment any more, so zombies are not found by the mark:
    /// those that this very process has left unreaped are in [`own_zombies`].
    pub fn alive(&self) -> Vec<Proc> {
        let entry = format!("{MARK_VARIABLE}={}", self.value);
        let carries = |pid: u32| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|var| var == entry.as_bytes()))
        };
        pids().filter(|pid| carries(*pid)).filter_map(describe).filter(|found| !is_dead(found)).collect()
    }

    /// Waits until no process carries the mark and this process has no zombie. It blocks the thread: where the same
    /// runtime still has to do the cleaning up, the test needs `#[tokio::test(flavor = "multi_thread")]`.
    ///
    /// # Panics
    /// When some are still there after `limit`, with their list.
    pub fn assert_gone_within(&self, limit: Duration) {
        let started = Instant::now();
        loop {
            let left: Vec<Proc> = self.alive().into_iter().chain(own_zombies()).collect();
            if left.is_empty() {
                return;
            }
            if started.elapsed() >= limit {
                let list: Vec<String> = left.iter().map(Proc::to_string).collect();
                panic!("still there after {limit:?}:\n{}", list.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Children of this process that ended but were not reaped.
pub fn own_zombies() -> Vec<Proc> {
    pids()
        .filter(|pid| parent(*pid) == Some(std::process::id()))
        .filter_map(describe)
        .filter(is_dead)
        .collect()
}

/// The running processes below this one. Chromium's renderers overwrite their environment, so no mark finds them.
pub fn descendants(of: u32) -> Vec<Proc> {
    let all: Vec<(u32, u32)> = pids().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![of];
    let mut at = 0;
    while at < found.len() {
        let children = all.iter().filter(|(_, parent)| *parent == found[at]).map(|(pid, _)| *pid);
        found.extend(children.collect::<Vec<_>>());
        at += 1;
    }
    found.into_iter().skip(1).filter_map(describe).filter(|found| !is_dead(found)).collect()
}

/// Those of these processes that still run.
pub fn still_running(processes: &[Proc]) -> Vec<Proc> {
    let again = processes.iter().filter_map(|known| Some((known, describe(known.pid)?)));
    // Another command line is another process with the same id.
    again.filter(|(known, now)| !is_dead(now) && now.cmdline == known.cmdline).map(|(_, now)| now).collect()
}

/// Running processes, this one excepted, whose command line contains `path` (such as a browser profile).
pub fn processes_mentioning(path: &Path) -> Vec<Proc> {
    let wanted = path.to_string_lossy();
    pids()
        .filter(|pid| *pid != std::process::id())
        .filter_map(describe)
        .filter(|found| !is_dead(found) && found.cmdline.contains(&*wanted))
        .collect()
}

/// Running processes of a process group. Chromium's renderers are found by it: they write over their environment.
pub fn processes_in_group(group: u32) -> Vec<Proc> {
    let is_member = |pid: &u32| stat(*pid).is_some_and(|stat| stat.group == group.to_string());
    pids().filter(is_member).filter_map(describe).filter(|found| !is_dead(found)).collect()
}

fn is_dead(found: &Proc) -> bool {
    matches!(found.state, 'Z' | 'X')
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    stat(pid)?.parent.parse().ok()
}

/// The head of `/proc/PID/stat`.
struct Stat {
    name: String,
    state: char,
    parent: String,
    group: String,
}

fn stat(pid: u32) -> Option<Stat> {
    let stat = String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?).into_owned();
    let (head, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some(Stat {
        name: head.split_once('(')?.1.to_owned(),
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.to_owned(),
        group: fields.next()?.to_owned(),
    })
}

fn describe(pid: u32) -> Option<Proc> {
    let Stat { name, state, .. } = stat(pid)?;
    let cmdline = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let args: Vec<_> =
        cmdline.split(|byte| *byte == 0).filter(|arg| !arg.is_empty()).map(String::from_utf8_lossy).collect();
    let cmdline = if args.is_empty() { name } else { args.join(" ") };
    Some(Proc { pid, cmdline, state })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn marks_are_unique() {
        let (one, two) = (Marker::new(), Marker::new());
        assert_ne!(one.value(), two.value());
        assert!(one.alive().is_empty());
        one.assert_gone_within(Duration::ZERO);
    }

    #[test]
    fn this_process_is_described() {
        let own = describe(std::process::id()).expect("we are alive");
        assert!(!own.cmdline.is_empty() && !is_dead(&own), "{own}");
        assert!(processes_mentioning(Path::new(Marker::new().value())).is_empty());
    }
}
