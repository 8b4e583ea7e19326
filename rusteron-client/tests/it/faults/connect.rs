//! Missing, broken and strange media drivers, and arguments that no driver would take.

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Context, Error, ErrorKind, UncheckedChannel};
#[cfg(unix)]
use rusteron_client::{CncFile, request_driver_termination};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{DEADLINE, await_that, connect, context, driver_context_in, launch};

/// The file through which clients find a driver. Its first words are the version and the lengths of
/// the buffers that follow.
const CNC_FILE: &str = "cnc.dat";
const CNC_META_DATA_LENGTH: usize = 128;

const SHORT: Duration = Duration::from_millis(200);
/// Long enough that both threads of a test run within it.
const LONG: Duration = Duration::from_secs(1);

fn connect_soon_or_not(dir: &Path) -> Error {
    connect_within(SHORT, dir)
}

fn connect_within(timeout: Duration, dir: &Path) -> Error {
    let mut context = context(dir);
    context.set_driver_timeout(timeout).expect("a timeout");
    let start = Instant::now();
    let error = Aeron::connect(context).expect_err("there is no driver that could answer");
    assert!(error.kind() != ErrorKind::DriverTimeout || start.elapsed() >= timeout);
    error
}

fn cnc_file(dir: &Path, words: &[i32], length: usize) {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(length, 0);
    fs::write(dir.join(CNC_FILE), bytes).expect("a file");
}

/// As Aeron packs it: major, minor, patch in a byte each.
const fn version(major: i32, minor: i32, patch: i32) -> i32 {
    major << 16 | minor << 8 | patch
}

#[test]
fn without_driver_is_driver_timeout() {
    let dir = tempfile::tempdir().expect("a directory");
    let error = connect_soon_or_not(&dir.path().join("nobody"));
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    assert_eq!(error.code(), -1000);
    let shown = error.to_string();
    assert!(shown.contains("nobody") && shown.contains("no media driver runs"), "{shown}");
}

/// Returns the error of a connection that does not wait for the driver timeout.
fn connect_at_once(dir: &Path) -> Error {
    const HOUR: Duration = Duration::from_secs(3600);
    let (sender, failed) = mpsc::channel();
    let connecting = dir.to_owned();
    // Not joined: a call that waits for an hour fails the test below.
    thread::spawn(move || sender.send(connect_within(HOUR, &connecting)));
    failed.recv_timeout(DEADLINE).expect("an error at once")
}

#[test]
fn missing_directory_is_named_with_advice() {
    let home = tempfile::tempdir().expect("a directory");
    let missing = home.path().join("aeron");
    let shown = connect_soon_or_not(&missing).to_string();
    assert!(shown.contains(&format!("{}, which does not exist", missing.display())), "{shown}");
    assert!(shown.contains("start a media driver") && shown.contains("AERON_DIR"), "{shown}");
    fs::create_dir(&missing).expect("a directory");
    let shown = connect_soon_or_not(&missing).to_string();
    assert!(shown.contains("which has no cnc.dat"), "{shown}");
}

#[cfg(unix)]
#[test]
fn file_as_directory_fails_at_once() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    for dir in [file.path(), &file.path().join("below/aeron")] {
        let error = connect_at_once(dir);
        assert_eq!(error.kind(), ErrorKind::Io(std::io::ErrorKind::NotADirectory), "{error}");
        let shown = error.to_string();
        assert!(shown.contains(&format!("{} is a file", file.path().display())), "{shown}");
        assert!(shown.contains(&format!("directory is {};", dir.display())), "{shown}");
        let error = CncFile::open(dir, Duration::ZERO).expect_err("a file");
        assert_eq!(error.kind(), ErrorKind::Io(std::io::ErrorKind::NotADirectory), "{error}");
        let error = request_driver_termination(dir, b"").expect_err("a file");
        assert_eq!(error.kind(), ErrorKind::Io(std::io::ErrorKind::NotADirectory), "{error}");
    }
}

/// Even the superuser cannot follow a link to itself.
#[cfg(unix)]
#[test]
fn unopened_file_fails_at_once() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join(CNC_FILE);
    std::os::unix::fs::symlink(&file, &file).expect("a link");
    let error = connect_at_once(home.path());
    assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error:?}");
    assert!(error.to_string().contains(&file.display().to_string()), "{error}");
}

#[test]
fn occupied_port_is_in_use() {
    let driver = launch();
    let aeron = connect(&driver);
    let occupied = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let channel = format!("aeron:udp?endpoint={}", occupied.local_addr().expect("an address"));
    let error = aeron.add_subscription(&channel, 1001).expect_err("the port is in use");
    assert_eq!(error.kind(), ErrorKind::Io(std::io::ErrorKind::AddrInUse), "{error}");
    assert!(error.to_string().starts_with("address in use: 127.0.0.1:"), "{error}");
}

