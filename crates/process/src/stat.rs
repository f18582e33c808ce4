//! What the system says about processes, and where its pids have a meaning.

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::fs;

/// Whether there is a `/proc` to read.
const HAS_PROC: bool = cfg!(target_os = "linux");

/// What `/proc/PID/stat` says. A pid and a start time together name a process for good.
#[derive(Clone, Copy)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// In clock ticks since boot.
    pub(crate) start: u64,
    pub(crate) dead: bool,
}

impl Stat {
    pub(crate) fn read(pid: i32) -> Option<Self> {
        if !HAS_PROC {
            return None;
        }
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything; what follows it is plain.
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let fields: Vec<&str> = std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_whitespace().collect();
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            start: fields.get(19)?.parse().ok()?,
            dead: matches!(*fields.first()?, "Z" | "X" | "x"),
        })
    }

    /// All processes; none where there is no `/proc`.
    pub(crate) fn all() -> Vec<Self> {
        if !HAS_PROC {
            return Vec::new();
        }
        fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| Self::read(entry.ok()?.file_name().to_str()?.parse().ok()?))
            .collect()
    }
}

/// Names one process, also when its pid is given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) pid: i32,
    /// In clock ticks since boot; 0 where there is no `/proc`.
    pub(crate) start: u64,
}

impl Identity {
    /// The process that has this pid now.
    pub(crate) fn of(pid: u32) -> Self {
        let pid = i32::try_from(pid).expect("a pid fits into pid_t");
        Self { pid, start: Stat::read(pid).map_or(0, |stat| stat.start) }
    }

    /// Whether it runs (a zombie does not). Without `/proc` any process with this pid counts.
    pub(crate) fn is_alive(self) -> bool {
        match Stat::read(self.pid) {
            Some(stat) => stat.start == self.start && !stat.dead,
            None => !HAS_PROC && self.pid > 0 && kill(Pid::from_raw(self.pid), None) != Err(Errno::ESRCH),
        }
    }
}

/// Where a pid with its start time means something: one boot of one machine, one space of pids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) host: String,
    boot: String,
    pids: String,
}

impl Place {
    /// Ours.
    pub(crate) fn here() -> Self {
        let read = |path| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
        let pids = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        Self {
            host: read("/proc/sys/kernel/hostname"),
            boot: read("/proc/sys/kernel/random/boot_id"),
            pids: pids.to_string_lossy().into_owned(),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_pid_with_another_start_is_another_process() {
        let own = Identity::of(std::process::id());
        assert!(own.is_alive());
        assert!(!Identity { start: own.start + 1, ..own }.is_alive());
        assert!(!Identity { pid: -1, start: 0 }.is_alive());
    }

    #[test]
    fn this_place_is_known() {
        let here = Place::here();
        assert!(!here.boot.is_empty() && here.pids.starts_with("pid:"), "{here:?}");
    }
}
