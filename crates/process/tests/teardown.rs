//! How children end, and that nothing of them stays.

mod common;

use common::{AT_ONCE, World, line, timed};
use pagebridge_process::{HostEnv, Ladder, Polite, Purpose, SpawnError, Supervisor};
use pagebridge_testkit::watch::{Marker, processes_mentioning};
use std::fs;
use std::path::Path;
use std::time::Duration;

const MS_300: Duration = Duration::from_millis(300);
/// What a busy machine may add to an upper limit. The limits are far enough apart that a step too many still shows.
const BUSY: Duration = Duration::from_secs(2);
const SECOND: Duration = Duration::from_secs(1);

/// Ignores SIGTERM and the end of stdin.
const STUBBORN: &str = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                        print('ready', flush=True)\ntime.sleep(600)";

/// A wrapper that starts `child` in the background and then does `then`.
fn wrapper(child: &str, then: &str) -> String {
    // The child must not end the test's reading by holding stdout, nor end by reading stdin.
    format!("{child} </dev/null >&2 & echo $! >&2; sleep 0.1; echo ready; {then}")
}

const DEAF_SLEEP: &str = "sh -c 'trap \"\" TERM; while :; do sleep 600; done'";

#[tokio::test]
async fn a_polite_child_ends_at_once() {
    let world = World::new();
    for polite in [Polite::CloseStdin, Polite::Terminate] {
        let mut request = world.sh("echo ready; read line; exit 0");
        request.ladder = Ladder::stop().with_polite(polite);
        let spawned = world.start(request).await;
        let (exit, took) = timed(spawned.job.stop()).await;
        assert!(took < MS_300 + BUSY, "{polite:?}: {took:?}");
        assert_eq!(exit.success(), polite == Polite::CloseStdin, "{exit}");
        world.assert_gone();
    }
}

#[tokio::test]
async fn asked_only_waits() {
    let world = World::new();
    let mut request = world.sh("echo ready; sleep 0.2; exit 5");
    request.ladder = Ladder::stop().with_polite(Polite::Asked);
    let spawned = world.start(request).await;
    assert_eq!(spawned.job.stop().await.code, Some(5));
    world.assert_gone();
}

#[tokio::test]
async fn a_stubborn_child_is_killed_within_its_ladder() {
    let world = World::new();
    let spawned = world.start(world.python(STUBBORN)).await;
    let (exit, took) = timed(spawned.job.stop()).await;
    assert_eq!(exit.to_string(), "killed by signal 9");
    assert!(took > Duration::from_millis(1450) && took < Duration::from_millis(2000) + BUSY, "{took:?}");
    world.assert_gone();
}

#[tokio::test]
async fn a_stopped_child_gets_its_sigterm() {
    let world = World::new();
    let mut request = world.sh("echo ready; kill -STOP $$; sleep 600");
    request.ladder.polite_wait = Duration::from_millis(100);
    let spawned = world.start(request).await;
    let (exit, took) = timed(spawned.job.stop()).await;
    assert_eq!(exit.signal, Some(15));
    assert!(took < Duration::from_millis(500) + BUSY, "{took:?}");
    world.assert_gone();
}

