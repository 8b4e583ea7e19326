//! What the tests share: a driver of their own, and waiting with a deadline.

#![allow(dead_code, unreachable_pub, reason = "every test file uses a part of it")]

use std::path::Path;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, Context, ExclusivePublication, Subscription};
use rusteron_media_driver::MediaDriver;

/// Longer than anything takes on a machine that still works.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// For tests that wait until it is over. A driver that is alive must not be silent for so long, even on
/// a busy machine and under valgrind.
pub const SHORT_DRIVER_TIMEOUT: Duration = Duration::from_secs(2);

/// The terms of tests that write to the end of many of them: the shortest there are.
pub const SHORT_TERMS: &str = "aeron:ipc?term-length=64k";

pub fn launch() -> MediaDriver {
    MediaDriver::launch_embedded().expect("an embedded driver")
}

pub fn context(dir: &Path) -> Context {
    let mut context = Context::new().expect("a context");
    context.set_dir(dir).expect("a directory");
    context.set_driver_timeout(PATIENCE).expect("a timeout");
    context
}

pub fn connect(driver: &MediaDriver) -> Aeron {
    Aeron::connect(context(driver.aeron_dir())).expect("a client")
}

/// Tries until there is an answer; panics with `what` when patience ends.
pub fn await_some<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = attempt() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::yield_now();
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
            std::task::Poll::Pending => std::thread::park_timeout(PATIENCE),
        }
    }
}

/// A publication and a subscription of the same stream that know of each other.
pub fn connected_pair(aeron: &Aeron, channel: &str) -> (ExclusivePublication, Subscription) {
    let subscription = aeron.add_subscription(channel, 1001).expect("a subscription");
    let publication = aeron.add_exclusive_publication(channel, 1001).expect("a publication");
    await_that("the connection", || publication.is_connected() && subscription.is_connected());
    (publication, subscription)
}

/// Offers until the message is taken; panics on an error that repeating does not help.
pub fn offer(publication: &mut ExclusivePublication, message: &[u8]) -> i64 {
    await_some("a place for the message", || match publication.offer(message) {
        Ok(position) => Some(position),
        Err(error) if error.is_retryable() => None,
        Err(error) => panic!("{error}"),
    })
}

/// The next `count` messages.
pub fn receive(subscription: &mut Subscription, count: usize) -> Vec<Vec<u8>> {
    let mut received = Vec::new();
    await_that("the messages", || {
        let limit = count - received.len();
        subscription
            .poll(|message, _| received.push(message.to_vec()), limit)
            .expect("an open subscription");
        received.len() == count
    });
    received
}

/// A reproducible sequence of numbers that look random (xorshift64*).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.below(256) as u8).collect()
    }
}
