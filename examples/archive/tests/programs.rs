//! The programs that use an archive, with Java's.

use std::process::Command;

use rusteron_archive::{ReplayLength, ReplayParams};
use rusteron_media_driver::MediaDriver;

use rusteron_test_support::archive::{JavaArchive, offer_numbered, record, replay_all};
use rusteron_test_support::{Finished, Running, command, free_port, run};

const REPLICATE: &str = env!("CARGO_BIN_EXE_replicate");

/// A program with an archive. Its timeouts are long, so that a slow driver or archive is not taken
/// for dead.
fn with_archive(java: &JavaArchive, path: &str, arguments: &[&str]) -> Command {
    let mut command = command(path, ["--control-channel", &java.control_channel()]);
    command.arg("--aeron-dir").arg(java.aeron_dir()).args(arguments);
    command.env("AERON_ARCHIVE_MESSAGE_TIMEOUT", "60s").env("AERON_DRIVER_TIMEOUT", "60000");
    command
}

/// Runs a program to its good end.
#[track_caller]
fn succeed(java: &JavaArchive, path: &str, arguments: &[&str]) -> Finished {
    rusteron_test_support::succeed(with_archive(java, path, arguments))
}

#[track_caller]
fn assert_fails(command: Command, text: &str) {
    let finished = run(command);
    finished.assert_exit_code(1);
    assert!(finished.stderr.starts_with("error: "), "{finished:#?}");
    assert!(finished.stderr.contains(text), "{finished:#?}");
}

#[test]
fn what_was_recorded_is_replayed() {
    let Some(java) = JavaArchive::launch() else { return };
    let finished = succeed(&java, env!("CARGO_BIN_EXE_record_and_replay"), &["--messages", "100"]);
    let lines: Vec<_> = finished.stdout.lines().collect();
    assert_eq!(lines.len(), 103, "{finished:#?}");
    assert!(lines.contains(&"Recorded 100 messages, 6400 bytes"), "{finished:#?}");
    assert_eq!(lines[2], "Replayed \"Hello 1\", position 64");
    assert_eq!(lines[101], "Replayed \"Hello 100\", position 6400");
    assert_eq!(lines[102], "Done: 100 messages replayed");
}

#[test]
fn udp_is_recorded_without_subscribers() {
    let Some(java) = JavaArchive::launch() else { return };
    let channel = || format!("aeron:udp?endpoint=localhost:{}", free_port());
    for (path, messages) in [
        (env!("CARGO_BIN_EXE_record_and_replay"), 50),
        (env!("CARGO_BIN_EXE_persistent_subscription"), 150),
    ] {
        let finished = succeed(&java, path, &["--channel", &channel(), "--messages", "50"]);
        let last = finished.stdout.lines().last().expect("a line");
        assert!(last.starts_with(&format!("Done: {messages} messages")), "{finished:#?}");
    }
}

#[test]
fn no_messages_are_not_recorded() {
    let record_and_replay = env!("CARGO_BIN_EXE_record_and_replay");
    let finished = run(command(record_and_replay, ["--messages", "0"]));
    finished.assert_exit_code(2);
    assert!(finished.stderr.contains("--messages"), "{finished:#?}");
}

