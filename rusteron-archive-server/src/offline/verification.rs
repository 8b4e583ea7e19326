//! The verification of a recording.

use std::fmt;

use crate::catalog::{EntryOffset, RecordingEntry, RecordingState, recovery};
use crate::ids::RecordingId;
use crate::offline::ArchiveFiles;
use crate::segment::Geometry;
use crate::segment::checksum::Checksum;
use crate::segment::scan::{self, Evidence, Found, ScanError, Tail};

/// How a recording is verified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// Reads all segments instead of the last one.
    pub all_segments: bool,
    /// The checksum that entries and data frames have.
    pub checksum: Option<Checksum>,
    /// The decision about a last fragment that may have been written in part.
    pub last_fragment: Option<LastFragment>,
}

/// A decision about a last fragment with a page of zeros, or about a damaged one at the end of a
/// recording without a stop position. If the machine failed, its last write may have been lost
/// there, or the publisher has sent zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastFragment {
    /// It was written in part or is damaged, so the recording ends before it.
    Truncate,
    /// It is whole, unless it is damaged.
    Keep,
}

/// Findings of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verification {
    /// The id of the recording.
    pub recording_id: RecordingId,
    /// The state in the catalog. A deleted recording is not verified.
    pub state: Option<RecordingState>,
    /// The position at which the recording begins.
    pub start_position: i64,
    /// The position at which the recording ends by the catalog, which has none if an archive was killed.
    pub stop_position: Option<i64>,
    /// The position at which the frames of the last segment end, unless the entry is wrong.
    pub end_position: Option<i64>,
    /// Whether the catalog or the mark file of this directory tells the end. If not, a copy may
    /// lack frames that were recorded after the last one.
    pub is_end_known: bool,
    /// All that is wrong. The recording is as it should be if this is empty.
    pub findings: Vec<Finding>,
    /// The end of the last segment.
    pub(super) found: Option<Found>,
    pub(super) entry: EntryOffset,
}

/// Something that is wrong with a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The segment's file, unless it is about the catalog's entry.
    pub file: Option<String>,
    /// The position of the frame, if it is about one.
    pub position: Option<i64>,
    /// A sentence.
    pub text: String,
    /// The recording cannot be replayed as a whole, and Java's `ArchiveTool verify` calls it invalid.
    pub invalidates: bool,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if let Some(position) = self.position {
            write!(f, "position {position}: ")?;
        }
        f.write_str(&self.text)
    }
}

impl Verification {
    pub(super) fn new(
        files: &ArchiveFiles,
        entry: &RecordingEntry,
        options: &VerifyOptions,
    ) -> Self {
        let mut verification = Self {
            recording_id: entry.recording_id,
            state: entry.state,
            start_position: entry.start_position,
            stop_position: entry.stop_position,
            end_position: None,
            is_end_known: true,
            findings: Vec::new(),
            found: None,
            entry: entry.offset,
        };
        if entry.state != Some(RecordingState::Deleted) {
            verification.entry(files, entry, options);
        }
        verification
    }

    fn entry(&mut self, files: &ArchiveFiles, entry: &RecordingEntry, options: &VerifyOptions) {
        if let Some(fault) = &entry.fault {
            return self.find(None, None, fault.clone(), true);
        }
        if let Some(checksum) = options.checksum {
            let (stored, computed) = files.entries.checksums(entry, checksum);
            if stored != computed {
                let text = format!("catalog checksum={stored}, computed checksum={computed}");
                self.find(None, None, text, true);
            }
        }
        let geometry = entry.descriptor.geometry();
        let bases = files.bases(entry.descriptor.recording_id);
        // A truncation at the end of a segment leaves no file behind it, and an empty recording
        // needs none.
        let believed = believed_stop(files, entry, options.checksum);
        let needed = believed.filter(|&stop| stop > entry.start_position);
        if let (Some(stop), Some(&last)) = (needed, bases.last()) {
            let end = last.saturating_add(i64::from(geometry.segment_length) - 1);
            if stop - 1 > end {
                let text =
                    format!("start or stop position is behind the last segment's end, {end}");
                return self.find(Some(geometry.name(last)), None, text, true);
            }
        }
        self.segment_names(&geometry, bases);
        self.segments(files, entry, &geometry, believed, options);
        let wrong_checksum = files.entries.check_checksum(entry).err();
        if let Some(wrong) = wrong_checksum.filter(|_| self.findings.is_empty()) {
            self.find(None, None, format!("not the entry of its checksum: {wrong}"), false);
        }
    }

    /// Finds segments that are missing or have a wrong name.
    fn segment_names(&mut self, geometry: &Geometry, bases: &[i64]) {
        let length = i64::from(geometry.segment_length);
        let mut next = geometry.first_base();
        let (first, mut is_behind_gap) = (next, false);
        for &base in bases.iter().filter(|&&base| base >= first) {
            if geometry.base(base) != base {
                let text = "no segment of this recording begins at this position".to_owned();
                self.find(Some(geometry.name(base)), None, text, false);
                continue;
            }
            if base != next {
                let text = format!("is missing, as are all segments up to position {base}");
                self.find(Some(geometry.name(next)), None, text, false);
                is_behind_gap = true;
            }
            next = base.saturating_add(length);
        }
        let has_data = self.stop_position.is_some_and(|stop| stop > self.start_position);
        if next == first && has_data && !is_behind_gap {
            self.find(Some(geometry.name(first)), None, "is missing".to_owned(), false);
        }
    }

