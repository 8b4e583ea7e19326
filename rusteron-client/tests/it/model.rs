//! Random sequences of everything a publisher can do, read in random ways, against a model that
//! knows each position and each byte that a subscriber must see.

use std::io::IoSlice;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestCaseResult, TestRunner};
use rusteron_client::{
    Action, Aeron, BufferClaim, ExclusivePublication, FragmentAssembler, Header, Messages,
    OfferError, Publication, Publisher, Subscription,
};
use rusteron_test_support::{Random, SHORT_TERMS, await_some, await_that, connect, launch};

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
    assert_eq!(claim.as_ptr().addr() % 32, 0);
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

/// A publication of either kind, and what it does instead of appending padding.
trait Subject: Publisher {
    fn pad(&mut self, length: usize, bytes: &[u8]) -> Result<i64, OfferError>;
}

impl Subject for ExclusivePublication {
    fn pad(&mut self, length: usize, _: &[u8]) -> Result<i64, OfferError> {
        self.append_padding(length)
    }
}

impl Subject for Publication {
    fn pad(&mut self, length: usize, bytes: &[u8]) -> Result<i64, OfferError> {
        self.try_claim(length).map(|claim| finish(claim, Ending::Abort, bytes))
    }
}

fn attempt(
    publisher: &mut impl Subject,
    operation: &Operation,
    bytes: &[u8],
) -> Result<i64, OfferError> {
    match operation {
        Operation::Offer(_) => publisher.offer(bytes),
        Operation::Parts(lengths) => publisher.offer_parts(&parts(lengths, bytes)),
        Operation::ReservedValue(_, value) => {
            publisher.offer_with_reserved_value(bytes, |payload| value ^ payload.len() as i64)
        }
        Operation::Claim(length, ending) => {
            publisher.try_claim(*length).map(|claim| finish(claim, *ending, bytes))
        }
        Operation::Padding(length) => publisher.pad(*length, bytes),
    }
}

/// The arguments of a handler's call: a fragment or a whole message.
#[derive(Debug, Clone, PartialEq)]
struct Given {
    end: i64,
    flags: u8,
    reserved_value: i64,
    payload: Vec<u8>,
}

impl Given {
    fn new(payload: &[u8], header: &Header<'_>) -> Self {
        // However it was sent and received, it starts at a multiple of 32 bytes in memory.
        assert_eq!(payload.as_ptr().addr() % 32, 0, "{} bytes", payload.len());
        assert_eq!(header.frame_length(), payload.len() + 32);
        let end_offset = (header.position() - 1) % TERM_LENGTH + 1;
        assert_eq!(i64::from(header.next_term_offset()), end_offset);
        Self {
            end: header.position(),
            flags: header.flags(),
            reserved_value: header.reserved_value(),
            payload: payload.to_vec(),
        }
    }
}

/// The expected stream.
#[derive(Default)]
struct Model {
    position: i64,
    fragments: Vec<Given>,
    messages: Vec<Given>,
    count: u8,
}

impl Model {
    /// The bytes of the next message. They differ from those of the last message.
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

    /// Adds the operation's frames to the stream, and returns the position of their end.
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
        let mut end = self.position;
        self.position += length;

        let last = payloads.len() - 1;
        let mut first_value = None;
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
            end += framed(&payload);
            first_value.get_or_insert(reserved_value);
            self.fragments.push(Given { end, flags, reserved_value, payload: payload.to_vec() });
        }
        self.messages.push(Given {
            end,
            flags: 0xc0,
            reserved_value: first_value.unwrap_or_default(),
            payload: bytes.to_vec(),
        });
        self.position
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Fragments,
    Messages,
    /// Messages that an assembler of the caller's puts together.
    Assembled,
}

/// Polls in one way after the other, and notes the arguments that it was given and has accepted.
struct Reader<'a> {
    subscription: &'a mut Subscription,
    form: Form,
    assembler: FragmentAssembler,
    random: Random,
    received: Vec<Given>,
}

