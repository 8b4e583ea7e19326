//! The distinct errors of a media driver.

use std::sync::atomic::AtomicI64;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::cnc::epoch;
use crate::cnc::shared_memory::SharedMemory;

/// An error that a media driver has observed, once or more often.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorLogEntry {
    /// The number of observations.
    pub observation_count: i32,
    /// The time of the first observation, by the driver's clock.
    pub first_observation: SystemTime,
    /// The time of the last observation, by the driver's clock.
    pub last_observation: SystemTime,
    /// The description in the driver's words. Bytes that are not UTF-8 are replaced.
    pub text: String,
}

// The layout of `aeron_error_log_entry_t`.
/// Offset of the entry's length in bytes, an `i32`, which is written last.
pub const LENGTH: usize = 0;
/// Offset of the number of observations, an `i32`.
pub const OBSERVATION_COUNT: usize = 4;
/// Offset of the last observation, an `i64` in milliseconds since 1970.
pub const LAST_OBSERVATION: usize = 8;
/// Offset of the first observation, as the last one.
pub const FIRST_OBSERVATION: usize = 16;
/// Length of an entry in bytes without its text.
pub const HEADER_LENGTH: usize = 24;
/// Entries begin at multiples of this number.
pub const ALIGNMENT: usize = 8;

/// Returns the entries of a copied log, such as one of a file.
pub fn entries(log: &[u8]) -> Vec<ErrorLogEntry> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        AtomicI64::new(i64::from_ne_bytes(word))
    };
    let words: Vec<_> = log.chunks(size_of::<i64>()).map(word).collect();
    // SAFETY: the words live to the end of this function, and have room for all bytes of the log.
    read(unsafe { SharedMemory::new(words.as_ptr().cast(), log.len()) }, i64::MIN)
}

/// Returns the entries that were last observed at or after a time in milliseconds.
///
/// Corresponds to `aeron_error_log_read`, which believes the lengths that it finds.
#[doc(alias = "aeron_error_log_read")]
pub(crate) fn read(log: SharedMemory<'_>, since: i64) -> Vec<ErrorLogEntry> {
    let mut entries = Vec::new();
    let mut rest = Some(log);
    while let Some((entry, length)) = rest.and_then(next) {
        entries.extend(copy(entry).filter(|(last, _)| *last >= since).map(|(_, entry)| entry));
        rest = rest.and_then(|rest| {
            let offset = length.next_multiple_of(ALIGNMENT);
            rest.part(offset, rest.len().checked_sub(offset)?)
        });
    }
    entries
}

/// Returns the first entry and its length, if there is an entry.
fn next(log: SharedMemory<'_>) -> Option<(SharedMemory<'_>, usize)> {
    // The driver writes the length last, with release.
    let length = usize::try_from(log.load_i32(LENGTH)?).ok()?;
    (length >= HEADER_LENGTH).then_some(())?;
    Some((log.part(0, length.min(log.len()))?, length))
}

fn copy(entry: SharedMemory<'_>) -> Option<(i64, ErrorLogEntry)> {
    let last = entry.load_i64(LAST_OBSERVATION)?;
    let time = |millis| epoch::time(millis).unwrap_or(UNIX_EPOCH);
    let mut text = Vec::new();
    entry.part(HEADER_LENGTH, entry.len().checked_sub(HEADER_LENGTH)?)?.copy_to(&mut text);
    let entry = ErrorLogEntry {
        observation_count: entry.load_i32(OBSERVATION_COUNT)?,
        first_observation: time(entry.load_i64(FIRST_OBSERVATION)?),
        last_observation: time(last),
        text: String::from_utf8_lossy(&text).trim_end().to_owned(),
    };
    Some((last, entry))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    /// Makes a log of entries, whose lengths may be wrong.
    fn log(entries: &[(i32, i64, &str)], capacity: usize) -> Vec<AtomicI64> {
        let mut bytes = Vec::new();
        for (length, last, text) in entries {
            bytes.extend(length.to_ne_bytes());
            bytes.extend(3_i32.to_ne_bytes());
            bytes.extend(last.to_ne_bytes());
            bytes.extend(1_i64.to_ne_bytes());
            bytes.extend(text.as_bytes());
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        }
        bytes.resize(capacity, 0);
        let words = bytes.chunks(8).map(|chunk| i64::from_ne_bytes(chunk.try_into().expect("8")));
        words.map(AtomicI64::new).collect()
    }

    fn read(log: &[AtomicI64], since: i64) -> Vec<ErrorLogEntry> {
        // SAFETY: the slice lives for the call.
        super::read(unsafe { SharedMemory::new(log.as_ptr().cast(), log.len() * 8) }, since)
    }

    fn texts(log: &[AtomicI64], since: i64) -> Vec<String> {
        read(log, since).into_iter().map(|entry| entry.text).collect()
    }

    #[test]
    fn entries_end_at_zero_length() {
        let log = log(&[(24 + 5, 10, "first"), (24 + 6, 20, "second"), (0, 30, "never")], 1024);
        assert_eq!(texts(&log, i64::MIN), ["first", "second"]);
        assert_eq!(texts(&log, 20), ["second"]);
        let first = &read(&log, 0)[0];
        assert_eq!(first.observation_count, 3);
        assert_eq!(epoch::millis(first.first_observation), 1);
        assert_eq!(epoch::millis(first.last_observation), 10);
    }

    #[test]
    fn lengths_that_cannot_be_end_the_log() {
        assert!(texts(&[], 0).is_empty());
        assert!(texts(&log(&[], 64), 0).is_empty());
        for length in [-1, i32::MIN, 1, 23] {
            assert!(texts(&log(&[(length, 1, "x")], 64), 0).is_empty(), "{length}");
        }
        assert_eq!(texts(&log(&[(24, 1, ""), (24 + 1, 1, "x")], 64), 0), ["", "x"]);
        // The length goes beyond the end, so the text that is there is shown.
        let cut = log(&[(i32::MAX, 1, "12345678")], 32);
        assert_eq!(texts(&cut, 0), ["12345678"]);
        assert!(texts(&cut[..2], 0).is_empty());
    }

    #[test]
    fn copied_log_may_be_cut_anywhere() {
        let whole = log(&[(24 + 5, 10, "first"), (24 + 6, 20, "second")], 64);
        let whole: Vec<u8> = whole.iter().flat_map(|w| w.load(Relaxed).to_ne_bytes()).collect();
        for length in 0..=whole.len() {
            let entries = entries(&whole[..length]);
            let expected = usize::from(length >= 24) + usize::from(length >= 32 + 24);
            assert_eq!(entries.len(), expected, "{length}");
            if length >= 24 {
                let text = &whole[24..length.min(29)];
                assert_eq!(entries[0].text.as_bytes(), text, "{length}");
            }
        }
    }
}
