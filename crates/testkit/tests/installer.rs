//! `make` and the scripts behind it, with a `PATH` of stand-ins: what is there, what is missing, who is asking.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests start real processes")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Real programs that the scripts and the stand-ins need.
const REAL: [&str; 6] = ["sh", "sed", "chmod", "mkdir", "make", "expand"];
/// Programs that ask for a password. None may ever be called.
const PASSWORD_TOOLS: [&str; 4] = ["sudo", "su", "doas", "pkexec"];
const APT_INSTALL: &str = "apt-get install -y --no-install-recommends chromium";
const RUST_195: &str = "cargo 1.95.0 (0123456 2026-03-21)";

/// A machine that consists of a folder of programs. `log` holds what the stand-ins were called with.
struct Machine {
    dir: TempDir,
}

#[derive(Debug)]
struct Run {
    code: i32,
    stdout: String,
    stderr: String,
}

impl Machine {
    /// A machine for user `uid` with neither Rust, browser nor package manager.
    fn of(uid: u32) -> Self {
        let machine = Self { dir: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir_all(machine.bin()).expect("a folder for programs");
        for name in REAL {
            let real =
                ["/bin", "/usr/bin"].iter().map(|dir| Path::new(dir).join(name)).find(|file| file.exists());
            symlink(real.unwrap_or_else(|| panic!("{name} is needed")), machine.bin().join(name))
                .expect("a link");
        }
        machine.program("id", &format!("echo {uid}"));
        machine.program("uname", "echo Linux");
        for name in PASSWORD_TOOLS {
            machine.program(name, "exit 1");
        }
        machine
    }

    fn root() -> Self {
        Self::of(0)
    }

    fn user() -> Self {
        Self::of(1000)
    }

    fn bin(&self) -> PathBuf {
        self.dir.path().join("bin")
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// A stand-in that logs its call, then does `body`.
    fn program(&self, name: &str, body: &str) {
        self.program_at(&self.bin().join(name), body);
    }

    fn program_at(&self, file: &Path, body: &str) {
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        let name = file.file_name().expect("a name").to_string_lossy();
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"{name}${{1:+ $*}}\" >>\"$LOG\"\n{body}\n");
        fs::write(file, script).expect("a program");
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("it can be run");
    }

    /// A package manager that installs `browser` when told to.
    fn manager(&self, name: &str, browser: &str) {
        let new = format!("{}/{browser}", self.bin().display());
        self.program(
            name,
            &format!(
                "case \"$*\" in *chromium*) printf '#!/bin/sh\\necho Chromium 156\\n' >{new}; chmod +x {new};; esac\n\
                 echo \"frontend=$DEBIAN_FRONTEND\" >>\"$LOG\"\necho noise of the package manager"
            ),
        );
    }

    /// A Rust tool chain. Installing nextest works when `nextest_installs`.
    fn rust(&self, version: &str, nextest_installs: bool) {
        let nextest = self.dir.path().join("nextest-is-there");
        let nextest = nextest.display();
        let install = if nextest_installs { format!(": >{nextest}") } else { "exit 101".into() };
        let built = "printf '#!/bin/sh\\necho \"pagebridge $* browser=$PAGEBRIDGE_EXECUTABLE_PATH\"\\n'";
        self.program(
            "cargo",
            &format!(
                "case \"$1 $2\" in\n\
                 '--version ') echo '{version}';;\n\
                 'nextest --version') [ -e {nextest} ];;\n\
                 'nextest run') echo \"sandbox off: $PAGEBRIDGE_NO_SANDBOX\"; echo 'Summary: all passed';;\n\
                 'install '*) {install};;\n\
                 'deny '*) exit 101;;\n\
                 'build '*) out=$CARGO_TARGET_DIR/release; mkdir -p $out\n\
                   {built} >$out/pagebridge; chmod +x $out/pagebridge;;\n\
                 esac"
            ),
        );
    }

    fn run(&self, program: &str, args: &[&str], env: &[(&str, &str)]) -> Run {
        let output = Command::new(self.bin().join(program))
            .args(args)
            .current_dir(repository())
            .env_clear()
            .env("PATH", self.bin())
            .env("HOME", self.home())
            .env("LOG", self.dir.path().join("log"))
            .env("CARGO_TARGET_DIR", self.dir.path().join("target"))
            .envs(env.iter().copied())
            .output()
            .expect("it runs");
        for tool in PASSWORD_TOOLS {
            assert!(
                !self.calls().iter().any(|call| call.split(' ').next() == Some(tool)),
                "{tool} was called"
            );
        }
        Run {
            code: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }

    fn ensure_chromium(&self) -> Run {
        self.run("sh", &["scripts/ensure-chromium.sh"], &[])
    }

    fn check_rust(&self) -> Run {
        self.run("sh", &["scripts/check-rust.sh"], &[])
    }

    /// What was called, in order.
    fn calls(&self) -> Vec<String> {
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        log.lines().map(Into::into).collect()
    }

    fn called(&self, call: &str) -> bool {
        self.calls().iter().any(|made| made == call)
    }
}

impl Run {
    #[track_caller]
    fn is_quiet_success(&self) {
        assert_eq!((self.code, self.stdout.as_str(), self.stderr.as_str()), (0, "", ""));
    }

    /// It failed, and said one line on stderr, which contains `parts`.
    #[track_caller]
    fn fails_with_one_line(&self, parts: &[&str]) {
        assert_ne!(self.code, 0, "{self:?}");
        assert_eq!((self.stdout.as_str(), self.stderr.lines().count()), ("", 1), "{self:?}");
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in {self:?}");
        }
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

#[test]
fn a_browser_on_path_is_enough() {
    let names = [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
        "microsoft-edge",
        "microsoft-edge-stable",
    ];
    for name in names {
        let machine = Machine::root();
        machine.manager("apt-get", "chromium");
        machine.program(name, "echo 156");
        machine.ensure_chromium().is_quiet_success();
        assert!(!machine.called("apt-get update"), "nothing to install beside {name}");
        let printed = machine.run("sh", &["scripts/ensure-chromium.sh", "--print"], &[]);
        assert_eq!(printed.stdout.trim(), machine.bin().join(name).to_string_lossy());
    }
}

#[test]
fn a_browser_of_playwright_is_enough() {
    for (root, layout) in [("home/.cache/ms-playwright", "chrome-linux"), ("elsewhere", "chrome-linux64")] {
        let machine = Machine::user();
        let root = machine.dir.path().join(root);
        machine.program_at(&root.join("chromium-1200").join(layout).join("chrome"), "echo 156");
        let env = [("PLAYWRIGHT_BROWSERS_PATH", root.to_str().expect("text"))];
        let env = if root.starts_with(machine.home()) { &[][..] } else { &env[..] };
        machine.run("sh", &["scripts/ensure-chromium.sh"], env).is_quiet_success();
    }
}

#[test]
fn a_named_browser_is_taken_or_refused() {
    let machine = Machine::user();
    let mine = machine.dir.path().join("my browser");
    machine.program_at(&mine, "echo 156");
    let mine = mine.to_str().expect("text");
    let args = ["scripts/ensure-chromium.sh"];
    machine.run("sh", &args, &[("PAGEBRIDGE_EXECUTABLE_PATH", mine)]).is_quiet_success();
    machine
        .run("sh", &args, &[("PAGEBRIDGE_EXECUTABLE_PATH", "/nowhere/chrome")])
        .fails_with_one_line(&["PAGEBRIDGE_EXECUTABLE_PATH", "/nowhere/chrome"]);
}

#[test]
fn root_installs_with_apt_once() {
    let machine = Machine::root();
    machine.manager("apt-get", "chromium");
    let first = machine.ensure_chromium();
    assert_eq!((first.code, first.stdout.as_str()), (0, ""), "{first:?}");
    assert!(first.stderr.starts_with("Chromium is missing: installing it with apt-get."), "{first:?}");
    let calls: Vec<String> = machine.calls().into_iter().filter(|call| call.starts_with("apt-get")).collect();
    assert_eq!(calls, ["apt-get update", APT_INSTALL]);
    assert!(machine.called("frontend=noninteractive"));
    machine.ensure_chromium().is_quiet_success();
    assert_eq!(machine.calls().iter().filter(|call| *call == APT_INSTALL).count(), 1);
}

#[test]
fn root_installs_with_other_managers() {
    for (manager, browser, install) in [
        ("dnf", "chromium-browser", "dnf install -y chromium"),
        ("apk", "chromium", "apk add --no-cache chromium"),
    ] {
        let machine = Machine::root();
        machine.manager(manager, browser);
        let run = machine.ensure_chromium();
        assert_eq!(run.code, 0, "{run:?}");
        assert!(machine.called(install), "{:?}", machine.calls());
    }
}

#[test]
fn others_are_told_the_command() {
    for (manager, command) in [
        ("apt-get", "  sudo apt-get update && sudo apt-get install -y --no-install-recommends chromium"),
        ("dnf", "  sudo dnf install -y chromium"),
        ("apk", "  sudo apk add --no-cache chromium"),
    ] {
        let machine = Machine::user();
        machine.manager(manager, "chromium");
        let run = machine.ensure_chromium();
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:?}");
        assert_eq!(
            run.stderr.lines().collect::<Vec<_>>(),
            ["Chromium is missing. Install it with:", command]
        );
        assert!(!machine.calls().iter().any(|call| call.starts_with(manager)), "{:?}", machine.calls());
    }
}

#[test]
fn a_failed_installation_is_told() {
    let machine = Machine::root();
    machine.program("apt-get", "echo 'E: Unable to locate package chromium' >&2\nexit 100");
    let run = machine.ensure_chromium();
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run:?}");
    let last = run.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("Chromium could not be installed:") && last.contains(APT_INSTALL), "{run:?}");
    assert!(
        run.stderr.contains("E: Unable to locate package chromium"),
        "the manager's own words stay: {run:?}"
    );
}

