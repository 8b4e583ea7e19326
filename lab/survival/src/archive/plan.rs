//! What is chosen by the seed before a life begins.

use std::time::Duration;

use rusteron_test_support::Random;

/// When a server is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moment {
    /// So long after the process was started.
    Start,
    /// So long after the server was ready, while clients connect and ask.
    Requests,
    /// So long after all streams are recorded.
    Load,
}

/// How the directory is copied before a life. The copy takes the directory's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyMode {
    /// As the documentation says: `cp -a` leaves holes where it finds them.
    Archive,
    /// Pages of zeros become holes.
    Sparse,
    /// Holes become pages of zeros.
    Dense,
}

impl CopyMode {
    /// The arguments of `cp`.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Archive => &["-a"],
            Self::Sparse => &["-a", "--sparse=always"],
            Self::Dense => &["-a", "--sparse=never"],
        }
    }
}

/// The life of a server, from its start to the kill.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    /// The copy on which the server starts, in some lives.
    pub(super) copy: Option<CopyMode>,
    pub(super) moment: Moment,
    pub(super) delay: Duration,
    /// Whether the media driver is a part of the process, and killed with it.
    pub(super) with_driver: bool,
    pub(super) sync_level: u8,
    /// Whether recorder and replayer have threads of their own.
    pub(super) dedicated: bool,
    /// The stream of which the publication ends under load, in some lives.
    pub(super) ends: Option<usize>,
    /// The stream of which a replay follows the recording.
    pub(super) follows: usize,
}

impl Plan {
    pub(super) fn choose(random: &mut Random, streams: usize) -> Self {
        let (moment, longest) = match random.below(100) {
            0..10 => (Moment::Start, 60),
            10..25 => (Moment::Requests, 100),
            _ => (Moment::Load, 200),
        };
        Self {
            copy: [CopyMode::Archive, CopyMode::Sparse, CopyMode::Dense]
                .get(random.below(18))
                .copied(),
            moment,
            delay: Duration::from_micros(random.below(longest * 1000) as u64),
            with_driver: random.percent(20),
            sync_level: [0, 0, 1, 2][random.below(4)],
            dedicated: random.percent(50),
            ends: Some(random.below(2 * streams)).filter(|&ended| ended < streams),
            follows: random.below(streams),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_chooses_the_plan() {
        let plans = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| format!("{:?}", Plan::choose(&mut random, 6))).collect::<Vec<_>>()
        };
        assert_eq!(plans(1), plans(1));
        assert_ne!(plans(1), plans(2));
        for text in
            ["Start", "Requests", "Load", "with_driver: true", "sync_level: 2", "Some(5)", "Sparse"]
        {
            assert!(plans(1).iter().any(|plan| plan.contains(text)), "{text}");
        }
    }
}
