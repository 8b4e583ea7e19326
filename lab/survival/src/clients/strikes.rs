//! Faults that the campaign causes.

use std::ops::Range;
use std::time::{Duration, Instant};

use rusteron_core::program::Failure;
use rustix::process::Signal;

use super::campaign::{Campaign, TICK};
use crate::clients::faults::{Blow, ClockStep, Length};
use crate::clients::leaks;
use crate::clients::member::{Member, Pause, Predecessor, Role};
use crate::clients::settings::{CLIENT_LIVENESS, COUNTER_REUSE};
use crate::clients::words::Order;

/// The time between two faults.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
const MOST_PAUSE: Duration = Duration::from_millis(800);

impl Campaign<'_> {
    /// Causes faults until a point in time, and then no more.
    pub(super) fn strike_until(&mut self, end: Instant) -> Result<(), Failure> {
        let mut next = Instant::now();
        while Instant::now() < end {
            self.step()?;
            if Instant::now() >= next {
                next = Instant::now() + self.random.between(LEAST_PAUSE, MOST_PAUSE);
                if let Some(blow) = Blow::choose(&self.faults, &mut self.random) {
                    self.strike(blow)?;
                }
            }
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    fn strike(&mut self, blow: Blow) -> Result<(), Failure> {
        let now = Instant::now();
        match blow {
            Blow::KillClient => {
                let delay = self.random.between(Duration::ZERO, Duration::from_millis(800));
                if let Some(index) = self.choose(1..self.members.len()) {
                    self.kill(index, delay)?;
                    self.report.add("kills of clients", 1);
                }
            }
            Blow::KillDriver => {
                if self.members[0].is_free() {
                    let delay = self.random.between(Duration::ZERO, Duration::from_millis(500));
                    self.kill(0, delay)?;
                    self.report.add("kills of drivers", 1);
                }
            }
            Blow::TakeOverDriver => {
                if self.members[0].is_free() {
                    self.kill(0, Duration::ZERO)?;
                    self.members[0].takes_over = true;
                    self.members[0].is_ready = false;
                    self.taken_over_at = Some(now);
                    self.report.add("takeovers of drivers", 1);
                }
            }
            Blow::ReplaceDriver(while_) => {
                let driver = &mut self.members[0];
                if !driver.is_free() || !driver.is_ready || self.predecessor.is_some() {
                    return Ok(());
                }
                let Some(process) = driver.process.take() else { return Ok(()) };
                process.signal(Signal::STOP)?;
                // As logind removes what a user has in shared memory.
                self.disk.remove_aeron_dir()?;
                self.members[0] = Member::new(Role::Driver);
                self.predecessor = Some(Predecessor { process, hangs_until: Some(now + while_) });
                self.report.add("replaced drivers", 1);
            }
            Blow::Fork => {
                let Some(index) = self.choose(0..self.members.len()) else { return Ok(()) };
                if let Some(process) = &mut self.members[index].process {
                    process.order(Order::Fork);
                    self.report.add("forks", 1);
                }
            }
            Blow::ForgeMetadata => {
                if self.forger.is_none() {
                    self.forger = Some(self.launch_client("forger")?);
                    self.report.add("forgers of metadata", 1);
                }
            }
            Blow::PauseClient(length, pause) => {
                // A subscriber that polls with another's counter does more harm than a publisher.
                let first_subscriber = 1 + usize::from(self.options.publishers);
                let is_special = length == Length::PastReuse && self.random.percent(75);
                let first = if is_special { first_subscriber } else { 1 };
                let Some(index) = self.choose(first..self.members.len()) else { return Ok(()) };
                self.pause(index, length, pause)?;
                let figure = match length {
                    Length::Short => "short pauses of clients",
                    Length::PastLiveness => "pauses past liveness",
                    Length::PastReuse => "pauses past counter reuse",
                };
                self.report.add(figure, 1);
                if length == Length::PastReuse {
                    let reuse = CLIENT_LIVENESS + COUNTER_REUSE + Duration::from_millis(300);
                    self.successions.push(now + reuse);
                }
            }
            Blow::PauseDriver(pause) => {
                if self.members[0].is_free() {
                    self.pause(0, Length::Short, pause)?;
                    self.report.add("pauses of drivers", 1);
                }
            }
            Blow::FullDisk(while_) => {
                // Writing to a sparse file ends a process if others have filled the file system.
                if self.disk_full_until.is_none() && !self.has_sparse_logs {
                    self.disk.fill()?;
                    self.disk_full_until = Some(now + while_);
                    self.report.add("full file systems", 1);
                }
            }
            Blow::FullMemory => {
                if self.hog.is_none() {
                    self.hog = Some(self.launch_client("hog")?);
                    self.report.add("full memories", 1);
                }
            }
            Blow::ClockStep(step) => {
                let Some(clock) = &mut self.clock else { return Ok(()) };
                match step {
                    ClockStep::Forward(by) => clock.step_forward(by),
                    ClockStep::Back(by) => clock.step_back(by),
                }
                self.report.add("clock steps", 1);
            }
            Blow::Descriptors(while_) => {
                let Some(index) = self.choose(0..self.members.len()) else { return Ok(()) };
                let member = &mut self.members[index];
                let Some(process) = &member.process else { return Ok(()) };
                // The loader of a process that has just started needs descriptors.
                if !member.is_ready {
                    return Ok(());
                }
                // A process that has just died has none.
                let Some(next) = leaks::next_descriptor(process.pid()) else { return Ok(()) };
                process.limit_descriptors(next)?;
                member.starved_until = Some(now + while_);
                self.successions.push(now + Duration::from_millis(100));
                self.report.add("exhausted descriptors", 1);
            }
        }
        Ok(())
    }

    /// One of some members that runs undisturbed.
    pub(super) fn choose(&mut self, range: Range<usize>) -> Option<usize> {
        let free = |index: &usize| self.members[*index].is_free();
        let free: Vec<_> = range.filter(free).collect();
        let chosen = self.random.below(free.len());
        free.get(chosen).copied()
    }

    pub(super) fn kill(&mut self, index: usize, delay: Duration) -> Result<(), Failure> {
        let member = &mut self.members[index];
        if let Some(process) = &member.process {
            process.signal(Signal::KILL)?;
            member.was_killed = true;
            member.start_at = Instant::now() + delay;
        }
        Ok(())
    }

    fn pause(&mut self, index: usize, length: Length, pause: Duration) -> Result<(), Failure> {
        let member = &mut self.members[index];
        if let Some(process) = &member.process {
            process.signal(Signal::STOP)?;
            member.paused = Some(Pause { until: Instant::now() + pause, length });
        }
        Ok(())
    }
}