impl Reader<'_> {
    /// Reads on; returns how much more has been received.
    fn read(&mut self) -> usize {
        let Self { subscription, form, assembler, random, received } = self;
        let before = received.len();
        let limit = 1 + random.below(20);
        let ahead = random.below(5_000) as i64;
        let ways = match form {
            Form::Fragments => 7,
            Form::Messages => 6,
            Form::Assembled => 3,
        };
        let (way, take) = (random.below(ways), random.below(limit + 1));
        let mut note = |payload: &[u8], header: &Header<'_>| {
            received.push(Given::new(payload, header));
        };
        let control = |payload: &[u8], header: &Header<'_>| {
            let action =
                [Action::Abort, Action::Break, Action::Commit, Action::Continue][random.below(4)];
            if action != Action::Abort {
                note(payload, header);
            }
            action
        };
        let count = match (*form, way) {
            (Form::Fragments, 0) => subscription.poll_fragments(note, limit).expect("open"),
            (Form::Fragments, 1) => {
                subscription.controlled_poll_fragments(control, limit).expect("open")
            }
            (Form::Messages, 0) => subscription.poll(note, limit).expect("open"),
            (Form::Messages, 1) => subscription.controlled_poll(control, limit).expect("open"),
            (Form::Messages, 2) => {
                let handler = |messages: &mut Messages<'_>| {
                    messages.take(take).for_each(|(payload, header)| note(payload, &header));
                };
                subscription.poll_batch(handler, limit).expect("open")
            }
            (Form::Assembled, 0) => {
                subscription.poll_fragments(assembler.handler(note), limit).expect("open")
            }
            (Form::Assembled, 1) => {
                let handler = assembler.controlled_handler(control);
                subscription.controlled_poll_fragments(handler, limit).expect("open")
            }
            (form, way) => {
                let mut image = subscription.image_at_index(0).expect("the image");
                let position = image.position();
                let bound = position + ahead;
                match (form, way) {
                    (Form::Fragments, 2) => {
                        image.bounded_controlled_poll_fragments(control, bound, limit)
                    }
                    (Form::Fragments, 3) => image.poll_fragments(note, limit),
                    (Form::Fragments, 4) => image.bounded_poll_fragments(note, bound, limit),
                    (Form::Fragments, 5) => {
                        let mut peeked = Vec::new();
                        let peek = |payload: &[u8], header: &Header<'_>| {
                            peeked.push(Given::new(payload, header));
                            if random.below(8) == 0 { Action::Break } else { Action::Continue }
                        };
                        let end = image.controlled_peek(position, peek, bound).expect("a position");
                        assert_eq!(image.position(), position, "a peek moves nothing");
                        received.extend(peeked.into_iter().filter(|given| given.end <= end));
                        image.set_position(end).expect("the end of a message");
                        received.len() - before
                    }
                    (Form::Fragments, _) => {
                        let mut end = position;
                        let handler = |block: &[u8], _, _| fragments_of(block, &mut end, received);
                        let length = image.block_poll(handler, ahead as usize);
                        assert!(length == 0 || image.position() == end);
                        received.len() - before
                    }
                    (Form::Messages, 3) => image.bounded_controlled_poll(control, bound, limit),
                    (Form::Messages, 4) => image.poll(note, limit),
                    (Form::Messages, _) => image.bounded_poll(note, bound, limit),
                    (Form::Assembled, _) => {
                        let handler = assembler.controlled_handler(control);
                        image.bounded_controlled_poll_fragments(handler, bound, limit)
                    }
                }
            }
        };
        let new = received.len() - before;
        // Of whole messages, the fragments are counted.
        assert!(if *form == Form::Fragments { count == new } else { count >= new });
        new
    }
}

