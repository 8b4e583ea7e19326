//! Texts for people: numbers, times, and the texts of other processes.

use std::fmt::Display;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusteron_core::printable::Printable;
use serde::{Serialize, Serializer};

/// Escapes control characters. Labels and errors come from other processes, and must not control
/// the terminal.
pub(crate) fn printable(text: &str) -> String {
    Printable(text).to_string()
}

/// Returns the number with a comma before each group of three digits.
pub(crate) fn grouped(number: i64) -> String {
    let mut text = number.to_string();
    let start = usize::from(number < 0);
    for end in (start + 1..text.len()).rev().skip(2).step_by(3) {
        text.insert(end, ',');
    }
    text
}

/// Returns two hexadecimal digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the rate as a column of 16 characters, which is blank in the first report. Empty if no rates are shown.
pub(crate) fn rate(is_shown: bool, per_second: Option<f64>) -> String {
    if !is_shown {
        return String::new();
    }
    // The conversion limits the rate to 64 bits.
    let text = per_second.map_or(String::new(), |rate| format!("{}/s", grouped(rate as i64)));
    format!("{text:>16}")
}

/// Returns the time as in RFC 3339, in UTC. `None` if the time has no such form.
pub(crate) fn timestamp(time: SystemTime) -> Option<String> {
    const END_OF_YEAR_9999: Duration = Duration::from_secs(253_402_300_800);
    let since_epoch = time.duration_since(UNIX_EPOCH).ok()?;
    (since_epoch < END_OF_YEAR_9999).then(|| humantime::format_rfc3339_millis(time).to_string())
}

/// Returns the time for people.
pub(crate) fn time(time: SystemTime) -> impl Display {
    timestamp(time).unwrap_or_else(|| "an impossible time".to_owned())
}

/// Returns the duration for people, down to milliseconds.
pub(crate) fn duration(duration: Duration) -> impl Display {
    humantime::format_duration(Duration::from_millis(millis(duration)))
}

/// Returns the milliseconds of a duration, limited to 64 bits.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Serialises the time as in RFC 3339, or null if there is no time or no such form.
pub(crate) fn serialize_time<S: Serializer>(
    time: &(impl Into<Option<SystemTime>> + Copy),
    to: S,
) -> Result<S::Ok, S::Error> {
    (*time).into().and_then(timestamp).serialize(to)
}

/// Returns Aeron's number of a version as `major.minor.patch`.
pub(crate) fn semantic_version(version: i64) -> String {
    let [.., major, minor, patch] = version.to_be_bytes();
    format!("{major}.{minor}.{patch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (-123_456, "-123,456")];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(i64::MIN), "-9,223,372,036,854,775,808");
        assert_eq!(rate(true, Some(1234.9)).trim(), "1,234/s");
        assert_eq!(rate(true, None), " ".repeat(16));
    }

    #[test]
    fn unprintable_times_are_none() {
        let at = |seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).expect("a time");
        assert_eq!(timestamp(at(1)).as_deref(), Some("1970-01-01T00:00:01.000Z"));
        assert_eq!(timestamp(at(253_402_300_799)).as_deref(), Some("9999-12-31T23:59:59.000Z"));
        assert_eq!(timestamp(at(253_402_300_800)), None);
        assert_eq!(timestamp(UNIX_EPOCH - Duration::from_secs(1)), None);
    }
}
