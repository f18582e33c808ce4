//! A place of its own for bridges that are to be killed: their temporary folders and ledgers, and nobody else's.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pagebridge_testkit::bridge::{Bridge, browser_args};
use pagebridge_testkit::watch::{Marker, Proc, own_zombies, processes_in_group};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

const EXE: &str = env!("CARGO_BIN_EXE_pagebridge");

/// After this, nothing may be left of a bridge that was killed.
pub const SOON: Duration = Duration::from_secs(5);

/// The folders of some bridges.
pub struct Ground {
    root: TempDir,
}

impl Ground {
    pub fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        for name in ["temp", "home", "work"] {
            fs::create_dir(root.path().join(name)).expect("a folder");
        }
        Self { root }
    }

    /// Where the bridges make their temporary folders.
    pub fn temp(&self) -> PathBuf {
        self.root.path().join("temp")
    }

    /// Where their ledgers lie.
    pub fn ledgers(&self) -> PathBuf {
        self.root.path().join("home/run")
    }

    pub fn workspace(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// The variables that put a bridge here.
    pub fn env(&self) -> [(&'static str, PathBuf); 2] {
        [("TMPDIR", self.temp()), ("PAGEBRIDGE_HOME", self.root.path().join("home"))]
    }

    pub async fn start(&self, args: &[&str]) -> Bridge {
        let env = self.env();
        let env: Vec<(&str, Option<&str>)> =
            env.iter().map(|(name, value)| (*name, Some(value.to_str().unwrap()))).collect();
        let sandbox = browser_args();
        let args: Vec<&str> = sandbox.iter().map(String::as_str).chain(args.iter().copied()).collect();
        Bridge::start_with(EXE, &self.workspace(), &args, &env).await
    }

    /// A program that takes itself for a browser but says nothing, ends by nothing but SIGKILL, and has a child in a
    /// session of its own.
    pub fn stubborn_browser(&self) -> String {
        let path = self.root.path().join("stubborn");
        let script = "#!/bin/sh\ntrap '' TERM HUP INT\n\
                      setsid sh -c 'trap \"\" TERM HUP INT; while :; do sleep 600; done' stubborn-child &\n\
                      while :; do sleep 600; done\n";
        fs::write(&path, script).expect("a script");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&path, mode).expect("a program");
        path.to_str().expect("UTF-8").to_owned()
    }

    /// What is left of processes with this mark and of these groups, and in the folders.
    pub fn left(&self, marker: &Marker, groups: &[u32]) -> Vec<String> {
        let marked = marker.alive().into_iter().chain(own_zombies());
        let grouped = groups.iter().flat_map(|group| processes_in_group(*group));
        let processes = marked.chain(grouped).map(|process| process.to_string());
        processes.chain(entries(&self.temp())).chain(entries(&self.ledgers())).collect()
    }

    /// Waits until nothing is left, and gives the time that it took.
    pub async fn clean(&self, marker: &Marker, groups: &[u32], limit: Duration) -> Duration {
        let begun = Instant::now();
        loop {
            let left = self.left(marker, groups);
            if left.is_empty() {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < limit, "still there after {limit:?}:\n{}", left.join("\n"));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A client that is a process of its own: a shell that holds the bridge's pipes and copies the bridge's lines to its
/// own output.
pub struct ClientProcess {
    pub child: Child,
    pub marker: Marker,
    lines: tokio::io::Lines<BufReader<ChildStdout>>,
}

impl ClientProcess {
    /// Starts the client, which starts a bridge and sends it these lines.
    pub fn start(ground: &Ground, requests: &[Value]) -> Self {
        let marker = Marker::new();
        // Opened for both, no end waits for the other; a kill at any moment closes them.
        let script = "in=$1/in.$$ out=$1/out.$$ exe=$2 requests=$3; shift 3; mkfifo \"$in\" \"$out\"\n\
                      exec 3<>\"$in\" 4<>\"$out\"\n\
                      \"$exe\" serve \"$@\" <\"$in\" >\"$out\" 2>/dev/null 3>&- 4>&- &\n\
                      printf '%s' \"$requests\" >&3\n\
                      while read -r line <&4; do printf '%s\\n' \"$line\"; done";
        let requests: String = requests.iter().map(|request| format!("{request}\n")).collect();
        let (name, value) = marker.var();
        #[allow(clippy::disallowed_methods, reason = "a test starts real processes")]
        let mut child = Command::new("sh")
            .args(["-c", script, "client"])
            .args([&ground.workspace(), Path::new(EXE), Path::new(&requests)])
            .args(browser_args())
            .arg("--workspace")
            .arg(ground.workspace())
            .envs(ground.env())
            .env(name, value)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("a shell");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        Self { child, marker, lines }
    }

    /// Waits for the answer with this id.
    pub async fn answer(&mut self, id: u32) {
        let wanted = format!("\"id\":{id}");
        let found = async {
            while let Some(line) = self.lines.next_line().await.expect("a pipe") {
                if line.contains(&wanted) {
                    return;
                }
            }
            panic!("the client ended");
        };
        timeout(Duration::from_secs(30), found).await.expect("an answer");
    }
}

/// The lines that a client begins with.
pub fn handshake() -> Vec<Value> {
    let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    vec![
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]
}

/// A call of a tool.
pub fn call(id: u32, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// The paths in a folder, which need not exist.
pub fn entries(folder: &Path) -> Vec<String> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    found.map(|entry| entry.path().display().to_string()).collect()
}

/// The one marked process whose command line holds this text.
pub fn one(marker: &Marker, text: &str) -> Option<u32> {
    let found: Vec<Proc> = marker.alive().into_iter().filter(|found| found.cmdline.contains(text)).collect();
    assert!(found.len() < 2, "{found:?}");
    found.first().map(|found| found.pid)
}

pub fn guard(marker: &Marker) -> Option<u32> {
    one(marker, "pagebridge guard ")
}

/// Chromium's main process, which leads the group of the others.
pub fn browser(marker: &Marker) -> u32 {
    let is_main = |found: &Proc| {
        found.cmdline.contains("--remote-debugging-pipe") && !found.cmdline.contains("--type=")
    };
    marker.alive().iter().find(|found| is_main(found)).expect("a browser").pid
}

pub fn send(pid: u32, signal: Signal) {
    let _ = kill(Pid::from_raw(i32::try_from(pid).expect("a pid")), signal);
}
