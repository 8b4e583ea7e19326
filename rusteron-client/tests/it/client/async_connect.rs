//! Clients that connect without blocking the caller.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{self, Wake, Waker};
use std::thread;
use std::time::Duration;

use rusteron_client::{Aeron, Context, ErrorKind};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{await_some, await_that, block_on, context, driver_context_in, launch};

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

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
    let mut connecting = pin!(Aeron::async_connect(context(&dir)).expect("begun"));
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut task = task::Context::from_waker(&waker);
    assert!(connecting.as_mut().poll(&mut task).is_pending());
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    let _driver = MediaDriver::launch(driver_context_in(&dir)).expect("a driver");
    await_that("the wake-up", || wakes.0.load(Ordering::Relaxed) == 1);
    assert!(matches!(connecting.as_mut().poll(&mut task), task::Poll::Ready(Ok(_))));
}

#[test]
fn missing_driver_is_awaited_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut context = context(dir.path());
    context.set_driver_timeout(Duration::from_millis(50)).expect("a timeout");
    let connecting = Aeron::async_connect(context).expect("begun");
    let error = block_on(connecting).expect_err("no driver");
    assert_eq!(error.kind(), ErrorKind::DriverTimeout);
    assert!(error.to_string().contains("CnC file"), "{error}");
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
    let context = witnessed(context(&dir), &witness);
    let mut connecting = Aeron::async_connect(context).expect("begun");
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let pending = Pin::new(&mut connecting).poll(&mut task::Context::from_waker(&waker));
    assert!(pending.is_pending());
    let _driver = MediaDriver::launch(driver_context_in(&dir)).expect("a driver");
    await_that("the client", || wakes.0.load(Ordering::Relaxed) == 1);
    drop(connecting);
    await_that("the end of the client", || Arc::strong_count(&witness) == 1);
    assert_eq!(witness.load(Ordering::Relaxed), 1);
}
