//! The real binary as an MCP client sees it.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pagebridge_mcp::client::Client;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::watch::Marker;

/// No wait of a test is longer, unless it says so.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Browser options that tests need here: root, which containers are, has no sandbox.
pub fn browser_args() -> Vec<String> {
    if nix::unistd::geteuid().is_root() { vec!["--no-sandbox".into()] } else { Vec::new() }
}

/// A started `pagebridge serve`, initialised.
pub struct Bridge {
    /// The client's side.
    pub client: Client,
    /// The process.
    pub child: Child,
    /// Marks the process and everything below it.
    pub marker: Marker,
    notifications: UnboundedReceiver<(String, Option<Box<RawValue>>)>,
    stderr: Arc<Mutex<Vec<u8>>>,
}

impl Bridge {
    /// Starts `exe serve` with these arguments and does the handshake. Its workspace is `workspace`.
    pub async fn start(exe: &str, workspace: &Path, args: &[&str]) -> Self {
        let sandbox = browser_args();
        let args: Vec<&str> = sandbox.iter().map(String::as_str).chain(args.iter().copied()).collect();
        Self::start_with(exe, workspace, &args, &[]).await
    }

    /// As [`Bridge::start`], with just these arguments and with changes to the environment; `None` takes a variable away.
    pub async fn start_with(
        exe: &str,
        workspace: &Path,
        args: &[&str],
        env: &[(&str, Option<&str>)],
    ) -> Self {
        let marker = Marker::new();
        let (name, value) = marker.var();
        let mut command = Command::new(exe);
        for (name, value) in env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command
            .arg("serve")
            .arg("--workspace")
            .arg(workspace)
            .args(args)
            .env(name, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let mut pipe = BufReader::new(child.stderr.take().expect("stderr is piped"));
        let kept = stderr.clone();
        tokio::spawn(async move {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = pipe.read(&mut chunk).await {
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&chunk[..n]);
            }
        });
        let output = child.stdout.take().expect("stdout is piped");
        let input = child.stdin.take().expect("stdin is piped");
        let client = Client::connect(output, input);
        let notifications = client.notifications();
        timeout(PATIENCE, client.initialize("test", "1")).await.expect("an answer").expect("initialized");
        Self { client, child, marker, notifications, stderr }
    }

    /// Sends a request and gives its result.
    pub async fn request(&self, method: &str, params: Value) -> Value {
        let raw = timeout(PATIENCE, self.client.request(method, params)).await.expect("an answer in time");
        let raw = raw.unwrap_or_else(|error| panic!("{method}: {error}\n{}", self.stderr()));
        serde_json::from_str(raw.get()).expect("JSON")
    }

    /// Calls a tool and gives the result, failed or not.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Calls a tool that must not fail, and gives its whole text.
    pub async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments.clone()).await;
        assert_ne!(result["isError"], true, "{tool} {arguments}: {result:#}\n{}", self.stderr());
        text_of(&result)
    }

    /// Calls a page's tool by `page_call`, which must not fail, and gives its `structuredContent`.
    pub async fn page_call(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call("page_call", json!({"tool": tool, "arguments": arguments})).await;
        assert_ne!(result["isError"], true, "{tool}: {result:#}\n{}", self.stderr());
        result["structuredContent"].clone()
    }

    /// Calls a tool that must fail, and gives the `error` of its `structuredContent`.
    pub async fn error(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone()).await;
        assert_eq!(result["isError"], true, "{tool} {arguments} did not fail: {result:#}");
        result["structuredContent"]["error"].clone()
    }

    /// The tools that are listed now.
    pub async fn tools(&self) -> Vec<Value> {
        self.request("tools/list", json!({})).await["tools"].as_array().expect("a list").clone()
    }

    /// The names of the listed dynamic tools.
    pub async fn dynamic_names(&self) -> Vec<String> {
        let ours = ["page_tools", "page_call"];
        let names = self.tools().await;
        let names = names.iter().filter_map(|tool| tool["name"].as_str());
        names.filter(|name| name.starts_with("page_") && !ours.contains(name)).map(Into::into).collect()
    }

    /// Waits for the next `tools/list_changed`. False when none comes in time.
    pub async fn list_changed(&mut self, within: Duration) -> bool {
        let wanted = "notifications/tools/list_changed";
        timeout(within, async {
            while let Some((method, _)) = self.notifications.recv().await {
                if method == wanted {
                    return;
                }
            }
            std::future::pending::<()>().await;
        })
        .await
        .is_ok()
    }

    /// How many `tools/list_changed` have come and were not waited for.
    pub fn pending_list_changes(&mut self) -> usize {
        let mut count = 0;
        while let Ok((method, _)) = self.notifications.try_recv() {
            count += usize::from(method == "notifications/tools/list_changed");
        }
        count
    }

    /// What it has logged so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Sends a signal to the bridge alone.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.pid()).expect("a pid"));
        nix::sys::signal::kill(pid, signal).expect("it runs");
    }

    /// Waits for the process to end.
    pub async fn ended(&mut self, within: Duration) -> ExitStatus {
        timeout(within, self.child.wait())
            .await
            .unwrap_or_else(|_| panic!("still runs\n{}", self.stderr()))
            .expect("a status")
    }

    /// Closes its input and checks that it ends well and leaves nothing.
    pub async fn finish(mut self) {
        self.client.close_input().await;
        let status = self.ended(Duration::from_secs(5)).await;
        assert!(status.success(), "{status}\n{}", self.stderr());
        self.marker.assert_gone_within(Duration::from_secs(1));
    }
}

/// All text blocks of a result.
pub fn text_of(result: &Value) -> String {
    let blocks = result["content"].as_array().cloned().unwrap_or_default();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}
