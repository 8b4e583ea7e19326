//! The files of an archive, for reading.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::catalog::{CATALOG_NAME, Entries, RecordingEntry};
use crate::error::{Result, ServerError, ServerErrorKind};
use crate::ids::RecordingId;
use crate::mark_file::Guard;
use crate::offline::{Compaction, Verification, VerifyOptions};
use crate::segment::geometry::{parse_name, segment_name};
use crate::storage::{Directory, Storage};

/// The files of an archive. Nothing here changes them.
///
/// Recordings and segments are those of the time of opening. Methods block for the time that reading takes.
#[doc(alias = "ArchiveTool")]
#[derive(Debug)]
pub struct ArchiveFiles {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) entries: Entries,
    /// The bases of the recordings' segments, ascending, by recording id.
    pub(super) segments: BTreeMap<RecordingId, Vec<i64>>,
    /// The positions that recordings had when the last archive was killed.
    pub(super) killed_positions: HashMap<RecordingId, i64>,
    /// The directory is the one that the archive wrote to, and no copy.
    pub(super) is_original: bool,
}

impl ArchiveFiles {
    /// Opens the directory of an archive, which may be running.
    ///
    /// # Errors
    /// - [`InvalidCatalog`](ServerErrorKind::InvalidCatalog): the catalog is of another version, or an entry's length is wrong.
    /// - [`Io`](ServerErrorKind::Io): there is no catalog, or a file cannot be read.
    pub fn open(archive_dir: impl AsRef<Path>) -> Result<Self> {
        Self::new(archive_dir.as_ref(), true, HashMap::new(), false)
    }

    /// As [`open`](Self::open), for a verification: looks for an archive first.
    ///
    /// # Errors
    /// Also [`ActiveArchive`](ServerErrorKind::ActiveArchive): an archive is alive, or may be. The text names its process.
    pub fn open_stopped(archive_dir: impl AsRef<Path>) -> Result<Self> {
        let guard = Guard::of_reader(archive_dir.as_ref())?;
        let positions = guard.killed_positions().clone();
        Self::new(archive_dir.as_ref(), true, positions, guard.is_original())
    }

    pub(super) fn new(
        archive_dir: &Path,
        is_read_only: bool,
        killed_positions: HashMap<RecordingId, i64>,
        is_original: bool,
    ) -> Result<Self> {
        let failed = |error: io::Error| ServerError::file(archive_dir, &error);
        let storage =
            Directory::open_of_archive(archive_dir, is_read_only, CATALOG_NAME).map_err(failed)?;
        if storage.length(CATALOG_NAME).map_err(failed)?.is_none() {
            let kind = ServerErrorKind::Io(io::ErrorKind::NotFound);
            let message =
                format!("{}: not an archive's: it has no {CATALOG_NAME}", archive_dir.display());
            return Err(ServerError::new(kind, message));
        }
        Self::from_storage(Arc::new(storage), killed_positions, is_original)
            .map_err(|error| error.in_dir(archive_dir))
    }

    /// The text of an error begins with the name of a file.
    pub(crate) fn from_storage(
        storage: Arc<dyn Storage>,
        killed_positions: HashMap<RecordingId, i64>,
        is_original: bool,
    ) -> Result<Self> {
        let failed = |error: io::Error| ServerError::io(".", &error);
        let mut segments = BTreeMap::<RecordingId, Vec<i64>>::new();
        let names = storage.names().map_err(failed)?;
        for (id, base) in names.iter().filter_map(|name| parse_name(name)) {
            segments.entry(id).or_default().push(base);
        }
        segments.values_mut().for_each(|bases| bases.sort_unstable());
        let entries = Entries::open(storage.clone())?;
        Ok(Self { storage, entries, segments, killed_positions, is_original })
    }

    /// Returns the recordings in the order of the catalog, also those that are not valid.
    pub fn recordings(&self) -> &[RecordingEntry] {
        self.entries.list()
    }

    /// Returns a recording, also one that is not valid.
    ///
    /// # Errors
    /// [`InvalidArgument`](ServerErrorKind::InvalidArgument): there is no recording of this id.
    pub fn recording(&self, recording_id: RecordingId) -> Result<&RecordingEntry> {
        let is_it = |entry: &&RecordingEntry| entry.recording_id == recording_id;
        self.recordings()
            .iter()
            .find(is_it)
            .ok_or_else(|| ServerError::invalid(format!("there is no recording {recording_id}")))
    }

    /// Verifies a recording: its entry, and its last segment or all.
    pub fn verify(&self, recording: &RecordingEntry, options: &VerifyOptions) -> Verification {
        Verification::new(self, recording, options)
    }

    /// Returns what [`ArchiveEditor::compact`](crate::offline::ArchiveEditor::compact) would remove.
    pub fn compaction(&self) -> Compaction {
        let entries = self.recordings();
        let is_kept = |id| {
            entries.iter().any(|entry| entry.is_valid() && entry.descriptor.recording_id == id)
        };
        let mut compaction = Compaction::default();
        for entry in entries.iter().filter(|entry| !entry.is_valid()) {
            let id = entry.descriptor.recording_id;
            compaction.recordings.push(id);
            compaction.catalog_bytes += self.entries.length(entry.offset);
            if !is_kept(id) {
                compaction
                    .segments
                    .extend(self.bases(id).iter().map(|&base| segment_name(id, base)));
            }
        }
        compaction.segments.dedup();
        compaction
    }

    /// Returns the segment files before the start and behind the end of their recordings: of all recordings, or of one.
    /// Detached segments are among them, and those that a crash has kept from being deleted.
    ///
    /// # Errors
    /// [`InvalidArgument`](ServerErrorKind::InvalidArgument): there is no recording of this id.
    pub fn orphaned_segments(&self, recording_id: Option<RecordingId>) -> Result<Vec<String>> {
        if let Some(id) = recording_id {
            self.recording(id)?;
        }
        let mut orphans = Vec::new();
        for (&id, bases) in &self.segments {
            let entries =
                || self.recordings().iter().filter(|entry| entry.descriptor.recording_id == id);
            if recording_id.is_some_and(|wanted| wanted != id) || entries().next().is_none() {
                continue;
            }
            let is_orphan = |base: &&i64| !entries().any(|entry| claims(entry, **base));
            orphans.extend(bases.iter().filter(is_orphan).map(|&base| segment_name(id, base)));
        }
        Ok(orphans)
    }

    /// Returns the segment files of recordings that the catalog does not have.
    pub fn unknown_segments(&self) -> Vec<String> {
        let is_unknown =
            |id| self.recordings().iter().all(|entry| entry.descriptor.recording_id != id);
        let unknown = self.segments.iter().filter(|&(&id, _)| is_unknown(id));
        unknown
            .flat_map(|(&id, bases)| bases.iter().map(move |&base| segment_name(id, base)))
            .collect()
    }

    pub(super) fn bases(&self, recording_id: RecordingId) -> &[i64] {
        self.segments.get(&recording_id).map_or(&[], Vec::as_slice)
    }
}

/// Tells whether a segment belongs to a recording. All do if the entry is wrong.
fn claims(entry: &RecordingEntry, base: i64) -> bool {
    let geometry = entry.descriptor.geometry();
    entry.fault.is_some()
        || base >= geometry.first_base()
            && entry.stop_position.is_none_or(|stop| base <= geometry.base(stop))
}
