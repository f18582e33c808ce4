//! Why a process could not be started.

use crate::Purpose;
use std::io;
use std::path::{Path, PathBuf};

/// Why a process could not be started. The text names the program but neither its arguments nor its environment.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The operating system refused.
    #[error("cannot start {purpose} \"{origin}\" ({}): {source}{}", .program.display(), suffix(.hint))]
    Os {
        /// Why it was to be started.
        purpose: Purpose,
        /// Who asked.
        origin: String,
        /// What was to be run.
        program: PathBuf,
        /// The error of the operating system.
        source: io::Error,
        /// What the user may do about it.
        hint: Option<String>,
    },
    /// [`Supervisor::shutdown`](crate::Supervisor::shutdown) has begun; nothing was started.
    #[error("cannot start {purpose} \"{origin}\": shutting down")]
    ShuttingDown {
        /// Why it was to be started.
        purpose: Purpose,
        /// Who asked.
        origin: String,
    },
}

fn suffix(hint: &Option<String>) -> String {
    hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default()
}

/// What the user may do about a failed start.
pub(crate) fn hint(error: &io::Error, program: &Path, cwd: Option<&Path>) -> Option<String> {
    if let Some(cwd) = cwd.filter(|cwd| !cwd.is_dir()) {
        return Some(format!("the working folder {} does not exist or is no folder", cwd.display()));
    }
    let bare =
        program.components().count() == 1 && !program.is_absolute() && program.parent() == Some("".as_ref());
    let path = match cwd {
        Some(cwd) if program.is_relative() => cwd.join(program),
        _ => program.to_owned(),
    };
    match error.kind() {
        io::ErrorKind::NotFound if bare => {
            Some("it was not found in PATH: install it, or give its full path".to_owned())
        }
        io::ErrorKind::NotFound if path.exists() => {
            Some("the file exists, so the interpreter in its first line or its loader is missing".to_owned())
        }
        io::ErrorKind::NotFound => Some("there is no such file".to_owned()),
        io::ErrorKind::PermissionDenied if path.is_dir() => {
            Some("that is a folder, not a program".to_owned())
        }
        io::ErrorKind::PermissionDenied => Some(
            "make it executable (chmod +x), or look whether its file system is mounted noexec".to_owned(),
        ),
        _ => None,
    }
}
