//! Requests that shorten a recording, or give it back what was detached.
//!
//! All look before they write. The catalog is edited before files are deleted, so that no edge of a recording is where there
//! is no file; a crash in between leaves files that belong to no recording.

use std::io;

use rusteron_core::log_buffer::FRAME_ALIGNMENT;

use crate::catalog::Descriptor;
use crate::conductor::Conductor;
use crate::conductor::effect::{Clock, Failure, Outside, RecordingId};
use crate::conductor::recordings::{catalog_failure, unknown_recording};
use crate::conductor::sessions::Requester;
use crate::control::responses::Answer;
use crate::protocol::error_code::ErrorCode;
use crate::segment::Geometry;
use crate::segment::cut::{cut, is_at_frame};
use crate::segment::frame::FrameFault;
use crate::segment::start::{StartFault, find_start};

impl Conductor {
    /// Returns a recording whose segments have its name: see [`Catalog::settle`](crate::catalog::Catalog::settle).
    pub(super) fn settled(&mut self, recording: RecordingId) -> Result<Descriptor, Failure> {
        self.catalog.settle(&*self.storage, recording).map_err(Failure::generic)?;
        self.catalog
            .get(recording)
            .copied()
            .ok_or_else(|| unknown_recording(&self.catalog, recording))
    }

    /// Ends a stopped recording at an earlier position. Its replays are stopped.
    pub(super) fn truncate_recording(
        &mut self,
        requester: Requester,
        recording: RecordingId,
        position: i64,
        now: Clock,
        out: &mut dyn Outside,
    ) -> Result<Option<Answer>, Failure> {
        let descriptor = self.settled(recording)?;
        check_truncation(&descriptor, position)?;
        self.check_deletion(recording)?;
        let geometry = descriptor.geometry();
        let Descriptor { start_position: start, stop_position: stop, .. } = descriptor;
        let base = geometry.base(position);
        let is_within_segment = position != start && position != base;
        if is_within_segment && position != stop {
            // Java ends the recording there before it finds out.
            check_frame(is_at_frame(&*self.storage, &geometry, position), &geometry, position)?;
        }
        let (first_deleted, mut files) = if position == start {
            (None, self.segment_files(recording, ..)?)
        } else {
            let length = i64::from(geometry.segment_length);
            let first = if is_within_segment { base.saturating_add(length) } else { base };
            (Some(first), self.segments_of(&geometry, first..=stop)?)
        };
        let count = match first_deleted {
            None => files.len() as i64,
            Some(first) => segments_between(&geometry, first, stop) + i64::from(first <= stop),
        };
        // A crash leaves those that follow the recording's end without a gap.
        files.reverse();

        self.catalog
            .set_stop_position(recording, position)
            .map_err(|error| catalog_failure(&error))?;
        let replays = self.replays.abort_all_of(recording, out);
        if is_within_segment && position != stop {
            let level = self.catalog.sync_level();
            cut(&*self.storage, &geometry, position, level).map_err(|error| {
                let name = geometry.name(base);
                Failure::generic(format!("{name} cannot be cut at position {position}: {error}"))
            })?;
        }
        self.begin_deletion(requester, recording, count, (files, replays), now, out);
        Ok(None)
    }

    /// Deletes a stopped recording that is not being replayed.
    pub(super) fn purge_recording(
        &mut self,
        requester: Requester,
        recording: RecordingId,
        now: Clock,
        out: &mut dyn Outside,
    ) -> Result<Option<Answer>, Failure> {
        let descriptor = self.settled(recording)?;
        let refused = |text: String| Err(Failure::new(ErrorCode::ActiveRecording, text));
        if self.replays.has_recording(recording) {
            return refused(format!("cannot purge recording with active replay {recording}"));
        }
        if descriptor.is_active() {
            return refused(format!("cannot purge active recording {recording}"));
        }
        self.check_deletion(recording)?;
        let files = self.segment_files(recording, ..)?;
        self.catalog.delete(recording).map_err(|error| catalog_failure(&error))?;
        let count = files.len() as i64;
        self.begin_deletion(requester, recording, count, (files, Vec::new()), now, out);
        Ok(None)
    }

    /// Moves the start of a recording to that of a later segment. The files before it stay.
    pub(super) fn detach_segments(
        &mut self,
        recording: RecordingId,
        start: i64,
    ) -> Result<Option<Answer>, Failure> {
        self.check_detach(recording, start)?;
        self.catalog
            .set_start_position(recording, start)
            .map_err(|error| catalog_failure(&error))?;
        Ok(Some(Answer::Ok(0)))
    }

    /// Moves the start of a recording to that of a later segment, and deletes the files between the two.
    pub(super) fn purge_segments(
        &mut self,
        requester: Requester,
        recording: RecordingId,
        start: i64,
        now: Clock,
        out: &mut dyn Outside,
    ) -> Result<Option<Answer>, Failure> {
        let descriptor = self.check_detach(recording, start)?;
        self.check_deletion(recording)?;
        let (geometry, first) = (descriptor.geometry(), descriptor.geometry().first_base());
        let files = self.segments_of(&geometry, first..start)?;
        self.catalog
            .set_start_position(recording, start)
            .map_err(|error| catalog_failure(&error))?;
        let count = segments_between(&geometry, first, start);
        self.begin_deletion(requester, recording, count, (files, Vec::new()), now, out);
        Ok(None)
    }