#[test]
fn stale_lists_alone_do_no_harm() {
    let machine = Machine::root();
    machine.manager("apt", "chromium");
    machine.program("apt-get", "[ \"$1\" = update ] && exit 100\nexec apt \"$@\"");
    let run = machine.ensure_chromium();
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("apt-get update failed"), "{run:?}");
}

#[test]
fn a_stub_instead_of_a_browser_is_noticed() {
    let machine = Machine::root();
    machine.program("chromium-browser", "echo 'install the snap instead' >&2; exit 1");
    machine.program("apt-get", "exit 0");
    let run = machine.ensure_chromium();
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stderr.lines().last().unwrap_or_default().contains("brought no Chromium that runs"),
        "{run:?}"
    );
}

#[test]
fn without_a_known_manager_one_line_is_said() {
    Machine::root().ensure_chromium().fails_with_one_line(&["Chromium is missing", "no package manager"]);
    Machine::user().ensure_chromium().fails_with_one_line(&["Chromium is missing", "no package manager"]);
}

#[test]
fn a_mac_is_told_about_brew() {
    let machine = Machine::user();
    machine.program("uname", "echo Darwin");
    machine.ensure_chromium().fails_with_one_line(&["brew install --cask chromium"]);
}

#[test]
fn rust_is_judged_by_its_version() {
    Machine::user().check_rust().fails_with_one_line(&["cargo was not found", "https://rustup.rs"]);
    for old in ["cargo 1.80.0", "cargo 1.84.1 (66221abde 2024-11-19)", "cargo 0.99.0"] {
        let machine = Machine::user();
        machine.rust(old, true);
        machine.check_rust().fails_with_one_line(&["Rust 1.85 or newer", "https://rustup.rs", &old[6..10]]);
    }
    for new in
        ["cargo 1.85.0 (d73d2caf9 2024-12-31)", "cargo 1.100.0", "cargo 2.0.0", "cargo 1.97.0-nightly (x)"]
    {
        let machine = Machine::user();
        machine.rust(new, true);
        machine.check_rust().is_quiet_success();
    }
    let machine = Machine::user();
    machine.rust("no toolchain", true);
    machine.check_rust().fails_with_one_line(&["names no version", "https://rustup.rs"]);
}

