//! Drivers and clients on small file systems of their own: launches and log buffers for which there is no space, and
//! clients on a file system that others fill.
//!
//! These tests need a binary of their own: C opens files without `O_CLOEXEC`. A process that another
//! test starts meanwhile would keep the files open, and with them their space.

#![cfg(target_os = "linux")]

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusteron_client::Aeron;
use rusteron_media_driver::{DriverContext, ErrorKind, MediaDriver, Preset};
use rusteron_test_support::{
    SmallFileSystem, connect, connected_pair, driver_context_in, exchange, free_port, ignored_test,
    pass,
};

const DIR: &str = "RUSTERON_TEST_DIR";

/// Runs these tests one at a time, because some of them start a process.
fn lock() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn launch_without_space() {
    let _one_at_a_time = lock();
    let Some(small) = SmallFileSystem::mount("1m") else {
        return;
    };
    let dir = small.path().join("aeron");
    // The second time, the remains of the first are there.
    for _ in 0..2 {
        let error = MediaDriver::launch(driver_context_in(&dir)).expect_err("no space");
        assert_eq!(error.kind(), ErrorKind::StorageSpace, "{error:?}");
        assert!(error.message().contains("No space left on device"), "{error:?}");
        assert!(error.to_string().contains("cnc.dat: its file system has no space"), "{error}");
        assert!(!dir.join("cnc.dat").exists());
    }
}

#[test]
fn log_buffer_without_space() {
    let _one_at_a_time = lock();
    let Some(small) = SmallFileSystem::mount("80m") else {
        return;
    };
    let driver =
        MediaDriver::launch(driver_context_in(&small.path().join("aeron"))).expect("a driver");
    let aeron = connect(&driver);
    let error = aeron.add_publication("aeron:ipc?term-length=64m", 1).expect_err("no space");
    assert_eq!(error.kind(), ErrorKind::StorageSpace, "{error:?}");
    assert!(
        error.to_string().contains("bytes left for log buffers; use a shorter term-length"),
        "{error}"
    );
    drop(aeron.add_publication("aeron:ipc?term-length=64k", 1).expect("there is space for this"));
    drop(aeron);
}

#[test]
fn non_sparse_log_buffers_reserve_space() {
    let _one_at_a_time = lock();
    let Some(small) = SmallFileSystem::mount("64m") else {
        return;
    };
    // The driver itself then needs 47 MB, not sparse either. A log buffer takes 12 MB.
    for channel in [
        "aeron:ipc?term-length=4m".to_owned(),
        format!("aeron:udp?term-length=4m|endpoint=127.0.0.1:{}", free_port()),
    ] {
        let mut context = driver_context_in(&small.path().join("aeron"));
        context
            .set_term_buffer_sparse_file(false)
            .and_then(|context| context.set_dir_delete_on_shutdown(true))
            .expect("settings");
        let driver = MediaDriver::launch(context).expect("a driver");
        let aeron = connect(&driver);
        // Nothing is written to the first log buffer, which has its space all the same.
        let first = aeron.add_publication(&channel, 1).expect("there is space for one");
        let error = aeron.add_publication(&channel, 2).expect_err("no space for a second");
        assert_eq!(error.kind(), ErrorKind::StorageSpace, "{channel}: {error:?}");

        let (mut publication, mut subscription) =
            connected_pair(&connect(&driver), rusteron_test_support::SHORT_TERMS);
        exchange(&mut publication, &mut subscription, 100);
        drop((first, aeron));
    }
}

