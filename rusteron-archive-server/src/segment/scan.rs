//! The end of a recording whose stop position nobody wrote down: after a crash, the frames tell it.

use std::collections::HashMap;
use std::{fmt, io};

use crate::ids::RecordingId;
use crate::segment::checksum::Checksum;
use crate::segment::frame::{Frame, FrameFault, FrameKind, Header, checksum_fault};
use crate::segment::geometry::{Geometry, parse_name};
use crate::storage::{PAGE_LENGTH, Storage, StorageFile, SyncLevel};

/// The most bytes of one read. More than the longest data frame, so that memory stays bounded whatever lengths say.
const CHUNK_LENGTH: u64 = 256 << 10;
const PAGE: u64 = PAGE_LENGTH as u64;
const SECTOR: u64 = 512;

/// The end of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// The position behind the last frame that is certainly whole. At least the start position.
    pub(crate) end: i64,
    /// The base of the segment that was read, if the recording has one.
    pub(crate) segment: Option<i64>,
    /// What follows the end.
    pub(crate) tail: Tail,
}

impl Found {
    /// Whole frames, and what a crash has torn, have to reach a position that the recording is
    /// known to have had.
    fn lost_behind(self, position: Option<i64>) -> Self {
        match (self.tail, position) {
            (Tail::Clean | Tail::Torn | Tail::Cut, Some(position)) if position > self.end => {
                Self { tail: Tail::Lost(position), ..self }
            }
            _ => self,
        }
    }
}

/// Facts beside the segment that tell whether a frame is whole.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Evidence {
    /// The checksum that stands in frames. Frames without it may be of an archive with other settings.
    pub(crate) checksum: Option<Checksum>,
    /// A position up to which everything has been written, and may have been announced: the one
    /// that the recording had when its process was killed, if the operating system has survived
    /// that, or where it stopped in order.
    pub(crate) position: Option<i64>,
    /// The files are those that the archive wrote. In a copy, holes prove nothing, as copying makes
    /// them of zeros and fills them, and a copy can be cut short.
    pub(crate) is_original: bool,
}

/// What a segment has behind the end of its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// No frame: a length that is zero or negative, or the end of the file.
    Clean,
    /// A frame of which a part has never been written. Its block's write or sync had not returned, so no position covered it.
    Torn,
    /// A frame that has a page of zeros at its end or in the middle, be it the last one or not. Either a crash took that page, or the publisher sent
    /// zeros and the frame is whole; nothing in the file tells which. Java's archive refuses to start then.
    Doubtful {
        /// The recording's end if the frame is whole.
        end: i64,
    },
    /// Something else than a frame. Java's archive believes any length, and its tool calls the recording invalid.
    Damaged(FrameFault),
    /// The frames end before this position, which the recording is known to have had.
    Lost(i64),
    /// The file of a copy ends before a segment does, and nothing tells what it had.
    Cut,
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clean => f.write_str("ends after a whole frame"),
            Self::Torn => f.write_str("the last frame was written in part"),
            Self::Doubtful { .. } => {
                f.write_str("the last frame crosses a page boundary and may be incomplete")
            }
            Self::Damaged(fault) => write!(f, "damaged: {fault}"),
            Self::Lost(position) => {
                write!(f, "frames end here, but the recording had come to position {position}")
            }
            Self::Cut => f.write_str("the file ends before its segment does"),
        }
    }
}

/// Why a recording's end cannot be found.
#[derive(Debug)]
pub(crate) enum ScanError {
    /// The catalog's entry is wrong. The sentence names the field.
    Geometry(String),
    /// The segment file's name is none that a recording of this geometry has.
    Misplaced { name: String },
    /// The segment file cannot be read.
    Io { name: String, error: io::Error },
}

impl fmt::Display for ScanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Geometry(text) => f.write_str(text),
            Self::Misplaced { name } => {
                write!(f, "{name}: no segment of this recording begins at this position")
            }
            Self::Io { name, error } => write!(f, "{name}: {error}"),
        }
    }
}

impl std::error::Error for ScanError {}

