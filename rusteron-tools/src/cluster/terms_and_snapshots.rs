//! The recording log: the terms and snapshots of a node.

use rusteron_cluster::codec::recording_log::{
    RecordingLogEntry, RecordingLogEntryKind, parse_recording_log,
};
use rusteron_cluster::{LeadershipTermId, RecordingId, ServiceId};
use serde::{Serialize, Serializer};

use crate::text;

/// An entry of the recording log: a term, or a snapshot.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Entry(#[serde(with = "Fields")] RecordingLogEntry);

/// The JSON of an entry.
#[derive(Serialize)]
#[serde(remote = "RecordingLogEntry")]
struct Fields {
    #[serde(with = "Kind")]
    kind: RecordingLogEntryKind,
    is_valid: bool,
    #[serde(serialize_with = "number")]
    recording_id: RecordingId,
    #[serde(serialize_with = "number")]
    leadership_term_id: LeadershipTermId,
    term_base_log_position: i64,
    /// Null in a term that goes on.
    #[serde(serialize_with = "non_negative")]
    log_position: i64,
    timestamp: i64,
    /// Null for the consensus module, and in terms.
    #[serde(serialize_with = "optional_number")]
    service_id: Option<ServiceId>,
    archive_endpoint: Option<String>,
}

#[derive(Serialize)]
#[serde(remote = "RecordingLogEntryKind", rename_all = "kebab-case")]
enum Kind {
    Term,
    Snapshot,
    StandbySnapshot,
    Unknown(i32),
}

fn number<S: Serializer>(id: &(impl Into<i64> + Copy), to: S) -> Result<S::Ok, S::Error> {
    to.serialize_i64((*id).into())
}

fn optional_number<S: Serializer>(id: &Option<ServiceId>, to: S) -> Result<S::Ok, S::Error> {
    id.map(ServiceId::get).serialize(to)
}

fn non_negative<S: Serializer>(number: &i64, to: S) -> Result<S::Ok, S::Error> {
    Some(*number).filter(|number| *number >= 0).serialize(to)
}

/// Reads all entries, in the order of the file. Fails if an entry is of an unknown type.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Entry>, String> {
    let entries = parse_recording_log(bytes).map_err(|error| error.to_string())?;
    for entry in &entries {
        if let RecordingLogEntryKind::Unknown(code) = entry.kind {
            let (recording, term) = (entry.recording_id, entry.leadership_term_id);
            return Err(format!(
                "the entry of recording {recording} in term {term} is of an unknown type: {code}"
            ));
        }
    }
    Ok(entries.into_iter().map(Entry).collect())
}

/// Returns the terms and the snapshots, each from the oldest to the newest.
pub(super) fn sort(entries: Vec<Entry>) -> (Vec<Entry>, Vec<Entry>) {
    let is_term = |entry: &Entry| entry.0.kind == RecordingLogEntryKind::Term;
    let (mut terms, mut snapshots): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_term);
    terms.sort_by_key(|term| term.0.leadership_term_id);
    snapshots.sort_by_key(|snapshot| (snapshot.0.leadership_term_id, snapshot.0.log_position));
    (terms, snapshots)
}

impl Entry {
    pub(super) fn term_line(&self) -> String {
        let end = self.log_position().unwrap_or_else(|| "now".to_owned());
        format!(
            "term {}: from {} to {end}, recording {}, time {}{}",
            self.0.leadership_term_id,
            text::grouped(self.0.term_base_log_position),
            self.0.recording_id,
            self.0.timestamp,
            self.validity()
        )
    }

    pub(super) fn snapshot_line(&self) -> String {
        let owner = match self.0.service_id {
            Some(id) => format!("service {id}"),
            None => "consensus module".to_owned(),
        };
        let position = self.log_position().unwrap_or_else(|| "unknown".to_owned());
        let archive = self.0.archive_endpoint.as_ref();
        let archive = archive.map(|endpoint| format!(", archive {}", text::printable(endpoint)));
        format!(
            "{owner}: at {position} in term {}, recording {}, time {}{}{}",
            self.0.leadership_term_id,
            self.0.recording_id,
            self.0.timestamp,
            archive.unwrap_or_default(),
            self.validity()
        )
    }

    fn log_position(&self) -> Option<String> {
        Some(self.0.log_position).filter(|position| *position >= 0).map(text::grouped)
    }

    fn validity(&self) -> &'static str {
        if self.0.is_valid { "" } else { ", not valid" }
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
        Entry(RecordingLogEntry {
            kind,
            is_valid: true,
            recording_id: RecordingId::new(recording_id),
            leadership_term_id: LeadershipTermId::new(leadership_term_id),
            term_base_log_position: 64,
            log_position,
            timestamp: 99,
            service_id: (service_id >= 0).then_some(ServiceId::new(service_id)),
            archive_endpoint: None,
        })
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
            entries
                .iter()
                .map(|entry| (entry.0.recording_id.get(), entry.0.log_position))
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&terms), [(5, 640), (5, -1)]);
        assert_eq!(ids(&snapshots), [(6, 320), (7, 640), (1, 128)]);
        let services: Vec<_> = snapshots.iter().map(|entry| entry.0.service_id).collect();
        assert_eq!(services, [None, Some(0.into()), Some(0.into())]);
        assert_eq!(terms[1].term_line(), "term 1: from 64 to now, recording 5, time 99");
    }
}
