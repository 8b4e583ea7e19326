//! Whole messages, however long.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusteron_client::{ExclusivePublication, FragmentAssembler, Header};
use rusteron_test_support::{
    Random, SHORT_TERMS, await_some, await_that, connect, connected_pair, launch, offer, receive,
};

fn payload_length(publication: &ExclusivePublication) -> usize {
    publication.constants().max_payload_length
}

#[test]
fn long_messages_arrive_whole() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let payload = payload_length(&publication);
    let mut random = Random::new(3);
    let lengths = [0, payload, payload + 1, 5, 2 * payload, 2 * payload + 1, 10 * payload, 1];
    let messages: Vec<_> = lengths.iter().map(|&length| random.bytes(length)).collect();
    for message in &messages {
        offer(&mut publication, message);
    }
    assert!(receive(&mut subscription, messages.len()) == messages);
}

#[test]
fn random_messages_and_polls() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let max = publication.constants().max_message_length;
    let mut random = Random::new(4);
    for _ in 0..500 {
        let length = random.below(max + 1);
        let message = random.bytes(length);
        let position = offer(&mut publication, &message);
        let mut received = 0;
        let mut limit = Random::new(length as u64);
        await_that("the message", || {
            let handler = |bytes: &[u8], header: &Header<'_>| {
                assert!(bytes == message);
                assert_eq!(header.position(), position);
                received += 1;
            };
            subscription.poll(handler, 1 + limit.below(3)).expect("open");
            received == 1
        });
    }
}

#[test]
fn header_is_of_the_whole_message() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let payload = payload_length(&publication);
    let start = offer(&mut publication, b"before");
    let position = offer(&mut publication, &vec![1; 2 * payload + 100]);
    receive(&mut subscription, 1);
    let mut called = 0;
    let mut fragments = 0;
    await_that("the message", || {
        fragments += subscription
            .poll(
                |message, header| {
                    called += 1;
                    assert_eq!(message.len(), 2 * payload + 100);
                    assert_eq!(header.frame_length(), 32 + message.len());
                    assert!(header.is_unfragmented());
                    assert_eq!(i64::from(header.term_offset()), start);
                    assert_eq!(header.position(), position);
                    assert_eq!(i64::from(header.next_term_offset()), position);
                    assert_eq!(header.session_id(), publication.session_id());
                },
                10,
            )
            .expect("open");
        called == 1
    });
    assert_eq!(fragments, 3, "fragments are what is counted");
}

#[test]
fn alternating_publishers_do_not_mix() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    let mut publications: Vec<_> = (0..3)
        .map(|_| aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication"))
        .collect();
    await_that("all images", || subscription.image_count() == 3);
    let payload = payload_length(&publications[0]);
    for (number, publication) in publications.iter_mut().enumerate() {
        offer(publication, &vec![number as u8; 3 * payload]);
    }
    let mut heard = Vec::new();
    await_that("all messages", || {
        // One fragment of one publisher at a time.
        let handler = |message: &[u8], _: &Header<'_>| {
            assert!(message.iter().all(|&byte| byte == message[0]));
            assert_eq!(message.len(), 3 * payload);
            heard.push(message[0]);
        };
        subscription.poll(handler, 1).expect("open");
        heard.len() == 3
    });
    heard.sort_unstable();
    assert_eq!(heard, [0, 1, 2]);
}

#[test]
fn survives_other_publishers_leaving() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let message = Random::new(6).bytes(2 * payload_length(&publication));
    offer(&mut publication, &message);
    assert_eq!(subscription.poll(|_, _| panic!("half a message"), 1), Ok(1));
    let other = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    await_that("its image", || subscription.images().len() == 2);
    drop(other);
    await_that("it goes", || subscription.images().len() == 1);
    assert!(receive(&mut subscription, 1) == [message]);
}

#[test]
fn headless_message_is_dropped() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let payload = payload_length(&publication);
    offer(&mut publication, &vec![1; 3 * payload]);
    offer(&mut publication, &vec![2; 3 * payload]);
    offer(&mut publication, b"whole");
    // The first has no beginning, the second no middle.
    assert_eq!(subscription.poll_fragments(|_, _| {}, 1), Ok(1));
    assert_eq!(subscription.poll(|_, _| panic!("not whole"), 3), Ok(3));
    assert_eq!(subscription.poll_fragments(|_, _| {}, 1), Ok(1));
    assert_eq!(receive(&mut subscription, 1), [b"whole"]);
}

#[test]
fn late_subscriber_starts_at_next_message() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut first) = connected_pair(&aeron, SHORT_TERMS);
    let payload = payload_length(&publication);
    offer(&mut publication, &vec![1; 3 * payload]);
    assert_eq!(first.poll(|_, _| panic!("half a message"), 1), Ok(1));
    // A tethered subscriber that has read no more than the beginning makes the other join there, as
    // soon as the driver has noticed.
    let mut second = await_some("an available window", || {
        let mut second = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
        await_that("the image", || second.is_connected());
        let join_position = second.image_at_index(0).expect("an image").join_position();
        (join_position > 0).then_some(second)
    });
    offer(&mut publication, b"next");
    assert_eq!(receive(&mut second, 1), [b"next"]);
    assert_eq!(receive(&mut first, 2)[1], b"next");
}

#[test]
fn panic_loses_and_repeats_nothing() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let payload = payload_length(&publication);
    for number in 0..5 {
        offer(&mut publication, &vec![number; 2 * payload]);
    }
    let mut received = Vec::new();
    await_that("all messages", || {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            subscription.poll(
                |message, _| {
                    assert_eq!(message.len(), 2 * payload);
                    received.push(message[0]);
                    assert_ne!(message[0] % 2, 1, "on purpose");
                },
                10,
            )
        }));
        received.len() == 5
    });
    assert_eq!(received, [0, 1, 2, 3, 4]);
}

#[test]
fn assembler_forgets_a_session() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let payload = payload_length(&publication);
    let session_id = publication.session_id();
    let mut assembler = FragmentAssembler::new();
    offer(&mut publication, b"short");
    let mut lengths = Vec::new();
    let mut poll = |assembler: &mut FragmentAssembler, limit| {
        let handler = assembler.handler(|message, _| lengths.push(message.len()));
        assert_eq!(subscription.poll_fragments(handler, limit), Ok(limit));
    };
    poll(&mut assembler, 1);
    assert!(!assembler.remove_session(session_id), "short messages need none");
    offer(&mut publication, &vec![1; 2 * payload]);
    offer(&mut publication, &vec![2; 3 * payload]);
    poll(&mut assembler, 1);
    assert!(assembler.remove_session(session_id));
    poll(&mut assembler, 1);
    assert!(!assembler.remove_session(session_id), "an end alone needs none");
    poll(&mut assembler, 3);
    assert!(assembler.remove_session(session_id));
    assert_eq!(lengths, [5, 3 * payload]);
}
