//! `rusteron archive`, with Java's archive or ours.

use std::process::Command;

use rusteron_test_support::archive::{ArchiveProcess, STREAM, record};
use serde_json::Value;

use crate::support::{
    Running, array, await_some, await_that, free_port, json, launch, offer, run, rusteron, text,
    text_of,
};

#[cfg(unix)]
mod files;
#[cfg(unix)]
mod verify;

/// The program with an archive. Its timeouts are long, so that a slow driver or archive is not taken for
/// dead.
fn archive(server: &ArchiveProcess, arguments: &[&str]) -> Command {
    let channel = server.control_channel();
    let options = ["--driver-timeout", "60s", "archive", "--control-channel", &channel];
    let mut command = rusteron(&server.aeron_dir(), options);
    command.args(arguments).env("AERON_ARCHIVE_MESSAGE_TIMEOUT", "60s");
    command
}

/// Runs the program to its good end, and returns its output.
#[track_caller]
fn archive_text(server: &ArchiveProcess, arguments: &[&str]) -> String {
    text_of(run(archive(server, arguments)))
}

/// The same with `--json`.
#[track_caller]
fn archive_json(server: &ArchiveProcess, arguments: &[&str]) -> Value {
    let text = archive_text(server, &[arguments, &["--json"]].concat());
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).expect("JSON")
}

#[track_caller]
fn assert_fails(command: Command, text: &str) {
    let finished = run(command);
    finished.assert_exit_code(1);
    assert!(finished.stderr.starts_with("rusteron: "), "{finished:#?}");
    assert!(finished.stderr.contains(text), "{finished:#?}");
}

#[test]
fn lists_counts_and_describes() {
    let server = ArchiveProcess::launch();
    let session = server.connect();
    assert_eq!(archive_json(&server, &["count"])["count"], 0);
    let (_publication, first, position) = record(&session, 10);
    let (publication, second) =
        session.add_recorded_exclusive_publication("aeron:ipc?alias=other", 77).expect("recorded");
    drop(publication);
    await_that("the end", || session.stop_position(second).expect("an answer").is_some());

    let listed = archive_json(&server, &["list"]);
    let recordings = listed["recordings"].as_array().expect("a list");
    assert_eq!(recordings.len(), 2, "{listed:#}");
    assert_eq!(recordings[0]["recording_id"], first.get());
    assert_eq!(
        (&recordings[0]["stream_id"], &recordings[0]["stop_position"]),
        (&STREAM.into(), &Value::Null)
    );
    assert_eq!(
        (&recordings[1]["stream_id"], &recordings[1]["stop_position"]),
        (&77.into(), &0.into())
    );
    let others = archive_json(&server, &["list", "--channel", "alias=other"]);
    assert_eq!(others["recordings"].as_array().expect("a list")[..], recordings[1..]);
    assert_eq!(archive_json(&server, &["count", "--stream-id", "77"])["count"], 1);
    assert_eq!(archive_json(&server, &["count", "--stream-id", "78"])["count"], 0);
    let text = archive_text(&server, &["list"]);
    assert_eq!(text.lines().count(), 3, "{text}");
    assert_eq!(text.lines().filter(|line| line.contains(" active ")).count(), 1, "{text}");
    assert_eq!(archive_text(&server, &["count"]), "2\n");

    let described = archive_json(&server, &["describe", &first.to_string()]);
    assert_eq!(described["recorded_position"], position);
    assert_eq!(described["term_buffer_length"], 65536);
    let text = archive_text(&server, &["describe", &first.to_string()]);
    assert!(text.lines().any(|line| line == format!("Length          {position} bytes")), "{text}");
    for command in ["describe", "verify", "tail"] {
        assert_fails(archive(&server, &[command, "4711"]), "4711");
    }
}

