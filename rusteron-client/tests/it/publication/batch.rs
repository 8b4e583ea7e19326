//! Batches: nothing that was accepted is lost or counted twice, whatever stops them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rusteron_client::{Messages, OfferError, OfferedBatch, Subscription};
use rusteron_test_support::{
    Random, SHORT_TERMS, await_that, connect, connected_pair, launch, launch_with_long_timeouts,
    receive, shared_pair,
};

/// Messages that say which they are, of all lengths up to one of several fragments.
fn numbered(random: &mut Random, count: usize, max_payload: usize) -> Vec<Vec<u8>> {
    let message = |number: usize| {
        let length = match random.below(20) {
            0 => max_payload + 1 + random.below(max_payload),
            1 => max_payload,
            _ => random.below(150),
        };
        let mut message = number.to_le_bytes().to_vec();
        message.resize(length.max(8), number as u8);
        message
    };
    (0..count).map(message).collect()
}

/// Offers batches of random lengths against a subscriber that is too slow, and expects all messages once
/// and in order.
fn everything_arrives_once(
    mut subscription: Subscription,
    max_payload: usize,
    mut offer: impl FnMut(&[Vec<u8>]) -> OfferedBatch,
) {
    let mut random = Random::new(3);
    let messages = numbered(&mut random, 20_000, max_payload);
    let (mut sent, mut received, mut partial) = (0, 0, 0);
    await_that("all messages", || {
        let end = (sent + random.below(60)).min(messages.len());
        let batch = offer(&messages[sent..end]);
        match batch.stopped_by {
            None => assert_eq!(batch.accepted, end - sent),
            Some(OfferError::BackPressured | OfferError::AdminAction) => {
                assert!(batch.accepted < end - sent);
                partial += usize::from(batch.accepted > 0);
            }
            Some(error) => panic!("{error}"),
        }
        sent += batch.accepted;
        let limit = random.below(50);
        subscription
            .poll(
                |message, _| {
                    assert!(message == messages[received], "message {received}");
                    received += 1;
                },
                limit,
            )
            .expect("open");
        assert!(received <= sent);
        received == messages.len()
    });
    assert!(partial > 10, "only {partial} batches were accepted in part");
}

#[test]
fn exclusive_batch_arrives_once() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, subscription) = connected_pair(&aeron, SHORT_TERMS);
    let max_payload = publication.max_payload_length();
    everything_arrives_once(subscription, max_payload, |batch| publication.offer_batch(batch));
}

#[test]
fn shared_batch_arrives_once() {
    let driver = launch();
    let aeron = connect(&driver);
    let (publication, subscription) = shared_pair(&aeron, SHORT_TERMS);
    let max_payload = publication.max_payload_length();
    everything_arrives_once(subscription, max_payload, |batch| publication.offer_batch(batch));
}

#[test]
fn stops_at_a_message_too_long() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (shared, mut shared_subscription) = shared_pair(&aeron, SHORT_TERMS);
    let max_message_length = exclusive.max_message_length();
    let messages = [vec![1], vec![2], vec![3; max_message_length + 1], vec![4]];
    let length = max_message_length + 1;
    let error = OfferError::MessageTooLong { length, max_message_length };
    for batch in [exclusive.offer_batch(&messages), shared.offer_batch(&messages)] {
        assert_eq!((batch.accepted, batch.stopped_by), (2, Some(error)));
    }
    for batch in [exclusive.offer_batch(&messages[3..]), shared.offer_batch(&messages[3..])] {
        assert_eq!((batch.accepted, batch.stopped_by), (1, None));
    }
    for subscription in [&mut subscription, &mut shared_subscription] {
        assert_eq!(receive(subscription, 3), [[1], [2], [4]]);
    }
}

#[test]
fn not_connected_accepts_nothing() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut exclusive = aeron.add_exclusive_publication("aeron:ipc", 1).expect("a publication");
    let shared = aeron.add_publication("aeron:ipc", 2).expect("a publication");
    for batch in [exclusive.offer_batch(&[[1]]), shared.offer_batch(&[[1]])] {
        assert_eq!((batch.accepted, batch.stopped_by), (0, Some(OfferError::NotConnected)));
    }
    let none: [&[u8]; 0] = [];
    for batch in [exclusive.offer_batch(&none), shared.offer_batch(&none)] {
        assert_eq!((batch.accepted, batch.stopped_by), (0, None));
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
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (shared, mut shared_subscription) = shared_pair(&aeron, SHORT_TERMS);
    let batch = || [Fickle::default(), Fickle::default(), Fickle::default()];
    assert_eq!(exclusive.offer_batch(&batch()).accepted, 3);
    assert_eq!(shared.offer_batch(&batch()).accepted, 3);
    for subscription in [&mut subscription, &mut shared_subscription] {
        assert_eq!(receive(subscription, 3), [[7; 100], [7; 100], [7; 100]]);
    }
}

#[test]
fn stream_goes_on_after_a_panic() {
    // The driver must not unblock the range that a publisher has left unfinished.
    let driver = launch_with_long_timeouts();
    let aeron = connect(&driver);
    let (mut exclusive, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let (shared, mut shared_subscription) = shared_pair(&aeron, SHORT_TERMS);
    let batch = || [Fickle::default(), Fickle::default(), Fickle(Cell::new(2))];
    let thrown = catch_unwind(AssertUnwindSafe(|| exclusive.offer_batch(&batch())));
    assert!(thrown.is_err());
    let thrown = catch_unwind(AssertUnwindSafe(|| shared.offer_batch(&batch())));
    assert!(thrown.is_err());
    assert_eq!(exclusive.offer_batch(&[b"next"]).accepted, 1);
    assert_eq!(shared.offer_batch(&[b"next"]).accepted, 1);
    // Nothing of the run is written before all of it is known.
    assert_eq!(receive(&mut subscription, 1), [b"next"]);
    assert_eq!(receive(&mut shared_subscription, 1), [b"next"]);
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
fn long_message_repeats_until_accepted() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let long = vec![7; 3_000];
    let messages = [vec![1], long.clone(), vec![2]];
    assert_eq!(publication.offer_batch(&messages).accepted, 3);
    await_that("an image", || subscription.image_count() == 1);

    assert_eq!(poll_batch(&mut subscription, 10, 10), (1, vec![vec![1]]));
    // Three fragments. The last fragment is refused twice.
    assert_eq!(poll_batch(&mut subscription, 10, 0), (2, vec![]));
    assert_eq!(poll_batch(&mut subscription, 10, 0), (0, vec![]));
    assert_eq!(poll_batch(&mut subscription, 10, 10), (1, vec![long]));
    assert_eq!(poll_batch(&mut subscription, 10, 10), (1, vec![vec![2]]));
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

#[test]
fn batch_polls_equal_single_polls() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let mut random = Random::new(11);
    let messages = numbered(&mut random, 20_000, publication.max_payload_length());
    let (mut sent, mut received) = (0, 0);
    await_that("all messages", || {
        let end = (sent + random.below(60)).min(messages.len());
        sent += publication.offer_batch(&messages[sent..end]).accepted;
        if random.below(4) == 0 {
            // Padding of aborted claims, in the middle of terms.
            drop(publication.try_claim(random.below(100)));
        }
        let (limit, take) = (random.below(30), random.below(30));
        let handler = |poll: &mut Messages<'_>| {
            for (message, header) in poll.take(take) {
                assert!(message == messages[received], "message {received}");
                assert!(header.position() > 0);
                received += 1;
            }
        };
        subscription.poll_batch(handler, limit).expect("open");
        received == messages.len()
    });
}
