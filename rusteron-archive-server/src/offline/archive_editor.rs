//! Changes of an archive's files.

use std::io;
use std::path::Path;

use rusteron_core::mark_file::now;

use crate::catalog::{INTENT_NAME, RecordingState};
use crate::error::{Result, ServerError, ServerErrorKind};
use crate::ids::RecordingId;
use crate::mark_file::Guard;
use crate::offline::{ArchiveFiles, Verification};
use crate::segment::scan::{self, Tail};
use crate::storage::SyncLevel;

/// The files of an archive that is not running, to be changed.
///
/// As long as this exists, no archive of rusteron starts on the directory. Java's takes no notice: keep it from starting.
/// A change is durable when its method returns. After an error, what was done before it stays, and calling the method
/// again continues.
#[derive(Debug)]
pub struct ArchiveEditor {
    files: ArchiveFiles,
    _guard: Guard,
}

/// Entries and files that a compaction removes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// The ids of recordings that are not valid.
    pub recordings: Vec<RecordingId>,
    /// Their segment files.
    pub segments: Vec<String>,
    /// The length of their entries in the catalog.
    pub catalog_bytes: u64,
}

/// Changes that a repair has made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// The new state.
    pub state: Option<RecordingState>,
    /// The new stop position.
    pub stop_position: Option<i64>,
    /// A fragment that was written in part has been cut off.
    pub is_truncated: bool,
}

impl ArchiveEditor {
    /// Opens the directory of an archive.
    ///
    /// # Errors
    /// - [`ActiveArchive`](ServerErrorKind::ActiveArchive): an archive is alive, or may be. The text names its process.
    /// - [`InvalidMarkFile`](ServerErrorKind::InvalidMarkFile): the mark file is damaged, or of another version.
    /// - [`InvalidRecording`](ServerErrorKind::InvalidRecording): a migration of segments was interrupted. The next start of
    ///   the archive finishes it.
    /// - As for [`ArchiveFiles::open`].
    pub fn open(archive_dir: impl AsRef<Path>) -> Result<Self> {
        let guard = Guard::new(archive_dir.as_ref())?;
        let positions = guard.killed_positions().clone();
        let files = ArchiveFiles::new(archive_dir.as_ref(), false, positions, guard.is_original())?;
        let failed = |error: io::Error| ServerError::file(archive_dir.as_ref(), &error);
        if files.storage.length(INTENT_NAME).map_err(failed)?.is_some() {
            // Segments may have another name than the catalog says.
            let text = format!(
                "{}: a migration of segments was interrupted: start the archive once, which finishes it",
                archive_dir.as_ref().join(INTENT_NAME).display()
            );
            return Err(ServerError::new(ServerErrorKind::InvalidRecording, text));
        }
        Ok(Self::with_guard(files, guard))
    }

    pub(super) fn with_guard(files: ArchiveFiles, guard: Guard) -> Self {
        Self { files, _guard: guard }
    }

    /// Returns the files.
    pub fn files(&self) -> &ArchiveFiles {
        &self.files
    }

    /// Changes a recording as a verification by this editor's files suggests, which is what Java's `ArchiveTool verify` does:
    ///
    /// - A finding that [invalidates](crate::offline::Finding::invalidates) makes the recording invalid.
    /// - Other findings in its segments leave it alone.
    /// - Otherwise, it becomes valid, and its stop position is where its frames end.
    ///
    /// # Errors
    /// Those of files.
    pub fn repair(&mut self, verification: &Verification) -> Result<Repair> {
        let Verification { entry, state, stop_position, found, findings, .. } = verification;
        let mut repair = Repair::default();
        if *state == Some(RecordingState::Deleted) {
            return Ok(repair);
        }
        if !verification.is_valid() {
            if *state != Some(RecordingState::Invalid) {
                repair.state = Some(RecordingState::Invalid);
                self.files.entries.set_state(*entry, RecordingState::Invalid)?;
            }
            return Ok(repair);
        }
        let Some(found) = found.filter(|_| findings.iter().all(|it| it.file.is_none())) else {
            return Ok(repair);
        };
        repair.is_truncated = found.tail == Tail::Torn;
        if repair.is_truncated || *stop_position != Some(found.end) {
            let geometry = self.files.recording(verification.recording_id)?.descriptor.geometry();
            scan::repair(&*self.files.storage, &geometry, &found, SyncLevel::Data).map_err(
                |error| ServerError::io(geometry.name(geometry.base(found.end)), &error),
            )?;
        }
        if *stop_position != Some(found.end) {
            repair.stop_position = Some(found.end);
            self.files.entries.set_end(*entry, found.end, now())?;
        }
        if *state != Some(RecordingState::Valid) && found.segment.is_some() {
            repair.state = Some(RecordingState::Valid);
            self.files.entries.set_state(*entry, RecordingState::Valid)?;
        }
        Ok(repair)
    }

