//! The message path does not allocate, on the thread that uses it.

use std::io::IoSlice;

use rusteron_client::agent::{Agent, AgentError, AgentInvoker, CompositeAgent};
use rusteron_client::{
    Action, ExclusivePublication, FragmentAssembler, Header, Image, ImageFragmentAssembler,
    Messages, OfferError, Publisher, Subscription,
};
use rusteron_sys as sys;
use rusteron_test_support::{
    CountingAllocator, SHORT_TERMS, await_that, connect, connect_watchfully, connected_pair,
    launch, shared_pair, without_allocating,
};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn counter_counts() {
    let counted = std::panic::catch_unwind(|| without_allocating("a box", || Box::new(1)));
    assert!(counted.is_err());
}

/// Repeats an attempt that is allowed to fail for a while.
fn until_taken<E: std::fmt::Debug>(what: &str, mut attempt: impl FnMut() -> Result<i64, E>) {
    await_that(what, || without_allocating(what, &mut attempt).is_ok());
}

fn read(payload: &[u8], header: &Header<'_>) -> usize {
    let ids = i64::from(header.session_id()) + i64::from(header.stream_id());
    let place = header.position() + i64::from(header.term_offset() + header.next_term_offset());
    let other = header.reserved_value() + header.image_correlation_id() + ids + place;
    std::hint::black_box((header.flags(), header.frame_type(), header.version(), other));
    payload.len()
}

/// Assemblers of the test's own, which keep the memory of the messages that they put together.
#[derive(Default)]
struct Assemblers {
    of_subscription: FragmentAssembler,
    of_image: ImageFragmentAssembler,
}

/// Receives in one way, with assemblers that there are.
type Poll = fn(&mut Subscription, &mut Assemblers, &mut usize);

fn image(subscription: &mut Subscription) -> Image<'_> {
    subscription.image_at_index(0).expect("an image")
}

/// Every way to receive.
const POLLS: [(&str, Poll); 20] = [
    ("poll", |subscription, _, bytes| {
        subscription.poll(|payload, header| *bytes += read(payload, header), 10).expect("open");
    }),
    ("poll_fragments", |subscription, _, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| *bytes += read(payload, header);
        subscription.poll_fragments(handler, 10).expect("open");
    }),
    ("poll_fragments with an assembler", |subscription, assemblers, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| *bytes += read(payload, header);
        let handler = assemblers.of_subscription.handler(handler);
        subscription.poll_fragments(handler, 10).expect("open");
    }),
    ("controlled_poll", |subscription, _, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| commit(read(payload, header), bytes);
        subscription.controlled_poll(handler, 10).expect("open");
    }),
    ("controlled_poll_fragments", |subscription, _, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| commit(read(payload, header), bytes);
        subscription.controlled_poll_fragments(handler, 10).expect("open");
    }),
    ("controlled_poll_fragments with an assembler", |subscription, assemblers, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| commit(read(payload, header), bytes);
        let handler = assemblers.of_subscription.controlled_handler(handler);
        subscription.controlled_poll_fragments(handler, 10).expect("open");
    }),
    ("poll_batch", |subscription, _, bytes| {
        subscription.poll_batch(|messages| *bytes += read_all(messages), 10).expect("open");
    }),
    ("block_poll", |subscription, _, bytes| {
        subscription.block_poll(|block, _, _| *bytes += block.len(), 65_536).expect("open");
    }),
    ("Image::poll", |subscription, _, bytes| {
        image(subscription).poll(|payload, header| *bytes += read(payload, header), 10);
    }),
    ("Image::poll_fragments", |subscription, _, bytes| {
        image(subscription).poll_fragments(|payload, header| *bytes += read(payload, header), 10);
    }),
    ("Image::poll_fragments with an assembler", |subscription, assemblers, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| *bytes += read(payload, header);
        image(subscription).poll_fragments(assemblers.of_image.handler(handler), 10);
    }),
    ("Image::poll_batch", |subscription, _, bytes| {
        image(subscription).poll_batch(|messages| *bytes += read_all(messages), 10);
    }),
    ("Image::bounded_poll", |subscription, _, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| *bytes += read(payload, header);
        image(subscription).bounded_poll(handler, i64::MAX, 10);
    }),
    ("Image::bounded_poll_fragments", |subscription, _, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| *bytes += read(payload, header);
        image(subscription).bounded_poll_fragments(handler, i64::MAX, 10);
    }),
    ("Image::controlled_poll", |subscription, _, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| commit(read(payload, header), bytes);
        image(subscription).controlled_poll(handler, 10);
    }),
    ("Image::controlled_poll_fragments with an assembler", |subscription, assemblers, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| commit(read(payload, header), bytes);
        let handler = assemblers.of_image.controlled_handler(handler);
        image(subscription).controlled_poll_fragments(handler, 10);
    }),
    ("Image::bounded_controlled_poll", |subscription, _, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| commit(read(payload, header), bytes);
        image(subscription).bounded_controlled_poll(handler, i64::MAX, 10);
    }),
    ("Image::bounded_controlled_poll_fragments", |subscription, _, bytes| {
        let handler = |payload: &[u8], header: &Header<'_>| commit(read(payload, header), bytes);
        image(subscription).bounded_controlled_poll_fragments(handler, i64::MAX, 10);
    }),
    ("Image::controlled_peek", |subscription, _, bytes| {
        let mut image = image(subscription);
        let handler = |payload: &[u8], header: &Header<'_>| commit(read(payload, header), bytes);
        let start = image.position();
        let end = image.controlled_peek(start, handler, i64::MAX).expect("its position");
        // It stays in its term, where there may be nothing but padding.
        image.set_position(end).expect("behind a frame");
    }),
    ("Image::block_poll", |subscription, _, bytes| {
        image(subscription).block_poll(|block, _, _| *bytes += block.len(), 65_536);
    }),
];

