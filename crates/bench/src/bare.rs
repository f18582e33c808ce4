//! The same Chromium started by hand: the product's own switches, a pipe, and no more commands than a page needs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use pagebridge_browser::{BrowserOptions, arguments};
use pagebridge_cdp::{CdpSession, Event, Events, connect, decode};
use pagebridge_process::{Job, Ladder, Polite, Purpose, SpawnRequest, Supervisor};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::unix::pipe;

/// Chromium reads commands from this descriptor and writes to the next one.
const COMMANDS_FD: i32 = 3;
const EVENTS_FD: i32 = 4;
/// No event is waited for longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A bare Chromium with one page.
pub struct Bare {
    job: Job,
    root: CdpSession,
    events: Events,
    page: CdpSession,
    /// The page's top frame.
    frame: String,
    /// What it calls itself.
    pub product: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attached {
    session_id: Arc<str>,
}

#[derive(Deserialize)]
struct Version {
    product: String,
}

#[derive(Deserialize)]
struct Navigated {
    frame: Frame,
}

#[derive(Deserialize)]
struct Frame {
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolsAdded {
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    frame_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    invocation_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Responded {
    invocation_id: String,
    status: String,
    #[serde(default)]
    output: Value,
}

impl Bare {
    /// Starts a browser and opens `url`, until it has loaded and offers `tool`. Tells the time that took, from the
    /// spawn on.
    pub async fn start(
        supervisor: &Supervisor,
        program: &Path,
        options: &BrowserOptions,
        url: &str,
        tool: &str,
    ) -> anyhow::Result<(Self, Duration)> {
        let (commands, their_commands) = pipe::pipe()?;
        let (their_events, events) = pipe::pipe()?;
        let mut request = request(program, options)?;
        request.extra_fds = vec![
            (their_commands.into_blocking_fd()?, COMMANDS_FD),
            (their_events.into_blocking_fd()?, EVENTS_FD),
        ];
        let began = Instant::now();
        let job = supervisor.spawn(request)?.job;
        let (root, mut events) = connect(events, commands);
        let page = attached_page(&root, &mut events).await?;
        let frame = open(&page, &mut events, url, tool).await?;
        let took = began.elapsed();
        let version: Version = root.call("Browser.getVersion", json!({})).await?.decode()?;
        Ok((Self { job, root, events, page, frame, product: version.product }, took))
    }

    /// Calls a page tool and waits for its answer.
    pub async fn invoke(&mut self, tool: &str, input: &Value) -> anyhow::Result<Value> {
        let command = json!({"frameId": self.frame, "toolName": tool, "input": input});
        let invocation: Invocation = self.page.call("WebMCP.invokeTool", command).await?.decode()?;
        loop {
            let event = next(&mut self.events).await?;
            if &*event.method != "WebMCP.toolResponded" {
                continue;
            }
            let answer: Responded = decode(&event.params)?;
            if answer.invocation_id != invocation.invocation_id {
                continue;
            }
            if answer.status != "Completed" {
                bail!("the bare call of {tool} ended as {}", answer.status);
            }
            return Ok(answer.output);
        }
    }

    /// Ends it, and waits until everything of it is gone.
    pub async fn end(self) {
        drop(self.root.call("Browser.close", json!({})));
        let _ = tokio::time::timeout(Duration::from_secs(2), self.job.exited()).await;
        self.job.stop().await;
    }
}

/// The spawn as the product does it: a fresh profile, temporary files beside it.
fn request(program: &Path, options: &BrowserOptions) -> anyhow::Result<SpawnRequest> {
    let scratch = tempfile::Builder::new().prefix("pagebridge-bench-").tempdir()?;
    for folder in ["profile", "tmp"] {
        std::fs::create_dir(scratch.path().join(folder))?;
    }
    let mut request = SpawnRequest::new(Purpose::Browser, "bare", program);
    request.args = arguments(options, &scratch.path().join("profile"));
    request.env.insert("TMPDIR".into(), scratch.path().join("tmp").to_str().map(Into::into));
    request.ladder = Ladder::exit().with_polite(Polite::Terminate);
    request.temp_dirs = vec![scratch.keep()];
    Ok(request)
}

/// A blank page. Both commands go out at once.
async fn attached_page(root: &CdpSession, events: &mut Events) -> anyhow::Result<CdpSession> {
    let filter = json!([{"type": "page"}, {"exclude": true}]);
    let attach = root.call(
        "Target.setAutoAttach",
        json!({"autoAttach": true, "waitForDebuggerOnStart": false, "flatten": true, "filter": filter}),
    );
    let create = root.call("Target.createTarget", json!({"url": "about:blank"}));
    attach.await?;
    create.await?;
    loop {
        let event = next(events).await?;
        if &*event.method == "Target.attachedToTarget" {
            let attached: Attached = decode(&event.params)?;
            return Ok(root.session(attached.session_id));
        }
    }
}

/// Loads `url`; ends with the load event and the announcement of `tool`, whichever comes last. Gives the tool's frame.
async fn open(page: &CdpSession, events: &mut Events, url: &str, tool: &str) -> anyhow::Result<String> {
    let enabled = [page.call("Page.enable", json!({})), page.call("WebMCP.enable", json!({}))];
    // A navigation that overtakes these takes the page to another process, and some of its events are never told.
    for command in enabled {
        command.await?;
    }
    page.call("Page.navigate", json!({"url": url})).await?;
    let (mut committed, mut loaded, mut frame) = (false, false, None);
    loop {
        let event = next(events).await?;
        match &*event.method {
            "Page.frameNavigated" => committed |= decode::<Navigated>(&event.params)?.frame.url == url,
            "Page.loadEventFired" => loaded |= committed,
            "WebMCP.toolsAdded" => {
                let added: ToolsAdded = decode(&event.params)?;
                frame = added.tools.into_iter().find(|added| added.name == tool).map(|added| added.frame_id);
            }
            _ => {}
        }
        if let (true, Some(frame)) = (loaded, &frame) {
            return Ok(frame.clone());
        }
    }
}

async fn next(events: &mut Events) -> anyhow::Result<Event> {
    let event = tokio::time::timeout(PATIENCE, events.recv()).await;
    event.context("the bare Chromium says nothing more")?.context("the bare Chromium ended")
}
