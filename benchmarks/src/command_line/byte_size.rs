//! Lengths in bytes as options write them: `64k`, `1m`.

use std::ops::RangeInclusive;

const MIB: usize = 1 << 20;

/// The longest message that Aeron takes in any term length.
const MAX_MESSAGE_LENGTH: usize = 16 * MIB;

/// The term lengths that Aeron's log buffers can have.
const TERM_LENGTHS: RangeInclusive<usize> = 64 << 10..=1 << 30;

/// The number of bytes that a text such as `32`, `64k`, `1m` or `1g` means, in powers of 1024.
fn parse(text: &str) -> Option<usize> {
    let (number, shift) = match text.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => (&text[..text.len() - 1], 10),
        b'm' => (&text[..text.len() - 1], 20),
        b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    number.parse::<usize>().ok()?.checked_mul(1 << shift)
}

/// How many bytes there are to be of something that may be long, such as a recording.
///
/// # Errors
/// A text that names the range, from 1 byte on, if this is not a length in it.
pub fn parse_length(text: &str) -> Result<usize, String> {
    parse(text)
        .filter(|length| *length > 0)
        .ok_or_else(|| "expected a number of bytes from 1 on, such as 64k or 1g".to_owned())
}

/// The length of a message.
///
/// # Errors
/// A text that names the range, from 1 byte to 16 MiB, if this is not a length in it.
pub fn parse_message_length(text: &str) -> Result<usize, String> {
    parse(text)
        .filter(|length| (1..=MAX_MESSAGE_LENGTH).contains(length))
        .ok_or_else(|| "expected a number of bytes from 1 to 16m, such as 32 or 1k".to_owned())
}

/// The length of a term buffer.
///
/// # Errors
/// A text that names the range, powers of two from 64 KiB to 1 GiB, if this is not a length in it.
pub fn parse_term_length(text: &str) -> Result<usize, String> {
    parse(text)
        .filter(|length| TERM_LENGTHS.contains(length) && length.is_power_of_two())
        .ok_or_else(|| "expected a power of two from 64k to 1g, such as 64k or 1m".to_owned())
}

/// The longest message that can be sent in terms of a length.
///
/// Corresponds to `aeron_compute_max_message_length`.
pub fn max_message_length(term_length: usize) -> usize {
    (term_length / 8).min(MAX_MESSAGE_LENGTH)
}

/// The length as an option would have it, in the largest unit that needs no fraction.
pub fn display(length: usize) -> String {
    let units = [("g", 30), ("m", 20), ("k", 10)];
    match units.iter().find(|(_, shift)| length > 0 && length % (1 << shift) == 0) {
        Some((name, shift)) => format!("{}{name}", length >> shift),
        None => length.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_with_and_without_a_unit_are_read() {
        let cases = [("0", 0), ("32", 32), ("64k", 65_536), ("64K", 65_536), ("1m", MIB)];
        for (text, length) in cases {
            assert_eq!(parse(text), Some(length), "{text}");
        }
        assert_eq!(parse("2G"), Some(2 << 30));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "k", "-1", "+1", "1.5k", "64kb", "64 k", "0x10", "18446744073709551615g", "é"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_term_length_is_a_power_of_two_in_range() {
        for (text, length) in
            [("64k", 1 << 16), ("65536", 1 << 16), ("1m", 1 << 20), ("1g", 1 << 30)]
        {
            assert_eq!(parse_term_length(text), Ok(length), "{text}");
        }
        for text in ["0", "32k", "65k", "3m", "2g", "100", "x"] {
            let error = parse_term_length(text).expect_err(text);
            assert!(error.contains("64k to 1g"), "{text}: {error}");
        }
    }

    #[test]
    fn a_message_length_is_in_range() {
        assert_eq!(parse_message_length("1"), Ok(1));
        assert_eq!(parse_message_length("16m"), Ok(16 * MIB));
        for text in ["0", "16777217", "17m", "1g", "x"] {
            let error = parse_message_length(text).expect_err(text);
            assert!(error.contains("1 to 16m"), "{text}: {error}");
        }
    }

    #[test]
    fn the_longest_message_follows_the_term_length() {
        assert_eq!(max_message_length(64 << 10), 8 << 10);
        assert_eq!(max_message_length(128 << 20), 16 << 20);
        assert_eq!(max_message_length(1 << 30), 16 << 20);
    }

    #[test]
    fn what_is_displayed_is_read_again() {
        for text in ["0", "100", "1k", "64k", "1m", "3m", "1g", "1025"] {
            assert_eq!(parse(text).map(display).as_deref(), Some(text));
        }
    }
}
