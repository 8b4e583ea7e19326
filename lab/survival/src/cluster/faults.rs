//! Which faults there are, and which comes next.

use std::time::Duration;

use clap::ValueEnum;

use super::member_process::Process;
use rusteron_test_support::Random;

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
    /// All faults.
    pub(crate) const ALL: [Self; 8] = [
        Self::KillService,
        Self::KillModule,
        Self::KillDriver,
        Self::KillNode,
        Self::KillAll,
        Self::PauseService,
        Self::PauseModule,
        Self::PauseDriver,
    ];

    /// How often it comes, compared with the others.
    fn weight(self) -> usize {
        match self {
            Self::KillAll => 3,
            Self::KillNode => 15,
            _ => 14,
        }
    }

    /// The name in reports.
    pub(crate) fn name(self) -> &'static str {
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
}

/// A fault that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) kind: ClusterFault,
    /// Is for the leader's member; otherwise that of this number.
    pub(super) is_for_leader: bool,
    pub(super) member: usize,
    /// Of a pause.
    pub(super) duration: Duration,
    /// The next fault comes after this time, without waiting for the member.
    pub(super) followed_after: Option<Duration>,
}

impl Fault {
    /// Chooses the next fault of these kinds, which are not empty.
    pub(super) fn next(faults: &[ClusterFault], members: usize, random: &mut Random) -> Self {
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

    /// The process that is killed or paused; `None` for all.
    pub(super) fn process(&self) -> Option<Process> {
        match self.kind {
            ClusterFault::KillService | ClusterFault::PauseService => Some(Process::Service),
            ClusterFault::KillModule | ClusterFault::PauseModule => Some(Process::Module),
            ClusterFault::KillDriver | ClusterFault::PauseDriver => Some(Process::Driver),
            ClusterFault::KillNode | ClusterFault::KillAll => None,
        }
    }

    pub(super) fn is_pause(&self) -> bool {
        matches!(
            self.kind,
            ClusterFault::PauseService | ClusterFault::PauseModule | ClusterFault::PauseDriver
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_faults_come() {
        let mut random = Random::new(1);
        let injected: Vec<Fault> =
            (0..500).map(|_| Fault::next(&ClusterFault::ALL, 3, &mut random)).collect();
        let faults: BTreeSet<_> = injected.iter().map(|fault| fault.kind).collect();
        assert_eq!(faults, ClusterFault::ALL.into());
        let members: BTreeSet<_> = injected.iter().map(|fault| fault.member).collect();
        assert_eq!(members, [0, 1, 2].into());
        let one = Fault::next(&[ClusterFault::PauseModule], 3, &mut random);
        assert!(one.is_pause() && one.process() == Some(Process::Module));
    }
}
