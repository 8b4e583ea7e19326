//! Mark files of this server, of killed ones, of Java's archive and of hostile origin.

use std::collections::BTreeMap;
use std::fs::File;
#[cfg(unix)]
use std::time::Instant;
use std::time::{Duration, SystemTime};

use rusteron_core::cnc::error_log;
use rusteron_core::mark_file::{LIVENESS_TIMEOUT, PID_OFFSET, START_OFFSET};
use rusteron_test_support::sbe_schema::{aeron_schema, compare_mark_file};
#[cfg(unix)]
use rusteron_test_support::{DEADLINE, ForkedChild, await_that};
use tempfile::TempDir;

use super::*;

mod slots;

const SCHEMA: &str = "aeron-archive/src/main/resources/archive/aeron-archive-mark-codecs.xml";
const ERROR_BUFFER_LENGTH: usize = 1024 * 1024;
/// Offset in the file.
const BOOT_ID_OFFSET: usize = MessageHeader::LENGTH + header::BOOT_ID_OFFSET;
const HOLDER_LENGTH: usize = BOOT_ID_OFFSET + BOOT_ID_LENGTH - HOLDER_STATE_OFFSET;
const FILE_LENGTH: u64 = (HEADER_LENGTH + ERROR_BUFFER_LENGTH) as u64;

fn settings(dir: &Path) -> ArchiveServerContext {
    let mut settings = ArchiveServerContext::new();
    settings
        .set_archive_dir(dir)
        .and_then(|it| it.set_control_channel("aeron:udp?endpoint=localhost:8010"))
        .and_then(|it| it.set_recording_events_channel("aeron:udp?endpoint=localhost:8030"))
        .expect("settings");
    settings
}

fn activate_with(settings: &ArchiveServerContext) -> Result<MarkFile> {
    MarkFile::activate(settings, Path::new("/dev/shm/aeron"), 42, 4096)
}

fn activate(dir: &TempDir) -> Result<MarkFile> {
    activate_with(&settings(dir.path()))
}

fn path(dir: &TempDir) -> PathBuf {
    dir.path().join(NAME)
}

fn read(dir: &TempDir) -> Header {
    Header::decode(&fs::read(path(dir)).expect("a file")).expect("a mark file")
}

fn errors(dir: &TempDir) -> Vec<(String, i32)> {
    let bytes = fs::read(path(dir)).expect("a file");
    let entries = error_log::entries(&bytes[HEADER_LENGTH..][..ERROR_BUFFER_LENGTH]);
    entries.into_iter().map(|entry| (entry.text, entry.observation_count)).collect()
}

/// Changes a file in place.
fn patch(dir: &TempDir, offset: usize, bytes: &[u8]) {
    let mut content = fs::read(path(dir)).expect("a file");
    content[offset..][..bytes.len()].copy_from_slice(bytes);
    fs::write(path(dir), content).expect("written");
}

/// Lets the file look as if nobody had written to it for a while.
fn make_old(dir: &TempDir) {
    let time = SystemTime::now() - LIVENESS_TIMEOUT - Duration::from_secs(50);
    let file = File::options().write(true).open(path(dir));
    file.and_then(|file| file.set_modified(time)).expect("a time");
}

/// Leaves the file as a killed server does, which had come so far.
fn kill(dir: &TempDir, mark_file: MarkFile) {
    let bytes = fs::read(path(dir)).expect("a file");
    drop(mark_file);
    fs::write(path(dir), bytes).expect("written");
}

/// Leaves the file as an archive without a lock does, such as Java's, which has started now.
fn leave_by_java(dir: &TempDir, activity: i64, version: i32, pid: i64) {
    let _ = fs::remove_file(path(dir));
    drop(activate(dir).expect("a mark file"));
    patch(dir, HOLDER_STATE_OFFSET, &[0; HOLDER_LENGTH]);
    patch(dir, VERSION_OFFSET, &version.to_le_bytes());
    patch(dir, ACTIVITY_OFFSET, &activity.to_le_bytes());
    patch(dir, PID_OFFSET, &pid.to_le_bytes());
}

