//! Polls: whole messages, however long, handlers that decide about the position, and handlers that
//! panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rusteron_client::{
    Action, ExclusivePublication, FragmentAssembler, Header, Image, Position, Subscription,
};
use rusteron_test_support::{
    Random, SHORT_TERMS, await_some, await_that, connect, connected_pair, launch, offer, receive,
};

fn payload_length(publication: &ExclusivePublication) -> usize {
    publication.constants().max_payload_length
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
    let mut assembler = FragmentAssembler::new();
    for is_assembler in [false, true] {
        for (number, publication) in publications.iter_mut().enumerate() {
            offer(publication, &vec![number as u8; 3 * payload]);
        }
        let mut heard = Vec::new();
        await_that("all messages", || {
            let handler = |message: &[u8], _: &Header<'_>| {
                assert!(message.iter().all(|&byte| byte == message[0]));
                assert_eq!(message.len(), 3 * payload);
                heard.push(message[0]);
            };
            // One fragment of one publisher at a time, in the subscription's way and with an
            // assembler.
            match is_assembler {
                false => subscription.poll(handler, 1),
                true => subscription.poll_fragments(assembler.handler(handler), 1),
            }
            .expect("open");
            heard.len() == 3
        });
        heard.sort_unstable();
        assert_eq!(heard, [0, 1, 2]);
    }
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

/// Where a subscription with a single image has got to.
fn position(subscription: &mut Subscription) -> Position {
    subscription.image_at_index(0).expect("an image").position()
}

/// Messages of a byte each, and the positions after them.
fn offer_numbers(publication: &mut ExclusivePublication, count: u8) -> Vec<Position> {
    (0..count).map(|number| offer(publication, &[number])).collect()
}

#[test]
fn each_action_has_its_effect() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let ends = offer_numbers(&mut publication, 6);

    let counter = subscription.image_at_index(0).expect("an image").as_ptr();
    // SAFETY: the image is live, and only its position is read, as another process could.
    let position_now = || unsafe { rusteron_sys::aeron_image_position(counter) };
    let mut seen = Vec::new();
    let handler = |message: &[u8], header: &Header<'_>| {
        seen.push((message[0], position_now()));
        assert_eq!(header.position(), ends[usize::from(message[0])]);
        match message[0] {
            0 => Action::Continue,
            1 => Action::Commit,
            _ => Action::Break,
        }
    };
    assert_eq!(subscription.controlled_poll(handler, 10), Ok(3));
    assert_eq!(seen, [(0, 0), (1, 0), (2, ends[1])]);
    assert_eq!(position(&mut subscription), ends[2]);

    // Refused once, and given again.
    let mut seen = Vec::new();
    for refuse in [true, false] {
        let handler = |message: &[u8], _: &Header<'_>| {
            seen.push(message[0]);
            if refuse && message[0] == 4 { Action::Abort } else { Action::Continue }
        };
        let count = subscription.controlled_poll(handler, 10).expect("open");
        assert_eq!(count, if refuse { 1 } else { 2 });
        assert_eq!(position(&mut subscription), ends[if refuse { 3 } else { 5 }]);
    }
    assert_eq!(seen, [3, 4, 4, 5]);
}

#[test]
fn aborted_long_message_repeats_whole() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let payload = publication.constants().max_payload_length;
    let message: Vec<u8> = (0..2 * payload + 10).map(|index| index as u8).collect();
    let end = offer(&mut publication, &message);
    let mut attempts = 0;
    for expected in [2, 0, 1] {
        let handler = |bytes: &[u8], header: &Header<'_>| {
            assert!(bytes == message);
            assert_eq!((header.position(), header.frame_length()), (end, message.len() + 32));
            attempts += 1;
            if attempts < 3 { Action::Abort } else { Action::Commit }
        };
        assert_eq!(subscription.controlled_poll(handler, 10), Ok(expected));
    }
    assert_eq!(attempts, 3);
    assert_eq!(position(&mut subscription), end);
}

#[test]
fn action_concerns_one_image() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut first, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let mut second = aeron.add_exclusive_publication("aeron:ipc", 1001).expect("a publication");
    await_that("both images", || subscription.images().len() == 2);
    offer_numbers(&mut first, 2);
    offer_numbers(&mut second, 2);
    let mut calls = 0;
    let handler = |_: &[u8], header: &Header<'_>| {
        calls += 1;
        if header.session_id() == first.session_id() { Action::Abort } else { Action::Continue }
    };
    assert_eq!(subscription.controlled_poll(handler, 10), Ok(2));
    assert_eq!(calls, 3);
}

