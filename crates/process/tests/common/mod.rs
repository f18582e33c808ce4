//! What the tests of this crate share.
#![allow(dead_code, reason = "each test binary uses its own part")]

use pagebridge_process::{
    HostEnv, Ladder, Polite, Purpose, SpawnRequest, Spawned, Stdin, Stdout, Supervisor,
};
use pagebridge_testkit::watch::Marker;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::ChildStdout;

/// Within this, a job's processes must be gone once `stop` has returned: at once, but for the kernel's own time.
pub const AT_ONCE: Duration = Duration::from_millis(100);

pub struct World {
    pub supervisor: Supervisor,
    pub marker: Marker,
}

impl World {
    pub fn new() -> Self {
        Self::with_vars([])
    }

    /// With further variables in the host's environment.
    pub fn with_vars<const N: usize>(vars: [(&str, &str); N]) -> Self {
        let path = HostEnv::capture().get_str("PATH").expect("PATH is set").to_owned();
        let all = vars.into_iter().chain([("PATH", path.as_str())]);
        Self { supervisor: Supervisor::new(HostEnv::from_vars(all)), marker: Marker::new() }
    }

    /// A request for a marked program with stdin and stdout piped and a ladder of 1 s and 0.5 s.
    pub fn request(&self, program: &str, args: &[&str]) -> SpawnRequest {
        let mut request = SpawnRequest::new(Purpose::McpServer, "fake", program);
        request.args = args.iter().map(Into::into).collect();
        let (name, value) = self.marker.var();
        request.env.insert(name, Some(value));
        request.stdin = Stdin::Piped;
        request.stdout = Stdout::Piped;
        request.ladder = quick(Polite::CloseStdin);
        request
    }

    pub fn sh(&self, script: &str) -> SpawnRequest {
        self.request("sh", &["-c", script])
    }

    pub fn python(&self, script: &str) -> SpawnRequest {
        self.request("python3", &["-c", script])
    }

    /// Starts it and waits for a line "ready".
    pub async fn start(&self, request: SpawnRequest) -> Spawned {
        let mut spawned = self.supervisor.spawn(request).expect("it starts");
        let stdout = spawned.stdout.as_mut().expect("stdout is piped");
        assert_eq!(line(stdout).await, "ready", "{:?}", spawned.job.stderr_tail());
        spawned
    }

    pub fn assert_gone(&self) {
        self.marker.assert_gone_within(AT_ONCE);
    }
}

pub fn quick(polite: Polite) -> Ladder {
    Ladder { polite, polite_wait: Duration::from_secs(1), term_wait: Duration::from_millis(500) }
}

pub async fn line(stdout: &mut ChildStdout) -> String {
    let mut line = String::new();
    BufReader::with_capacity(1, stdout).read_line(&mut line).await.expect("stdout can be read");
    line.trim_end().to_owned()
}

pub async fn all(mut stdout: ChildStdout) -> String {
    let mut text = String::new();
    stdout.read_to_string(&mut text).await.expect("stdout is UTF-8");
    text
}

/// How long a future took.
pub async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    let value = future.await;
    (value, begun.elapsed())
}
