//! A stream whose two ends count what happens to them while they run.

use std::sync::atomic::{AtomicU64, Ordering};

use rusteron_client::{Aeron, ExclusivePublication, OfferError, PollError, Subscription};
use serde_json::{Value, json};

use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::measuring::cache_line::CacheLine;
use crate::measuring::connection::Stream;
use crate::measuring::measurement::{self, Phase, Plan, Slice};
use crate::measuring::message_path::{Poll, Publish};

/// Counts of both ends' polls and offers during one slice of time, or several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Polls that found nothing.
    pub empty_polls: u64,
    /// Polls that found something.
    pub full_polls: u64,
    /// Offers that were refused because nothing remained below the position limit.
    pub refused: u64,
    /// How many bytes there were between the subscriber and the publisher at those offers, in all.
    pub unread_at_refusals: u64,
}

impl Counts {
    fn zip(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            empty_polls: with(self.empty_polls, other.empty_polls),
            full_polls: with(self.full_polls, other.full_polls),
            refused: with(self.refused, other.refused),
            unread_at_refusals: with(self.unread_at_refusals, other.unread_at_refusals),
        }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_add)
    }

    fn since(self, earlier: Self) -> Self {
        self.zip(earlier, u64::wrapping_sub)
    }
}

/// The messages that arrived during a slice of time, and the counts of both ends in that slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedSlice {
    /// The messages that arrived.
    pub slice: Slice,
    /// The counts of both ends.
    pub counts: Counts,
}

impl CountedSlice {
    /// The slice as an object.
    pub fn to_json(&self) -> Value {
        json!({
            "seconds": self.slice.elapsed.as_secs_f64(),
            "messages": self.slice.messages,
            "empty_polls": self.counts.empty_polls,
            "full_polls": self.counts.full_polls,
            "refused_offers": self.counts.refused,
            "unread_bytes_at_refusals": self.counts.unread_at_refusals,
        })
    }
}

/// Measures a stream as [`measurement::measure`] does.
///
/// # Errors
/// As there.
pub fn measure(
    stream: Stream,
    aeron: &Aeron,
    plan: &Plan,
    interrupt: &Interrupt,
) -> Result<Vec<CountedSlice>, Failure> {
    let Stream { publication, mut subscription } = stream;
    let subscriber_position_id =
        subscription.image_at_index(0).map(|image| image.subscriber_position_id());
    let counters = Counters::default();
    let mut publication =
        CountedPublication { publication, aeron, subscriber_position_id, counters: &counters };
    let mut subscription =
        CountedSubscription { subscription, empty: 0, full: 0, counters: &counters };
    let mut slices = Vec::new();
    // The counts at the end of the last slice. The counts include a part of the warm-up that is too short
    // for a slice. The first slice is left out for that.
    let mut last = None;
    measurement::measure(&mut publication, &mut subscription, plan, interrupt, |phase, slice| {
        if phase == Phase::Measured {
            let counts = counters.read();
            if let Some(last) = last.replace(counts) {
                slices.push(CountedSlice { slice: *slice, counts: counts.since(last) });
            }
        }
        Ok(())
    })?;
    Ok(slices)
}

/// Each end writes its own, and the thread that samples reads them at the end of a slice.
#[derive(Debug, Default)]
struct Counters {
    polls: CacheLine<Polls>,
    refusals: CacheLine<Refusals>,
}

#[derive(Debug, Default)]
struct Polls {
    empty: AtomicU64,
    full: AtomicU64,
}

#[derive(Debug, Default)]
struct Refusals {
    offers: AtomicU64,
    unread: AtomicU64,
}

impl Counters {
    fn read(&self) -> Counts {
        Counts {
            empty_polls: self.polls.empty.load(Ordering::Relaxed),
            full_polls: self.polls.full.load(Ordering::Relaxed),
            refused: self.refusals.offers.load(Ordering::Relaxed),
            unread_at_refusals: self.refusals.unread.load(Ordering::Relaxed),
        }
    }
}

