//! Publications and subscriptions that are connected, and messages between them.

use rusteron_client::{
    Aeron, ExclusivePublication, Header, OfferError, Publication, Publisher, Result, Subscription,
};

use crate::{Random, await_some, await_that};

/// The terms of tests that write to the end of many of them: the shortest there are.
pub const SHORT_TERMS: &str = "aeron:ipc?term-length=64k";

/// A publication and a subscription of the same stream that know of each other.
pub fn connected_pair(aeron: &Aeron, channel: &str) -> (ExclusivePublication, Subscription) {
    let subscription = aeron.add_subscription(channel, 1001).expect("a subscription");
    let publication = aeron.add_exclusive_publication(channel, 1001).expect("a publication");
    await_connection(&publication, &subscription);
    (publication, subscription)
}

/// The same with a publication that others may share.
pub fn shared_pair(aeron: &Aeron, channel: &str) -> (Publication, Subscription) {
    let subscription = aeron.add_subscription(channel, 1002).expect("a subscription");
    let publication = aeron.add_publication(channel, 1002).expect("a publication");
    await_connection(&publication, &subscription);
    (publication, subscription)
}

/// Waits until both know of each other and a message is accepted.
fn await_connection(publisher: &impl Publisher, subscription: &Subscription) {
    await_that("the connection", || {
        // The driver says that there is a subscriber before it says how far the publisher may go.
        publisher.available_window().is_ok_and(|window| window > 0) && subscription.is_connected()
    });
}

/// Tries until there is something other than a state that passes.
pub fn retry<T>(mut attempt: impl FnMut() -> Result<T, OfferError>) -> Result<T, OfferError> {
    await_some("an answer", || match attempt() {
        Err(error) if error.is_retryable() => None,
        outcome => Some(outcome),
    })
}

/// Offers until the message is accepted; panics on an error that repeating does not help.
pub fn offer(publisher: &mut impl Publisher, message: &[u8]) -> i64 {
    retry(|| publisher.offer(message)).unwrap_or_else(|error| panic!("{error}"))
}

/// The next `count` messages.
pub fn receive(subscription: &mut Subscription, count: usize) -> Vec<Vec<u8>> {
    let mut received = Vec::new();
    await_that("the messages", || {
        let limit = count - received.len();
        subscription
            .poll(|message, _| received.push(message.to_vec()), limit)
            .expect("an open subscription");
        received.len() == count
    });
    received
}

/// The next `count` fragments or more: payload, flags, reserved value.
pub fn receive_fragments(subscription: &mut Subscription, count: usize) -> Vec<(Vec<u8>, u8, i64)> {
    let mut received = Vec::new();
    await_that("the fragments", || {
        let handler = |fragment: &[u8], header: &Header<'_>| {
            received.push((fragment.to_vec(), header.flags(), header.reserved_value()));
        };
        subscription.poll_fragments(handler, 10).expect("open");
        received.len() >= count
    });
    received
}

/// Sends messages of random lengths and contents, and checks that all arrive in their order.
pub fn exchange(
    publication: &mut ExclusivePublication,
    subscription: &mut Subscription,
    count: usize,
) {
    exchange_with(publication, &mut [subscription], count);
}

/// As [`exchange`], with several subscriptions that get the same.
pub fn exchange_with(
    publication: &mut ExclusivePublication,
    subscriptions: &mut [&mut Subscription],
    count: usize,
) {
    let message = |number: usize| {
        let mut random = Random::new(number as u64 + 1);
        let length = 8 + random.below(2000);
        let mut message = random.bytes(length);
        message[..8].copy_from_slice(&(number as u64).to_le_bytes());
        message
    };
    let (mut sent, mut received) = (0, vec![0; subscriptions.len()]);
    await_that("all messages", || {
        while sent < count && publication.offer(&message(sent)).is_ok() {
            sent += 1;
        }
        for (subscription, received) in subscriptions.iter_mut().zip(&mut received) {
            subscription
                .poll(
                    |bytes, _| {
                        assert!(bytes == message(*received), "message {received} is another");
                        *received += 1;
                    },
                    10,
                )
                .expect("an open subscription");
        }
        received.iter().all(|received| *received == count)
    });
}
