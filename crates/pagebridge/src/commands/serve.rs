//! `pagebridge serve`: one MCP client on standard input and output.

use std::path::{Path, PathBuf};

use pagebridge_server::{Session, serve_stdio};
use tokio_util::sync::CancellationToken;

use super::DONE;
use crate::cli::ServeArgs;
use crate::{App, printer};

/// Serves until the client goes or a signal comes.
pub async fn run(args: &ServeArgs, app: &App) -> u8 {
    if printer::stdin_is_terminal() {
        printer::note(
            "pagebridge speaks MCP on standard input and output and is meant to be started by an MCP client.\n\
             `pagebridge client-config claude-code` prints what a client needs, `pagebridge demo` shows it at work. Ctrl-D ends it.",
        );
    }
    let shutdown = CancellationToken::new();
    let signal = shutdown.clone();
    tokio::spawn(async move {
        wait_for_signal().await;
        signal.cancel();
    });
    app.supervisor.begin_sweep();
    let session = Session::new(app.supervisor.clone(), args.options(workspace(args, app)));
    let ended = serve_stdio(session, tokio::io::stdin(), tokio::io::stdout(), shutdown).await;
    tracing::debug!(?ended, "the session has ended");
    DONE
}

/// SIGTERM, SIGINT or SIGHUP: the ways in which a client, a user or a terminal ends us.
#[cfg(unix)]
pub async fn wait_for_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let [Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)] = kinds.map(signal) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        _ = hangup.recv() => {}
    }
}

#[cfg(not(unix))]
pub async fn wait_for_signal() {
    let _ = tokio::signal::ctrl_c().await;
}

/// The current folder, unless it is one that nobody wants files in.
fn workspace(args: &ServeArgs, app: &App) -> PathBuf {
    let home = app.supervisor.env().get("HOME").map(PathBuf::from);
    let current = args.workspace.clone().or_else(|| std::env::current_dir().ok());
    match current {
        Some(folder) if args.workspace.is_some() || !is_unfit(&folder, home.as_ref()) => folder,
        _ => {
            let state = state_folder(app, home);
            tracing::info!(workspace = %state.display(), "large results go here, not into the current folder");
            state
        }
    }
}

fn is_unfit(folder: &Path, home: Option<&PathBuf>) -> bool {
    folder.parent().is_none() || home.is_some_and(|home| home == folder) || !is_writable(folder)
}

#[cfg(unix)]
fn is_writable(folder: &Path) -> bool {
    nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|metadata| !metadata.permissions().readonly())
}

fn state_folder(app: &App, home: Option<PathBuf>) -> PathBuf {
    let env = app.supervisor.env();
    let chosen = env.get("PAGEBRIDGE_HOME").or_else(|| env.get("XDG_STATE_HOME")).map(PathBuf::from);
    let base = chosen.or_else(|| Some(home?.join(".local/state"))).unwrap_or_else(std::env::temp_dir);
    base.join("pagebridge")
}
