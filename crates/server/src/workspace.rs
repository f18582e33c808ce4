//! The session's folder. Only what does not fit into an answer is written there.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use pagebridge_core::ToolError;

use crate::output_file::OutputFile;

/// Where results go that are too large to be shown.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    last: AtomicU32,
}

impl Workspace {
    /// A workspace in this folder. Nothing is made until something is written.
    pub fn new(root: PathBuf) -> Self {
        Self { root, last: AtomicU32::new(0) }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file that a caller means, if it lies inside. `extensions` are those that it may have.
    pub fn output(&self, given: &str, extensions: &[&str]) -> Result<OutputFile, ToolError> {
        OutputFile::of(&self.root, given, extensions)
    }

    /// Writes a whole result into a new file and gives its path.
    pub fn keep(&self, stem: &str, extension: &str, content: impl AsRef<[u8]>) -> io::Result<PathBuf> {
        let own = self.root.join(".pagebridge");
        let results = own.join("results");
        for folder in [&own, &results] {
            // A folder that came with somebody's files may point anywhere.
            if folder.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
                return Err(io::Error::other(format!("{} is a link", folder.display())));
            }
        }
        std::fs::create_dir_all(&results)?;
        let ignore = own.join(".gitignore");
        if !ignore.exists() {
            std::fs::write(ignore, "*\n")?;
        }
        let stem: String =
            stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(40).collect();
        loop {
            let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
            let file = results.join(format!("{stem}-{number}.{extension}"));
            match std::fs::File::create_new(&file) {
                Ok(mut created) => {
                    io::Write::write_all(&mut created, content.as_ref())?;
                    return Ok(file);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_files_are_ignored_by_git_and_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let first = Workspace::new(dir.path().into()).keep("../a tool", "txt", "one").unwrap();
        let second = Workspace::new(dir.path().into()).keep("../a tool", "txt", "two").unwrap();
        assert_ne!(first, second);
        assert!(first.starts_with(dir.path().join(".pagebridge/results")));
        assert_eq!(std::fs::read_to_string(first).unwrap(), "one");
        assert_eq!(std::fs::read_to_string(dir.path().join(".pagebridge/.gitignore")).unwrap(), "*\n");
    }
}