#[track_caller]
fn assert_refused(dir: &TempDir, kind: ServerErrorKind, text: &str) {
    let before = fs::read(path(dir)).expect("a file");
    let error = activate(dir).expect_err("refused");
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.message().contains(text), "{error}");
    assert!(error.message().contains(NAME), "{error}");
    assert!(fs::read(path(dir)).expect("a file") == before, "{text}: the file has changed");
}

#[test]
fn directory_in_the_way_names_setting() {
    // A file of the folder in which the tests run.
    let relative = Path::new("Cargo.toml/archive");
    let error = activate_with(&settings(relative)).expect_err("a file is in the way");
    let path = std::env::current_dir().expect("a folder").join(relative);
    let begin = format!("{}: ", path.display());
    assert!(error.message().starts_with(&begin), "{error}");
    let setting = "(AERON_ARCHIVE_DIR; by default aeron-archive in the working directory)";
    assert!(error.message().ends_with(setting), "{error}");
    let dir = TempDir::new().expect("a directory");
    let mut settings = settings(dir.path());
    settings.set_mark_file_dir(relative).expect("a directory");
    let error = activate_with(&settings).expect_err("a file is in the way");
    assert!(error.message().contains("(AERON_ARCHIVE_MARK_FILE_DIR; "), "{error}");
}

#[test]
fn header_is_that_of_aerons_schema() {
    let Some(schema) = aeron_schema(SCHEMA) else { return };
    let header = Header {
        version: VERSION,
        activity_timestamp: 0x0102_0304_0506_0708,
        start_timestamp: 0x1112_1314_1516_1718,
        pid: 0x2122_2324_2526_2728,
        control_stream_id: 110,
        local_control_stream_id: 111,
        events_stream_id: 112,
        header_length: 113,
        error_buffer_length: 114,
        archive_id: 0x3132_3334_3536_3738,
        holder: Holder { state: 1, start_timestamp: 2, boot_id: [3; BOOT_ID_LENGTH] },
        control_channel: "aeron:udp".to_owned(),
        local_control_channel: "aeron:ipc".to_owned(),
        events_channel: "events".to_owned(),
        aeron_dir: "/dev/shm/aeron".to_owned(),
    };
    let numbers = BTreeMap::from([
        ("version", header.version.into()),
        ("activityTimestamp", header.activity_timestamp),
        ("startTimestamp", header.start_timestamp),
        ("pid", header.pid),
        ("controlStreamId", 110),
        ("localControlStreamId", 111),
        ("eventsStreamId", 112),
        ("headerLength", 113),
        ("errorBufferLength", 114),
        ("archiveId", header.archive_id),
    ]);
    let texts = BTreeMap::from([
        ("controlChannel", "aeron:udp"),
        ("localControlChannel", "aeron:ipc"),
        ("eventsChannel", "events"),
        ("aeronDirectory", "/dev/shm/aeron"),
    ]);
    let bytes = header.encode().expect("short texts");
    let later = compare_mark_file(&schema, &bytes, numbers, texts);
    let expected = [("headerLength", 1), ("errorBufferLength", 1), ("archiveId", 2)];
    assert_eq!(later, expected.map(|(name, since)| (name.to_owned(), since)).into());
    assert_eq!(Header::decode(&bytes), Ok(header));
}

