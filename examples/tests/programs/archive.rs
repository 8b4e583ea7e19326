//! The programs that use an archive, with Java's.

use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::Command;

use rusteron_media_driver::MediaDriver;
use serde_json::Value;

use crate::child::{Finished, Running, command, run};

use rusteron_test_support::archive::{JavaArchive, STREAM, await_recording, record};
use rusteron_test_support::{await_that, offer};

pub(crate) const ARCHIVE_TOOL: &str = env!("CARGO_BIN_EXE_archive_tool");
const REPLICATE: &str = env!("CARGO_BIN_EXE_replicate");

/// A program with an archive. Its timeouts are long, so that a slow driver or archive is not taken
/// for dead.
pub(crate) fn with_archive(java: &JavaArchive, path: &str, arguments: &[&str]) -> Command {
    let mut command = command(path, ["--control-channel", &java.control_channel()]);
    command.arg("--aeron-dir").arg(java.aeron_dir()).args(arguments);
    command.env("AERON_ARCHIVE_MESSAGE_TIMEOUT", "60s").env("AERON_DRIVER_TIMEOUT", "60000");
    command
}

/// Runs a program to its good end.
#[track_caller]
pub(crate) fn succeed(java: &JavaArchive, path: &str, arguments: &[&str]) -> Finished {
    let finished = run(with_archive(java, path, arguments));
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "", "{finished:#?}");
    finished
}

/// Runs `archive_tool --json`, and returns its output.
#[track_caller]
fn tool_json(java: &JavaArchive, arguments: &[&str]) -> Value {
    let finished = succeed(java, ARCHIVE_TOOL, &[&["--json"], arguments].concat());
    serde_json::from_str(&finished.stdout).expect("JSON")
}

