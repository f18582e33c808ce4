//! Starts Chromium on a pipe and waits for its first word.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pagebridge_cdp::{CdpSession, connect};
use pagebridge_process::{Job, Ladder, Polite, Purpose, SpawnError, SpawnRequest, Supervisor};
use serde::Deserialize;
use serde_json::json;
use tokio::net::unix::pipe;

use crate::browser::{Browser, Owner};
use crate::driver::{Driver, follow_pages};
use crate::options::BrowserOptions;
use crate::page_tools::Registry;
use crate::start_failure::{Seen, StartError};
use crate::targets::Targets;
use crate::{find, flags};

/// Chromium reads commands from this descriptor and writes to the next one.
const COMMANDS_FD: i32 = 3;
const EVENTS_FD: i32 = 4;
/// Time from the spawn to the first answer. A start that fails is noticed at once; this is for one that hangs.
const PATIENCE: Duration = Duration::from_secs(30);

impl Browser {
    /// Starts a browser. A failure is told as soon as the process has ended. Its first page gets the number after
    /// `last_page`.
    pub async fn launch(
        supervisor: &Supervisor,
        options: &BrowserOptions,
        last_page: u32,
    ) -> Result<Self, StartError> {
        let program = options
            .executable
            .clone()
            .or_else(|| find::find(supervisor.env()))
            .ok_or_else(StartError::not_found)?;
        let folders = folders(supervisor, options, &program)?;
        let profile = folders.profile.clone();
        let (job, pipes) = spawn(supervisor, options, &program, folders)?;
        let (root, events) = connect(pipes.events, pipes.commands);
        // Whatever happens from here on, letting go of the start ends the browser.
        let starting = Starting { job, root };
        let product = starting.first_word(&program, &profile).await?;
        let targets = Arc::new(Targets::new(starting.root.clone(), last_page));
        let registry = Arc::new(Registry::new(options.allowed_frames.clone()));
        let driver = Driver { targets: targets.clone(), registry: registry.clone(), holds: true };
        tokio::spawn(driver.drive(events));
        // Nobody asks for files yet, and nothing is to stay behind.
        let downloads = starting.root.call("Browser.setDownloadBehavior", json!({"behavior": "deny"}));
        let followed = follow_pages(&starting.root, true).await;
        if let Err(error) = followed.and(downloads.await.map(drop)) {
            return Err(starting.failed(&program, &profile, error.to_string()));
        }
        let job = starting.job.clone();
        std::mem::forget(starting);
        Ok(Self::new(Owner::Child { job, program }, targets, registry, product))
    }
}

/// A browser that is not ours to use yet; dropping it ends the process.
struct Starting {
    job: Job,
    root: CdpSession,
}

impl Drop for Starting {
    fn drop(&mut self) {
        self.root.close();
        self.job.begin_stop();
    }
}

impl Starting {
    /// The product and version that the browser reports.
    async fn first_word(&self, program: &Path, profile: &Path) -> Result<String, StartError> {
        #[derive(Deserialize)]
        struct Version {
            product: String,
        }
        let asked = self.root.call("Browser.getVersion", json!({}));
        let failure = tokio::select! {
            answer = asked => match answer.and_then(|reply| reply.decode::<Version>()) {
                Ok(version) => return Ok(version.product),
                // The pipe closes a moment before the process is reaped; its end says more.
                Err(error) if error.is_loss() => {
                    let _ = tokio::time::timeout(Duration::from_secs(1), self.job.exited()).await;
                    error.to_string()
                }
                Err(error) => error.to_string(),
            },
            _ = self.job.exited() => String::new(),
            () = tokio::time::sleep(PATIENCE) => format!("it said nothing for {} s", PATIENCE.as_secs()),
        };
        Err(self.failed(program, profile, failure))
    }

    fn failed(&self, program: &Path, profile: &Path, otherwise: String) -> StartError {
        let exit = self.job.try_exit();
        StartError::of(&Seen {
            program,
            end: exit.as_ref().map_or(otherwise, ToString::to_string),
            code: exit.and_then(|exit| exit.code),
            stderr: &self.job.stderr_tail(),
            profile,
        })
    }
}

struct Pipes {
    commands: pipe::Sender,
    events: pipe::Receiver,
}

fn spawn(
    supervisor: &Supervisor,
    options: &BrowserOptions,
    program: &Path,
    folders: Folders,
) -> Result<(Job, Pipes), StartError> {
    let Folders { profile, scratch } = folders;
    let failed =
        |end: String| StartError::of(&Seen { program, end, code: None, stderr: &[], profile: &profile });
    let pipes = || -> std::io::Result<_> {
        let (commands, their_commands) = pipe::pipe()?;
        let (their_events, events) = pipe::pipe()?;
        let theirs = vec![
            (their_commands.into_blocking_fd()?, COMMANDS_FD),
            (their_events.into_blocking_fd()?, EVENTS_FD),
        ];
        Ok((Pipes { commands, events }, theirs))
    };
    let (pipes, theirs) = pipes().map_err(|error| failed(format!("no pipe could be made: {error}")))?;
    let mut request = SpawnRequest::new(Purpose::Browser, "native engine", program);
    request.args = flags::arguments(options, &profile);
    // What Chromium would leave in the temp folder and in the home folder goes where it is removed.
    let own = scratch.join("tmp").to_str().map(str::to_owned);
    request.env.insert("BREAKPAD_DUMP_LOCATION".into(), own.clone());
    request.env.insert("TMPDIR".into(), own);
    if !options.headed {
        request.env.insert("GSETTINGS_BACKEND".into(), Some("memory".into()));
    }
    request.extra_fds = theirs;
    request.ladder = Ladder::exit().with_polite(Polite::Terminate);
    request.temp_dirs = vec![scratch];
    let spawned = supervisor.spawn(request).map_err(|error| match error {
        SpawnError::Os { source, hint, .. } => {
            failed(hint.map_or_else(|| source.to_string(), |hint| format!("{source}; {hint}")))
        }
        other => failed(other.to_string()),
    })?;
    Ok((spawned.job, pipes))
}

/// The folders of one browser.
struct Folders {
    profile: PathBuf,
    /// Removed with the browser. Chromium's own temporary files go there too: it leaves them when it is killed.
    scratch: PathBuf,
}

fn folders(supervisor: &Supervisor, options: &BrowserOptions, program: &Path) -> Result<Folders, StartError> {
    let in_temp = |error: std::io::Error| {
        let hint = "Point TMPDIR to a folder that can be written.";
        StartError::no_folder(program, &std::env::temp_dir(), &error, hint)
    };
    let scratch = supervisor.temp_dir().map_err(in_temp)?;
    std::fs::create_dir_all(scratch.path().join("tmp")).map_err(in_temp)?;
    let profile = match &options.user_data_dir {
        Some(kept) => std::path::absolute(kept)
            .and_then(|kept| std::fs::create_dir_all(&kept).map(|()| kept))
            .map_err(|error| {
                let hint = "Choose another --user-data-dir, or leave it away for a fresh profile.";
                StartError::no_folder(program, kept, &error, hint)
            })?,
        None => {
            let fresh = scratch.path().join("profile");
            std::fs::create_dir_all(&fresh).map_err(in_temp)?;
            fresh
        }
    };
    Ok(Folders { profile, scratch: scratch.keep() })
}
