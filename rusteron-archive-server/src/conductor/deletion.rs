//! Deletions of segment files: one file a turn, so that requests do not wait for them.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::RangeBounds;

use crate::catalog::{Descriptor, NULL_POSITION};
use crate::conductor::Conductor;
use crate::conductor::effect::{Clock, Failure, Outside, RecordingId};
use crate::conductor::sessions::Requester;
use crate::control::responses::{Answer, SignalEvent};
use crate::ids::ReplayId;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::signal::Signal;
use crate::segment::Geometry;
use crate::segment::geometry::{DELETED_SUFFIX, parse_name};
use crate::storage::Storage;

/// A segment file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SegmentFile {
    pub(super) base: i64,
    pub(super) name: String,
}

/// Files of a recording that are being deleted. A recording has one deletion at a time, which outlives the session that
/// requested it.
#[derive(Debug)]
pub(crate) struct Deletion {
    requester: Requester,
    files: VecDeque<SegmentFile>,
    highest_base: i64,
    /// Replays that have to end first.
    replays: Vec<ReplayId>,
}

/// All deletions, by their recording.
pub(crate) type Deletions = BTreeMap<RecordingId, Deletion>;

impl Conductor {
    /// Returns the segment files of a recording with bases in a range, in ascending order.
    pub(super) fn segment_files(
        &self,
        recording: RecordingId,
        bases: impl RangeBounds<i64>,
    ) -> Result<Vec<SegmentFile>, Failure> {
        let names = self.storage.names().map_err(|error| {
            Failure::generic(format!("cannot list the segments of recording {recording}: {error}"))
        })?;
        let segment = |name: String| {
            let (id, base) = parse_name(name.strip_suffix(DELETED_SUFFIX).unwrap_or(&name))?;
            (id == recording && bases.contains(&base)).then_some(SegmentFile { base, name })
        };
        let mut files: Vec<_> = names.into_iter().filter_map(segment).collect();
        files.sort();
        Ok(files)
    }

    /// Returns those that begin where segments of the recording can.
    pub(super) fn segments_of(
        &self,
        geometry: &Geometry,
        bases: impl RangeBounds<i64>,
    ) -> Result<Vec<SegmentFile>, Failure> {
        let mut files = self.segment_files(geometry.recording_id, bases)?;
        files.retain(|file| geometry.base(file.base) == file.base);
        Ok(files)
    }

    pub(super) fn check_deletion(&self, recording: RecordingId) -> Result<(), Failure> {
        if self.deletions.contains_key(&recording) {
            return Err(Failure::generic(format!(
                "another delete operation in progress for recording id: {recording}"
            )));
        }
        Ok(())
    }

    /// Refuses to extend a recording where files are about to be deleted.
    pub(super) fn check_extension(
        &self,
        descriptor: &Descriptor,
        source: &str,
    ) -> Result<(), Failure> {
        let recording = descriptor.recording_id;
        check_order(descriptor)?;
        let end = descriptor.geometry().base(descriptor.stop_position);
        match self.deletions.get(&recording) {
            Some(deletion) if deletion.highest_base >= end => Err(Failure::generic(format!(
                "cannot extend recording {recording} due to an outstanding delete operation{source}"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses a replay beyond the end of a recording where files are about to be deleted.
    pub(super) fn check_replay(&self, descriptor: &Descriptor) -> Result<(), Failure> {
        let recording = descriptor.recording_id;
        match self.deletions.get(&recording) {
            Some(deletion) if deletion.highest_base > descriptor.stop_position => {
                Err(Failure::generic(format!(
                    "cannot start replay of recording {recording} due to an outstanding delete operation"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Answers with `count`, the number of segments that end, then deletes their files in this order. Like Java, the number
    /// includes files that are missing already.
    pub(super) fn begin_deletion(
        &mut self,
        requester: Requester,
        recording: RecordingId,
        count: i64,
        deletion: (Vec<SegmentFile>, Vec<ReplayId>),
        now: Clock,
        out: &mut dyn Outside,
    ) {
        self.sessions.respond(requester, &Answer::Ok(count), now, out);
        let (files, replays) = deletion;
        let Some(highest_base) = files.iter().map(|file| file.base).max() else {
            return self.signal_deletion(requester, recording, now, out);
        };
        let deletion = Deletion { requester, files: files.into(), highest_base, replays };
        self.deletions.insert(recording, deletion);
    }

    pub(super) fn signal_deletion(
        &mut self,
        requester: Requester,
        recording: RecordingId,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        let event = SignalEvent {
            recording: Some(recording),
            subscription: None,
            position: NULL_POSITION,
            signal: Signal::Delete,
        };
        self.sessions.signal(requester, &event, now, out);
    }

    /// Deletes a file of each recording.
    pub(super) fn on_deletions_turn(&mut self, now: Clock, out: &mut dyn Outside) -> usize {
        let mut work = 0;
        let recordings: Vec<_> = self.deletions.keys().copied().collect();
        for recording in recordings {
            let Some(deletion) = self.deletions.get_mut(&recording) else { continue };
            deletion.replays.retain(|&replay| self.replays.contains(replay));
            if deletion.replays.is_empty() {
                self.delete_next(recording, now, out);
                work += 1;
            }
        }
        work
    }

    /// Deletes all that is left, because the server ends. Replays have ended.
    pub(crate) fn finish_deletions(&mut self, now: Clock, out: &mut dyn Outside) {
        while let Some(&recording) = self.deletions.keys().next() {
            self.delete_next(recording, now, out);
        }
    }

    /// Deletes the next file of a recording. Behind the last one, the client is told.
    fn delete_next(&mut self, recording: RecordingId, now: Clock, out: &mut dyn Outside) {
        let Some(deletion) = self.deletions.get_mut(&recording) else { return };
        let requester = deletion.requester;
        if let Some(SegmentFile { name, .. }) = deletion.files.pop_front() {
            if let Err(error) = remove(&*self.storage, &name) {
                // The others can be deleted all the same.
                let path = self.storage.path(&name);
                let text = format!("unable to delete segment file: {path}: {error}");
                out.report(&text);
                self.sessions.respond(requester, &Answer::Error(Failure::generic(text)), now, out);
            }
        }
        if self.deletions.get(&recording).is_some_and(|deletion| deletion.files.is_empty()) {
            self.deletions.remove(&recording);
            if let Err(error) = self.catalog.sync_names(&*self.storage) {
                out.report(&format!("deleted segments of recording {recording}: {error}"));
            }
            self.signal_deletion(requester, recording, now, out);
        }
    }
}

/// Refuses to add to a recording that ends before it starts: a damaged catalog says so. The files
/// from its start on would be taken for what is behind its end.
pub(super) fn check_order(descriptor: &Descriptor) -> Result<(), Failure> {
    let Descriptor { recording_id, start_position, stop_position, .. } = *descriptor;
    if descriptor.is_active() || stop_position >= start_position {
        return Ok(());
    }
    Err(Failure::new(
        ErrorCode::InvalidExtension,
        format!(
            "recording {recording_id} ends at {stop_position}, before its start at {start_position}: \
             `rusteron archive mark-invalid` excludes it"
        ),
    ))
}

/// Removes a file, unless an operator has.
fn remove(storage: &dyn Storage, name: &str) -> io::Result<()> {
    match storage.remove(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