    /// Makes an invalid recording valid, and believes its entry if the checksum contradicts that.
    /// Returns whether this has changed anything.
    ///
    /// # Errors
    /// - [`InvalidArgument`](ServerErrorKind::InvalidArgument): there is no recording of this id, or it has been deleted.
    /// - [`InvalidCatalog`](ServerErrorKind::InvalidCatalog): its entry is wrong.
    /// - Those of files.
    pub fn mark_valid(&mut self, recording_id: RecordingId) -> Result<bool> {
        let entry = self.files.recording(recording_id)?;
        if let Some(fault) = &entry.fault {
            let message = format!("recording {recording_id} stays invalid: {fault}");
            return Err(ServerError::new(ServerErrorKind::InvalidCatalog, message));
        }
        let (offset, checked) = (entry.offset, self.files.entries.check_checksum(entry));
        if checked.is_err() {
            self.files.entries.clear_checksum(offset)?;
        }
        Ok(self.mark(recording_id, RecordingState::Valid)? || checked.is_err())
    }

    /// Hides a recording from archive and clients, until it is valid again. Returns whether it was not hidden.
    ///
    /// # Errors
    /// - [`InvalidArgument`](ServerErrorKind::InvalidArgument): there is no recording of this id, or it has been deleted.
    /// - Those of files.
    pub fn mark_invalid(&mut self, recording_id: RecordingId) -> Result<bool> {
        self.mark(recording_id, RecordingState::Invalid)
    }

    fn mark(&mut self, recording_id: RecordingId, state: RecordingState) -> Result<bool> {
        let entry = self.files.recording(recording_id)?;
        if entry.state == Some(RecordingState::Deleted) {
            return Err(ServerError::invalid(format!("recording {recording_id} has been deleted")));
        }
        let is_change = entry.state != Some(state);
        if is_change {
            self.files.entries.set_state(entry.offset, state)?;
        }
        Ok(is_change)
    }

    /// Removes all recordings that are not valid from the catalog, and their segment files. They are lost.
    ///
    /// # Errors
    /// Those of files.
    pub fn compact(&mut self) -> Result<Compaction> {
        let compaction = self.files.compaction();
        // Before the entries, which are what names them.
        self.delete(&compaction.segments)?;
        self.files.entries.compact()?;
        Ok(compaction)
    }

    /// Deletes the [orphaned segments](ArchiveFiles::orphaned_segments) of all recordings, or of one, and returns their names.
    ///
    /// # Errors
    /// - [`InvalidArgument`](ServerErrorKind::InvalidArgument): there is no recording of this id.
    /// - Those of files.
    pub fn delete_orphaned_segments(
        &mut self,
        recording_id: Option<RecordingId>,
    ) -> Result<Vec<String>> {
        let orphans = self.files.orphaned_segments(recording_id)?;
        self.delete(&orphans)?;
        Ok(orphans)
    }

    fn delete(&mut self, names: &[String]) -> Result<()> {
        let storage = &*self.files.storage;
        for name in names {
            match storage.remove(name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(ServerError::io(name, &error));
                }
                _ => {}
            }
        }
        storage.sync_dir().map_err(|error| ServerError::io("the archive's directory", &error))
    }
}