#[test]
fn life_of_mark_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let mark_file = activate(&dir).expect("a mark file");
    assert_eq!(mark_file.file.path(), dir.path().canonicalize().expect("a directory").join(NAME));
    assert_eq!(fs::metadata(path(&dir)).expect("a file").len(), FILE_LENGTH);
    let starting = read(&dir);
    assert_eq!((starting.version, starting.activity_timestamp), (0, STARTING));
    assert_eq!((starting.pid, starting.archive_id), (std::process::id().into(), 42));
    assert_eq!(starting.control_channel, "aeron:udp?endpoint=localhost:8010");
    // Events are disabled.
    let events = "aeron:udp?endpoint=localhost:8030";
    assert_eq!((&*starting.events_channel, &*starting.aeron_dir), (events, "/dev/shm/aeron"));

    mark_file.ready();
    let ready = read(&dir);
    assert_eq!(ready.version, VERSION);
    assert!((starting.start_timestamp..STARTING).contains(&ready.activity_timestamp));
    mark_file.record_error("full");
    mark_file.record_error("late");
    mark_file.record_error("full");
    assert_eq!(errors(&dir), [("full".to_owned(), 2), ("late".to_owned(), 1)]);
    drop(mark_file);
    assert_eq!(read(&dir), Header { activity_timestamp: ENDED, ..ready });

    // The next server saves the errors, begins with none, and has no version until it is ready.
    let next = activate(&dir).expect("a mark file");
    assert_eq!((read(&dir).version, read(&dir).activity_timestamp), (0, STARTING));
    assert!(errors(&dir).is_empty());
    let names = fs::read_dir(dir.path()).expect("a directory").map(|entry| entry.expect("one"));
    let mut names = names.map(|entry| entry.file_name().into_string().expect("UTF-8"));
    let saved = names.find(|name| name.ends_with("-error.log")).expect("saved errors");
    assert!(saved.starts_with("archive-"), "{saved}");
    let saved = fs::read_to_string(dir.path().join(saved)).expect("a text");
    assert!(saved.starts_with("2 observations from ") && saved.contains("\nlate\n"), "{saved}");
    drop(next);
    // After a failed start, Java's archive finds a version.
    assert_eq!((read(&dir).version, read(&dir).activity_timestamp), (VERSION, ENDED));
}

#[test]
fn second_server_in_process_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = activate(&dir).expect("a mark file");
    let error = activate(&dir).expect_err("refused");
    assert_eq!(error.kind(), ServerErrorKind::ActiveArchive);
    assert!(error.message().contains("in this process"), "{error}");
    drop(first);
    let _ = activate(&dir).expect("a mark file");
}

#[cfg(unix)]
#[test]
fn server_that_hangs_keeps_directory() {
    let dir = tempfile::tempdir().expect("a directory");
    drop(activate(&dir).expect("a mark file"));
    // Of another process, as far as locks are concerned.
    let held = Lock::new(dir.path(), None).expect("a file").expect("no other lock");
    assert!(held.is_held());
    let text = format!("process {}, which is running", std::process::id());
    for activity in [ENDED, 0, mark_file::now(), STARTING] {
        patch(&dir, ACTIVITY_OFFSET, &activity.to_le_bytes());
        make_old(&dir);
        assert_refused(&dir, ServerErrorKind::ActiveArchive, &text);
    }
    drop(held);
    patch(&dir, ACTIVITY_OFFSET, &ENDED.to_le_bytes());
    let _ = activate(&dir).expect("a mark file");
}