#[test]
fn a_fresh_rustup_is_found_off_path() {
    let machine = Machine::user();
    machine.program_at(&machine.home().join(".cargo/bin/cargo"), &format!("echo '{RUST_195}'"));
    machine.check_rust().is_quiet_success();
}

#[test]
fn make_says_one_line_about_rust() {
    for target in ["run", "test", "lint"] {
        let machine = Machine::root();
        machine.manager("apt-get", "chromium");
        machine
            .run("make", &[target], &[])
            .fails_with_one_line(&["cargo was not found", "https://rustup.rs"]);
        assert!(!machine.called("apt-get update"), "Rust comes first");
        machine.rust("cargo 1.80.0", true);
        machine.run("make", &[target], &[]).fails_with_one_line(&["this is 1.80", "https://rustup.rs"]);
    }
}

#[test]
fn make_run_installs_builds_and_shows() {
    let machine = Machine::root();
    machine.manager("apt-get", "chromium");
    machine.rust(RUST_195, true);
    let run = machine.run("make", &["run", "ARGS=--headed"], &[]);
    assert_eq!(run.code, 0, "{run:?}");
    let browser = machine.bin().join("chromium");
    assert_eq!(run.stdout, format!("pagebridge demo --no-sandbox --headed browser={}\n", browser.display()));
    assert_eq!(run.stderr.lines().filter(|line| line.contains("--no-sandbox")).count(), 1, "{run:?}");

    let machine = Machine::user();
    machine.rust(RUST_195, true);
    machine.program("google-chrome", "echo 156");
    let run = machine.run("make", &["run"], &[]);
    let browser = machine.bin().join("google-chrome");
    assert_eq!(run.stdout, format!("pagebridge demo browser={}\n", browser.display()), "{run:?}");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}

