//! The log of a member, in the files of its archive.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::service::regular_file;
use crate::service::replay::recording::{Recording, invalid, io_error};
use crate::service::replay::recording_log::{self, RecordingLog, SnapshotEntry};
use crate::service::replay::snapshot::Snapshot;

/// The log that a member has recorded, and the snapshots of its services.
///
/// Reads the files of the consensus module and of the archive alone: neither has to run. Stop the
/// node first, or copy the files of a stopped node. The log of a killed node can end with messages
/// that were never committed, which does no harm here.
#[derive(Debug)]
#[must_use]
pub struct RecordedLog {
    archive_dir: PathBuf,
    recording_log: RecordingLog,
    recording: Recording,
}

impl RecordedLog {
    /// Finds the log of a member. `cluster_dir` has the file `recording.log` of the consensus module,
    /// and `archive_dir` the recordings of the node's archive.
    ///
    /// # Errors
    /// - [`Io`](crate::ClusterErrorKind::Io): a file or directory cannot be read;
    /// - [`InvalidRecording`](crate::ClusterErrorKind::InvalidRecording): `recording.log` is
    ///   damaged or has no term, or the archive does not have the log.
    pub fn open(cluster_dir: impl AsRef<Path>, archive_dir: impl AsRef<Path>) -> Result<Self> {
        let path = cluster_dir.as_ref().join(recording_log::NAME);
        let bytes = regular_file::read(&path).map_err(|error| io_error(&path, &error))?;
        let recording_log = RecordingLog::parse(&bytes)
            .map_err(|error| invalid(format!("{}: {error}", path.display())))?;
        let Some(recording_id) = recording_log.log_recording_id else {
            return Err(invalid(format!("{}: no term of a leader", path.display())));
        };
        let archive_dir = archive_dir.as_ref().to_owned();
        let recording = Recording::open(&archive_dir, recording_id)?;
        Ok(Self { archive_dir, recording_log, recording })
    }

    /// Returns the snapshot from which a run begins. `None` for the beginning of the log.
    pub(super) fn beginning(
        &self,
        service_id: i32,
        is_last_snapshot_wanted: bool,
    ) -> Result<Option<SnapshotEntry>> {
        let first = self.recording.first_position();
        let is_usable =
            |entry: &&SnapshotEntry| entry.service_id == service_id && entry.log_position >= first;
        let snapshots = self.recording_log.snapshots.iter().filter(is_usable);
        if is_last_snapshot_wanted {
            let last = snapshots.max_by_key(|entry| entry.log_position);
            let text = || invalid(format!("no snapshot of service {service_id}"));
            return last.copied().map(Some).ok_or_else(text);
        }
        // The first file of a log that began at a snapshot is empty up to there.
        if first == 0 && self.recording.read(0, |_, _| Ok(false))? > 0 {
            return Ok(None);
        }
        let oldest = snapshots.min_by_key(|entry| entry.log_position).copied();
        oldest.map(Some).ok_or_else(|| {
            let text = format!(
                "the log begins at position {first}: no snapshot of service {service_id} is there"
            );
            invalid(text)
        })
    }

    /// Loads a snapshot.
    pub(super) fn load(&self, entry: &SnapshotEntry) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        let recording = Recording::open(&self.archive_dir, entry.recording_id)?;
        recording.read(recording.first_position(), |_, message| {
            snapshot.push(message);
            Ok(true)
        })?;
        Ok(snapshot)
    }

    /// Passes the messages from a position on to the handler, as [`Recording::read`].
    pub(super) fn read(
        &self,
        from: i64,
        handler: impl FnMut(i64, &[u8]) -> Result<bool>,
    ) -> Result<i64> {
        self.recording.read(from, handler)
    }
}
