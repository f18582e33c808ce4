//! Finds a Chromium on this machine.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use pagebridge_process::HostEnv;

/// Names looked for in `PATH`, best first: Chromium itself offers WebMCP to a command-line switch.
const NAMES: [&str; 7] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "microsoft-edge-stable",
];

const MAC_APPS: [&str; 3] = [
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
];

/// The browser to use: on `PATH`, among the applications of a Mac, or in Playwright's cache (the newest).
pub fn find(env: &HostEnv) -> Option<PathBuf> {
    on_path(env.get("PATH")).or_else(mac_app).or_else(|| in_playwright_cache(env))
}

fn on_path(path: Option<&OsStr>) -> Option<PathBuf> {
    let directories: Vec<PathBuf> = std::env::split_paths(path?).collect();
    NAMES
        .iter()
        .find_map(|name| directories.iter().map(|dir| dir.join(name)).find(|file| is_executable(file)))
}

fn mac_app() -> Option<PathBuf> {
    MAC_APPS.iter().map(PathBuf::from).find(|file| is_executable(file))
}

fn in_playwright_cache(env: &HostEnv) -> Option<PathBuf> {
    let home = env.get("HOME").map(PathBuf::from);
    let cache = match env.get("PLAYWRIGHT_BROWSERS_PATH") {
        Some(chosen) if chosen != "0" => PathBuf::from(chosen),
        _ if cfg!(target_os = "macos") => home?.join("Library/Caches/ms-playwright"),
        _ => home?.join(".cache/ms-playwright"),
    };
    let mut builds: Vec<(u64, PathBuf)> = std::fs::read_dir(cache)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let revision = name.to_str()?.strip_prefix("chromium-")?.parse().ok()?;
            Some((revision, entry.path()))
        })
        .collect();
    builds.sort_by_key(|(revision, _)| std::cmp::Reverse(*revision));
    let inside =
        ["chrome-linux/chrome", "chrome-linux64/chrome", "chrome-mac/Chromium.app/Contents/MacOS/Chromium"];
    builds.iter().flat_map(|(_, build)| inside.iter().map(|file| build.join(file))).find(|f| is_executable(f))
}

fn is_executable(file: &Path) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    #[cfg(unix)]
    let allowed = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let allowed = true;
    metadata.is_file() && allowed
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn executable(file: &Path) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_path_is_searched_by_preference_and_only_for_executables() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("a"), dir.path().join("b"));
        executable(&first.join("google-chrome"));
        executable(&second.join("chromium"));
        std::fs::write(first.join("chromium"), "not executable").unwrap();
        let path = std::env::join_paths([&first, &second]).unwrap();
        assert_eq!(on_path(Some(&path)), Some(second.join("chromium")));
        assert_eq!(on_path(Some(first.as_os_str())), Some(first.join("google-chrome")));
        assert_eq!(on_path(Some(OsStr::new("/nowhere"))), None);
        assert_eq!(on_path(None), None);
    }

    #[test]
    fn the_newest_build_of_the_cache_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        for build in ["chromium-999", "chromium-1200", "chromium_headless_shell-1300", "chromium-text"] {
            executable(&dir.path().join(build).join("chrome-linux/chrome"));
        }
        let env = HostEnv::from_vars([("PLAYWRIGHT_BROWSERS_PATH", dir.path().as_os_str())]);
        assert_eq!(in_playwright_cache(&env), Some(dir.path().join("chromium-1200/chrome-linux/chrome")));
    }
}