/// Takes a block of frames apart, which begins at a position and leaves that where it ends.
fn fragments_of(mut block: &[u8], position: &mut i64, fragments: &mut Vec<Given>) {
    while !block.is_empty() {
        let length = i32::from_ne_bytes(block[..4].try_into().expect("four bytes")) as usize;
        let (frame, rest) = block.split_at(length.next_multiple_of(32));
        *position += frame.len() as i64;
        let is_padding = frame[6..8] == [0, 0];
        if !is_padding {
            fragments.push(Given {
                end: *position,
                flags: frame[5],
                reserved_value: i64::from_ne_bytes(frame[24..32].try_into().expect("eight bytes")),
                payload: frame[32..length].to_vec(),
            });
        }
        block = rest;
    }
}

fn run(
    publisher: &mut impl Subject,
    subscription: &mut Subscription,
    case: &Case,
) -> TestCaseResult {
    await_that("the connection", || publisher.is_connected() && subscription.is_connected());
    let mut model = Model::default();
    let (assembler, random) = (FragmentAssembler::new(), Random::new(case.seed));
    let mut reader =
        Reader { subscription, form: case.form, assembler, random, received: Vec::new() };
    for operation in &case.operations {
        let bytes = model.bytes(operation);
        let expected = model.apply(operation, &bytes);
        let outcome = await_some("an answer", || match attempt(publisher, operation, &bytes) {
            Err(OfferError::AdminAction) => None,
            Err(OfferError::BackPressured) => {
                reader.read();
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
    await_that("an available window", || {
        reader.read();
        attempt(publisher, &last, &bytes).is_ok()
    });
    let expected = match case.form {
        Form::Fragments => &model.fragments,
        Form::Messages | Form::Assembled => &model.messages,
    };
    await_that("the messages", || {
        reader.read();
        let count = reader.received.len();
        let is_wrong = count > 0 && reader.received.last() != expected.get(count - 1);
        count >= expected.len() || is_wrong
    });
    for _ in 0..8 {
        prop_assert_eq!(reader.read(), 0);
    }
    for (index, (is, should)) in reader.received.iter().zip(expected).enumerate() {
        prop_assert!(is == should, "{} differs: {:?} is to be {:?}", index, is, should);
    }
    prop_assert_eq!(reader.received.len(), expected.len());
    let position = reader.subscription.images().map(|image| image.position()).collect::<Vec<_>>();
    prop_assert_eq!(position, [model.position]);
    Ok(())
}

#[derive(Debug)]
struct Case {
    operations: Vec<Operation>,
    form: Form,
    seed: u64,
}

/// Runs cases on streams of their own of one driver.
fn check(check: impl Fn(&Aeron, i32, &Case) -> TestCaseResult) {
    let driver = launch();
    let aeron = connect(&driver);
    let stream_id = std::cell::Cell::new(0);
    let mut runner =
        TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
    let operations = prop::collection::vec(operation(), 1..150);
    let form = prop_oneof![Just(Form::Fragments), Just(Form::Messages), Just(Form::Assembled)];
    let outcome = runner.run(&(operations, form, any::<u64>()), |(operations, form, seed)| {
        stream_id.set(stream_id.get() + 1);
        check(&aeron, stream_id.get(), &Case { operations, form, seed })
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

fn failed(error: rusteron_client::Error) -> TestCaseError {
    TestCaseError::fail(error.to_string())
}

#[test]
fn exclusive_publication() {
    check(|aeron, stream_id, case| {
        let mut subscription = aeron.add_subscription(SHORT_TERMS, stream_id).map_err(failed)?;
        let mut publication =
            aeron.add_exclusive_publication(SHORT_TERMS, stream_id).map_err(failed)?;
        run(&mut publication, &mut subscription, case)
    });
}

#[test]
fn shared_publication() {
    check(|aeron, stream_id, case| {
        let mut subscription = aeron.add_subscription(SHORT_TERMS, stream_id).map_err(failed)?;
        let mut publication = aeron.add_publication(SHORT_TERMS, stream_id).map_err(failed)?;
        run(&mut publication, &mut subscription, case)
    });
}
