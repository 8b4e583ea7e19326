//! A publisher, with a publication on each stream.

use std::io::IoSlice;
use std::process;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, AnyPublication, Counter, OfferError, Publisher as _, Result};
use rusteron_test_support::Random;

use super::client::{self, End, Work};
use super::{PartOptions, accuse};
use crate::clients::oracle::TIMEOUT_REPORT_DEADLINE;
use crate::clients::settings::{MAX_LENGTH, STREAMS};
use crate::message::Message;
use crate::party::{Notice, Orders, say};

/// How often a message is sent at a checkpoint.
const BEAT: Duration = Duration::from_millis(50);
/// The type of the publishers' counters.
const COUNTER_TYPE: i32 = 7_001;
/// The most messages of a batch.
const BATCH: usize = 6;

pub(super) fn play(options: &PartOptions, orders: &Orders) {
    let mut publisher = Publisher {
        endpoint: options.endpoint.clone(),
        index: options.index,
        random: Random::new(options.seed),
        number_of_counters: options.counters,
        counters: Vec::new(),
        flows: Vec::new(),
        publications: 0,
        checkpoint: 0,
        last_beat: Instant::now(),
        sent: 0,
    };
    client::run(&mut publisher, options, orders);
}

struct Publisher {
    endpoint: String,
    index: u16,
    random: Random,
    number_of_counters: usize,
    counters: Vec<OwnCounter>,
    flows: Vec<Flow>,
    /// Over all clients.
    publications: u64,
    checkpoint: u64,
    last_beat: Instant,
    sent: u64,
}

impl Work for Publisher {
    fn join(&mut self, aeron: &Aeron) -> Result<()> {
        for _ in 0..self.number_of_counters {
            let counter = aeron.add_counter(COUNTER_TYPE, &[], "survival")?;
            let value = odd_position(&mut self.random);
            counter.set(value);
            self.counters.push(OwnCounter { counter, value, changed: None });
        }
        for stream in STREAMS {
            let channel = stream.channel(&self.endpoint);
            let publisher = if stream.is_shared {
                AnyPublication::from(aeron.add_publication(&channel, stream.id)?)
            } else {
                AnyPublication::from(aeron.add_exclusive_publication(&channel, stream.id)?)
            };
            self.publications += 1;
            let (index, process) = (u64::from(self.index) + 1, u64::from(process::id()));
            let publication = index << 48 | process << 16 | self.publications;
            self.flows.push(Flow { stream_id: stream.id, publisher, publication, next: 0 });
        }
        self.announce();
        Ok(())
    }

    fn work(&mut self) -> std::result::Result<bool, End> {
        let now = Instant::now();
        for counter in &mut self.counters {
            counter.check(now);
        }
        if self.checkpoint > 0 && now.duration_since(self.last_beat) < BEAT {
            return Ok(false);
        }
        self.last_beat = now;
        let mut is_busy = false;
        for flow in &mut self.flows {
            let count = flow.send(&mut self.random, self.checkpoint)?;
            self.sent += count;
            is_busy |= count > 0;
        }
        // One burst a millisecond: subscribers have to keep up on few cores.
        Ok(is_busy && self.random.percent(50))
    }

    fn set_checkpoint(&mut self, checkpoint: u64) {
        self.checkpoint = checkpoint;
        self.announce();
    }

    fn leave(&mut self, had_timed_out: bool) {
        self.flows.clear();
        for mut counter in self.counters.drain(..) {
            // Counters that the driver has freed belong to others.
            if !had_timed_out {
                counter.report();
            }
        }
    }

    fn counts(&self) -> (u64, u64) {
        (self.sent, 0)
    }
}

impl Publisher {
    /// Tells the supervisor which publications send the messages of the checkpoint.
    fn announce(&self) {
        if self.checkpoint > 0 && self.flows.len() == STREAMS.len() {
            let publications = self.flows.iter().map(|flow| flow.publication).collect();
            say(&Notice::Publishing(self.checkpoint, publications));
        }
    }
}

