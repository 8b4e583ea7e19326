//! The recording log: the terms and snapshots of a node.

use rusteron_cluster::codec::recording_log::{
    RecordingLogEntry, RecordingLogEntryKind, parse_recording_log,
};
use serde::Serialize;

use crate::text;

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

/// Reads all entries, in the order of the file.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Entry>, String> {
    let entries = parse_recording_log(bytes).map_err(|error| error.to_string())?;
    entries.into_iter().map(Entry::try_from).collect()
}

impl TryFrom<RecordingLogEntry> for Entry {
    type Error = String;

    fn try_from(entry: RecordingLogEntry) -> Result<Self, String> {
        let kind = match entry.kind {
            RecordingLogEntryKind::Term => EntryKind::Term,
            RecordingLogEntryKind::Snapshot => EntryKind::Snapshot,
            RecordingLogEntryKind::StandbySnapshot => EntryKind::StandbySnapshot,
            RecordingLogEntryKind::Unknown(code) => {
                let (recording, term) = (entry.recording_id, entry.leadership_term_id);
                return Err(format!(
                    "the entry of recording {recording} in term {term} is of an unknown type: {code}"
                ));
            }
        };
        let has_service = kind != EntryKind::Term && entry.service_id != CONSENSUS_MODULE;
        Ok(Self {
            kind,
            is_valid: entry.is_valid,
            recording_id: entry.recording_id,
            leadership_term_id: entry.leadership_term_id,
            term_base_log_position: entry.term_base_log_position,
            log_position: Some(entry.log_position).filter(|position| *position >= 0),
            timestamp: entry.timestamp,
            service_id: has_service.then_some(entry.service_id),
            archive_endpoint: entry.archive_endpoint,
        })
    }
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

    fn entry(
        kind: RecordingLogEntryKind,
        recording_id: i64,
        leadership_term_id: i64,
        log_position: i64,
        service_id: i32,
    ) -> Entry {
        Entry::try_from(RecordingLogEntry {
            kind,
            is_valid: true,
            recording_id,
            leadership_term_id,
            term_base_log_position: 64,
            log_position,
            timestamp: 99,
            service_id,
            archive_endpoint: None,
        })
        .expect("a known type")
    }

    #[test]
    fn terms_and_snapshots_are_sorted() {
        use RecordingLogEntryKind::{Snapshot, StandbySnapshot, Term};
        let log = vec![
            entry(Term, 5, 1, -1, -1),
            entry(Snapshot, 7, 0, 640, 0),
            entry(Term, 5, 0, 640, -1),
            entry(StandbySnapshot, 1, 2, 128, 0),
            entry(Snapshot, 6, 0, 320, -1),
        ];
        let (terms, snapshots) = sort(log);
        let ids = |entries: &[Entry]| {
            entries.iter().map(|entry| (entry.recording_id, entry.log_position)).collect::<Vec<_>>()
        };
        assert_eq!(ids(&terms), [(5, Some(640)), (5, None)]);
        assert_eq!(ids(&snapshots), [(6, Some(320)), (7, Some(640)), (1, Some(128))]);
        let services: Vec<_> = snapshots.iter().map(|entry| entry.service_id).collect();
        assert_eq!(services, [None, Some(0), Some(0)]);
        assert_eq!(terms[1].term_line(), "term 1: from 64 to now, recording 5, time 99");
    }
}
