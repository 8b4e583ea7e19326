//! The recording log of a consensus module: which recordings hold the log and the snapshots.

/// The file in the cluster directory.
pub(super) const NAME: &str = "recording.log";

/// Length of an entry in bytes, without the endpoint of an archive.
const FIELDS_LENGTH: usize = 48;
/// Entries begin at multiples of this number of bytes.
const ALIGNMENT: usize = 64;

const TERM: i32 = 0;
const SNAPSHOT: i32 = 1;
const STANDBY_SNAPSHOT: i32 = 2;
/// The type of a removed entry.
const REMOVED: i32 = -1;

/// A snapshot of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SnapshotEntry {
    pub(super) recording_id: i64,
    pub(super) leadership_term_id: i64,
    pub(super) log_position: i64,
    pub(super) timestamp: i64,
    pub(super) service_id: i32,
}

/// The valid entries of a recording log.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RecordingLog {
    /// The recording of the last term, which holds all terms of the member.
    pub(super) log_recording_id: Option<i64>,
    /// In the order of the file.
    pub(super) snapshots: Vec<SnapshotEntry>,
}

impl RecordingLog {
    /// The text of an error says why the bytes are not a recording log.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut log = Self::default();
        let mut last_term = i64::MIN;
        let mut offset = 0;
        while offset < bytes.len() {
            let entry = &bytes[offset..];
            let truncated = || format!("the file ends within the entry at byte {offset}");
            let i32_at = |at: usize| {
                let field = entry.get(at..).and_then(|field| field.first_chunk());
                field.copied().map(i32::from_le_bytes).ok_or_else(truncated)
            };
            let i64_at = |at: usize| {
                let field = entry.get(at..).and_then(|field| field.first_chunk());
                field.copied().map(i64::from_le_bytes).ok_or_else(truncated)
            };
            let (recording_id, leadership_term_id) = (i64_at(0)?, i64_at(8)?);
            let mut length = FIELDS_LENGTH;
            // Entries that are not valid have the sign bit set.
            match i32_at(44)? {
                TERM if leadership_term_id > last_term => {
                    last_term = leadership_term_id;
                    log.log_recording_id = Some(recording_id);
                }
                SNAPSHOT => log.snapshots.push(SnapshotEntry {
                    recording_id,
                    leadership_term_id,
                    log_position: i64_at(24)?,
                    timestamp: i64_at(32)?,
                    service_id: i32_at(40)?,
                }),
                code if code != REMOVED && code & i32::MAX == STANDBY_SNAPSHOT => {
                    let endpoint = i32_at(FIELDS_LENGTH)?;
                    length += 4 + usize::try_from(endpoint).map_err(|_| {
                        format!("the entry at byte {offset} has an endpoint of {endpoint} bytes")
                    })?;
                }
                _ => {}
            }
            offset += length.next_multiple_of(ALIGNMENT);
        }
        Ok(log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: i32, recording_id: i64, term: i64, position: i64, service_id: i32) -> Vec<u8> {
        let mut entry: Vec<u8> =
            [recording_id, term, 0, position, 77].iter().flat_map(|x| x.to_le_bytes()).collect();
        entry.extend([service_id, kind].iter().flat_map(|x| x.to_le_bytes()));
        if kind & i32::MAX == STANDBY_SNAPSHOT {
            entry.extend(20_i32.to_le_bytes());
            entry.extend([b'x'; 20]);
        }
        entry.resize(entry.len().next_multiple_of(ALIGNMENT), 0);
        entry
    }

    #[test]
    fn last_term_and_valid_snapshots() {
        let invalid = SNAPSHOT | i32::MIN;
        let bytes = [
            entry(TERM, 4, 0, 640, -1),
            entry(SNAPSHOT, 8, 0, 320, 0),
            entry(invalid, 9, 0, 640, 0),
            entry(REMOVED, 9, 0, 640, 0),
            entry(STANDBY_SNAPSHOT, 9, 0, 640, 0),
            entry(STANDBY_SNAPSHOT | i32::MIN, 9, 0, 640, 0),
            entry(TERM, 5, 1, -1, -1),
            entry(SNAPSHOT, 10, 1, 960, 1),
        ]
        .concat();
        let log = RecordingLog::parse(&bytes).expect("a recording log");
        assert_eq!(log.log_recording_id, Some(5));
        let snapshots: Vec<_> =
            log.snapshots.iter().map(|x| (x.recording_id, x.log_position, x.service_id)).collect();
        assert_eq!(snapshots, [(8, 320, 0), (10, 960, 1)]);
        let error = RecordingLog::parse(&bytes[..100]).expect_err("it is truncated");
        assert_eq!(error, "the file ends within the entry at byte 64");
        assert_eq!(RecordingLog::parse(&[]), Ok(RecordingLog::default()));
    }
}
