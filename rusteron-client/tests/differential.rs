//! The message path in Rust against Aeron's C functions: the same operations on two drivers have the
//! same results, and leave the same bytes in the log buffers.

#[path = "support/operations.rs"]
mod operations;
mod support;

use operations::{Fragment, HEADER_LENGTH, Operation, Side, Subject, TERM_LENGTH};
use rusteron_client::{ExclusivePublication, Publication};
use rusteron_sys as sys;
use support::{Random, await_that};

fn random_operations<P: Subject>() {
    let (mut rust, mut c) = (Side::<P>::new(), Side::<P>::new());
    let max_payload = rust.publication.constants().max_payload_length;
    let max_message = rust.publication.constants().max_message_length;
    let mut random = Random::new(42);

    let (mut rust_read, mut c_read) = (Vec::new(), Vec::new());
    let (mut admin_actions, mut bytes_compared, mut batches) = (0, 0, 0);
    for round in 0..2_500 {
        let operation = match Operation::random(&mut random, max_payload, max_message) {
            Operation::Padding(length) if !P::CAN_PAD => Operation::Offer(random.bytes(length)),
            operation => operation,
        };
        let before = rust.publication.position().expect("open");
        let (in_rust, in_c) = (rust.perform_in_rust(&operation), c.perform_in_c(&operation));
        assert_eq!(in_rust, in_c, "round {round}, {operation}");
        assert_eq!(rust.publication.position(), c.publication.position(), "round {round}");

        if let Operation::Batch(_) = operation {
            let after = rust.publication.position().expect("open");
            assert!(
                rust.frames(before, after) == c.frames(before, after),
                "round {round}, {operation}: other frames from {before} to {after}"
            );
            batches += 1;
        }
        let at_term_end = in_rust == sys::AERON_PUBLICATION_ADMIN_ACTION.into();
        admin_actions += usize::from(at_term_end);
        let has_padding = at_term_end && before % TERM_LENGTH != 0;
        let written = match operation {
            Operation::Batch(_) => before,
            _ if has_padding => before + HEADER_LENGTH,
            _ => operation.written(before, in_rust),
        };
        bytes_compared += written - before;
        assert!(
            rust.log(before, written) == c.log(before, written),
            "round {round}, {operation}: other frames from {before} to {written}"
        );

        loop {
            let limit = random.below(11);
            let count = rust.poll_in_rust(limit, &mut rust_read);
            assert_eq!(count, c.poll_in_c(limit, &mut c_read), "round {round}, limit {limit}");
            if limit > 0 && count == 0 {
                break;
            }
        }
        assert!(rust_read == c_read, "round {round}: other fragments");
        rust_read.clear();
        c_read.clear();
    }
    assert!(admin_actions > 10, "only {admin_actions} terms came to an end");
    assert!(batches > 100, "only {batches} batches");
    assert!(bytes_compared > 10 * TERM_LENGTH, "only {bytes_compared} bytes compared");
}

#[test]
fn random_operations_through_both_paths_leave_the_same_log_and_read_the_same() {
    random_operations::<ExclusivePublication>();
}

#[test]
fn random_operations_on_a_shared_publication_leave_the_same_log_and_read_the_same() {
    random_operations::<Publication>();
}

fn alternate<P: Subject>() {
    let mut side = Side::<P>::new();
    let mut random = Random::new(7);
    let mut read = Vec::new();
    for round in 0..1_000 {
        let length = random.below(3_000);
        let message = random.bytes(length);
        let operation = Operation::Offer(message.clone());
        await_that("a place", || {
            let result = if random.below(2) == 0 {
                side.perform_in_rust(&operation)
            } else {
                side.perform_in_c(&operation)
            };
            result > 0
        });
        let mut assembled = Vec::new();
        while assembled.len() < length || (length == 0 && read.is_empty()) {
            read.clear();
            if random.below(2) == 0 {
                side.poll_in_rust(10, &mut read);
            } else {
                side.poll_in_c(10, &mut read);
            }
            read.iter().for_each(|fragment: &Fragment| assembled.extend_from_slice(&fragment.0));
        }
        read.clear();
        assert!(assembled == message, "round {round}");
    }
}

#[test]
fn both_paths_write_alternately_on_the_same_publication() {
    alternate::<ExclusivePublication>();
}

#[test]
fn both_paths_write_alternately_on_the_same_shared_publication() {
    alternate::<Publication>();
}
