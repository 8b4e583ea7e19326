//! Requests that shorten a recording, give it back what was detached, or move its segments to
//! another one.
//!
//! Each request looks before it writes. The catalog is edited before files are deleted, so that no
//! edge of a recording is where there is no file; a crash in between leaves files that belong to no
//! recording.

use std::io;
use std::ops::RangeBounds;

use rusteron_core::log_buffer::FRAME_ALIGNMENT;

use crate::catalog::Descriptor;
use crate::conductor::deletions::{Deletions, SegmentFile};
use crate::conductor::effect::{Failure, RecordingId};
use crate::conductor::migration;
use crate::conductor::recordings::Recordings;
use crate::conductor::replays::Replays;
use crate::conductor::sessions::Requester;
use crate::conductor::turn::Turn;
use crate::control::responses::Answer;
use crate::protocol::error_code::ErrorCode;
use crate::segment::Geometry;
use crate::segment::cut::{cut, is_at_frame, is_empty};
use crate::segment::frame::FrameFault;
use crate::segment::geometry::{DELETED_SUFFIX, parse_name};
use crate::segment::start::{StartFault, find_start};
use crate::storage::Storage;

/// The segments of recordings, of which some are being deleted.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    pub(super) deletions: Deletions,
}

impl Segments {
    /// Ends a stopped recording at an earlier position. Its replays are stopped.
    pub(super) fn truncate_recording(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        recording: RecordingId,
        position: i64,
        replays: &mut Replays,
    ) -> Result<Option<Answer>, Failure> {
        let descriptor = turn.settled(recording)?;
        check_truncation(&descriptor, position)?;
        self.deletions.check_none(recording)?;
        let geometry = descriptor.geometry();
        let Descriptor { start_position: start, stop_position: stop, .. } = descriptor;
        let base = geometry.base(position);
        let is_within_segment = position != start && position != base;
        if is_within_segment && position != stop {
            // Java ends the recording there before it finds out.
            check_frame(is_at_frame(turn.storage, &geometry, position), &geometry, position)?;
        }
        let (first_deleted, mut files) = if position == start {
            (None, segment_files(turn.storage, recording, ..)?)
        } else {
            let length = i64::from(geometry.segment_length);
            let first = if is_within_segment { base.saturating_add(length) } else { base };
            (Some(first), segments_of(turn.storage, &geometry, first..=stop)?)
        };
        let count = match first_deleted {
            None => files.len() as i64,
            Some(first) => segments_between(&geometry, first, stop) + i64::from(first <= stop),
        };
        // A crash leaves those that follow the recording's end without a gap.
        files.reverse();

        turn.catalog.set_stop_position(recording, position)?;
        let replays = replays.abort_all_of(turn, recording);
        if is_within_segment && position != stop {
            let level = turn.catalog.sync_level();
            cut(turn.storage, &geometry, position, level).map_err(|error| {
                let name = geometry.name(base);
                Failure::generic(format!("{name} cannot be cut at position {position}: {error}"))
            })?;
        }
        self.deletions.begin(turn, requester, recording, count, files, replays);
        Ok(None)
    }

    /// Moves all segments of a recording to the start or the end of another one. The answer is
    /// their number.
    pub(super) fn migrate(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        source: RecordingId,
        destination: RecordingId,
        replays: &Replays,
    ) -> Result<Option<Answer>, Failure> {
        let (from, to) = (turn.settled(source)?, turn.settled(destination)?);
        let migration = migration::plan(&from, &to)?;
        // Java does not ask. A replay would open the source's files by names under which others can
        // be recorded.
        if replays.has_recording(source) {
            let text = format!("cannot migrate recording with active replay {source}");
            return Err(Failure::new(ErrorCode::ActiveRecording, text));
        }
        self.deletions.check_none(source)?;
        self.deletions.check_none(destination)?;
        let moved = migration::check_files(turn.storage, &migration, &from, &to)?;
        // The segment after a full one is empty, and the other recording has its own.
        let stop = from.stop_position;
        let mut empty = segments_of(turn.storage, &from.geometry(), stop..=stop)?;
        empty.retain(|file| is_empty(turn.storage, &file.name).unwrap_or(false));
        if moved > 0 {
            turn.catalog.migrate(turn.storage, &migration).map_err(Failure::generic)?;
        }
        self.deletions.begin(turn, requester, source, moved, empty, Vec::new());
        Ok(None)
    }

    /// Deletes a stopped recording that is not being replayed.
    pub(super) fn purge_recording(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        recording: RecordingId,
        replays: &Replays,
    ) -> Result<Option<Answer>, Failure> {
        let descriptor = turn.settled(recording)?;
        let refused = |text: String| Err(Failure::new(ErrorCode::ActiveRecording, text));
        if replays.has_recording(recording) {
            return refused(format!("cannot purge recording with active replay {recording}"));
        }
        if descriptor.is_active() {
            return refused(format!("cannot purge active recording {recording}"));
        }
        self.deletions.check_none(recording)?;
        let files = segment_files(turn.storage, recording, ..)?;
        turn.catalog.delete(recording)?;
        let count = files.len() as i64;
        self.deletions.begin(turn, requester, recording, count, files, Vec::new());
        Ok(None)
    }

