//! Messages in batches: the loop that offers them, and the poll that receives them.

use rusteron_client::{IdleStrategy, OfferError, PollError, Publisher, Subscription};

use crate::measuring::message_path::Poll;
use crate::measuring::publisher;
use crate::measuring::run::Run;

/// How many messages are offered at once.
pub const BATCH_LENGTH: usize = 16;

/// As [`publisher::publish`], in batches.
///
/// # Errors
/// Errors that do not pass by waiting.
pub fn publish<P: Publisher, I: IdleStrategy>(
    publication: &mut P,
    message: &[u8],
    idle: &mut I,
    run: &Run,
) -> Result<u64, OfferError> {
    let batch = [message; BATCH_LENGTH];
    let batches = publisher::burst_length(message.len()).div_ceil(BATCH_LENGTH);
    let mut published = 0;
    while run.is_running() {
        for _ in 0..batches {
            let mut left = &batch[..];
            while !left.is_empty() {
                let offered = publication.offer_batch(left);
                published += offered.accepted as u64;
                left = &left[offered.accepted..];
                let Some(error) = offered.stopped_by else { continue };
                if !error.is_retryable() {
                    return Err(error);
                }
                if !run.is_running() {
                    return Ok(published);
                }
                idle.idle(offered.accepted);
            }
        }
    }
    Ok(published)
}

/// A subscription whose messages come in batches.
#[derive(Debug)]
pub struct Batches(pub Subscription);

impl Poll for Batches {
    #[inline(always)]
    fn poll(&mut self, bytes: &mut u64, fragment_limit: usize) -> Result<usize, PollError> {
        let count = |messages: &mut rusteron_client::Messages<'_>| {
            *bytes += messages.map(|(message, _)| message.len() as u64).sum::<u64>();
        };
        self.0.poll_batch(count, fragment_limit)
    }
}
