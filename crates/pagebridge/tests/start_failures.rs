//! A browser that does not start is told at once, with its last words and what helps.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagebridge_testkit::bridge::{Bridge, browser_args};
use pagebridge_testkit::raw::Raw;
use serde_json::{Value, json};
use support::EXE;
use tempfile::TempDir;

const ROOT: &str = "[1:1:1201/010101.1:ERROR:zygote_host_impl_linux.cc(101)] Running as root without --no-sandbox is not supported. See https://crbug.com/638180.";
/// The same for all: not even the suite's own choice counts here.
const ENV: [(&str, Option<&str>); 2] =
    [("PAGEBRIDGE_NO_SANDBOX", None), ("PAGEBRIDGE_EXECUTABLE_PATH", None)];

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A program in place of a browser.
fn script(folder: &Path, body: &str) -> PathBuf {
    let file = folder.join("browser");
    std::fs::write(&file, format!("#!/bin/sh\n{body}\n")).expect("a script");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("an executable script");
    file
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The error that opening a page gets, twice: a failed start is no reason not to try again.
async fn start_error(args: &[&str]) -> Value {
    let dir = folder();
    let bridge = Bridge::start_with(EXE, dir.path(), args, &ENV).await;
    let mut errors = Vec::new();
    for _ in 0..2 {
        let started = Instant::now();
        let error = bridge.error("new_page", json!({"url": "http://127.0.0.1/"})).await;
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}: {error:#}", started.elapsed());
        assert_eq!(error["kind"], "browser_start_failed", "{error:#}");
        assert_eq!(error["outcome"], "not_run", "{error:#}");
        errors.push(error);
    }
    let info = bridge.call("bridge_info", json!({})).await;
    assert_eq!(info["structuredContent"]["browser"]["state"], "idle", "{info:#}");
    bridge.finish().await;
    errors.pop().expect("an error")
}

fn assert_told(error: &Value, parts: &[&str], hint: &str) {
    let message = error["message"].as_str().expect("a message");
    for part in parts {
        assert!(message.contains(part), "{part:?} is missing: {message}");
    }
    let told = error["details"]["hint"].as_str().unwrap_or_default();
    assert!(told.contains(hint), "{hint:?} is missing in the hint {told:?}: {message}");
    assert!(message.contains(told), "{message}");
}

#[tokio::test]
async fn a_browser_that_is_not_there_or_cannot_be_run_is_told_with_its_path() {
    let dir = folder();
    let missing = dir.path().join("no-such-browser");
    let error = start_error(&["--executable-path", utf8(&missing)]).await;
    assert_told(&error, &[utf8(&missing), "No such file"], "");
    let plain = script(dir.path(), "exit 0");
    std::fs::set_permissions(&plain, std::fs::Permissions::from_mode(0o644)).expect("a plain file");
    let error = start_error(&["--executable-path", utf8(&plain)]).await;
    assert_told(&error, &[utf8(&plain), "Permission denied"], "");
    let error = start_error(&["--executable-path", utf8(dir.path())]).await;
    assert_told(&error, &[utf8(dir.path()), "Permission denied"], "");
}

#[tokio::test]
async fn what_a_browser_says_at_its_end_is_told_with_the_option_that_helps() {
    for (body, parts, hint) in [
        (format!("echo '{ROOT}' >&2; exit 1"), vec!["status 1", ROOT], "--no-sandbox"),
        (
            "echo 'No usable sandbox! If you are running on Ubuntu 23.10+ see here' >&2; kill -TRAP $$".into(),
            vec!["signal", "No usable sandbox!"],
            "user namespaces",
        ),
        (
            "echo \"$0: error while loading shared libraries: libnss3.so: cannot open shared object file\" >&2; exit 127".into(),
            vec!["status 127", "libnss3.so"],
            "libnss3.so",
        ),
        ("echo 'Missing X server or $DISPLAY' >&2; exit 1".into(), vec!["status 1"], "--headed"),
        ("exit 21".into(), vec!["status 21"], "--user-data-dir"),
        ("echo something new >&2; exit 5".into(), vec!["status 5", "something new"], ""),
        ("exit 0".into(), vec!["status 0"], ""),
    ] {
        let dir = folder();
        let browser = script(dir.path(), &body);
        let error = start_error(&["--executable-path", utf8(&browser)]).await;
        let parts: Vec<&str> = parts.into_iter().chain([utf8(&browser)]).collect();
        assert_told(&error, &parts, hint);
    }
}

#[tokio::test]
async fn much_that_a_browser_says_is_cut_to_its_last_lines() {
    let dir = folder();
    let body =
        "i=0; while [ $i -lt 3000 ]; do echo \"line $i of a long story\" >&2; i=$((i+1)); done; exit 1";
    let error = start_error(&["--executable-path", utf8(&script(dir.path(), body))]).await;
    assert_told(&error, &["line 2999 of a long story"], "");
    let message = error["message"].as_str().expect("a message");
    assert!(message.len() < 20_000, "{} bytes", message.len());
}

#[tokio::test]
async fn a_program_that_closes_its_pipes_and_stays_is_given_up_and_ended() {
    let dir = folder();
    let browser = script(dir.path(), "echo 'not me' >&2; exec 3<&- 4>&-; exec sleep 300");
    // `finish` in there checks that it is gone.
    let error = start_error(&["--executable-path", utf8(&browser)]).await;
    assert_told(&error, &["did not start", "not me"], "");
}

#[tokio::test]
async fn a_profile_folder_that_cannot_be_written_is_told_with_its_option() {
    let dir = folder();
    let file = dir.path().join("a-file");
    std::fs::write(&file, "in the way").expect("a file");
    let browser = script(dir.path(), "exit 0");
    // Not even root makes a folder below a file, or in /proc.
    for profile in [file.join("profile"), PathBuf::from("/proc/no-such-folder/profile")] {
        let args = ["--executable-path", utf8(&browser), "--user-data-dir", utf8(&profile)];
        let error = start_error(&args).await;
        assert_told(&error, &[utf8(&profile)], "--user-data-dir");
    }
}

#[tokio::test]
async fn the_command_line_ends_with_status_69() {
    let dir = folder();
    let browser = script(dir.path(), &format!("echo '{ROOT}' >&2; exit 1"));
    let missing = dir.path().join("no-such-browser");
    for browser in [&browser, &missing] {
        for command in [&["tools", "http://127.0.0.1:1/"][..], &["call", "http://127.0.0.1:1/", "x"]] {
            let args: Vec<&str> =
                command.iter().copied().chain(["--executable-path", utf8(browser)]).collect();
            let started = Instant::now();
            let mut raw = Raw::start(EXE, dir.path(), &args, &[]);
            raw.close_input();
            assert_eq!(raw.line().await, None, "a failure says nothing on stdout");
            let status = raw.ended(Duration::from_secs(5)).await;
            assert_eq!(status.code(), Some(69), "{args:?}: {}", raw.stderr());
            assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
            assert!(raw.stderr().contains(utf8(browser)), "{}", raw.stderr());
            raw.marker.assert_gone_within(Duration::from_secs(1));
        }
    }
}

/// Chromium refuses to run as root with its sandbox. For others there is nothing to see here.
#[tokio::test]
async fn chromium_as_root_names_the_sandbox_option_and_is_never_run_without_it_silently() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let error = start_error(&[]).await;
    assert_told(&error, &["status 1", "Running as root without --no-sandbox"], "--no-sandbox");
    let dir = folder();
    let mut raw = Raw::start(
        "/usr/bin/env",
        dir.path(),
        &["-u", "PAGEBRIDGE_NO_SANDBOX", EXE, "tools", "http://127.0.0.1:1/"],
        &[],
    );
    raw.close_input();
    assert_eq!(raw.line().await, None);
    assert_eq!(raw.ended(Duration::from_secs(5)).await.code(), Some(69), "{}", raw.stderr());
    assert!(raw.stderr().contains("--no-sandbox"), "{}", raw.stderr());
}

#[tokio::test]
async fn a_start_that_failed_is_tried_again_by_the_next_call_with_chromium() {
    let dir = folder();
    let first = dir.path().join("first");
    let body = format!(
        "if [ ! -e '{0}' ]; then : > '{0}'; echo 'bad luck' >&2; exit 1; fi\nexec \"$(command -v chromium || command -v chromium-browser || command -v google-chrome)\" \"$@\"",
        first.display()
    );
    let browser = script(dir.path(), &body);
    let sandbox = browser_args();
    let args: Vec<&str> =
        sandbox.iter().map(String::as_str).chain(["--executable-path", utf8(&browser)]).collect();
    let bridge = Bridge::start_with(EXE, dir.path(), &args, &[]).await;
    let error = bridge.error("new_page", json!({"url": "about:blank"})).await;
    assert_told(&error, &["bad luck"], "");
    let text = bridge.text("new_page", json!({"url": "about:blank"})).await;
    assert!(text.starts_with("Opened page 1"), "{text}");
    let info = bridge.call("bridge_info", json!({})).await;
    let state = &info["structuredContent"]["browser"];
    assert_eq!((&state["state"], &state["generation"]), (&json!("ready"), &json!(1)), "{info:#}");
    bridge.finish().await;
}