#[test]
fn empty_directory_is_driver_timeout() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("unrelated"), b"text").expect("a file");
    assert_eq!(connect_soon_or_not(dir.path()).kind(), ErrorKind::DriverTimeout);
}

#[test]
fn wrong_cnc_file_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join(CNC_FILE), b"not what is expected ".repeat(1000)).expect("a file");
    assert_eq!(connect_soon_or_not(dir.path()).kind(), ErrorKind::IncompatibleDriver);
}

#[test]
fn other_major_version_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    cnc_file(dir.path(), &[version(9, 2, 0)], 64 * 1024);
    let error = connect_soon_or_not(dir.path());
    assert_eq!(error.kind(), ErrorKind::IncompatibleDriver);
    assert!(error.message().contains("CnC version not compatible"), "{error:?}");
    let shown = error.to_string();
    assert!(shown.contains("app=0.") && shown.contains("file=9.2.0"), "{shown}");
    assert!(shown.contains(&dir.path().display().to_string()), "{shown}");
}

#[test]
fn unfinished_start_is_driver_timeout() {
    let uninitialised = tempfile::tempdir().expect("a directory");
    cnc_file(uninitialised.path(), &[0], 64 * 1024);
    assert_eq!(connect_soon_or_not(uninitialised.path()).kind(), ErrorKind::DriverTimeout);

    // It has its version, and is shorter than the lengths that follow say.
    let truncated = tempfile::tempdir().expect("a directory");
    let mebibyte = 1 << 20;
    let words = [version(0, 2, 0), mebibyte, mebibyte, mebibyte, mebibyte, mebibyte];
    cnc_file(truncated.path(), &words, CNC_META_DATA_LENGTH + 4096);
    let error = connect_soon_or_not(truncated.path());
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    assert!(error.to_string().contains("not complete after 200 ms"), "{error}");
}

/// Connects to a directory in which a file appears during the wait. The file stays shorter than its lengths say.
fn connect_while_a_short_file_appears(dir: &Path) -> Error {
    let home = tempfile::tempdir_in(dir.parent().expect("a parent")).expect("a directory");
    let mebibyte = 1 << 20;
    let words = [version(0, 2, 0), mebibyte, mebibyte, mebibyte, mebibyte, mebibyte];
    cnc_file(home.path(), &words, CNC_META_DATA_LENGTH + 4096);
    let (sender, failed) = mpsc::channel();
    let connecting = dir.to_owned();
    // Not joined: a call that never returns fails the test below.
    thread::spawn(move || sender.send(connect_within(LONG, &connecting)));
    // Any time within the timeout will do.
    thread::sleep(SHORT / 2);
    fs::rename(home.path().join(CNC_FILE), dir.join(CNC_FILE)).expect("a file");
    failed.recv_timeout(DEADLINE).expect("an end of the attempt to connect")
}

#[test]
fn short_cnc_file_is_driver_timeout() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    fs::create_dir(&dir).expect("a directory");
    let error = connect_while_a_short_file_appears(&dir);
    assert_eq!(error.kind(), ErrorKind::DriverTimeout, "{error:?}");
    assert!(error.to_string().contains("not complete after 1000 ms"), "{error}");
}

#[test]
fn short_successor_file_is_driver_timeout() {
    let remains = remains_of_a_driver(LONG);
    let error = connect_while_a_short_file_appears(remains.path());
    assert_eq!(error.kind(), ErrorKind::DriverTimeout, "{error:?}");
    assert!(error.to_string().contains("not complete after 1000 ms"), "{error}");
}

/// The file of a driver whose last heartbeat is older than a timeout.
fn remains_of_a_driver(timeout: Duration) -> tempfile::TempDir {
    let driver = launch();
    let remains = tempfile::tempdir().expect("a directory");
    fs::copy(driver.aeron_dir().join(CNC_FILE), remains.path().join(CNC_FILE)).expect("a copy");
    let copied = Instant::now();
    drop(driver);
    await_that("the heartbeat is old", || copied.elapsed() > timeout + SHORT);
    remains
}

#[test]
fn missing_heartbeat_is_driver_timeout() {
    let remains = remains_of_a_driver(SHORT);
    let error = connect_soon_or_not(remains.path());
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    assert!(error.message().contains("no driver heartbeat"), "{error:?}");
    let shown = error.to_string();
    assert!(shown.contains(&remains.path().display().to_string()), "{shown}");
    assert!(shown.contains(&format!("process {},", std::process::id())), "{shown}");
    assert!(shown.contains("last heartbeat") && shown.contains("dir_delete_on_start"), "{shown}");
}

