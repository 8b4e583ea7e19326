//! Messages over IPC: contents, order, headers, lengths, term ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rusteron_client::OfferError;
use rusteron_test_support::{
    Random, SHORT_TERMS, await_some, await_that, connect, connected_pair, launch, offer, receive,
};

#[test]
fn whole_and_in_order() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let messages: Vec<Vec<u8>> =
        vec![b"".to_vec(), b"a".to_vec(), vec![7; 31], vec![8; 32], vec![9; 33], vec![1; 1376]];
    for message in &messages {
        offer(&mut publication, message);
    }
    assert_eq!(receive(&mut subscription, messages.len()), messages);
}

#[test]
fn random_lengths_over_many_terms() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let longest = publication.constants().max_payload_length;
    let count = 2_000;

    let publisher = thread::spawn(move || {
        let mut random = Random::new(1);
        for _ in 0..count {
            let length = random.below(longest + 1);
            let message = random.bytes(length);
            offer(&mut publication, &message);
        }
        publication
    });
    let mut random = Random::new(1);
    for number in 0..count {
        let length = random.below(longest + 1);
        let expected = random.bytes(length);
        assert_eq!(receive(&mut subscription, 1)[0], expected, "message {number}");
    }
    let publication = publisher.join().expect("the publisher");
    let terms =
        publication.position().expect("open") / publication.constants().term_buffer_length as i64;
    assert!(terms > 10, "only {terms} terms");
}

#[test]
fn long_message_arrives_in_fragments() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let payload = publication.constants().max_payload_length;
    let message = Random::new(2).bytes(2 * payload + 100);
    offer(&mut publication, &message);

    let (mut assembled, mut flags) = (Vec::new(), Vec::new());
    await_that("three fragments", || {
        subscription
            .poll_fragments(
                |fragment, header| {
                    assembled.extend_from_slice(fragment);
                    flags.push(header.flags());
                    assert!(!header.is_unfragmented());
                },
                10,
            )
            .expect("open");
        flags.len() == 3
    });
    assert_eq!(flags, [0x80, 0, 0x40]);
    assert_eq!(assembled, message);
}

#[test]
fn message_too_long_is_refused() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut exclusive, _subscription) = connected_pair(&aeron, SHORT_TERMS);
    let shared = aeron.add_publication(SHORT_TERMS, 1001).expect("a publication");
    await_that("the connection", || shared.is_connected());
    let max = exclusive.constants().max_message_length;
    assert_eq!(max, 64 * 1024 / 8);
    let too_long = vec![0; max + 1];
    let refused = Err(OfferError::MessageTooLong { length: max + 1, max_message_length: max });
    assert_eq!(exclusive.offer(&too_long), refused);
    assert_eq!(shared.offer(&too_long), refused);
    assert_eq!(exclusive.position(), Ok(0), "nothing was sent");
    offer(&mut exclusive, &too_long[..max]);
}

#[test]
fn headers_have_source_and_end() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    for length in [5, 100] {
        let position = offer(&mut publication, &vec![1; length]);
        let read = await_some("the message", || {
            let mut read = None;
            let fragments = subscription
                .poll(
                    |message, header| {
                        assert_eq!(header.frame_length(), message.len() + 32);
                        assert!(header.is_unfragmented());
                        assert_eq!(header.reserved_value(), 0);
                        assert_eq!(header.term_id(), header.initial_term_id());
                        read = Some((header.position(), header.session_id(), header.stream_id()));
                    },
                    10,
                )
                .expect("open");
            assert_eq!(fragments, usize::from(read.is_some()));
            read
        });
        assert_eq!(read, (position, publication.session_id(), 1001));
    }
}

#[test]
fn not_connected_without_a_subscriber() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut exclusive = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    let shared = aeron.add_publication("aeron:ipc", 1001).expect("a publication");
    assert!(!exclusive.is_connected() && !shared.is_connected());
    assert_eq!(exclusive.offer(b"x"), Err(OfferError::NotConnected));
    assert_eq!(shared.offer(b"x"), Err(OfferError::NotConnected));
    assert!(OfferError::NotConnected.is_retryable());
}

#[test]
fn back_pressure_loses_nothing() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let mut sent = 0_u32;
    await_that("back-pressure", || match publication.offer(&sent.to_le_bytes()) {
        Ok(_) => {
            sent += 1;
            false
        }
        Err(OfferError::BackPressured) => publication.position().expect("open") >= 32 * 1024,
        Err(OfferError::AdminAction) => false,
        Err(error) => panic!("{error}"),
    });
    let received = receive(&mut subscription, sent as usize);
    for (number, message) in received.iter().enumerate() {
        assert_eq!(*message, (number as u32).to_le_bytes());
    }
    offer(&mut publication, b"and on");
    assert_eq!(receive(&mut subscription, 1), [b"and on"]);
}

