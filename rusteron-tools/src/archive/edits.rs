//! `rusteron archive mark-valid`, `mark-invalid`, `compact` and `delete-orphaned-segments`.

use rusteron_archive_server::offline::{ArchiveEditor, ArchiveFiles, Compaction};
use rusteron_core::program::Failure;
use serde::Serialize;

use crate::options::{CompactOptions, MarkOptions, OrphansOptions};
use crate::report::{self, Report};

#[derive(Serialize)]
struct Mark {
    recording_id: i64,
    state: &'static str,
    /// The state was another one before.
    is_changed: bool,
}

#[derive(Serialize)]
struct CompactionReport {
    recordings: Vec<i64>,
    segments: Vec<String>,
    catalog_bytes: u64,
    is_dry_run: bool,
}

#[derive(Serialize)]
struct Orphans {
    segments: Vec<String>,
    /// Of recordings that the catalog does not have. They stay.
    unknown_segments: Vec<String>,
    is_dry_run: bool,
}

pub(super) fn mark_valid(options: &MarkOptions) -> Result<(), Failure> {
    let is_changed =
        ArchiveEditor::open(&options.edit.archive_dir)?.mark_valid(options.recording_id)?;
    let mark = Mark { recording_id: options.recording_id.get(), state: "valid", is_changed };
    report::print(&mark, options.edit.format.json)
}

pub(super) fn mark_invalid(options: &MarkOptions) -> Result<(), Failure> {
    let is_changed =
        ArchiveEditor::open(&options.edit.archive_dir)?.mark_invalid(options.recording_id)?;
    let mark = Mark { recording_id: options.recording_id.get(), state: "invalid", is_changed };
    report::print(&mark, options.edit.format.json)
}

pub(super) fn compact(options: &CompactOptions) -> Result<(), Failure> {
    let (dir, is_dry_run) = (&options.edit.archive_dir, options.dry_run);
    let Compaction { recordings, segments, catalog_bytes, .. } = if is_dry_run {
        ArchiveFiles::open(dir)?.compaction()
    } else {
        ArchiveEditor::open(dir)?.compact()?
    };
    let recordings = recordings.into_iter().map(i64::from).collect();
    let report = CompactionReport { recordings, segments, catalog_bytes, is_dry_run };
    report::print(&report, options.edit.format.json)
}

pub(super) fn delete_orphaned_segments(options: &OrphansOptions) -> Result<(), Failure> {
    let (dir, id, is_dry_run) = (&options.edit.archive_dir, options.recording_id, options.dry_run);
    let (segments, unknown_segments) = if is_dry_run {
        let files = ArchiveFiles::open(dir)?;
        (files.orphaned_segments(id)?, files.unknown_segments())
    } else {
        let mut editor = ArchiveEditor::open(dir)?;
        (editor.delete_orphaned_segments(id)?, editor.files().unknown_segments())
    };
    let report = Orphans { segments, unknown_segments, is_dry_run };
    report::print(&report, options.edit.format.json)
}

/// Returns the verb for what is done, or would be.
fn removes(is_dry_run: bool) -> &'static str {
    if is_dry_run { "would remove" } else { "removed" }
}

impl Report for Mark {
    fn header(&self) -> Vec<String> {
        let already = if self.is_changed { "" } else { " already" };
        vec![format!("recording {} is {}{already}", self.recording_id, self.state)]
    }
}

impl Report for CompactionReport {
    fn header(&self) -> Vec<String> {
        let (recordings, segments) = (self.recordings.len(), self.segments.len());
        let (verb, bytes) = (removes(self.is_dry_run), self.catalog_bytes);
        vec![format!(
            "{verb} recordings: {recordings}, segments: {segments}, bytes of the catalog: {bytes}"
        )]
    }

    fn body(&self) -> Vec<String> {
        let recordings = self.recordings.iter().map(|id| format!("recording {id}"));
        recordings.chain(self.segments.iter().cloned()).collect()
    }
}

impl Report for Orphans {
    fn header(&self) -> Vec<String> {
        vec![format!("{} segments: {}", removes(self.is_dry_run), self.segments.len())]
    }

    fn body(&self) -> Vec<String> {
        let unknown = self.unknown_segments.iter();
        let unknown =
            unknown.map(|name| format!("{name}: stays, the catalog has no such recording"));
        self.segments.iter().cloned().chain(unknown).collect()
    }
}