#[test]
fn ended_driver_is_named() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    drop(MediaDriver::launch(driver_context_in(&dir)).expect("a driver"));
    let error = connect_soon_or_not(&dir);
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    let shown = error.to_string();
    assert!(shown.contains(&format!("process {}, has ended", std::process::id())), "{shown}");
}

#[test]
fn failed_connections_leave_nothing_mapped() {
    let remains = remains_of_a_driver(SHORT);
    for _ in 0..10 {
        let mut context = context(remains.path());
        context.set_driver_timeout(Duration::from_millis(1)).expect("a timeout");
        let error = Aeron::connect(context).expect_err("no heartbeat");
        assert_eq!(error.kind(), ErrorKind::DriverTimeout, "{error:?}");
    }
    #[cfg(target_os = "linux")]
    {
        let maps = fs::read_to_string("/proc/self/maps").expect("the mappings");
        let name = remains.path().to_str().expect("a name");
        assert!(!maps.contains(name), "{maps}");
    }
}

/// Each interval is shorter than the driver's liveness timeout of 10 s.
#[test]
fn intervals_that_time_the_client_out_are_refused() {
    let driver = launch();
    let with_intervals = |keepalive, idle| {
        let mut context = context(driver.aeron_dir());
        context
            .set_keepalive_interval(Duration::from_secs(keepalive))
            .and_then(|context| context.set_idle_sleep_duration(Duration::from_secs(idle)))
            .expect("each is valid");
        Aeron::connect(context)
    };
    let error = with_intervals(6, 4).expect_err("timed out");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    for part in ["keepalive_interval=6s", "idle_sleep_duration=4s", "client_liveness_timeout=10s"] {
        assert!(error.message().contains(part), "{error}");
    }
    drop(with_intervals(6, 3).expect("shorter"));
}

#[test]
fn invalid_channel_stays_in_the_client() {
    let driver = launch();
    let aeron = connect(&driver);
    for channel in ["not-aeron:ipc", "aeron:udp?endpoint=", "aeron:carrier-pigeon", ""] {
        let error = aeron.add_publication(channel, 1001).expect_err(channel);
        assert_eq!(error.kind(), ErrorKind::InvalidChannel, "{channel:?}: {error:?}");
        assert_eq!(error.code(), 0, "{channel:?}: {error:?}");
        let error = aeron.add_subscription(channel, 1001).expect_err(channel);
        assert_eq!(error.kind(), ErrorKind::InvalidChannel, "{channel:?}: {error:?}");
    }
    let error = aeron.add_exclusive_publication("aeron:ipc?term-length=63k", 1).expect_err("odd");
    assert_eq!(error.kind(), ErrorKind::InvalidChannel);
    assert!(error.message().starts_with("term-length=63k: "), "{error:?}");
    assert!(!aeron.is_closed());
    drop(aeron.add_publication("aeron:ipc", 1001).expect("the client is none the worse"));
}

#[test]
fn driver_refusal_keeps_its_words() {
    let driver = launch();
    let aeron = connect(&driver);
    let channel = UncheckedChannel("aeron:ipc?alias=");
    let error = aeron.add_publication(channel, 1001).expect_err("no value");
    assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidChannel, -1), "{error:?}");
    // Only the driver knows the session id of a publication with this tag.
    let error = aeron.add_publication("aeron:ipc?session-id=tag:7", 1001).expect_err("no such tag");
    assert!(error.message().contains("must reference a network publication"), "{error:?}");
    assert!(!aeron.is_closed());
    drop(aeron.add_publication("aeron:ipc", 1001).expect("the client is none the worse"));
}

#[test]
fn nul_byte_in_a_channel_is_refused() {
    let driver = launch();
    let aeron = connect(&driver);
    let error = aeron.add_publication("aeron:ipc\0?term-length=64k", 1001).expect_err("a NUL byte");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("channel: a NUL byte at offset 9"), "{error}");
}

#[test]
fn setting_out_of_range_is_named() {
    let mut context = Context::new().expect("a context");
    let long_name = "x".repeat(101);
    let error = context.set_client_name(&long_name).expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("client_name"), "{error:?}");
    let error = context.set_driver_timeout(Duration::MAX).expect_err("too long");
    assert!(error.to_string().contains("driver_timeout"), "{error}");
    let error = context.set_dir("").expect_err("empty");
    assert!(error.to_string().contains("dir: the path is empty"), "{error}");
    let error = context.set_dir("x".repeat(5000)).expect_err("too long");
    assert!(error.to_string().contains("5000 bytes; the maximum is 4095"), "{error}");
}
