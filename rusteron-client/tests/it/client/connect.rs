//! Missing, broken and strange media drivers, and the mistakes of people who are new to Aeron: each
//! error names the value at fault, and what helps.

use std::error::Error as StdError;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Context, Error, ErrorKind};
#[cfg(unix)]
use rusteron_client::{CncFile, request_driver_termination};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{
    DEADLINE, await_that, connect, context, driver_context_in, free_port, launch,
};

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

/// Connects to a directory in which a file appears during the wait. The file stays shorter than its
/// lengths say.
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

/// A mistake: the parts of the error's text that name the value and what helps, and the error.
type Mistake = (&'static [&'static str], Box<dyn StdError>);

fn error<T, E: StdError + 'static>(outcome: Result<T, E>) -> Box<dyn StdError> {
    outcome.err().expect("a mistake").into()
}

#[test]
fn texts_name_value_and_remedy() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut exclusive =
        aeron.add_exclusive_publication("aeron:ipc?term-length=64k", 1001).expect("a publication");
    let publication = |channel: &str| error(aeron.add_publication(channel, 1001));
    let subscription = |channel: &str| error(aeron.add_subscription(channel, 1001));

    let missing = driver.aeron_dir().join("missing");
    let elsewhere = || {
        let mut context = context(&missing);
        context.set_driver_timeout(Duration::from_millis(100))?;
        Aeron::connect(context)
    };
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let port = taken.local_addr().expect("an address").port();
    let ipc = aeron.add_publication("aeron:ipc", 1002).expect("a publication");
    let long_terms =
        aeron.add_publication("aeron:ipc?term-length=64m", 1004).expect("a publication");
    let single = format!("aeron:udp?endpoint=localhost:{}", free_port());
    let single = aeron.add_publication(single, 1002).expect("a publication");
    let destination = "aeron:udp?endpoint=localhost:9";
    let mut listener = aeron.add_subscription("aeron:ipc", 1003).expect("a subscription");
    let too_long = vec![0; exclusive.max_message_length() + 1];
    let label = "x".repeat(400);
    let mut terms = driver_context_in(&missing);
    terms.set_term_buffer_length(100_000).expect("a number");

    let mut faults = Vec::new();
    let mistakes: Vec<Mistake> = vec![
        (
            &[
                "no media driver runs in",
                "missing",
                "does not exist",
                "start a media driver",
                "AERON_DIR",
            ],
            error(elsewhere()),
        ),
        (
            &["active media driver: process", "use another directory"],
            error(MediaDriver::launch(driver_context_in(driver.aeron_dir()))),
        ),
        (
            &["control-mode=dynamc: must be manual, dynamic or response"],
            publication("aeron:ipc?control-mode=dynamc"),
        ),
        (
            &["term-length=64kb: must be a power of two from 64k to 1g"],
            publication("aeron:ipc?term-length=64kb"),
        ),
        (
            &["fc=min,g:x: must be max, min or tagged"],
            publication("aeron:udp?endpoint=localhost:9|fc=min,g:x"),
        ),
        (
            &["term-length=100k: must be a power of two from 64k to 1g"],
            publication("aeron:ipc?term-length=100k"),
        ),
        (&["mtu=64k: must be a multiple of 32 from 64 to 65504"], publication("aeron:ipc?mtu=64k")),
        (
            &["invalid channel: URIs for UDP must specify endpoint"],
            publication("aeron:udp?term-length=64k"),
        ),
        (&["endpoint=localhost: must be host:port"], subscription("aeron:udp?endpoint=localhost")),
        // The empty label keeps the name from every name server, so that none delays the answer.
        (
            &["unknown host: endpoint=no-such..host:9: the driver's machine cannot resolve this"],
            publication("aeron:udp?endpoint=no-such..host:9"),
        ),
        (
            &["address in use: 127.0.0.1:", "another process", "port 0 for any"],
            subscription(&format!("aeron:udp?endpoint=127.0.0.1:{port}")),
        ),
        (
            &["control-mode=dynamic needs control=host:port"],
            publication("aeron:udp?endpoint=localhost:9|control-mode=dynamic"),
        ),
        (
            &["control-mode=dynamic needs control=host:port"],
            subscription("aeron:udp?endpoint=localhost:9|control-mode=dynamic"),
        ),
        (
            &[
                "term-length=65536: a publication of",
                "has term-length=67108864, perhaps",
                "stream id",
            ],
            error(aeron.add_publication("aeron:ipc?term-length=64k", 1004)),
        ),
        (
            &["aeron:ipc: has no destinations", "control-mode=manual"],
            error(ipc.add_destination(destination)),
        ),
        (
            &["has no destinations", "control-mode=manual"],
            error(single.add_destination(destination)),
        ),
        (&["aeron:ipc: has no destinations"], error(listener.add_destination(destination))),
        (&["begins with aeron:ipc or aeron:udp?"], publication("ipc")),
        (&["parameters are missing", "aeron:udp?endpoint=host:port"], publication("aeron:udp")),
        (
            &["only subscriptions can be spies"],
            publication("aeron-spy:aeron:udp?endpoint=localhost:9"),
        ),
        (
            &["8193 bytes", "takes 8192 at most", "term-length, up to 16 MiB"],
            error(exclusive.offer(&too_long)),
        ),
        (&["1377 bytes", "takes 1376 at most; offer takes"], error(exclusive.try_claim(1377))),
        (
            &["not connected: ", "no peer has joined, or the last one has left"],
            error(exclusive.offer_until(b"alone", Instant::now())),
        ),
        (&["label: 400 bytes; the maximum is 380"], error(aeron.add_counter(1001, &[], &label))),
        (
            &["type_id=-5: must be from 0", "your own from 1000"],
            error(aeron.add_counter(-5, &[], "x")),
        ),
        (&["100000 is not a power of two from 64k to 1g"], error(MediaDriver::launch(terms))),
    ];
    for (parts, error) in mistakes {
        let text = error.to_string();
        let names_all = parts.iter().all(|part| text.contains(part));
        let is_one_sentence = !text.contains("registration error") && !text.contains('\n');
        // Rust prints the error that `main` returns by its `Debug`.
        if !names_all || !is_one_sentence || format!("{error:?}") != text {
            faults.push(format!("{parts:?}: {error:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    drop(long_terms);
    // The driver takes any stream id.
    drop(aeron.add_publication("aeron:ipc", -7).expect("a publication"));
}
