//! Threads that publish. On one shared publication, every message arrives once. Each thread's messages
//! arrive in their order, while terms come to their end all the time.

use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rusteron_client::{Header, OfferError, Publication};
use rusteron_test_support::{
    Random, SHORT_TERMS, await_that, connect, connected_pair, launch, offer, receive, shared_pair,
};

const PUBLISHERS: usize = 4;
const MESSAGES: usize = 10_000;

/// Thread, number, and a length and filling that follow from them.
fn message(publisher: usize, number: usize) -> Vec<u8> {
    let mut message = [publisher as u32, number as u32].map(u32::to_le_bytes).concat();
    let length = match number % 97 {
        0 => 3_000,
        other => 8 + (publisher * 31 + number * 7) % (other + 60),
    };
    message.resize(length, number as u8);
    message
}

fn retried(error: OfferError) -> bool {
    assert!(error.is_retryable(), "{error}");
    thread::yield_now();
    false
}

fn publish(publication: &Publication, publisher: usize, is_over: &AtomicBool) {
    let mut random = Random::new(publisher as u64);
    let mut number = 0;
    while number < MESSAGES && !is_over.load(Ordering::Relaxed) {
        let count = if random.below(4) == 0 { random.below(40) + 1 } else { 1 };
        let messages: Vec<_> =
            (number..(number + count).min(MESSAGES)).map(|n| message(publisher, n)).collect();
        if count > 1 {
            let batch = publication.offer_batch(&messages);
            batch.stopped_by.map(retried);
            number += batch.accepted;
            continue;
        }
        let message = &messages[0];
        let outcome = match random.below(4) {
            0 => {
                let (head, tail) = message.split_at(message.len() / 2);
                publication.offer_parts(&[IoSlice::new(head), IoSlice::new(tail)])
            }
            1 if message.len() <= publication.max_payload_length() => {
                publication.try_claim(message.len()).and_then(|mut claim| {
                    claim.copy_from_slice(message);
                    claim.commit()
                })
            }
            2 => {
                if let Ok(claim) = publication.try_claim(random.below(200)) {
                    claim.abort();
                }
                publication.offer_with_reserved_value(message, |payload| payload.len() as i64)
            }
            _ => publication.offer(message),
        };
        number += usize::from(outcome.map_or_else(retried, |_| true));
    }
}

#[test]
fn each_message_arrives_once_in_order() {
    let driver = launch();
    let aeron = connect(&driver);
    let (publication, mut subscription) = shared_pair(&aeron, SHORT_TERMS);

    let is_over = AtomicBool::new(false);
    let mut next = [0; PUBLISHERS];
    thread::scope(|scope| {
        // Publishers end with this thread, also if it panics.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _over = Over(&is_over);
        for publisher in 0..PUBLISHERS {
            let (publication, is_over) = (&publication, &is_over);
            scope.spawn(move || publish(publication, publisher, is_over));
        }
        await_that("all messages", || {
            let handler = |received: &[u8], _: &Header<'_>| {
                let publisher = u32::from_le_bytes(received[..4].try_into().expect("4")) as usize;
                assert!(
                    received == message(publisher, next[publisher]),
                    "message {} of publisher {publisher}",
                    next[publisher]
                );
                next[publisher] += 1;
            };
            subscription.poll(handler, 10).expect("open");
            next == [MESSAGES; PUBLISHERS]
        });
    });
    let terms = publication.position().expect("open") / 65_536;
    assert!(terms > 20, "only {terms} terms came to an end");
}

/// Four times round the log: the publisher later overwrites the bytes that the subscriber reads. ThreadSanitizer sees
/// whether the read has ended before the write begins.
#[test]
fn exclusive_publisher_overwrites_what_was_read() {
    const COUNT: usize = 4 * 3 * 65536 / 256;
    let driver = launch();
    let aeron = connect(&driver);
    let (mut publication, mut subscription) = connected_pair(&aeron, SHORT_TERMS);
    thread::scope(|scope| {
        scope.spawn(|| (0..COUNT).for_each(|n| _ = offer(&mut publication, &[n as u8; 200])));
        for message in receive(&mut subscription, COUNT) {
            assert!(message.len() == 200 && message.iter().all(|&byte| byte == message[0]));
        }
    });
}
