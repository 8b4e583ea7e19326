//! The recording log of a consensus module: which recordings hold the log and the snapshots.
//!
//! Corresponds to `io.aeron.cluster.RecordingLog`.

use std::fmt;

use rusteron_core::{RecordingId, cnc};

use crate::ids::{LeadershipTermId, ServiceId};

/// The file in the cluster directory.
pub const RECORDING_LOG: &str = "recording.log";

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

/// An entry of the recording log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingLogEntry {
    /// The kind of the entry.
    pub kind: RecordingLogEntryKind,
    /// False once the entry was invalidated.
    pub is_valid: bool,
    /// The recording of the log, or of the snapshot.
    pub recording_id: RecordingId,
    /// The term, or the term of the snapshot.
    pub leadership_term_id: LeadershipTermId,
    /// The position at which the term begins.
    pub term_base_log_position: i64,
    /// The end of the term, -1 while it goes on; or the position of the snapshot.
    pub log_position: i64,
    /// Time of the cluster, in its unit.
    pub timestamp: i64,
    /// The service of a snapshot. `None` for the consensus module, and in terms.
    pub service_id: Option<ServiceId>,
    /// The archive of a standby's snapshot.
    pub archive_endpoint: Option<String>,
}

/// The kind of an entry of the recording log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingLogEntryKind {
    /// A leader's term.
    Term,
    /// A snapshot of a service or of the consensus module.
    Snapshot,
    /// A snapshot in the archive of a standby node.
    StandbySnapshot,
    /// An entry of a type that is not known here, such as one of a later release.
    Unknown(i32),
}

/// The reason why bytes are not a recording log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RecordingLogError {
    /// The file ends within an entry.
    Truncated {
        /// The offset of the entry in bytes.
        offset: usize,
    },
    /// The endpoint of an archive is longer than an entry, or empty.
    EndpointLength {
        /// The offset of the entry in bytes.
        offset: usize,
        /// Length of the endpoint in bytes.
        length: i32,
    },
}

impl fmt::Display for RecordingLogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { offset } => {
                write!(f, "the file ends within the entry at byte {offset}")
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

rusteron_core::debug_as_display!(RecordingLogError);

impl std::error::Error for RecordingLogError {}

/// Reads all entries, in the order of the file.
pub fn parse_recording_log(bytes: &[u8]) -> Result<Vec<RecordingLogEntry>, RecordingLogError> {
    let mut entries = Vec::new();
    let mut offset = 0;
    while offset < bytes.len() {
        let truncated = RecordingLogError::Truncated { offset };
        let entry = &bytes[offset..];
        let i32_at = |at| cnc::i32_at(entry, at).ok_or(truncated);
        let i64_at = |at| cnc::i64_at(entry, at).ok_or(truncated);
        let code = i32_at(44)?;
        let kind = match code & !INVALID_FLAG {
            _ if code == REMOVED => None,
            0 => Some(RecordingLogEntryKind::Term),
            1 => Some(RecordingLogEntryKind::Snapshot),
            2 => Some(RecordingLogEntryKind::StandbySnapshot),
            unknown => Some(RecordingLogEntryKind::Unknown(unknown)),
        };
        let mut length = FIELDS_LENGTH;
        let mut archive_endpoint = None;
        if kind == Some(RecordingLogEntryKind::StandbySnapshot) {
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
            entries.push(RecordingLogEntry {
                kind,
                is_valid: code & INVALID_FLAG == 0,
                recording_id: i64_at(0)?.into(),
                leadership_term_id: i64_at(8)?.into(),
                term_base_log_position: i64_at(16)?,
                log_position: i64_at(24)?,
                timestamp: i64_at(32)?,
                service_id: Some(i32_at(40)?).filter(|id| *id >= 0).map(ServiceId::new),
                archive_endpoint,
            });
        }
        offset += length;
    }
    Ok(entries)
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
    fn entries_in_order_without_removed_ones() {
        let endpoint = "localhost:8010-and-more";
        let log = [
            entry(5, 1, -1, 0, -1),
            entry(7, 0, 640, 1 | INVALID_FLAG, 0),
            entry(9, 0, 0, REMOVED, 0),
            standby(endpoint, endpoint.len() as i32),
        ];
        let term = RecordingLogEntry {
            kind: RecordingLogEntryKind::Term,
            is_valid: true,
            recording_id: RecordingId::new(5),
            leadership_term_id: LeadershipTermId::new(1),
            term_base_log_position: 64,
            log_position: -1,
            timestamp: 99,
            service_id: None,
            archive_endpoint: None,
        };
        let snapshot = RecordingLogEntry {
            kind: RecordingLogEntryKind::Snapshot,
            is_valid: false,
            recording_id: RecordingId::new(7),
            leadership_term_id: LeadershipTermId::new(0),
            log_position: 640,
            service_id: Some(ServiceId::new(0)),
            ..term.clone()
        };
        let standby = RecordingLogEntry {
            kind: RecordingLogEntryKind::StandbySnapshot,
            is_valid: true,
            recording_id: RecordingId::new(1),
            leadership_term_id: LeadershipTermId::new(2),
            log_position: 128,
            archive_endpoint: Some(endpoint.to_owned()),
            ..snapshot.clone()
        };
        assert_eq!(parse_recording_log(&log.concat()), Ok(vec![term, snapshot, standby]));
    }

    #[test]
    fn unknown_types_are_entries() {
        for (code, kind, is_valid) in
            [(3, 3, true), (i32::MAX - 1, i32::MAX - 1, true), (INVALID_FLAG | 3, 3, false)]
        {
            let log = [entry(1, 1, 1, code, 0), entry(5, 0, 640, 0, -1)].concat();
            let entries = parse_recording_log(&log).expect("entries");
            let kinds: Vec<_> = entries.iter().map(|entry| (entry.kind, entry.is_valid)).collect();
            let term = (RecordingLogEntryKind::Term, true);
            assert_eq!(kinds, [(RecordingLogEntryKind::Unknown(kind), is_valid), term]);
        }
    }

    #[test]
    fn hostile_log_is_refused() {
        let log = [entry(5, 0, 640, 0, -1), standby("a:1", 3)].concat();
        assert_eq!(parse_recording_log(&log).map(|entries| entries.len()), Ok(2));
        for length in 1..log.len() {
            let offset = length / ALIGNMENT * ALIGNMENT;
            let expected = match length % ALIGNMENT {
                0 => Ok(1),
                _ => Err(RecordingLogError::Truncated { offset }),
            };
            assert_eq!(
                parse_recording_log(&log[..length]).map(|entries| entries.len()),
                expected,
                "{length}"
            );
        }
        for length in [0, -1, i32::MIN, i32::MAX, 4096 - 51] {
            let error = RecordingLogError::EndpointLength { offset: 0, length };
            assert_eq!(parse_recording_log(&standby("a:1", length)), Err(error));
        }
        assert_eq!(
            parse_recording_log(&standby("a:1", 1000)),
            Err(RecordingLogError::Truncated { offset: 0 })
        );
    }
}
