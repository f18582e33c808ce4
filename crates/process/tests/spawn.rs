//! How children start: environment, streams, descriptors, errors.

mod common;

use common::{World, all};
use pagebridge_process::{Purpose, SpawnError, SpawnRequest};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn canaries_do_not_pass() {
    let world = World::with_vars([
        ("OPENAI_API_KEY", "canary"),
        ("GITHUB_TOKEN", "canary"),
        ("SOMETHING", "canary"),
        ("TZ", "Asia/Tokyo"),
        ("LANG", "C.UTF-8"),
    ]);
    let mut request = world.sh("env; cat /proc/self/environ | tr '\\0' '\\n'");
    request.env.insert("API_KEY".into(), Some("mine".into()));
    request.env.insert("LANG".into(), None);
    let spawned = world.supervisor.spawn(request).unwrap();
    let text = all(spawned.stdout.unwrap()).await;
    assert!(!text.contains("canary"), "{text}");
    assert!(
        text.contains("API_KEY=mine") && text.contains("TZ=Asia/Tokyo") && !text.contains("LANG="),
        "{text}"
    );
    assert!(spawned.job.stop().await.success());
    world.assert_gone();
}

#[tokio::test]
async fn discovery_gets_no_time_zone() {
    let world = World::with_vars([("TZ", "Asia/Tokyo")]);
    for (zone, expected) in [(None, "none\n"), (Some("UTC"), "UTC\n")] {
        let mut request = world.sh("echo ${TZ-none}");
        request.purpose = Purpose::Discovery;
        request.env.extend(zone.map(|zone: &str| ("TZ".to_owned(), Some(zone.to_owned()))));
        let spawned = world.supervisor.spawn(request).unwrap();
        assert_eq!(all(spawned.stdout.unwrap()).await, expected);
        spawned.job.stop().await;
    }
    world.assert_gone();
}

#[tokio::test]
async fn streams_work_and_stdin_closes() {
    let world = World::new();
    let spawned = world.supervisor.spawn(world.request("cat", &[])).unwrap();
    let mut stdin = spawned.stdin.unwrap();
    stdin.write_all("grüße\n".as_bytes()).await.unwrap();
    stdin.shutdown().await.unwrap();
    assert!(stdin.write_all(b"more").await.is_err());
    assert_eq!(all(spawned.stdout.unwrap()).await, "grüße\n");
    let exit = spawned.job.exited().await;
    assert!(exit.success() && !exit.asked);
    assert_eq!(exit.to_string(), "exit status 0");
    world.assert_gone();
}

#[tokio::test]
async fn a_blocked_writer_hears_of_the_stop() {
    let world = World::new();
    let spawned = world.start(world.sh("echo ready; sleep 60")).await;
    let mut stdin = spawned.stdin.unwrap();
    let writer = tokio::spawn(async move { stdin.write_all(&[b'x'; 1 << 20]).await });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    spawned.job.stop().await;
    assert!(writer.await.unwrap().is_err());
    world.assert_gone();
}

#[tokio::test]
async fn extra_descriptors_arrive_as_3_and_4() {
    let world = World::new();
    let (child_reads, mut we_write) = std::io::pipe().unwrap();
    let (mut we_read, child_writes) = std::io::pipe().unwrap();
    let mut request = world.python(
        "import os\ndata = b''\nwhile chunk := os.read(3, 100): data += chunk\nos.write(4, data.upper())\n\
         print(sorted(os.listdir('/proc/self/fd')), flush=True)",
    );
    request.extra_fds = vec![(child_reads.into(), 3), (child_writes.into(), 4)];
    let spawned = world.supervisor.spawn(request).unwrap();
    we_write.write_all(b"over the pipe").unwrap();
    drop(we_write);
    let mut answer = String::new();
    we_read.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "OVER THE PIPE");
    // Beside 5, the listing itself, only what leaked into this very test process from the outside.
    let mut expected: Vec<String> = inherited().into_iter().chain((0..=5).map(|fd| fd.to_string())).collect();
    expected.sort();
    expected.dedup();
    assert_eq!(all(spawned.stdout.unwrap()).await.trim().replace('\'', "\""), format!("{expected:?}"));
    spawned.job.stop().await;
    world.assert_gone();
}

