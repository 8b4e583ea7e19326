//! The files of a media driver, read without a client.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rusteron_core::channel::UncheckedChannel;
use rusteron_core::cnc::{CncFile, PositionKind, SystemCounter};
use rusteron_core::error::{Error, ErrorKind};
use rusteron_media_driver::{DriverContext, MediaDriver};
use rusteron_test_support::{
    DEADLINE, await_some, await_that, connect, connected_pair, launch, offer, receive, udp_channel,
};

const CNC_FILE: &str = "cnc.dat";
const SHORT: Duration = Duration::from_millis(100);

fn open(dir: &Path) -> CncFile {
    CncFile::open(dir, DEADLINE).expect("the file")
}

fn open_soon_or_not(dir: &Path) -> Error {
    let start = Instant::now();
    let error = CncFile::open(dir, SHORT).expect_err("nothing to open");
    assert!(error.kind() != ErrorKind::DriverTimeout || start.elapsed() >= SHORT);
    let of_copy = CncFile::read(dir, SHORT).expect_err("nothing to copy");
    assert_eq!(of_copy.kind(), error.kind(), "{of_copy:?}");
    error
}

fn cnc_file(dir: &Path, words: &[i32], length: usize) {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.resize(length, 0);
    fs::write(dir.join(CNC_FILE), bytes).expect("a file");
}

const fn version(major: i32, minor: i32, patch: i32) -> i32 {
    major << 16 | minor << 8 | patch
}

#[test]
fn running_driver_is_described() {
    let before = SystemTime::now();
    let driver = launch();
    let cnc = open(driver.aeron_dir());
    assert_eq!(cnc.pid(), i64::from(std::process::id()));
    assert_eq!((cnc.version().major, cnc.version().minor), (0, 2));
    assert_eq!(cnc.version().to_string(), format!("0.2.{}", cnc.version().patch));
    assert_eq!(cnc.filename(), driver.aeron_dir().join(CNC_FILE));
    // To the millisecond.
    assert!(cnc.start_time() + Duration::from_millis(1) >= before);
    assert!(cnc.start_time() <= SystemTime::now());
    assert_eq!(cnc.client_liveness_timeout(), Duration::from_secs(10));
    let constants = cnc.constants();
    assert!(constants.to_driver_buffer_length > 1 << 20);
    assert!(constants.to_clients_buffer_length > 1 << 20);
    assert_eq!(
        constants.counter_metadata_buffer_length,
        4 * constants.counter_values_buffer_length
    );
    assert!(constants.error_log_buffer_length > 0);
    assert!(constants.file_page_size >= 4096);
    assert!(format!("{cnc:?}").contains("cnc.dat"));
    assert_eq!(cnc.loss_report().expect("a report"), []);
}

#[test]
fn driver_is_active_until_it_ends() {
    let driver = launch();
    let cnc = open(driver.aeron_dir());
    assert!(cnc.is_active(DEADLINE));
    assert!(cnc.heartbeat_age().expect("a heartbeat") < DEADLINE);
    let first = cnc.heartbeat().expect("a heartbeat");
    await_that("the next heartbeat", || cnc.heartbeat().expect("a heartbeat") > first);

    drop(driver);
    assert_eq!((cnc.heartbeat(), cnc.heartbeat_age()), (None, None));
    assert!(!cnc.is_active(Duration::MAX));
    // The file is deleted, and still mapped.
    assert!(cnc.counters().iter().count() < 46);
    assert!(cnc.errors().is_empty());
    assert_eq!(
        cnc.loss_report().expect_err("deleted").kind(),
        ErrorKind::Io(std::io::ErrorKind::NotFound)
    );
}

