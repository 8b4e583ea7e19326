//! The single calls of the message path, in Rust and in C, by one thread that publishes a batch and then
//! receives it.
//!
//! Times are per message. Only the call in the name is timed: in between, the other end of the stream
//! catches up, and the driver moves the limit. The memory of a batch is in this core's caches, which
//! it is not between two threads: compare calls with each other, not with rates of throughput.

use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use rusteron_benchmarks::command_line::driver_options::DriverOptions;
use rusteron_benchmarks::command_line::failure::Failure;
use rusteron_benchmarks::command_line::interrupt::Interrupt;
use rusteron_benchmarks::measuring::connection::{Connection, Stream};
use rusteron_benchmarks::measuring::message_path::Poll;
use rusteron_client::{Action, ExclusivePublication, Header, OfferError, Subscription};
use rusteron_sys as sys;

/// How many bytes are published before they are received: a small part of a term.
const BATCH_BYTES: usize = 512 << 10;
const FRAGMENT_LIMIT: usize = 10;
const SHORT: usize = 32;
/// Three fragments.
const LONG: usize = 4096;

/// A stream with messages of one length, both ends in this thread.
struct Bench {
    publication: ExclusivePublication,
    subscription: Subscription,
    message: Vec<u8>,
    // Dropped last.
    _connection: Connection,
}

impl Bench {
    fn new(length: usize) -> Result<Self, Failure> {
        let options = DriverOptions { term_length: Some(16 << 20), threading_mode: None };
        let connection = Connection::embedded(options.driver_context()?)?;
        let channel = "aeron:ipc".parse().map_err(Failure::Run)?;
        let Stream { publication, subscription } =
            connection.open(&channel, 5001, &Interrupt::default())?;
        let message = vec![7; length];
        Ok(Self { publication, subscription, message, _connection: connection })
    }

    fn batch(&self) -> u64 {
        (BATCH_BYTES / (self.message.len() + 32)) as u64
    }

    /// Waits until the driver lets a whole batch be published.
    fn await_window(&self) {
        let window = || self.publication.available_window().expect("an open publication");
        while window() < 2 * BATCH_BYTES {
            thread::yield_now();
        }
    }

    /// Publishes some messages.
    fn publish(&mut self, count: u64) {
        for _ in 0..count {
            until_taken(|| self.publication.offer(&self.message).map(|_| ()));
        }
    }

    /// Receives so many messages.
    fn receive(&mut self, count: u64) {
        let expected = count * self.message.len() as u64;
        let mut bytes = 0;
        while bytes < expected {
            let polled = Poll::poll(&mut self.subscription, &mut bytes, FRAGMENT_LIMIT);
            polled.expect("an open subscription");
        }
    }

    /// Times a call that publishes one message of the length.
    fn time_publishing(
        &mut self,
        iterations: u64,
        mut call: impl FnMut(&mut ExclusivePublication, &[u8]) -> Result<(), OfferError>,
    ) -> Duration {
        let mut elapsed = Duration::ZERO;
        let mut remaining = iterations;
        while remaining > 0 {
            let count = remaining.min(self.batch());
            self.await_window();
            let start = Instant::now();
            for _ in 0..count {
                until_taken(|| call(&mut self.publication, black_box(&self.message)));
            }
            elapsed += start.elapsed();
            self.receive(count);
            remaining -= count;
        }
        elapsed
    }

    /// Times calls that receive messages and add their bytes to a number, until all have come.
    fn time_receiving(
        &mut self,
        iterations: u64,
        mut call: impl FnMut(&mut Subscription, &mut u64),
    ) -> Duration {
        let mut elapsed = Duration::ZERO;
        let mut remaining = iterations;
        while remaining > 0 {
            let count = remaining.min(self.batch());
            self.await_window();
            self.publish(count);
            let expected = count * self.message.len() as u64;
            let mut bytes = 0;
            let start = Instant::now();
            while bytes < expected {
                call(&mut self.subscription, &mut bytes);
            }
            elapsed += start.elapsed();
            assert_eq!(bytes, expected);
            remaining -= count;
        }
        elapsed
    }
}

/// Repeats an offer until it is accepted.
#[inline(always)]
fn until_taken(mut offer: impl FnMut() -> Result<(), OfferError>) {
    while let Err(error) = offer() {
        assert!(error.is_retryable(), "{error}");
        thread::yield_now();
    }
}

fn publishing(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    mut call: impl FnMut(&mut ExclusivePublication, &[u8]) -> Result<(), OfferError>,
) {
    let mut bench = Bench::new(SHORT).expect("a driver and a stream");
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| bench.time_publishing(iterations, &mut call));
    });
}