fn commit(length: usize, bytes: &mut usize) -> Action {
    *bytes += length;
    Action::Commit
}

fn read_all(messages: &mut Messages<'_>) -> usize {
    messages.map(|(payload, header)| read(payload, &header)).sum()
}

fn skip_all(subscription: &mut Subscription) {
    // A poll ends with the term, where there may have been nothing but padding.
    while (0..2).any(|_| subscription.poll(|_, _| {}, 100).expect("open") > 0) {}
}

/// Receives what `send` sends in every way.
fn receive_in_every_way(
    subscription: &mut Subscription,
    assemblers: &mut Assemblers,
    mut send: impl FnMut(),
) {
    for (what, poll) in POLLS {
        send();
        let mut bytes = 0;
        await_that(what, || {
            without_allocating(what, || poll(subscription, assemblers, &mut bytes));
            bytes > 0
        });
        // The messages that a poll of fragments has left.
        skip_all(subscription);
    }
}

/// Sends in every way until the message is accepted, through the ends of terms.
fn send_in_every_way(
    publisher: &mut impl Publisher,
    subscription: &mut Subscription,
    message: &[u8],
) {
    let (head, tail) = message.split_at(message.len() / 2);
    until_taken("offer", || publisher.offer(message));
    until_taken("offer_parts", || publisher.offer_parts(&[IoSlice::new(head), IoSlice::new(tail)]));
    until_taken("offer_with_reserved_value", || {
        publisher.offer_with_reserved_value(message, |payload| payload.len() as i64)
    });
    if message.len() <= publisher.max_payload_length() {
        until_taken("try_claim", || {
            publisher.try_claim(message.len()).and_then(|claim| claim.commit())
        });
        until_taken("abort", || {
            publisher.try_claim(message.len()).map(|claim| {
                let position = claim.position();
                claim.abort();
                position
            })
        });
    }
    for _ in 0..2 {
        let batch = without_allocating("offer_batch", || publisher.offer_batch(&[message; 10]));
        assert!(batch.stopped_by.is_none_or(|error| error.is_retryable()));
    }
    skip_all(subscription);
}

/// Every way in which a message is rejected, for the same reason.
fn refuse_in_every_way(
    publisher: &mut impl Publisher,
    message: &[u8],
    is_expected: fn(OfferError) -> bool,
) {
    let refused = |outcome: Result<i64, OfferError>| {
        assert!(outcome.is_err_and(is_expected), "{outcome:?}");
    };
    refused(without_allocating("offer", || publisher.offer(message)));
    refused(without_allocating("offer_parts", || publisher.offer_parts(&[IoSlice::new(message)])));
    refused(without_allocating("offer_with_reserved_value", || {
        publisher.offer_with_reserved_value(message, |_| 0)
    }));
    refused(without_allocating("try_claim", || {
        publisher.try_claim(message.len()).map(|claim| claim.position())
    }));
    refused(without_allocating("offer_batch", || {
        publisher.offer_batch(&[message]).stopped_by.map_or(Ok(0), Err)
    }));
}

/// A frame that can be offered as a block, with its header.
fn block(publication: &ExclusivePublication) -> [u8; 64] {
    let position = publication.position().expect("open");
    let term_length = publication.term_buffer_length() as i64;
    let initial_term_id = publication.constants().initial_term_id;
    let term_id = initial_term_id.wrapping_add((position / term_length) as i32);
    let mut block = [0; 64];
    block[..4].copy_from_slice(&64_i32.to_ne_bytes());
    block[5] = 0xC0;
    block[6..8].copy_from_slice(&1_u16.to_ne_bytes());
    block[8..12].copy_from_slice(&((position % term_length) as i32).to_ne_bytes());
    block[12..16].copy_from_slice(&publication.session_id().to_ne_bytes());
    block[16..20].copy_from_slice(&publication.stream_id().to_ne_bytes());
    block[20..24].copy_from_slice(&term_id.to_ne_bytes());
    block
}

