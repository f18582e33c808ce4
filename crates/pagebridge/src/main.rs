//! `pagebridge`: real browsers, and the tools that web pages offer, for AI agents over MCP.

mod cli;
mod commands;
mod demo_site;
mod printer;

use std::process::ExitCode;
use std::time::Duration;

use pagebridge_process::{GuardCommand, HostEnv, Supervisor};

/// What commands share: the environment, read once, and the owner of all children.
struct App {
    supervisor: Supervisor,
}

fn main() -> ExitCode {
    let app = App { supervisor: supervisor(HostEnv::capture()) };
    let cli = match cli::Cli::read() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are asked for; everything else is a mistake in the call.
            let code = if error.use_stderr() { commands::USAGE } else { commands::DONE };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    start_log(&cli);
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            printer::problem(&format!("no runtime could be started: {error}"));
            return ExitCode::from(commands::FAILED);
        }
    };
    let code = runtime.block_on(commands::run(cli, &app));
    // A read of stdin cannot be called off; it must not hold up the end.
    runtime.shutdown_timeout(Duration::from_millis(100));
    ExitCode::from(code)
}

/// The owner of all children, with a guard for the case that we are killed.
fn supervisor(env: HostEnv) -> Supervisor {
    match std::env::current_exe() {
        Ok(program) => Supervisor::guarded(env, GuardCommand { program, subcommand: "guard" }),
        Err(_) => Supervisor::new(env),
    }
}

/// Logs go to stderr, always: stdout is the protocol, or a command's result.
fn start_log(cli: &cli::Cli) {
    let filter = tracing_subscriber::EnvFilter::try_new(format!("warn,pagebridge={0}", cli.log_level))
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(true)
        .with_env_filter(filter)
        .init();
}