/// Counts offers that are refused; the others go through Rust as if it were not there.
#[derive(Debug)]
struct CountedPublication<'a> {
    publication: ExclusivePublication,
    aeron: &'a Aeron,
    /// The counter that the subscriber writes its position to, and the driver's conductor reads.
    subscriber_position_id: Option<i32>,
    counters: &'a Counters,
}

impl CountedPublication<'_> {
    #[cold]
    fn count_refusal(&self) {
        let subscriber = self
            .subscriber_position_id
            .and_then(|counter_id| self.aeron.counters_reader().value(counter_id));
        // None if one of the two is closed: the next offer or poll will say that.
        let unread = subscriber.zip(self.publication.position().ok());
        let unread = unread.map_or(0, |(subscriber, publisher)| publisher - subscriber);
        let refusals = &self.counters.refusals;
        refusals.offers.fetch_add(1, Ordering::Relaxed);
        refusals.unread.fetch_add(unread.max(0).unsigned_abs(), Ordering::Relaxed);
    }
}

impl Publish for CountedPublication<'_> {
    #[inline(always)]
    fn offer(&mut self, message: &[u8]) -> Result<(), OfferError> {
        let offered = Publish::offer(&mut self.publication, message);
        if offered == Err(OfferError::BackPressured) {
            self.count_refusal();
        }
        offered
    }
}

/// Counts polls. It writes a line of its own for each, which is read only at the end of a slice.
#[derive(Debug)]
struct CountedSubscription<'a> {
    subscription: Subscription,
    empty: u64,
    full: u64,
    counters: &'a Counters,
}

impl Poll for CountedSubscription<'_> {
    #[inline(always)]
    fn poll(&mut self, bytes: &mut u64, fragment_limit: usize) -> Result<usize, PollError> {
        let fragments = Poll::poll(&mut self.subscription, bytes, fragment_limit)?;
        let polls = &self.counters.polls;
        if fragments > 0 {
            self.full += 1;
            polls.full.store(self.full, Ordering::Relaxed);
        } else {
            self.empty += 1;
            polls.empty.store(self.empty, Ordering::Relaxed);
        }
        Ok(fragments)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::command_line::driver_options::DriverOptions;
    use crate::measuring::connection::Connection;
    use rusteron_client::IdleStrategyKind;

    use super::*;

    const PLAN: Plan = Plan {
        message_length: 32,
        fragment_limit: 10,
        idle: IdleStrategyKind::Backoff,
        interval: Duration::from_millis(20),
        warmup: Duration::from_millis(20),
        measured: Some(Duration::from_millis(400)),
        timeout: Duration::from_secs(60),
    };

    #[test]
    fn what_both_ends_do_is_counted() {
        let driver = DriverOptions { term_length: None, threading_mode: None };
        let connection = Connection::embedded(driver.driver_context().expect("a context"));
        let connection = connection.expect("a driver");
        let interrupt = Interrupt::default();
        let channel = "aeron:ipc?term-length=64k".parse().expect("a channel");
        let stream = connection.open(&channel, 1001, &interrupt).expect("a stream");
        let slices = measure(stream, connection.aeron(), &PLAN, &interrupt).expect("slices");
        let counts = slices.iter().map(|slice| slice.counts).fold(Counts::default(), Counts::plus);
        let messages: u64 = slices.iter().map(|slice| slice.slice.messages).sum();
        assert!(messages > 0 && counts.full_polls > 0, "{slices:?}");
        // Half a term is the window: it is full again and again, by a message more at the most.
        assert!(counts.refused > 0 && counts.unread_at_refusals > 0, "{counts:?}");
        assert!(counts.unread_at_refusals / counts.refused <= (32 << 10) + 64, "{counts:?}");
    }

    #[test]
    fn counts_are_those_since_the_last_slice() {
        let earlier = Counts { empty_polls: 1, full_polls: 2, refused: 3, unread_at_refusals: 4 };
        let later = earlier.plus(Counts { refused: 7, ..Counts::default() });
        assert_eq!(later.since(earlier), Counts { refused: 7, ..Counts::default() });
    }
}
