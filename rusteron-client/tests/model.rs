//! Random sequences of everything a publisher can do, against a model that knows each position and
//! each byte that a subscriber must see.

mod support;

use std::io::IoSlice;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestCaseResult, TestRunner};
use rusteron_client::{
    Aeron, BufferClaim, ExclusivePublication, OfferError, Publication, Subscription,
};
use support::{SHORT_TERMS, await_some, await_that, connect, launch};

const TERM_LENGTH: i64 = 64 * 1024;
const MAX_PAYLOAD: usize = 1_376;
const MAX_MESSAGE: usize = 8 * 1024;

#[derive(Debug, Clone)]
enum Operation {
    Offer(usize),
    Parts(Vec<usize>),
    ReservedValue(usize, i64),
    Claim(usize, Ending),
    /// For exclusive publications; a claim that is aborted otherwise.
    Padding(usize),
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Commit(i64),
    Abort,
    Drop,
}

fn operation() -> impl Strategy<Value = Operation> {
    let payload = || prop_oneof![3 => 0..200_usize, 1 => 0..=MAX_PAYLOAD, 1 => Just(MAX_PAYLOAD)];
    let message = || prop_oneof![3 => payload(), 1 => 0..=MAX_MESSAGE, 1 => Just(MAX_MESSAGE)];
    let ending = prop_oneof![
        any::<i64>().prop_map(Ending::Commit),
        Just(Ending::Abort),
        Just(Ending::Drop),
    ];
    prop_oneof![
        message().prop_map(Operation::Offer),
        prop::collection::vec(0..2_000_usize, 0..5).prop_map(Operation::Parts),
        (message(), any::<i64>())
            .prop_map(|(length, value)| Operation::ReservedValue(length, value)),
        (payload(), ending).prop_map(|(length, ending)| Operation::Claim(length, ending)),
        payload().prop_map(Operation::Padding),
    ]
}

/// Both kinds of publications, as far as they do the same.
trait Publisher {
    fn attempt(&mut self, operation: &Operation, bytes: &[u8]) -> Result<i64, OfferError>;
    fn is_connected(&self) -> bool;
}

fn parts<'a>(lengths: &[usize], mut bytes: &'a [u8]) -> Vec<IoSlice<'a>> {
    let cut = |&length: &usize| {
        let (part, rest) = bytes.split_at(length);
        bytes = rest;
        IoSlice::new(part)
    };
    lengths.iter().map(cut).collect()
}

fn finish(mut claim: BufferClaim<'_>, ending: Ending, bytes: &[u8]) -> i64 {
    let position = claim.position();
    claim.copy_from_slice(bytes);
    match ending {
        Ending::Commit(value) => {
            claim.set_reserved_value(value);
            assert_eq!(claim.commit(), Ok(position));
        }
        Ending::Abort => claim.abort(),
        Ending::Drop => drop(claim),
    }
    position
}

impl Publisher for ExclusivePublication {
    fn attempt(&mut self, operation: &Operation, bytes: &[u8]) -> Result<i64, OfferError> {
        match operation {
            Operation::Offer(_) => self.offer(bytes),
            Operation::Parts(lengths) => self.offer_parts(&parts(lengths, bytes)),
            Operation::ReservedValue(_, value) => {
                self.offer_with_reserved_value(bytes, |payload| value ^ payload.len() as i64)
            }
            Operation::Claim(length, ending) => {
                self.try_claim(*length).map(|claim| finish(claim, *ending, bytes))
            }
            Operation::Padding(length) => self.append_padding(*length),
        }
    }

    fn is_connected(&self) -> bool {
        self.is_connected()
    }
}

impl Publisher for Publication {
    fn attempt(&mut self, operation: &Operation, bytes: &[u8]) -> Result<i64, OfferError> {
        match operation {
            Operation::Offer(_) => self.offer(bytes),
            Operation::Parts(lengths) => self.offer_parts(&parts(lengths, bytes)),
            Operation::ReservedValue(_, value) => {
                self.offer_with_reserved_value(bytes, |payload| value ^ payload.len() as i64)
            }
            Operation::Claim(length, ending) => {
                self.try_claim(*length).map(|claim| finish(claim, *ending, bytes))
            }
            Operation::Padding(length) => {
                self.try_claim(*length).map(|claim| finish(claim, Ending::Abort, bytes))
            }
        }
    }

    fn is_connected(&self) -> bool {
        self.is_connected()
    }
}

/// A fragment: flags, reserved value, payload.
type Fragment = (u8, i64, Vec<u8>);

/// What the stream must be.
#[derive(Default)]
struct Model {
    position: i64,
    fragments: Vec<Fragment>,
    count: u8,
}

