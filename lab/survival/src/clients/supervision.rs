//! Members of the campaign: their notices, the ends of their faults, their own ends.

use std::collections::HashSet;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rusteron_core::program::Failure;
use rustix::process::Signal;

use super::campaign::Campaign;
use super::process::Process;
use crate::clients::faults::{FaultKind, Length};
use crate::clients::member::{Pause, Role};
use crate::clients::words::{Notice, Order};

/// How many counters a publisher has after a succession: enough to use up those that have been free for longer.
const COUNTERS_OF_A_SUCCESSOR: usize = 96;

impl Campaign<'_> {
    /// Looks at every member, ends faults that have lasted long enough, and starts missing members.
    pub(super) fn step(&mut self) -> Result<(), Failure> {
        if self.interrupt.is_signalled() {
            return Err(Failure::Interrupted);
        }
        let now = Instant::now();
        for index in 0..self.members.len() {
            self.look_at(index)?;
            self.relieve(index, now)?;
            let member = &self.members[index];
            if member.process.is_none() && !member.is_ending && member.start_at <= now {
                self.launch(index)?;
            }
        }
        self.look_at_predecessor(now)?;
        let forger = self.forger.take();
        self.forger = self.look_at_client(forger)?;
        let hog = self.hog.take();
        self.hog = self.look_at_client(hog)?;
        if self.disk_full_until.is_some_and(|until| until <= now) {
            self.disk.empty();
            self.disk_full_until = None;
        }
        let due = self.successions.iter().filter(|at| **at <= now).count();
        self.successions.retain(|at| *at > now);
        if self.faults.contains(&FaultKind::KillClient) {
            for _ in 0..due {
                if let Some(index) = self.choose(1..1 + usize::from(self.options.publishers)) {
                    self.kill(index, Duration::ZERO)?;
                    self.members[index].counters = COUNTERS_OF_A_SUCCESSOR;
                    self.report.add("kills of clients", 1);
                }
            }
        }
        Ok(())
    }

    /// Ends the pause and the starvation of a member if they have lasted long enough.
    fn relieve(&mut self, index: usize, now: Instant) -> Result<(), Failure> {
        let member = &mut self.members[index];
        let Some(process) = &member.process else { return Ok(()) };
        if let Some(pause) = member.paused.filter(|pause| pause.until <= now) {
            process.signal(Signal::CONT)?;
            member.paused = None;
            if member.is_ready && pause.length != Length::Short {
                // A client that was paused past its timeout ends sooner.
                member.must_end_by = Some(now + self.options.deadline / 3);
            }
        }
        if member.starved_until.is_some_and(|until| until <= now) {
            process.restore_descriptors()?;
            member.starved_until = None;
        }
        if member.must_end_by.is_some_and(|by| by <= now) {
            member.must_end_by = None;
            let text = format!("{} was paused past its timeout, and goes on", member.role);
            self.report.violation("stuck", 1, &text);
        }
        Ok(())
    }

    /// Reads the notices of a member, and notices its end.
    pub(super) fn look_at(&mut self, index: usize) -> Result<(), Failure> {
        while let Some(notice) = self.members[index].process.as_ref().and_then(Process::notice) {
            self.hear(index, notice);
        }
        let Some(process) = &mut self.members[index].process else { return Ok(()) };
        let Some(status) = process.ended()? else { return Ok(()) };
        while let Some(notice) = self.members[index].process.as_ref().and_then(Process::last_notice)
        {
            self.hear(index, notice);
        }
        self.bury(index, status);
        Ok(())
    }

    /// Lets a driver that has hung long enough go on, and end in good order. It must not touch the
    /// files of its successor, which the next checkpoint needs.
    fn look_at_predecessor(&mut self, now: Instant) -> Result<(), Failure> {
        let Some(mut driver) = self.predecessor.take() else { return Ok(()) };
        if driver.hangs_until.is_some_and(|until| until <= now) {
            driver.hangs_until = None;
            driver.process.signal(Signal::CONT)?;
            driver.process.order(Order::End);
        }
        match driver.process.ended()? {
            None => self.predecessor = Some(driver),
            // 1 with the words that it has left the directory to its successor.
            Some(status) if matches!(status.code(), Some(0 | 1)) => {}
            Some(status) => {
                let text = format!("replaced driver: {status}: {}", driver.process.last_words());
                self.report.violation("crashed", 1, &text);
            }
        }
        Ok(())
    }

    /// Notices the end of a client whose messages are not checked. Returns the client if it still
    /// runs.
    fn look_at_client(&mut self, client: Option<Process>) -> Result<Option<Process>, Failure> {
        let Some(mut client) = client else { return Ok(None) };
        let Some(status) = client.ended()? else { return Ok(Some(client)) };
        while let Some(notice) = client.last_notice() {
            if let Notice::Refused(text) = notice {
                self.note("refused", &text);
            }
        }
        if !status.success() {
            let text = format!("forger or hog: {status}: {}", client.last_words());
            self.report.violation("crashed", 1, &text);
        }
        Ok(None)
    }

    fn bury(&mut self, index: usize, status: ExitStatus) {
        let member = &mut self.members[index];
        let Some(process) = member.process.take() else { return };
        let is_expected = member.was_killed || (member.is_ending && status.success());
        if !is_expected {
            let text = format!("{}: {status}: {}", member.role, process.last_words());
            self.report.violation("crashed", 1, &text);
            member.start_at = Instant::now();
        }
        member.paused = None;
        member.starved_until = None;
        member.must_end_by = None;
        member.is_ready = false;
    }

    fn hear(&mut self, index: usize, notice: Notice) {
        let member = &mut self.members[index];
        match notice {
            Notice::Ready => member.is_ready = true,
            Notice::Ended(text) => {
                member.is_ready = false;
                member.must_end_by = None;
                self.note("ended", &text);
            }
            Notice::Refused(text) => self.note("refused", &text),
            Notice::Resumed => {
                // Not the first message of the killed driver, which is read after the kill.
                if self.members[0].is_ready {
                    let taken_over_at = self.taken_over_at.take();
                    if let Some(at) = taken_over_at {
                        self.report.time("kill to first message after takeover", at.elapsed());
                    }
                }
            }
            Notice::Messages(count) => {
                let more = count - member.messages;
                member.messages = count;
                match member.role {
                    Role::Publisher(_) => self.report.add("messages sent", more),
                    _ => self.report.add("messages received", more),
                }
            }
            Notice::Skipped(count) => {
                self.report.add("skipped after a timeout", count - member.skipped);
                member.skipped = count;
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
            Notice::Fault(name, count, text) => {
                let text = if text.is_empty() { text } else { format!("{}: {text}", member.role) };
                self.report.violation(&name, count, &text);
            }
        }
    }

    /// Counts an end or a refusal. The text begins with its kind.
    fn note(&mut self, word: &str, text: &str) {
        let (kind, text) = text.split_once(' ').unwrap_or((text, ""));
        self.report.end(format!("{word} {kind}"), text);
    }

    pub(super) fn relieve_all(&mut self) {
        let now = Instant::now();
        self.successions.clear();
        for member in &mut self.members {
            member.start_at = now;
            if let Some(pause) = &mut member.paused {
                // A pause that is cut short may have been too short to be past any timeout.
                if pause.until > now {
                    *pause = Pause { until: now, length: Length::Short };
                }
            }
            member.starved_until = member.starved_until.map(|_| now);
        }
        if let Some(driver) = &mut self.predecessor {
            driver.hangs_until = driver.hangs_until.map(|_| now);
        }
        self.disk_full_until = self.disk_full_until.map(|_| now);
    }
}
