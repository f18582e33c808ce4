//! Sessions that end in random ways, of which nothing may stay. `PAGEBRIDGE_SOAK=200` makes it as many.

#[path = "support/ground.rs"]
mod ground;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ground::{ClientProcess, Ground, SOON, call, entries, guard, handshake, one, send};
use nix::sys::signal::Signal;
use pagebridge_process::HostEnv;
use pagebridge_testkit::bridge::Bridge;
use pagebridge_testkit::watch::{Marker, processes_in_group};
use serde_json::{Value, json};
use tokio::time::timeout;

const SESSIONS: u32 = 20;
const SEED: u64 = 0x5eed;
/// So many run beside each other, on the same ground.
const LANES: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    CloseStdin,
    Terminate,
    Interrupt,
    KillBridge,
    KillClient,
    KillBridgeAndGuard,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Nothing was called yet.
    Unused,
    /// The browser starts.
    Starting,
    /// A page is open.
    Idle,
    /// A script runs that never ends.
    Calling,
}

/// One session to be played.
#[derive(Debug, Clone, Copy)]
struct Plan {
    ending: Ending,
    moment: Moment,
    delay: Duration,
}

/// The same plans every time (splitmix64).
fn plans(count: u32) -> Vec<Plan> {
    let mut state = SEED;
    let mut random = move |below: u64| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    };
    let endings = [
        Ending::CloseStdin,
        Ending::Terminate,
        Ending::Interrupt,
        Ending::KillBridge,
        Ending::KillClient,
        Ending::KillBridgeAndGuard,
    ];
    let moments = [Moment::Unused, Moment::Starting, Moment::Idle, Moment::Calling];
    (0..count)
        .map(|_| Plan {
            ending: endings[random(6) as usize],
            moment: moments[random(4) as usize],
            delay: Duration::from_millis(random(400)),
        })
        .collect()
}

/// What must go with one session.
struct Belongings {
    marker: Marker,
    groups: Vec<u32>,
    paths: Vec<PathBuf>,
}

impl Belongings {
    /// What there is of it now: the browser's group, the ledger and the folders that it names.
    fn of(ground: &Ground, marker: &Marker) -> Self {
        let processes = marker.alive();
        let is_browser = |line: &str| line.contains("--remote-debugging-pipe") && !line.contains("--type=");
        let groups = processes.iter().filter(|p| is_browser(&p.cmdline)).map(|p| p.pid).collect();
        let mut paths = Vec::new();
        let owners = processes.iter().filter(|p| p.cmdline.contains(" serve "));
        for start in owners.map(|p| format!("{}/{}-", ground.ledgers().display(), p.pid)) {
            for ledger in entries(&ground.ledgers()).into_iter().filter(|path| path.starts_with(&start)) {
                let text = std::fs::read_to_string(&ledger).unwrap_or_default();
                let folders = text.split('"').filter(|part| part.contains("/pagebridge-"));
                paths.extend(folders.map(PathBuf::from));
                paths.push(ledger.into());
            }
        }
        Self { marker: marker.clone(), groups, paths }
    }

    fn left(&self) -> Vec<String> {
        let grouped = self.groups.iter().flat_map(|group| processes_in_group(*group));
        let processes = self.marker.alive().into_iter().chain(grouped).map(|p| p.to_string());
        let paths = self.paths.iter().filter(|path| path.exists()).map(|path| path.display().to_string());
        processes.chain(paths).collect()
    }

