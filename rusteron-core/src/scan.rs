//! Numbers, sizes and durations, as Aeron reads and writes them.
//!
//! Integers follow C's `strtoll`. Sizes and durations are read more strictly than in C, which ignores text behind the
//! unit: `64kb` is 64 KiB for C, and refused by Aeron's Java code and here. The table in
//! `tests/it/channel/cases.rs` compares both with the driver.

use std::time::Duration;

const KIBIBYTE: u64 = 1 << 10;
const MEBIBYTE: u64 = 1 << 20;
const GIBIBYTE: u64 = 1 << 30;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

const I64_MAX: u64 = i64::MAX as u64;

/// The number at the beginning of a text, and the text that follows it.
struct Scan<'a> {
    negative: bool,
    /// The magnitude. `None` if it exceeds 64 bits.
    magnitude: Option<u64>,
    rest: &'a str,
}

/// Scans a number like `strtoll` and `strtoull`. With base 0, `0x…` is hexadecimal and `0…` is
/// octal.
///
/// Returns `None` if there are no digits.
fn scan(text: &str, base: u32) -> Option<Scan<'_>> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .filter(|digits| digits.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (base, digits) = match (base, hexadecimal) {
        (0, Some(digits)) => (16, digits),
        (0, None) if text.starts_with('0') => (8, text),
        (0, None) => (10, text),
        (base, _) => (base, text),
    };
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    // Only digits are left, so a failed conversion means that the number is too large.
    let magnitude = u64::from_str_radix(&digits[..end], base).ok();
    Some(Scan { negative, magnitude, rest: &digits[end..] })
}

impl Scan<'_> {
    /// Returns the result of `strtoll`, if the number is in range.
    fn signed(&self) -> Option<i64> {
        match self.negative {
            false => i64::try_from(self.magnitude?).ok(),
            true => 0_i64.checked_sub_unsigned(self.magnitude?),
        }
    }

    /// Returns the result of `strtoull`, which wraps a negative number around.
    fn unsigned(&self) -> u64 {
        match (self.negative, self.magnitude) {
            (false, Some(magnitude)) => magnitude,
            (true, Some(magnitude)) => magnitude.wrapping_neg(),
            (_, None) => u64::MAX,
        }
    }
}

/// Reads a text that is an integer as a whole, like `strtoll`.
pub fn int64(text: &str, base: u32) -> Option<i64> {
    let number = scan(text, base).filter(|number| number.rest.is_empty())?;
    number.signed()
}

/// Mirrors `aeron_uri_get_int32`: decimal, hexadecimal or octal.
pub fn int32(text: &str) -> Option<i32> {
    int64(text, 0)?.try_into().ok()
}

/// Reads an unsigned integer, after which any text may follow.
pub fn unsigned_prefix(text: &str, base: u32) -> Option<u64> {
    Some(scan(text, base)?.unsigned())
}

/// Reads a number of bytes: digits, with `k`, `m` or `g` in either case for powers of 1024.
///
/// `aeron_parse_size64` reads all of these likewise, but also takes blanks, a sign, text behind the unit, and numbers of
/// more than 63 bits.
pub fn size(text: &str) -> Option<u64> {
    with_unit(text, &[("k", KIBIBYTE), ("m", MEBIBYTE), ("g", GIBIBYTE)])
}

/// Reads a duration: digits, with `s`, `ms`, `us` or `ns` in either case, or without for nanoseconds.
///
/// `aeron_parse_duration_ns` reads all of these likewise, and takes more, as for [`size`].
pub fn duration(text: &str) -> Option<Duration> {
    let units = [("ns", 1), ("us", MICROSECOND), ("ms", MILLISECOND), ("s", SECOND)];
    with_unit(text, &units).map(Duration::from_nanos)
}

/// Reads digits, with one of the units or none, whose value has at most 63 bits.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text[..text.len() - unit.len()].parse().ok()?;
    let factor = match unit {
        "" => 1,
        _ => units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?.1,
    };
    number.checked_mul(factor).filter(|&value| value <= I64_MAX)
}

/// Returns whether a duration ends in the `m` of `ms` or the like. For such a duration,
/// `aeron_parse_duration_ns` reads beyond the end.
pub fn is_unit_cut_short(text: &str) -> bool {
    scan(text, 10).is_some_and(|number| matches!(number.rest, "m" | "M" | "u" | "U" | "n" | "N"))
}

/// Mirrors `aeron_format_size64`: writes the largest unit that leaves no fraction, up to the 8 EiB
/// that Aeron can count.
pub fn format_size(bytes: u64) -> String {
    in_units(bytes, &[("g", GIBIBYTE), ("m", MEBIBYTE), ("k", KIBIBYTE), ("", 1)])
}

/// Mirrors `aeron_format_duration_ns`: writes the largest unit that leaves no fraction, up to the
/// 292 years that Aeron can count.
pub fn format_duration(duration: Duration) -> String {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    in_units(nanos, &[("s", SECOND), ("ms", MILLISECOND), ("us", MICROSECOND), ("ns", 1)])
}

/// Writes the first unit that leaves no fraction.
fn in_units(value: u64, units: &[(&str, u64)]) -> String {
    let value = value.min(I64_MAX);
    let found = units.iter().find(|(_, unit)| *unit == 1 || value >= *unit && value % unit == 0);
    found.map_or_else(String::new, |(name, unit)| format!("{}{name}", value / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_refuse_what_c_passes_over() {
        let wide = ["9223372036854775808", "18446744073709551615k", "99999999999999999999"];
        for text in ["4kb", " 4k", "+4k", "4k ", "k", ""].into_iter().chain(wide) {
            assert_eq!(size(text), None, "{text}");
        }
        assert_eq!(size("9223372036854775807"), Some(I64_MAX));
        assert_eq!((size("7"), size("4K")), (Some(7), Some(4096)));
        let long = ["9223372037s", "18446744073709551615s", "9223372036854775808"];
        for text in ["5msx", "5mx", "5m", " 5ms", "-5s", "1.5s", "s", ""].into_iter().chain(long) {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(duration("7us"), Some(Duration::from_micros(7)));
        assert_eq!(duration("7"), Some(Duration::from_nanos(7)));
    }

    #[test]
    fn integers_are_read_as_in_c() {
        let cases = [
            ("2147483647", Some(i32::MAX)),
            ("-2147483648", Some(i32::MIN)),
            ("2147483648", None),
            ("0x7f", Some(127)),
            ("-0X7F", Some(-127)),
            ("017", Some(15)),
            ("08", None),
            ("0x", None),
            ("\t5", Some(5)),
            ("5 ", None),
            ("+", None),
            ("99999999999999999999", None),
        ];
        for (text, value) in cases {
            assert_eq!(int32(text), value, "{text:?}");
        }
    }

    #[test]
    fn sizes_and_durations_are_printed_as_in_c() {
        let sizes = [(0, "0"), (1408, "1408"), (4096, "4k"), (1 << 26, "64m"), (3 << 30, "3g")];
        for (bytes, text) in sizes {
            assert_eq!(format_size(bytes), text);
            assert_eq!(size(text), Some(bytes));
        }
        let durations = [
            (0, "0ns"),
            (999, "999ns"),
            (3_000, "3us"),
            (10_000_000, "10ms"),
            (5_000_000_000, "5s"),
            (5_000_000_001, "5000000001ns"),
        ];
        for (nanos, text) in durations {
            assert_eq!(format_duration(Duration::from_nanos(nanos)), text);
            assert_eq!(duration(text), Some(Duration::from_nanos(nanos)));
        }
        assert_eq!(format_duration(Duration::MAX), "9223372036854775807ns");
    }
}
