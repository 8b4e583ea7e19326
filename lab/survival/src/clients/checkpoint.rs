//! Checkpoints: the conditions that must hold while no fault lasts.

use std::time::{Duration, Instant};

use rusteron_core::program::Failure;

use super::campaign::{CHECKPOINTS, Campaign, TICK};
use crate::clients::leaks::{self, DriverState, Holdings};
use crate::clients::member::{Member, Role};
use crate::clients::words::Order;

impl Campaign<'_> {
    /// Waits for a condition; reports a fault and returns `false` if it does not come true.
    pub(super) fn wait(
        &mut self,
        what: &str,
        timeout: Duration,
        mut is_met: impl FnMut(&mut Self) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let deadline = Instant::now() + timeout;
        while !is_met(self)? {
            if self.interrupt.is_signalled() {
                return Err(Failure::Interrupted);
            }
            if Instant::now() >= deadline {
                self.report.violation("stuck", 1, what);
                return Ok(false);
            }
            std::thread::sleep(TICK);
        }
        Ok(true)
    }

    /// Ends all faults, and waits until every subscriber gets messages of every publication. Then looks for leaks.
    /// Returns `false` if that does not come about, which makes everything that follows meaningless.
    pub(super) fn check(&mut self) -> Result<bool, Failure> {
        self.relieve_all();
        self.report.add(CHECKPOINTS, 1);
        self.checkpoint = self.report.figure(CHECKPOINTS);
        self.order(Order::Checkpoint(self.checkpoint));
        let mut missing = Vec::new();
        let is_whole =
            self.await_none(&mut missing, self.options.deadline, "stuck", Self::missing)?;
        if is_whole {
            let mut excess = Vec::new();
            self.await_none(&mut excess, self.lingering(), "leaked", Self::excess)?;
        }
        self.checkpoint = 0;
        self.order(Order::Resume);
        Ok(is_whole)
    }

    /// Waits until a list is empty; reports what stays in it under a name.
    pub(super) fn await_none(
        &mut self,
        list: &mut Vec<String>,
        timeout: Duration,
        name: &str,
        mut update: impl FnMut(&mut Self) -> Vec<String>,
    ) -> Result<bool, Failure> {
        let deadline = Instant::now() + timeout;
        loop {
            self.step()?;
            *list = update(self);
            if list.is_empty() {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                for text in list {
                    self.report.violation(name, 1, text);
                }
                return Ok(false);
            }
            std::thread::sleep(4 * TICK);
        }
    }

    /// How long resources may linger.
    pub(super) fn lingering(&self) -> Duration {
        self.options.deadline / 2
    }

    pub(super) fn order(&mut self, order: Order) {
        for member in &mut self.members {
            if let Some(process) = &mut member.process {
                process.order(order);
            }
        }
    }

    /// Who has not got messages of the checkpoint from whom.
    fn missing(&mut self) -> Vec<String> {
        let mut missing: Vec<String> = Vec::new();
        missing.extend(self.forger.iter().map(|_| "the forger does not end".to_owned()));
        missing.extend(self.hog.iter().map(|_| "the hog does not end".to_owned()));
        missing
            .extend(self.predecessor.iter().map(|_| "the replaced driver does not end".to_owned()));
        let (publishers, subscribers) = self.clients();
        for publisher in publishers {
            if publisher.publishing.0 != self.checkpoint {
                missing.push(format!("{} does not publish", publisher.role));
                continue;
            }
            for subscriber in subscribers {
                let (checkpoint, received) = &subscriber.received;
                for (stream, publication) in publisher.publishing.1.iter().enumerate() {
                    if *checkpoint != self.checkpoint || !received.contains(publication) {
                        missing.push(format!(
                            "{} gets nothing from {} on stream {stream}",
                            subscriber.role, publisher.role
                        ));
                    }
                }
            }
        }
        missing
    }

    fn clients(&self) -> (&[Member], &[Member]) {
        self.members[1..].split_at(usize::from(self.options.publishers))
    }

    /// Returns the resources of which there are too many. The first checkpoint of a process sets the right number.
    fn excess(&mut self) -> Vec<String> {
        let dir = self.disk.aeron_dir();
        let (publishers, subscribers) = self.clients();
        let mut excess = match DriverState::of(&dir) {
            Some(state) => state.differences(publishers.len(), subscribers.len()),
            None => vec!["the driver's files cannot be read".to_owned()],
        };
        if !excess.is_empty() {
            // Resources that linger in the driver linger in the clients.
            return excess;
        }
        let publishers = u64::from(self.options.publishers);
        for member in &mut self.members {
            let Some(process) = &member.process else { continue };
            let Some(mut now) = Holdings::of(process.pid(), &dir) else { continue };
            if member.before.is_none() {
                // One of its images may just be about to be replaced.
                now.mappings = now.mappings.max(match member.role {
                    Role::Driver => 0,
                    Role::Publisher(_) => leaks::mappings_of_publisher(),
                    Role::Subscriber(_) => leaks::mappings_of_subscriber(publishers),
                });
            }
            let before = *member.before.get_or_insert(now);
            let texts = now.excess_over(&before);
            excess.extend(texts.iter().map(|text| format!("{}: {text}", member.role)));
        }
        excess
    }
}
