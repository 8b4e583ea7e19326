//! The publisher and subscriber that outlive their drivers and each other.

use std::path::{Path, PathBuf};

use rusteron_test_support::{DriverProcess, Running, command, free_port, media_driver_beside};

const PUBLISHER: &str = env!("CARGO_BIN_EXE_market_data_publisher");
const SUBSCRIBER: &str = env!("CARGO_BIN_EXE_market_data_subscriber");

/// Drops each driver or program within this time of its death.
const DRIVER_TIMEOUT: &str = "2000";

/// A machine with a driver, whose directory is empty at first.
struct Machine {
    dir: PathBuf,
    address: String,
}

impl Machine {
    fn start_driver(&self) -> DriverProcess {
        let timeout = format!("-Daeron.driver.timeout={DRIVER_TIMEOUT}");
        let options = [
            "--delete-on-start",
            "--idle",
            "backoff",
            "-Daeron.client.liveness.timeout=5s",
            // The ends of a peer's driver and of its streams are noticed soon.
            "-Daeron.image.liveness.timeout=2s",
            "-Daeron.publication.connection.timeout=2s",
            &timeout,
        ];
        DriverProcess::start(media_driver_beside(PUBLISHER), &self.dir, &options)
    }

    fn start(&self, program: &str) -> Running {
        let mut command = command(program, [&self.address]);
        command.env("AERON_DIR", &self.dir).env("AERON_DRIVER_TIMEOUT", DRIVER_TIMEOUT);
        Running::start(command)
    }
}

fn machines(parent: &Path) -> [Machine; 2] {
    let address = format!("localhost:{}", free_port());
    ["first", "second"].map(|name| Machine { dir: parent.join(name), address: address.clone() })
}

/// A quote that was on its way before is not enough.
fn await_quotes(subscriber: &mut Running) {
    for _ in 0..20 {
        subscriber.await_line("Quote ");
    }
}

fn assert_good_end(program: Running) {
    program.signal("TERM");
    let finished = program.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "", "{finished:#?}");
}

#[test]
fn quotes_survive_killed_drivers_and_peers() {
    let parent = tempfile::tempdir().expect("a directory");
    let [first, second] = machines(parent.path());
    // Before there are drivers.
    let (mut publisher, mut subscriber) = (first.start(PUBLISHER), second.start(SUBSCRIBER));
    let (mut first_driver, mut second_driver) = (first.start_driver(), second.start_driver());
    subscriber.await_line("New publisher: ");
    await_quotes(&mut subscriber);

    first_driver.kill();
    publisher.await_line("Disconnected: ");
    let _first_driver = first.start_driver();
    publisher.await_line("Connected: ");
    // The same run of the publisher goes on with its numbers.
    subscriber.await_line("Lost: ");
    await_quotes(&mut subscriber);

    second_driver.kill();
    subscriber.await_line("Disconnected: ");
    let _second_driver = second.start_driver();
    subscriber.await_line("Connected");
    await_quotes(&mut subscriber);

    subscriber.kill();
    subscriber = second.start(SUBSCRIBER);
    await_quotes(&mut subscriber);
    publisher.kill();
    publisher = first.start(PUBLISHER);
    subscriber.await_line("New publisher: ");
    await_quotes(&mut subscriber);
    assert_good_end(publisher);
    assert_good_end(subscriber);
}

#[test]
fn every_subscriber_gets_quotes() {
    let parent = tempfile::tempdir().expect("a directory");
    let [machine, _] = machines(parent.path());
    let _driver = machine.start_driver();
    let publisher = machine.start(PUBLISHER);
    for mut subscriber in [SUBSCRIBER; 2].map(|program| machine.start(program)) {
        await_quotes(&mut subscriber);
        assert_good_end(subscriber);
    }
    assert_good_end(publisher);
}

#[test]
fn file_in_place_of_dir_ends_programs() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let machine = Machine { dir: file.path().to_owned(), address: "localhost:40456".to_owned() };
    for program in [PUBLISHER, SUBSCRIBER] {
        let finished = machine.start(program).finish();
        finished.assert_exit_code(1);
        assert!(finished.stderr.starts_with("Error: "), "{finished:#?}");
    }
}

#[test]
fn signal_ends_programs_without_driver() {
    let parent = tempfile::tempdir().expect("a directory");
    let [machine, _] = machines(parent.path());
    for mut program in [PUBLISHER, SUBSCRIBER].map(|program| machine.start(program)) {
        program.await_line("Disconnected: ");
        assert_good_end(program);
    }
}
