//! Clients that connect without blocking the caller.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rusteron_client::{Aeron, Context, ErrorKind};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{
    await_some, await_that, block_on, connect, context, driver_context_in, launch,
};

#[test]
fn connecting_is_awaited() {
    let driver = launch();
    let connecting = Aeron::async_connect(context(driver.aeron_dir())).expect("begun");
    let aeron = block_on(connecting).expect("a client");
    let publication = block_on(aeron.async_add_publication("aeron:ipc", 1).expect("begun"));
    assert_eq!(publication.expect("a publication").stream_id(), 1);
}

#[test]
fn connecting_is_polled() {
    let driver = launch();
    let mut connecting = Aeron::async_connect(context(driver.aeron_dir())).expect("begun");
    let aeron = await_some("the client", || connecting.poll().expect("no error"));
    assert!(!aeron.is_closed());
    let error = connecting.poll().expect_err("an outcome is returned once");
    assert_eq!(error.kind(), ErrorKind::IllegalState);
}

#[test]
fn task_is_woken_when_driver_starts() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("driver");
    let connecting = Aeron::async_connect(context(&dir)).expect("begun");
    let task = thread::spawn(|| block_on(connecting).map(drop));
    let _driver = MediaDriver::launch(driver_context_in(&dir)).expect("a driver");
    task.join().expect("no panic").expect("a client");
}

#[test]
fn missing_driver_is_awaited_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut context = context(dir.path());
    context.set_driver_timeout(Duration::from_millis(50)).expect("a timeout");
    let connecting = Aeron::async_connect(context).expect("begun");
    let error = block_on(connecting).expect_err("no driver");
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    assert!(error.to_string().contains("no media driver runs"), "{error}");
}

/// Settings that own a reference, so that the test sees when they are freed.
fn witnessed(mut context: Context, witness: &Arc<AtomicUsize>) -> Context {
    let witness = Arc::clone(witness);
    let own_thread = thread::current().id();
    context
        .set_on_close(move || {
            let is_elsewhere = thread::current().id() != own_thread;
            witness.fetch_add(usize::from(is_elsewhere), Ordering::Relaxed);
        })
        .expect("a handler");
    context
}

#[test]
fn dropped_attempt_ends_at_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let witness = Arc::default();
    let mut context = witnessed(context(dir.path()), &witness);
    context.set_driver_timeout(Duration::from_secs(3600)).expect("a timeout");
    drop(Aeron::async_connect(context).expect("begun"));
    await_that("the end of the attempt", || Arc::strong_count(&witness) == 1);
}

#[test]
fn unpolled_client_is_closed_elsewhere() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("driver");
    let witness = Arc::default();
    let mut context = witnessed(context(&dir), &witness);
    let (sender, started) = mpsc::channel();
    context.set_agent_on_start(move |_| sender.send(()).expect("a receiver")).expect("a handler");
    let mut connecting = Aeron::async_connect(context).expect("begun");
    assert!(connecting.poll().expect("no error").is_none());
    let driver = MediaDriver::launch(driver_context_in(&dir)).expect("a driver");
    started.recv().expect("a client");
    // Meanwhile the attempt ends, so that its outcome waits to be taken.
    drop(connect(&driver));
    drop(connecting);
    await_that("the end of the client", || Arc::strong_count(&witness) == 1);
    assert_eq!(witness.load(Ordering::Relaxed), 1);
}
