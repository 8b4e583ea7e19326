//! Days on which the programs `archive` and `archiving_media_driver` meet a full disk, foreign files, dead drivers: what
//! the operator reads, what the client is told, and what is left of the recordings.

use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use rusteron_archive::{
    Archive, ArchiveErrorKind, RecordingPos, ReplayParams, ReplicationParams, SourceLocation,
};
use rusteron_client::Aeron;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::archive::fake_archive::{MAX_RECORDED_POSITION, Message};
use rusteron_test_support::archive::{
    REPLAY_STREAM, STREAM, drain, message, offer_numbered, record, replay_all,
};
use rusteron_test_support::{
    DEADLINE, DriverProcess, Finished, Running, SmallFileSystem, await_some, await_that, command,
    context, media_driver_beside, offer, run, skip, watchful_context,
};

use crate::support::{
    await_error, await_stop, connect_with_errors, extend, ipc_context, launch_driver, recorded,
};

pub(crate) const ARCHIVE: &str = env!("CARGO_BIN_EXE_archive");
pub(crate) const WITH_DRIVER: &str = env!("CARGO_BIN_EXE_archiving_media_driver");

/// Offsets in the mark file: version, sign of life, and what a server of this crate writes about its lock.
const VERSION: u64 = 8;
const ACTIVITY: u64 = 16;
const HOLDER: u64 = 72;
/// Offsets in the catalog: its first entry, and of that entry the time of the start and the stop position.
const FIRST_ENTRY: u64 = 32;
const START_TIME: u64 = FIRST_ENTRY + 56;
const STOP_POSITION: u64 = FIRST_ENTRY + 80;

/// The stream of requests over IPC.
const LOCAL_CONTROL_STREAM: i32 = 10;

const HOUR: Duration = Duration::from_secs(3600);

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
    only_line(&finished)
}

fn only_line(finished: &Finished) -> String {
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    finished.stderr.trim_end().to_owned()
}

#[track_caller]
pub(crate) fn assert_contains(line: &str, texts: &[&str]) {
    for text in texts {
        assert!(line.contains(text), "{text:?} in {line:?}");
    }
}

pub(crate) fn connect(driver: &MediaDriver) -> Archive {
    Archive::connect(&rusteron_test_support::connect(driver), ipc_context()).expect("a session")
}

pub(crate) fn mark_file(dir: &Path) -> PathBuf {
    dir.join("archive-mark.dat")
}

fn catalog(dir: &Path) -> PathBuf {
    dir.join("archive.catalog")
}

fn number(path: &Path, offset: u64) -> i64 {
    let mut bytes = [0; 8];
    fs::File::open(path).and_then(|file| file.read_exact_at(&mut bytes, offset)).expect("a number");
    i64::from_le_bytes(bytes)
}

fn patch(path: &Path, offset: u64, bytes: &[u8]) {
    let file = fs::File::options().write(true).open(path).expect("a file");
    file.write_all_at(bytes, offset).expect("written");
}

