//! The faults that there are, and what each does.

use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use rusteron_core::program::Failure;
use rusteron_test_support::Random;

use super::campaign::Clients;
use super::leaks;
use super::members::{Guest, Member};
use super::parts::Part;
use super::settings::{CLIENT_LIVENESS, COUNTER_REUSE, DRIVER_TIMEOUT};
use crate::campaign::Campaign;
use crate::party::Order;

/// The time between two faults.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
const MOST_PAUSE: Duration = Duration::from_millis(800);

/// The kinds of faults that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum FaultKind {
    /// SIGKILL for a publisher or subscriber
    KillClient,
    /// SIGKILL for the driver
    KillDriver,
    /// SIGKILL for the driver, and at once a successor that takes over the directory
    TakeOverDriver,
    /// SIGSTOP for the driver whose directory is removed, a successor of the same name, and SIGCONT
    ReplaceDriver,
    /// A child of a client or the driver, forked with all handles, that uses and drops them
    Fork,
    /// Another client that forges the metadata of its log buffers
    ForgeMetadata,
    /// SIGSTOP and SIGCONT for a publisher or subscriber
    PauseClient,
    /// SIGSTOP and SIGCONT for the driver
    PauseDriver,
    /// A full file system under the driver's directory (needs root)
    FullDisk,
    /// A step of all processes' wall clock (needs a C compiler)
    ClockStep,
    /// No more descriptors for a client or the driver
    Descriptors,
    /// Lost datagrams, all the time
    Loss,
    /// Nothing
    None,
}

impl FaultKind {
    /// All faults.
    pub(crate) fn all() -> Vec<Self> {
        Self::value_variants().iter().copied().filter(|kind| *kind != Self::None).collect()
    }

    /// The share of this strike among all.
    fn weight(self) -> usize {
        match self {
            Self::KillClient => 25,
            Self::PauseClient => 45,
            Self::KillDriver | Self::TakeOverDriver | Self::ReplaceDriver => 4,
            Self::Fork | Self::PauseDriver | Self::ClockStep => 8,
            Self::ForgeMetadata | Self::FullDisk => 6,
            Self::Descriptors => 12,
            Self::Loss | Self::None => 0,
        }
    }

    /// The next fault of these kinds; `None` if none of them comes at a point in time.
    fn choose(kinds: &[Self], random: &mut Random) -> Option<Self> {
        random.weighted(kinds, Self::weight)
    }
}

/// The length of a pause, compared with the timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// Shorter than the client liveness timeout.
    Short,
    /// Longer than that.
    PastLiveness,
    /// Longer than that and the time after which the client's counters go to others.
    PastReuse,
}

impl Length {
    /// Chooses a pause of a client.
    fn choose(random: &mut Random) -> (Self, Duration) {
        let millis = Duration::from_millis;
        let (length, least) = match random.below(3) {
            0 => (Self::Short, millis(20)),
            1 => (Self::PastLiveness, CLIENT_LIVENESS + millis(200)),
            _ => (Self::PastReuse, CLIENT_LIVENESS + COUNTER_REUSE + millis(1_400)),
        };
        (length, random.between(least, least + millis(600)))
    }
}

impl Clients {
    /// Causes faults for a while, and then no more.
    pub(super) fn strike_for(&mut self, time: Duration) -> Result<(), Failure> {
        let end = Instant::now() + time;
        let mut next = Instant::now();
        while Instant::now() < end {
            self.look()?;
            if Instant::now() >= next {
                next = Instant::now() + self.frame.random.between(LEAST_PAUSE, MOST_PAUSE);
                if let Some(kind) = FaultKind::choose(&self.faults, &mut self.frame.random) {
                    if let Some(figure) = self.strike(kind)? {
                        self.frame.report.add(figure, 1);
                    }
                }
            }
            thread::sleep(Self::TICK);
        }
        Ok(())
    }