/// Returns the base of each recording's highest segment.
pub(crate) fn highest_segments<N: AsRef<str>>(
    names: impl IntoIterator<Item = N>,
) -> HashMap<RecordingId, i64> {
    let mut highest = HashMap::new();
    for (recording_id, base) in names.into_iter().filter_map(|name| parse_name(name.as_ref())) {
        let known = highest.entry(recording_id).or_insert(base);
        *known = base.max(*known);
    }
    highest
}

/// Finds a recording's end by walking the frames of its highest segment, whose base is `highest` if there is one. Like
/// Java's archive, this takes earlier segments as they are. Changes nothing: see [`repair`].
///
/// Walks by frame lengths, and reads the whole segment in pieces if its frames are short.
pub(crate) fn find_end(
    storage: &dyn Storage,
    geometry: &Geometry,
    highest: Option<i64>,
    evidence: Evidence,
) -> Result<Found, ScanError> {
    geometry.check().map_err(ScanError::Geometry)?;
    let (start, first) = (geometry.start_position, geometry.first_base());
    // Segments before the start have been detached, or a crash kept them from being deleted.
    let Some(base) = highest.filter(|&base| base >= first) else {
        let found = Found { end: start, segment: None, tail: Tail::Clean };
        return Ok(found.lost_behind(evidence.position));
    };
    let name = geometry.name(base);
    if geometry.base(base) != base || base > i64::MAX - 2 * i64::from(geometry.segment_length) {
        return Err(ScanError::Misplaced { name });
    }
    let found = Scan::new(storage, geometry, base, &name).and_then(|mut scan| scan.run(evidence));
    let found = found.map_err(|error| ScanError::Io { name, error })?;
    Ok(found.lost_behind(evidence.position))
}

/// Checks the frames of the segment with a base, up to `end`, and the checksums of its data frames. Its name is one of
/// this recording's, and its tail clean or damaged.
pub(crate) fn check_segment(
    storage: &dyn Storage,
    geometry: &Geometry,
    base: i64,
    end: i64,
    checksum: Option<Checksum>,
) -> Result<Found, ScanError> {
    let name = geometry.name(base);
    let found =
        Scan::new(storage, geometry, base, &name).and_then(|mut scan| scan.check(end, checksum));
    found.map_err(|error| ScanError::Io { name, error })
}

/// Brings the segment at a recording's end into the state that recording and Java's tool expect: cuts off a torn frame,
/// completes a short file, and creates the file behind a full segment.
///
/// A caller that decides on a doubtful frame changes `found` first: `Clean` with the later end keeps it, `Torn` cuts it off.
pub(crate) fn repair(
    storage: &dyn Storage,
    geometry: &Geometry,
    found: &Found,
    level: SyncLevel,
) -> io::Result<()> {
    if found.segment.is_none() {
        return Ok(());
    }
    let name = geometry.name(geometry.base(found.end));
    let segment_length = geometry.segment_length as u64;
    if storage.length(&name)?.is_none() {
        let mut file = storage.create(&name, segment_length)?;
        file.sync(level)?;
        return if level == SyncLevel::None { Ok(()) } else { storage.sync_dir() };
    }
    let mut file = storage.open(&name)?;
    // A short file may end in a part of a header.
    if found.tail == Tail::Torn || file.length()? < segment_length {
        file.set_length(geometry.offset(found.end))?;
        file.set_length(segment_length)?;
    }
    file.sync(level)
}

/// A walk over the frames of a segment.
struct Scan<'a> {
    geometry: &'a Geometry,
    base: i64,
    file: Box<dyn StorageFile>,
    file_length: u64,
    /// Where the walk ends at the latest: the end of file or segment.
    limit: u64,
    /// Bytes of the file from `chunk_start` on.
    chunk: Vec<u8>,
    chunk_start: u64,
}

impl<'a> Scan<'a> {
    fn new(
        storage: &dyn Storage,
        geometry: &'a Geometry,
        base: i64,
        name: &str,
    ) -> io::Result<Self> {
        let file = storage.open(name)?;
        let file_length = file.length()?;
        let limit = file_length.min(geometry.segment_length as u64);
        Ok(Self { geometry, base, file, file_length, limit, chunk: Vec::new(), chunk_start: 0 })
    }