/// Milliseconds since 1970.
fn millis(time: SystemTime) -> i64 {
    time.duration_since(SystemTime::UNIX_EPOCH).expect("a later time").as_millis() as i64
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
        .replicate(id + 9, "aeron:ipc", LOCAL_CONTROL_STREAM, &ReplicationParams::new())
        .expect("a replication");
    let error = await_error(&client, &errors);
    assert_eq!(error.kind(), ArchiveErrorKind::UnknownRecording, "{error}");

    let mut requests =
        client.aeron().add_exclusive_publication("aeron:ipc", LOCAL_CONTROL_STREAM).expect("one");
    let fields = [-7_i64, 2, 0].map(i64::to_le_bytes).concat();
    offer(&mut requests, &Message::new(MAX_RECORDED_POSITION, fields, &[]).encode());
    let has = |text: &str| {
        let recorded = fs::read(mark_file(home.path())).expect("the mark file");
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

/// The program `archiving_media_driver`, run by a user with few rights.
fn as_nobody(home: &Path, archive_dir: &Path) -> Option<Command> {
    // The superuser has all rights; and only the superuser can become another user.
    const NOBODY: u32 = 65534;
    let is_superuser = fs::read_to_string("/proc/self/status")
        .is_ok_and(|status| status.contains("\nUid:\t0\t0\t"));
    let with = |program: &Path| {
        let mut program = command(
            program.to_str().expect("UTF-8"),
            [
                "-Daeron.archive.control.channel=aeron:udp?endpoint=localhost:0",
                "-Daeron.dir.delete.on.shutdown=true",
            ],
        );
        let driver_dir = home.join("drivers/driver");
        program.arg("--dir").arg(driver_dir).arg("--archive-dir").arg(archive_dir);
        program
    };
    if !is_superuser {
        return Some(with(Path::new(WITH_DRIVER)));
    }
    if Command::new("true").uid(NOBODY).status().is_err() {
        skip("RUSTERON_REQUIRE_MOUNT", "the superuser cannot become another user");
        return None;
    }
    // Where it was built may be out of reach. A copy of this process's would be busy while another thread's child has
    // it open for writing.
    let copy = home.join("archiving_media_driver");
    if !copy.exists() {
        let copied = Command::new("cp").arg(WITH_DRIVER).arg(&copy).status().expect("cp starts");
        assert!(copied.success(), "no copy of the program");
        set_mode(&copy, 0o755);
    }
    let mut program = with(&copy);
    program.uid(NOBODY).gid(NOBODY).current_dir("/");
    Some(program)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
}

#[test]
fn missing_rights_name_the_owner() {
    let home = tempfile::tempdir().expect("a directory");
    set_mode(home.path(), 0o755);
    let dir = home.path().join("archive");
    for (path, mode) in [(home.path().join("drivers"), 0o777), (dir.clone(), 0o555)] {
        fs::create_dir(&path).expect("a directory");
        set_mode(&path, mode);
    }
    let (mark_file, catalog) = (mark_file(&dir), catalog(&dir));
    let owner = dir.metadata().expect("a directory").uid();
    let check = |path: &Path, refusing: &Path, mode: u32| {
        let Some(program) = as_nobody(home.path(), &dir) else { return };
        let line = refused(program, 77);
        let owned = format!("{} is of user {owner}, group ", refusing.display());
        let (path, mode) = (path.display().to_string(), format!("mode {mode:04o}: "));
        assert_contains(&line, &[&path, "ermission denied", &owned, &mode, "run the archive as"]);
    };
    // A directory in which nothing can be made.
    check(&dir.join("archive.lock"), &dir, 0o555);
    // Another user's files in it.
    set_mode(&dir, 0o777);
    fs::write(&mark_file, [0; 100]).expect("written");
    set_mode(&mark_file, 0o444);
    check(&mark_file, &mark_file, 0o444);
    fs::remove_file(&mark_file).expect("removed");
    fs::write(&catalog, [0; 100]).expect("written");
    set_mode(&catalog, 0o444);
    check(&catalog, &catalog, 0o444);
    assert_eq!(fs::read(&catalog).expect("a file"), [0; 100]);
}

#[test]
fn read_only_file_system_is_refused() {
    let Some(disk) = SmallFileSystem::mount("4m") else { return };
    let driver = launch_driver();
    let program = || archive(driver.aeron_dir(), disk.path(), &[]);
    end(start(program()));
    let before = fs::read(mark_file(disk.path())).expect("a file");
    let remounted =
        Command::new("mount").args(["-o", "remount,ro"]).arg(disk.path()).status().expect("mount");
    assert!(remounted.success());
    let line = refused(program(), 73);
    let path = disk.path().join("archive.lock").display().to_string();
    assert_contains(&line, &[&path, "Read-only file system", "an archive writes to"]);
    assert_eq!(fs::read(mark_file(disk.path())).expect("a file"), before);
}

#[test]
fn foreign_files_are_named_and_left_alone() {
    let driver = launch_driver();
    let dir = tempfile::tempdir().expect("a directory");
    let program = || archive(driver.aeron_dir(), dir.path(), &[]);
    end(start(program()));
    let (mark_file, catalog) = (mark_file(dir.path()), catalog(dir.path()));
    let newer: &[u8] = &[0, 0, 4, 0];
    let cases: [(&Path, u64, &[u8], &[&str]); 6] = [
        // Template 101 of schema 110: the mark file of a cluster.
        (&mark_file, 0, &[128, 0, 101, 0, 110, 0, 1, 0], &["schema 110", "another directory"]),
        (&mark_file, VERSION, newer, &["version 4.0.0", "use an archive of that version"]),
        (&mark_file, VERSION, &[0, 0, 2, 0], &["version 2.0.0", "migrate"]),
        (&catalog, 0, newer, &["version 4.0.0", "use a server of that version"]),
        (&catalog, 0, b"#!/bin/sh\n", &["incompatible catalog file version", "3.1.0"]),
        // There is no entry, and so nothing to overwrite.
        (
            &catalog,
            FIRST_ENTRY,
            &[17; 64],
            &["corrupt at byte 32", "exceeds the file", "mark-invalid"],
        ),
    ];
    for (path, offset, bytes, texts) in cases {
        let original = fs::read(path).expect("a file");
        patch(path, offset, bytes);
        let foreign = fs::read(path).expect("a file");
        let line = refused(program(), 65);
        assert_contains(&line, &[&path.canonicalize().expect("a path").display().to_string()]);
        assert_contains(&line, texts);
        assert_eq!(fs::read(path).expect("a file"), foreign, "{line}");
        fs::write(path, original).expect("written");
    }
    end(start(program()));
}

#[test]
fn garbage_behind_the_catalogs_end_is_overwritten() {
    let driver = launch_driver();
    let dir = tempfile::tempdir().expect("a directory");
    let program = || archive(driver.aeron_dir(), dir.path(), &[]);
    end(start(program()));
    // A length of 0 ends the entries.
    patch(&catalog(dir.path()), FIRST_ENTRY + 4, &[17; 8192]);
    for number in 0..3 {
        let mut server = start(program());
        let archive = connect(&driver);
        let (publication, recording_id, position) = record(&archive, 100);
        assert_eq!(recording_id, number);
        let stops = (0..number).map(|id| archive.stop_position(id).expect("an answer"));
        assert!(stops.eq((0..number).map(|_| Some(position))));
        assert_eq!(archive.recordings().count() as i64, number + 1);
        server.kill();
        drop((publication, archive));
    }
}

#[test]
fn second_server_is_refused_and_the_first_goes_on() {
    let driver = launch_driver();
    let home = tempfile::tempdir().expect("a directory");
    let (dir, other) = (home.path().join("archive"), home.path().join("other"));
    let id = "aeron.archive.id=7";
    let server = start(archive(driver.aeron_dir(), &dir, &[id]));
    let session = connect(&driver);
    let (mut publication, recording_id, _) = record(&session, 10);

    let line = refused(archive(driver.aeron_dir(), &dir, &["aeron.archive.id=8"]), 75);
    let path = mark_file(&dir).display().to_string();
    let owner = format!("another archive, process {}, which is running: ", server.id());
    assert_contains(&line, &[&path, &owner, "choose another directory"]);

    let line = refused(archive(driver.aeron_dir(), &other, &[id]), 75);
    let driver_dir = driver.aeron_dir().display().to_string();
    assert_contains(&line, &["archiveId=7", &driver_dir, "AERON_ARCHIVE_ID"]);

    let position = offer_numbered(&mut publication, 10..20);
    session.await_recorded(recording_id, position, DEADLINE).expect("a recording");
    drop((publication, session));
    assert_eq!(end(server), [""; 0]);
    end(start(archive(driver.aeron_dir(), &other, &[id])));
}

#[test]
fn deleted_segment_ends_only_its_replay() {
    let driver = launch_driver();
    let dir = tempfile::tempdir().expect("a directory");
    let server = start(archive(driver.aeron_dir(), dir.path(), &[]));
    let (archive, errors) = connect_with_errors(&driver);
    for count in [5000, 1000] {
        let (publication, recording_id, _) = record(&archive, count);
        drop(publication);
        await_stop(&archive, recording_id);
    }
    let replay = |recording_id, stream_id, params| {
        archive.replay(recording_id, "aeron:ipc", stream_id, params).expect("a replay")
    };
    // Both wait for this client in their first segments.
    let mut first = replay(0, REPLAY_STREAM, recorded());
    let mut other = replay(1, REPLAY_STREAM + 1, recorded());
    fs::remove_file(dir.path().join("0-262144.rec")).expect("a segment");
    let numbers = drain(&mut first);
    let count = numbers.len() as u64;
    // All that lies before it, in four terms.
    assert_eq!(count, 4 * (65_536 / 96));
    assert_eq!(numbers, (0..count).collect::<Vec<_>>());
    let error = await_error(&archive, &errors);
    let texts = ["recording segment not found", "recordingId=0", "segmentFile=0-262144.rec"];
    assert_eq!(error.kind(), ArchiveErrorKind::Refused, "{error}");
    assert_contains(error.message(), &texts);
    assert_eq!(drain(&mut other), (0..1000).collect::<Vec<_>>());
    // What is behind it is still there.
    let mut rest = replay(0, REPLAY_STREAM, ReplayParams::new().position(393_216));
    assert_eq!(drain(&mut rest).last(), Some(&4999));
    drop((first, other, rest, archive));
    let lines = end(server);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_contains(&lines[0], &texts);
}

#[test]
fn killed_driver_ends_the_server_in_order() {
    let home = rusteron_test_support::memory_dir("rusteron-bad-days-").expect("a directory");
    let (aeron_dir, dir) = (home.path().join("driver"), home.path().join("archive"));
    let media_driver = media_driver_beside(ARCHIVE);
    let timeout = "aeron.driver.timeout=2000";
    let options = ["-Daeron.driver.timeout=2000", "-Daeron.ipc.term.buffer.length=64k"];
    let launch = || {
        let driver = DriverProcess::start(&media_driver, &aeron_dir, &options);
        // The driver of before counts as alive for a while.
        drop(await_some("a driver", || Aeron::connect(watchful_context(&aeron_dir)).ok()));
        let server = start(archive(&aeron_dir, &dir, &[timeout]));
        let aeron = Aeron::connect(context(&aeron_dir)).expect("a client");
        (driver, Archive::connect(&aeron, ipc_context()).expect("a session"), server)
    };
    let (mut driver, archive, server) = launch();
    let (publication, recording_id, position) = record(&archive, 1000);
    let pid = driver.id();
    driver.kill();
    let finished = server.finish();
    drop((publication, archive));
    finished.assert_exit_code(75);
    let line = only_line(&finished);
    let died = format!("the media driver, process {pid}, has died");
    let dir_of_driver = aeron_dir.display().to_string();
    assert_contains(&line, &["driver timeout: ", &died, "start the archive again", &dir_of_driver]);
    assert_eq!(number(&catalog(&dir), STOP_POSITION), position);
    assert_eq!(number(&mark_file(&dir), ACTIVITY), -1);

    let (_driver, archive, server) = launch();
    assert_eq!(archive.stop_position(recording_id).expect("an answer"), Some(position));
    extend(&archive, recording_id, 1000..1100);
    drop(archive);
    let lines = end(server);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_contains(&lines[0], &["errors in ", "were saved in "]);
}

#[test]
fn clock_set_back_delays_no_restart() {
    let driver = launch_driver();
    let dir = tempfile::tempdir().expect("a directory");
    let program = || archive(driver.aeron_dir(), dir.path(), &[]);
    let mut server = start(program());
    let archive = connect(&driver);
    let (publication, recording_id, position) = record(&archive, 100);
    server.kill();
    drop((publication, archive));
    // As if the clock had been an hour ahead.
    let later = SystemTime::now() + HOUR;
    patch(&mark_file(dir.path()), ACTIVITY, &millis(later).to_le_bytes());
    patch(&catalog(dir.path()), START_TIME, &millis(later).to_le_bytes());
    let server = start(program());
    let archive = connect(&driver);
    let descriptor = archive.recording(recording_id).expect("an answer").expect("a recording");
    assert_eq!(descriptor.stop_position, Some(position));
    assert!(descriptor.stop_time.expect("a time") < descriptor.start_time, "{descriptor:?}");
    extend(&archive, recording_id, 100..200);
    drop(archive);
    assert_eq!(end(server), [""; 0]);

    // An archive of Java's takes no lock, so it may be alive.
    let mark_file = mark_file(dir.path());
    patch(&mark_file, ACTIVITY, &millis(SystemTime::now() + HOUR).to_le_bytes());
    patch(&mark_file, HOLDER, &[0; 52]);
    let line = refused(program(), 75);
    let path = mark_file.display().to_string();
    assert_contains(
        &line,
        &[&path, "ahead of this host's clock", "if it has ended, delete the file"],
    );
    fs::remove_file(&mark_file).expect("removed");
    end(start(program()));
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