#[test]
fn dead_drivers_files_are_readable() {
    let driver = launch();
    let remains = tempfile::tempdir().expect("a directory");
    fs::copy(driver.aeron_dir().join(CNC_FILE), remains.path().join(CNC_FILE)).expect("a copy");
    drop(driver);
    let cnc = CncFile::open(remains.path(), Duration::ZERO).expect("the file");
    assert!(cnc.heartbeat().is_some());
    await_that("it is known to be dead", || !cnc.is_active(Duration::from_millis(10)));
    assert_eq!(SystemCounter::Errors.read(&cnc.counters()), Some(0));
    let maps = || fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let name = remains.path().to_str().expect("a name");
    assert_eq!(maps().contains(name), cfg!(target_os = "linux"));
    drop(cnc);
    assert!(!maps().contains(name));
}

#[test]
fn counters_need_no_client() {
    let driver = launch();
    let aeron = connect(&driver);
    let cnc = open(driver.aeron_dir());
    for counter in SystemCounter::ALL {
        assert!(counter.read(&cnc.counters()).is_some(), "{counter:?}");
        let label = cnc.counters().label(counter.id()).expect("a label");
        assert!(label.starts_with(counter.label()), "{label:?} and {counter:?}");
    }
    let system = cnc.counters().iter().filter(|counter| counter.type_id == 0).count();
    assert_eq!(system, SystemCounter::ALL.len(), "a counter has no name");
    let version = SystemCounter::AeronVersion.read(&cnc.counters()).expect("a version");
    let parts = [version >> 16, version >> 8 & 0xFF, version & 0xFF].map(|part| part.to_string());
    assert_eq!(parts.join("."), rusteron_core::AERON_VERSION);
    let counter = aeron.add_counter(1001, b"key", "from a client").expect("a counter");
    counter.set(17);
    assert_eq!(cnc.counters().value(counter.counter_id()), Some(17));
    assert_eq!(cnc.counters().label(counter.counter_id()).as_deref(), Some("from a client"));
    assert_eq!(cnc.counters().max_counter_id(), aeron.counters_reader().max_counter_id());
}

#[test]
fn errors_are_logged_once_each() {
    let driver = launch();
    let cnc = open(driver.aeron_dir());
    assert!(cnc.errors().is_empty());
    let before = SystemTime::now() - Duration::from_secs(1);
    let aeron = connect(&driver);
    for _ in 0..3 {
        aeron
            .add_publication(UncheckedChannel("aeron:ipc?carrier-pigeon="), 1)
            .expect_err("an invalid channel");
    }
    let entry = await_some("the error", || {
        cnc.errors().into_iter().find(|error| error.observation_count == 3)
    });
    assert!(entry.text.contains("carrier-pigeon"), "{entry:?}");
    assert!(entry.first_observation >= before && entry.last_observation >= entry.first_observation);
    assert_eq!(SystemCounter::Errors.read(&cnc.counters()), Some(3));

    aeron
        .add_publication(UncheckedChannel("aeron:ipc?smoke|signal"), 1)
        .expect_err("an invalid channel");
    await_that("the other error", || cnc.errors().len() == 2);
    assert_eq!(cnc.errors_since(before).len(), 2);
    assert!(cnc.errors_since(SystemTime::now() + Duration::from_secs(60)).is_empty());
}

fn texts(cnc: &CncFile) -> Vec<String> {
    cnc.errors().into_iter().map(|error| error.text).collect()
}

#[test]
fn absent_file_times_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let error = open_soon_or_not(&dir.path().join("nobody"));
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    assert!(error.message().contains("nobody after 100 ms"), "{error:?}");
    assert_eq!(open_soon_or_not(dir.path()).kind(), ErrorKind::DriverTimeout);
    let error = CncFile::open(dir.path(), Duration::ZERO).expect_err("looked once");
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    fs::write(dir.path().join(CNC_FILE), b"").expect("a file");
    assert_eq!(open_soon_or_not(dir.path()).kind(), ErrorKind::DriverTimeout);
}

#[test]
fn late_file_is_opened() {
    let dir = tempfile::tempdir().expect("a directory");
    let aeron_dir = dir.path().join("late");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| CncFile::open(&aeron_dir, DEADLINE));
        let mut context = DriverContext::new().expect("a context");
        context
            .set_dir(&aeron_dir)
            .and_then(|context| context.set_dir_delete_on_shutdown(true))
            .expect("valid settings");
        let driver = MediaDriver::launch(context).expect("a driver");
        let cnc = waiting.join().expect("no panic").expect("the file");
        assert_eq!(cnc.pid(), i64::from(std::process::id()));
        drop(driver);
    });
}

