//! The recording log: the terms and snapshots of a node.

use std::fmt;

use serde::Serialize;

use crate::text;

/// The file in the cluster directory.
pub(super) const NAME: &str = "recording.log";

/// Length of an entry in bytes, without the endpoint of an archive.
const FIELDS_LENGTH: usize = 48;
/// Entries begin at multiples of this number of bytes.
const ALIGNMENT: usize = 64;
/// The greatest length of an entry in bytes.
const MAX_ENTRY_LENGTH: usize = 4096;
/// Marks an entry as not valid, in its type.
const INVALID_FLAG: i32 = i32::MIN;
/// The type of a removed entry.
const REMOVED: i32 = -1;
/// The service id of the consensus module's snapshots.
const CONSENSUS_MODULE: i32 = -1;

/// An entry of the recording log: a term, or a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Entry {
    kind: EntryKind,
    is_valid: bool,
    recording_id: i64,
    leadership_term_id: i64,
    term_base_log_position: i64,
    /// The end of the term, `None` while it goes on; or the position of the snapshot.
    log_position: Option<i64>,
    /// Time of the cluster, in its unit.
    timestamp: i64,
    /// The service of a snapshot. `None` for the consensus module.
    service_id: Option<i32>,
    /// The archive of a standby's snapshot.
    archive_endpoint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum EntryKind {
    Term,
    Snapshot,
    StandbySnapshot,
}

/// The reason why bytes are not a recording log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordingLogError {
    /// The file ends within an entry.
    Truncated {
        /// The offset of the entry in bytes.
        offset: usize,
    },
    /// The type of an entry is unknown.
    EntryType { offset: usize, code: i32 },
    /// The endpoint of an archive is longer than an entry, or empty.
    EndpointLength { offset: usize, length: i32 },
}

impl fmt::Display for RecordingLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { offset } => {
                write!(f, "the file ends within the entry at byte {offset}")
            }
            Self::EntryType { offset, code } => {
                write!(f, "the entry at byte {offset} is of an unknown type: {code}")
            }
            Self::EndpointLength { offset, length } => write!(
                f,
                "the entry at byte {offset} has an archive endpoint of {length} bytes: not between \
                 1 and {}",
                MAX_ENTRY_LENGTH - FIELDS_LENGTH - 4
            ),
        }
    }
}

/// Reads all entries, in the order of the file.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Entry>, RecordingLogError> {
    let mut entries = Vec::new();
    let mut offset = 0;
    while offset < bytes.len() {
        let truncated = RecordingLogError::Truncated { offset };
        let entry = &bytes[offset..];
        let i32_at = |at: usize| {
            let field = entry.get(at..).and_then(|field| field.first_chunk());
            field.copied().map(i32::from_le_bytes).ok_or(truncated)
        };
        let i64_at = |at: usize| {
            let field = entry.get(at..).and_then(|field| field.first_chunk());
            field.copied().map(i64::from_le_bytes).ok_or(truncated)
        };
        let code = i32_at(44)?;
        let kind = match code & !INVALID_FLAG {
            _ if code == REMOVED => None,
            0 => Some(EntryKind::Term),
            1 => Some(EntryKind::Snapshot),
            2 => Some(EntryKind::StandbySnapshot),
            _ => return Err(RecordingLogError::EntryType { offset, code }),
        };
        let mut length = FIELDS_LENGTH;
        let mut archive_endpoint = None;
        if kind == Some(EntryKind::StandbySnapshot) {
            let text_length = i32_at(FIELDS_LENGTH)?;
            let wrong = RecordingLogError::EndpointLength { offset, length: text_length };
            length += 4 + usize::try_from(text_length).map_err(|_| wrong)?;
            if text_length == 0 || length > MAX_ENTRY_LENGTH {
                return Err(wrong);
            }
            let text = entry.get(FIELDS_LENGTH + 4..length).ok_or(truncated)?;
            archive_endpoint = Some(String::from_utf8_lossy(text).into_owned());
        }
        let length = length.next_multiple_of(ALIGNMENT);
        if entry.len() < length {
            return Err(truncated);
        }
        if let Some(kind) = kind {
            let service_id = i32_at(40)?;
            let is_snapshot = kind != EntryKind::Term;
            entries.push(Entry {
                kind,
                is_valid: code & INVALID_FLAG == 0,
                recording_id: i64_at(0)?,
                leadership_term_id: i64_at(8)?,
                term_base_log_position: i64_at(16)?,
                log_position: Some(i64_at(24)?).filter(|position| *position >= 0),
                timestamp: i64_at(32)?,
                service_id: Some(service_id).filter(|id| is_snapshot && *id != CONSENSUS_MODULE),
                archive_endpoint,
            });
        }
        offset += length;
    }
    Ok(entries)
}

