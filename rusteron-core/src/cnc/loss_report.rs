//! The losses on the streams of a media driver.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::cnc::{epoch, i32_at, i64_at};

/// The loss of one publisher's stream on its way to a media driver.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LossReportEntry {
    /// The number of observed gaps.
    pub observation_count: i64,
    /// The number of missing bytes in all gaps. Most of them will have been sent again.
    pub total_bytes_lost: i64,
    /// The time when a gap was first observed, by the driver's clock.
    pub first_observation: SystemTime,
    /// The time when a gap was last observed, by the driver's clock.
    pub last_observation: SystemTime,
    /// The session id of the publisher.
    pub session_id: i32,
    /// The stream id within the channel.
    pub stream_id: i32,
    /// The channel of the subscription. Bytes that are not UTF-8 are replaced.
    pub channel: String,
    /// The address that the publisher sends from. Bytes that are not UTF-8 are replaced.
    pub source: String,
}

/// The file's name in the driver's directory.
pub(crate) const FILE_NAME: &str = "loss-report.dat";

// The layout of `aeron_loss_reporter_entry_t`. Two texts follow it, each after its length.
const OBSERVATION_COUNT: usize = 0;
const TOTAL_BYTES_LOST: usize = 8;
const FIRST_OBSERVATION: usize = 16;
const LAST_OBSERVATION: usize = 24;
const SESSION_ID: usize = 32;
const STREAM_ID: usize = 36;
const HEADER_LENGTH: usize = 40;
const LENGTH_LENGTH: usize = 4;
const ALIGNMENT: usize = 64;

/// Returns the entries of a report.
///
/// Corresponds to `aeron_loss_reporter_read`, which believes the lengths that it finds.
#[doc(alias = "aeron_loss_reporter_read")]
pub(crate) fn read(report: &[u8]) -> Vec<LossReportEntry> {
    let mut entries = Vec::new();
    let mut rest = report;
    while let Some((entry, length)) = next(rest) {
        entries.push(entry);
        rest = rest.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
    }
    entries
}

/// Returns the first entry and its length, if there is an entry.
fn next(report: &[u8]) -> Option<(LossReportEntry, usize)> {
    let observation_count = i64_at(report, OBSERVATION_COUNT)?;
    (observation_count > 0).then_some(())?;
    let (channel, after) = text_at(report, HEADER_LENGTH)?;
    let (source, length) = text_at(report, after.next_multiple_of(LENGTH_LENGTH))?;
    let time = |offset| Some(epoch::time(i64_at(report, offset)?).unwrap_or(UNIX_EPOCH));
    let entry = LossReportEntry {
        observation_count,
        total_bytes_lost: i64_at(report, TOTAL_BYTES_LOST)?,
        first_observation: time(FIRST_OBSERVATION)?,
        last_observation: time(LAST_OBSERVATION)?,
        session_id: i32_at(report, SESSION_ID)?,
        stream_id: i32_at(report, STREAM_ID)?,
        channel,
        source,
    };
    Some((entry, length))
}

/// Returns the text whose length is at an offset, and the offset after the text.
fn text_at(report: &[u8], offset: usize) -> Option<(String, usize)> {
    let length = usize::try_from(i32_at(report, offset)?).ok()?;
    let start = offset + LENGTH_LENGTH;
    let end = start.checked_add(length)?;
    Some((String::from_utf8_lossy(report.get(start..end)?).into_owned(), end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(count: i64, channel: (i32, &str), source: (i32, &str)) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [count, 1000, 5, 6] {
            bytes.extend(number.to_ne_bytes());
        }
        for number in [-7_i32, 8] {
            bytes.extend(number.to_ne_bytes());
        }
        for (length, text) in [channel, source] {
            bytes.resize(bytes.len().next_multiple_of(LENGTH_LENGTH), 0);
            bytes.extend(length.to_ne_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes
    }

    #[test]
    fn entries_end_at_zero_observations() {
        let mut report = entry(2, (9, "aeron:udp"), (6, "a:1234"));
        report.extend(entry(1, (0, ""), (0, "")));
        report.extend(entry(0, (0, ""), (0, "")));
        report.extend(entry(1, (0, ""), (0, "")));
        let entries = read(&report);
        assert_eq!(entries.len(), 2);
        let first = &entries[0];
        assert_eq!((first.observation_count, first.total_bytes_lost), (2, 1000));
        assert_eq!(epoch::millis(first.first_observation), 5);
        assert_eq!(epoch::millis(first.last_observation), 6);
        assert_eq!((first.session_id, first.stream_id), (-7, 8));
        assert_eq!((first.channel.as_str(), first.source.as_str()), ("aeron:udp", "a:1234"));
        assert_eq!(entries[1].channel, "");
    }

    #[test]
    fn lengths_that_cannot_be_end_the_report() {
        assert!(read(&[]).is_empty());
        assert!(read(&[0; 4096]).is_empty());
        for length in [-1, i32::MIN, i32::MAX, 1000] {
            assert!(read(&entry(1, (length, "x"), (1, "y"))).is_empty(), "{length}");
            assert!(read(&entry(1, (1, "x"), (length, "y"))).is_empty(), "{length}");
        }
        let report = entry(1, (4, "abcd"), (4, "efgh"));
        assert_eq!(read(&report).len(), 1);
        for end in 0..HEADER_LENGTH + 16 {
            assert!(read(&report[..end]).is_empty(), "{end}");
        }
    }
}