fn receiving(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    length: usize,
    mut call: impl FnMut(&mut Subscription, &mut u64),
) {
    let mut bench = Bench::new(length).expect("a driver and a stream");
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| bench.time_receiving(iterations, &mut call));
    });
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    calls(&mut criterion);
    criterion.final_summary();
}

fn calls(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("offer, 32 B");
    group.throughput(Throughput::Elements(1));
    publishing(&mut group, "Rust", |publication, message| publication.offer(message).map(|_| ()));
    publishing(&mut group, "C", c_offer);
    group.finish();

    let mut group = criterion.benchmark_group("claim, write and commit, 32 B");
    group.throughput(Throughput::Elements(1));
    publishing(&mut group, "Rust", |publication, message| {
        let mut claim = publication.try_claim(message.len())?;
        claim.copy_from_slice(message);
        claim.commit().map(|_| ())
    });
    publishing(&mut group, "C", c_claim);
    group.finish();

    let mut group = criterion.benchmark_group("poll, 32 B");
    group.throughput(Throughput::Elements(1));
    receiving(&mut group, "Rust, messages", SHORT, |subscription, bytes| {
        Poll::poll(subscription, bytes, FRAGMENT_LIMIT).expect("an open subscription");
    });
    receiving(&mut group, "Rust, fragments", SHORT, |subscription, bytes| {
        let count = |fragment: &[u8], _: &Header<'_>| *bytes += fragment.len() as u64;
        subscription.poll_fragments(count, FRAGMENT_LIMIT).expect("an open subscription");
    });
    receiving(&mut group, "C, fragments", SHORT, |subscription, bytes| {
        c_poll(subscription, bytes, count)
    });
    group.finish();

    let mut group = criterion.benchmark_group("controlled poll, 32 B");
    group.throughput(Throughput::Elements(1));
    receiving(&mut group, "Rust, messages", SHORT, |subscription, bytes| {
        let count = |message: &[u8], _: &Header<'_>| {
            *bytes += message.len() as u64;
            Action::Continue
        };
        subscription.controlled_poll(count, FRAGMENT_LIMIT).expect("an open subscription");
    });
    receiving(&mut group, "C, fragments", SHORT, c_controlled_poll);
    group.finish();

    let mut group = criterion.benchmark_group("poll, position and session of each, 32 B");
    group.throughput(Throughput::Elements(1));
    receiving(&mut group, "Rust", SHORT, |subscription, bytes| {
        let look = |message: &[u8], header: &Header<'_>| {
            black_box((header.position(), header.session_id(), header.reserved_value()));
            *bytes += message.len() as u64;
        };
        subscription.poll(look, FRAGMENT_LIMIT).expect("an open subscription");
    });
    receiving(&mut group, "C", SHORT, |subscription, bytes| c_poll(subscription, bytes, look));
    group.finish();

    let mut group = criterion.benchmark_group("poll, assembling 4,096 B");
    group.throughput(Throughput::Elements(1));
    receiving(&mut group, "Rust", LONG, |subscription, bytes| {
        Poll::poll(subscription, bytes, FRAGMENT_LIMIT).expect("an open subscription");
    });
    let mut assembler = CAssembler::new();
    receiving(&mut group, "C", LONG, |subscription, bytes| assembler.poll(subscription, bytes));
    group.finish();
}

fn c_offer(publication: &mut ExclusivePublication, message: &[u8]) -> Result<(), OfferError> {
    // SAFETY: the publication is live, and `&mut` is its only user; the message is readable for its whole
    // length, and without a supplier C calls nothing back.
    let returned = unsafe {
        sys::aeron_exclusive_publication_offer(
            publication.as_ptr(),
            message.as_ptr(),
            message.len(),
            None,
            ptr::null_mut(),
        )
    };
    // Nothing but a full window can be in the way here.
    if returned >= 0 { Ok(()) } else { Err(OfferError::BackPressured) }
}

fn c_claim(publication: &mut ExclusivePublication, message: &[u8]) -> Result<(), OfferError> {
    let mut claim = sys::aeron_buffer_claim_t {
        frame_header: ptr::null_mut(),
        data: ptr::null_mut(),
        length: 0,
    };
    // SAFETY: the publication is live, and `&mut` is its only user; C fills the claim in.
    let returned = unsafe {
        sys::aeron_exclusive_publication_try_claim(publication.as_ptr(), message.len(), &mut claim)
    };
    if returned < 0 {
        return Err(OfferError::BackPressured);
    }
    // SAFETY: the claim is this thread's, and as long as the message.
    unsafe {
        ptr::copy_nonoverlapping(message.as_ptr(), claim.data, message.len());
        sys::aeron_buffer_claim_commit(&mut claim);
    }
    Ok(())
}

