//! A scripted handler and a raw client that sees every byte.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pagebridge_mcp::client::Client;
use pagebridge_mcp::lines::{Frame, LineReader};
use pagebridge_mcp::server::{
    Ended, Handler, InitializeParams, InitializeResult, Peer, RequestContext, serve,
};
use pagebridge_mcp::wire::RpcError;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Long enough for a busy machine, short enough to see a hang.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

#[derive(Default)]
pub struct Script {
    /// What happened, in order.
    pub log: Mutex<Vec<String>>,
}

impl Script {
    pub fn note(&self, text: impl Into<String>) {
        self.log.lock().unwrap().push(text.into());
    }

    pub fn noted(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl Handler for Script {
    fn initialize(&self, params: &InitializeParams) -> InitializeResult {
        let name = params.client_info.as_ref().map_or("nobody", |info| &info.name);
        assert_ne!(name, "panic");
        self.note(format!("initialize {name}"));
        InitializeResult {
            capabilities: serde_json::json!({ "tools": {} }),
            server_info: serde_json::json!({ "name": "script", "version": "0" }),
            instructions: None,
        }
    }

    async fn call(
        &self,
        cx: RequestContext,
        method: &str,
        params: Option<Box<RawValue>>,
    ) -> Result<Box<RawValue>, RpcError> {
        self.note(format!("{method} {}", cx.id));
        match method {
            "echo" => Ok(params.unwrap_or_else(|| raw("null"))),
            "null" => Ok(raw("null")),
            "slow" => slow(self, &cx, params.as_deref()).await,
            // Ignores its cancellation and answers all the same.
            "stubborn" => {
                cx.cancel.cancelled().await;
                tokio::time::sleep(Duration::from_millis(50)).await;
                self.note("stubborn answers");
                report(&cx, 1.0);
                Ok(raw("\"too late\""))
            }
            "deaf" => {
                std::future::pending::<()>().await;
                unreachable!()
            }
            "polite" => {
                cx.cancel.cancelled().await;
                Ok(raw("\"cut short\""))
            }
            "panic" => panic!("as asked"),
            "progress" => {
                report(&cx, 1.0);
                let progress = cx.progress.as_ref();
                progress.inspect(|progress| progress.report(2.5, Some(10.0), Some("zwei ½")));
                cx.peer.notify("notifications/x", serde_json::json!({ "z": 1, "a": 2 }));
                Ok(raw("true"))
            }
            "big" => Ok(raw(&format!("\"{}\"", "x".repeat(5 << 20)))),
            _ => Err(RpcError::method_not_found(method)),
        }
    }

    fn initialized(&self, peer: &Peer) {
        self.note("initialized");
        peer.notify("notifications/tools/list_changed", ());
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        assert_ne!(method, "panic");
        self.note(format!("{method} {}", params.map_or("-", RawValue::get)));
    }
}

fn report(cx: &RequestContext, progress: f64) {
    if let Some(to) = &cx.progress {
        to.report(progress, None, None);
    }
}

/// Params: milliseconds.
async fn slow(
    script: &Script,
    cx: &RequestContext,
    params: Option<&RawValue>,
) -> Result<Box<RawValue>, RpcError> {
    let millis = params.and_then(|params| params.get().parse().ok()).unwrap_or(60_000);
    tokio::select! {
        () = cx.cancel.cancelled() => {
            script.note(format!("cancelled {}", cx.id));
            Err(RpcError::internal("cancelled"))
        }
        () = tokio::time::sleep(Duration::from_millis(millis)) => Ok(raw("\"done\"")),
    }
}

/// A running server and both ends of its wire.
pub struct Wire {
    pub script: Arc<Script>,
    pub shutdown: CancellationToken,
    pub server: JoinHandle<Ended>,
    pub input: DuplexStream,
    pub output: LineReader<DuplexStream>,
}

pub fn start(drain: Duration) -> Wire {
    start_with(drain, 1 << 16)
}

pub fn start_with(drain: Duration, pipe: usize) -> Wire {
    let (input, server_input) = tokio::io::duplex(pipe);
    let (server_output, output) = tokio::io::duplex(pipe);
    let script = Arc::new(Script::default());
    let shutdown = CancellationToken::new();
    let session = serve(Arc::clone(&script), server_input, server_output, shutdown.clone(), drain);
    let server = tokio::spawn(session);
    Wire { script, shutdown, server, input, output: LineReader::new(output) }
}

impl Wire {
    pub async fn send(&mut self, line: &str) {
        self.send_bytes(line.as_bytes()).await;
        self.send_bytes(b"\n").await;
    }

    pub async fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).await.unwrap();
    }

    /// The next line, exactly; `None` at the end.
    pub async fn line(&mut self) -> Option<String> {
        let next = tokio::time::timeout(PATIENCE, self.output.next()).await.expect("an answer in time");
        match next.unwrap() {
            Some(Frame::Line(line)) => Some(String::from_utf8(line).unwrap()),
            Some(Frame::TooLong { .. }) => panic!("too long"),
            None => None,
        }
    }

    pub async fn json(&mut self) -> Value {
        serde_json::from_str(&self.line().await.expect("an answer")).unwrap()
    }

    /// Sends a ping and expects that its answer is the next thing to come.
    pub async fn ping(&mut self) {
        self.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#).await;
        assert_eq!(self.line().await.unwrap(), r#"{"jsonrpc":"2.0","id":"p","result":{}}"#);
    }

    pub async fn initialize(&mut self, version: &str) -> Value {
        let params = format!(r#"{{"protocolVersion":"{version}","capabilities":{{}}}}"#);
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":"i","method":"initialize","params":{params}}}"#)).await;
        self.json().await
    }

    /// Closes the server's input and reads to the end.
    pub async fn finish(self) -> (Vec<String>, Ended, Arc<Script>) {
        let Wire { script, server, input, output, shutdown } = self;
        drop(input);
        let (_, unused) = tokio::io::duplex(1);
        let mut rest = Wire { script, shutdown, server, input: unused, output };
        let mut lines = Vec::new();
        while let Some(line) = rest.line().await {
            lines.push(line);
        }
        let ended = tokio::time::timeout(PATIENCE, rest.server).await.unwrap().unwrap();
        (lines, ended, rest.script)
    }
}

/// A client of this crate against the scripted server.
pub fn connect() -> (Client, Arc<Script>, JoinHandle<Ended>) {
    let wire = start(Duration::from_secs(1));
    let (bytes, input) = tokio::io::duplex(1 << 16);
    // The wire's reader has read nothing yet, so its stream can be passed on.
    let Wire { script, server, input: to_server, output, .. } = wire;
    tokio::spawn(async move {
        let (mut output, mut bytes) = (output, bytes);
        while let Ok(Some(Frame::Line(mut line))) = output.next().await {
            line.push(b'\n');
            if bytes.write_all(&line).await.is_err() {
                break;
            }
        }
    });
    (Client::connect(input, to_server), script, server)
}
