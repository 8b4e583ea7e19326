//! Messages in terms that are cleaned again and again. A zero that arrives after the position limit erases a length, and
//! the subscriber waits for that message in vain, or it erases a part of the message.
//!
//! A process of its own, because the setting is the process's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rusteron_client::Header;
use rusteron_media_driver::TermCleaning;
use rusteron_test_support::{
    Random, SHORT_TERMS, await_that, connect, launch_with, retry, shared_pair, udp_channel,
};

/// Terms of 64 KiB are filled some hundred times.
const MESSAGES: u64 = 8_000;
/// After so many messages a publisher waits until all have been received, so that cleaning reaches its position.
const MESSAGES_PER_PAUSE: u64 = 1_000;
const PUBLISHERS: usize = 3;

/// Has the setting for a test.
static SETTING: Mutex<()> = Mutex::new(());

#[test]
fn streamed_zeros_precede_position_limit_over_ipc() {
    exchange_numbered(TermCleaning::Streaming, SHORT_TERMS);
}

#[test]
fn streamed_zeros_precede_position_limit_over_udp() {
    exchange_numbered(TermCleaning::Streaming, &format!("{}|term-length=64k", udp_channel()));
}

/// Pieces that are long enough to compare, which uses both kinds of stores.
#[test]
fn adaptive_cleaning_loses_nothing() {
    exchange_numbered(TermCleaning::Adaptive, "aeron:ipc?term-length=1m");
}

#[test]
fn cached_cleaning_streams_nothing() {
    exchange_numbered(TermCleaning::Cached, "aeron:ipc?term-length=1m");
}

/// Several threads publish numbered messages, whose length and contents follow from publisher and number.
fn exchange_numbered(cleaning: TermCleaning, channel: &str) {
    let _setting = SETTING.lock().unwrap_or_else(PoisonError::into_inner);
    let streamed_before = streamed_length();
    let driver = launch_with(|context| context.set_term_cleaning(cleaning));
    let aeron = connect(&driver);
    let (publication, mut subscription) = shared_pair(&aeron, channel);
    let received = [const { AtomicU64::new(0) }; PUBLISHERS];
    thread::scope(|scope| {
        for (publisher, received) in received.iter().enumerate() {
            let publication = &publication;
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    if number % MESSAGES_PER_PAUSE == 0 {
                        let is_received = || received.load(Ordering::Relaxed) == number;
                        await_that("the subscriber to catch up", is_received);
                    }
                    let message = message(publisher as u64, number);
                    retry(|| publication.offer(&message)).expect("an open publication");
                }
            });
        }
        while received.iter().any(|count| count.load(Ordering::Relaxed) < MESSAGES) {
            let check = |bytes: &[u8], _: &Header<'_>| {
                let publisher = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
                let number = received[publisher as usize].fetch_add(1, Ordering::Relaxed);
                assert!(bytes == message(publisher, number), "{publisher}: message {number}");
            };
            await_that("a fragment", || subscription.poll(check, 10).expect("open") > 0);
        }
    });
    let has_streaming_stores = cfg!(all(target_arch = "x86_64", not(windows)));
    let expects_streaming = has_streaming_stores && cleaning != TermCleaning::Cached;
    assert_eq!(streamed_length() > streamed_before, expects_streaming, "{cleaning}");
}

fn streamed_length() -> u64 {
    // SAFETY: reads an atomic counter.
    unsafe { rusteron_sys::driver::rusteron_streamed_length() }
}

/// The bytes of a message, none of them 0 but in the publisher's index.
fn message(publisher: u64, number: u64) -> Vec<u8> {
    let mut random = Random::new(number * PUBLISHERS as u64 + publisher + 1);
    let length = 8 + random.below(3_000);
    let mut message: Vec<u8> = random.bytes(length).iter().map(|byte| byte | 1).collect();
    message[..8].copy_from_slice(&publisher.to_le_bytes());
    message
}