#[cfg(target_os = "linux")]
#[test]
fn killed_server_restarts_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    for is_ready in [false, true, false, true, true] {
        let mark_file = activate(&dir).expect("a mark file, at once");
        if is_ready {
            mark_file.ready();
        }
        // As if the process had another id, and another process had its id.
        kill(&dir, mark_file);
        patch(&dir, PID_OFFSET, &1_i64.to_le_bytes());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn owner_of_another_boot_or_without_lock_is_awaited() {
    let dir = tempfile::tempdir().expect("a directory");
    let mark_file = activate(&dir).expect("a mark file");
    mark_file.ready();
    kill(&dir, mark_file);
    let killed = fs::read(path(&dir)).expect("a file");
    let patches: [(usize, &[u8], &str); 4] = [
        (BOOT_ID_OFFSET, b"x", "which was alive"),
        (BOOT_ID_OFFSET, &[0; BOOT_ID_LENGTH], "which was alive"),
        // Java's archive has taken over: it writes its start, and is starting before.
        (START_OFFSET, &[1; 8], "which was alive"),
        (ACTIVITY_OFFSET, &STARTING.to_le_bytes(), "which is starting"),
    ];
    for (offset, bytes, text) in patches {
        patch(&dir, offset, bytes);
        let text = format!("process {}, {text}", std::process::id());
        assert_refused(&dir, ServerErrorKind::ActiveArchive, &text);
        fs::write(path(&dir), &killed).expect("written");
    }
    let _ = activate(&dir).expect("a mark file");
}

#[test]
fn timestamp_decides_about_other_archives() {
    let dir = tempfile::tempdir().expect("a directory");
    let now = mark_file::now();
    for time in [now + 60_000, now, now - 5_000] {
        leave_by_java(&dir, time, VERSION, 77);
        assert_refused(&dir, ServerErrorKind::ActiveArchive, "process 77, which was alive");
    }
    for time in [now - 10_000, 0, i64::MIN, ENDED] {
        leave_by_java(&dir, time, VERSION, 77);
        drop(activate(&dir).expect("a mark file"));
    }
}

#[test]
fn starting_archive_without_lock_is_awaited() {
    let dir = tempfile::tempdir().expect("a directory");
    // Java's archive takes over a file by `STARTING`, and a file that it makes has no timestamp until it has started.
    for (activity, version) in [(STARTING, VERSION), (0, 0)] {
        leave_by_java(&dir, activity, version, i32::MAX.into());
        assert_refused(&dir, ServerErrorKind::ActiveArchive, "which is starting");
        make_old(&dir);
        if cfg!(target_os = "linux") {
            drop(activate(&dir).expect("a mark file"));
            // The process that is alive is the parent of this one, such as Cargo.
            leave_by_java(&dir, activity, version, 1);
            make_old(&dir);
        }
        assert_refused(&dir, ServerErrorKind::ActiveArchive, "which is starting");
    }
}

#[test]
fn unwritten_file_is_made_again() {
    let dir = tempfile::tempdir().expect("a directory");
    for length in [0, 100, HEADER_LENGTH, HEADER_LENGTH + 7] {
        fs::write(path(&dir), vec![0; length]).expect("written");
        assert_refused(&dir, ServerErrorKind::ActiveArchive, "making");
        make_old(&dir);
        let mark_file = activate(&dir).expect("a mark file");
        assert_eq!(fs::metadata(path(&dir)).expect("a file").len(), FILE_LENGTH);
        mark_file.record_error("an error");
        assert_eq!(errors(&dir), [("an error".to_owned(), 1)]);
    }
}

#[test]
fn file_without_sbe_header_is_converted() {
    let dir = tempfile::tempdir().expect("a directory");
    let mark_file = activate(&dir).expect("a mark file");
    mark_file.ready();
    drop(mark_file);
    let bytes = fs::read(path(&dir)).expect("a file");
    let old = [&bytes[MessageHeader::LENGTH..], &[0; 8]].concat();
    let write = |activity: i64| {
        let mut old = old.clone();
        old[ACTIVITY_OFFSET - 8..][..8].copy_from_slice(&activity.to_le_bytes());
        old[PID_OFFSET - 8..][..8].copy_from_slice(&77_i64.to_le_bytes());
        old[HOLDER_STATE_OFFSET - 8..][..HOLDER_LENGTH].fill(0);
        fs::write(path(&dir), old).expect("written");
    };
    write(mark_file::now());
    assert_refused(&dir, ServerErrorKind::ActiveArchive, "process 77, which was alive");
    write(ENDED);
    let mark_file = activate(&dir).expect("a mark file");
    let header = read(&dir);
    assert_eq!((header.version, header.activity_timestamp), (0, STARTING));
    mark_file.ready();
    assert_eq!(read(&dir).version, VERSION);
}

#[test]
fn other_files_are_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    drop(activate(&dir).expect("a mark file"));
    let original = fs::read(path(&dir)).expect("a file");
    let cases: [(usize, &[u8], &str); 6] = [
        (4, &[110], "schema 110"),
        (VERSION_OFFSET, &[0, 0, 2, 0], "version 2.0.0"),
        (VERSION_OFFSET, &[0, 0, 4, 0], "version 4.0.0"),
        // The version 2.0.0 of a file without a header of SBE.
        (0, &[0, 0, 2, 0, 0, 0, 0, 0], "version 2.0.0"),
        (0, &[127, 0], "ends within the header"),
        (136, &[255; 4], "ends within the header"),
    ];
    for (offset, bytes, text) in cases {
        patch(&dir, offset, bytes);
        assert_refused(&dir, ServerErrorKind::InvalidMarkFile, text);
        fs::write(path(&dir), &original).expect("written");
    }
    fs::remove_file(path(&dir)).expect("removed");
    fs::create_dir(path(&dir)).expect("a directory");
    let error = activate(&dir).expect_err("refused");
    assert_eq!(error.kind(), ServerErrorKind::Io(io::ErrorKind::InvalidInput), "{error}");
}

