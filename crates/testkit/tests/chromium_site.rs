//! The page site as a real browser sees it, and the installer's script on this very machine.
#![allow(clippy::disallowed_methods, reason = "tests start real processes")]

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use pagebridge_testkit::site::Site;

/// What the script says is the browser here.
fn browser() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/ensure-chromium.sh");
    let found = Command::new("sh").arg(script).arg("--print").output().expect("sh runs");
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    assert!(found.stderr.is_empty(), "quiet where a browser is present");
    String::from_utf8(found.stdout).expect("a path in UTF-8").trim().to_owned()
}

/// The document after its scripts have run.
fn dump(url: &str) -> String {
    let profile = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(browser());
    command.args(["--headless", "--disable-gpu", "--no-first-run", "--dump-dom", "--timeout=10000"]);
    command.arg(format!("--user-data-dir={}", profile.path().display())).arg(url).stderr(Stdio::null());
    if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        command.arg("--no-sandbox");
    }
    String::from_utf8_lossy(&command.output().expect("the browser runs").stdout).into_owned()
}

#[test]
fn one_site_is_two_origins() {
    let site = Site::start();
    site.page("/", "<p id=at></p><script>at.textContent = location.origin + ' ' + isSecureContext</script>");
    for origin in [site.url(""), site.localhost_url("")] {
        let seen = dump(&format!("{origin}/"));
        assert!(seen.contains(&format!("{origin} true")), "{seen}");
    }
    assert_eq!(site.hits("/"), 2);
}
