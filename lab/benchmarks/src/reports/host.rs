//! The machine and the versions, which a reader of a result needs.

use std::fs;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// The machine the program runs on.
pub fn describe() -> Value {
    json!({
        "cpu": cpu_model(),
        "cores": thread::available_parallelism().ok().map(usize::from),
        "os": std::env::consts::OS,
        "arch": std::env::consts::ARCH,
    })
}

/// The machine in words: `2 cores of Some CPU, linux`.
pub fn machine() -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let cpu = cpu_model().unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    format!("{cores} cores of {cpu}, {}", std::env::consts::OS)
}

/// The versions of the program's parts.
pub fn versions() -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({
        // Behind the plus sign is the version of Aeron.
        "rusteron": version.split_once('+').map_or(version, |(own, _)| own),
        "aeron": rusteron_sys::AERON_VERSION,
        "rustc": env!("RUSTERON_RUSTC_VERSION"),
    })
}

/// The versions in words: `Aeron 1.54.0, rustc 1.95.0`.
pub fn versions_in_words() -> String {
    format!("Aeron {}, {}", rusteron_sys::AERON_VERSION, env!("RUSTERON_RUSTC_VERSION"))
}

/// Today's date in UTC: `2026-11-25`.
pub fn today() -> String {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let days = i64::try_from(elapsed.as_secs() / 86_400).unwrap_or_default();
    let (year, month, day) = date(days);
    format!("{year}-{month:02}-{day:02}")
}

/// The date of a day since 1970-01-01, counted in eras of 400 years that begin in March.
fn date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let leaps = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The processor's name, where the operating system has a file that says it.
fn cpu_model() -> Option<String> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").ok()?;
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(name, _)| name.trim() == "model name").map(|(_, model)| model.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_782, (2026, 11, 25)),
            (20_819, (2027, 1, 1)),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn versions_are_known() {
        assert_eq!(versions()["aeron"], "1.54.0");
        assert!(versions_in_words().starts_with("Aeron 1.54.0, rustc "));
    }
}