#[test]
fn wrong_settings_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut settings = settings(dir.path());
    let check = |activated: Result<MarkFile>, text: &str| {
        let error = activated.expect_err("refused");
        assert_eq!(error.kind(), ServerErrorKind::InvalidArgument);
        assert!(error.message().contains(text), "{error}");
    };
    check(MarkFile::activate(&settings, dir.path(), 42, 5000), "page size 5000");
    let long = format!("aeron:udp?alias={}", "x".repeat(HEADER_LENGTH));
    settings.set_control_channel(&long).expect("a channel");
    check(activate_with(&settings), "8192 bytes");
    assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 0);
}

#[test]
fn link_leads_to_mark_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let (marks, archive) = (dir.path().join("marks"), dir.path().join("archive"));
    let link = archive.join(LINK_NAME);
    let mut elsewhere = settings(&archive);
    elsewhere.set_mark_file_dir(&marks).expect("a directory");
    let mark_file = activate_with(&elsewhere).expect("a mark file");
    let canonical = marks.canonicalize().expect("a path");
    assert_eq!(fs::read_to_string(&link).expect("a link"), canonical.to_string_lossy());
    assert_eq!(mark_file.file.path().parent(), Some(&*canonical));
    drop(mark_file);
    let _ = activate_with(&settings(&archive)).expect("a mark file");
    assert!(!link.exists());
}

#[cfg(unix)]
#[test]
fn mark_file_elsewhere_keeps_no_directory_open() {
    let dir = tempfile::tempdir().expect("a directory");
    let archive = dir.path().join("archive");
    let marks = |name: &str| {
        let mut settings = settings(&archive);
        settings.set_mark_file_dir(dir.path().join(name)).expect("a directory");
        settings
    };
    let refused = |activated: Result<MarkFile>| {
        let error = activated.expect_err("refused");
        assert_eq!(error.kind(), ServerErrorKind::ActiveArchive);
        assert!(error.message().contains("which is running"), "{error}");
    };
    let first = activate_with(&marks("first")).expect("a mark file");
    refused(activate_with(&marks("second")));
    refused(activate_with(&settings(&archive)));
    fs::remove_file(first.file.path()).expect("the mark file");
    refused(activate_with(&marks("second")));
    // Another directory of recordings with the same one of mark files.
    let mut other = settings(&dir.path().join("other"));
    other.set_mark_file_dir(dir.path().join("first")).expect("a directory");
    assert_eq!(activate_with(&other).expect_err("refused").kind(), ServerErrorKind::ActiveArchive);
    drop(first);
    let second = activate_with(&marks("second")).expect("a mark file");
    fs::rename(&archive, dir.path().join("moved")).expect("renamed");
    refused(activate_with(&settings(&dir.path().join("moved"))));
    drop(second);
    drop(activate_with(&settings(&dir.path().join("moved"))).expect("a mark file"));
}

#[cfg(unix)]
#[test]
fn tools_and_servers_keep_each_other_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let archive = dir.path().join("archive");
    fs::create_dir(&archive).expect("a directory");
    // Nothing is changed by a reader.
    drop(Guard::of_reader(&archive).expect("no archive"));
    assert_eq!(fs::read_dir(&archive).expect("a directory").count(), 0);
    let editor = Guard::new(&archive).expect("no archive");
    let mut elsewhere = settings(&archive);
    elsewhere.set_mark_file_dir(dir.path().join("marks")).expect("a directory");
    activate_with(&elsewhere).expect_err("an editor");
    drop(editor);
    let mark_file = activate_with(&elsewhere).expect("a mark file");
    // As if the link had been lost, too.
    fs::remove_file(archive.join(LINK_NAME)).expect("a link");
    for guard in [Guard::new(&archive), Guard::of_reader(&archive)] {
        assert_eq!(guard.expect_err("a server").kind(), ServerErrorKind::ActiveArchive);
    }
    drop(mark_file);
}