impl Model {
    /// The bytes of the next message, different from those of the last.
    fn bytes(&mut self, operation: &Operation) -> Vec<u8> {
        let length = match operation {
            Operation::Offer(length)
            | Operation::ReservedValue(length, _)
            | Operation::Claim(length, _)
            | Operation::Padding(length) => *length,
            Operation::Parts(lengths) => lengths.iter().sum(),
        };
        self.count = self.count.wrapping_add(1);
        (0..length).map(|index| (index as u8).wrapping_mul(7).wrapping_add(self.count)).collect()
    }

    /// What the operation leaves behind, and where it ends.
    fn apply(&mut self, operation: &Operation, bytes: &[u8]) -> i64 {
        let mut payloads: Vec<&[u8]> = match operation {
            Operation::Padding(_) => vec![bytes],
            _ => bytes.chunks(MAX_PAYLOAD).collect(),
        };
        if payloads.is_empty() {
            payloads.push(&[]);
        }
        let framed = |payload: &&[u8]| (payload.len() + 32).next_multiple_of(32) as i64;
        let length: i64 = payloads.iter().map(framed).sum();
        let left = TERM_LENGTH - self.position % TERM_LENGTH;
        if length > left {
            self.position += left;
        }
        self.position += length;

        let last = payloads.len() - 1;
        for (index, payload) in payloads.into_iter().enumerate() {
            let flags = if index == 0 { 0x80 } else { 0 } | if index == last { 0x40 } else { 0 };
            let reserved_value = match operation {
                Operation::Offer(_) | Operation::Parts(_) => 0,
                Operation::ReservedValue(_, value) => value ^ payload.len() as i64,
                Operation::Claim(_, Ending::Commit(value)) => *value,
                Operation::Claim(_, Ending::Abort | Ending::Drop) | Operation::Padding(_) => {
                    return self.position;
                }
            };
            self.fragments.push((flags, reserved_value, payload.to_vec()));
        }
        self.position
    }
}

fn run(
    publisher: &mut impl Publisher,
    subscription: &mut Subscription,
    operations: &[Operation],
) -> TestCaseResult {
    await_that("the connection", || publisher.is_connected() && subscription.is_connected());
    let (mut model, mut received) = (Model::default(), Vec::<Fragment>::new());
    let mut poll = |received: &mut Vec<Fragment>| {
        let handler = |payload: &[u8], header: &rusteron_client::Header<'_>| {
            received.push((header.flags(), header.reserved_value(), payload.to_vec()));
        };
        subscription.poll_fragments(handler, 10).expect("open")
    };
    for operation in operations {
        let bytes = model.bytes(operation);
        let expected = model.apply(operation, &bytes);
        let outcome = await_some("an answer", || match publisher.attempt(operation, &bytes) {
            Err(OfferError::AdminAction) => None,
            Err(OfferError::BackPressured) => {
                poll(&mut received);
                None
            }
            // Longer than a message can be, which parts are free to be together.
            Err(error) => Some(Err(error)),
            Ok(position) => Some(Ok(position)),
        });
        prop_assert_eq!(outcome, Ok(expected), "{:?}", operation);
    }
    // One more, after which there is nothing.
    let last = Operation::Offer(1);
    let bytes = model.bytes(&last);
    model.apply(&last, &bytes);
    await_that("a place for the last", || {
        poll(&mut received);
        publisher.attempt(&last, &bytes).is_ok()
    });
    await_that("the messages", || {
        poll(&mut received);
        received.len() >= model.fragments.len()
    });
    prop_assert_eq!(poll(&mut received), 0);
    for (index, (is, should)) in received.iter().zip(&model.fragments).enumerate() {
        prop_assert!(is == should, "fragment {} differs", index);
    }
    prop_assert_eq!(received.len(), model.fragments.len());
    Ok(())
}

/// Runs cases on streams of their own of one driver.
fn check(case: impl Fn(&Aeron, i32, &[Operation]) -> TestCaseResult) {
    let driver = launch();
    let aeron = connect(&driver);
    let stream_id = std::cell::Cell::new(0);
    let mut runner =
        TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&prop::collection::vec(operation(), 1..150), |operations| {
        stream_id.set(stream_id.get() + 1);
        case(&aeron, stream_id.get(), &operations)
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

fn failed(error: rusteron_client::Error) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

#[test]
fn a_subscriber_sees_what_an_exclusive_publication_did() {
    check(|aeron, stream_id, operations| {
        let mut subscription = aeron.add_subscription(SHORT_TERMS, stream_id).map_err(failed)?;
        let mut publication =
            aeron.add_exclusive_publication(SHORT_TERMS, stream_id).map_err(failed)?;
        run(&mut publication, &mut subscription, operations)
    });
}

#[test]
fn a_subscriber_sees_what_a_shared_publication_did() {
    check(|aeron, stream_id, operations| {
        let mut subscription = aeron.add_subscription(SHORT_TERMS, stream_id).map_err(failed)?;
        let mut publication = aeron.add_publication(SHORT_TERMS, stream_id).map_err(failed)?;
        run(&mut publication, &mut subscription, operations)
    });
}
