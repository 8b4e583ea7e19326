//! The members of the campaign: their notices, the ends of their faults, their own ends.

use std::collections::HashSet;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rusteron_core::program::Failure;

use super::campaign::{Clients, RECEIVED};
use super::leaks::{self, Holdings};
use super::parts::Part;
use super::strikes::{FaultKind, Length};
use crate::party::{Notice, Order, Party};

/// The number of counters that a publisher has.
const COUNTERS: usize = 4;
/// How many counters a publisher has after a succession: enough to use up those that have been free
/// for longer.
const COUNTERS_OF_A_SUCCESSOR: usize = 96;

/// A role, and the process that has it at the moment.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) part: Part,
    pub(super) index: u16,
    pub(super) party: Option<Party>,
    /// The time at which the next process is to be started, if there is none.
    pub(super) start_at: Instant,
    pub(super) was_killed: bool,
    /// The number of counters of the next process, if it is a publisher.
    pub(super) counters: usize,
    /// `true` if the next process, a driver, takes over the directory of the last one.
    pub(super) takes_over: bool,
    pub(super) is_ending: bool,
    /// `true` if the driver runs, or the client has all its resources.
    pub(super) is_ready: bool,
    /// The length of the last pause.
    pub(super) pause: Length,
    pub(super) starved_until: Option<Instant>,
    /// The time by which the client must have said that it has ended.
    pub(super) must_end_by: Option<Instant>,
    /// The resources of the process at its first checkpoint.
    pub(super) before: Option<Holdings>,
    pub(super) messages: u64,
    pub(super) skipped: u64,
    pub(super) publishing: (u64, Vec<u64>),
    pub(super) received: (u64, HashSet<u64>),
}

/// A party that comes for a while. A driver hangs, and does not know that its directory belongs to
/// another driver now.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) part: Part,
    pub(super) party: Party,
    /// The exit codes that are no crash.
    pub(super) end_codes: &'static [i32],
}

impl Member {
    pub(super) fn new(part: Part, index: u16) -> Self {
        Self {
            part,
            index,
            party: None,
            start_at: Instant::now(),
            was_killed: false,
            counters: COUNTERS,
            takes_over: false,
            is_ending: false,
            is_ready: false,
            pause: Length::Short,
            starved_until: None,
            must_end_by: None,
            before: None,
            messages: 0,
            skipped: 0,
            publishing: (0, Vec::new()),
            received: (0, HashSet::new()),
        }
    }

    pub(super) fn name(&self) -> String {
        format!("{:?} {}", self.part, self.index).to_lowercase()
    }

    /// Returns whether it runs undisturbed.
    pub(super) fn is_free(&self) -> bool {
        let is_running = self.party.as_ref().is_some_and(|party| !party.is_paused());
        is_running && !self.was_killed && self.starved_until.is_none()
    }
}

impl Clients {
    /// Looks at every member, ends faults that have lasted long enough, and starts missing members.
    pub(super) fn look_at_members(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        for index in 0..self.members.len() {
            self.hear(index)?;
            self.relieve(index, now)?;
            let member = &self.members[index];
            if member.party.is_none() && !member.is_ending && member.start_at <= now {
                self.launch(index)?;
            }
        }
        for guest in std::mem::take(&mut self.guests) {
            self.look_at_guest(guest)?;
        }
        if self.disk_full_until.is_some_and(|until| until <= now) {
            self.empty_disk();
            self.disk_full_until = None;
        }
        let due = self.successions.iter().filter(|at| **at <= now).count();
        self.successions.retain(|at| *at > now);
        let due = if self.faults.contains(&FaultKind::KillClient) { due } else { 0 };
        for _ in 0..due {
            if let Some(index) = self.choose(1..1 + self.publishers) {
                self.kill(index, Duration::ZERO)?;
                self.members[index].counters = COUNTERS_OF_A_SUCCESSOR;
                self.frame.report.add("kills of clients", 1);
            }
        }
        Ok(())
    }

    /// Ends the pause and the starvation of a member if they have lasted long enough.
    fn relieve(&mut self, index: usize, now: Instant) -> Result<(), Failure> {
        let member = &mut self.members[index];
        let Some(party) = &mut member.party else { return Ok(()) };
        if party.resume()? && member.is_ready && member.pause != Length::Short {
            // A client that was paused past its timeout ends sooner.
            member.must_end_by = Some(now + self.frame.deadline / 3);
        }
        if member.starved_until.is_some_and(|until| until <= now) {
            leaks::limit_descriptors(party.pid(), None)?;
            member.starved_until = None;
        }
        if member.must_end_by.is_some_and(|by| by <= now) {
            member.must_end_by = None;
            let text = format!("{} was paused past its timeout, and goes on", member.name());
            self.frame.report.violation("stuck", 1, &text);
        }
        Ok(())
    }