#[track_caller]
pub(crate) fn assert_fails(command: Command, text: &str) {
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
fn what_goes_over_udp_is_recorded_although_nobody_else_receives_it() {
    let Some(java) = JavaArchive::launch() else { return };
    let channel = || format!("aeron:udp?endpoint=localhost:{}", rusteron_test_support::free_port());
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
fn the_tool_lists_counts_and_describes_recordings() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    assert_eq!(tool_json(&java, &["count"])["count"], 0);
    let (_publication, first, position) = record(&archive, 10);
    let publication =
        archive.add_recorded_exclusive_publication("aeron:ipc?alias=other", 77).expect("recorded");
    let second = await_recording(&archive, publication.session_id());
    drop(publication);
    await_that("the end", || archive.stop_position(second).expect("an answer").is_some());

    let listed = tool_json(&java, &["list"]);
    let recordings = listed["recordings"].as_array().expect("a list");
    assert_eq!(recordings.len(), 2, "{listed:#}");
    assert_eq!(recordings[0]["recording_id"], first);
    assert_eq!(
        (&recordings[0]["stream_id"], &recordings[0]["stop_position"]),
        (&STREAM.into(), &Value::Null)
    );
    assert_eq!(
        (&recordings[1]["stream_id"], &recordings[1]["stop_position"]),
        (&77.into(), &0.into())
    );
    let others = tool_json(&java, &["list", "--channel", "alias=other"]);
    assert_eq!(others["recordings"].as_array().expect("a list")[..], recordings[1..]);
    assert_eq!(tool_json(&java, &["count", "--stream-id", "77"])["count"], 1);
    assert_eq!(tool_json(&java, &["count", "--stream-id", "78"])["count"], 0);
    let text = succeed(&java, ARCHIVE_TOOL, &["list"]).stdout;
    assert_eq!(text.lines().count(), 3, "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(" active ")).count(), 1, "{text}");
    assert_eq!(succeed(&java, ARCHIVE_TOOL, &["count"]).stdout, "2\n");

    let described = tool_json(&java, &["describe", &first.to_string()]);
    assert_eq!(described["recorded_position"], position);
    assert_eq!(described["term_buffer_length"], 65536);
    let text = succeed(&java, ARCHIVE_TOOL, &["describe", &first.to_string()]).stdout;
    assert!(text.lines().any(|line| line == format!("Length          {position} bytes")), "{text}");
    for command in ["describe", "verify", "tail"] {
        assert_fails(with_archive(&java, ARCHIVE_TOOL, &[command, "4711"]), "4711");
    }
}

#[test]
fn the_tool_accounts_for_every_byte_of_a_recording() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (mut publication, id, _) = record(&archive, 0);
    let id = id.to_string();
    let empty = tool_json(&java, &["verify", &id]);
    assert_eq!((&empty["messages"], &empty["checksum"]), (&0.into(), &"00000000".into()));

    // Of one fragment and of several, over the ends of terms and segments.
    let mut checksum = crc32fast::Hasher::new();
    let (mut payload, mut position) = (0, 0);
    for number in 0..300_usize {
        let message: Vec<u8> = (0..number * 37 % 5000).map(|i| (i * 7 + number) as u8).collect();
        checksum.update(&message);
        payload += message.len();
        position = offer(&mut publication, &message);
    }
    archive
        .await_recorded(id.parse().expect("an id"), position, rusteron_test_support::DEADLINE)
        .expect("recorded");
    let checksum = format!("{:08x}", checksum.finalize());
    let verified = tool_json(&java, &["verify", &id, "--checksum", &checksum]);
    assert_eq!(
        (&verified["start_position"], &verified["end_position"]),
        (&0.into(), &position.into())
    );
    assert_eq!((&verified["messages"], &verified["payload_bytes"]), (&300.into(), &payload.into()));
    assert_eq!(
        (&verified["shortest_message"], &verified["longest_message"]),
        (&0.into(), &4995.into())
    );
    assert!(verified["frames"].as_u64() > Some(300), "{verified:#}");
    assert!(verified["padding_bytes"].as_u64() > Some(0), "{verified:#}");
    assert_eq!(verified["checksum"], checksum.as_str());
    let text = succeed(&java, ARCHIVE_TOOL, &["verify", &id]).stdout;
    assert!(text.ends_with(&format!("\nChecksum {checksum}\n")), "{text}");

    // A byte of a payload is another, as of a disk that forgets.
    let file = java.archive_dir().join(format!("{id}-0.rec"));
    let mut file = fs::OpenOptions::new().read(true).write(true).open(file).expect("a segment");
    // Behind the frame of message 0, which is empty, and the next one's header.
    let mut byte = [0];
    file.seek(SeekFrom::Start(32 + 32 + 5)).expect("a place");
    file.read_exact(&mut byte).expect("a byte");
    file.seek(SeekFrom::Current(-1)).expect("a place");
    file.write_all(&[byte[0] ^ 1]).expect("a byte");
    let arguments = ["verify", &id, "--checksum", &checksum];
    assert_fails(with_archive(&java, ARCHIVE_TOOL, &arguments), "the checksum is ");
    let not_hexadecimal = ["verify", &id, "--checksum", "x"];
    let finished = run(with_archive(&java, ARCHIVE_TOOL, &not_hexadecimal));
    finished.assert_exit_code(2);
    assert!(finished.stderr.contains("--checksum"), "{finished:#?}");
}

#[test]
fn the_tool_tails_a_recording_until_it_stops() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (mut publication, id, position) = record(&archive, 2);
    let id = id.to_string();
    let start = |arguments: &[&str]| {
        Running::start(with_archive(&java, ARCHIVE_TOOL, &[&["tail", &id], arguments].concat()))
    };
    let mut from_start = start(&["--json"]);
    from_start.await_line(&format!("{{\"position\":{position},\"text\":\"\\u0001\\u0000"));
    let second = (position / 2).to_string();
    let mut from_second = start(&["--from", &second]);
    from_second.await_line(&format!("{position:>12}  \\x01\\x00"));
    let end = offer(&mut publication, b"hello, archive");
    from_start.await_line(&format!("{{\"position\":{end},\"text\":\"hello, archive\"}}"));
    let one = succeed(
        &java,
        ARCHIVE_TOOL,
        &["tail", &id, "--from", &position.to_string(), "--messages", "1"],
    );
    assert_eq!(one.stdout, format!("{end:>12}  hello, archive\n"));
    let last = offer(&mut publication, &[0xff, 0]);
    from_start.await_line(&format!("{{\"hex\":\"ff00\",\"position\":{last}}}"));
    drop(publication);
    for tail in [from_start, from_second] {
        let finished = tail.finish();
        finished.assert_exit_code(0);
        assert_eq!(finished.stderr, "");
    }
    assert_eq!(succeed(&java, ARCHIVE_TOOL, &["tail", &id, "--new"]).stdout, "");
    assert_eq!(succeed(&java, ARCHIVE_TOOL, &["tail", &id]).stdout.lines().count(), 4);
}