    /// Deletes the files before the start of a recording.
    pub(super) fn delete_detached_segments(
        &mut self,
        requester: Requester,
        recording: RecordingId,
        now: Clock,
        out: &mut dyn Outside,
    ) -> Result<Option<Answer>, Failure> {
        let geometry = self.settled(recording)?.geometry();
        self.check_deletion(recording)?;
        let first = geometry.first_base();
        let files = self.segments_of(&geometry, ..first)?;
        let count = files.first().map_or(0, |file| segments_between(&geometry, file.base, first));
        self.begin_deletion(requester, recording, count, (files, Vec::new()), now, out);
        Ok(None)
    }

    /// Moves the start of a recording back, over the files that directly precede it.
    pub(super) fn attach_segments(
        &mut self,
        recording: RecordingId,
    ) -> Result<Option<Answer>, Failure> {
        let descriptor = self.settled(recording)?;
        // Or the start would be where files are about to be deleted. Java does not ask.
        self.check_deletion(recording)?;
        let geometry = descriptor.geometry();
        let length = i64::from(geometry.segment_length);
        let (mut start, mut count, mut failure) = (descriptor.start_position, 0, None);
        while start >= length && failure.is_none() {
            let base = start - length;
            match find_start(&*self.storage, &geometry, base) {
                Ok(Some(found)) => {
                    count += 1;
                    start = found;
                    if found != base {
                        break;
                    }
                }
                Ok(None) => break,
                Err(fault) => {
                    let path = self.storage.path(&geometry.name(base));
                    failure = Some(attach_failure(&geometry, base, &path, fault));
                }
            }
        }
        if count > 0 {
            // Those before the wrong one are attached, as in Java.
            self.catalog
                .set_start_position(recording, start)
                .map_err(|error| catalog_failure(&error))?;
        }
        failure.map_or(Ok(Some(Answer::Ok(count))), Err)
    }

    fn check_detach(&mut self, recording: RecordingId, start: i64) -> Result<Descriptor, Failure> {
        let descriptor = self.settled(recording)?;
        let geometry = descriptor.geometry();
        if start != geometry.base(start) {
            return Err(Failure::generic(format!(
                "invalid segment start: newStartPosition={start}"
            )));
        }
        let invalid = |text: String| Err(Failure::generic(format!("invalid detach: {text}")));
        let lower_bound = geometry.first_base() + i64::from(geometry.segment_length);
        if start < lower_bound {
            return invalid(format!("newStartPosition={start} lowerBound={lower_bound}"));
        }
        let end = match descriptor.is_active() {
            // The end of an active recording is its position now.
            true => self.recording_position(recording).max(descriptor.start_position),
            false => descriptor.stop_position,
        };
        let upper_bound = geometry.base(end);
        if start > upper_bound {
            return invalid(format!("in use, newStartPosition={start} upperBound={upper_bound}"));
        }
        match self.replays.first_before(recording, start) {
            Some(replay) => invalid(format!("replay in progress - {replay}")),
            None => Ok(descriptor),
        }
    }
}

fn check_truncation(descriptor: &Descriptor, position: i64) -> Result<(), Failure> {
    if descriptor.is_active() {
        let text = "cannot truncate active recording";
        return Err(Failure::new(ErrorCode::ActiveRecording, text));
    }
    let (start, stop) = (descriptor.start_position, descriptor.stop_position);
    if !(start..=stop).contains(&position) || position % FRAME_ALIGNMENT as i64 != 0 {
        return Err(Failure::new(
            ErrorCode::InvalidPosition,
            format!(
                "invalid position {position}: start={start} stop={stop} alignment={FRAME_ALIGNMENT}"
            ),
        ));
    }
    Ok(())
}

fn check_frame(found: io::Result<bool>, geometry: &Geometry, position: i64) -> Result<(), Failure> {
    match found {
        Ok(true) => Ok(()),
        Ok(false) => {
            Err(Failure::generic(format!("{position} position not aligned to a data header")))
        }
        Err(error) => {
            let name = geometry.name(geometry.base(position));
            let text = format!("{name}: failed to read fragment header: {error}");
            Err(Failure::generic(text))
        }
    }
}

/// Returns how many segments begin between two positions, the first one included if it is the start of one.
fn segments_between(geometry: &Geometry, first: i64, end: i64) -> i64 {
    end.saturating_sub(first).max(0) / i64::from(geometry.segment_length)
}

/// Says in Java's words why a file cannot be attached.
fn attach_failure(geometry: &Geometry, base: i64, path: &str, fault: StartFault) -> Failure {
    Failure::generic(match fault {
        StartFault::Length(length) => {
            format!("fileLength={length} not equal to segmentLength={}", geometry.segment_length)
        }
        StartFault::NoFrame => format!("fragment not found in first term of segment {path}"),
        StartFault::Frame(FrameFault::TermId(found)) => {
            let expected = geometry.term_id(base);
            format!("term id does not match: actual={found} expected={expected}")
        }
        StartFault::Frame(FrameFault::StreamId(found)) => {
            format!("stream id does not match: actual={found} expected={}", geometry.stream_id)
        }
        StartFault::Frame(fault) => format!("{path}: {fault}"),
        StartFault::Io(error) => format!("read failed on {path}: {error}"),
    })
}
