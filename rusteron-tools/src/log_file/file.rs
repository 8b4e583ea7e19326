//! The file, and the entries of its terms.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::fields::Fields;
use super::frame::{Entry, Flags, Frame, FrameType, HEADER_LENGTH};
use super::metadata::{METADATA_LENGTH, Metadata};

/// Bytes per read.
const WINDOW_LENGTH: u64 = 64 * 1024;

/// Reason why a file is not read as a log buffer.
#[derive(Debug)]
pub(crate) enum LogFault {
    /// The file cannot be read.
    Io(io::Error),
    /// The metadata of the file is impossible.
    Layout(String),
}

impl fmt::Display for LogFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Layout(text) => write!(f, "not a complete log buffer: {text}"),
        }
    }
}

impl From<io::Error> for LogFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A log buffer file, open for reading.
#[derive(Debug)]
pub(crate) struct LogFile<R> {
    source: R,
    metadata: Metadata,
}

impl LogFile<File> {
    /// Opens the file at a path.
    pub(crate) fn open_path(path: &Path) -> Result<Self, LogFault> {
        // Opening a pipe would wait for a writer.
        if !fs::metadata(path)?.is_file() {
            return Err(LogFault::Layout("not a regular file".to_owned()));
        }
        Self::open(File::open(path)?)
    }
}

impl<R: Read + Seek> LogFile<R> {
    /// Reads the metadata of the file, and checks that the file's length fits.
    pub(crate) fn open(mut source: R) -> Result<Self, LogFault> {
        let length = source.seek(SeekFrom::End(0))?;
        let Some(start) = length.checked_sub(METADATA_LENGTH) else {
            return Err(LogFault::Layout(format!("{length} bytes are too few")));
        };
        source.seek(SeekFrom::Start(start))?;
        let mut bytes = [0; METADATA_LENGTH as usize];
        source.read_exact(&mut bytes)?;
        let metadata = Metadata::parse(&bytes);
        metadata.check(length).map_err(LogFault::Layout)?;
        Ok(Self { source, metadata })
    }

    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns an iterator over the entries of a term. It reads `payload_limit` bytes of each payload.
    pub(crate) fn entries(&mut self, partition: usize, payload_limit: usize) -> Entries<'_, R> {
        let window = Window { start: 0, bytes: Vec::new() };
        Entries { log: self, partition, payload_limit, offset: Some(0), window }
    }
}

/// An iterator over the entries of a term; made by [`LogFile::entries`].
#[derive(Debug)]
pub(crate) struct Entries<'a, R> {
    log: &'a mut LogFile<R>,
    partition: usize,
    payload_limit: usize,
    /// `None` after the last entry.
    offset: Option<u64>,
    window: Window,
}

/// A part of the term, in memory.
#[derive(Debug)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl<R: Read + Seek> Iterator for Entries<'_, R> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let offset = self.offset.filter(|&offset| offset < self.term_length())?;
        let (entry, next) = match self.entry(offset) {
            Ok((entry, next)) => (entry, next),
            Err(reason) => {
                let partition = self.partition;
                (Some(Entry::Fault { partition, offset, reason }), None)
            }
        };
        self.offset = next;
        entry
    }
}

impl<R: Read + Seek> Entries<'_, R> {
    fn term_length(&self) -> u64 {
        self.log.metadata.term_length.unsigned_abs().into()
    }

    /// Returns the entry at an offset within the term, and the offset of the next entry.
    fn entry(&mut self, offset: u64) -> Result<(Option<Entry>, Option<u64>), String> {
        let header = self.header(offset)?;
        let header = Fields(&header);
        let frame_length = header.i32(0);
        if frame_length == 0 {
            return self.gap(offset);
        }
        // Negative until the publisher commits the frame.
        let length = u64::from(frame_length.unsigned_abs());
        if length < HEADER_LENGTH {
            return Err(format!("a frame length of {frame_length}, less than a header's"));
        }
        let end = offset + length.next_multiple_of(HEADER_LENGTH);
        if end > self.term_length() {
            return Err(format!("a frame length of {frame_length}, beyond the end of the term"));
        }
        let metadata = &self.log.metadata;
        let term_id = header.i32(20);
        let frame_type = FrameType::from(header.u16(6));
        let mut frame = Frame {
            partition: self.partition,
            offset,
            position: metadata.position(term_id, offset as i64),
            length: frame_length.unsigned_abs(),
            committed: frame_length > 0,
            version: header.u8(4),
            flags: Flags(header.u8(5)),
            frame_type,
            term_offset: header.i32(8),
            session_id: header.i32(12),
            stream_id: header.i32(16),
            term_id,
            reserved_value: header.i64(24),
            payload: Vec::new(),
        };
        let wanted = (length - HEADER_LENGTH).min(self.payload_limit as u64);
        if frame_type != FrameType::Padding && wanted > 0 {
            frame.payload = self.read(offset + HEADER_LENGTH, wanted)?.to_vec();
        }
        Ok((Some(Entry::Frame(frame)), Some(end)))
    }

    /// Returns the gap at an offset, or `None` if the rest of the term is zeros.
    fn gap(&mut self, offset: u64) -> Result<(Option<Entry>, Option<u64>), String> {
        let mut end = offset;
        while end < self.term_length() && Fields(&self.header(end)?).i32(0) == 0 {
            end += HEADER_LENGTH;
        }
        if end == self.term_length() {
            return Ok((None, None));
        }
        let gap = Entry::Gap { partition: self.partition, offset, length: end - offset };
        Ok((Some(gap), Some(end)))
    }

    fn header(&mut self, offset: u64) -> Result<[u8; HEADER_LENGTH as usize], String> {
        let mut header = [0; HEADER_LENGTH as usize];
        header.copy_from_slice(self.read(offset, HEADER_LENGTH)?);
        Ok(header)
    }

    /// Returns `length` bytes of the term.
    fn read(&mut self, offset: u64, length: u64) -> Result<&[u8], String> {
        let available = self.term_length().saturating_sub(offset);
        if length > available {
            return Err("the end of the term".to_owned());
        }
        let is_within = |window: &Window| {
            let window_end = window.start + window.bytes.len() as u64;
            offset >= window.start && offset + length <= window_end
        };
        if !is_within(&self.window) {
            let start = self.partition as u64 * self.term_length() + offset;
            let wanted = available.min(length.max(WINDOW_LENGTH));
            self.window.start = offset;
            self.window.bytes.clear();
            let source = &mut self.log.source;
            source
                .seek(SeekFrom::Start(start))
                .and_then(|_| source.take(wanted).read_to_end(&mut self.window.bytes))
                .map_err(|error| format!("cannot be read: {error}"))?;
        }
        let first = (offset - self.window.start) as usize;
        let bytes = self.window.bytes.get(first..first + length as usize);
        bytes.ok_or_else(|| "cannot be read: the file has become shorter".to_owned())
    }
}
