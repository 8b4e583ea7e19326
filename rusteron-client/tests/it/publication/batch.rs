//! Batches: nothing that was accepted is lost or counted twice, whatever stops them. The log has
//! exactly the messages that are reported as accepted, and the rest can be offered again.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use rusteron_client::{
    Aeron, AnyPublication, CloseCause, Messages, OfferError, OfferedBatch, Publisher, Subscription,
};
use rusteron_test_support::{
    DEADLINE, Random, SHORT_TERMS, await_that, connect, connected_pair, launch,
    launch_with_long_timeouts, log_bytes, log_file, log_tails, receive, shared_pair, unblock,
    watchful_context,
};

use super::methods::each_kind;

const TERM_LENGTH: usize = 64 * 1024;

#[test]
fn stops_at_a_message_too_long() {
    let driver = launch();
    for (mut publication, mut subscription) in each_kind(&connect(&driver), SHORT_TERMS) {
        let max_message_length = publication.max_message_length();
        let messages = [vec![1], vec![2], vec![3; max_message_length + 1], vec![4]];
        let length = max_message_length + 1;
        let error = OfferError::MessageTooLong { length, max_message_length };
        let batch = publication.offer_batch(&messages);
        assert_eq!((batch.accepted, batch.stopped_by), (2, Some(error)));
        for (messages, accepted) in [(&messages[3..], 1), (&[], 0)] {
            let batch = publication.offer_batch(messages);
            assert_eq!((batch.accepted, batch.stopped_by), (accepted, None));
        }
        assert_eq!(receive(&mut subscription, 3), [[1], [2], [4]]);
    }
}

/// A message that is longer each time it is asked for, and panics at the third.
#[derive(Default)]
struct Fickle(Cell<usize>);

impl AsRef<[u8]> for Fickle {
    fn as_ref(&self) -> &[u8] {
        const LENGTHS: [usize; 2] = [100, 2_000];
        let calls = self.0.replace(self.0.get() + 1);
        &[7; 2_000][..LENGTHS[calls]]
    }
}

#[test]
fn changing_messages_are_read_once() {
    let driver = launch();
    for (mut publication, mut subscription) in each_kind(&connect(&driver), SHORT_TERMS) {
        let batch = [Fickle::default(), Fickle::default(), Fickle::default()];
        assert_eq!(publication.offer_batch(&batch).accepted, 3);
        assert_eq!(receive(&mut subscription, 3), [[7; 100], [7; 100], [7; 100]]);
    }
}

#[test]
fn stream_goes_on_after_a_panic() {
    // The driver must not unblock the range that a publisher has left unfinished.
    let driver = launch_with_long_timeouts();
    for (mut publication, mut subscription) in each_kind(&connect(&driver), SHORT_TERMS) {
        let batch = [Fickle::default(), Fickle::default(), Fickle(Cell::new(2))];
        catch_unwind(AssertUnwindSafe(|| publication.offer_batch(&batch))).expect_err("a panic");
        assert_eq!(publication.offer_batch(&[b"next"]).accepted, 1);
        // Nothing of the run is written before all of it is known.
        assert_eq!(receive(&mut subscription, 1), [b"next"]);
    }
}

/// One poll for all available messages. The handler receives `take` messages at the most.
fn poll_batch(subscription: &mut Subscription, limit: usize, take: usize) -> (usize, Vec<Vec<u8>>) {
    let mut taken = Vec::new();
    let handler = |messages: &mut Messages<'_>| {
        // All of them at the same time.
        let together: Vec<_> = messages.take(take).collect();
        for (message, header) in together {
            assert_eq!(header.frame_length(), message.len() + 32);
            taken.push(message.to_vec());
        }
        assert!(messages.size_hint().1 <= Some(limit));
    };
    (subscription.poll_batch(handler, limit).expect("open"), taken)
}