    fn run(&mut self, evidence: Evidence) -> io::Result<Found> {
        let mut position = self.base.max(self.geometry.start_position);
        let mut last = None;
        // The first frame before the last one that has a page of zeros, which is not a hole.
        let mut suspect = None;
        let mut tail = loop {
            let frame = match self.frame(position)? {
                Ok(frame) => frame,
                Err(FrameFault::Missing) => break Tail::Clean,
                Err(fault) => break Tail::Damaged(fault),
            };
            // Pages reach the file in order if only the process ends.
            let is_in_order = evidence.is_original && evidence.position.is_some();
            if let Some((begin, before)) = last.filter(|_| !is_in_order) {
                match self.judge(begin, before, evidence, true)? {
                    Tail::Clean => {}
                    Tail::Torn => break Tail::Clean,
                    _ => suspect = suspect.or(Some(begin)),
                }
            }
            last = Some((position, frame));
            position += frame.aligned_length() as i64;
        };
        let end = position;
        if let Some((begin, frame)) = last {
            match self.judge(begin, frame, evidence, false)? {
                Tail::Clean => {}
                doubt => (position, tail) = (begin, doubt),
            }
        }
        if let Some(begin) = suspect {
            let is_told = evidence.is_original && self.tells_holes_at(self.offset(end))?;
            if tail != Tail::Torn && !is_told {
                (position, tail) = (begin, Tail::Doubtful { end });
            }
        }
        let is_short = self.file_length < self.geometry.segment_length as u64;
        if tail == Tail::Clean && is_short && !evidence.is_original && evidence.position.is_none() {
            tail = Tail::Cut;
        }
        Ok(Found { end: position, segment: Some(self.base), tail })
    }

    /// As [`run`](Self::run) up to `end`, with the checksums of all data frames, and without doubts about the last one.
    fn check(&mut self, end: i64, checksum: Option<Checksum>) -> io::Result<Found> {
        let mut position = self.base.max(self.geometry.start_position);
        let tail = loop {
            if position >= end {
                break Tail::Clean;
            }
            match self.frame(position)? {
                Ok(frame) => match self.frame_fault(position, frame, checksum)? {
                    Some(fault) => break Tail::Damaged(fault),
                    None => position += frame.aligned_length() as i64,
                },
                Err(FrameFault::Missing) => break Tail::Clean,
                Err(fault) => break Tail::Damaged(fault),
            }
        };
        Ok(Found { end: position, segment: Some(self.base), tail })
    }

    /// Checks what is behind the header of a frame.
    fn frame_fault(
        &mut self,
        position: i64,
        frame: Frame,
        checksum: Option<Checksum>,
    ) -> io::Result<Option<FrameFault>> {
        let offset = self.offset(position);
        if offset + frame.aligned_length() as u64 > self.limit {
            return Ok(Some(FrameFault::Incomplete));
        }
        let Some(checksum) = checksum.filter(|_| frame.kind == FrameKind::Data) else {
            return Ok(None);
        };
        Ok(match self.bytes(offset, frame.aligned_length())? {
            Some(bytes) => checksum_fault(bytes, checksum),
            None => Some(FrameFault::Incomplete),
        })
    }

    /// Returns the frame at a position, or why there is none.
    fn frame(&mut self, position: i64) -> io::Result<Result<Frame, FrameFault>> {
        let Some(header) = self.header(self.offset(position))? else {
            return Ok(Err(FrameFault::Missing));
        };
        let (term_id, term_offset) =
            (self.geometry.term_id(position), self.geometry.term_offset(position));
        Ok(self.geometry.frame_check().check(&header, term_id, term_offset))
    }

