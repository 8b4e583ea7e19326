//! Faults that need the program `archive`: a full disk, mistakes of clients, a port in use, a
//! killed driver. What the operator reads, what the client is told, and what is left of the
//! recordings.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;

use rusteron_archive::{
    Archive, ArchiveErrorKind, RecordingPos, ReplayParams, ReplicationParams, SourceLocation,
};
use rusteron_client::Aeron;
use rusteron_test_support::archive::fake_archive::{MAX_RECORDED_POSITION, Message};
use rusteron_test_support::archive::{
    REPLAY_STREAM, STREAM, message, offer_numbered, record, replay_all,
};
use rusteron_test_support::{
    DEADLINE, DriverProcess, Running, SmallFileSystem, await_that, command, context,
    media_driver_beside, offer, run,
};

use crate::support::{
    await_error, await_stop, connect_with_errors, extend, ipc_context, launch_driver, recorded,
};

pub(crate) const ARCHIVE: &str = env!("CARGO_BIN_EXE_archive");
pub(crate) const WITH_DRIVER: &str = env!("CARGO_BIN_EXE_archiving_media_driver");

/// The stream of requests over IPC.
const LOCAL_CONTROL_STREAM: i32 = 10;

/// The program `archive` with short segments, and further properties.
pub(crate) fn archive(aeron_dir: &Path, archive_dir: &Path, properties: &[&str]) -> Command {
    let usual = [
        "aeron.archive.control.channel=aeron:udp?endpoint=localhost:0",
        "aeron.archive.threading.mode=SHARED",
        "aeron.archive.segment.file.length=131072",
        // On a busy machine, a slow driver must not be timed out.
        "aeron.driver.timeout=60000",
    ];
    let properties = usual.iter().chain(properties).map(|property| format!("-D{property}"));
    let mut program = command(ARCHIVE, properties);
    program.arg("--dir").arg(aeron_dir).arg("--archive-dir").arg(archive_dir);
    program
}

/// Starts a program, and waits until it takes requests.
pub(crate) fn start(program: Command) -> Running {
    let mut program = Running::start(program);
    program.await_line("archive ready: ");
    program
}

/// Ends a program in order. Returns the lines of its error output.
pub(crate) fn end(program: Running) -> Vec<String> {
    program.signal("TERM");
    let finished = program.finish();
    finished.assert_exit_code(0);
    finished.stderr.lines().map(str::to_owned).collect()
}

/// Runs a program that does not start. Returns the only line of its error output.
pub(crate) fn refused(program: Command, exit_code: i32) -> String {
    let finished = run(program);
    finished.assert_exit_code(exit_code);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    finished.stderr.trim_end().to_owned()
}

#[track_caller]
pub(crate) fn assert_contains(line: &str, texts: &[&str]) {
    for text in texts {
        assert!(line.contains(text), "{text:?} in {line:?}");
    }
}

#[test]
fn full_disk_stops_only_the_recording_that_needs_space() {
    let Some(disk) = SmallFileSystem::mount("4m") else { return };
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![1; 1 << 20]).expect("space");
    let driver = launch_driver();
    let dir = disk.path().join("archive");
    let low = "aeron.archive.low.storage.space.threshold=0";
    let server = start(archive(driver.aeron_dir(), &dir, &[low]));
    let (archive, errors) = connect_with_errors(&driver);
    let add = |stream_id| {
        archive.add_recorded_exclusive_publication("aeron:ipc", stream_id).expect("a recording")
    };
    // The page of its first message has space for more.
    let (mut small, small_id) = add(77);
    let position = offer_numbered(&mut small, 0..1);
    archive.await_recorded(small_id, position, DEADLINE).expect("a recording");

    let (mut large, large_id) = add(STREAM);
    let counter =
        RecordingPos::find_by_recording_id(archive.aeron(), large_id, archive.archive_id())
            .expect("a counter");
    let (mut next, mut announced) = (0, 0);
    await_that("the end of the recording", || {
        while large.offer(&message(next)).is_ok() {
            next += 1;
        }
        announced = counter.position().unwrap_or(announced);
        !counter.is_active()
    });
    let stop = await_stop(&archive, large_id);
    assert!(stop >= announced, "{stop} of {announced}");
    let error = await_error(&archive, &errors);
    assert_eq!(error.kind(), ArchiveErrorKind::StorageSpace, "{error}");
    let text = format!("recording {large_id} stopped at position {stop}: {large_id}-");
    assert_contains(error.message(), &[&text, "No space left", "free space"]);
    let error =
        archive.start_recording("aeron:ipc", 78, SourceLocation::Local, false).expect_err("full");
    assert_eq!(error.kind(), ArchiveErrorKind::StorageSpace, "{error}");
    assert_contains(error.message(), &["low storage threshold=0 <= usableSpace=0", "free space"]);

    let position = offer_numbered(&mut small, 1..20);
    archive.await_recorded(small_id, position, DEADLINE).expect("a recording");
    let kept = replay_all(&archive, large_id, recorded()).len() as u64;
    assert!(kept > 1 << 13, "{kept}");
    // The subscription has ended with the recording, so that the publisher does not wait for it.
    await_that("a publisher without a subscriber", || !large.is_connected());
    drop(large);

    fs::remove_file(ballast).expect("a file");
    extend(&archive, large_id, kept..kept + 100);
    let (publication, ..) = record(&archive, 100);
    drop((publication, small));
    assert_eq!(await_stop(&archive, small_id), position);
    drop(archive);
    let lines = end(server);
    assert_contains(&lines[0], &[&format!("archive: {text}"), "No space left", "free space"]);
    // The write that failed may have left a part of a message, which the extension keeps.
    let entries = fs::read_dir(&dir).expect("the archive's directory").flatten();
    let kept = entries.filter(|entry| entry.path().extension() == Some("del".as_ref())).count();
    assert_eq!(lines.len(), 1 + kept, "{lines:?}");
    let extended = format!("archive: recording {large_id} is extended at {stop}");
    assert!(lines[1..].iter().all(|line| line.starts_with(&extended)), "{lines:?}");
}

