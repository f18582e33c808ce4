//! Why a browser did not start, and which option helps. Pure: a function of what was seen.

use std::net::SocketAddr;
use std::path::Path;

use pagebridge_cdp::{ConnectError, Endpoint};

/// What was seen of a start that failed.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    /// The executable.
    pub program: &'a Path,
    /// How it ended, in words, or why it could not be started.
    pub end: String,
    /// Its exit status, if it had one.
    pub code: Option<i32>,
    /// The last lines that it wrote.
    pub stderr: &'a [String],
    /// The profile directory.
    pub profile: &'a Path,
}

/// A browser that did not start.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct StartError {
    /// What happened, the browser's own last words, and what helps.
    pub message: String,
    /// What helps, by itself, where it is known.
    pub hint: Option<String>,
}

impl StartError {
    pub(crate) fn of(seen: &Seen<'_>) -> Self {
        let hint = hint(seen);
        let mut message = format!("The browser {} did not start: {}.", seen.program.display(), seen.end);
        if let Some(hint) = &hint {
            message.push(' ');
            message.push_str(hint);
        }
        if !seen.stderr.is_empty() {
            message.push_str("\nIts last words:\n");
            message.push_str(&seen.stderr.join("\n"));
        }
        Self { message, hint }
    }

    pub(crate) fn no_folder(program: &Path, folder: &Path, error: &std::io::Error, hint: &str) -> Self {
        let message = format!(
            "The browser {} was not started: its folder {} cannot be made: {error}. {hint}",
            program.display(),
            folder.display()
        );
        Self { message, hint: Some(hint.into()) }
    }

    pub(crate) fn not_found() -> Self {
        let hint = "Install Chromium (Debian and Ubuntu: apt-get install chromium), or name a browser with --executable-path.";
        Self {
            message: format!("No browser was found on PATH or in Playwright's cache. {hint}"),
            hint: Some(hint.into()),
        }
    }
}

impl StartError {
    /// No address that was given is a browser.
    pub(crate) fn unreachable(error: &ConnectError) -> Self {
        Self { message: format!("{error} {}", error.hint()), hint: Some(error.hint().into()) }
    }

    /// Something took the connection and is no browser, or one that cannot answer.
    pub(crate) fn silent(endpoint: &Endpoint, address: SocketAddr, reason: &str) -> Self {
        let hint = "Is it the address of the browser itself, and does the browser still work?";
        let message =
            format!("What answers at {endpoint} ({address}) cannot be attached to: {reason}. {hint}");
        Self { message, hint: Some(hint.into()) }
    }
}

/// Chromium's exit status when another process holds the profile.
const PROFILE_IN_USE: i32 = 21;

fn hint(seen: &Seen<'_>) -> Option<String> {
    let said = |part: &str| seen.stderr.iter().any(|line| line.contains(part));
    let hint = if said("Running as root without --no-sandbox") {
        "As root Chromium runs only without its sandbox: give --no-sandbox (PAGEBRIDGE_NO_SANDBOX=1) if you trust the pages, or run as another user.".into()
    } else if said("No usable sandbox") || said("Failed to move to new namespace") {
        "This system gives no user namespaces to programs, so Chromium has no sandbox: allow them (sysctl kernel.unprivileged_userns_clone=1, or kernel.apparmor_restrict_unprivileged_userns=0), or give --no-sandbox if you trust the pages.".into()
    } else if said("Missing X server") || said("cannot open display") || said("Unable to open X display") {
        "There is no display for a window: leave --headed away, or set DISPLAY.".into()
    } else if let Some(library) = missing_library(seen.stderr) {
        format!(
            "The system lacks the library {library}: install the browser through the system's package manager, which brings its libraries along."
        )
    } else if seen.code == Some(PROFILE_IN_USE) || said("profile appears to be in use") {
        format!(
            "The profile {} is in use by another browser: close it, or give another --user-data-dir.",
            seen.profile.display()
        )
    } else if said("Failed to create") && said("data directory")
        || said("Permission denied") && said(&seen.profile.to_string_lossy())
    {
        format!(
            "The profile folder {} cannot be written: choose another --user-data-dir.",
            seen.profile.display()
        )
    } else {
        return None;
    };
    Some(hint)
}

fn missing_library(stderr: &[String]) -> Option<&str> {
    stderr.iter().find_map(|line| {
        let (_, rest) = line.split_once("error while loading shared libraries: ")?;
        rest.split(':').next()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint_of(code: i32, stderr: &str) -> Option<String> {
        let stderr: Vec<String> = stderr.lines().map(Into::into).collect();
        let seen = Seen {
            program: Path::new("/usr/bin/chromium"),
            end: format!("exit status {code}"),
            code: Some(code),
            stderr: &stderr,
            profile: Path::new("/p"),
        };
        let error = StartError::of(&seen);
        assert!(stderr.iter().all(|line| error.message.contains(line)), "the last words are told");
        error.hint
    }

    #[test]
    fn each_known_failure_names_the_option_that_helps() {
        for (code, stderr, helps) in [
            (
                1,
                "[1:1:ERROR:zygote_host_impl_linux.cc(101)] Running as root without --no-sandbox is not supported. See https://crbug.com/638180.",
                "--no-sandbox",
            ),
            (
                133,
                "[FATAL:zygote_host_impl_linux.cc] No usable sandbox! If you are running on Ubuntu 23.10+",
                "user namespaces",
            ),
            (1, "[ERROR:ozone_platform_x11.cc] Missing X server or $DISPLAY", "--headed"),
            (
                127,
                "/opt/chrome: error while loading shared libraries: libnss3.so: cannot open shared object file: No such file",
                "libnss3.so",
            ),
            (21, "", "--user-data-dir"),
        ] {
            let hint = hint_of(code, stderr).unwrap_or_else(|| panic!("no hint for {stderr}"));
            assert!(hint.contains(helps), "{hint}");
        }
        assert_eq!(hint_of(5, "something new"), None);
    }

    #[test]
    fn root_and_missing_namespaces_are_told_apart() {
        let root = hint_of(1, "Running as root without --no-sandbox is not supported").unwrap();
        let namespaces = hint_of(1, "No usable sandbox!").unwrap();
        assert!(root.contains("root") && !namespaces.contains("root"));
    }
}