    /// Judges a frame that a valid header follows, or the last one. Pages of a block reach the file in order if the process
    /// is killed, and in any order or not at all if power fails, so a header says nothing of other pages than its own.
    fn judge(
        &mut self,
        position: i64,
        frame: Frame,
        evidence: Evidence,
        is_followed: bool,
    ) -> io::Result<Tail> {
        if frame.kind == FrameKind::Padding {
            // Only its header is ever written.
            return Ok(Tail::Clean);
        }
        let offset = self.offset(position);
        let length = frame.aligned_length();
        let end = offset + length as u64;
        if end > self.limit {
            return Ok(if evidence.is_original { Tail::Torn } else { Tail::Cut });
        }
        let end_position = position + length as i64;
        let is_known = evidence.position.is_some_and(|position| position >= end_position);
        // Disks write whole sectors. Within a page, only a checksum tells zeros that were written
        // from those that were not.
        let has_checksum = evidence.checksum.is_some() && !is_followed;
        let unit = if has_checksum { SECTOR } else { PAGE };
        // The page of the next header is there.
        let unsure_end = if is_followed { end / PAGE * PAGE } else { end };
        if is_known || (offset / unit + 1) * unit >= unsure_end {
            return Ok(Tail::Clean);
        }
        let Some(bytes) = self.bytes(offset, length)? else { return Ok(Tail::Torn) };
        if evidence.checksum.is_some_and(|checksum| checksum_fault(bytes, checksum).is_none()) {
            return Ok(Tail::Clean);
        }
        let is_empty = |part: &[u8]| part.iter().all(|&byte| byte == 0);
        let has_empty = |unit: u64| {
            let begin = ((offset / unit + 1) * unit).min(unsure_end);
            let unsure = &bytes[(begin - offset) as usize..(unsure_end - offset) as usize];
            unsure.chunks(unit as usize).any(is_empty)
        };
        let has_empty_page = has_empty(PAGE);
        if !has_empty_page && !has_empty(unit) {
            return Ok(Tail::Clean);
        }
        // A page that was never written is a hole in the file.
        Ok(if !evidence.is_original {
            Tail::Doubtful { end: end_position }
        } else if self.file.first_hole(offset)? < unsure_end {
            Tail::Torn
        } else if has_empty_page && !is_followed && self.tells_holes_at(end)? {
            Tail::Clean
        } else {
            Tail::Doubtful { end: end_position }
        })
    }

    /// Tells whether it is certain that the file system tells holes as small as a page: if a hole begins right behind the
    /// last frame, which ends at `end`, or if one begins or ends at an odd page.
    fn tells_holes_at(&self, end: u64) -> io::Result<bool> {
        let hole = self.file.first_hole(end)?;
        if hole <= end.next_multiple_of(PAGE) && hole < self.file_length {
            return Ok(true);
        }
        if self.file.first_hole(0)? >= self.file_length {
            return Ok(false);
        }
        let mut was_hole = false;
        for offset in (0..self.file_length).step_by(PAGE_LENGTH) {
            let is_hole = self.file.first_hole(offset)? == offset;
            if is_hole != was_hole && offset / PAGE % 2 == 1 {
                return Ok(true);
            }
            was_hole = is_hole;
        }
        Ok(false)
    }

    /// Returns the header at an offset, or `None` if the file ends before it does.
    fn header(&mut self, offset: u64) -> io::Result<Option<Header>> {
        let bytes = self.bytes(offset, size_of::<Header>())?;
        Ok(bytes.and_then(|bytes| bytes.first_chunk().copied()))
    }

    /// Returns bytes of the file, at most as many as a data frame has, or `None` if the file ends before them.
    fn bytes(&mut self, offset: u64, length: usize) -> io::Result<Option<&[u8]>> {
        let end = offset + length as u64;
        if end > self.limit {
            return Ok(None);
        }
        if offset < self.chunk_start || end > self.chunk_start + self.chunk.len() as u64 {
            self.chunk.resize(CHUNK_LENGTH.min(self.limit - offset) as usize, 0);
            self.chunk_start = offset;
            let read = self.file.read_at(&mut self.chunk, offset)?;
            self.chunk.truncate(read);
        }
        let start = (offset - self.chunk_start) as usize;
        Ok(self.chunk.get(start..).and_then(|rest| rest.get(..length)))
    }

    fn offset(&self, position: i64) -> u64 {
        (position - self.base).unsigned_abs()
    }
}

#[cfg(test)]
mod tests;