/// Who can read a file can lock it.
#[cfg(unix)]
#[test]
fn readers_of_a_mark_file_keep_no_archive_out() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().expect("a directory");
    drop(activate(&dir).expect("a mark file"));
    let reader = File::open(path(&dir)).expect("a file");
    rustix::fs::flock(&reader, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
    // Nobody else can open the file of the lock, also after a copy that has lost its mode.
    let lock = dir.path().join(lock::LOCK_NAME);
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o644)).expect("a mode");
    drop(activate(&dir).expect("a mark file"));
    let mode = fs::metadata(&lock).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[cfg(target_os = "linux")]
#[test]
fn full_disk_is_an_error() {
    let Some(disk) = rusteron_test_support::SmallFileSystem::mount("512k") else { return };
    let full = || {
        let error = activate_with(&settings(disk.path())).expect_err("a full disk");
        assert_eq!(error.kind(), ServerErrorKind::StorageSpace, "{error}");
    };
    full();
    // What is there is taken over.
    full();
    // Java makes sparse files: the disk has no space for the zeros.
    let source = tempfile::tempdir().expect("a directory");
    drop(activate(&source).expect("a mark file"));
    let header = fs::read(path(&source)).expect("a file")[..HEADER_LENGTH].to_vec();
    fs::write(disk.path().join(NAME), header).expect("written");
    let file = File::options().write(true).open(disk.path().join(NAME)).expect("a file");
    file.set_len(FILE_LENGTH).expect("a length");
    full();
    let header = fs::read(disk.path().join(NAME)).expect("a file");
    let header = Header::decode(&header).expect("a mark file");
    assert_eq!((header.version, header.activity_timestamp), (VERSION, ENDED));
}

/// Runs in a child process until the test wants its end, which is sudden.
#[cfg(target_os = "linux")]
#[test]
fn other_process_is_named_until_it_is_killed() {
    let dir = tempfile::tempdir().expect("a directory");
    let (started, end) = (dir.path().join("started"), dir.path().join("end"));
    let child = ForkedChild::run(|| {
        let mark_file = activate(&dir).expect("a mark file");
        mark_file.ready();
        fs::write(&started, "").expect("written");
        await_that("the end", || end.exists());
        std::mem::forget(mark_file);
    });
    let child = child.expect("a child");
    await_that("the child's mark file", || started.exists());
    let text = format!("process {}, which is running", read(&dir).pid);
    assert_ne!(read(&dir).pid, i64::from(std::process::id()));
    assert_refused(&dir, ServerErrorKind::ActiveArchive, &text);
    fs::write(&end, "").expect("written");
    child.await_success(Instant::now() + DEADLINE).expect("a child that succeeds");
    let _ = activate(&dir).expect("a mark file, at once");
}

#[cfg(unix)]
#[test]
fn forked_child_neither_unlocks_nor_keeps_lock() {
    let dir = tempfile::tempdir().expect("a directory");
    let (dropped, end) = (dir.path().join("dropped"), dir.path().join("end"));
    let mut mark_file = Some(activate(&dir).expect("a mark file"));
    let child = ForkedChild::run(|| {
        drop(mark_file.take());
        fs::write(&dropped, "").expect("written");
        await_that("the end", || end.exists());
    });
    let child = child.expect("a child");
    await_that("the child's drop", || dropped.exists());
    assert_eq!(read(&dir).activity_timestamp, STARTING);
    Lock::new(dir.path(), None).expect("a file").expect_err("a lock of the parent");
    drop(mark_file);
    let _ = activate(&dir).expect("a mark file");
    fs::write(&end, "").expect("written");
    child.await_success(Instant::now() + DEADLINE).expect("a child that succeeds");
}
