//! Which faults there are, and which comes next.

use std::time::Duration;

use clap::ValueEnum;

use crate::clients::settings::{CLIENT_LIVENESS, COUNTER_REUSE, DRIVER_TIMEOUT};
use rusteron_test_support::Random;

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
    /// A client that takes all memory of the file system under the driver's directory (needs root)
    FullMemory,
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
    pub(crate) const ALL: [Self; 13] = [
        Self::KillClient,
        Self::KillDriver,
        Self::TakeOverDriver,
        Self::ReplaceDriver,
        Self::Fork,
        Self::ForgeMetadata,
        Self::PauseClient,
        Self::PauseDriver,
        Self::FullDisk,
        Self::FullMemory,
        Self::ClockStep,
        Self::Descriptors,
        Self::Loss,
    ];

    /// How often it comes, compared with the others.
    fn weight(self) -> usize {
        match self {
            Self::KillClient => 25,
            Self::PauseClient => 45,
            Self::KillDriver => 4,
            Self::TakeOverDriver => 4,
            Self::ReplaceDriver => 4,
            Self::Fork => 8,
            Self::ForgeMetadata => 6,
            Self::PauseDriver => 8,
            Self::FullDisk => 6,
            Self::FullMemory => 6,
            Self::ClockStep => 8,
            Self::Descriptors => 12,
            Self::Loss | Self::None => 0,
        }
    }
}

/// How a pause compares with the timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// Shorter than the client liveness timeout.
    Short,
    /// Longer than that.
    PastLiveness,
    /// Longer than that and the time after which the client's counters go to others.
    PastReuse,
}

/// A step of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockStep {
    Forward(Duration),
    Back(Duration),
}

/// A fault that is due, still without a victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blow {
    KillClient,
    KillDriver,
    TakeOverDriver,
    ReplaceDriver(Duration),
    Fork,
    ForgeMetadata,
    PauseClient(Length, Duration),
    PauseDriver(Duration),
    FullDisk(Duration),
    FullMemory,
    ClockStep(ClockStep),
    Descriptors(Duration),
}

impl Blow {
    /// The next fault of these kinds; `None` if none of them comes at a point in time.
    pub(crate) fn choose(kinds: &[FaultKind], random: &mut Random) -> Option<Self> {
        Self::of(random.weighted(kinds, FaultKind::weight)?, random)
    }

    fn of(kind: FaultKind, random: &mut Random) -> Option<Self> {
        let millis = Duration::from_millis;
        let for_a_while = |random: &mut Random| random.between(millis(500), millis(2_500));
        Some(match kind {
            FaultKind::KillClient => Self::KillClient,
            FaultKind::KillDriver => Self::KillDriver,
            FaultKind::TakeOverDriver => Self::TakeOverDriver,
            FaultKind::ReplaceDriver => Self::ReplaceDriver(for_a_while(random)),
            FaultKind::Fork => Self::Fork,
            FaultKind::ForgeMetadata => Self::ForgeMetadata,
            FaultKind::PauseClient => {
                let (length, least) = match random.below(3) {
                    0 => (Length::Short, millis(20)),
                    1 => (Length::PastLiveness, CLIENT_LIVENESS + millis(200)),
                    _ => (Length::PastReuse, CLIENT_LIVENESS + COUNTER_REUSE + millis(1_400)),
                };
                let pause = random.between(least, least + millis(600));
                Self::PauseClient(length, pause)
            }
            FaultKind::PauseDriver => Self::PauseDriver(match random.below(3) {
                0 => random.between(millis(20), millis(600)),
                1 => random.between(CLIENT_LIVENESS, CLIENT_LIVENESS + millis(1_000)),
                _ => random.between(DRIVER_TIMEOUT, DRIVER_TIMEOUT + millis(1_000)),
            }),
            FaultKind::FullDisk => Self::FullDisk(for_a_while(random)),
            FaultKind::FullMemory => Self::FullMemory,
            FaultKind::ClockStep => {
                let by = random.between(millis(50), millis(3_600_000));
                let is_forward = random.percent(50);
                Self::ClockStep(if is_forward {
                    ClockStep::Forward(by)
                } else {
                    ClockStep::Back(by)
                })
            }
            FaultKind::Descriptors => Self::Descriptors(for_a_while(random)),
            FaultKind::Loss | FaultKind::None => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_come_and_no_others() {
        for kinds in [&FaultKind::ALL[..], &[FaultKind::KillDriver, FaultKind::Loss]] {
            let mut random = Random::new(3);
            let mut counts = [0; 12];
            for _ in 0..2_000 {
                let index = match Blow::choose(kinds, &mut random).expect("a fault") {
                    Blow::KillClient => 0,
                    Blow::KillDriver => 1,
                    Blow::TakeOverDriver => 2,
                    Blow::ReplaceDriver(_) => 3,
                    Blow::Fork => 4,
                    Blow::ForgeMetadata => 5,
                    Blow::PauseClient(..) => 6,
                    Blow::PauseDriver(_) => 7,
                    Blow::FullDisk(_) => 8,
                    Blow::FullMemory => 9,
                    Blow::ClockStep(_) => 10,
                    Blow::Descriptors(_) => 11,
                };
                counts[index] += 1;
            }
            for (count, kind) in counts.into_iter().zip(FaultKind::ALL_OF_A_MOMENT) {
                assert_eq!(count > 0, kinds.contains(&kind), "{kind:?}: {count}");
            }
        }
    }

    #[test]
    fn random_numbers_follow_from_seed() {
        let sequence = |seed| {
            let mut random = Random::new(seed);
            std::array::from_fn::<_, 8, _>(|_| random.next())
        };
        assert_eq!(sequence(1), sequence(1));
        assert_ne!(sequence(1), sequence(2));
        let mut random = Random::new(7);
        let (least, most) = (Duration::from_millis(5), Duration::from_millis(8));
        for _ in 0..1000 {
            assert!(random.below(3) < 3);
            assert!((least..=most).contains(&random.between(least, most)));
        }
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn without_kinds_nothing_comes() {
        for kinds in [&[][..], &[FaultKind::Loss], &[FaultKind::None]] {
            assert_eq!(Blow::choose(kinds, &mut Random::new(1)), None);
        }
    }

    #[test]
    fn pauses_are_on_their_side_of_the_timeouts() {
        let mut random = Random::new(5);
        for _ in 0..500 {
            let blow = Blow::choose(&[FaultKind::PauseClient], &mut random).expect("a fault");
            let Blow::PauseClient(length, pause) = blow else { panic!("{blow:?}") };
            match length {
                Length::Short => assert!(pause < CLIENT_LIVENESS),
                Length::PastLiveness => assert!(pause > CLIENT_LIVENESS),
                Length::PastReuse => assert!(pause > CLIENT_LIVENESS + COUNTER_REUSE),
            }
        }
    }

    impl FaultKind {
        const ALL_OF_A_MOMENT: [Self; 12] = [
            Self::KillClient,
            Self::KillDriver,
            Self::TakeOverDriver,
            Self::ReplaceDriver,
            Self::Fork,
            Self::ForgeMetadata,
            Self::PauseClient,
            Self::PauseDriver,
            Self::FullDisk,
            Self::FullMemory,
            Self::ClockStep,
            Self::Descriptors,
        ];
    }
}