/// A counter that only this publisher may change.
struct OwnCounter {
    counter: Counter,
    value: i64,
    /// When it was seen to have another value.
    changed: Option<Instant>,
}

impl OwnCounter {
    /// Reports another value, if the client still lives long after it was seen: then the counter is its own.
    fn check(&mut self, now: Instant) {
        if self.counter.get() == self.value {
            self.changed = None;
        } else if now >= *self.changed.get_or_insert(now) + TIMEOUT_REPORT_DEADLINE {
            self.report();
        }
    }

    fn report(&mut self) {
        let (value, expected) = (self.counter.get(), self.value);
        if value != expected {
            let id = self.counter.counter_id();
            accuse("foreign", 1, format!("counter {id}: {value}, not {expected}"));
            self.value = value;
            self.changed = None;
        }
    }
}

/// A number that does harm where it is taken for the position of a stream.
fn odd_position(random: &mut Random) -> i64 {
    match random.below(5) {
        0 => i64::MAX - 32 * random.below(2) as i64,
        1 => -64 * random.below(100) as i64,
        2 => random.below(1 << 20) as i64,
        _ => 32 * random.below(1 << 15) as i64,
    }
}

/// The number of messages that were accepted.
type Offered = std::result::Result<u64, OfferError>;

/// A publication and its sequence of messages.
struct Flow {
    stream_id: i32,
    publisher: AnyPublication,
    publication: u64,
    next: u64,
}

impl Flow {
    /// Sends some messages, in one of several ways, and returns how many were accepted.
    fn send(&mut self, random: &mut Random, checkpoint: u64) -> std::result::Result<u64, End> {
        let outcome = match random.below(4) {
            0 => self.offer_parts(random, checkpoint),
            1 => self.claim(random, checkpoint),
            2 if checkpoint == 0 => self.offer_batch(random),
            _ => self.publisher.offer(&self.message(0, checkpoint)).map(|_| 1),
        };
        match outcome {
            Ok(count) => {
                self.next += count;
                Ok(count)
            }
            Err(OfferError::Closed(_)) => Err(End::Closed(None)),
            Err(error) if error.is_retryable() => Ok(0),
            Err(error) => {
                accuse("refused", 1, format!("stream {}: {error}", self.stream_id));
                Err(End::Closed(None))
            }
        }
    }

    fn message(&self, ahead: u64, checkpoint: u64) -> Vec<u8> {
        let message = Message {
            stream_id: self.stream_id,
            session_id: self.publisher.session_id(),
            publication: self.publication,
            sequence: self.next + ahead,
            phase: checkpoint,
        };
        message.to_vec(MAX_LENGTH, false)
    }

    fn offer_parts(&mut self, random: &mut Random, checkpoint: u64) -> Offered {
        let bytes = self.message(0, checkpoint);
        let (first, second) = bytes.split_at(random.below(bytes.len()));
        self.publisher.offer_parts(&[IoSlice::new(first), IoSlice::new(second)]).map(|_| 1)
    }

    fn claim(&mut self, random: &mut Random, checkpoint: u64) -> Offered {
        let bytes = self.message(0, checkpoint);
        if bytes.len() > self.publisher.max_payload_length() {
            return self.publisher.offer(&bytes).map(|_| 1);
        }
        let mut claim = self.publisher.try_claim(bytes.len())?;
        claim.copy_from_slice(&bytes);
        if random.percent(5) {
            claim.abort();
            return Ok(0);
        }
        claim.commit().map(|_| 1)
    }

    fn offer_batch(&mut self, random: &mut Random) -> Offered {
        let count = 1 + random.below(BATCH) as u64;
        let messages: Vec<_> = (0..count).map(|ahead| self.message(ahead, 0)).collect();
        let batch = self.publisher.offer_batch(&messages);
        match batch.stopped_by {
            Some(error) if batch.accepted == 0 => Err(error),
            // The error that stopped the batch stops the next offer as well.
            _ => Ok(batch.accepted as u64),
        }
    }
}
