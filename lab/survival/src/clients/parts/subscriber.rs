//! A subscriber, with a subscription to each stream.

use std::collections::HashSet;
use std::fs::File;
use std::mem;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::{Action, Aeron, FragmentAssembler, Header, PollError, Result, Subscription};
use rusteron_core::program::Failure;

use super::client::{self, End, Part};
use super::{Orders, accuse, say};
use crate::clients::options::{PartOptions, Sabotage};
use crate::clients::oracle::{Fault, Finding, Location, Oracle};
use crate::clients::settings::{CLIENT_LIVENESS, KEEPALIVE, STREAMS};
use crate::clients::words::{Notice, Order};
use rusteron_test_support::Random;

/// How often the supervisor is told how many messages there were.
const TICK: Duration = Duration::from_millis(200);
/// The driver gives up a client that was paused for so long at the earliest.
const PAUSED: Duration = CLIENT_LIVENESS.saturating_sub(KEEPALIVE.saturating_mul(2));
/// A mistake is made once in so many messages.
const MISTAKE: u64 = 500;
/// The most fragments of a poll.
const LIMIT: usize = 24;
/// No more faults than these are described, by each process.
const DESCRIBED: u64 = 20;

pub(super) fn play(options: &PartOptions, orders: &Orders) -> std::result::Result<(), Failure> {
    let mut subscriber = Subscriber {
        endpoint: options.endpoint.clone(),
        random: Random::new(options.seed),
        sabotage: options.sabotage,
        flows: Vec::new(),
        log: Log::default(),
        clients: 0,
        has_resumed: false,
    };
    client::run(&mut subscriber, options, orders);
    subscriber.log.tell();
    Ok(())
}

struct Subscriber {
    endpoint: String,
    random: Random,
    sabotage: Option<Sabotage>,
    flows: Vec<Flow>,
    log: Log,
    clients: usize,
    /// `true` once the current client has received a message.
    has_resumed: bool,
}

impl Part for Subscriber {
    fn join(&mut self, aeron: &Aeron) -> Result<()> {
        self.clients += 1;
        self.has_resumed = false;
        for stream in STREAMS {
            let channel = stream.channel(&self.endpoint);
            self.flows.push(Flow {
                subscription: aeron.add_subscription(&channel, stream.id)?,
                oracle: Oracle::new(stream.id),
                assembler: (self.clients % 3 == 2).then(FragmentAssembler::new),
            });
        }
        Ok(())
    }

    fn work(&mut self) -> std::result::Result<bool, End> {
        if self.log.last_told.is_none_or(|told| told.elapsed() >= TICK) {
            self.log.tell();
        }
        let mut is_busy = false;
        for flow in &mut self.flows {
            match flow.poll(&mut self.random, self.sabotage, &mut self.log) {
                Ok(count) => is_busy |= count > 0,
                Err(PollError::Closed(_)) => return Err(End::Closed(None)),
                Err(error) => return Err(End::Closed(Some(error.into()))),
            }
            for finding in flow.oracle.due(Instant::now()) {
                self.log.report(&finding);
            }
        }
        if is_busy && !self.has_resumed {
            self.has_resumed = true;
            say(&Notice::Resumed);
        }
        Ok(is_busy)
    }

    fn obey(&mut self, _order: Order) {}

    fn leave(&mut self, had_timed_out: bool) {
        for mut flow in mem::take(&mut self.flows) {
            let (findings, skipped) = flow.oracle.ended(Instant::now(), had_timed_out);
            for finding in findings {
                self.log.report(&finding);
            }
            self.log.skipped += skipped;
        }
        self.log.tell();
        if self.sabotage == Some(Sabotage::Undead) && had_timed_out {
            loop {
                thread::sleep(Duration::from_secs(1));
            }
        }
    }
}

/// The counts that the supervisor is told.
#[derive(Default)]
struct Log {
    received: u64,
    skipped: u64,
    described: u64,
    told: (u64, u64),
    last_told: Option<Instant>,
    /// Checkpoints and publications that the supervisor knows of.
    marks: HashSet<(u64, u64)>,
}

impl Log {
    fn tell(&mut self) {
        self.last_told = Some(Instant::now());
        if self.told != (self.received, self.skipped) {
            self.told = (self.received, self.skipped);
            say(&Notice::Messages(self.received));
            say(&Notice::Skipped(self.skipped));
        }
    }

    fn mark(&mut self, checkpoint: u64, publication: u64) {
        if checkpoint > 0 && self.marks.insert((checkpoint, publication)) {
            say(&Notice::Received(checkpoint, publication));
            self.marks.retain(|(number, _)| number + 1 >= checkpoint);
        }
    }