#[test]
fn make_run_stops_where_no_browser_can_be_had() {
    let machine = Machine::user();
    machine.rust(RUST_195, true);
    machine.manager("apt-get", "chromium");
    let run = machine.run("make", &["run"], &[]);
    assert_ne!(run.code, 0);
    assert!(run.stderr.contains("  sudo apt-get update && sudo apt-get install"), "{run:?}");
    assert!(!machine.calls().iter().any(|call| call.starts_with("cargo build")));
}

#[test]
fn make_test_ends_with_the_summary_of_nextest() {
    let machine = Machine::root();
    machine.program("chromium", "echo 156");
    machine.rust(RUST_195, true);
    let run = machine.run("make", &["test"], &[]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.ends_with("sandbox off: 1\nSummary: all passed\n"), "{run:?}");
    for said in
        ["cargo-nextest is missing", "PAGEBRIDGE_NO_SANDBOX=1", "cargo-deny is not installed", "node and npm"]
    {
        assert_eq!(run.stderr.matches(said).count(), 1, "{said}: {run:?}");
    }
    let cargo: Vec<String> = machine.calls().into_iter().filter(|call| call.starts_with("cargo")).collect();
    let at = |call: &str| {
        cargo.iter().position(|made| made == call).unwrap_or_else(|| panic!("{call}: {cargo:?}"))
    };
    assert!(at("cargo install --locked cargo-nextest") < at("cargo fmt --all --check"));
    assert!(at("cargo fmt --all --check") < at("cargo clippy --workspace --all-targets -- -D warnings"));
    assert_eq!(at("cargo nextest run --workspace"), cargo.len() - 1);
}

#[test]
fn make_test_falls_back_to_cargo_test() {
    let machine = Machine::user();
    machine.program("chromium", "echo 156");
    machine.rust(RUST_195, false);
    let run = machine.run("make", &["test"], &[]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("cargo-nextest could not be installed"), "{run:?}");
    assert!(!run.stderr.contains("Running as root"), "{run:?}");
    assert!(machine.calls().last().is_some_and(|call| call.starts_with("cargo test --workspace")));
}

#[test]
fn continuous_integration_runs_make_test() {
    let script = repository().join(".ci/run");
    assert!(fs::read_to_string(&script).expect("it is there").contains("exec make test"));
    assert_ne!(fs::metadata(&script).expect("it is there").permissions().mode() & 0o111, 0, "it can be run");
}