#[test]
fn a_tail_whose_media_driver_is_killed_says_so() {
    let Some(mut java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (_publication, id, position) = record(&archive, 1);
    let mut command = with_archive(&java, ARCHIVE_TOOL, &["tail", &id.to_string()]);
    command.env("AERON_DRIVER_TIMEOUT", "5000");
    let mut tail = Running::start(command);
    tail.await_line(&format!("{position:>12}  "));
    java.kill();
    let finished = tail.finish();
    finished.assert_exit_code(1);
    assert!(finished.stderr.contains("driver timeout"), "{finished:#?}");
}

#[test]
fn a_signal_ends_a_tail_that_waits() {
    let Some(java) = JavaArchive::launch() else { return };
    let archive = java.connect();
    let (_publication, id, position) = record(&archive, 1);
    let mut tail = Running::start(with_archive(&java, ARCHIVE_TOOL, &["tail", &id.to_string()]));
    tail.await_line(&format!("{position:>12}  "));
    tail.signal("INT");
    let finished = tail.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "");
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
fn a_persistent_subscription_joins_leaves_and_joins_the_live_stream() {
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
    let checksum =
        |java: &JavaArchive, id: &str| tool_json(java, &["verify", id])["checksum"].clone();
    assert_eq!(checksum(&copy, "0"), checksum(&source, &id));

    // Continued, until the recording stops.
    let following = [&arguments[..], &["--into", "0", "--follow"]].concat();
    let mut follower = Running::start(with_archive(&copy, REPLICATE, &following));
    follower.await_line("Extend: recording 0");
    let end = rusteron_test_support::archive::offer_numbered(&mut publication, 500..1000);
    drop(publication);
    let finished = follower.finish();
    finished.assert_exit_code(0);
    let done = format!("Done: recording 0 is a copy of {id}, up to position {end}");
    assert_eq!(finished.stdout.lines().last(), Some(done.as_str()), "{finished:#?}");
    assert_eq!(checksum(&copy, "0"), checksum(&source, &id));

    // A recording that only the user ends.
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

    let arguments = ["--source-control-channel", &source_channel, "--recording-id", "4711"];
    assert_fails(with_archive(&copy, REPLICATE, &arguments), "4711");
}

#[test]
fn no_archive_is_an_error_that_says_where_it_was_looked_for() {
    let driver = MediaDriver::launch_embedded().expect("a driver");
    let channel = format!("aeron:udp?endpoint=localhost:{}", rusteron_test_support::free_port());
    for (path, arguments) in [
        (ARCHIVE_TOOL, &["list"][..]),
        (env!("CARGO_BIN_EXE_record_and_replay"), &[]),
        (env!("CARGO_BIN_EXE_replay_merge"), &[]),
        (env!("CARGO_BIN_EXE_persistent_subscription"), &[]),
    ] {
        let mut command = command(path, ["--control-channel", &channel, "--aeron-dir"]);
        command.arg(driver.aeron_dir()).args(arguments);
        command.env("AERON_ARCHIVE_MESSAGE_TIMEOUT", "200ms");
        assert_fails(command, &format!("cannot connect to the archive at {channel}"));
    }
}
