//! Batches that come to a stop on the way, by every possible cause. The log has exactly the messages that
//! are reported as accepted, and the rest can be offered again.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::mpsc;

use rusteron_client::{
    Aeron, CloseCause, OfferError, OfferedBatch, PublicationConstants, Subscription,
};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{
    DEADLINE, Random, SHORT_TERMS, await_that, connect, connected_pair, launch_with_long_timeouts,
    log_bytes, log_file, log_tails, receive, shared_pair, unblock, watchful_context,
};

const TERM_LENGTH: usize = 64 * 1024;
const MESSAGES: usize = 60;
/// The index of the message whose bytes are asked for when something happens: within a later run of the batch.
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

/// Of one frame each, with one interruption.
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
    offer: &mut dyn FnMut(&[Message<'_>]) -> OfferedBatch,
    expected: &[OfferError],
) -> usize {
    let OfferedBatch { accepted, stopped_by, .. } = offer(messages);
    let error = stopped_by.expect("it is stopped");
    assert!(expected.contains(&error), "{error}");
    // It was stopped where it was interrupted, and not before the first run.
    assert!((16..=INTERRUPTED + 16).contains(&accepted), "{accepted} were accepted");
    assert!(sent(log) == bytes(&messages[..accepted]), "the log has other messages");
    accepted
}

/// Both kinds of publications, each with a subscriber and a function that offers on the publication.
fn each_kind(
    connect: impl Fn(&MediaDriver) -> Aeron,
    mut test: impl FnMut(
        MediaDriver,
        &Aeron,
        Subscription,
        PublicationConstants,
        &mut dyn FnMut(&[Message<'_>]) -> OfferedBatch,
    ),
) {
    let driver = launch_with_long_timeouts();
    let aeron = connect(&driver);
    let (mut publication, subscription) = connected_pair(&aeron, SHORT_TERMS);
    let constants = publication.constants().clone();
    test(driver, &aeron, subscription, constants, &mut |batch| publication.offer_batch(batch));

    let driver = launch_with_long_timeouts();
    let aeron = connect(&driver);
    let (publication, subscription) = shared_pair(&aeron, SHORT_TERMS);
    let constants = publication.constants().clone();
    test(driver, &aeron, subscription, constants, &mut |batch| publication.offer_batch(batch));
}

#[test]
fn client_closes() {
    let (errors, reported) = mpsc::channel();
    let connect = |driver: &MediaDriver| {
        let errors = errors.clone();
        let mut context = watchful_context(driver.aeron_dir());
        context
            .set_error_handler(move |_| {
                // The test may be over.
                let _ = errors.send(());
            })
            .expect("a handler");
        Aeron::connect(context).expect("a client")
    };
    each_kind(connect, |driver, aeron, _subscription, constants, offer| {
        let log = log_file(&driver, constants.original_registration_id);
        let messages = messages(|| {
            drop(driver);
            // The client says that it is closed before each of its resources does, and this after.
            reported.recv_timeout(DEADLINE).expect("the error that closes the client");
            assert!(aeron.is_closed());
        });
        const CLOSED: OfferError = OfferError::Closed(CloseCause::DriverShutdown);
        let accepted = stopped(&log, &messages, offer, &[CLOSED]);
        let rest = offer(&messages[accepted..]);
        assert_eq!((rest.accepted, rest.stopped_by), (0, Some(CLOSED)));
        assert!(sent(&log) == bytes(&messages[..accepted]), "something was sent");
    });
}

#[test]
fn subscriber_leaves() {
    each_kind(connect, |driver, aeron, subscription, constants, offer| {
        let log = log_file(&driver, constants.original_registration_id);
        let limit = || aeron.counters_reader().value(constants.publication_limit_counter_id);
        let messages = messages(|| {
            drop(subscription);
            await_that("the driver takes the limit back", || limit() == Some(0));
        });
        // Which of them is for the driver to say, a little later.
        let either = [OfferError::NotConnected, OfferError::BackPressured];
        let accepted = stopped(&log, &messages, offer, &either);
        await_that("the connection is lost", || {
            let rest = offer(&messages[accepted..]);
            assert_eq!(rest.accepted, 0);
            rest.stopped_by == Some(OfferError::NotConnected)
        });
        assert!(sent(&log) == bytes(&messages[..accepted]), "something was sent");

        // Another one begins where that was, and gets everything once.
        let mut subscription =
            aeron.add_subscription(SHORT_TERMS, constants.stream_id).expect("a subscription");
        let mut next = accepted;
        await_that("an available window", || {
            next += offer(&messages[next..]).accepted;
            next == MESSAGES
        });
        assert!(receive(&mut subscription, MESSAGES) == bytes(&messages), "other messages");
        assert_eq!(subscription.poll(|_, _| panic!("no more"), 10), Ok(0));
    });
}

#[test]
fn window_is_full() {
    each_kind(connect, |driver, _, mut subscription, constants, offer| {
        let log = log_file(&driver, constants.original_registration_id);
        let mut random = Random::new(14);
        let messages: Vec<_> = (0..1_000)
            .map(|_| {
                let length = random.below(200);
                Message { bytes: random.bytes(length), interruption: Cell::default() }
            })
            .collect();
        let batch = offer(&messages);
        assert_eq!(batch.stopped_by, Some(OfferError::BackPressured));
        assert!((100..1_000).contains(&batch.accepted), "{} were accepted", batch.accepted);
        assert!(sent(&log) == bytes(&messages[..batch.accepted]), "the log has other messages");
        let again = offer(&messages[batch.accepted..]);
        assert_eq!((again.accepted, again.stopped_by), (0, Some(OfferError::BackPressured)));

        let mut next = batch.accepted;
        let mut received = Vec::new();
        await_that("all messages", || {
            next += offer(&messages[next..]).accepted;
            subscription.poll(|message, _| received.push(message.to_vec()), 10).expect("open");
            received.len() == messages.len()
        });
        assert!(received == bytes(&messages));
        assert_eq!(subscription.poll(|_, _| panic!("no more"), 10), Ok(0));
    });
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
    let mut offer = |batch: &[Message<'_>]| publication.offer_batch(batch);
    let reader = log_file(&driver, publication.original_registration_id());
    let accepted = stopped(&reader, &messages, &mut offer, &[OfferError::AdminAction]);
    let rest = offer(&messages[accepted..]);
    assert_eq!((rest.accepted, rest.stopped_by), (0, Some(OfferError::AdminAction)));
    assert_eq!(log_tails(&reader, TERM_LENGTH).1, 1);
    assert!(sent(&reader) == bytes(&messages[..accepted]), "something was sent");

    set_term_count(0);
    let rest = offer(&messages[accepted..]);
    assert_eq!((rest.accepted, rest.stopped_by), (MESSAGES - accepted, None));
    assert!(receive(&mut subscription, MESSAGES) == bytes(&messages));
}

/// As a thread that stops between its claim and its writes until the driver unblocks the range.
#[test]
fn range_is_unblocked() {
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
fn term_end_is_unblocked() {
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