    fn segments(
        &mut self,
        files: &ArchiveFiles,
        entry: &RecordingEntry,
        geometry: &Geometry,
        believed_stop: Option<i64>,
        options: &VerifyOptions,
    ) {
        let (storage, bases) = (&*files.storage, files.bases(entry.descriptor.recording_id));
        let highest = bases.last().copied();
        let killed = files.killed_positions.get(&entry.descriptor.recording_id).copied();
        let evidence = Evidence {
            checksum: options.checksum,
            // An archive that stops a recording in order writes its end into the catalog.
            position: believed_stop.or(killed),
            is_original: files.is_original,
        };
        let found = match scan::find_end(storage, geometry, highest, evidence) {
            Ok(found) => found,
            Err(error) => return self.find_error(geometry, highest, &error),
        };
        // Frames behind a stop position may be of an extension that an older catalog does not know.
        let is_original = evidence.is_original && self.stop_position.is_none();
        let found = recovery::decide(found, Evidence { is_original, ..evidence });
        let found = match (found.tail, options.last_fragment) {
            (Tail::Doubtful { .. }, Some(LastFragment::Truncate)) => {
                Found { tail: Tail::Torn, ..found }
            }
            (Tail::Damaged(_), Some(LastFragment::Truncate)) if self.stop_position.is_none() => {
                Found { tail: Tail::Torn, ..found }
            }
            (Tail::Lost(_) | Tail::Cut, Some(LastFragment::Truncate)) => {
                Found { tail: Tail::Torn, ..found }
            }
            (Tail::Doubtful { end }, Some(LastFragment::Keep)) => {
                Found { end, tail: Tail::Clean, ..found }
            }
            _ => found,
        };
        self.end_position = Some(found.end);
        self.found = Some(found);
        let (last, first) = (found.segment, geometry.first_base());
        let is_segment = |base: &i64| *base >= first && geometry.base(*base) == *base;
        for &base in bases.iter().filter(|base| is_segment(base)) {
            if options.all_segments || Some(base) == last {
                self.segment(files, geometry, base, &found, options.checksum);
            }
        }
        let last_name = last.map(|base| geometry.name(base));
        match found.tail {
            Tail::Clean | Tail::Torn => {}
            tail @ (Tail::Doubtful { .. } | Tail::Lost(_) | Tail::Cut) => {
                self.find(last_name, Some(found.end), tail.to_string(), false);
            }
            Tail::Damaged(fault) => {
                self.find(last_name, Some(found.end), fault.to_string(), true);
            }
        }
        let end = found.end;
        let is_other_end = |stop: &i64| *stop != end && self.findings.is_empty();
        if let Some(stop) = self.stop_position.filter(is_other_end) {
            let text = format!("stop position {stop}, but frames end at {end}");
            self.find(None, None, text, false);
        }
        self.is_end_known = self.stop_position.or(killed).is_some() || files.is_original;
    }

    fn segment(
        &mut self,
        files: &ArchiveFiles,
        geometry: &Geometry,
        base: i64,
        found: &Found,
        checksum: Option<Checksum>,
    ) {
        let segment_end = base.saturating_add(geometry.segment_length.into());
        let is_last = found.segment == Some(base);
        let limit = if is_last { found.end } else { segment_end };
        match scan::check_segment(&*files.storage, geometry, base, limit, checksum) {
            Ok(Found { tail: Tail::Damaged(fault), end, .. }) => {
                self.find(Some(geometry.name(base)), Some(end), fault.to_string(), true);
            }
            Ok(Found { end, .. }) if !is_last && end != segment_end => {
                let text = "frames end here, before the segment does".to_owned();
                self.find(Some(geometry.name(base)), Some(end), text, false);
            }
            Ok(_) => {}
            Err(error) => self.find_error(geometry, Some(base), &error),
        }
    }

    fn find_error(&mut self, geometry: &Geometry, base: Option<i64>, error: &ScanError) {
        let name = base.map(|base| geometry.name(base));
        match error {
            // Usually found by its name already.
            ScanError::Misplaced { .. } if !self.findings.is_empty() => {}
            ScanError::Misplaced { .. } => self.find(None, None, error.to_string(), false),
            ScanError::Geometry(text) => self.find(None, None, text.clone(), true),
            ScanError::Io { error, .. } => self.find(name, None, error.to_string(), true),
        }
    }

    /// Returns whether Java's tool would call the recording valid.
    pub(super) fn is_valid(&self) -> bool {
        self.findings.iter().all(|finding| !finding.invalidates)
    }

    fn find(
        &mut self,
        file: Option<String>,
        position: Option<i64>,
        text: String,
        invalidates: bool,
    ) {
        self.findings.push(Finding { file, position, text, invalidates });
    }
}

/// Returns the stop position of the catalog, unless the entry's checksum says that the recording
/// ends where its frames do.
fn believed_stop(
    files: &ArchiveFiles,
    entry: &RecordingEntry,
    checksum: Option<Checksum>,
) -> Option<i64> {
    if files.entries.check_checksum(entry).is_ok() {
        return entry.stop_position;
    }
    let evidence = Evidence { checksum, position: None, is_original: false };
    let highest = files.bases(entry.descriptor.recording_id).last().copied();
    let geometry = entry.descriptor.geometry();
    let found = scan::find_end(&*files.storage, &geometry, highest, evidence);
    let is_end = |found: &Found| files.entries.checksum_of_end(entry, found.end).is_some();
    if found.as_ref().is_ok_and(is_end) { None } else { entry.stop_position }
}
