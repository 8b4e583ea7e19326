//! Messages of one or of several lengths that contain their numbers.
//!
//! The loops count these messages rather than their bytes: each is one byte of the plan.

use std::sync::atomic::{AtomicU64, Ordering};

use rusteron_client::{ExclusivePublication, Header, OfferError, PollError, Subscription};
use rusteron_core::program::Failure;

use crate::measuring::message_path::{Poll, Publish};
use crate::measuring::run::CacheLine;

/// Length in bytes of the number in each message.
pub const NUMBER_LENGTH: usize = size_of::<u64>();

/// The lengths of messages, again and again in the same order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lengths(Vec<usize>);

impl Lengths {
    /// Number of random lengths before the first one comes again.
    const PERIOD: usize = 4096;

    /// One length for all, at least [`NUMBER_LENGTH`].
    pub fn fixed(length: usize) -> Self {
        Self(vec![length.max(NUMBER_LENGTH)])
    }

    /// Lengths between two bounds, both included. They are evenly spread, and the same in every
    /// process.
    pub fn random(shortest: usize, longest: usize) -> Self {
        let shortest = shortest.max(NUMBER_LENGTH);
        let count = longest.saturating_sub(shortest) as u64 + 1;
        // Knuth's linear congruential generator; its upper bits are good enough.
        let mut state = 20_121_u64;
        let mut length = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            shortest + ((state >> 33) % count) as usize
        };
        Self((0..Self::PERIOD).map(|_| length()).collect())
    }

    fn longest(&self) -> usize {
        self.0.iter().copied().max().unwrap_or(NUMBER_LENGTH)
    }
}

/// A position in the sequence of messages: publisher and subscriber have one each.
#[derive(Debug)]
struct Cursor<'a> {
    lengths: &'a [usize],
    index: usize,
    number: u64,
}

impl<'a> Cursor<'a> {
    fn new(lengths: &'a Lengths) -> Self {
        Self { lengths: &lengths.0, index: 0, number: 0 }
    }

    #[inline(always)]
    fn length(&self) -> usize {
        self.lengths[self.index]
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.number += 1;
        self.index += 1;
        if self.index == self.lengths.len() {
            self.index = 0;
        }
    }
}

/// Publishes numbered messages.
#[derive(Debug)]
pub struct NumberedPublication<'a> {
    publication: &'a mut ExclusivePublication,
    cursor: Cursor<'a>,
    message: Vec<u8>,
    payload: u64,
}

impl<'a> NumberedPublication<'a> {
    /// Messages on a publication, from number 0 on.
    pub fn new(publication: &'a mut ExclusivePublication, lengths: &'a Lengths) -> Self {
        let message = (0..=u8::MAX).cycle().take(lengths.longest()).collect();
        Self { publication, cursor: Cursor::new(lengths), message, payload: 0 }
    }
}

impl Publish for NumberedPublication<'_> {
    #[inline(always)]
    fn offer(&mut self, _: &[u8]) -> Result<(), OfferError> {
        let length = self.cursor.length();
        self.message[..NUMBER_LENGTH].copy_from_slice(&self.cursor.number.to_le_bytes());
        self.publication.offer(&self.message[..length])?;
        self.payload += length as u64;
        self.cursor.advance();
        Ok(())
    }
}

/// Payload bytes that have arrived, for the thread that samples.
#[derive(Debug, Default)]
pub struct Payload(CacheLine<AtomicU64>);

impl Payload {
    /// Number of messages so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Receives numbered messages, and compares each with the expected one.
#[derive(Debug)]
pub struct NumberedSubscription<'a> {
    subscription: &'a mut Subscription,
    check: Check<'a>,
    shared: &'a Payload,
}

/// The messages until now.
#[derive(Debug)]
struct Check<'a> {
    cursor: Cursor<'a>,
    payload: u64,
    unexpected: u64,
}

impl Check<'_> {
    #[inline(always)]
    fn receive(&mut self, message: &[u8]) {
        let number = message.first_chunk().map(|number| u64::from_le_bytes(*number));
        if number != Some(self.cursor.number) || message.len() != self.cursor.length() {
            self.unexpected += 1;
        }
        self.payload += message.len() as u64;
        self.cursor.advance();
    }
}

impl<'a> NumberedSubscription<'a> {
    /// Messages on a subscription, from number 0 on.
    pub fn new(
        subscription: &'a mut Subscription,
        lengths: &'a Lengths,
        shared: &'a Payload,
    ) -> Self {
        let check = Check { cursor: Cursor::new(lengths), payload: 0, unexpected: 0 };
        Self { subscription, check, shared }
    }

    /// Makes sure that all messages of the publication have arrived, once and in order.
    ///
    /// # Errors
    /// [`Failure::Run`] that tells how many are wrong.
    pub fn check(&self, publication: &NumberedPublication<'_>) -> Result<(), Failure> {
        let (sent, received) = (publication.cursor.number, self.check.cursor.number);
        if self.check.unexpected > 0 {
            let unexpected = self.check.unexpected;
            let text = format!("{unexpected} of {received} messages are not the expected ones");
            return Err(Failure::Run(text));
        }
        if (sent, publication.payload) != (received, self.check.payload) {
            return Err(Failure::Run(format!(
                "{received} messages with {} bytes were received of {sent} messages with {} bytes",
                self.check.payload, publication.payload
            )));
        }
        Ok(())
    }
}

impl Poll for NumberedSubscription<'_> {
    #[inline(always)]
    fn poll(&mut self, count: &mut u64, fragment_limit: usize) -> Result<usize, PollError> {
        let check = &mut self.check;
        let handler = |message: &[u8], _: &Header<'_>| {
            check.receive(message);
            *count += 1;
        };
        let fragments = self.subscription.poll(handler, fragment_limit)?;
        if fragments > 0 {
            self.shared.0.store(self.check.payload, Ordering::Relaxed);
        }
        Ok(fragments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_lengths_are_the_same_and_spread() {
        let lengths = Lengths::random(32, 1344);
        assert_eq!(lengths, Lengths::random(32, 1344));
        assert!(lengths.0.iter().all(|length| (32..=1344).contains(length)));
        let mean = lengths.0.iter().sum::<usize>() / lengths.0.len();
        assert!((660..716).contains(&mean), "{mean}");
        assert_eq!(Lengths::fixed(1).0, [NUMBER_LENGTH]);
    }

    #[test]
    fn other_numbers_and_lengths_are_unexpected() {
        let lengths = Lengths(vec![8, 16]);
        let mut check = Check { cursor: Cursor::new(&lengths), payload: 0, unexpected: 0 };
        let message = |number: u64, length: usize| {
            let mut message = number.to_le_bytes().to_vec();
            message.resize(length, 0);
            message
        };
        check.receive(&message(0, 8));
        check.receive(&message(1, 16));
        check.receive(&message(2, 8));
        assert_eq!((check.payload, check.unexpected), (32, 0));
        check.receive(&message(2, 16));
        check.receive(&message(4, 16));
        check.receive(&[]);
        assert_eq!((check.payload, check.unexpected), (64, 3));
    }
}