#[test]
fn counters_have_names_and_metrics() {
    let server = ArchiveProcess::launch();
    let session = server.connect();
    let (_publication, _, position) = record(&session, 10);
    let dir = server.aeron_dir();
    let stat = |type_name: &str| {
        let stat = json(&dir, &["--driver-timeout", "60s", "stat", "--type", type_name]);
        array(&stat, "counters").iter().map(|it| it["value"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(stat("archive-recording-pos"), [position]);
    assert_eq!(stat("archive-recording-sessions"), [1]);
    let values = |metrics: &str, name: &str| -> Vec<f64> {
        let samples = metrics.lines().filter(|line| line.starts_with(&format!("{name}{{")));
        let value = |line: &str| line.rsplit(' ').next()?.parse().ok();
        samples.filter_map(value).collect()
    };
    // Bytes and times are counted after the position has moved.
    let metrics = await_some("the bytes", || {
        let metrics = text(&dir, &["--driver-timeout", "60s", "stat", "--openmetrics"]);
        let written = values(&metrics, "aeron_archive_written_bytes_total");
        (written == [position as f64]).then_some(metrics)
    });
    let value = |name| values(&metrics, name);
    assert_eq!(value("aeron_archive_recording_position_bytes_total"), [position as f64]);
    assert_eq!(value("aeron_archive_recording_lag_bytes"), [0.0]);
    assert_eq!(value("aeron_archive_recording_sessions"), [1.0]);
    // A nanosecond would be 1, and a write takes more than 1000 of them.
    for name in ["aeron_archive_write_time_seconds_total", "aeron_archive_max_write_time_seconds"] {
        assert!(value(name).iter().any(|&it| it > 0.0 && it < 1000.0), "{name} in {metrics}");
    }
}

#[test]
fn missing_archive_is_named() {
    let driver = launch();
    let channel = format!("aeron:udp?endpoint=localhost:{}", free_port());
    let arguments = ["archive", "--control-channel", &channel, "list"];
    let mut command = rusteron(driver.aeron_dir(), arguments);
    command.env("AERON_ARCHIVE_MESSAGE_TIMEOUT", "200ms");
    assert_fails(command, &format!("cannot connect to the archive at {channel}"));
}

#[test]
fn killed_driver_is_the_reason() {
    let mut server = ArchiveProcess::launch();
    let session = server.connect();
    let (_publication, id, position) = record(&session, 1);
    let mut command = archive(&server, &["tail", &id.to_string()]);
    command.args(["--driver-timeout", "5s"]);
    let mut tail = Running::start(command);
    tail.await_line(&format!("{position:>12}  "));
    server.kill();
    let finished = tail.finish();
    finished.assert_exit_code(1);
    assert!(finished.stderr.contains("driver timeout"), "{finished:#?}");
}

#[test]
fn follows_until_recording_stops() {
    let server = ArchiveProcess::launch();
    let session = server.connect();
    let (mut publication, id, position) = record(&session, 2);
    let id = id.to_string();
    let start = |arguments: &[&str]| {
        Running::start(archive(&server, &[&["tail", &id], arguments].concat()))
    };
    let mut from_start = start(&["--json"]);
    from_start.await_line(&format!("{{\"position\":{position},\"text\":\"\\u0001\\u0000"));
    let second = (position / 2).to_string();
    let mut from_second = start(&["--from", &second]);
    from_second.await_line(&format!("{position:>12}  \\x01\\x00"));
    let end = offer(&mut publication, b"hello, archive");
    from_start.await_line(&format!("{{\"position\":{end},\"text\":\"hello, archive\"}}"));
    let one =
        archive_text(&server, &["tail", &id, "--from", &position.to_string(), "--messages", "1"]);
    assert_eq!(one, format!("{end:>12}  hello, archive\n"));
    let last = offer(&mut publication, &[0xff, 0]);
    from_start.await_line(&format!("{{\"hex\":\"ff00\",\"position\":{last}}}"));
    drop(publication);
    for tail in [from_start, from_second] {
        let finished = tail.finish();
        finished.assert_exit_code(0);
        assert_eq!(finished.stderr, "");
    }
    assert_eq!(archive_text(&server, &["tail", &id, "--new"]), "");
    assert_eq!(archive_text(&server, &["tail", &id]).lines().count(), 4);
}

#[test]
fn channels_of_answers_and_replays() {
    let server = ArchiveProcess::launch();
    let session = server.connect();
    let (publication, id, _) = record(&session, 2);
    drop(publication);
    await_that("the end", || session.stop_position(id).expect("an answer").is_some());
    let id = id.to_string();
    let udp = format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
    let channels = ["--response-channel", "aeron:ipc", "--replay-channel", &udp];
    let text = archive_text(&server, &[&["tail", &id][..], &channels].concat());
    assert_eq!(text.lines().count(), 2, "{text}");
    // No machine has this address.
    let nowhere = "aeron:udp?endpoint=192.0.2.1:0";
    for option in ["--response-channel", "--replay-channel"] {
        assert_fails(archive(&server, &["tail", &id, option, nowhere]), "192.0.2.1");
    }
}

#[cfg(unix)]
#[test]
fn signal_exits_0() {
    let server = ArchiveProcess::launch();
    let session = server.connect();
    let (_publication, id, position) = record(&session, 1);
    let mut tail = Running::start(archive(&server, &["tail", &id.to_string()]));
    tail.await_line(&format!("{position:>12}  "));
    tail.signal("INT");
    let finished = tail.finish();
    finished.assert_exit_code(0);
    assert_eq!(finished.stderr, "");
}
