//! A temporary folder that does not outlive us.

use std::path::{Path, PathBuf};

/// A temporary folder, made by [`Supervisor::temp_dir`](crate::Supervisor::temp_dir). Dropping it removes it.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Leaves its removal to somebody else: to a job that has it among its
    /// [`temp_dirs`](crate::SpawnRequest::temp_dirs).
    pub fn keep(mut self) -> PathBuf {
        std::mem::take(&mut self.0)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
