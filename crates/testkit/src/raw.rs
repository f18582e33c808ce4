//! The real binary as bytes on pipes, for what no well-behaved client would send.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::bridge::PATIENCE;
use crate::watch::Marker;

/// An `initialize` request with id 0 and the `initialized` notification, as lines.
pub const HANDSHAKE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
);

/// A started process whose pipes the test holds.
pub struct Raw {
    /// The process.
    pub child: Child,
    /// Marks the process and everything below it.
    pub marker: Marker,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    stderr: Arc<Mutex<Vec<u8>>>,
}

impl Raw {
    /// Starts `exe` with these arguments in `folder`, the environment changed by `env`.
    pub fn start(exe: &str, folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Self {
        let marker = Marker::new();
        let (name, value) = marker.var();
        let mut child = Command::new(exe)
            .args(args)
            .current_dir(folder)
            .envs(env.iter().copied())
            .env(name, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the binary starts");
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let mut pipe = child.stderr.take().expect("stderr is piped");
        let kept = stderr.clone();
        tokio::spawn(async move {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = pipe.read(&mut chunk).await {
                kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&chunk[..n]);
            }
        });
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        Self { child, marker, input, output, stderr }
    }

    /// As [`Raw::start`], followed by the handshake.
    pub async fn start_initialized(exe: &str, folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut raw = Self::start(exe, folder, args, env);
        raw.send(HANDSHAKE).await;
        let answer = raw.message().await;
        assert_eq!(answer["id"], 0, "{answer}");
        raw
    }

    /// Writes bytes to its input.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let input = self.input.as_mut().expect("its input is open");
        timeout(PATIENCE, input.write_all(bytes.as_ref()))
            .await
            .expect("it reads")
            .expect("it can be written to");
        input.flush().await.expect("it can be written to");
    }

    /// As [`Raw::send`], but nobody needs to be there any more.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        if let Some(input) = self.input.as_mut() {
            let _ = timeout(PATIENCE, input.write_all(bytes.as_ref())).await;
        }
    }

    /// Closes its input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Closes our end of its output.
    pub fn close_output(&mut self) {
        self.output = None;
    }

    /// The next line of its output without the line end, or `None` at the end.
    pub async fn line(&mut self) -> Option<String> {
        let output = self.output.as_mut().expect("its output is open");
        let mut line = Vec::new();
        let read = timeout(PATIENCE, output.read_until(b'\n', &mut line)).await;
        let read = read.unwrap_or_else(|_| panic!("no line in time\n{}", self.stderr()));
        if read.expect("its output can be read") == 0 {
            return None;
        }
        assert_eq!(line.pop(), Some(b'\n'), "every line is whole");
        Some(String::from_utf8(line).expect("every line is UTF-8"))
    }

    /// The next line, which must be a JSON-RPC message.
    pub async fn message(&mut self) -> Value {
        let line = self.line().await.unwrap_or_else(|| panic!("it said nothing more\n{}", self.stderr()));
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        let is_batch = message.is_array();
        assert!(is_batch || message["jsonrpc"] == "2.0", "no JSON-RPC: {line}");
        message
    }

    /// Sends a request whose id is this JSON text, and gives the answer to it, past notifications. The answer's id must
    /// have the same text.
    pub async fn request(&mut self, id: &str, method: &str, params: Option<&str>) -> Value {
        let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
        self.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"{params}}}\n")).await;
        loop {
            let line = self.line().await.unwrap_or_else(|| panic!("no answer\n{}", self.stderr()));
            if let Some(answered) = id_text(&line) {
                assert_eq!(answered, id, "{line}");
                // Without its id, which may be a string that is no Unicode.
                return serde_json::from_str(&line.replacen(&format!("\"id\":{id}"), "\"id\":0", 1))
                    .expect("JSON");
            }
        }
    }

    /// All messages until its output ends.
    pub async fn rest(&mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(line) = self.line().await {
            messages.push(serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}")));
        }
        messages
    }

    /// What it has logged so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Waits for the process to end.
    pub async fn ended(&mut self, within: Duration) -> ExitStatus {
        let ended = timeout(within, self.child.wait()).await;
        ended.unwrap_or_else(|_| panic!("still runs\n{}", self.stderr())).expect("a status")
    }

    /// The most memory that it has had so far, in bytes.
    pub fn peak_memory(&self) -> u64 {
        let pid = self.child.id().expect("it runs");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("its peak");
        let kib: u64 = line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number");
        kib * 1024
    }
}

/// The id of a message exactly as it is written.
fn id_text(line: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Message {
        id: Option<Box<RawValue>>,
    }
    let message: Message = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    message.id.map(|id| id.get().to_owned())
}