#[test]
fn a_replay_merges_with_the_live_stream() {
    let Some(java) = JavaArchive::launch() else { return };
    let finished = succeed(&java, env!("CARGO_BIN_EXE_replay_merge"), &["--messages", "200"]);
    let lines: Vec<_> = finished.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{finished:#?}");
    assert!(lines[0].ends_with(" has 200 messages"), "{finished:#?}");
    let number_in = |line: &str, prefix: &str| -> u64 {
        let rest = line.strip_prefix(prefix).and_then(|rest| rest.split_once(' '));
        rest.expect("a number").0.parse().expect("a number")
    };
    let merged = number_in(lines[1], "Merged after ");
    assert!(merged >= 200, "{finished:#?}");
    assert!(lines[2].ends_with(" messages received, none lost or repeated"), "{finished:#?}");
    assert!(number_in(lines[2], "Done: ") >= merged + 200 - 1, "{finished:#?}");
}

#[test]
fn persistent_subscription_rejoins_live_stream() {
    let Some(java) = JavaArchive::launch() else { return };
    let path = env!("CARGO_BIN_EXE_persistent_subscription");
    let finished = succeed(&java, path, &["--messages", "50"]);
    let lines: Vec<_> = finished.stdout.lines().skip(1).collect();
    assert_eq!(
        lines[..2],
        ["Joined the live stream after 50 messages", "Left the live stream after 100 messages"]
    );
    assert!(lines[2].starts_with("Joined the live stream after "), "{finished:#?}");
    assert_eq!(lines[3..], ["Done: 150 messages received, none lost or repeated"]);
}

#[test]
fn a_recording_is_replicated_once_and_followed() {
    let Some(source) = JavaArchive::launch() else { return };
    let Some(copy) = JavaArchive::launch() else { return };
    let archive = source.connect();
    let (mut publication, id, position) = record(&archive, 500);
    let id = id.to_string();
    let source_channel = source.control_channel();
    let arguments = ["--source-control-channel", &source_channel, "--recording-id", &id];
    let finished = succeed(&copy, REPLICATE, &arguments);
    let done = format!("Done: recording 0 is a copy of {id}, up to position {position}");
    assert_eq!(finished.stdout.lines().last(), Some(done.as_str()), "{finished:#?}");
    let recorded = ReplayParams::new().length(ReplayLength::Recorded);
    // Checks the content of each message.
    let replayed = || replay_all(&copy.connect(), 0, recorded);
    assert_eq!(replayed(), (0..500).collect::<Vec<_>>());

    // Continued, until the recording stops.
    let following = [&arguments[..], &["--into", "0", "--follow"]].concat();
    let mut follower = Running::start(with_archive(&copy, REPLICATE, &following));
    follower.await_line("Extend: recording 0");
    let end = offer_numbered(&mut publication, 500..1000);
    drop(publication);
    let finished = follower.finish();
    finished.assert_exit_code(0);
    let done = format!("Done: recording 0 is a copy of {id}, up to position {end}");
    assert_eq!(finished.stdout.lines().last(), Some(done.as_str()), "{finished:#?}");
    assert_eq!(replayed(), (0..1000).collect::<Vec<_>>());

    // A recording that only the user ends.
    #[cfg(unix)]
    {
        let (_publication, id, _) = record(&archive, 10);
        let id = id.to_string();
        let arguments =
            ["--source-control-channel", &source_channel, "--recording-id", &id, "--follow"];
        let mut follower = Running::start(with_archive(&copy, REPLICATE, &arguments));
        follower.await_line("Extend: recording 1");
        follower.signal("TERM");
        let finished = follower.finish();
        finished.assert_exit_code(0);
        assert!(finished.stdout.ends_with("Stopped\n"), "{finished:#?}");
    }

    let arguments = ["--source-control-channel", &source_channel, "--recording-id", "4711"];
    assert_fails(with_archive(&copy, REPLICATE, &arguments), "4711");
}

#[test]
fn missing_archive_is_named() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let channel = format!("aeron:udp?endpoint=localhost:{}", free_port());
    for path in [
        env!("CARGO_BIN_EXE_record_and_replay"),
        env!("CARGO_BIN_EXE_replay_merge"),
        env!("CARGO_BIN_EXE_persistent_subscription"),
    ] {
        let mut command = command(path, ["--control-channel", &channel, "--aeron-dir"]);
        command.arg(driver.aeron_dir());
        command.env("AERON_ARCHIVE_MESSAGE_TIMEOUT", "200ms");
        assert_fails(command, &format!("cannot connect to the archive at {channel}"));
    }
}