    /// Moves the start of a recording to that of a later segment. The files before it stay.
    pub(super) fn detach_segments(
        turn: &mut Turn<'_>,
        recording: RecordingId,
        start: i64,
        recordings: &Recordings,
        replays: &Replays,
    ) -> Result<Option<Answer>, Failure> {
        check_detach(turn, recording, start, recordings, replays)?;
        turn.catalog.set_start_position(recording, start)?;
        Ok(Some(Answer::Ok(0)))
    }

    /// Moves the start of a recording to that of a later segment, and deletes the files between the
    /// two.
    pub(super) fn purge_segments(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        recording: RecordingId,
        start: i64,
        recordings: &Recordings,
        replays: &Replays,
    ) -> Result<Option<Answer>, Failure> {
        let descriptor = check_detach(turn, recording, start, recordings, replays)?;
        self.deletions.check_none(recording)?;
        let (geometry, first) = (descriptor.geometry(), descriptor.geometry().first_base());
        let files = segments_of(turn.storage, &geometry, first..start)?;
        turn.catalog.set_start_position(recording, start)?;
        let count = segments_between(&geometry, first, start);
        self.deletions.begin(turn, requester, recording, count, files, Vec::new());
        Ok(None)
    }

    /// Deletes the files before the start of a recording.
    pub(super) fn delete_detached(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        recording: RecordingId,
    ) -> Result<Option<Answer>, Failure> {
        let geometry = turn.settled(recording)?.geometry();
        self.deletions.check_none(recording)?;
        let first = geometry.first_base();
        let files = segments_of(turn.storage, &geometry, ..first)?;
        let count = files.first().map_or(0, |file| segments_between(&geometry, file.base, first));
        self.deletions.begin(turn, requester, recording, count, files, Vec::new());
        Ok(None)
    }

    /// Moves the start of a recording back, over the files that directly precede it.
    pub(super) fn attach(
        &self,
        turn: &mut Turn<'_>,
        recording: RecordingId,
    ) -> Result<Option<Answer>, Failure> {
        let descriptor = turn.settled(recording)?;
        // Or the start would be where files are about to be deleted. Java does not ask.
        self.deletions.check_none(recording)?;
        let geometry = descriptor.geometry();
        let length = i64::from(geometry.segment_length);
        let (mut start, mut count, mut failure) = (descriptor.start_position, 0, None);
        while start >= length && failure.is_none() {
            let base = start - length;
            match find_start(turn.storage, &geometry, base) {
                Ok(Some(found)) => {
                    count += 1;
                    start = found;
                    if found != base {
                        break;
                    }
                }
                Ok(None) => break,
                Err(fault) => {
                    let path = turn.storage.path(&geometry.name(base));
                    failure = Some(attach_failure(&geometry, base, &path, fault));
                }
            }
        }
        if count > 0 {
            // Those before the wrong one are attached, as in Java.
            turn.catalog.set_start_position(recording, start)?;
        }
        failure.map_or(Ok(Some(Answer::Ok(count))), Err)
    }
}

/// Returns the segment files of a recording with bases in a range, in ascending order.
fn segment_files(
    storage: &dyn Storage,
    recording: RecordingId,
    bases: impl RangeBounds<i64>,
) -> Result<Vec<SegmentFile>, Failure> {
    let names = storage.names().map_err(|error| {
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

/// Returns the segment files that begin where segments of the recording can.
fn segments_of(
    storage: &dyn Storage,
    geometry: &Geometry,
    bases: impl RangeBounds<i64>,
) -> Result<Vec<SegmentFile>, Failure> {
    let mut files = segment_files(storage, geometry.recording_id, bases)?;
    files.retain(|file| geometry.base(file.base) == file.base);
    Ok(files)
}

fn check_detach(
    turn: &mut Turn<'_>,
    recording: RecordingId,
    start: i64,
    recordings: &Recordings,
    replays: &Replays,
) -> Result<Descriptor, Failure> {
    let descriptor = turn.settled(recording)?;
    let geometry = descriptor.geometry();
    if start != geometry.base(start) {
        return Err(Failure::generic(format!("invalid segment start: newStartPosition={start}")));
    }
    let invalid = |text: String| Err(Failure::generic(format!("invalid detach: {text}")));
    let lower_bound = geometry.first_base() + i64::from(geometry.segment_length);
    if start < lower_bound {
        return invalid(format!("newStartPosition={start} lowerBound={lower_bound}"));
    }
    let end = match descriptor.is_active() {
        // The end of an active recording is its position now.
        true => recordings.position(recording).max(descriptor.start_position),
        false => descriptor.stop_position,
    };
    let upper_bound = geometry.base(end);
    if start > upper_bound {
        return invalid(format!("in use, newStartPosition={start} upperBound={upper_bound}"));
    }
    match replays.first_before(recording, start) {
        Some(replay) => invalid(format!("replay in progress - {replay}")),
        None => Ok(descriptor),
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

/// Returns how many segments begin between two positions, the first one included if it is the start
/// of one.
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
