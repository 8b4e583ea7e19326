//! The service that outlives its driver and its peer.

use std::path::Path;

use rusteron_test_support::{DriverProcess, Running, command, free_port, media_driver_beside};

const RECONNECTING: &str = env!("CARGO_BIN_EXE_reconnecting");

/// Drops each driver or service within this time of its death.
const DRIVER_TIMEOUT: &str = "2000";

fn start_driver(dir: &Path) -> DriverProcess {
    let timeout = format!("-Daeron.driver.timeout={DRIVER_TIMEOUT}");
    let options =
        ["--delete-on-start", "--idle", "backoff", "-Daeron.client.liveness.timeout=5s", &timeout];
    DriverProcess::start(media_driver_beside(RECONNECTING), dir, &options)
}

/// A service that publishes on one channel and stream, and subscribes to another.
fn start_service(dir: &Path, publish: (&str, &str), subscribe: (&str, &str)) -> Running {
    let mut command = command(RECONNECTING, ["--interval", "5ms", "--report", "20"]);
    command
        .args(["--publish", publish.0, "--publish-stream-id", publish.1])
        .args(["--subscribe", subscribe.0, "--subscribe-stream-id", subscribe.1])
        .arg("--aeron-dir")
        .arg(dir)
        .env("AERON_DRIVER_TIMEOUT", DRIVER_TIMEOUT);
    Running::start(command)
}

fn assert_flow(services: [&mut Running; 2]) {
    for service in services {
        // A message that was on its way before is not enough.
        for _ in 0..3 {
            service.await_line("Received ");
        }
    }
}

fn assert_good_end(service: Running) {
    service.signal("TERM");
    let finished = service.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "", "{finished:#?}");
    assert!(finished.stdout.lines().any(|line| line.starts_with("Done: sent ")), "{finished:#?}");
}

#[test]
fn services_survive_killed_driver() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("driver");
    let (here, there) = (("aeron:ipc", "1001"), ("aeron:ipc", "1002"));
    // Before there is a driver.
    let mut first = start_service(&dir, here, there);
    let mut second = start_service(&dir, there, here);
    let mut driver = start_driver(&dir);
    assert_flow([&mut first, &mut second]);
    for _ in 0..2 {
        driver.kill();
        for service in [&mut first, &mut second] {
            service.await_line("Disconnected: ");
        }
        driver = start_driver(&dir);
        for service in [&mut first, &mut second] {
            service.await_line("Connected to ");
        }
        assert_flow([&mut first, &mut second]);
    }
    assert_good_end(first);
    assert_good_end(second);
}

#[test]
fn services_survive_killed_peer() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("driver");
    let _driver = start_driver(&dir);
    let (here, there) = (("aeron:ipc", "1001"), ("aeron:ipc", "1002"));
    let mut first = start_service(&dir, here, there);
    let mut second = start_service(&dir, there, here);
    for _ in 0..2 {
        assert_flow([&mut first, &mut second]);
        second.kill();
        second = start_service(&dir, there, here);
        first.await_line("The peer is new: ");
        second.await_line("First heard the peer ");
    }
    assert_flow([&mut first, &mut second]);
    assert_good_end(first);
    assert_good_end(second);
}

#[test]
fn lost_messages_are_noticed_over_udp() {
    let parent = tempfile::tempdir().expect("a directory");
    let (near, far) = (parent.path().join("near"), parent.path().join("far"));
    let channel = || format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
    let (to_far, to_near) = (channel(), channel());
    let _near_driver = start_driver(&near);
    let mut far_driver = start_driver(&far);
    let mut here = start_service(&near, (&to_far, "1001"), (&to_near, "1002"));
    let mut there = start_service(&far, (&to_near, "1002"), (&to_far, "1001"));
    assert_flow([&mut here, &mut there]);

    // The near service goes on numbering, and the far one misses the messages.
    far_driver.kill();
    there.await_line("Disconnected: ");
    let _far_driver = start_driver(&far);
    there.await_line("Connected to ");
    there.await_line("Lost ");
    assert_flow([&mut here, &mut there]);
    assert_good_end(here);
    assert_good_end(there);
}

#[test]
fn invalid_channel_ends_service() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("driver");
    let _driver = start_driver(&dir);
    // A subscription could have it, a publication cannot.
    let channel = "aeron:udp?endpoint=127.0.0.1:0";
    let service = start_service(&dir, (channel, "1001"), ("aeron:ipc", "1002"));
    let finished = service.finish();
    finished.assert_exit_code(1);
    assert!(finished.stderr.starts_with("error: "), "{finished:#?}");
}

#[test]
fn file_in_place_of_dir_ends_service() {
    let parent = tempfile::tempdir().expect("a directory");
    let file = parent.path().join("driver");
    std::fs::write(&file, "").expect("a file");
    let here = ("aeron:ipc", "1001");
    let finished = start_service(&file, here, here).finish();
    finished.assert_exit_code(1);
    assert!(finished.stderr.starts_with("error: "), "{finished:#?}");
}

#[cfg(unix)]
#[test]
fn signal_ends_service_without_driver() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("driver");
    let here = ("aeron:ipc", "1001");
    let mut service = start_service(&dir, here, here);
    service.await_line("Disconnected: ");
    assert_good_end(service);
}
