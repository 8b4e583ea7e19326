//! The message path in Rust against Aeron's C functions: the same operations on two drivers have
//! the same results, and leave the same bytes in the log buffers. On the same publication, in a
//! state in which nothing is written, both give the same result for messages of every length.

use std::ffi::c_void;
use std::io::IoSlice;

use rusteron_client::{
    Aeron, CloseCause, ExclusivePublication, OfferError, Publication, Publisher, Subscription,
};
use rusteron_sys as sys;
use rusteron_test_support::{
    Random, SHORT_TERMS, await_that, connect, connect_watchfully, connected_pair, context, launch,
    launch_with_long_timeouts, offer, shared_pair,
};

use super::operations::{
    Contender, Fragment, HEADER_LENGTH, Media, Operation, Stream, Subject, TERM_LENGTH, as_c,
};

/// Performs random operations with both contenders of a stream. Compares results, positions, logs,
/// and received messages.
fn random_operations<P: Subject>(stream: Stream, rounds: usize, seed: u64) -> Compared {
    let (mut rust, mut c) = (Contender::<P>::new(stream), Contender::<P>::new(stream));
    let max_payload = rust.publication.max_payload_length();
    let max_message = rust.publication.max_message_length();
    let mut random = Random::new(seed);

    let (mut rust_read, mut c_read) = (Vec::new(), Vec::new());
    let mut compared = Compared::default();
    let start = rust.publication.position().expect("open");
    for round in 0..rounds {
        let operation = match Operation::random(&mut random, max_payload, max_message) {
            Operation::Padding(length) if !P::CAN_PAD => Operation::Offer(random.bytes(length)),
            operation => operation,
        };
        let what = || format!("{stream:?}, round {round}, {operation}");
        let before = rust.publication.position().expect("open");
        let (in_rust, in_c) = (rust.perform_in_rust(&operation), c.perform_in_c(&operation));
        assert_eq!(in_rust, in_c, "{}", what());
        assert_eq!(rust.publication.position(), c.publication.position(), "{}", what());
        assert_eq!(rust.tails(), c.tails(), "{}", what());

        if let Operation::Batch(_) = operation {
            let after = rust.publication.position().expect("open");
            assert!(
                rust.frames(before, after) == c.frames(before, after),
                "{}: other frames from {before} to {after}",
                what()
            );
            compared.batches += 1;
        }
        let at_term_end = in_rust == i64::from(sys::AERON_PUBLICATION_ADMIN_ACTION);
        compared.admin_actions += usize::from(at_term_end);
        let has_padding = at_term_end && before % TERM_LENGTH != 0;
        let written = match operation {
            Operation::Batch(_) => before,
            _ if has_padding => before + HEADER_LENGTH,
            _ => operation.written(before, in_rust),
        };
        compared.bytes += written - before;
        assert!(
            rust.log(before, written) == c.log(before, written),
            "{}: other frames from {before} to {written}",
            what()
        );

        match stream.media {
            Media::Ipc => loop {
                let limit = random.below(11);
                let count = rust.poll_in_rust(limit, &mut rust_read);
                assert_eq!(count, c.poll_in_c(limit, &mut c_read), "{}, limit {limit}", what());
                if limit > 0 && count == 0 {
                    break;
                }
            },
            // Messages arrive one by one, or many at once.
            Media::Udp => {
                rust.receive_all(Contender::poll_in_rust, &mut rust_read);
                c.receive_all(Contender::poll_in_c, &mut c_read);
            }
        }
        assert!(rust_read == c_read, "{}: other fragments", what());
        rust_read.clear();
        c_read.clear();
    }
    compared.terms = (rust.publication.position().expect("open") - start) / TERM_LENGTH;
    compared
}

/// Amounts of compared data.
#[derive(Default)]
struct Compared {
    terms: i64,
    admin_actions: usize,
    bytes: i64,
    batches: usize,
}

fn over<P: Subject>(media: Media) {
    let stream = Stream { media, ..Stream::DEFAULT };
    let Compared { admin_actions, bytes, batches, .. } = random_operations::<P>(stream, 2_500, 42);
    assert!(admin_actions > 10, "only {admin_actions} terms came to an end");
    assert!(batches > 100, "only {batches} batches");
    assert!(bytes > 10 * TERM_LENGTH, "only {bytes} bytes compared");
}

#[test]
fn exclusive_over_ipc() {
    over::<ExclusivePublication>(Media::Ipc);
}

#[test]
fn shared_over_ipc() {
    over::<Publication>(Media::Ipc);
}

#[test]
fn exclusive_over_udp() {
    over::<ExclusivePublication>(Media::Udp);
}

#[test]
fn shared_over_udp() {
    over::<Publication>(Media::Udp);
}

