//! The helpers that the tests share: a driver of their own, streams on it, and waiting with a deadline.

#![allow(dead_code, unused_imports, unreachable_pub, reason = "every test file uses a part of it")]

mod java;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::UdpSocket;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub use java::{has_java, java_run};
use rusteron_client::{
    Aeron, Context, ExclusivePublication, Header, IdleStrategyKind, OfferError, Position,
    Publication, PublicationConstants, Result, Subscription,
};
use rusteron_media_driver::{Context as DriverContext, MediaDriver, ThreadingMode};

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

/// The same with some settings.
pub fn launch_with(
    settings: impl FnOnce(&mut DriverContext) -> Result<&mut DriverContext>,
) -> MediaDriver {
    let mut context = DriverContext::new().expect("a context");
    context
        .set_threading_mode(ThreadingMode::Shared)
        .and_then(|context| context.set_shared_idle_strategy(IdleStrategyKind::Backoff))
        .and_then(settings)
        .expect("valid settings");
    MediaDriver::launch_embedded_with(context).expect("an embedded driver")
}

/// A driver for tests in which a client does no work for a while. On a busy machine, that can be a long while.
/// This driver does not take such a client for dead.
pub fn launch_patient() -> MediaDriver {
    launch_with(|context| {
        context
            .set_client_liveness_timeout(10 * PATIENCE)?
            .set_publication_unblock_timeout(20 * PATIENCE)
    })
}

/// A driver that soon gives publishers up that are dead, and no other ones, even on a busy machine.
pub fn launch_strict() -> MediaDriver {
    launch_with(|context| {
        context
            .set_timer_interval(Duration::from_millis(50))?
            .set_client_liveness_timeout(4 * SHORT_DRIVER_TIMEOUT)?
            .set_publication_unblock_timeout(4 * SHORT_DRIVER_TIMEOUT + Duration::from_millis(500))
    })
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

/// Settings of a client that soon notices when its driver stops.
pub fn watchful_context(dir: &Path) -> Context {
    let mut context = context(dir);
    context
        .set_driver_timeout(SHORT_DRIVER_TIMEOUT)
        .and_then(|context| context.set_keepalive_interval(Duration::from_millis(50)))
        .expect("valid settings");
    context
}

pub fn connect_watchfully(driver: &MediaDriver) -> Aeron {
    Aeron::connect(watchful_context(driver.aeron_dir())).expect("a client")
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

/// A port that is free, below those that the operating system gives out by itself.
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 20_000;
    static USED: AtomicU32 = AtomicU32::new(0);
    // Another process begins somewhere else.
    let first = std::process::id().wrapping_mul(4099);
    (0..COUNT)
        .map(|_| first.wrapping_add(USED.fetch_add(1, Ordering::Relaxed)))
        .map(|number| (FIRST + number % COUNT) as u16)
        .find(|&port| UdpSocket::bind(("127.0.0.1", port)).is_ok())
        .expect("a free port")
}

/// A channel to this machine that no other program uses.
pub fn udp_channel() -> String {
    format!("aeron:udp?endpoint=127.0.0.1:{}", free_port())
}

/// A publication and a subscription of the same stream that know of each other.
pub fn connected_pair(aeron: &Aeron, channel: &str) -> (ExclusivePublication, Subscription) {
    let subscription = aeron.add_subscription(channel, 1001).expect("a subscription");
    let publication = aeron.add_exclusive_publication(channel, 1001).expect("a publication");
    await_that("the connection", || {
        // The driver says that there is a subscriber before it says how far the publisher may go.
        publication.available_window().is_ok_and(|room| room > 0) && subscription.is_connected()
    });
    (publication, subscription)
}

/// The same with a publication that others may share.
pub fn shared_pair(aeron: &Aeron, channel: &str) -> (Publication, Subscription) {
    let subscription = aeron.add_subscription(channel, 1002).expect("a subscription");
    let publication = aeron.add_publication(channel, 1002).expect("a publication");
    await_that("the connection", || {
        // The driver says that there is a subscriber before it says how far the publisher may go.
        publication.available_window().is_ok_and(|room| room > 0) && subscription.is_connected()
    });
    (publication, subscription)
}

/// The log buffer of a publication.
pub fn log_file(driver: &MediaDriver, original_registration_id: i64) -> File {
    let name = format!("publications/{original_registration_id}.logbuffer");
    let path = driver.aeron_dir().join(name);
    File::options().read(true).write(true).open(path).expect("the log buffer")
}

/// The bytes of the log buffer between two positions of one term. No subscriber has read them yet, so that
/// the driver has not cleaned any.
pub fn log_bytes(
    driver: &MediaDriver,
    publication: &PublicationConstants,
    positions: Range<Position>,
) -> Vec<u8> {
    let mut log = log_file(driver, publication.original_registration_id);
    let start = positions.start % (3 * publication.term_buffer_length as Position);
    let mut bytes = vec![0; (positions.end - positions.start) as usize];
    log.seek(SeekFrom::Start(start as u64)).expect("a place in the log buffer");
    log.read_exact(&mut bytes).expect("the frames");
    bytes
}

/// Changes a frame as the driver does when it unblocks a publication: see
/// `aeron_term_unblocker_unblock`.
pub fn unblock(log: &File, offset: u64, length: i32) {
    let mut log = log;
    log.seek(SeekFrom::Start(offset + 6)).expect("a place");
    log.write_all(&0_u16.to_ne_bytes()).expect("the type");
    log.seek(SeekFrom::Start(offset)).expect("a place");
    log.write_all(&length.to_ne_bytes()).expect("the length");
}

/// Reads the ends of a log's terms from its metadata: the tail counters and the count of terms.
pub fn log_tails(log: &File, term_length: usize) -> ([i64; 3], i32) {
    let mut bytes = [0; 28];
    let mut log = log;
    log.seek(SeekFrom::Start(3 * term_length as u64)).expect("the metadata");
    log.read_exact(&mut bytes).expect("tails");
    let tail = |index: usize| {
        i64::from_ne_bytes(bytes[8 * index..8 * index + 8].try_into().expect("8 bytes"))
    };
    let count = i32::from_ne_bytes(bytes[24..].try_into().expect("4 bytes"));
    ([tail(0), tail(1), tail(2)], count)
}

/// Tries until there is something other than a state that passes.
pub fn retry<T>(mut attempt: impl FnMut() -> Result<T, OfferError>) -> Result<T, OfferError> {
    await_some("an answer", || match attempt() {
        Err(error) if error.is_retryable() => None,
        outcome => Some(outcome),
    })
}

/// Offers until the message is accepted; panics on an error that repeating does not help.
pub fn offer(publication: &mut ExclusivePublication, message: &[u8]) -> i64 {
    retry(|| publication.offer(message)).unwrap_or_else(|error| panic!("{error}"))
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

/// The next `count` fragments or more: payload, flags, reserved value.
pub fn receive_fragments(subscription: &mut Subscription, count: usize) -> Vec<(Vec<u8>, u8, i64)> {
    let mut received = Vec::new();
    await_that("the fragments", || {
        let handler = |fragment: &[u8], header: &Header<'_>| {
            received.push((fragment.to_vec(), header.flags(), header.reserved_value()));
        };
        subscription.poll_fragments(handler, 10).expect("open");
        received.len() >= count
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