/// The descriptors of this process that are not close-on-exec.
fn inherited() -> Vec<String> {
    let fds = fs::read_dir("/proc/self/fd").unwrap();
    let names = fds.map(|fd| fd.unwrap().file_name().into_string().unwrap());
    let stays = |fd: &String| {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        flags.is_some_and(|flags| i64::from_str_radix(flags.trim(), 8).unwrap() & 0o2_000_000 == 0)
    };
    names.filter(stays).collect()
}

#[tokio::test]
async fn two_descriptors_of_one_number_are_refused() {
    let world = World::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut request = world.sh("true");
    request.extra_fds = vec![(reader.into(), 3), (writer.into(), 3)];
    assert!(matches!(world.supervisor.spawn(request), Err(SpawnError::Os { .. })));
    world.assert_gone();
}

#[tokio::test]
async fn a_mebibyte_of_stderr_without_newline_blocks_nothing() {
    let world = World::new();
    let script = "import sys\nsys.stderr.write('x' * (1 << 20)); sys.stderr.flush()\nprint('ready', flush=True)\n\
                  sys.stdin.read()\nsys.stderr.write('\\nlast words')\nsys.exit(3)";
    let spawned = world.start(world.python(script)).await;
    let exit = spawned.job.stop().await;
    assert_eq!((exit.code, exit.asked, exit.to_string().as_str()), (Some(3), true, "exit status 3"));
    let tail = spawned.job.stderr_tail();
    assert_eq!(tail.len(), 2);
    assert!(tail[0].starts_with("xxx") && tail[0].len() < 4096, "{}", tail[0].len());
    assert_eq!(tail[1], "last words");
    world.assert_gone();
}

#[tokio::test]
async fn the_tail_is_complete_at_the_exit() {
    let world = World::new();
    for _ in 0..20 {
        let spawned = world.supervisor.spawn(world.sh("echo 'cannot find module' >&2; exit 7")).unwrap();
        assert_eq!(spawned.job.exited().await.code, Some(7));
        assert_eq!(spawned.job.stderr_tail(), ["cannot find module"]);
    }
    world.assert_gone();
}

#[tokio::test]
async fn errors_say_what_to_do() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("plain"), "#!/bin/sh\n").unwrap();
    fs::write(path("script"), "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(path("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let check = |program: &str, cwd: Option<&str>, expected: [&str; 2]| {
        let mut request = world.request(program, &["--token", "canary"]);
        request.cwd = cwd.map(Into::into);
        request.temp_dirs = vec![folder.path().join("temp")];
        fs::create_dir_all(folder.path().join("temp/sub")).unwrap();
        let error = world.supervisor.spawn(request).expect_err("it cannot start").to_string();
        assert!(error.starts_with(&format!("cannot start MCP server \"fake\" ({program}): ")), "{error}");
        expected.iter().for_each(|part| assert!(error.contains(part), "{error}"));
        assert!(!error.contains("canary"), "{error}");
        assert!(!folder.path().join("temp").exists());
    };
    check("pagebridge-no-such", None, ["os error 2", "not found in PATH"]);
    check("/no/such/program", None, ["os error 2", "there is no such file"]);
    check("./no-such", None, ["os error 2", "there is no such file"]);
    check(&path("script"), None, ["os error 2", "interpreter"]);
    check(&path("plain"), None, ["os error 13", "chmod +x"]);
    check(&path(""), None, ["os error 13", "a folder"]);
    check("sh", Some("/no/such/folder"), ["os error 2", "working folder /no/such/folder"]);
    assert!(world.supervisor.jobs().is_empty());
    world.assert_gone();
}

#[test]
fn debug_forms_hide_arguments_and_environment() {
    let mut request = SpawnRequest::new(Purpose::Browser, "session", "chromium");
    request.args = vec!["canary".into()];
    request.env.insert("TOKEN".into(), Some("canary".into()));
    assert!(!format!("{request:?}").contains("canary"));
}
