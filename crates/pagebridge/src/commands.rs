//! The commands. Each gives an exit status.

mod call;
mod client_config;
mod demo;
mod doctor;
mod guard;
mod open;
mod serve;
mod tools;

use clap::CommandFactory;
use pagebridge_core::{ErrorKind, ToolError};

use crate::cli::{Cli, Command};
use crate::{App, printer};

/// Done.
pub const DONE: u8 = 0;
/// The thing asked for failed.
pub const FAILED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// There is no browser, or it does not start.
pub const NO_BROWSER: u8 = 69;

/// Runs the command that was asked for.
pub async fn run(cli: Cli, app: &App) -> u8 {
    match cli.command {
        None => serve::run(&cli.serve, app).await,
        Some(Command::Serve(args)) => serve::run(&args, app).await,
        Some(Command::Demo(args)) => demo::run(&args, app).await,
        Some(Command::Tools(args)) => tools::run(&args, app).await,
        Some(Command::Call(args)) => call::run(&args, app).await,
        Some(Command::Doctor(args)) => doctor::run(&args, app).await,
        Some(Command::ClientConfig(args)) => client_config::run(&args),
        Some(Command::Guard { ledger }) => guard::run(&ledger).await,
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "pagebridge", &mut script);
            printer::result(String::from_utf8_lossy(&script).trim_end());
            DONE
        }
    }
}

/// Tells a failure and gives its exit status.
fn failed(error: &ToolError) -> u8 {
    printer::problem(&error.message);
    match error.kind {
        ErrorKind::BrowserStartFailed => NO_BROWSER,
        _ => FAILED,
    }
}
