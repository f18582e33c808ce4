//! The benchmark: pagebridge beside the same Chromium started by hand and beside chrome-devtools-mcp, in one run, in
//! turns. The table goes to stdout, progress to stderr. See `docs/benchmarks.md`.
#![allow(clippy::disallowed_macros, reason = "the table is for stdout, which is no protocol here")]

mod bare;
mod calls;
mod lab;
mod memory;
mod report;
mod server;
mod starts;
mod stats;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Parser;
use pagebridge_browser::find;
use pagebridge_process::{HostEnv, Supervisor};
use tokio::signal::unix::{SignalKind, signal};

use crate::lab::Lab;
use crate::server::Command;

/// Measures pagebridge beside a bare Chromium and beside chrome-devtools-mcp.
#[derive(Debug, Parser)]
#[command(name = "pagebridge-bench")]
struct Options {
    /// How often each is started.
    #[arg(long, default_value_t = 15, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// How often the page's tool is called in each way, at least.
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    calls: u16,
    /// The entry script of chrome-devtools-mcp; it is left out if absent.
    #[arg(long, value_name = "FILE")]
    peer: Option<PathBuf>,
    /// Chromium's executable; looked for as pagebridge does if absent.
    #[arg(long, value_name = "FILE")]
    browser: Option<PathBuf>,
    /// pagebridge's executable; the one beside this program if absent.
    #[arg(long, value_name = "FILE")]
    product: Option<PathBuf>,
    /// Start every browser without its sandbox, as root must.
    #[arg(long)]
    no_sandbox: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> anyhow::Result<()> {
    let supervisor = Supervisor::new(HostEnv::capture());
    let lab = lab(options, &supervisor)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let outcome = tokio::select! {
            outcome = measure(options, &lab) => outcome,
            interrupted = interrupted() => interrupted,
        };
        let left = supervisor.shutdown(Duration::from_secs(5)).await;
        if !left.is_empty() {
            eprintln!("processes that could not be ended: {left:?}");
        }
        outcome
    })
}

fn lab(options: &Options, supervisor: &Supervisor) -> anyhow::Result<Lab> {
    let browser = options.browser.clone().or_else(|| find::find(supervisor.env()));
    let browser = std::path::absolute(browser.context("no Chromium was found; name one with --browser")?)?;
    let product = match &options.product {
        Some(product) => product.clone(),
        None => std::env::current_exe()?.with_file_name("pagebridge"),
    };
    let product = std::path::absolute(product)?;
    if !product.is_file() {
        bail!("{} is not there: cargo build --release -p pagebridge", product.display());
    }
    let peer = options.peer.as_deref().and_then(|entry| entry.canonicalize().ok());
    match (&options.peer, &peer) {
        (_, Some(_)) => {}
        (Some(entry), None) => eprintln!("{} is not there: measuring without it", entry.display()),
        (None, None) => eprintln!("no --peer is given: measuring without chrome-devtools-mcp"),
    }
    let product = Command::pagebridge(product, &browser, options.no_sandbox);
    let peer = peer.map(|entry| Command::peer(&entry, &browser, options.no_sandbox));
    Ok(Lab::new(supervisor.clone(), product, peer, browser, options.no_sandbox))
}

async fn measure(options: &Options, lab: &Lab) -> anyhow::Result<()> {
    let load_before = memory::load();
    let starts = starts::measure(lab, options.rounds.into()).await?;
    let calls = calls::measure(lab, options.calls.into()).await?;
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    println!("{} on {cores} cores, {} {}", calls.browser, std::env::consts::OS, std::env::consts::ARCH);
    if lab.peer.is_some() {
        println!("chrome-devtools-mcp {}", calls.peer_version);
    }
    if options.no_sandbox {
        println!("all browsers without sandbox (--no-sandbox)");
    }
    if let (Some(before), Some(after)) = (load_before, memory::load()) {
        println!("load average before: {before}; after: {after}");
    }
    println!("\n{}\n{}", report::table(&starts, &calls), report::aims(&starts, &calls).trim_end());
    Ok(())
}

/// Ends the run early, so that what was started is ended too.
async fn interrupted() -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    bail!("interrupted")
}