#[test]
fn poll_accepts_what_the_handler_accepts() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let start = publication.position().expect("open");
    assert_eq!(publication.offer_batch(&[[1], [2], [3], [4], [5]]).accepted, 5);
    await_that("an image", || subscription.image_count() == 1);

    assert_eq!(poll_batch(&mut subscription, 0, 10), (0, vec![]));
    assert_eq!(poll_batch(&mut subscription, 10, 0), (0, vec![]));
    assert_eq!(poll_batch(&mut subscription, 2, 10), (2, vec![vec![1], vec![2]]));
    let position = |subscription: &mut Subscription| {
        subscription.image_at_index(0).expect("an image").position() - start
    };
    assert_eq!(position(&mut subscription), 128);
    assert_eq!(poll_batch(&mut subscription, 10, 1), (1, vec![vec![3]]));
    assert_eq!(position(&mut subscription), 192);
    let thrown = catch_unwind(AssertUnwindSafe(|| {
        subscription.poll_batch(
            |messages| {
                assert_eq!(messages.next().expect("a message").0, [4]);
                panic!("enough");
            },
            10,
        )
    }));
    assert!(thrown.is_err());
    assert_eq!(position(&mut subscription), 256);
    assert_eq!(poll_batch(&mut subscription, 10, 10), (1, vec![vec![5]]));
    assert_eq!(poll_batch(&mut subscription, 10, 10), (0, vec![]));
}

#[test]
fn rejected_long_message_survives_a_panic() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let long = vec![7; 3_000];
    assert_eq!(publication.offer_batch(&[&long[..], b"next"]).accepted, 2);
    await_that("an image", || subscription.image_count() == 1);

    let poll_and_panic = |subscription: &mut Subscription, take| {
        let handler = |messages: &mut Messages<'_>| {
            assert_eq!(messages.take(take).count(), take);
            panic!("on purpose");
        };
        let poll = AssertUnwindSafe(|| subscription.poll_batch(handler, 10));
        assert!(catch_unwind(poll).is_err());
    };
    poll_and_panic(&mut subscription, 0);
    poll_and_panic(&mut subscription, 0);
    assert_eq!(poll_batch(&mut subscription, 10, 0), (0, vec![]));
    assert_eq!(receive(&mut subscription, 2), [&long[..], b"next"]);

    assert_eq!(publication.offer_batch(&[&long[..], b"next"]).accepted, 2);
    poll_and_panic(&mut subscription, 1);
    assert_eq!(receive(&mut subscription, 1), [b"next"]);
}

/// A supplier of reserved values that panics leaves an unfinished message in the log.
#[test]
fn unfinished_message_ends_a_poll() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let mut calls = 0;
    let supplier = |_: &[u8]| {
        calls += 1;
        assert_ne!(calls, 3, "on purpose");
        0
    };
    let offering = || publication.offer_with_reserved_value(&[7; 5_000], supplier);
    catch_unwind(AssertUnwindSafe(offering)).expect_err("a panic");
    assert_eq!(publication.offer_batch(&[b"next"]).accepted, 1);
    await_that("an image", || subscription.image_count() == 1);
    assert_eq!(poll_batch(&mut subscription, 10, 10), (2, vec![]));
    assert_eq!(poll_batch(&mut subscription, 10, 10), (1, vec![b"next".to_vec()]));
}

const MESSAGES: usize = 60;
/// The index of the message whose bytes are asked for when something happens: within a later run of
/// the batch.
const INTERRUPTED: usize = 40;

/// A message during which something happens, once, when its bytes are asked for.
struct Message<'a> {
    bytes: Vec<u8>,
    interruption: Cell<Option<Box<dyn FnOnce() + 'a>>>,
}

impl AsRef<[u8]> for Message<'_> {
    fn as_ref(&self) -> &[u8] {
        if let Some(interruption) = self.interruption.take() {
            interruption();
        }
        &self.bytes
    }
}

/// Makes messages that fit into one frame each; one of them calls `interruption`.
fn messages<'a>(interruption: impl FnOnce() + 'a) -> Vec<Message<'a>> {
    let mut random = Random::new(13);
    let messages: Vec<_> = (0..MESSAGES)
        .map(|_| {
            let length = random.below(200);
            Message { bytes: random.bytes(length), interruption: Cell::default() }
        })
        .collect();
    messages[INTERRUPTED].interruption.set(Some(Box::new(interruption)));
    messages
}

