//! The message path in Rust against Aeron's C functions: the same operations on two drivers have the
//! same results, and leave the same bytes in the log buffers.

use super::operations::{
    Contender, Fragment, HEADER_LENGTH, Media, Operation, Stream, Subject, TERM_LENGTH,
};
use rusteron_client::{ExclusivePublication, Publication};
use rusteron_sys as sys;
use rusteron_test_support::{Random, await_that};

/// Performs random operations with both contenders of a stream. Compares results, positions, logs, and received
/// messages.
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