/// Every number in a header that has a sign has it here, next to ones without.
fn extreme_ids<P: Subject>() {
    const IDS: [[i32; 3]; 6] = [
        [i32::MIN, i32::MAX, i32::MIN],
        [i32::MAX, i32::MIN, -1],
        [-1, -1, -2],
        [0, -1, i32::MAX],
        [-1, 0, 0],
        [i32::MIN, i32::MIN, i32::MAX - 2],
    ];
    for (seed, [session_id, stream_id, initial_term_id]) in (1..).zip(IDS) {
        let ids = Stream { session_id, stream_id, initial_term_id, ..Stream::DEFAULT };
        let compared = random_operations::<P>(ids, 300, seed);
        assert!(compared.terms > 1, "{ids:?}: only {} terms", compared.terms);
    }
}

#[test]
fn extreme_ids_exclusive() {
    extreme_ids::<ExclusivePublication>();
}

#[test]
fn extreme_ids_shared() {
    extreme_ids::<Publication>();
}

fn alternate<P: Subject>() {
    let mut contender = Contender::<P>::new(Stream::DEFAULT);
    let mut random = Random::new(7);
    let mut read = Vec::new();
    for round in 0..1_000 {
        let length = random.below(3_000);
        let message = random.bytes(length);
        let operation = Operation::Offer(message.clone());
        await_that("an available window", || {
            let result = if random.below(2) == 0 {
                contender.perform_in_rust(&operation)
            } else {
                contender.perform_in_c(&operation)
            };
            result > 0
        });
        let mut assembled = Vec::new();
        while assembled.len() < length || (length == 0 && read.is_empty()) {
            read.clear();
            if random.below(2) == 0 {
                contender.poll_in_rust(10, &mut read);
            } else {
                contender.poll_in_c(10, &mut read);
            }
            read.iter().for_each(|fragment: &Fragment| assembled.extend_from_slice(&fragment.0));
        }
        read.clear();
        assert!(assembled == message, "round {round}");
    }
}

#[test]
fn alternate_on_one_exclusive_publication() {
    alternate::<ExclusivePublication>();
}

#[test]
fn alternate_on_one_shared_publication() {
    alternate::<Publication>();
}

/// Lengths around the ends of fragments and messages of a publication with terms of 64 KiB.
fn lengths(max_payload: usize, max_message: usize) -> Vec<usize> {
    let around = |length: usize| [length - 1, length, length + 1];
    [0, 1, 31, 32, 33].into_iter().chain(around(max_payload)).chain(around(max_message)).collect()
}

/// For each length, the results of the offers, the claim and the batch of both contenders;
/// `expected` where the length can be accepted.
fn same_answers<P: Subject>(publication: &mut P, expected: OfferError) {
    let before = publication.position();
    let max_message = publication.max_message_length();
    for length in lengths(publication.max_payload_length(), max_message) {
        let message = vec![7; length];
        let (head, tail) = message.split_at(length / 2);
        let offered = publication.c_offer(&message);
        let iovec = |part: &[u8]| sys::aeron_iovec_t {
            iov_base: part.as_ptr().cast_mut(),
            iov_len: part.len(),
        };
        // SAFETY: the parts live as long as the message.
        let in_parts = unsafe { publication.c_offer_parts(&mut [iovec(head), iovec(tail)], None) };
        let (claimed, _) = publication.c_try_claim(length);
        let rust_offered = publication.offer(&message);
        let rust_in_parts = publication.offer_parts(&[IoSlice::new(head), IoSlice::new(tail)]);
        let rust_claimed = publication.try_claim(length).map(|claim| claim.position());
        let batch = publication.offer_batch(&[&message]);
        assert_eq!((batch.accepted, batch.stopped_by), (0, rust_offered.err()));

        if length <= max_message {
            assert_eq!(rust_offered, Err(expected), "{length} bytes");
            assert_eq!(as_c(rust_offered), offered, "{length} bytes");
            assert_eq!(as_c(rust_in_parts), in_parts, "{length} bytes in parts");
        } else {
            // C looks at the length last. Waiting for a subscriber would not help.
            let error = rust_offered.expect_err("too long");
            assert!(
                matches!(error, OfferError::MessageTooLong { .. } | OfferError::Closed(_)),
                "{error}"
            );
            assert_eq!(rust_in_parts, Err(error));
        }
        assert_eq!(as_c(rust_claimed), claimed, "a claim of {length} bytes");
    }
    assert_eq!(publication.position(), before, "something was written");
}

fn shared_and_exclusive(aeron: &Aeron, channel: &str) -> (Publication, ExclusivePublication) {
    let shared = aeron.add_publication(channel, 1002).expect("a publication");
    let exclusive = aeron.add_exclusive_publication(channel, 1001).expect("a publication");
    (shared, exclusive)
}

#[test]
fn not_connected() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut shared, mut exclusive) = shared_and_exclusive(&aeron, SHORT_TERMS);
    same_answers(&mut shared, OfferError::NotConnected);
    same_answers(&mut exclusive, OfferError::NotConnected);
}