/// Polls until the handler was given all of five messages. The handler panics at the third.
fn panics_lose_and_repeat_nothing(
    poll: impl Fn(&mut Subscription, &mut dyn FnMut(&[u8])) -> usize,
    length: impl Fn(usize) -> usize,
) {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let length = length(publication.constants().max_payload_length);
    let ends: Vec<_> =
        (0..5).map(|number| offer(&mut publication, &vec![number; length])).collect();
    let mut received = Vec::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        poll(&mut subscription, &mut |message| {
            received.push(message[0]);
            assert_ne!(message[0], 2, "on purpose");
        });
    }));
    assert!(outcome.is_err());
    assert_eq!(position(&mut subscription), ends[2]);
    poll(&mut subscription, &mut |message| received.push(message[0]));
    assert_eq!(received, [0, 1, 2, 3, 4]);
    assert_eq!(position(&mut subscription), ends[4]);
}

fn image(subscription: &mut Subscription) -> Image<'_> {
    subscription.image_at_index(0).expect("an image")
}

#[test]
fn panics_in_every_poll_lose_nothing() {
    const LIMIT: usize = 100;
    type Poll = fn(&mut Subscription, &mut dyn FnMut(&[u8])) -> usize;
    let whole: [Poll; 6] = [
        |subscription, handler| {
            subscription.poll(|message, _| handler(message), LIMIT).expect("open")
        },
        |subscription, handler| {
            let handler = |message: &[u8], _: &Header<'_>| {
                handler(message);
                Action::Continue
            };
            subscription.controlled_poll(handler, LIMIT).expect("open")
        },
        |subscription, handler| image(subscription).poll(|message, _| handler(message), LIMIT),
        |subscription, handler| {
            image(subscription).bounded_poll(|message, _| handler(message), Position::MAX, LIMIT)
        },
        |subscription, handler| {
            let handler = |message: &[u8], _: &Header<'_>| {
                handler(message);
                Action::Commit
            };
            image(subscription).controlled_poll(handler, LIMIT)
        },
        |subscription, handler| {
            let handler = |message: &[u8], _: &Header<'_>| {
                handler(message);
                Action::Continue
            };
            image(subscription).bounded_controlled_poll(handler, Position::MAX, LIMIT)
        },
    ];
    for poll in whole {
        panics_lose_and_repeat_nothing(poll, |_| 10);
        panics_lose_and_repeat_nothing(poll, |max_payload_length| 2 * max_payload_length);
    }
    let fragments: [Poll; 6] = [
        |subscription, handler| {
            subscription.poll_fragments(|message, _| handler(message), LIMIT).expect("open")
        },
        |subscription, handler| {
            let handler = |message: &[u8], _: &Header<'_>| {
                handler(message);
                Action::Commit
            };
            subscription.controlled_poll_fragments(handler, LIMIT).expect("open")
        },
        |subscription, handler| {
            image(subscription).poll_fragments(|message, _| handler(message), LIMIT)
        },
        |subscription, handler| {
            let handler = |message: &[u8], _: &Header<'_>| handler(message);
            image(subscription).bounded_poll_fragments(handler, Position::MAX, LIMIT)
        },
        |subscription, handler| {
            let handler = |message: &[u8], _: &Header<'_>| {
                handler(message);
                Action::Continue
            };
            image(subscription).controlled_poll_fragments(handler, LIMIT)
        },
        |subscription, handler| {
            let handler = |message: &[u8], _: &Header<'_>| {
                handler(message);
                Action::Commit
            };
            image(subscription).bounded_controlled_poll_fragments(handler, Position::MAX, LIMIT)
        },
    ];
    for poll in fragments {
        panics_lose_and_repeat_nothing(poll, |_| 10);
    }
    // A message of 10 bytes takes up 64: one a block.
    let blocks: [Poll; 2] = [
        |subscription, handler| {
            let mut total = 0;
            while let Ok(length @ 1..) =
                subscription.block_poll(|block, _, _| handler(&block[32..]), 64)
            {
                total += length;
            }
            total
        },
        |subscription, handler| {
            let mut image = image(subscription);
            let mut total = 0;
            while let length @ 1.. = image.block_poll(|block, _, _| handler(&block[32..]), 64) {
                total += length;
            }
            total
        },
    ];
    for poll in blocks {
        panics_lose_and_repeat_nothing(poll, |_| 10);
    }
}

#[test]
fn panic_in_a_peek_moves_nothing() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, "aeron:ipc");
    let ends = offer_numbers(&mut publication, 3);
    let mut image = image(&mut subscription);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        image.controlled_peek(0, |_, _| panic!("on purpose"), Position::MAX)
    }));
    assert!(outcome.is_err());
    assert_eq!(image.position(), 0);
    let seen = image.controlled_peek(0, |_, _| Action::Continue, Position::MAX);
    assert_eq!(seen.expect("valid"), ends[2]);
}