#[test]
fn exclusive_publication_and_subscription() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (message, long) = ([7; 32], vec![7; 5_000]);
    let mut assemblers = Assemblers::default();
    // The list of images, and the memory that long messages are put together in.
    for (_, poll) in POLLS {
        until_taken("offer", || publication.offer(&long));
        let mut bytes = 0;
        await_that("the message", || {
            poll(&mut subscription, &mut assemblers, &mut bytes);
            bytes > 0
        });
        skip_all(&mut subscription);
    }

    // Through the ends of many terms.
    for _ in 0..30 {
        for message in [&message[..], &long] {
            send_in_every_way(&mut publication, &mut subscription, message);
            until_taken("append_padding", || publication.append_padding(message.len()));
            until_taken("offer_block", || publication.offer_block(&block(&publication)));
            skip_all(&mut subscription);
            receive_in_every_way(&mut subscription, &mut assemblers, || {
                until_taken("offer", || publication.offer(message));
            });
        }
    }
}

#[test]
fn shared_publication() {
    let driver = launch();
    let aeron = connect(&driver);
    let (publication, mut subscription) = shared_pair(&aeron, SHORT_TERMS);
    let (message, long) = ([7; 32], vec![7; 5_000]);
    for _ in 0..100 {
        for message in [&message[..], &long] {
            send_in_every_way(&mut &publication, &mut subscription, message);
        }
    }
}

#[test]
fn rejected_message() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let mut exclusive = aeron.add_exclusive_publication(SHORT_TERMS, 1).expect("a publication");
    let shared = aeron.add_publication(SHORT_TERMS, 2).expect("a publication");
    refuse_in_every_way(&mut exclusive, &[7], |error| matches!(error, OfferError::NotConnected));
    refuse_in_every_way(&mut &shared, &[7], |error| matches!(error, OfferError::NotConnected));
    let too_long = vec![7; exclusive.max_message_length() + 1];
    refuse_in_every_way(&mut exclusive, &too_long, |error| {
        matches!(error, OfferError::MessageTooLong { .. })
    });
    refuse_in_every_way(&mut &shared, &too_long, |error| {
        matches!(error, OfferError::MessageTooLong { .. })
    });

    let (mut exclusive, _subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (shared, _other) = shared_pair(&aeron, SHORT_TERMS);
    // On a thread that C has not had an error on: C would allocate for the error's text.
    let c_error = std::thread::scope(|scope| {
        let refusing = scope.spawn(|| {
            refuse_in_every_way(&mut exclusive, &too_long, |error| {
                matches!(error, OfferError::MessageTooLong { .. })
            });
            refuse_in_every_way(&mut &shared, &too_long, |error| {
                matches!(error, OfferError::MessageTooLong { .. })
            });
            let padding =
                without_allocating("append_padding", || exclusive.append_padding(too_long.len()));
            assert!(matches!(padding, Err(OfferError::MessageTooLong { .. })), "{padding:?}");
            // SAFETY: it takes nothing and reads the thread's last error.
            unsafe { sys::aeron_errcode() }
        });
        refusing.join().expect("all of them are refused")
    });
    assert_eq!(c_error, 0);
    await_that("back-pressure", || exclusive.offer(&[7; 900]) == Err(OfferError::BackPressured));
    await_that("back-pressure", || shared.offer(&[7; 900]) == Err(OfferError::BackPressured));
    refuse_in_every_way(&mut exclusive, &[7], |error| matches!(error, OfferError::BackPressured));
    refuse_in_every_way(&mut &shared, &[7], |error| matches!(error, OfferError::BackPressured));

    drop(driver);
    // The client says that it is closed before each of its resources does.
    await_that("the publications are closed", || shared.is_closed() && exclusive.is_closed());
    assert!(aeron.is_closed());
    refuse_in_every_way(&mut exclusive, &[7], |error| matches!(error, OfferError::Closed(_)));
    refuse_in_every_way(&mut &shared, &[7], |error| matches!(error, OfferError::Closed(_)));
}

/// A member of composites.
struct Worker(usize);

impl Agent for Worker {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        self.0 += 1;
        Ok(self.0)
    }

    fn role_name(&self) -> &str {
        "worker"
    }
}

#[test]
fn duty_cycles_do_not_allocate() {
    let list: Vec<Box<dyn Agent>> = vec![Box::new(Worker(0)), Box::new(Worker(1))];
    let members = (Worker(2), CompositeAgent::new(list));
    let mut invoker = AgentInvoker::start(CompositeAgent::new(members)).expect("started");
    for _ in 0..100 {
        without_allocating("a duty cycle", || invoker.invoke()).expect("work");
    }
}
