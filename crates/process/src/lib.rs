//! The only crate that starts processes, and the only one that reads the environment.
//!
//! A [`Supervisor`] starts children from [`SpawnRequest`]s with a filtered environment ([`policy`]) in a process
//! group of their own. Each child is owned by an actor task; a [`Job`] is a handle to it. Whatever way a child ends
//! (asked, killed, or by itself), the actor ends what is left of its tree and removes its temporary folders.
//!
//! How a tree is found again: by the parent chain, by the process group, and by [`JOB_MARK_VARIABLE`], which survives
//! both a new session and the death of the parent. `/proc` is only read when a job ends. Without `/proc` (macOS) the
//! process group is all there is.
//!
//! When we are killed ourselves, a guard process ([`guard()`]) does the same from outside; what it has to know is in the
//! ledger, a file. When the guard is killed too, the next start does ([`Supervisor::begin_sweep`]).
//!
//! `PR_SET_PDEATHSIG` is never used: it follows the thread that forked, not the process.

mod actor;
mod error;
mod guard;
mod host_env;
mod job;
mod ledger;
pub mod policy;
mod remains;
mod request;
mod stat;
mod stdin;
mod supervisor;
mod sweep;
mod tail;
mod temp_dir;
mod tree;

pub use error::SpawnError;
pub use guard::{GuardCommand, guard};
pub use host_env::HostEnv;
pub use job::{Exit, Job};
pub use request::{Ladder, Polite, Purpose, SpawnRequest, Stdin, Stdout};
pub use stdin::JobStdin;
pub use supervisor::{Spawned, Supervisor};
pub use temp_dir::TempDir;
pub use tree::JOB_MARK_VARIABLE;