#[test]
fn mistakes_of_clients_are_recorded_and_not_printed() {
    let driver = launch_driver();
    let home = tempfile::tempdir().expect("a directory");
    let replication = "aeron.archive.replication.channel=aeron:udp?endpoint=localhost:0";
    let server = start(archive(driver.aeron_dir(), home.path(), &[replication]));
    let (client, errors) = connect_with_errors(&driver);
    let (publication, id, position) = record(&client, 10);
    drop(publication);
    assert_eq!(await_stop(&client, id), position);

    // The recording does not end where the publication begins.
    let extension = client.aeron().add_exclusive_publication("aeron:ipc", STREAM).expect("one");
    let channel = format!("aeron:ipc?session-id={}", extension.session_id());
    client
        .extend_recording(id, &*channel, STREAM, SourceLocation::Local, true)
        .expect("a subscription");
    let error = await_error(&client, &errors);
    assert_eq!(error.kind(), ArchiveErrorKind::InvalidExtension, "{error}");
    let inside_a_frame = ReplayParams::new().position(32);
    let error = client.start_replay(id, "aeron:ipc", REPLAY_STREAM, inside_a_frame).err();
    assert!(error.as_ref().is_some_and(|it| it.message().contains("a valid frame")), "{error:?}");
    client
        .replicate(9.into(), "aeron:ipc", LOCAL_CONTROL_STREAM, &ReplicationParams::new())
        .expect("a replication");
    let error = await_error(&client, &errors);
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error}");

    let mut requests =
        client.aeron().add_exclusive_publication("aeron:ipc", LOCAL_CONTROL_STREAM).expect("one");
    let fields = [-7_i64, 2, 0].map(i64::to_le_bytes).concat();
    offer(&mut requests, &Message::new(MAX_RECORDED_POSITION, fields, &[]).encode());
    let has = |text: &str| {
        let recorded = fs::read(home.path().join("archive-mark.dat")).expect("the mark file");
        recorded.windows(text.len()).any(|window| window == text.as_bytes())
    };
    await_that("the last error", || {
        has("WARN - control request for unknown session: controlSessionId=-7")
    });

    drop((client, extension, requests));
    assert_eq!(end(server), [""; 0]);
    assert!(has("WARN - cannot extend recording 0 image.joinPosition=0"));
    assert!(!has("unknown recording id"));
}

#[test]
fn control_port_in_use_is_named() {
    let driver = launch_driver();
    let dir = tempfile::tempdir().expect("a directory");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let port = socket.local_addr().expect("an address").port();
    let channel = format!("aeron:udp?endpoint=localhost:{port}");
    let property = format!("aeron.archive.control.channel={channel}");
    let program = || archive(driver.aeron_dir(), dir.path(), &[&property]);
    let line = refused(program(), 1);
    assert_contains(&line, &[&channel, "address in use: ", "choose another"]);
    drop(socket);
    end(start(program()));
}

#[test]
fn killed_driver_ends_the_server_in_order() {
    let home = rusteron_test_support::memory_dir("rusteron-faults-").expect("a directory");
    let (aeron_dir, dir) = (home.path().join("driver"), home.path().join("archive"));
    let terms = "-Daeron.ipc.term.buffer.length=64k";
    let mut driver = DriverProcess::start(media_driver_beside(ARCHIVE), &aeron_dir, &[terms]);
    let aeron = Aeron::connect(context(&aeron_dir)).expect("a client");
    let server = start(archive(&aeron_dir, &dir, &["aeron.driver.timeout=2000"]));
    let session = Archive::connect(&aeron, ipc_context()).expect("a session");
    let (publication, recording_id, position) = record(&session, 1000);
    let pid = driver.id();
    driver.kill();
    let finished = server.finish();
    drop((publication, session, aeron));
    finished.assert_exit_code(75);
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    let died = format!("the media driver, process {pid}, has died");
    let advice =
        format!("start the archive again when a media driver runs in {}", aeron_dir.display());
    assert_contains(&finished.stderr, &["driver timeout: ", &died, &advice]);

    // Nothing of the recording is in doubt for the next archive, which has another driver.
    let driver = launch_driver();
    let server = start(archive(driver.aeron_dir(), &dir, &[]));
    let (archive, _) = connect_with_errors(&driver);
    assert_eq!(archive.stop_position(recording_id).expect("an answer"), Some(position));
    drop(archive);
    assert_contains(&end(server)[0], &["errors in ", "were saved in "]);
}
