//! The service that outlives its driver and its peers.

use std::path::Path;

use rusteron_test_support::{DriverProcess, Running, command, media_driver_beside};

const RECONNECTING: &str = env!("CARGO_BIN_EXE_reconnecting");

/// Drops each driver or service within this time of its death.
const DRIVER_TIMEOUT: &str = "2000";

fn start_driver(dir: &Path) -> DriverProcess {
    let timeout = format!("-Daeron.driver.timeout={DRIVER_TIMEOUT}");
    let options =
        ["--delete-on-start", "--idle", "backoff", "-Daeron.client.liveness.timeout=5s", &timeout];
    DriverProcess::start(media_driver_beside(RECONNECTING), dir, &options)
}

fn start_service(dir: &Path) -> Running {
    let mut command = command(RECONNECTING, [""; 0]);
    command.env("AERON_DIR", dir).env("AERON_DRIVER_TIMEOUT", DRIVER_TIMEOUT);
    Running::start(command)
}

fn assert_flow(services: [&mut Running; 2]) {
    for service in services {
        // A message that was on its way before is not enough.
        for _ in 0..2 {
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
fn services_survive_killed_driver_and_peer() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("driver");
    // Before there is a driver.
    let mut first = start_service(&dir);
    let mut second = start_service(&dir);
    let mut driver = start_driver(&dir);
    assert_flow([&mut first, &mut second]);

    driver.kill();
    for service in [&mut first, &mut second] {
        service.await_line("Disconnected: ");
    }
    let _driver = start_driver(&dir);
    for service in [&mut first, &mut second] {
        service.await_line("Connected to ");
    }
    assert_flow([&mut first, &mut second]);

    second.kill();
    second = start_service(&dir);
    first.await_line("New peer ");
    second.await_line("New peer ");
    assert_flow([&mut first, &mut second]);
    assert_good_end(first);
    assert_good_end(second);
}

#[test]
fn file_in_place_of_dir_ends_service() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let finished = start_service(file.path()).finish();
    finished.assert_exit_code(1);
    assert!(finished.stderr.starts_with("Error: "), "{finished:#?}");
}

#[test]
fn signal_ends_service_without_driver() {
    let parent = tempfile::tempdir().expect("a directory");
    let mut service = start_service(&parent.path().join("driver"));
    service.await_line("Disconnected: ");
    assert_good_end(service);
}