type FragmentHandler =
    unsafe extern "C" fn(*mut c_void, *const u8, usize, *mut sys::aeron_header_t);

fn c_poll(subscription: &mut Subscription, bytes: &mut u64, handler: FragmentHandler) {
    // SAFETY: the subscription is live, and `&mut` is its only user; the handlers here take the number for
    // what it is, and it lives during the call.
    let returned = unsafe {
        sys::aeron_subscription_poll(
            subscription.as_ptr(),
            Some(handler),
            ptr::from_mut(bytes).cast(),
            FRAGMENT_LIMIT,
        )
    };
    assert!(returned >= 0);
}

fn c_controlled_poll(subscription: &mut Subscription, bytes: &mut u64) {
    // SAFETY: as in `c_poll`.
    let returned = unsafe {
        sys::aeron_subscription_controlled_poll(
            subscription.as_ptr(),
            Some(controlled_count),
            ptr::from_mut(bytes).cast(),
            FRAGMENT_LIMIT,
        )
    };
    assert!(returned >= 0);
}

/// # Safety
/// `clientd` points to a `u64` that no other code uses meanwhile.
unsafe extern "C" fn count(
    clientd: *mut c_void,
    _buffer: *const u8,
    length: usize,
    _header: *mut sys::aeron_header_t,
) {
    // SAFETY: by the contract.
    unsafe { *clientd.cast::<u64>() += length as u64 };
}

/// # Safety
/// As for [`count`].
unsafe extern "C" fn controlled_count(
    clientd: *mut c_void,
    _buffer: *const u8,
    length: usize,
    _header: *mut sys::aeron_header_t,
) -> sys::aeron_controlled_fragment_handler_action_t {
    // SAFETY: by the contract.
    unsafe { *clientd.cast::<u64>() += length as u64 };
    sys::aeron_controlled_fragment_handler_action_en_AERON_ACTION_CONTINUE
}

/// # Safety
/// As for [`count`]; the header is live.
unsafe extern "C" fn look(
    clientd: *mut c_void,
    _buffer: *const u8,
    length: usize,
    header: *mut sys::aeron_header_t,
) {
    let mut values = std::mem::MaybeUninit::uninit();
    // SAFETY: the header is live by the contract, and C fills the values in.
    let values = unsafe {
        sys::aeron_header_values(header, values.as_mut_ptr());
        values.assume_init()
    };
    // SAFETY: the header is live by the contract.
    let position = unsafe { sys::aeron_header_position(header) };
    // Copied, because the structure is packed.
    let (session_id, reserved_value) = (values.frame.session_id, values.frame.reserved_value);
    black_box((position, session_id, reserved_value));
    // SAFETY: by the contract.
    unsafe { *clientd.cast::<u64>() += length as u64 };
}

/// C's fragment assembler, which counts bytes.
struct CAssembler {
    raw: *mut sys::aeron_fragment_assembler_t,
    /// The handler's client data of the assembler, behind `bytes`.
    bytes: *mut u64,
}

impl CAssembler {
    fn new() -> Self {
        let (mut raw, bytes) = (ptr::null_mut(), Box::into_raw(Box::new(0_u64)));
        // SAFETY: the handler takes the number for what it is; it lives until the assembler is deleted.
        let returned =
            unsafe { sys::aeron_fragment_assembler_create(&mut raw, Some(count), bytes.cast()) };
        assert_eq!(returned, 0);
        Self { raw, bytes }
    }

    fn poll(&mut self, subscription: &mut Subscription, bytes: &mut u64) {
        // SAFETY: the subscription is live, and `&mut` is its only user; so is the assembler.
        let returned = unsafe {
            sys::aeron_subscription_poll(
                subscription.as_ptr(),
                Some(sys::aeron_fragment_assembler_handler),
                self.raw.cast(),
                FRAGMENT_LIMIT,
            )
        };
        assert!(returned >= 0);
        // SAFETY: the number lives as long as `self`, and C writes to it during the poll only.
        *bytes += std::mem::take(unsafe { &mut *self.bytes });
    }
}

impl Drop for CAssembler {
    fn drop(&mut self) {
        // SAFETY: nobody uses the assembler any more, and then nobody the number, which was a box.
        unsafe {
            sys::aeron_fragment_assembler_delete(self.raw);
            drop(Box::from_raw(self.bytes));
        }
    }
}
