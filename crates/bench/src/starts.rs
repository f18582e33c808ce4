//! Starts: to the answer to `initialize`, and to the first page usable.

use std::time::Duration;

use crate::lab::Lab;
use crate::server::Command;
use crate::stats::Series;

/// What the starts of one server took.
#[derive(Default)]
pub struct ServerStarts {
    /// Spawn to the answer to `initialize`, in ms.
    pub initialize: Series,
    /// Spawn to the answer to the first `new_page`, in ms.
    pub first_page: Series,
    /// Resident memory after `initialize`, in MB.
    pub idle: Series,
    /// Resident memory with the page open, in MB.
    pub with_page: Series,
}

/// What the starts of all took.
#[derive(Default)]
pub struct Starts {
    /// Spawn of the bare Chromium to the page loaded and its tool announced, in ms.
    pub bare: Series,
    /// pagebridge.
    pub product: ServerStarts,
    /// chrome-devtools-mcp.
    pub peer: ServerStarts,
}

/// Starts each in turn, `rounds` times, after one round that does not count.
pub async fn measure(lab: &Lab, rounds: usize) -> anyhow::Result<Starts> {
    eprintln!("starts: one round to warm up");
    round(lab, &mut Starts::default()).await?;
    let mut starts = Starts::default();
    for number in 1..=rounds {
        eprintln!("starts: round {number} of {rounds}");
        round(lab, &mut starts).await?;
    }
    Ok(starts)
}

async fn round(lab: &Lab, starts: &mut Starts) -> anyhow::Result<()> {
    server(lab, &lab.product, &mut starts.product).await?;
    let (bare, took) = lab.bare().await?;
    bare.end().await;
    starts.bare.push(milliseconds(took));
    if let Some(peer) = &lab.peer {
        server(lab, peer, &mut starts.peer).await?;
    }
    Ok(())
}

async fn server(lab: &Lab, command: &Command, series: &mut ServerStarts) -> anyhow::Result<()> {
    let (server, initialized) = lab.server(command).await?;
    // Between the two times that are added up: reading it does not count.
    let idle = server.resident();
    let (_, opened) = lab.open(&server).await?;
    let with_page = server.resident();
    server.end().await;
    series.initialize.push(milliseconds(initialized));
    series.first_page.push(milliseconds(initialized + opened));
    idle.into_iter().for_each(|size| series.idle.push(size));
    with_page.into_iter().for_each(|size| series.with_page.push(size));
    Ok(())
}

/// A time as a number.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
