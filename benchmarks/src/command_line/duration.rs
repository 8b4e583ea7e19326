//! Durations as options write them: `10s`, `200ms`.

use std::time::Duration;

/// The longest duration that is accepted: a year, which no clock arithmetic overflows at.
const MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The units, the longest first, in nanoseconds.
const UNITS: [(&str, u64); 5] =
    [("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// The duration that a text such as `10s` means.
///
/// # Errors
/// A text that names the expected form, if this is not a whole number directly followed by one of
/// the units `m`, `s`, `ms`, `us` and `ns`, or if it is more than a year.
pub fn parse(text: &str) -> Result<Duration, String> {
    const EXPECTED: &str =
        "expected a whole number and a unit, m, s, ms, us or ns, such as 10s, from 0s to 365 days";
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let nanos_per_unit = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, nanos)| *nanos);
    number
        .parse::<u64>()
        .ok()
        .zip(nanos_per_unit)
        .and_then(|(count, nanos)| count.checked_mul(nanos))
        .map(Duration::from_nanos)
        .filter(|duration| *duration <= MAX)
        .ok_or_else(|| EXPECTED.to_owned())
}

/// The duration as [`parse`] reads it, in the longest unit that needs no fraction.
pub fn display(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    UNITS.iter().find(|(_, unit)| nanos % u128::from(*unit) == 0).map_or_else(
        || format!("{nanos}ns"),
        |(name, unit)| format!("{}{name}", nanos / u128::from(*unit)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        let cases = [
            ("10s", Duration::from_secs(10)),
            ("0s", Duration::ZERO),
            ("200ms", Duration::from_millis(200)),
            ("7us", Duration::from_micros(7)),
            ("123ns", Duration::from_nanos(123)),
            ("2m", Duration::from_secs(120)),
            ("525600m", MAX),
        ];
        for (text, duration) in cases {
            assert_eq!(parse(text), Ok(duration), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let cases = [
            "",
            "10",
            "s",
            "-1s",
            "+1s",
            "1.5s",
            " 1s",
            "1 s",
            "1s ",
            "1h",
            "1S",
            "1sec",
            "525601m",
            "18446744073709551615s",
            "99999999999999999999s",
            "1é",
        ];
        for text in cases {
            let error = parse(text).expect_err(text);
            assert!(error.contains("10s") && error.contains("365 days"), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_displayed_is_read_again() {
        for text in ["0s", "1ns", "1001ns", "15us", "200ms", "1500ms", "90s", "2m", "525600m"] {
            assert_eq!(parse(text).map(display).as_deref(), Ok(text));
        }
    }
}