    /// Causes a fault, unless it would meet nobody. Returns the figure that counts it.
    fn strike(&mut self, kind: FaultKind) -> Result<Option<&'static str>, Failure> {
        let millis = Duration::from_millis;
        let (now, all) = (Instant::now(), 0..self.members.len());
        let random = &mut self.frame.random;
        let a_while = random.between(millis(500), millis(2_500));
        let is_driver_free = self.members[0].is_free();
        let guests: Vec<_> = self.guests.iter().map(|guest| guest.part).collect();
        let figure = match kind {
            FaultKind::KillClient => {
                let delay = random.between(Duration::ZERO, millis(800));
                let Some(index) = self.choose(1..all.end) else { return Ok(None) };
                self.kill(index, delay)?;
                "kills of clients"
            }
            FaultKind::KillDriver if is_driver_free => {
                let delay = random.between(Duration::ZERO, millis(500));
                self.kill(0, delay)?;
                "kills of drivers"
            }
            FaultKind::TakeOverDriver if is_driver_free => {
                self.kill(0, Duration::ZERO)?;
                self.members[0].takes_over = true;
                self.members[0].is_ready = false;
                self.taken_over_at = Some(now);
                "takeovers of drivers"
            }
            FaultKind::ReplaceDriver
                if is_driver_free
                    && self.members[0].is_ready
                    && !guests.contains(&Part::Driver) =>
            {
                let Some(mut party) = self.members[0].party.take() else { return Ok(None) };
                party.pause(a_while)?;
                // As logind removes what a user has in shared memory.
                let dir = self.aeron_dir();
                match fs::remove_dir_all(&dir) {
                    // Somebody was faster, which the next checkpoint notices.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    removed => removed.map_err(|error| Failure::run(dir.display(), error))?,
                }
                self.members[0] = Member::new(Part::Driver, 0);
                // 1 with the words that it has left the directory to its successor.
                self.guests.push(Guest { part: Part::Driver, party, end_codes: &[0, 1] });
                "replaced drivers"
            }
            FaultKind::Fork => {
                let Some(index) = self.choose(all) else { return Ok(None) };
                let Some(party) = &mut self.members[index].party else { return Ok(None) };
                party.order(Order::Fork);
                "forks"
            }
            FaultKind::ForgeMetadata if !guests.contains(&Part::Forger) => {
                self.launch_guest(Part::Forger)?;
                "forgers of metadata"
            }
            FaultKind::PauseClient => {
                let (length, pause) = Length::choose(random);
                // A subscriber that polls with another's counter does more harm than a publisher.
                let is_special = length == Length::PastReuse && random.percent(75);
                let first = if is_special { 1 + self.publishers } else { 1 };
                let Some(index) = self.choose(first..all.end) else { return Ok(None) };
                self.pause(index, length, pause)?;
                match length {
                    Length::Short => "short pauses of clients",
                    Length::PastLiveness => "pauses past liveness",
                    Length::PastReuse => {
                        let reuse = CLIENT_LIVENESS + COUNTER_REUSE + millis(300);
                        self.successions.push(now + reuse);
                        "pauses past counter reuse"
                    }
                }
            }
            FaultKind::PauseDriver if is_driver_free => {
                let (least, more) = match random.below(3) {
                    0 => (millis(20), 580),
                    1 => (CLIENT_LIVENESS, 1_000),
                    _ => (DRIVER_TIMEOUT, 1_000),
                };
                let pause = random.between(least, least + millis(more));
                self.pause(0, Length::Short, pause)?;
                "pauses of drivers"
            }
            FaultKind::FullDisk if self.disk_full_until.is_none() => {
                self.fill_disk()?;
                self.disk_full_until = Some(now + a_while);
                "full file systems"
            }
            FaultKind::ClockStep => {
                let by = random.between(millis(50), millis(3_600_000));
                let is_forward = random.percent(50);
                let Some(clock) = &mut self.clock else { return Ok(None) };
                if is_forward {
                    clock.step_forward(by)
                } else {
                    clock.step_back(by)
                }
                "clock steps"
            }
            FaultKind::Descriptors => {
                let Some(index) = self.choose(all) else { return Ok(None) };
                let member = &mut self.members[index];
                // The loader of a process that has just started needs descriptors.
                let Some(party) = member.party.as_ref().filter(|_| member.is_ready) else {
                    return Ok(None);
                };
                // A process that has just died has none.
                let Some(next) = leaks::next_descriptor(party.pid()) else { return Ok(None) };
                leaks::limit_descriptors(party.pid(), Some(next))?;
                member.starved_until = Some(now + a_while);
                self.successions.push(now + millis(100));
                "exhausted descriptors"
            }
            FaultKind::KillDriver
            | FaultKind::TakeOverDriver
            | FaultKind::ReplaceDriver
            | FaultKind::ForgeMetadata
            | FaultKind::PauseDriver
            | FaultKind::FullDisk
            | FaultKind::Loss
            | FaultKind::None => return Ok(None),
        };
        Ok(Some(figure))
    }

    /// One of some members that runs undisturbed.
    pub(super) fn choose(&mut self, range: Range<usize>) -> Option<usize> {
        let free: Vec<_> = range.filter(|index| self.members[*index].is_free()).collect();
        let chosen = self.frame.random.below(free.len());
        free.get(chosen).copied()
    }

    pub(super) fn kill(&mut self, index: usize, delay: Duration) -> Result<(), Failure> {
        let member = &mut self.members[index];
        if let Some(party) = &member.party {
            party.kill()?;
            member.was_killed = true;
            member.start_at = Instant::now() + delay;
        }
        Ok(())
    }

    fn pause(&mut self, index: usize, length: Length, pause: Duration) -> Result<(), Failure> {
        let member = &mut self.members[index];
        member.pause = length;
        member.party.as_mut().map_or(Ok(()), |party| party.pause(pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_come_and_no_others() {
        for kinds in [FaultKind::all(), vec![FaultKind::KillDriver, FaultKind::Loss]] {
            let mut random = Random::new(3);
            let chosen: Vec<_> =
                (0..2_000).filter_map(|_| FaultKind::choose(&kinds, &mut random)).collect();
            for kind in FaultKind::all() {
                let comes = kind != FaultKind::Loss && kinds.contains(&kind);
                assert_eq!(chosen.contains(&kind), comes, "{kind:?}");
            }
        }
        for kinds in [&[][..], &[FaultKind::Loss], &[FaultKind::None]] {
            assert_eq!(FaultKind::choose(kinds, &mut Random::new(1)), None);
        }
    }

    #[test]
    fn pauses_are_on_their_side_of_the_timeouts() {
        let mut random = Random::new(5);
        for _ in 0..500 {
            match Length::choose(&mut random) {
                (Length::Short, pause) => assert!(pause < CLIENT_LIVENESS),
                (Length::PastLiveness, pause) => assert!(pause > CLIENT_LIVENESS),
                (Length::PastReuse, pause) => assert!(pause > CLIENT_LIVENESS + COUNTER_REUSE),
            }
        }
    }
}