#[test]
fn back_pressured() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, _subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (mut shared, _other) = shared_pair(&aeron, SHORT_TERMS);
    await_that("back-pressure", || exclusive.offer(&[0; 500]) == Err(OfferError::BackPressured));
    await_that("back-pressure", || shared.offer(&[0; 500]) == Err(OfferError::BackPressured));
    same_answers(&mut exclusive, OfferError::BackPressured);
    same_answers(&mut shared, OfferError::BackPressured);
}

#[test]
fn closed_with_the_client() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let (mut shared, mut exclusive) = shared_and_exclusive(&aeron, SHORT_TERMS);
    drop(driver);
    // The client says that it is closed before each of its resources does.
    await_that("the publications are closed", || shared.is_closed() && exclusive.is_closed());
    assert!(aeron.is_closed());
    same_answers(&mut shared, OfferError::Closed(CloseCause::DriverShutdown));
    same_answers(&mut exclusive, OfferError::Closed(CloseCause::DriverShutdown));
}

unsafe extern "C" fn count(
    clientd: *mut c_void,
    _: *const u8,
    length: usize,
    _: *mut sys::aeron_header_t,
) {
    // SAFETY: the test passes the address of a number that only this call uses.
    unsafe { *clientd.cast::<usize>() += length };
}

#[test]
fn revoked_before_everything_is_read() {
    const MESSAGE: [u8; 32] = [7; 32];
    let driver = launch_with_long_timeouts();
    let publisher = connect(&driver);
    let mut context = context(driver.aeron_dir());
    context.set_use_conductor_agent_invoker(true).expect("a setting");
    // It learns that the publisher is gone when it is told to look.
    let subscriber = Aeron::connect(context).expect("a client");
    let mut subscription = subscriber.add_subscription(SHORT_TERMS, 1001).expect("a subscription");
    let mut publication =
        publisher.add_exclusive_publication(SHORT_TERMS, 1001).expect("a publication");
    await_that("the connection", || {
        subscriber.do_work().expect("work");
        publication.is_connected() && subscription.is_connected()
    });
    for _ in 0..8 {
        offer(&mut publication, &MESSAGE);
    }
    publication.revoke();

    let poll_in_c = |subscription: &mut Subscription| {
        let mut bytes = 0_usize;
        let clientd = (&raw mut bytes).cast();
        // SAFETY: the subscription is live and used by this thread only, and so is the number.
        let fragments =
            unsafe { sys::aeron_subscription_poll(subscription.as_ptr(), Some(count), clientd, 2) };
        (fragments, bytes)
    };
    let poll_in_rust = |subscription: &mut Subscription| {
        let mut bytes = 0;
        let fragments = subscription.poll_fragments(|message, _| bytes += message.len(), 2);
        (fragments.expect("open") as i32, bytes)
    };
    await_that("the end of the stream", || {
        subscription.image_at_index(0).expect("an image").is_publication_revoked()
    });
    // The image is still there, and so are the sent messages, for both.
    let start = subscription.image_at_index(0).expect("an image").position();
    assert_eq!(poll_in_rust(&mut subscription), (2, 64));
    assert_eq!(poll_in_c(&mut subscription), (2, 64));
    let end = subscription.image_at_index(0).expect("an image").position();
    assert_eq!(end, start + 4 * 64);

    await_that("the image is gone", || {
        subscriber.do_work().expect("work");
        subscription.image_count() == 0
    });
    assert_eq!(poll_in_rust(&mut subscription), (0, 0));
    assert_eq!(poll_in_c(&mut subscription), (0, 0));
}

/// At the end of the last term there is: after a message that was too long for the rest of it, and
/// after padding that just fits.
#[test]
fn max_position_exceeded() {
    let driver = launch();
    let aeron = connect(&driver);
    let channel = "aeron:ipc?term-length=64k|init-term-id=0|term-id=2147483647|term-offset=65408";
    let (mut exclusive, _subscription) = connected_pair(&aeron, channel);
    let (mut shared, _other) = shared_pair(&aeron, channel);
    assert_eq!(shared.offer(&[0; 200]), Err(OfferError::MaxPositionExceeded));
    assert_eq!(shared.position(), Ok(1 << 47));
    same_answers(&mut shared, OfferError::MaxPositionExceeded);
    assert_eq!(exclusive.append_padding(96), Ok(1 << 47));
    same_answers(&mut exclusive, OfferError::MaxPositionExceeded);
    let (mut exclusive, _third) = connected_pair(&aeron, channel);
    assert_eq!(exclusive.offer(&[0; 200]), Err(OfferError::MaxPositionExceeded));
    assert_eq!(exclusive.position(), Ok(1 << 47));
    same_answers(&mut exclusive, OfferError::MaxPositionExceeded);
}