#[test]
fn threads_share_a_publication() {
    const EACH: u32 = 2_000;
    let driver = launch();
    let aeron = connect(&driver);
    let publication = aeron.add_publication(SHORT_TERMS, 1001).expect("a publication");
    let mut subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    await_that("the connection", || publication.is_connected());

    let mut next = [0_u32; 2];
    thread::scope(|scope| {
        for publisher in 0..next.len() as u32 {
            let publication = &publication;
            scope.spawn(move || {
                for number in 0..EACH {
                    let mut message = publisher.to_le_bytes().to_vec();
                    message.extend_from_slice(&number.to_le_bytes());
                    await_that("an available window", || match publication.offer(&message) {
                        Ok(_) => true,
                        Err(error) => {
                            assert!(error.is_retryable(), "{error}");
                            false
                        }
                    });
                }
            });
        }
        await_that("all messages", || {
            let read = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
            subscription
                .poll(
                    |message, _| {
                        let publisher = read(&message[..4]) as usize;
                        assert_eq!(read(&message[4..]), next[publisher]);
                        next[publisher] += 1;
                    },
                    10,
                )
                .expect("open");
            next == [EACH; 2]
        });
    });
}

#[test]
fn all_publishers_are_received() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    let mut publications: Vec<_> = (0..3)
        .map(|_| aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication"))
        .collect();
    await_that("all images", || subscription.image_count() == 3);
    for publication in &mut publications {
        offer(publication, b"here");
    }
    let mut heard = Vec::new();
    await_that("every publisher", || {
        subscription.poll(|_, header| heard.push(header.session_id()), 10).expect("open");
        heard.len() == 3
    });
    let mut expected: Vec<i32> = publications.iter().map(|one| one.session_id()).collect();
    expected.sort_unstable();
    heard.sort_unstable();
    assert_eq!(heard, expected);

    // One goes; the images shrink, and the others are still heard.
    drop(publications.pop());
    await_that("one image less", || subscription.image_count() == 2);
    offer(&mut publications[0], b"still here");
    assert_eq!(receive(&mut subscription, 1), [b"still here"]);
}

#[test]
fn panic_loses_and_repeats_nothing() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    for number in 0..5_u8 {
        offer(&mut publication, &[number]);
    }
    let mut received = Vec::new();
    await_that("all messages", || {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            subscription.poll(
                |message, _| {
                    received.push(message[0]);
                    assert_ne!(message[0], 2, "on purpose");
                },
                10,
            )
        }));
        if outcome.is_err() {
            assert_eq!(received, [0, 1, 2]);
        }
        received.len() == 5
    });
    assert_eq!(received, [0, 1, 2, 3, 4]);
}

#[test]
fn fragment_limit_holds() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    for _ in 0..10 {
        offer(&mut publication, b"x");
    }
    assert_eq!(subscription.poll(|_, _| panic!("none was asked for"), 0), Ok(0));
    let mut polls = Vec::new();
    await_that("all messages", || {
        let mut calls = 0;
        let fragments = subscription.poll(|_, _| calls += 1, 4).expect("open");
        assert_eq!(calls, fragments);
        if fragments > 0 {
            polls.push(fragments);
        }
        polls.iter().sum::<usize>() == 10
    });
    assert_eq!(polls, [4, 4, 2]);
}

#[test]
fn handles_move_to_other_threads() {
    let driver = launch();
    let aeron = connect(&driver);
    let (publication, subscription) = connected_pair(&aeron, "aeron:ipc");
    let received = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut publication = publication;
            offer(&mut publication, b"from another thread");
            // A publication that goes takes its messages with it only after they are read.
            await_that("the subscriber", || received.load(Ordering::Acquire));
        });
        scope.spawn(|| {
            let mut subscription = subscription;
            assert_eq!(receive(&mut subscription, 1), [b"from another thread"]);
            received.store(true, Ordering::Release);
        });
    });
}

#[test]
fn concurrent_offer_and_poll() {
    // Four times round the log: the publisher later overwrites the bytes that the subscriber reads.
    // ThreadSanitizer sees whether the read has ended before the write begins.
    const COUNT: usize = 4 * 3 * 65536 / 256;
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let shared = aeron.add_publication(SHORT_TERMS, 1001).expect("a publication");
    await_that("its image", || subscription.image_count() == 2);
    thread::scope(|scope| {
        scope.spawn(|| (0..COUNT).for_each(|n| _ = offer(&mut publication, &[n as u8; 200])));
        scope.spawn(|| {
            for n in 0..COUNT {
                await_some("an available window", || shared.offer(&[n as u8; 200]).ok());
            }
        });
        scope.spawn(|| {
            for message in receive(&mut subscription, 2 * COUNT) {
                assert!(message.len() == 200 && message.iter().all(|&byte| byte == message[0]));
            }
        });
    });
}