/// Log buffers that are added until one is refused. Then all pages of all of them are written: a
/// page that is missing would end this process.
#[test]
fn counted_sparse_log_buffers_find_their_space() {
    let _one_at_a_time = lock();
    let Some(small) = SmallFileSystem::mount("96m") else {
        return;
    };
    let mut context = driver_context_in(&small.path().join("aeron"));
    context
        .set_term_buffer_sparse_file(true)
        .and_then(|context| context.set_storage_checks_count_sparse(true))
        .expect("settings");
    let driver = MediaDriver::launch(context).expect("a driver");
    let aeron = connect(&driver);
    let mut streams = Vec::new();
    let error = loop {
        let stream_id = i32::try_from(streams.len()).expect("a small number") + 1;
        // Each other one over UDP, which has an image as well.
        let channel = match stream_id % 2 {
            0 => "aeron:ipc?term-length=1m".to_owned(),
            _ => format!("aeron:udp?term-length=1m|endpoint=127.0.0.1:{}", free_port()),
        };
        let added = aeron.add_subscription(&channel, stream_id).and_then(|subscription| {
            Ok((aeron.add_exclusive_publication(&channel, stream_id)?, subscription))
        });
        match added {
            Ok(stream) => streams.push(stream),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::StorageSpace, "{error:?}");
    assert!(!streams.is_empty());
    for (publication, subscription) in &mut streams {
        // An image may have been refused, so that its publication has no subscriber.
        if subscription.is_connected() {
            exchange(publication, subscription, 4000);
        }
    }
    // Without its log buffers, the same add passes.
    drop(streams);
    rusteron_test_support::await_that("space", || {
        aeron.add_publication("aeron:ipc?term-length=1m", 1).is_ok()
    });
}

#[test]
fn storage_checks_of_setter_apply() {
    let _one_at_a_time = lock();
    let Some(small) = SmallFileSystem::mount("80m") else {
        return;
    };
    let mut test = ignored_test("log_buffer_without_space_by_setter");
    pass(test.env(DIR, small.path().join("aeron")).env("AERON_PERFORM_STORAGE_CHECKS", "false"));
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn log_buffer_without_space_by_setter() {
    let dir = PathBuf::from(std::env::var_os(DIR).expect("a directory"));
    let mut context = driver_context_in(&dir);
    context.set_perform_storage_checks(true).expect("a setting");
    let driver = MediaDriver::launch(context).expect("a driver");
    let aeron = connect(&driver);
    let error = aeron.add_publication("aeron:ipc?term-length=64m", 1).expect_err("no space");
    assert_eq!(error.kind(), ErrorKind::StorageSpace, "{error:?}");
}

/// A client in a process of its own, with a log buffer in a file system that others fill. Returns the client's
/// output, and the signal that ended it.
fn run_client_while_the_file_system_fills(context: DriverContext) -> (String, Option<i32>) {
    let dir = context.dir().to_owned();
    let driver = MediaDriver::launch(context).expect("a driver");
    let mut command = ignored_test("client_on_full_file_system");
    command.env(DIR, &dir);
    for name in ["ASAN_OPTIONS", "TSAN_OPTIONS"] {
        // A sanitizer would turn the signal into an exit status.
        let options = std::env::var(name).unwrap_or_default();
        command.env(name, format!("{options}:handle_sigbus=0"));
    }
    let output = command.output().expect("this program starts");
    drop(connect(&driver));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.signal())
}

#[test]
#[ignore = "run by other tests, in a process of its own"]
fn client_on_full_file_system() {
    let dir = PathBuf::from(std::env::var_os(DIR).expect("a directory"));
    let aeron = Aeron::connect(rusteron_test_support::context(&dir)).expect("a client");
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let mut filler = fs::File::create(dir.with_file_name("filler")).expect("a file");
    let full = io::copy(&mut io::repeat(1), &mut filler).expect_err("an end of the space");
    assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    println!("polls");
    assert_eq!(subscription.poll(|_, _| {}, 1).expect("an open subscription"), 0);
    println!("writes");
    // More than the three terms of 1 MiB.
    exchange(&mut publication, &mut subscription, 4000);
    println!("exchanged");
}

#[test]
fn embedded_preset_survives() {
    let _one_at_a_time = lock();
    let Some(small) = SmallFileSystem::mount("64m") else {
        return;
    };
    let mut context = DriverContext::with_preset(Preset::Embedded).expect("a context");
    context.set_dir(small.path().join("aeron")).expect("a directory");
    let (text, signal) = run_client_while_the_file_system_fills(context);
    assert!(text.contains("exchanged"), "signal {signal:?}: {text}");
}

/// Shows the documented behaviour of sparse log buffers. Without it, the test above would show nothing.
#[test]
fn sparse_log_buffer_raises_sigbus() {
    let _one_at_a_time = lock();
    let Some(small) = SmallFileSystem::mount("64m") else {
        return;
    };
    let mut context = DriverContext::with_preset(Preset::Embedded).expect("a context");
    context
        .set_dir(small.path().join("aeron"))
        .and_then(|context| context.set_term_buffer_sparse_file(true))
        .expect("settings");
    let (text, signal) = run_client_while_the_file_system_fills(context);
    assert!(text.contains("polls") && !text.contains("writes"), "{text}");
    assert_eq!(signal, Some(libc::SIGBUS), "{text}");
}