    /// Ends all faults, whether or not they have lasted long enough.
    pub(super) fn relieve_all(&mut self) {
        let now = Instant::now();
        self.successions.clear();
        for member in &mut self.members {
            member.start_at = now;
            // A pause that is cut short may have been too short to be past any timeout.
            if member.party.as_mut().is_some_and(Party::cut_pause) {
                member.pause = Length::Short;
            }
            member.starved_until = member.starved_until.map(|_| now);
        }
        for guest in &mut self.guests {
            guest.party.cut_pause();
        }
        self.disk_full_until = self.disk_full_until.map(|_| now);
    }

    /// Reads the notices of a member, and notices its end.
    pub(super) fn hear(&mut self, index: usize) -> Result<(), Failure> {
        let Some(party) = &mut self.members[index].party else { return Ok(()) };
        let ended = party.ended()?;
        let notices: Vec<_> = std::iter::from_fn(|| party.notice(ended.is_some())).collect();
        for notice in notices {
            self.note(index, notice);
        }
        if let Some(status) = ended {
            self.bury(index, status);
        }
        Ok(())
    }

    /// Notices the end of a guest. One that has hung goes on when its time has come, and ends in
    /// good order. It must not touch the files of its successor, which the next checkpoint needs.
    fn look_at_guest(&mut self, mut guest: Guest) -> Result<(), Failure> {
        if guest.party.resume()? {
            guest.party.order(Order::End);
        }
        let Some(status) = guest.party.ended()? else {
            self.guests.push(guest);
            return Ok(());
        };
        while let Some(notice) = guest.party.notice(true) {
            match notice {
                Notice::Refused(text) => self.count("refused", &text),
                Notice::Violation(condition, count, text) => {
                    let name = format!("{:?} as a guest", guest.part);
                    let text = if text.is_empty() { text } else { format!("{name}: {text}") };
                    self.frame.report.violation(&condition, count, &text);
                }
                _ => {}
            }
        }
        if !status.code().is_some_and(|code| guest.end_codes.contains(&code)) {
            let text = format!("{:?} as a guest: {}", guest.part, guest.party.describe(status));
            self.frame.report.violation("crashed", 1, &text);
        }
        Ok(())
    }

    fn bury(&mut self, index: usize, status: ExitStatus) {
        let member = &mut self.members[index];
        let Some(party) = member.party.take() else { return };
        let is_expected = member.was_killed || (member.is_ending && status.success());
        if !is_expected {
            let text = format!("{}: {}", member.name(), party.describe(status));
            self.frame.report.violation("crashed", 1, &text);
            member.start_at = Instant::now();
        }
        member.starved_until = None;
        member.must_end_by = None;
        member.is_ready = false;
    }

    fn note(&mut self, index: usize, notice: Notice) {
        let report = &mut self.frame.report;
        let member = &mut self.members[index];
        match notice {
            Notice::Ready => member.is_ready = true,
            Notice::Ended(text) => {
                member.is_ready = false;
                member.must_end_by = None;
                self.count("ended", &text);
            }
            Notice::Refused(text) => self.count("refused", &text),
            Notice::Resumed => {
                // Not the first message of the killed driver, which is read after the kill.
                let is_ready = self.members[0].is_ready;
                if let Some(at) = self.taken_over_at.take_if(|_| is_ready) {
                    report.time("kill to first message after takeover", at.elapsed());
                }
            }
            Notice::Messages(count, skipped) => {
                let is_publisher = member.part == Part::Publisher;
                let name = if is_publisher { "messages sent" } else { RECEIVED };
                report.add(name, count - member.messages);
                report.add("skipped after a timeout", skipped - member.skipped);
                (member.messages, member.skipped) = (count, skipped);
            }
            Notice::Publishing(checkpoint, publications) => {
                member.publishing = (checkpoint, publications);
            }
            Notice::Received(checkpoint, publication) => {
                if member.received.0 != checkpoint {
                    member.received = (checkpoint, HashSet::new());
                }
                member.received.1.insert(publication);
            }
            Notice::Violation(condition, count, text) => {
                let name = member.name();
                let text = if text.is_empty() { text } else { format!("{name}: {text}") };
                report.violation(&condition, count, &text);
            }
        }
    }

    /// Counts an end or a refusal. The text begins with its kind.
    fn count(&mut self, word: &str, text: &str) {
        let (kind, text) = text.split_once(' ').unwrap_or((text, ""));
        self.frame.report.end(format!("{word} {kind}"), text);
    }
}
