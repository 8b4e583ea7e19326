//! Subscribers that want the newest message only.

use rusteron_client::{ExclusivePublication, Skipped, Subscription};
use rusteron_test_support::{
    SHORT_TERMS, await_that, connect, connected_pair, free_port, launch, offer,
};

/// The length of a message with one byte in the log.
const SHORT: u64 = 64;

/// Runs a test over IPC and over UDP.
fn over_both(test: impl Fn(&mut ExclusivePublication, &mut Subscription)) {
    let udp = format!("aeron:udp?endpoint=127.0.0.1:{}|term-length=64k", free_port());
    for channel in [SHORT_TERMS, &udp] {
        let driver = launch();
        let aeron = connect(&driver);
        let (mut publication, mut subscription) = connected_pair(&aeron, channel);
        test(&mut publication, &mut subscription);
    }
}

/// Skips until so many messages were passed over in all. Over UDP they arrive after a while.
fn skip(subscription: &mut Subscription, messages: u64) -> u64 {
    let mut total = Skipped::default();
    await_that("the messages", || {
        let skipped = subscription.skip_to_latest().expect("open");
        total.messages += skipped.messages;
        total.bytes += skipped.bytes;
        assert!(total.messages <= messages, "{total:?}");
        total.messages == messages
    });
    assert_eq!(subscription.skip_to_latest(), Ok(Skipped::default()));
    total.bytes
}

/// The first bytes of the messages that come.
fn poll(subscription: &mut Subscription) -> Vec<u8> {
    let mut first = Vec::new();
    subscription.poll(|message, _| first.push(message[0]), usize::MAX).expect("open");
    first
}

#[test]
fn newest_message_is_left() {
    over_both(|publication, subscription| {
        assert_eq!(subscription.skip_to_latest(), Ok(Skipped::default()));
        (0..10).for_each(|number| _ = offer(publication, &[number]));
        assert_eq!(skip(subscription, 9), 9 * SHORT);
        assert_eq!(poll(subscription), [9]);
        assert_eq!(subscription.skip_to_latest(), Ok(Skipped::default()));
    });
}

#[test]
fn newest_message_in_fragments_is_left_whole() {
    over_both(|publication, subscription| {
        let long = 3 * publication.constants().max_payload_length;
        offer(publication, &[0]);
        offer(publication, &vec![1; long]);
        assert_eq!(skip(subscription, 1), SHORT);
        let mut length = 0;
        await_that("the message", || {
            subscription.poll(|message, _| length = message.len(), 10).expect("open");
            length == long
        });
    });
}

#[test]
fn message_that_was_begun_is_dropped_for_a_newer_one() {
    over_both(|publication, subscription| {
        let long = vec![0; 2 * publication.constants().max_payload_length];
        offer(publication, &long);
        await_that("a fragment", || {
            subscription.poll(|_, _| panic!("half a message"), 1).expect("open") == 1
        });
        assert_eq!(subscription.skip_to_latest(), Ok(Skipped::default()), "nothing is newer");
        offer(publication, &[1]);
        await_that("the newer one", || subscription.skip_to_latest().expect("open").bytes > 0);
        assert_eq!(poll(subscription), [1]);
    });
}

#[test]
fn message_that_is_being_written_does_not_count() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    offer(&mut publication, &[0]);
    offer(&mut publication, &[1]);
    let claim = publication.try_claim(1).expect("an available window");
    assert_eq!(skip(&mut subscription, 1), SHORT);
    drop(claim);
    assert_eq!(poll(&mut subscription), [1]);
}

/// An aborted claim is padding. Polls drop a message with padding in it.
#[test]
fn message_with_a_hole_is_not_the_newest() {
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    let fragment = |publication: &mut ExclusivePublication, flags| {
        let mut claim = publication.try_claim(1).expect("an available window");
        claim.set_flags(flags);
        claim.commit().expect("open");
    };
    offer(&mut publication, &[0]);
    offer(&mut publication, &[1]);
    fragment(&mut publication, 0x80);
    publication.try_claim(1).expect("an available window").abort();
    fragment(&mut publication, 0x40);
    assert_eq!(skip(&mut subscription, 1), SHORT);
    assert_eq!(poll(&mut subscription), [1]);
}

#[test]
fn ends_of_terms_are_passed() {
    over_both(|publication, subscription| {
        let term_length = publication.constants().term_buffer_length as u64;
        let mut position = 0;
        while position < 4 * term_length {
            for number in 0..7 {
                position = offer(publication, &[number; 3000]) as u64;
            }
            skip(subscription, 6);
            assert_eq!(poll(subscription), [6]);
        }
    });
}
