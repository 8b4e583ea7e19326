//! Waiting for a condition, with a deadline.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longer than anything takes on a machine that still works.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Most conditions hold within this time. Longer waits leave the processor to other tests.
const YIELDING: Duration = Duration::from_millis(5);

/// Tries until there is an answer; panics with `what` after the deadline.
pub fn await_some<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = attempt() {
            return answer;
        }
        let waited = start.elapsed();
        assert!(waited < DEADLINE, "waited in vain: {what}");
        if waited < YIELDING {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

pub fn await_that(what: &str, mut condition: impl FnMut() -> bool) {
    await_some(what, || condition().then_some(()));
}

/// The smallest executor: polls a future on this thread, and parks while there is nothing to do.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park_timeout(DEADLINE),
        }
    }
}

/// Sets a flag when it is dropped, also by a panic, so that the threads of a scope end with their
/// test.
pub struct EndOnDrop<'a>(pub &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