#[test]
fn wrong_file_is_incompatible() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join(CNC_FILE), b"not what is expected ".repeat(1000)).expect("a file");
    let error = open_soon_or_not(dir.path());
    assert_eq!(error.kind(), ErrorKind::IncompatibleDriver, "{error:?}");

    cnc_file(dir.path(), &[version(9, 2, 0)], 64 * 1024);
    let error = open_soon_or_not(dir.path());
    assert_eq!(error.kind(), ErrorKind::IncompatibleDriver, "{error:?}");
    assert!(error.message().contains("file=9.2.0"), "{error:?}");
}

#[test]
fn excessive_lengths_are_not_copied() {
    let dir = tempfile::tempdir().expect("a directory");
    let (most, kilobyte) = (500 << 20, 1024);
    for (metadata, values, name) in
        [(i32::MAX, kilobyte, "counter metadata"), (4 * most, most + 1, "counter values")]
    {
        let words = [version(0, 2, 0), kilobyte, kilobyte, metadata, values, i32::MAX];
        cnc_file(dir.path(), &words, 64 * 1024);
        let file = fs::OpenOptions::new().write(true).open(dir.path().join(CNC_FILE));
        // Sparse.
        file.and_then(|file| file.set_len(6 << 30)).expect("the file");
        let error = CncFile::read(dir.path(), SHORT).expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::IncompatibleDriver, "{error:?}");
        assert!(error.message().contains(name), "{error:?}");
    }
}

#[test]
fn incomplete_file_times_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let mebibyte = 1 << 20;
    for words in [
        &[0][..],
        &[version(0, 2, 0), mebibyte, mebibyte, mebibyte, mebibyte, mebibyte],
        &[version(0, 2, 0), -1, 0, 0, 0, 0],
        &[version(0, 2, 0), 0, 0, 0, 0, i32::MIN],
    ] {
        cnc_file(dir.path(), words, 64 * 1024);
        assert_eq!(open_soon_or_not(dir.path()).kind(), ErrorKind::DriverTimeout, "{words:?}");
    }
}

#[test]
fn absurd_contents_read_as_empty() {
    let dir = tempfile::tempdir().expect("a directory");
    for lengths in [[0; 5], [1, 2, 3, 5, 7], [1000, 1, 511, 127, 13], [9, 0, 3 * 512, 3 * 128, 99]]
    {
        let words: Vec<i32> = [version(0, 2, 0)].into_iter().chain(lengths).collect();
        cnc_file(dir.path(), &words, 64 * 1024);
        let path = dir.path().join(CNC_FILE);
        let mut bytes = fs::read(&path).expect("the file");
        bytes[52..].fill(1);
        fs::write(&path, bytes).expect("the file");

        for cnc in [CncFile::open(dir.path(), SHORT), CncFile::read(dir.path(), SHORT)] {
            let cnc = cnc.expect("a file of the right version");
            assert_eq!(cnc.heartbeat(), None, "{lengths:?}");
            assert!(!cnc.is_active(DEADLINE));
            let _ = (cnc.counters().iter().count(), cnc.counters().stream_positions());
            for id in -2..10 {
                let counters = cnc.counters();
                let _ = (counters.value(id), counters.counter(id), counters.state(id));
            }
            let _ = cnc.errors();
            let _ = format!("{cnc:?} {:?} {:?}", cnc.start_time(), cnc.client_liveness_timeout());
        }
    }
}

