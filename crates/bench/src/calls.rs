//! Calls of a page's tool, all browsers and pages being warm.

use std::time::Instant;

use anyhow::Context;
use serde_json::{Value, json};

use crate::bare::Bare;
use crate::lab::{Lab, TOOL, arguments, check};
use crate::server::Server;
use crate::starts::milliseconds;
use crate::stats::Series;

/// Calls of one kind in a row, before another kind has its turn.
const BLOCK: usize = 20;
/// Tools of pagebridge whose names begin as those of pages' tools do.
const OWN: [&str; 2] = ["page_tools", "page_call"];

/// What calls took, in ms, and what the servers' memory was after them, in MB.
#[derive(Default)]
pub struct Calls {
    /// `WebMCP.invokeTool` until `WebMCP.toolResponded`.
    pub bare: Series,
    /// pagebridge's `page_call`.
    pub page_call: Series,
    /// pagebridge's own MCP tool for the page's tool.
    pub dynamic: Series,
    /// chrome-devtools-mcp's `execute_webmcp_tool`.
    pub peer: Series,
    /// pagebridge's resident memory at the end.
    pub product_resident: Series,
    /// chrome-devtools-mcp's resident memory at the end.
    pub peer_resident: Series,
    /// What the browser calls itself.
    pub browser: String,
    /// What the peer says of its version.
    pub peer_version: String,
}

/// A server with the page open, and how its ways of calling the tool are dressed.
struct Warm {
    server: Server,
    page: u64,
}

/// Makes at least `calls` calls of each kind, in interleaved blocks.
pub async fn measure(lab: &Lab, calls: usize) -> anyhow::Result<Calls> {
    let (mut bare, _) = lab.bare().await?;
    let product = warm(lab, &lab.product).await?;
    let peer = match &lab.peer {
        Some(command) => Some(warm(lab, command).await?),
        None => None,
    };
    let dynamic = product.server.tools().await?.into_iter().find(|name| is_dynamic(name));
    let dynamic = dynamic.context("pagebridge lists no tool for the page's tool")?;
    let mut times = Calls { browser: bare.product.clone(), ..Calls::default() };
    let blocks = calls.div_ceil(BLOCK);
    for block in 0..=blocks {
        eprintln!("calls: block {block} of {blocks}");
        // The first block warms up.
        let mut unused = Calls::default();
        let into = if block == 0 { &mut unused } else { &mut times };
        round(&mut bare, &product, &dynamic, peer.as_ref(), into).await?;
    }
    product.server.resident().into_iter().for_each(|size| times.product_resident.push(size));
    bare.end().await;
    product.server.end().await;
    if let Some(peer) = peer {
        times.peer_version = version(&peer.server);
        peer.server.resident().into_iter().for_each(|size| times.peer_resident.push(size));
        peer.server.end().await;
    }
    Ok(times)
}

async fn warm(lab: &Lab, command: &crate::server::Command) -> anyhow::Result<Warm> {
    let (server, _) = lab.server(command).await?;
    let (page, _) = lab.open(&server).await?;
    Ok(Warm { server, page })
}

fn is_dynamic(name: &str) -> bool {
    name.starts_with("page_") && !OWN.contains(&name)
}

fn version(server: &Server) -> String {
    server.greeting["serverInfo"]["version"].as_str().unwrap_or("unknown").to_owned()
}

/// One block of each kind.
async fn round(
    bare: &mut Bare,
    product: &Warm,
    dynamic: &str,
    peer: Option<&Warm>,
    times: &mut Calls,
) -> anyhow::Result<()> {
    let page_call = |input: &Value| json!({"tool": TOOL, "arguments": input});
    times.page_call.push_round(through(&product.server, "page_call", page_call).await?);
    times.dynamic.push_round(through(&product.server, dynamic, Value::clone).await?);
    times.bare.push_round(by_hand(bare).await?);
    if let Some(Warm { server, page }) = peer {
        let dressed = |input: &Value| json!({"pageId": page, "toolName": TOOL, "input": input.to_string()});
        times.peer.push_round(through(server, "execute_webmcp_tool", dressed).await?);
    }
    Ok(())
}

/// A block of calls through a server. One more goes before them and does not count.
async fn through(server: &Server, tool: &str, dressed: impl Fn(&Value) -> Value) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::with_capacity(BLOCK);
    for turn in 0..=BLOCK {
        let (input, sum) = arguments(turn);
        let (answer, took) = server.call(tool, &dressed(&input)).await?;
        check(&answer, sum)?;
        times.extend((turn > 0).then(|| milliseconds(took)));
    }
    Ok(times)
}

/// A block of bare calls. One more goes before them and does not count.
async fn by_hand(bare: &mut Bare) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::with_capacity(BLOCK);
    for turn in 0..=BLOCK {
        let (input, sum) = arguments(turn);
        let began = Instant::now();
        let answer = bare.invoke(TOOL, &input).await?;
        let took = began.elapsed();
        check(&answer, sum)?;
        times.extend((turn > 0).then(|| milliseconds(took)));
    }
    Ok(times)
}
