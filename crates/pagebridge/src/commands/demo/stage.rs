//! The demo's client: starts the bridge as any MCP client does, and prints what goes back and forth.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use pagebridge_core::duration::show;
use pagebridge_core::text;
use pagebridge_mcp::client::Client;
use pagebridge_process::{Exit, Job, Purpose, SpawnRequest, Stdin, Stdout};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

use crate::cli::BrowserArgs;
use crate::{App, printer};

/// No step takes longer, the start of a browser on a slow machine included.
const PATIENCE: Duration = Duration::from_secs(60);
const SHOWN_CHARS: usize = 600;

/// A bridge and its client.
pub struct Stage {
    client: Client,
    job: Job,
    notifications: UnboundedReceiver<(String, Option<Box<RawValue>>)>,
}

impl Stage {
    /// Starts `pagebridge serve` and does the handshake.
    pub async fn open(app: &App, browser: &BrowserArgs) -> Result<Self> {
        let started = Instant::now();
        let program = std::env::current_exe().context("our own executable is not known")?;
        let mut request = SpawnRequest::new(Purpose::McpServer, "demo", program);
        request.args = ["serve".into()].into_iter().chain(browser.as_arguments()).collect();
        let secret = browser.as_environment();
        request.env.extend(secret.map(|(name, value)| (name.into(), Some(value.into()))));
        request.stdin = Stdin::Piped;
        request.stdout = Stdout::Piped;
        let spawned = app.supervisor.spawn(request)?;
        let (Some(input), Some(output)) = (spawned.stdin, spawned.stdout) else {
            bail!("the bridge has no pipes")
        };
        let client = Client::connect(output, input);
        let notifications = client.notifications();
        let raw =
            timeout(PATIENCE, client.initialize("pagebridge-demo", env!("CARGO_PKG_VERSION"))).await??;
        let answer: Value = serde_json::from_str(raw.get())?;
        let server = &answer["serverInfo"];
        printer::result(&format!(
            "initialize: {} {}, protocol {}  [{}]",
            server["name"].as_str().unwrap_or_default(),
            server["version"].as_str().unwrap_or_default(),
            answer["protocolVersion"].as_str().unwrap_or_default(),
            show(started.elapsed()),
        ));
        Ok(Self { client, job: spawned.job, notifications })
    }

    /// Lists the tools under a heading and gives their names.
    pub async fn tools(&self, heading: &str) -> Result<Vec<String>> {
        let answer = self.request("tools/list", json!({})).await?;
        let names: Vec<String> = answer["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|t| t["name"].as_str())
            .map(Into::into)
            .collect();
        printer::result(&format!("{heading}:\n    {}", names.join(", ")));
        Ok(names)
    }

    /// Calls a tool that must work, and prints what it gave.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Value> {
        let result = self.tool(tool, arguments).await?;
        ensure!(result["isError"] != true, "{tool} failed: {result}");
        Ok(result)
    }

    /// Calls a tool that must be refused, and prints why.
    pub async fn refused(&self, tool: &str, arguments: Value) -> Result<()> {
        let result = self.tool(tool, arguments).await?;
        ensure!(result["isError"] == true, "{tool} was not refused: {result}");
        Ok(())
    }

    async fn tool(&self, tool: &str, arguments: Value) -> Result<Value> {
        let started = Instant::now();
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments})).await?;
        print_call(tool, &arguments, &result, started.elapsed());
        Ok(result)
    }

    /// Calls a tool and cancels the call. No answer may follow.
    pub async fn cancelled(&self, tool: &str, arguments: Value, after: Duration) -> Result<()> {
        let pending =
            self.client.start_request("tools/call", json!({"name": tool, "arguments": arguments}))?;
        tokio::time::sleep(after).await;
        let started = Instant::now();
        self.client.cancel(&pending.id().clone());
        ensure!(pending.await.is_err(), "{tool} answered although it was cancelled");
        timeout(PATIENCE, self.request("ping", json!({}))).await??;
        printer::result(&format!(
            "  {tool} {arguments} → cancelled; the next answer came after {}",
            show(started.elapsed())
        ));
        Ok(())
    }

    /// Waits for the bridge to say that the list of tools changed.
    pub async fn list_changed(&mut self) -> Result<()> {
        let told = timeout(PATIENCE, self.notifications.recv()).await?.context("the bridge is gone")?;
        printer::result(&format!("  ← {}", told.0));
        Ok(())
    }

    /// Ends the connection and waits for the bridge's end.
    pub async fn close(self, within: Duration) -> Result<Exit> {
        self.client.close_input().await;
        timeout(within, self.job.exited()).await.map_err(|_| anyhow!("the bridge did not end in time"))
    }

    async fn request(&self, method: &str, params: Value) -> Result<Value> {
        let answer =
            timeout(PATIENCE, self.client.request(method, params)).await.with_context(|| self.last_words());
        Ok(serde_json::from_str(answer?.with_context(|| self.last_words())?.get())?)
    }

    fn last_words(&self) -> String {
        format!("the bridge said: {}", self.job.stderr_tail().join("\n"))
    }
}

fn print_call(tool: &str, arguments: &Value, result: &Value, took: Duration) {
    printer::result(&format!("  {tool} {arguments}  [{}]", show(took)));
    let mark = if result["isError"] == true { "✗" } else { "→" };
    for block in result["content"].as_array().into_iter().flatten() {
        let shown = text::bounded(block["text"].as_str().unwrap_or("(a block)"), SHOWN_CHARS);
        printer::result(&format!("    {mark} {}", shown.replace('\n', "\n      ")));
    }
}
