//! A subscriber, with a subscription to each stream.

use std::collections::HashSet;
use std::fs::File;
use std::mem;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::{Action, Aeron, FragmentAssembler, Header, PollError, Result, Subscription};
use rusteron_test_support::Random;

use super::client::{self, End, Work};
use super::{PartOptions, Sabotage, accuse};
use crate::clients::oracle::{Location, Oracle};
use crate::clients::settings::{CLIENT_LIVENESS, KEEPALIVE, STREAMS};
use crate::party::{Notice, Orders, say};
use crate::report::Finding;

/// The driver gives up a client that was paused for so long at the earliest.
const PAUSED: Duration = CLIENT_LIVENESS.saturating_sub(KEEPALIVE.saturating_mul(2));
/// A mistake is made once in so many messages.
const MISTAKE: u64 = 500;
/// The most fragments of a poll.
const LIMIT: usize = 24;
/// No more violations than these are described, by each process.
const DESCRIBED: u64 = 20;

pub(super) fn play(options: &PartOptions, orders: &Orders) {
    let mut subscriber = Subscriber {
        endpoint: options.endpoint.clone(),
        random: Random::new(options.seed),
        flows: Vec::new(),
        log: Log { sabotage: options.sabotage, ..Log::default() },
        clients: 0,
        has_resumed: false,
    };
    client::run(&mut subscriber, options, orders);
}

struct Subscriber {
    endpoint: String,
    random: Random,
    flows: Vec<Flow>,
    log: Log,
    clients: usize,
    /// `true` once the current client has received a message.
    has_resumed: bool,
}

impl Work for Subscriber {
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
        let mut is_busy = false;
        for flow in &mut self.flows {
            match flow.poll(&mut self.random, &mut self.log) {
                Ok(count) => is_busy |= count > 0,
                Err(PollError::Closed(_)) => return Err(End::Closed(None)),
                Err(error) => return Err(End::Closed(Some(error.into()))),
            }
            flow.oracle.due(Instant::now()).iter().for_each(|finding| self.log.report(finding));
        }
        if is_busy && !self.has_resumed {
            self.has_resumed = true;
            say(&Notice::Resumed);
        }
        Ok(is_busy)
    }

    fn set_checkpoint(&mut self, _: u64) {}

    fn leave(&mut self, had_timed_out: bool) {
        for mut flow in mem::take(&mut self.flows) {
            let (findings, skipped) = flow.oracle.ended(Instant::now(), had_timed_out);
            findings.iter().for_each(|finding| self.log.report(finding));
            self.log.skipped += skipped;
        }
        while self.log.sabotage == Some(Sabotage::Undead) && had_timed_out {
            thread::sleep(Duration::from_secs(1));
        }
    }

    fn counts(&self) -> (u64, u64) {
        (self.log.received, self.log.skipped)
    }
}

/// The reports of a process to the supervisor.
#[derive(Default)]
struct Log {
    sabotage: Option<Sabotage>,
    received: u64,
    skipped: u64,
    described: u64,
    /// Checkpoints and publications that the supervisor knows of.
    marks: HashSet<(u64, u64)>,
}

impl Log {
    fn mark(&mut self, checkpoint: u64, publication: u64) {
        if checkpoint > 0 && self.marks.insert((checkpoint, publication)) {
            say(&Notice::Received(checkpoint, publication));
            self.marks.retain(|(number, _)| number + 1 >= checkpoint);
        }
    }

    fn report(&mut self, finding: &Finding) {
        self.described += 1;
        let text = if self.described <= DESCRIBED { finding.text.as_str() } else { "" };
        accuse(finding.condition, finding.count, text);
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
        log: &mut Log,
    ) -> std::result::Result<usize, PollError> {
        let Self { subscription, oracle, assembler } = self;
        let images: Vec<_> = subscription
            .images()
            .map(|image| (image.correlation_id(), image.join_position()))
            .collect();
        oracle.set_images(&images);
        let limit = 1 + random.below(LIMIT);
        let mut check = Check { oracle, log, last: Instant::now(), was_paused: false };
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
        match self.log.sabotage.filter(|_| is_due) {
            Some(Sabotage::Skip) => return,
            Some(Sabotage::Corrupt) => {
                let mut changed = bytes.to_vec();
                changed[0] ^= 1;
                return self.check(&changed, header);
            }
            Some(Sabotage::Repeat) => self.check(bytes, header),
            Some(Sabotage::Crash) => process::abort(),
            Some(Sabotage::Leak) => mem::forget(File::open("/dev/null")),
            Some(Sabotage::Undead) | None => {}
        }
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
            Ok(message) => self.log.mark(message.phase, message.publication),
            Err(finding) if self.was_paused && finding.condition == "corrupted" => {
                self.log.skipped += 1;
            }
            Err(finding) => self.log.report(&finding),
        }
    }
}
