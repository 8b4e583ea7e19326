//! Claims and messages start at multiples of 32 bytes in memory, however they are sent and received.

use rusteron_client::{
    Action, FragmentAssembler, Header, ImageFragmentAssembler, Messages, Position, Subscription,
};
use rusteron_test_support::{
    Random, SHORT_TERMS, await_that, connect, connected_pair, launch, offer, retry, shared_pair,
    udp_channel,
};

/// Numbers of messages that reach into the second term of 64 KiB.
const MESSAGES: usize = 40;

#[track_caller]
fn assert_aligned(bytes: &[u8]) {
    assert_eq!(bytes.as_ptr().addr() % 32, 0, "{} bytes at {:p}", bytes.len(), bytes.as_ptr());
}

fn channels() -> [String; 2] {
    [SHORT_TERMS.to_owned(), format!("{}|term-length=64k", udp_channel())]
}

/// Sends messages of one and of several fragments, and has each polled before the next. `poll`
/// gets a handler that counts messages.
fn exchange(mut poll: impl FnMut(&mut Subscription, &mut dyn FnMut(&[u8], &Header<'_>))) {
    for channel in channels() {
        let driver = launch();
        let aeron = connect(&driver);
        let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
        let longest = publication.constants().max_message_length;
        let mut random = Random::new(7);
        for number in 0..MESSAGES {
            let length = if number % 2 == 0 { random.below(200) } else { random.below(longest) };
            let end = offer(&mut publication, &random.bytes(length));
            let mut received = 0;
            await_that("the message", || {
                poll(&mut subscription, &mut |bytes, header| {
                    assert_aligned(bytes);
                    received = header.position();
                });
                received == end
            });
        }
    }
}

#[test]
fn claims_are_aligned() {
    for channel in channels() {
        let driver = launch();
        let aeron = connect(&driver);
        let (mut exclusive, mut subscription) = connected_pair(&aeron, &channel);
        let (shared, mut shared_subscription) = shared_pair(&aeron, &channel);
        let longest = exclusive.constants().max_payload_length;
        let mut random = Random::new(8);
        for _ in 0..4 * MESSAGES {
            let length = random.below(longest + 1);
            let ends = [
                retry(|| {
                    let claim = exclusive.try_claim(length)?;
                    assert_aligned(&claim);
                    claim.commit()
                }),
                retry(|| {
                    let claim = shared.try_claim(length)?;
                    assert_aligned(&claim);
                    claim.commit()
                }),
            ];
            for (subscription, end) in
                [&mut subscription, &mut shared_subscription].iter_mut().zip(ends)
            {
                let end = end.expect("a position");
                await_that("the message", || {
                    let mut received = 0;
                    let handler = |message: &[u8], header: &Header<'_>| {
                        assert_aligned(message);
                        received = header.position();
                    };
                    subscription.poll(handler, 10).expect("open");
                    received == end
                });
            }
        }
    }
}

#[test]
fn polled_messages_are_aligned() {
    exchange(|subscription, handler| {
        subscription.poll(handler, 10).expect("open");
    });
}

#[test]
fn controlled_messages_are_aligned() {
    exchange(|subscription, handler| {
        let handler = |message: &[u8], header: &Header<'_>| {
            handler(message, header);
            Action::Continue
        };
        subscription.controlled_poll(handler, 10).expect("open");
    });
}

#[test]
fn batches_are_aligned() {
    exchange(|subscription, handler| {
        let handler = |messages: &mut Messages<'_>| {
            messages.for_each(|(message, header)| handler(message, &header));
        };
        subscription.poll_batch(handler, 10).expect("open");
    });
}

#[test]
fn fragments_and_peeks_are_aligned() {
    exchange(|subscription, handler| {
        if let Some(mut image) = subscription.image_at_index(0) {
            let peek = |fragment: &[u8], _: &Header<'_>| {
                assert_aligned(fragment);
                Action::Continue
            };
            let position = image.position();
            image.controlled_peek(position, peek, Position::MAX).expect("its position");
        }
        subscription.poll_fragments(handler, 10).expect("open");
    });
}

#[test]
fn blocks_are_aligned() {
    for channel in channels() {
        let driver = launch();
        let aeron = connect(&driver);
        let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
        let mut random = Random::new(9);
        for _ in 0..4 * MESSAGES {
            let length = random.below(2000);
            offer(&mut publication, &random.bytes(length));
            await_that("the block", || {
                let handler = |block: &[u8], _, _| assert_aligned(block);
                subscription.block_poll(handler, 64 * 1024).expect("open") > 0
            });
        }
    }
}

#[test]
fn assembled_messages_are_aligned() {
    let mut assembler = FragmentAssembler::new();
    exchange(|subscription, handler| {
        subscription.poll_fragments(assembler.handler(handler), 10).expect("open");
    });
    let mut assembler = ImageFragmentAssembler::new();
    exchange(|subscription, handler| {
        let mut handler = assembler.controlled_handler(|message, header| {
            handler(message, header);
            Action::Continue
        });
        subscription.controlled_poll_fragments(&mut handler, 10).expect("open");
    });
}
