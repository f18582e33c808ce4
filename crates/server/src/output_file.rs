//! Files that a caller names, kept inside the workspace whatever links and dots a path holds.

use std::io;
use std::path::{Component, Path, PathBuf};

use pagebridge_core::{ErrorKind, ToolError, text};

/// A file that may be written.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    root: PathBuf,
}

impl OutputFile {
    /// The file that `given` means, relative to `root`, with one of these extensions (the first is added to a name
    /// that has none of them).
    pub fn of(root: &Path, given: &str, extensions: &[&str]) -> Result<Self, ToolError> {
        let outside = || not_allowed(given, root);
        std::fs::create_dir_all(root).map_err(|error| unwritable(root, &error))?;
        let root = root.canonicalize().map_err(|error| unwritable(root, &error))?;
        let path = root.join(given);
        let has_name = path.components().next_back().is_some_and(|last| matches!(last, Component::Normal(_)));
        if !has_name || given.trim().is_empty() || given.contains('\0') || given.ends_with(['/', '\\']) {
            return Err(ToolError::not_run(
                ErrorKind::InvalidArguments,
                format!("filePath {} names no file.", text::quoted(&text::one_line(given, 300))),
            ));
        }
        let has_extension = path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| extensions.iter().any(|known| known.eq_ignore_ascii_case(extension)));
        let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
        if let Some(first) = extensions.first().filter(|_| !has_extension) {
            name.push(".");
            name.push(first);
        }
        let folder = path.parent().ok_or_else(outside)?;
        let folder = inside(folder, &root).ok_or_else(outside)?;
        Ok(Self { path: folder.join(name), root })
    }

    /// Writes it, in place of one that is there. Gives its path.
    pub fn write(&self, content: &[u8]) -> Result<PathBuf, ToolError> {
        let written = self.try_write(content);
        written.map_err(|error| unwritable(&self.path, &error))?;
        Ok(self.path.clone())
    }

    fn try_write(&self, content: &[u8]) -> io::Result<()> {
        let refused = || io::Error::new(io::ErrorKind::PermissionDenied, "it lies outside the workspace");
        let folder = self.path.parent().ok_or_else(refused)?;
        std::fs::create_dir_all(folder)?;
        if !folder.canonicalize()?.starts_with(&self.root) {
            return Err(refused());
        }
        // Renaming replaces a link instead of writing through it.
        let mut part = self.path.clone().into_os_string();
        part.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(part);
        std::fs::remove_file(&part).ok();
        let mut file = std::fs::File::create_new(&part)?;
        let written =
            io::Write::write_all(&mut file, content).and_then(|()| std::fs::rename(&part, &self.path));
        if written.is_err() {
            std::fs::remove_file(&part).ok();
        }
        written
    }
}

/// The folder with all links followed, if it is, or will be, inside `root`.
fn inside(folder: &Path, root: &Path) -> Option<PathBuf> {
    let mut there = folder.to_path_buf();
    let mut missing = Vec::new();
    let real = loop {
        match there.canonicalize() {
            Ok(real) => break real,
            // A link to nowhere cannot be followed, so it is not trusted.
            Err(_) if there.is_symlink() => return None,
            Err(_) => {
                let Component::Normal(last) = there.components().next_back()? else { return None };
                missing.push(last.to_owned());
                there.pop();
            }
        }
    };
    let whole = missing.into_iter().rev().fold(real, |path, name| path.join(name));
    whole.starts_with(root).then_some(whole)
}

fn not_allowed(given: &str, root: &Path) -> ToolError {
    let given = text::quoted(&text::one_line(given, 300));
    let message =
        format!("filePath {given} lies outside the workspace {}. Give a path inside it.", root.display());
    ToolError::not_run(ErrorKind::NotAllowed, message)
}

fn unwritable(path: &Path, error: &io::Error) -> ToolError {
    ToolError::failed(ErrorKind::NotAllowed, format!("{} cannot be written: {error}.", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_inside_are_written_and_get_their_extension() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let absolute = root.join("deep/er/x.txt");
        for (given, path) in [
            ("a", "a.txt"),
            ("a.TXT", "a.TXT"),
            ("main.rs", "main.rs.txt"),
            ("new/folder/b.txt", "new/folder/b.txt"),
            ("./new/../c.txt", "c.txt"),
            (absolute.to_str().unwrap(), "deep/er/x.txt"),
        ] {
            let file =
                OutputFile::of(&root, given, &["txt"]).unwrap_or_else(|error| panic!("{given}: {error}"));
            assert_eq!(file.write(b"one").unwrap(), root.join(path), "{given}");
            assert_eq!(file.write(b"two").unwrap(), root.join(path), "{given}");
            assert_eq!(std::fs::read(root.join(path)).unwrap(), b"two", "{given}");
        }
    }

    #[test]
    fn nothing_outside_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("work");
        let outside = dir.path().join("outside");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        #[cfg(unix)]
        for (link, to) in
            [("link", "../outside"), ("dangling", "../nowhere"), ("file.txt", "../outside/f.txt")]
        {
            std::os::unix::fs::symlink(to, root.join(link)).unwrap();
        }
        for given in
            ["../x.txt", "/tmp/x.txt", "a/../../x.txt", "link/x.txt", "dangling/x.txt", "missing/../../x"]
        {
            let error = OutputFile::of(&root, given, &["txt"]).unwrap_err();
            assert_eq!(error.kind, ErrorKind::NotAllowed, "{given}: {error}");
        }
        for given in ["", " ", "folder/", "..", "a/.."] {
            assert!(OutputFile::of(&root, given, &["txt"]).is_err(), "{given}");
        }
        // A link in place of the file is replaced, not followed.
        OutputFile::of(&root, "file.txt", &["txt"]).unwrap().write(b"x").unwrap();
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