/// Wrapper and grandchild in all variants: what does the wrapper do, how does it get on, how long may it take?
#[tokio::test]
async fn grandchildren_go_too() {
    let setsid = format!("setsid {DEAF_SLEEP}");
    // Ends, or is asked; then the leftovers have 0.3 s, 0.5 s for SIGTERM, and SIGKILL.
    let leftover = Duration::from_millis(1300);
    for (child, then, limit) in [
        ("sleep 600", "read line", Duration::from_millis(700)),
        (DEAF_SLEEP, "read line", leftover),
        (&setsid, "read line", leftover),
        // The wrapper ignores everything as well: the whole ladder.
        (&setsid, "trap '' TERM; while :; do sleep 600; done", Duration::from_millis(2200)),
    ] {
        let world = World::new();
        let spawned = world.start(world.sh(&wrapper(child, then))).await;
        assert!(world.marker.alive().len() >= 2, "{:?}", world.marker.alive());
        let (_, took) = timed(spawned.job.stop()).await;
        assert!(took < limit + BUSY, "{child} / {then}: {took:?}");
        world.assert_gone();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrapper_that_ends_first_leaves_nothing() {
    for child in ["sleep 600".to_owned(), DEAF_SLEEP.to_owned(), format!("setsid {DEAF_SLEEP}")] {
        for (then, expected) in [("exit 3", "exit status 3"), ("kill -9 $$", "killed by signal 9")] {
            let world = World::new();
            let spawned = world.start(world.sh(&wrapper(&child, then))).await;
            let exit = spawned.job.exited().await;
            assert_eq!((exit.to_string().as_str(), exit.asked), (expected, false));
            // Nobody asked for a stop; the job cleans up by itself.
            world.marker.assert_gone_within(SECOND);
            let (_, took) = timed(spawned.job.stop()).await;
            assert!(took < MS_300 + BUSY, "{took:?}");
        }
    }
}

#[tokio::test]
async fn a_descendant_without_mark_is_known_by_its_parent() {
    let world = World::new();
    // A new session, an emptied environment: only the parent chain tells, and it breaks when the wrapper ends.
    let script = wrapper(&format!("env -i setsid {DEAF_SLEEP} pagebridge-unmarked"), "read line");
    let spawned = world.start(world.sh(&script)).await;
    assert!(!processes_mentioning(Path::new("pagebridge-unmarked")).is_empty());
    spawned.job.stop().await;
    world.assert_gone();
    let left = processes_mentioning(Path::new("pagebridge-unmarked"));
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_grandchild_that_closes_down_keeps_the_polite_time() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("saved");
    // The wrapper dies of SIGTERM at once; the server behind it takes 0.6 s to save its work.
    let server = format!(
        "import signal, time, sys\ndef save(*_):\n    time.sleep(0.6)\n    open('{}', 'w')\n    sys.exit(0)\n\
         signal.signal(signal.SIGTERM, save)\nprint('ready', flush=True)\ntime.sleep(600)",
        saved.display()
    );
    let mut request = world.request("sh", &["-c", "python3 -c \"$0\"; true", &server]);
    request.ladder = Ladder::stop().with_polite(Polite::Terminate);
    let spawned = world.start(request).await;
    let (_, took) = timed(spawned.job.stop()).await;
    assert!(saved.exists());
    assert!(took > Duration::from_millis(500) && took < Duration::from_millis(1200) + BUSY, "{took:?}");
    world.assert_gone();
}

#[tokio::test]
async fn stop_is_shared_and_idempotent() {
    let world = World::new();
    let spawned = world.start(world.python(STUBBORN)).await;
    let jobs: Vec<_> = (0..5).map(|_| spawned.job.clone()).collect();
    let waiters: Vec<_> = jobs.into_iter().map(|job| tokio::spawn(async move { job.stop().await })).collect();
    let exited: Vec<_> = (0..5).map(|_| tokio::spawn(spawned.job.exited())).collect();
    // A caller who loses patience does not call it off.
    assert!(tokio::time::timeout(Duration::from_millis(10), spawned.job.stop()).await.is_err());
    let mut exits = Vec::new();
    for waiter in waiters.into_iter().chain(exited) {
        exits.push(waiter.await.unwrap());
    }
    assert!(exits.iter().all(|exit| exit.signal == Some(9)), "{exits:?}");
    assert_eq!(spawned.job.stop().await, exits[0]);
    assert_eq!(spawned.job.try_exit(), Some(exits[0]));
    world.assert_gone();
}

#[tokio::test]
async fn stop_works_in_the_first_moments() {
    let world = World::new();
    for delay in 0..12 {
        let spawned = world.supervisor.spawn(world.sh(&wrapper("setsid sleep 600", "read line"))).unwrap();
        tokio::time::sleep(Duration::from_micros(delay * 500)).await;
        let (_, took) = timed(spawned.job.stop()).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
        world.assert_gone();
    }
}

#[tokio::test]
async fn twenty_restarts_leave_none() {
    let world = World::new();
    let mut last: Option<pagebridge_process::Job> = None;
    for _ in 0..20 {
        if let Some(job) = last.take() {
            job.stop().await;
        }
        let request = world.sh("setsid sleep 600 & echo ready; read line");
        last = Some(world.start(request).await.job);
        let alive = world.marker.alive();
        assert!(alive.len() <= 2, "more than one generation: {alive:?}");
    }
    assert!(world.supervisor.shutdown(Duration::from_secs(4)).await.is_empty());
    world.assert_gone();
}

#[tokio::test]
async fn temporary_folders_go_after_the_tree() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile");
    fs::create_dir(&profile).unwrap();
    // A grandchild that writes until it is killed, as a dying browser does.
    let writer = "sh -c 'trap \"\" TERM; i=0; while :; do mkdir -p $0/d; echo x >$0/d/$i; i=$((i+1)); done'";
    let script = wrapper(&format!("setsid {writer} {}", profile.display()), "read line");
    let mut request = world.sh(&script);
    request.temp_dirs = vec![profile.clone(), folder.path().join("never-made")];
    let spawned = world.start(request).await;
    assert!(!processes_mentioning(&profile).is_empty());
    spawned.job.stop().await;
    assert!(!profile.exists());
    world.assert_gone();
}

#[tokio::test]
async fn shutdown_ends_all_at_once() {
    let world = World::new();
    let mut jobs = Vec::new();
    for _ in 0..10 {
        let mut request = world.python(STUBBORN);
        // Longer than an exit may take.
        request.ladder.polite_wait = Duration::from_secs(60);
        request.ladder.term_wait = Duration::from_secs(60);
        jobs.push(world.start(request).await.job);
    }
    // One of them is already being stopped with all its time.
    jobs[0].begin_stop();
    let (left, took) = timed(world.supervisor.shutdown(Duration::from_secs(5))).await;
    assert!(left.is_empty());
    assert!(took < Duration::from_secs(4), "{took:?}");
    assert!(jobs.iter().all(|job| job.try_exit().is_some()));
    world.assert_gone();
    let refused = world.supervisor.spawn(world.sh("true"));
    assert!(matches!(refused, Err(SpawnError::ShuttingDown { .. })));
}

#[tokio::test]
async fn the_deadline_of_a_shutdown_kills() {
    let world = World::new();
    let spawned = world.start(world.python(STUBBORN)).await;
    let (left, took) = timed(world.supervisor.shutdown(MS_300)).await;
    assert!(left.is_empty() && took < Duration::from_millis(600) + BUSY, "{took:?}");
    assert_eq!(spawned.job.try_exit().unwrap().signal, Some(9));
    world.assert_gone();
}

#[tokio::test]
async fn guards_go_last() {
    let world = World::new();
    let mut request = world.sh("echo ready; read line");
    request.purpose = Purpose::Guard;
    let guard = world.start(request).await;
    let other = world.start(world.sh("echo ready; read line; sleep 0.2")).await;
    let order = tokio::spawn({
        let (guard, other) = (guard.job.exited(), other.job.clone());
        async move {
            guard.await;
            other.try_exit().is_some()
        }
    });
    world.supervisor.shutdown(Duration::from_secs(4)).await;
    assert!(order.await.unwrap(), "the guard ended before the other");
    world.assert_gone();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_shutdown_that_races_with_spawns_leaves_none() {
    let (mut started, mut refused) = (0, 0);
    for round in 0..5 {
        let world = World::new();
        let spawners: Vec<_> = (0..4)
            .map(|_| {
                let (supervisor, requests) = (
                    world.supervisor.clone(),
                    (0..20).map(|_| world.sh("setsid sleep 600 & read line")).collect::<Vec<_>>(),
                );
                tokio::spawn(async move {
                    let results: Vec<_> =
                        requests.into_iter().map(|request| supervisor.spawn(request)).collect();
                    results.into_iter().filter(Result::is_err).count()
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(5 + round * 5)).await;
        let (left, took) = timed(world.supervisor.shutdown(Duration::from_secs(4))).await;
        assert!(left.is_empty(), "{left:?}");
        assert!(took < Duration::from_secs(5), "{took:?}");
        for spawner in spawners {
            let errors = spawner.await.unwrap();
            refused += errors;
            started += 20 - errors;
        }
        world.assert_gone();
    }
    assert!(started > 0 && refused > 0, "no race: {started} started, {refused} refused");
}

#[tokio::test]
async fn a_job_lives_as_long_as_the_supervisor() {
    let world = World::new();
    let spawned = world.start(world.python(STUBBORN)).await;
    // The handles go, the supervisor stays: so does the child.
    let stdin = spawned.stdin;
    drop(spawned.job);
    tokio::time::sleep(AT_ONCE).await;
    assert_eq!(world.marker.alive().len(), 1);
    assert_eq!(world.supervisor.jobs().len(), 1);
    // Now all of them.
    let World { supervisor, marker } = world;
    drop(supervisor);
    tokio::time::sleep(Duration::from_millis(1700)).await;
    marker.assert_gone_within(MS_300);
    drop(stdin);
}

#[test]
fn the_end_of_the_runtime_kills() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile");
    fs::create_dir(&profile).unwrap();
    let world = World::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let job = runtime.block_on(async {
        let mut request = world.sh(&wrapper(&format!("setsid {DEAF_SLEEP}"), "read line"));
        request.temp_dirs = vec![profile.clone()];
        world.start(request).await.job
    });
    drop(runtime);
    let left = world.marker.alive();
    assert!(left.is_empty(), "{left:?}");
    assert!(!profile.exists());
    drop(job);
}

/// A pagebridge inside a pagebridge (`pagebridge chromium`): the outer job still knows the inner one's processes.
#[tokio::test]
async fn marks_nest() {
    let world = World::new();
    let spawned = world.start(world.sh("echo ready; echo $PAGEBRIDGE_JOB; read line")).await;
    let mut stdout = spawned.stdout.unwrap();
    let outer = line(&mut stdout).await;
    let path = HostEnv::capture().get_str("PATH").unwrap().to_owned();
    let inner = Supervisor::new(HostEnv::from_vars([("PAGEBRIDGE_JOB", outer), ("PATH", path)]));
    let request = world.sh("echo ready; trap '' TERM; while :; do sleep 600; done");
    let inside = inner.spawn(request).unwrap();
    spawned.job.stop().await;
    assert_eq!(inside.job.exited().await.signal, Some(9));
    world.assert_gone();
}

#[tokio::test]
async fn a_neighbour_is_not_touched() {
    let (one, other) = (World::new(), Marker::new());
    let mut request = one.sh("setsid sleep 600 & echo ready; read line");
    let spawned = one.start(one.sh("setsid sleep 600 & echo ready; read line")).await;
    let (name, value) = other.var();
    request.env.insert(name, Some(value));
    let neighbour = one.start(request).await;
    spawned.job.stop().await;
    one.assert_gone();
    assert_eq!(other.alive().len(), 2);
    neighbour.job.stop().await;
    other.assert_gone_within(AT_ONCE);
}
