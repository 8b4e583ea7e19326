//! Which faults there are, and which comes next.

use std::time::Duration;

use clap::ValueEnum;
use rusteron_test_support::Random;

use super::parts::Process;

/// The kinds of faults that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum ClusterFault {
    /// SIGKILL for a service
    KillService,
    /// SIGKILL for a consensus module with its archive
    KillModule,
    /// SIGKILL for a media driver
    KillDriver,
    /// SIGKILL for all processes of a member
    KillNode,
    /// SIGKILL for all processes of all members
    KillAll,
    /// SIGSTOP and SIGCONT for a service
    PauseService,
    /// SIGSTOP and SIGCONT for a consensus module with its archive
    PauseModule,
    /// SIGSTOP and SIGCONT for a media driver
    PauseDriver,
}

impl ClusterFault {
    /// The share of this strike among all.
    fn weight(self) -> usize {
        match self {
            Self::KillAll => 3,
            Self::KillNode => 15,
            _ => 14,
        }
    }

    /// The figure that counts it.
    pub(super) fn figure(self) -> &'static str {
        match self {
            Self::KillService => "kills of services",
            Self::KillModule => "kills of consensus modules",
            Self::KillDriver => "kills of drivers",
            Self::KillNode => "kills of members",
            Self::KillAll => "kills of all members",
            Self::PauseService => "pauses of services",
            Self::PauseModule => "pauses of consensus modules",
            Self::PauseDriver => "pauses of drivers",
        }
    }

    /// The process that is killed or paused; `None` for all.
    pub(super) fn process(self) -> Option<Process> {
        match self {
            Self::KillService | Self::PauseService => Some(Process::Service),
            Self::KillModule | Self::PauseModule => Some(Process::Module),
            Self::KillDriver | Self::PauseDriver => Some(Process::Driver),
            Self::KillNode | Self::KillAll => None,
        }
    }

    pub(super) fn is_pause(self) -> bool {
        matches!(self, Self::PauseService | Self::PauseModule | Self::PauseDriver)
    }
}

/// A fault that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strike {
    pub(super) kind: ClusterFault,
    /// Is for the leader's member; otherwise that of this number.
    pub(super) is_for_leader: bool,
    pub(super) member: usize,
    /// Of a pause.
    pub(super) duration: Duration,
    /// The next fault comes after this time, without waiting for the member.
    pub(super) followed_after: Option<Duration>,
}

impl Strike {
    /// Chooses the next fault of these kinds, which are not empty.
    pub(super) fn choose(faults: &[ClusterFault], members: usize, random: &mut Random) -> Self {
        let kind = random.weighted(faults, ClusterFault::weight);
        let millis = Duration::from_millis;
        // Shorter than the liveness timeouts of ten seconds, or longer.
        let is_short = random.percent(60);
        let short = random.between(millis(200), millis(7_000));
        let long = random.between(millis(11_000), millis(20_000));
        let pause = random.between(millis(0), millis(6_000));
        Self {
            kind: kind.unwrap_or(ClusterFault::KillNode),
            is_for_leader: random.percent(50),
            member: random.below(members),
            duration: if is_short { short } else { long },
            followed_after: random.percent(25).then_some(pause),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_faults_come() {
        let mut random = Random::new(1);
        let mut choose = |faults| Strike::choose(faults, 3, &mut random);
        let all = ClusterFault::value_variants();
        let strikes: Vec<Strike> = (0..500).map(|_| choose(all)).collect();
        let faults: BTreeSet<_> = strikes.iter().map(|strike| strike.kind).collect();
        assert_eq!(faults, all.iter().copied().collect());
        let members: BTreeSet<_> = strikes.iter().map(|strike| strike.member).collect();
        assert_eq!(members, [0, 1, 2].into());
        let one = choose(&[ClusterFault::PauseModule]).kind;
        assert!(one.is_pause() && one.process() == Some(Process::Module));
    }
}