fn bytes<'m>(messages: &'m [Message<'_>]) -> Vec<&'m [u8]> {
    messages.iter().map(|message| &message.bytes[..]).collect()
}

/// The payloads of all that is in the first term of a log, and that has not been read.
fn sent(log: &File) -> Vec<Vec<u8>> {
    let (mut log, mut term) = (log, vec![0; TERM_LENGTH]);
    log.seek(SeekFrom::Start(0)).and_then(|_| log.read_exact(&mut term)).expect("a term");
    let (mut sent, mut left) = (Vec::new(), &term[..]);
    while let Some((length, _)) = left.split_first_chunk() {
        let length = i32::from_ne_bytes(*length);
        if length == 0 {
            break;
        }
        assert!(length >= 32, "a frame of {length} bytes, unfinished");
        sent.push(left[32..length as usize].to_vec());
        left = &left[(length as usize).next_multiple_of(32)..];
    }
    sent
}

/// Offers the messages, and returns how many were accepted. The last ones are rejected.
fn stopped(
    log: &File,
    messages: &[Message<'_>],
    publisher: &mut impl Publisher,
    expected: OfferError,
) -> usize {
    let OfferedBatch { accepted, stopped_by, .. } = publisher.offer_batch(messages);
    assert_eq!(stopped_by, Some(expected));
    // It was stopped where it was interrupted, and not before the first run.
    assert!((16..=INTERRUPTED + 16).contains(&accepted), "{accepted} were accepted");
    assert!(sent(log) == bytes(&messages[..accepted]), "the log has other messages");
    let rest = publisher.offer_batch(&messages[accepted..]);
    assert_eq!((rest.accepted, rest.stopped_by), (0, Some(expected)));
    assert!(sent(log) == bytes(&messages[..accepted]), "something was sent");
    accepted
}

#[test]
fn batch_stops_when_client_closes() {
    for kind in 0..2 {
        let driver = launch_with_long_timeouts();
        let (errors, reported) = mpsc::channel();
        let mut context = watchful_context(driver.aeron_dir());
        context
            .set_error_handler(move |_| {
                // The test may be over.
                let _ = errors.send(());
            })
            .expect("a handler");
        let aeron = Aeron::connect(context).expect("a client");
        let streams: [(AnyPublication, Subscription); 2] = each_kind(&aeron, SHORT_TERMS);
        let (mut publication, _subscription) = streams.into_iter().nth(kind).expect("a kind");
        let log = log_file(&driver, publication.original_registration_id());
        let messages = messages(|| {
            drop(driver);
            // The client says that it is closed before each of its resources does, and this after.
            reported.recv_timeout(DEADLINE).expect("the error that closes the client");
            assert!(aeron.is_closed());
        });
        let closed = OfferError::Closed(CloseCause::DriverShutdown);
        stopped(&log, &messages, &mut publication, closed);
    }
}

#[test]
fn batch_stops_at_the_window() {
    let driver = launch_with_long_timeouts();
    for (mut publication, mut subscription) in each_kind(&connect(&driver), SHORT_TERMS) {
        let log = log_file(&driver, publication.original_registration_id());
        let mut random = Random::new(14);
        let messages: Vec<_> = (0..1_000)
            .map(|_| {
                let length = random.below(200);
                random.bytes(length)
            })
            .collect();
        let batch = publication.offer_batch(&messages);
        assert_eq!(batch.stopped_by, Some(OfferError::BackPressured));
        assert!((100..1_000).contains(&batch.accepted), "{} were accepted", batch.accepted);
        assert!(sent(&log) == messages[..batch.accepted], "the log has other messages");
        // Each message begins before the limit.
        let limit = publication.position_limit().expect("open");
        assert!(publication.position().is_ok_and(|end| (limit..limit + 256).contains(&end)));
        let again = publication.offer_batch(&messages[batch.accepted..]);
        assert_eq!((again.accepted, again.stopped_by), (0, Some(OfferError::BackPressured)));

        let mut next = batch.accepted;
        let mut received = Vec::new();
        await_that("all messages", || {
            next += publication.offer_batch(&messages[next..]).accepted;
            subscription.poll(|message, _| received.push(message.to_vec()), 10).expect("open");
            received.len() == messages.len()
        });
        assert!(received == messages);
        assert_eq!(subscription.poll(|_, _| panic!("no more"), 10), Ok(0));
    }
}

#[test]
fn another_publisher_rotates_the_log() {
    let driver = launch_with_long_timeouts();
    let aeron = connect(&driver);
    let (publication, mut subscription) = shared_pair(&aeron, SHORT_TERMS);
    let log = RefCell::new(log_file(&driver, publication.original_registration_id()));
    // As a publisher that has not finished rotating the log.
    let set_term_count = |count: i32| {
        let mut log = log.borrow_mut();
        log.seek(SeekFrom::Start(3 * TERM_LENGTH as u64 + 24)).expect("a seek");
        log.write_all(&count.to_ne_bytes()).expect("a count");
    };
    let messages = messages(|| set_term_count(1));
    let reader = log_file(&driver, publication.original_registration_id());
    let accepted = stopped(&reader, &messages, &mut &publication, OfferError::AdminAction);
    assert_eq!(log_tails(&reader, TERM_LENGTH).1, 1);

    set_term_count(0);
    let rest = publication.offer_batch(&messages[accepted..]);
    assert_eq!((rest.accepted, rest.stopped_by), (MESSAGES - accepted, None));
    assert!(receive(&mut subscription, MESSAGES) == bytes(&messages));
}

/// As a thread that stops between its claim and its writes until the driver unblocks the range.
#[test]
fn unblocked_range_is_left_alone() {
    let driver = launch_with_long_timeouts();
    let aeron = connect(&driver);
    let (publication, mut subscription) = shared_pair(&aeron, SHORT_TERMS);
    let log = log_file(&driver, publication.original_registration_id());
    let range = || log_bytes(&driver, publication.constants(), 64..64 + 4 * 64);
    publication.offer(b"before").expect("an available window");
    unblock(&log, 64, 4 * 64);
    let padding = range();
    let batch = publication.offer_batch(&[[7; 10]; 4]);
    assert_eq!((batch.accepted, batch.stopped_by), (0, Some(OfferError::Unblocked)));
    assert_eq!(publication.position(), Ok(64 + 4 * 64));
    assert!(range() == padding, "it was written over");

    let batch = publication.offer_batch(&[[8; 10]; 4]);
    assert_eq!((batch.accepted, batch.stopped_by), (4, None));
    assert_eq!(receive(&mut subscription, 1), [b"before"]);
    assert_eq!(receive(&mut subscription, 4), [[8; 10]; 4]);
}

/// As a thread in the same state that came to the end of a term.
#[test]
fn unblocked_term_end_is_left_alone() {
    let driver = launch_with_long_timeouts();
    let aeron = connect(&driver);
    let channel = "aeron:ipc?term-length=64k|init-term-id=0|term-id=0|term-offset=65472";
    let (publication, mut subscription) = shared_pair(&aeron, channel);
    let log = log_file(&driver, publication.original_registration_id());
    let (start, end) = (65_472, TERM_LENGTH as i64);
    let range = || log_bytes(&driver, publication.constants(), start..end);
    assert_eq!(publication.position(), Ok(start));
    unblock(&log, start as u64, (end - start) as i32);
    let padding = range();
    let batch = publication.offer_batch(&[[7; 100]; 4]);
    assert_eq!((batch.accepted, batch.stopped_by), (4, None));
    assert_eq!(publication.position(), Ok(end + 4 * 160));
    assert!(range() == padding, "it was written over");
    assert_eq!(receive(&mut subscription, 4), [[7; 100]; 4]);
}