    fn report(&mut self, finding: &Finding) {
        let (name, count) = match finding.fault {
            Fault::Lost(count) => ("lost", count),
            Fault::Repeated => ("repeated", 1),
            Fault::Reordered => ("reordered", 1),
            Fault::Corrupted => ("corrupted", 1),
            Fault::Foreign => ("foreign", 1),
        };
        self.described += 1;
        let text = if self.described <= DESCRIBED { finding.text.as_str() } else { "" };
        accuse(name, count, text);
    }
}

/// A subscription and its expected messages.
struct Flow {
    subscription: Subscription,
    oracle: Oracle,
    /// For polls of fragments.
    assembler: Option<FragmentAssembler>,
}

impl Flow {
    /// Polls in one of the ways that there are.
    fn poll(
        &mut self,
        random: &mut Random,
        sabotage: Option<Sabotage>,
        log: &mut Log,
    ) -> std::result::Result<usize, PollError> {
        let Self { subscription, oracle, assembler } = self;
        let mut count = 0;
        for image in subscription.images() {
            oracle.joined(image.correlation_id(), image.join_position());
            count += 1;
        }
        if oracle.images() > count {
            let images: Vec<_> =
                subscription.images().map(|image| image.correlation_id()).collect();
            oracle.retain(|image| images.contains(&image));
        }
        let limit = 1 + random.below(LIMIT);
        let mut check = Check { oracle, log, sabotage, last: Instant::now(), was_paused: false };
        if let Some(assembler) = assembler {
            let handler = |message: &[u8], header: &Header<'_>| check.see(message, header);
            return subscription.poll_fragments(assembler.handler(handler), limit);
        }
        match random.below(4) {
            0 => subscription.poll(|message, header| check.see(message, header), limit),
            1 => subscription.poll_batch(
                |messages| {
                    let most = random.below(LIMIT);
                    messages.take(most).for_each(|(message, header)| check.see(message, &header));
                },
                limit,
            ),
            2 => subscription.controlled_poll(
                |message, header| {
                    let action = match random.below(8) {
                        0 => return Action::Abort,
                        1 => Action::Break,
                        2 => Action::Commit,
                        _ => Action::Continue,
                    };
                    check.see(message, header);
                    action
                },
                limit,
            ),
            _ => {
                let mut fragments = 0;
                for mut image in subscription.images() {
                    fragments += image.poll(|message, header| check.see(message, header), limit);
                }
                // A poll of no image returns the error of a closed subscription.
                if fragments == 0 { subscription.poll(|_, _| {}, 0) } else { Ok(fragments) }
            }
        }
    }
}

/// The checks of a poll.
struct Check<'a> {
    oracle: &'a mut Oracle,
    log: &'a mut Log,
    sabotage: Option<Sabotage>,
    /// When the poll began, or the last message was checked.
    last: Instant,
    /// `true` if the process was paused in the middle of this poll, for so long that the driver may have given
    /// the subscriber up. Then publishers overwrite the bytes that the poll is still reading.
    was_paused: bool,
}

impl Check<'_> {
    fn see(&mut self, bytes: &[u8], header: &Header<'_>) {
        self.log.received += 1;
        let is_due = self.log.received % MISTAKE == 0;
        let mut changed = Vec::new();
        let bytes = match self.sabotage.filter(|_| is_due) {
            Some(Sabotage::Skip) => return,
            Some(Sabotage::Corrupt) => {
                changed.extend_from_slice(bytes);
                changed[0] ^= 1;
                &changed
            }
            Some(Sabotage::Repeat) => {
                self.check(bytes, header);
                bytes
            }
            Some(Sabotage::Crash) => process::abort(),
            Some(Sabotage::Leak) => {
                mem::forget(File::open("/dev/null"));
                bytes
            }
            Some(Sabotage::Undead) | None => bytes,
        };
        self.check(bytes, header);
    }

    fn check(&mut self, bytes: &[u8], header: &Header<'_>) {
        let location = Location {
            image: header.image_correlation_id(),
            stream_id: header.stream_id(),
            session_id: header.session_id(),
            position: header.position(),
        };
        // After a pause the bytes may change between the checksum and what is read next.
        let bytes = bytes.to_vec();
        let outcome = self.oracle.observe(location, &bytes, Instant::now());
        let now = Instant::now();
        self.was_paused |= now.duration_since(self.last) >= PAUSED;
        self.last = now;
        match outcome {
            Ok(message) => self.log.mark(message.checkpoint, message.publication),
            Err(finding) if self.was_paused && finding.fault == Fault::Corrupted => {
                self.log.skipped += 1;
            }
            Err(finding) => self.log.report(&finding),
        }
    }
}
