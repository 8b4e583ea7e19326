//! Random numbers that follow from a seed.

use std::time::Duration;

/// The generator SplitMix64: fast, and good enough to choose faults and messages with.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 to below `end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % (end as u64).max(1)) as usize
    }

    /// Returns whether an event with so many chances in a hundred happens.
    pub(crate) fn percent(&mut self, chances: usize) -> bool {
        self.below(100) < chances
    }

    /// A duration between two of them, in whole milliseconds.
    pub(crate) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let range = most.saturating_sub(least).as_millis() as usize + 1;
        least + Duration::from_millis(self.below(range) as u64)
    }
}

/// Spreads the bits of a number over all bits of another.
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_determines_the_sequence() {
        let sequence = |seed| {
            let mut random = Random::new(seed);
            std::array::from_fn::<_, 8, _>(|_| random.next())
        };
        assert_eq!(sequence(1), sequence(1));
        assert_ne!(sequence(1), sequence(2));
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::new(7);
        let (least, most) = (Duration::from_millis(5), Duration::from_millis(8));
        for _ in 0..1000 {
            assert!(random.below(3) < 3);
            assert!((least..=most).contains(&random.between(least, most)));
        }
        assert_eq!(random.below(0), 0);
    }
}
