//! What to start, and how it is to be ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

/// Why a process is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A browser.
    Browser,
    /// An upstream MCP server of a session.
    McpServer,
    /// An upstream MCP server that is only asked for its catalogue. It gets no `TZ` unless `env` names one.
    Discovery,
    /// Our own guard process. [`Supervisor::shutdown`](crate::Supervisor::shutdown) ends it after all others.
    Guard,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Browser => "browser",
            Self::McpServer => "MCP server",
            Self::Discovery => "MCP server (discovery)",
            Self::Guard => "guard",
        })
    }
}

/// What a child's standard input is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`.
    #[default]
    Null,
    /// A pipe, handed out as [`JobStdin`](crate::JobStdin).
    Piped,
}

/// What a child's standard output is. It never inherits ours, which is the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stdout {
    /// `/dev/null`.
    #[default]
    Null,
    /// A pipe, handed out to the caller, who must read it.
    Piped,
}

/// The first step of a [`Ladder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polite {
    /// Close the child's stdin. Without a piped stdin this step is left out.
    CloseStdin,
    /// SIGTERM to the process group.
    Terminate,
    /// The caller has already asked in its own way (such as `Browser.close`): only wait.
    Asked,
}

/// How a job is ended: the polite step, then SIGTERM to the group, then SIGKILL to all that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    /// The polite step.
    pub polite: Polite,
    /// How long to wait after the polite step.
    pub polite_wait: Duration,
    /// How long to wait after SIGTERM.
    pub term_wait: Duration,
}

impl Ladder {
    /// The limits at our own end: close stdin, 2 s, SIGTERM, 1 s, SIGKILL. `shutdown` holds every job to these times.
    pub const fn exit() -> Self {
        Self {
            polite: Polite::CloseStdin,
            polite_wait: Duration::from_secs(2),
            term_wait: Duration::from_secs(1),
        }
    }

    /// The full grace for stopping one job while we live on: close stdin, 5 s, SIGTERM, 2 s, SIGKILL.
    pub const fn stop() -> Self {
        Self {
            polite: Polite::CloseStdin,
            polite_wait: Duration::from_secs(5),
            term_wait: Duration::from_secs(2),
        }
    }

    /// The same times with another polite step.
    pub const fn with_polite(self, polite: Polite) -> Self {
        Self { polite, ..self }
    }
}

/// A process to start. Its `Debug` form shows neither arguments nor environment, which may hold secrets.
pub struct SpawnRequest {
    /// Why it is started.
    pub purpose: Purpose,
    /// Who asked, for errors and logs: an upstream's name, a session.
    pub origin: String,
    /// The program: a path, or a name that is looked up in the child's `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working folder; ours if `None`.
    pub cwd: Option<PathBuf>,
    /// Variables beyond the allow-list; `None` removes one. See [`policy::child_env`](crate::policy::child_env).
    pub env: BTreeMap<String, Option<String>>,
    /// Its standard input.
    pub stdin: Stdin,
    /// Its standard output. (Standard error is always read by the job, which keeps a bounded tail.)
    pub stdout: Stdout,
    /// Descriptors to pass, each with its number in the child (3 or more). Ours are closed by the spawn; they should
    /// be close-on-exec, else other children inherit them too.
    pub extra_fds: Vec<(OwnedFd, i32)>,
    /// How it is ended.
    pub ladder: Ladder,
    /// Folders that are removed once the whole tree is gone, and also when the spawn fails.
    pub temp_dirs: Vec<PathBuf>,
}

impl SpawnRequest {
    /// A request with no arguments, no streams, and [`Ladder::stop`].
    pub fn new(purpose: Purpose, origin: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        Self {
            purpose,
            origin: origin.into(),
            program: program.into(),
            args: Vec::new(),
            cwd: None,
            env: BTreeMap::new(),
            stdin: Stdin::Null,
            stdout: Stdout::Null,
            extra_fds: Vec::new(),
            ladder: Ladder::stop(),
            temp_dirs: Vec::new(),
        }
    }
}

impl fmt::Debug for SpawnRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnRequest")
            .field("purpose", &self.purpose)
            .field("origin", &self.origin)
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}
