//! Starts children, and ends all of them.

use crate::actor::{Actor, Reaper, drain, remove_dirs_now};
use crate::error::hint;
use crate::guard::GuardCommand;
use crate::job::{Job, Progress, Urgency};
use crate::ledger::{Ledger, Line};
use crate::remains::PREFIX;
use crate::stat::Identity;
use crate::stdin::{self, JobStdin};
use crate::tree::{JOB_MARK_VARIABLE, Tree};
use crate::{HostEnv, Purpose, SpawnError, SpawnRequest, Stdin, Stdout, TempDir, policy, sweep};
use command_fds::{CommandFdExt, FdMapping};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::hash::BuildHasher;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// What a spawn hands out.
#[derive(Debug)]
pub struct Spawned {
    /// The handle to the child.
    pub job: Job,
    /// Its stdin, if piped.
    pub stdin: Option<JobStdin>,
    /// Its stdout, if piped.
    pub stdout: Option<ChildStdout>,
}

/// Starts children and knows all that are alive. Clones share it.
#[derive(Clone, Debug)]
pub struct Supervisor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    env: HostEnv,
    /// What the marks of our jobs begin with.
    mark: String,
    guard: Option<GuardCommand>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closing: bool,
    spawned: u64,
    jobs: HashMap<u64, (Purpose, Job)>,
    /// Made with the first child or temporary folder.
    ledger: Option<Arc<Ledger>>,
    /// The guard's stdin tells it that we are there.
    guard: Option<(Job, Option<JobStdin>)>,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Supervisor {
    /// A supervisor whose children get their environment out of `env`. Nobody cleans up when we are killed.
    pub fn new(env: HostEnv) -> Self {
        Self::with(env, None)
    }

    /// The same, with a guard that ends the children and removes their folders when we are killed. It starts with the
    /// first of them.
    pub fn guarded(env: HostEnv, guard: GuardCommand) -> Self {
        Self::with(env, Some(guard))
    }

    fn with(env: HostEnv, guard: Option<GuardCommand>) -> Self {
        let own = format!("{}-{:016x}", std::process::id(), RandomState::new().hash_one("mark"));
        Self(Arc::new(Inner { env, mark: own, guard, state: Mutex::default() }))
    }

    /// The host's environment.
    pub fn env(&self) -> &HostEnv {
        &self.0.env
    }

    /// Ends, in the background, what earlier pagebridges left that were killed together with their guards.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn begin_sweep(&self) {
        let env = self.0.env.clone();
        tokio::task::spawn_blocking(move || sweep::sweep(&env));
    }

    /// Makes a temporary folder, for a request's [`temp_dirs`](SpawnRequest::temp_dirs). Guard and sweep know it from the
    /// moment it is there.
    ///
    /// # Errors
    /// When the system refuses.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn temp_dir(&self) -> io::Result<TempDir> {
        let mut state = self.0.lock();
        if state.closing {
            return Err(io::Error::other("shutting down"));
        }
        self.ensure_guard(&mut state);
        let base = std::path::absolute(std::env::temp_dir())?;
        loop {
            let random = RandomState::new().hash_one("folder") >> 24;
            let folder = base.join(format!("{PREFIX}{random:010x}"));
            if folder.symlink_metadata().is_err() {
                if let Some(ledger) = &state.ledger {
                    ledger.note(Line::Folder(folder.clone()));
                }
                DirBuilder::new().mode(0o700).create(&folder)?;
                return Ok(TempDir::new(folder));
            }
        }
    }

    /// Starts a process in a process group of its own. Takes a few milliseconds, in which the thread is blocked.
    ///
    /// # Errors
    /// When the system refuses, or after [`shutdown`](Self::shutdown) has begun.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn spawn(&self, request: SpawnRequest) -> Result<Spawned, SpawnError> {
        // Held over the spawn, so that a shutdown sees either the job or no process at all.
        let mut state = self.0.lock();
        if state.closing {
            remove_dirs_now(&request.temp_dirs);
            return Err(SpawnError::ShuttingDown { purpose: request.purpose, origin: request.origin });
        }
        self.ensure_guard(&mut state);
        self.launch(&mut state, request)
    }

    /// Starts the guard and the ledger where they are wanted and not there. Without them we go on, with a warning.
    fn ensure_guard(&self, state: &mut State) {
        let Some(guard) = &self.0.guard else { return };
        if state.guard.as_ref().is_some_and(|(job, _)| job.try_exit().is_none()) {
            return;
        }
        let known = state.ledger.as_ref().map(|ledger| ledger.path().to_owned());
        let path = match known.map_or_else(|| Ledger::place(&self.0.env), Ok) {
            Ok(path) => path,
            Err(error) => return unguarded("there is no folder for the list of what is started", &error),
        };
        // The guard first: the ledger would stay if we were killed before it is there.
        let mut request = SpawnRequest::new(Purpose::Guard, "pagebridge", &guard.program);
        request.args = vec![guard.subcommand.into(), path.clone().into()];
        request.cwd = Some("/".into());
        request.stdin = Stdin::Piped;
        state.guard = match self.launch(state, request) {
            Ok(spawned) => Some((spawned.job, spawned.stdin)),
            Err(error) => {
                unguarded("there is no guard until the next start", &error);
                None
            }
        };
        let ledger = match state.ledger.clone().map_or_else(|| Ledger::create(path).map(Arc::new), Ok) {
            Ok(ledger) => state.ledger.insert(ledger),
            Err(error) => {
                state.guard = None;
                return unguarded("the list of what is started cannot be written", &error);
            }
        };
        if let Some((job, _)) = &state.guard {
            ledger.note(Line::Guard(Identity::of(job.pid())));
        }
    }

    fn launch(&self, state: &mut State, mut request: SpawnRequest) -> Result<Spawned, SpawnError> {
        let id = state.spawned;
        state.spawned += 1;
        let mark = format!("{}-{id}", self.0.mark);
        let ledger = state.ledger.as_ref().filter(|_| request.purpose != Purpose::Guard);
        let entry = ledger.map(|ledger| ledger.job(id, &mark, &request.temp_dirs));
        let mut child = match self.start(&mut request, &mark) {
            Ok(child) => child,
            Err(source) => {
                remove_dirs_now(&request.temp_dirs);
                if let Some(entry) = entry {
                    entry.gone();
                }
                let hint = hint(&source, &request.program, request.cwd.as_deref());
                let SpawnRequest { purpose, origin, program, .. } = request;
                return Err(SpawnError::Os { purpose, origin, program, source, hint });
            }
        };
        let pid = child.id().expect("a child that was not waited for has a pid");
        let tree = Tree::new(pid, mark);
        if let Some(entry) = &entry {
            entry.started(tree.root());
        }
        let (stdin, closer) = child.stdin.take().map(stdin::shared).unzip();
        let stdout = child.stdout.take();
        let tail = Arc::default();
        let stderr = child.stderr.take().expect("stderr is piped");
        let (urgency, urgency_seen) = watch::channel(Urgency::Run);
        let (progress, progress_seen) = watch::channel(Progress::default());
        let actor = Actor {
            reaper: Reaper { tree, temp_dirs: request.temp_dirs, entry, finished: false },
            child,
            label: format!("{} {} ({pid})", request.purpose, request.origin),
            ladder: request.ladder,
            stdin: closer,
            stderr: tokio::spawn(drain(stderr, Arc::clone(&tail))),
            urgency: urgency_seen,
            progress,
        };
        tracing::debug!(job = actor.label, program = %request.program.display(), "started");
        let job = Job::new(pid, tail, urgency, progress_seen);
        state.jobs.insert(id, (request.purpose, job.clone()));
        let inner = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            actor.run().await;
            if let Some(inner) = inner.upgrade() {
                inner.lock().jobs.remove(&id);
            }
        });
        Ok(Spawned { job, stdin, stdout })
    }

    #[allow(clippy::disallowed_methods, reason = "the one place that spawns")]
    fn start(&self, request: &mut SpawnRequest, mark: &str) -> io::Result<Child> {
        let mut command = Command::new(&request.program);
        command
            .args(&request.args)
            .env_clear()
            .envs(self.child_env(request, mark))
            .stdin(match request.stdin {
                Stdin::Null => Stdio::null(),
                Stdin::Piped => Stdio::piped(),
            })
            .stdout(match request.stdout {
                Stdout::Null => Stdio::null(),
                Stdout::Piped => Stdio::piped(),
            })
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // The guard gets a session of its own, which the leader of a group cannot make.
        if request.purpose != Purpose::Guard {
            command.process_group(0);
        }
        if let Some(cwd) = &request.cwd {
            command.current_dir(cwd);
        }
        let fds = std::mem::take(&mut request.extra_fds);
        if !fds.is_empty() {
            let fds =
                fds.into_iter().map(|(parent_fd, child_fd)| FdMapping { parent_fd, child_fd }).collect();
            command.fd_mappings(fds).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        }
        command.spawn()
    }

    fn child_env(&self, request: &SpawnRequest, mark: &str) -> Vec<(OsString, OsString)> {
        let mut explicit = request.env.clone();
        if request.purpose == Purpose::Discovery {
            explicit.entry("TZ".to_owned()).or_insert(None);
        }
        let marks = match self.0.env.get_str(JOB_MARK_VARIABLE) {
            Some(outer) if !outer.is_empty() => format!("{outer}:{mark}"),
            _ => mark.to_owned(),
        };
        explicit.insert(JOB_MARK_VARIABLE.to_owned(), Some(marks));
        policy::child_env(&self.0.env, &explicit)
    }

    /// Ends all jobs at once, each by its ladder cut to the times of [`Ladder::exit`](crate::Ladder::exit), guards after
    /// all others. No spawn succeeds from the call on. Returns when every child is reaped and every temporary folder
    /// is gone. What remains at the `deadline` is killed at once; the kernel then gets some 2 s, and whatever still
    /// does not go is logged. Returns the pids of children that could not be ended (none, ordinarily).
    pub async fn shutdown(&self, deadline: Duration) -> Vec<u32> {
        self.0.lock().closing = true;
        let kill_at = tokio::time::Instant::now() + deadline;
        let mut left = Vec::new();
        for guards in [false, true] {
            if guards {
                self.0.lock().ledger.iter().for_each(|ledger| ledger.close());
            }
            let jobs: Vec<Job> = {
                let state = self.0.lock();
                let chosen = |(purpose, _): &&(Purpose, Job)| (*purpose == Purpose::Guard) == guards;
                state.jobs.values().filter(chosen).map(|(_, job)| job.clone()).collect()
            };
            jobs.iter().for_each(|job| job.hurry(Urgency::Exit));
            let all = async {
                for job in &jobs {
                    job.done().await;
                }
            };
            if tokio::time::timeout_at(kill_at, all).await.is_err() {
                jobs.iter().for_each(|job| job.hurry(Urgency::Kill));
                let all = async {
                    for job in &jobs {
                        job.done().await;
                    }
                };
                let _ = timeout(Duration::from_secs(3), all).await;
            }
            left.extend(jobs.iter().filter(|job| !job.is_done()).map(Job::pid));
        }
        left
    }

    /// The jobs that are alive, with their purposes; for status reports.
    pub fn jobs(&self) -> Vec<(Purpose, Job)> {
        self.0.lock().jobs.values().filter(|(_, job)| !job.is_done()).cloned().collect()
    }
}

/// Says that the user must do what nobody else will.
fn unguarded(why: &str, error: &dyn std::error::Error) {
    tracing::warn!(%error, "{why}; what is started now may outlive a kill of this process");
}
