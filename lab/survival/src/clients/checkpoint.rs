//! Checkpoints: the conditions that must hold while no fault lasts.

use rusteron_core::program::Failure;

use super::campaign::{CHECKPOINTS, Clients};
use super::leaks::{self, DriverState, Holdings};
use super::members::Member;
use super::parts::Part;
use crate::campaign::Campaign;
use crate::party::Order;

impl Clients {
    /// Ends all faults, and waits until every subscriber gets messages of every publication. Then looks for leaks.
    /// Returns `false` if that does not come about, which makes everything that follows meaningless.
    pub(super) fn check(&mut self) -> Result<bool, Failure> {
        self.relieve_all();
        self.frame.report.add(CHECKPOINTS, 1);
        self.order_checkpoint(self.frame.report.figure(CHECKPOINTS));
        let is_whole = self.await_none("stuck", self.frame.deadline, |it| it.missing())?;
        if is_whole {
            self.await_none("leaked", self.lingering(), |it| it.excess())?;
        }
        self.order_checkpoint(0);
        Ok(is_whole)
    }

    fn order_checkpoint(&mut self, checkpoint: u64) {
        self.checkpoint = checkpoint;
        for party in self.members.iter_mut().filter_map(|member| member.party.as_mut()) {
            party.order(Order::Checkpoint(checkpoint));
        }
    }

    /// Who has not got messages of the checkpoint from whom.
    fn missing(&self) -> Vec<String> {
        let guests = self.guests.iter();
        let mut missing: Vec<_> =
            guests.map(|guest| format!("{:?} as a guest does not end", guest.part)).collect();
        let (publishers, subscribers) = self.clients();
        for publisher in publishers {
            let (checkpoint, publications) = &publisher.publishing;
            if *checkpoint != self.checkpoint {
                missing.push(format!("{} does not publish", publisher.name()));
                continue;
            }
            for subscriber in subscribers {
                let (checkpoint, received) = &subscriber.received;
                for (stream, publication) in publications.iter().enumerate() {
                    if *checkpoint != self.checkpoint || !received.contains(publication) {
                        let (to, from) = (subscriber.name(), publisher.name());
                        missing.push(format!("{to} gets nothing from {from} on stream {stream}"));
                    }
                }
            }
        }
        missing
    }

    fn clients(&self) -> (&[Member], &[Member]) {
        self.members[1..].split_at(self.publishers)
    }

    /// Returns the resources of which there are too many. The first checkpoint of a process sets the right number.
    fn excess(&mut self) -> Vec<String> {
        let dir = self.aeron_dir();
        let (publishers, subscribers) = self.clients();
        let mut excess = match DriverState::of(&dir) {
            Some(state) => state.differences(publishers.len(), subscribers.len()),
            None => vec!["the driver's files cannot be read".to_owned()],
        };
        if !excess.is_empty() {
            // Resources that linger in the driver linger in the clients.
            return excess;
        }
        let publishers = self.publishers as u64;
        for member in &mut self.members {
            let Some(party) = &member.party else { continue };
            let Some(mut now) = Holdings::of(party.pid(), &dir) else { continue };
            if member.before.is_none() {
                // One of its images may just be about to be replaced.
                now.mappings = now.mappings.max(match member.part {
                    Part::Publisher => leaks::mappings_of_publisher(),
                    Part::Subscriber => leaks::mappings_of_subscriber(publishers),
                    _ => 0,
                });
            }
            let before = *member.before.get_or_insert(now);
            let (name, texts) = (member.name(), now.excess_over(&before));
            excess.extend(texts.iter().map(|text| format!("{name}: {text}")));
        }
        excess
    }
}
