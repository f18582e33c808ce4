//! An MCP server under measurement: pagebridge itself, or chrome-devtools-mcp.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use pagebridge_mcp::client::Client;
use pagebridge_process::{Job, Purpose, SpawnRequest, Stdin, Stdout, Supervisor};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::memory;

/// No answer is waited for longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Command {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, &'static str)>,
}

impl Command {
    /// pagebridge with its defaults, for this browser.
    pub fn pagebridge(program: PathBuf, browser: &Path, no_sandbox: bool) -> Self {
        let mut arguments: Vec<OsString> = vec![
            "serve".into(),
            "--executable-path".into(),
            browser.into(),
            "--workspace".into(),
            ".".into(),
        ];
        arguments.extend(no_sandbox.then(|| "--no-sandbox".into()));
        Self { name: "pagebridge", program, arguments, environment: Vec::new() }
    }

    /// chrome-devtools-mcp by its entry script, without telemetry, for this browser.
    pub fn peer(entry: &Path, browser: &Path, no_sandbox: bool) -> Self {
        let mut executable = OsString::from("--executablePath=");
        executable.push(browser);
        let mut arguments: Vec<OsString> = vec![entry.into(), executable];
        arguments.extend(
            [
                "--headless",
                "--isolated",
                "--categoryExperimentalWebmcp=true",
                "--chromeArg=--enable-features=WebMCP",
                "--no-usage-statistics",
                "--no-performance-crux",
            ]
            .map(Into::into),
        );
        arguments.extend(no_sandbox.then(|| "--chromeArg=--no-sandbox".into()));
        let environment = vec![
            ("CHROME_DEVTOOLS_MCP_NO_USAGE_STATISTICS", "1"),
            ("CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS", "1"),
            ("CHROME_DEVTOOLS_MCP_NO_CONFIG_DISCOVERY", "1"),
        ];
        Self { name: "chrome-devtools-mcp", program: "node".into(), arguments, environment }
    }
}

/// A running server that has answered `initialize`.
pub struct Server {
    name: &'static str,
    job: Job,
    client: Client,
    /// What it answered to `initialize`.
    pub greeting: Value,
}

impl Server {
    /// Starts it. Tells the time from the spawn to the answer to `initialize`.
    pub async fn start(supervisor: &Supervisor, command: &Command) -> anyhow::Result<(Self, Duration)> {
        let request = request(command)?;
        let began = Instant::now();
        let spawned = supervisor.spawn(request)?;
        let output = spawned.stdout.context("stdout is piped")?;
        let input = spawned.stdin.context("stdin is piped")?;
        let client = Client::connect(output, input);
        let answer = client.initialize("pagebridge-bench", env!("CARGO_PKG_VERSION")).await;
        let took = began.elapsed();
        let job = spawned.job;
        let greeting = answer
            .with_context(|| format!("{} did not start:\n{}", command.name, job.stderr_tail().join("\n")))?;
        let greeting = serde_json::from_str(greeting.get())?;
        Ok((Self { name: command.name, job, client, greeting }, took))
    }

    /// Calls a tool and gives its result and the time from the request to the answer. A failed tool is an error.
    pub async fn call(&self, tool: &str, arguments: &Value) -> anyhow::Result<(Value, Duration)> {
        let params = json!({"name": tool, "arguments": arguments});
        let began = Instant::now();
        let answer = timeout(PATIENCE, self.client.request("tools/call", params)).await;
        let took = began.elapsed();
        let answer = answer.with_context(|| format!("{}: {tool} gives no answer", self.name))??;
        let result: Value = serde_json::from_str(answer.get())?;
        if result["isError"] == true {
            bail!("{}: {tool} failed: {}", self.name, text_of(&result));
        }
        Ok((result, took))
    }

    /// The names of the listed tools.
    pub async fn tools(&self) -> anyhow::Result<Vec<String>> {
        let answer = self.client.request("tools/list", json!({})).await?;
        let list: Value = serde_json::from_str(answer.get())?;
        let tools = list["tools"].as_array().context("a list of tools")?;
        Ok(tools.iter().filter_map(|tool| tool["name"].as_str()).map(Into::into).collect())
    }

    /// Resident memory of its process alone, without any browser, in MB.
    pub fn resident(&self) -> Option<f64> {
        memory::resident(self.job.pid())
    }

    /// Ends it, and waits until everything of it is gone.
    pub async fn end(self) {
        self.client.close_input().await;
        self.job.stop().await;
    }
}

/// It runs in a folder of its own, which is removed with it; its browser's temporary files go there too.
fn request(command: &Command) -> anyhow::Result<SpawnRequest> {
    let scratch = tempfile::Builder::new().prefix("pagebridge-bench-").tempdir()?.keep();
    let mut request = SpawnRequest::new(Purpose::McpServer, command.name, &command.program);
    request.args.clone_from(&command.arguments);
    request.cwd = Some(scratch.clone());
    request.stdin = Stdin::Piped;
    request.stdout = Stdout::Piped;
    let given = command.environment.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let temporary = scratch.to_str().map(|folder| ("TMPDIR", folder.to_owned()));
    request.env = given.chain(temporary).map(|(name, value)| (name.to_owned(), Some(value))).collect();
    request.temp_dirs = vec![scratch];
    Ok(request)
}

/// All text of a tool's result.
pub fn text_of(result: &Value) -> String {
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}