    async fn gone(&self, plan: Plan) -> Duration {
        let begun = Instant::now();
        loop {
            let left = self.left();
            if left.is_empty() {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < SOON, "{plan:?} left:\n{}", left.join("\n"));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Plays one session and gives the time that its traces took to go.
async fn play(ground: &Ground, plan: Plan) -> Duration {
    if plan.ending == Ending::KillClient {
        return play_client(ground, plan).await;
    }
    let mut bridge = ground.start(&[]).await;
    use_browser(&bridge, plan).await;
    let belongings = Belongings::of(ground, &bridge.marker);
    let begun = Instant::now();
    end(&mut bridge, plan.ending).await;
    if plan.ending == Ending::KillBridgeAndGuard {
        let next = ground.start(&[]).await;
        belongings.gone(plan).await;
        next.finish().await;
    } else {
        belongings.gone(plan).await;
    }
    begun.elapsed()
}

/// Brings the session to its moment.
async fn use_browser(bridge: &Bridge, plan: Plan) {
    let request = async |tool: &str, arguments: Value| {
        let _ = bridge.client.request("tools/call", json!({"name": tool, "arguments": arguments})).await;
    };
    let most = if plan.moment == Moment::Starting { plan.delay } else { Duration::from_secs(30) };
    if plan.moment != Moment::Unused {
        let _ = timeout(most, request("new_page", json!({"url": "about:blank"}))).await;
    }
    if plan.moment == Moment::Calling {
        let endless = json!({"function": "() => new Promise(() => {})"});
        let _ = timeout(plan.delay / 4, request("evaluate_script", endless)).await;
    }
}

async fn end(bridge: &mut Bridge, ending: Ending) {
    match ending {
        Ending::CloseStdin => bridge.client.close_input().await,
        Ending::Terminate => bridge.signal(Signal::SIGTERM),
        Ending::Interrupt => bridge.signal(Signal::SIGINT),
        Ending::KillBridge => bridge.signal(Signal::SIGKILL),
        Ending::KillBridgeAndGuard => {
            if let Some(guard) = guard(&bridge.marker) {
                send(guard, Signal::SIGKILL);
            }
            bridge.signal(Signal::SIGKILL);
        }
        Ending::KillClient => unreachable!("played by a client process"),
    }
    let status = bridge.ended(SOON).await;
    let killed = matches!(ending, Ending::KillBridge | Ending::KillBridgeAndGuard);
    assert_eq!(status.success(), !killed, "{ending:?}: {status}\n{}", bridge.stderr());
}

async fn play_client(ground: &Ground, plan: Plan) -> Duration {
    let mut requests = handshake();
    if plan.moment != Moment::Unused {
        requests.push(call(2, "new_page", json!({"url": "about:blank"})));
    }
    if plan.moment == Moment::Calling {
        requests.push(call(3, "evaluate_script", json!({"function": "() => new Promise(() => {})"})));
    }
    let mut client = ClientProcess::start(ground, &requests);
    if matches!(plan.moment, Moment::Idle | Moment::Calling) {
        client.answer(2).await;
    }
    tokio::time::sleep(plan.delay / 4).await;
    let belongings = Belongings::of(ground, &client.marker);
    let begun = Instant::now();
    client.child.kill().await.expect("a client");
    belongings.gone(plan).await;
    assert_eq!(one(&client.marker, ""), None);
    begun.elapsed()
}

fn descriptors() -> usize {
    entries("/proc/self/fd".as_ref()).len()
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_end_in_any_way_leave_nothing() {
    let count = HostEnv::capture().get_str("PAGEBRIDGE_SOAK").and_then(|n| n.parse().ok());
    let plans = Arc::new(plans(count.unwrap_or(SESSIONS)));
    let ground = Arc::new(Ground::new());
    let before = descriptors();
    let next = Arc::new(AtomicU32::new(0));
    let lanes = (0..LANES).map(|_| {
        let (plans, ground, next) = (plans.clone(), ground.clone(), next.clone());
        tokio::spawn(async move {
            let mut longest = BTreeMap::new();
            while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                let took = play(&ground, *plan).await;
                let (count, most) = longest.entry(plan.ending).or_insert((0, Duration::ZERO));
                *count += 1;
                *most = took.max(*most);
            }
            longest
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        eprintln!("sessions and longest time to be gone: {:?}", lane.await.expect("a lane"));
    }
    // The last of them may have been killed with its guard.
    ground.start(&[]).await.finish().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(entries(&ground.temp()), Vec::<String>::new());
    assert_eq!(entries(&ground.ledgers()), Vec::<String>::new());
    assert!(descriptors() <= before, "descriptors: {before}, then {}", descriptors());
}