/// Returns the terms and the snapshots, each from the oldest to the newest.
pub(super) fn sort(entries: Vec<Entry>) -> (Vec<Entry>, Vec<Entry>) {
    let is_term = |entry: &Entry| entry.kind == EntryKind::Term;
    let (mut terms, mut snapshots): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_term);
    terms.sort_by_key(|term| term.leadership_term_id);
    snapshots.sort_by_key(|snapshot| (snapshot.leadership_term_id, snapshot.log_position));
    (terms, snapshots)
}

impl Entry {
    pub(super) fn term_line(&self) -> String {
        let end = self.log_position.map_or_else(|| "now".to_owned(), text::grouped);
        format!(
            "term {}: from {} to {end}, recording {}, time {}{}",
            self.leadership_term_id,
            text::grouped(self.term_base_log_position),
            self.recording_id,
            self.timestamp,
            self.validity()
        )
    }

    pub(super) fn snapshot_line(&self) -> String {
        let owner = match self.service_id {
            Some(id) => format!("service {id}"),
            None => "consensus module".to_owned(),
        };
        let position = self.log_position.map_or_else(|| "unknown".to_owned(), text::grouped);
        let archive = self.archive_endpoint.as_ref();
        let archive = archive.map(|endpoint| format!(", archive {}", text::printable(endpoint)));
        format!(
            "{owner}: at {position} in term {}, recording {}, time {}{}{}",
            self.leadership_term_id,
            self.recording_id,
            self.timestamp,
            archive.unwrap_or_default(),
            self.validity()
        )
    }

    fn validity(&self) -> &'static str {
        if self.is_valid { "" } else { ", not valid" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes an entry, whose type and endpoint may be wrong.
    fn entry(recording_id: i64, term: i64, position: i64, code: i32, service_id: i32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in [recording_id, term, 64, position, 99] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(service_id.to_le_bytes());
        bytes.extend(code.to_le_bytes());
        bytes.resize(ALIGNMENT, 0);
        bytes
    }

    fn standby(endpoint: &str, length: i32) -> Vec<u8> {
        let mut bytes = entry(1, 2, 128, 2, 0);
        bytes.truncate(FIELDS_LENGTH);
        bytes.extend(length.to_le_bytes());
        bytes.extend(endpoint.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes
    }

    #[test]
    fn terms_and_snapshots_are_sorted() {
        let endpoint = "localhost:8010-and-more";
        let log = [
            entry(5, 1, -1, 0, -1),
            entry(7, 0, 640, 1 | INVALID_FLAG, 0),
            entry(5, 0, 640, 0, -1),
            entry(9, 0, 0, REMOVED, 0),
            standby(endpoint, endpoint.len() as i32),
            entry(6, 0, 320, 1, -1),
        ];
        let (terms, snapshots) = sort(parse(&log.concat()).expect("entries"));
        let ids = |entries: &[Entry]| {
            entries.iter().map(|entry| (entry.recording_id, entry.log_position)).collect::<Vec<_>>()
        };
        assert_eq!(ids(&terms), [(5, Some(640)), (5, None)]);
        assert_eq!(ids(&snapshots), [(6, Some(320)), (7, Some(640)), (1, Some(128))]);
        assert_eq!(snapshots[2].archive_endpoint.as_deref(), Some(endpoint));
        let validity: Vec<_> = snapshots.iter().map(|entry| entry.is_valid).collect();
        assert_eq!(validity, [true, false, true]);
        let services: Vec<_> = snapshots.iter().map(|entry| entry.service_id).collect();
        assert_eq!(services, [None, Some(0), Some(0)]);
        assert_eq!(terms[1].term_line(), "term 1: from 64 to now, recording 5, time 99");
    }

    #[test]
    fn hostile_log_is_refused() {
        let log = [entry(5, 0, 640, 0, -1), standby("a:1", 3)].concat();
        assert_eq!(parse(&log).map(|entries| entries.len()), Ok(2));
        for length in 1..log.len() {
            let offset = length / ALIGNMENT * ALIGNMENT;
            let expected = match length % ALIGNMENT {
                0 => Ok(1),
                _ => Err(RecordingLogError::Truncated { offset }),
            };
            assert_eq!(parse(&log[..length]).map(|entries| entries.len()), expected, "{length}");
        }
        for code in [3, 1000, i32::MAX, INVALID_FLAG | 3] {
            let error = RecordingLogError::EntryType { offset: 0, code };
            assert_eq!(parse(&entry(1, 1, 1, code, 0)), Err(error));
        }
        for length in [0, -1, i32::MIN, i32::MAX, 4096 - 51] {
            let error = RecordingLogError::EndpointLength { offset: 0, length };
            assert_eq!(parse(&standby("a:1", length)), Err(error));
        }
        assert_eq!(parse(&standby("a:1", 1000)), Err(RecordingLogError::Truncated { offset: 0 }));
    }
}
