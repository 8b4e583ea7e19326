//! Random numbers that follow from a seed.

use std::time::Duration;

/// The generator SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[allow(clippy::should_implement_trait, reason = "the sequence has no end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 to below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % (end as u64).max(1)) as usize
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    /// Returns whether an event with so many chances in a hundred happens.
    pub fn percent(&mut self, chances: usize) -> bool {
        self.below(100) < chances
    }

    /// A duration between two of them, in whole milliseconds.
    pub fn between(&mut self, least: Duration, most: Duration) -> Duration {
        let range = most.saturating_sub(least).as_millis() as usize + 1;
        least + Duration::from_millis(self.below(range) as u64)
    }

    /// Chooses one of several by weight; `None` if all weights are 0.
    pub fn weighted<T: Copy>(&mut self, choices: &[T], weight: impl Fn(T) -> usize) -> Option<T> {
        let mut left = self.below(choices.iter().map(|choice| weight(*choice)).sum());
        choices.iter().copied().find(|choice| {
            let weight = weight(*choice);
            let is_chosen = left < weight;
            left = left.saturating_sub(weight);
            is_chosen
        })
    }
}

/// Spreads the bits of a number over all bits of another.
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