#[test]
fn copy_is_mapping_of_its_moment() {
    let driver = launch();
    let aeron = connect(&driver);
    let counter = aeron.add_counter(1001, b"key", "from a client").expect("a counter");
    counter.set(17);
    aeron.add_publication(UncheckedChannel("aeron:ipc?mtu=x"), 1).expect_err("no channel");
    let mapped = open(driver.aeron_dir());
    await_that("the client's version in its label", || {
        mapped.counters().iter().any(|counter| {
            counter.label.starts_with("client-heartbeat") && counter.label.contains("version=")
        })
    });
    let copied = CncFile::read(driver.aeron_dir(), DEADLINE).expect("the file");
    counter.set(18);
    assert_eq!(copied.constants(), mapped.constants());
    assert_eq!(copied.filename(), mapped.filename());
    assert_eq!(texts(&copied), texts(&mapped));
    assert_eq!(texts(&copied).len(), 1);
    assert_eq!(copied.counters().max_counter_id(), mapped.counters().max_counter_id());
    let labels = |cnc: &CncFile| -> Vec<_> {
        cnc.counters().iter().map(|counter| (counter.id, counter.label, counter.key)).collect()
    };
    assert_eq!(labels(&copied), labels(&mapped));
    let value = |cnc: &CncFile| cnc.counters().value(counter.counter_id());
    assert_eq!((value(&copied), value(&mapped)), (Some(17), Some(18)));
    let first = copied.heartbeat().expect("a heartbeat");
    await_that("the next heartbeat", || copied.heartbeat().expect("a heartbeat") > first);
    drop((aeron, driver));
    assert_eq!(copied.heartbeat(), None);
    assert_eq!(value(&copied), Some(17));
}

#[test]
fn too_long_paths_are_refused() {
    let error = CncFile::open("", SHORT).expect_err("no path");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = CncFile::open("x".repeat(5000), SHORT).expect_err("a long path");
    assert!(error.message().contains("5000 bytes; the maximum is 4095"), "{error:?}");
    // Room for the directory, but not for the file in it.
    let error = CncFile::open("x".repeat(4093), SHORT).expect_err("a long path");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
    // As long as there can be one: it is found at once, or this test never ends.
    let driver = launch();
    CncFile::open(driver.aeron_dir(), Duration::MAX).expect("the file");
}

#[test]
fn positions_of_a_stream_are_found_together() {
    let driver = launch();
    let aeron = connect(&driver);
    // Longer than what fits into a key.
    let channel = format!("{}|alias={}", udp_channel(), "long-name-".repeat(12));
    let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
    let end = offer(&mut publication, b"to be read later");
    let await_stream = |backlog: i64| {
        await_some("the positions", || {
            let mut streams = aeron.counters_reader().stream_positions();
            streams.retain(|stream| stream.channel == channel);
            assert!(streams.len() <= 1, "{streams:?}");
            streams.pop().filter(|stream| {
                stream.publisher_position() == Some(end)
                    && stream.sender_position() == Some(end)
                    && stream.receiver_position() == Some(end)
                    && stream.subscriber_backlog() == Some(backlog)
            })
        })
    };
    let stream = await_stream(end);
    assert_eq!((stream.stream_id, stream.session_id), (1001, publication.session_id()));
    assert!(stream.publisher_limit() > Some(end) && stream.sender_limit() >= Some(end));
    assert_eq!((stream.receiver_high_water_mark(), stream.sender_backlog()), (Some(end), Some(0)));
    for (kind, id) in [
        (PositionKind::PublisherPosition, publication.constants().registration_id),
        (PositionKind::SubscriberPosition, subscription.constants().registration_id),
    ] {
        let position = stream.of(kind).next().expect("one");
        assert_eq!((position.registration_id, position.owner_id), (id, aeron.client_id()));
    }
    let kinds: HashSet<_> = stream.positions.iter().map(|position| position.kind).collect();
    let missing = PositionKind::ALL.iter().filter(|kind| !kinds.contains(kind));
    assert_eq!(missing.collect::<Vec<_>>(), [&PositionKind::ReceiverOverrun], "{stream}");
    receive(&mut subscription, 1);
    assert_eq!(await_stream(0).subscriber_positions().collect::<Vec<_>>(), [end]);
}
