//! The programs with other libraries, as a user runs them.

use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{Finished, command, run};

const PROGRAMS: [&str; 4] = [
    env!("CARGO_BIN_EXE_tokio_tasks"),
    env!("CARGO_BIN_EXE_typed_sbe"),
    env!("CARGO_BIN_EXE_typed_serde"),
    env!("CARGO_BIN_EXE_typed_zerocopy"),
];

/// Runs a program to its good end.
#[track_caller]
fn succeed(path: &str, arguments: &[&str]) -> Finished {
    rusteron_test_support::succeed(command(path, arguments))
}

#[test]
fn structures_are_sent_in_place() {
    let finished = succeed(env!("CARGO_BIN_EXE_typed_zerocopy"), &["--messages", "2"]);
    finished.assert_lines([
        "Received quote 1: 5 at 101",
        "Received quote 2: 5 at 102",
        "Received a book of 1000 quotes",
        "Done",
    ]);
}

#[test]
fn sbe_messages_are_decoded() {
    let finished = succeed(env!("CARGO_BIN_EXE_typed_sbe"), &["--messages", "2"]);
    finished.assert_lines([
        "Received quote 1: 5 at 101, ASK of Zürich",
        "Received quote 2: 5 at 102, ASK of Zürich",
        "Done",
    ]);
}

#[test]
fn serde_values_are_decoded() {
    let finished = succeed(env!("CARGO_BIN_EXE_typed_serde"), &["--messages", "2"]);
    finished.assert_lines([
        "Received order 1 at 101 for Zürich",
        "Received order 2 at any price for Zürich",
        "Received the end",
        "Done",
    ]);
}

#[test]
fn tasks_receive_all_messages() {
    // More messages than the channels and the limits of a duty cycle hold.
    for capacity in ["1", "7"] {
        let arguments = ["--messages", "500", "--capacity", capacity];
        let finished = succeed(env!("CARGO_BIN_EXE_tokio_tasks"), &arguments);
        assert_eq!(finished.count_lines("Received \"Hello "), 500, "{finished:#?}");
        finished.assert_lines(["Done: 500 messages received in a task"]);
    }
}

#[test]
fn missing_driver_is_an_error() {
    let empty = tempfile::tempdir().expect("a directory");
    for path in PROGRAMS {
        let mut command = command(path, ["--aeron-dir"]);
        command.arg(empty.path()).env("AERON_DRIVER_TIMEOUT", "200");
        let finished = run(command);
        finished.assert_exit_code(1);
        assert!(finished.stderr.starts_with("error: "), "{finished:#?}");
        assert!(finished.stderr.contains("CnC file"), "{finished:#?}");
    }
}

#[test]
fn running_driver_is_used() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    for path in PROGRAMS {
        let dir = driver.aeron_dir().to_str().expect("UTF-8");
        let finished = succeed(path, &["--aeron-dir", dir]);
        assert_eq!(finished.count_lines("Done"), 1, "{finished:#?}");
    }
}

#[cfg(unix)]
#[test]
fn signal_ends_tasks_quietly() {
    let path = env!("CARGO_BIN_EXE_tokio_tasks");
    let mut tasks =
        rusteron_test_support::Running::start(command(path, ["--messages", "1000000000"]));
    tasks.await_line("Received ");
    tasks.signal("INT");
    let finished = tasks.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "");
}
