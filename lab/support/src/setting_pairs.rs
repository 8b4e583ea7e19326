//! A search over pairs of settings that are valid one by one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::Random;

/// Extreme values: of integers and sizes, of durations, and of flags. No size is larger than a
/// small machine's memory.
const VALUES: [&str; 24] = [
    "-2147483648",
    "-1",
    "0",
    "1",
    "2",
    "32",
    "64",
    "256",
    "1k",
    "4k",
    "64k",
    "1m",
    "16m",
    "64m",
    "2147483647",
    "1ns",
    "1us",
    "1ms",
    "200ms",
    "1h",
    "365d",
    "false",
    "true",
    "infer",
];

/// A setting's variable, and one of its values.
pub type SettingValue = (&'static str, &'static str);

/// The pairs of extreme values of settings.
#[derive(Debug, Default)]
pub struct SettingPairs {
    settings: Vec<(&'static str, [&'static str; 2])>,
}

impl SettingPairs {
    /// Adds a setting, with the first and the last of the values that it permits. `others` are
    /// values that only such settings have. Names and texts have no extremes.
    pub fn add(
        &mut self,
        variable: &'static str,
        others: &[&'static str],
        is_permitted: impl Fn(&str) -> bool,
    ) {
        if is_permitted("any text") {
            return;
        }
        let values = VALUES.iter().chain(others).copied();
        let mut permitted = values.filter(|value| is_permitted(value));
        if let Some(first) = permitted.next() {
            let last = permitted.next_back().unwrap_or(first);
            self.settings.push((variable, [first, last]));
        }
    }

    /// Returns how many settings there are.
    pub fn count(&self) -> usize {
        self.settings.len()
    }

    fn all(&self) -> Vec<[SettingValue; 2]> {
        let mut pairs = Vec::new();
        for (index, (one, values)) in self.settings.iter().enumerate() {
            for (other, other_values) in &self.settings[index + 1..] {
                for value in values {
                    pairs.extend(
                        other_values.map(|other_value| [(*one, *value), (*other, other_value)]),
                    );
                }
            }
        }
        pairs
    }

    /// Tries pairs, and panics if one of them fails: all with `RUSTERON_SETTING_PAIRS=all`,
    /// otherwise a few by chance.
    #[track_caller]
    pub fn search(&self, fault: impl Fn(&[SettingValue; 2]) -> Result<(), String> + Sync) {
        let mut pairs = self.all();
        if std::env::var("RUSTERON_SETTING_PAIRS").as_deref() != Ok("all") {
            let mut random = Random::new(7);
            pairs = (0..12).map(|_| pairs.swap_remove(random.below(pairs.len()))).collect();
        }
        let (next, faults) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // Most of the time, the programs and their clients wait for each other.
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let outcome = catch_unwind(AssertUnwindSafe(|| fault(pair)));
                        if let Err(text) = outcome.unwrap_or_else(|_| Err("panics".to_owned())) {
                            faults.fetch_add(1, Ordering::Relaxed);
                            let [one, other] = pair.map(|(name, value)| format!("{name}={value}"));
                            eprintln!("{one} {other}: {text}");
                        }
                    }
                });
            }
        });
        assert_eq!(faults.into_inner(), 0, "of {} pairs", pairs.len());
    }
}

/// Judges the end of a program that has refused a pair, which has to name one of the two settings
/// by its variable or its setter.
pub fn refused_pair(pair: &[SettingValue; 2], code: i32, errors: &str) -> Result<(), String> {
    let is_named = pair.iter().any(|(variable, value)| {
        let setter = variable.trim_start_matches("AERON_ARCHIVE_").to_lowercase();
        errors.contains(variable) || errors.contains(&format!("{setter}={value}"))
    });
    (code == 78 && is_named).then_some(()).ok_or_else(|| format!("{code}, {errors}"))
}
