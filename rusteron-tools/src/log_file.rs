//! Reads a log buffer file. The file may be damaged, foreign, or in use.
//!
//! The file is read, not mapped: if the file shrinks meanwhile, a read only returns fewer bytes. The
//! layout follows `aeron_logbuffer_descriptor.h` and `aeron_udp_protocol.h`: three terms of the same
//! length, and 4,096 bytes at the end that describe them.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Serialize;

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

/// Number of terms in a log buffer.
pub(crate) const PARTITION_COUNT: usize = 3;
const METADATA_LENGTH: u64 = 4096;
const TERM_LENGTHS: std::ops::RangeInclusive<i32> = 64 * 1024..=1024 * 1024 * 1024;
const PAGE_SIZES: std::ops::RangeInclusive<i32> = 4 * 1024..=1024 * 1024 * 1024;

/// The metadata of a log buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Metadata {
    pub(crate) kind: LogKind,
    pub(crate) registration_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) initial_term_id: i32,
    pub(crate) active_term_count: i32,
    pub(crate) term_length: i32,
    pub(crate) page_size: i32,
    pub(crate) mtu_length: i32,
    pub(crate) is_connected: bool,
    pub(crate) active_transport_count: i32,
    /// `None` until the stream ends.
    pub(crate) end_of_stream_position: Option<i64>,
    pub(crate) is_publication_revoked: bool,
    pub(crate) publication_window_length: i32,
    pub(crate) receiver_window_length: i32,
    pub(crate) max_resend: i32,
    pub(crate) entity_tag: i64,
    pub(crate) response_correlation_id: i64,
    pub(crate) linger_timeout_ns: i64,
    pub(crate) untethered_window_limit_timeout_ns: i64,
    pub(crate) untethered_linger_timeout_ns: i64,
    pub(crate) untethered_resting_timeout_ns: i64,
    pub(crate) group: bool,
    pub(crate) is_response: bool,
    pub(crate) rejoin: bool,
    pub(crate) reliable: bool,
    pub(crate) sparse: bool,
    pub(crate) signal_eos: bool,
    pub(crate) spies_simulate_connection: bool,
    pub(crate) tether: bool,
    pub(crate) default_header: DefaultHeader,
    pub(crate) tails: [Tail; PARTITION_COUNT],
}

/// The owner of a log buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogKind {
    ConcurrentPublication,
    ExclusivePublication,
    Image,
    Unknown,
}

/// The header that publishers start their frames from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DefaultHeader {
    pub(crate) length: i32,
    pub(crate) version: u8,
    pub(crate) flags: Flags,
    #[serde(rename = "type")]
    pub(crate) frame_type: u16,
    pub(crate) term_id: i32,
    pub(crate) reserved_value: i64,
}

/// The end of the written part of a term. In the file of an image, the initial value stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Tail {
    pub(crate) term_id: i32,
    /// Beyond the end of the term after a publisher has found the term full.
    pub(crate) term_offset: u32,
    pub(crate) position: i64,
}

impl Metadata {
    fn parse(bytes: &[u8; METADATA_LENGTH as usize]) -> Self {
        let fields = Fields(bytes);
        let flag = |offset| fields.u8(offset) != 0;
        let header = Fields(&bytes[320..]);
        let end_of_stream_position = fields.i64(128);
        let mut metadata = Self {
            kind: match fields.u8(497) {
                0 => LogKind::ConcurrentPublication,
                1 => LogKind::ExclusivePublication,
                2 => LogKind::Image,
                _ => LogKind::Unknown,
            },
            registration_id: fields.i64(256),
            session_id: header.i32(12),
            stream_id: header.i32(16),
            initial_term_id: fields.i32(264),
            active_term_count: fields.i32(24),
            term_length: fields.i32(276),
            page_size: fields.i32(280),
            mtu_length: fields.i32(272),
            is_connected: fields.i32(136) != 0,
            active_transport_count: fields.i32(140),
            end_of_stream_position: Some(end_of_stream_position).filter(|&end| end != i64::MAX),
            is_publication_revoked: flag(496),
            publication_window_length: fields.i32(284),
            receiver_window_length: fields.i32(288),
            max_resend: fields.i32(316),
            entity_tag: fields.i64(448),
            response_correlation_id: fields.i64(456),
            linger_timeout_ns: fields.i64(464),
            untethered_window_limit_timeout_ns: fields.i64(472),
            untethered_linger_timeout_ns: fields.i64(500),
            untethered_resting_timeout_ns: fields.i64(480),
            group: flag(488),
            is_response: flag(489),
            rejoin: flag(490),
            reliable: flag(491),
            sparse: flag(492),
            signal_eos: flag(493),
            spies_simulate_connection: flag(494),
            tether: flag(495),
            default_header: DefaultHeader {
                length: fields.i32(268),
                version: header.u8(4),
                flags: Flags(header.u8(5)),
                frame_type: header.u16(6),
                term_id: header.i32(20),
                reserved_value: header.i64(24),
            },
            tails: [Tail { term_id: 0, term_offset: 0, position: 0 }; PARTITION_COUNT],
        };
        metadata.tails = [0, 8, 16].map(|offset| metadata.tail(fields.i64(offset)));
        metadata
    }

    /// Checks that a file of a length can have this metadata at its end. If not, returns the reason.
    fn check(&self, file_length: u64) -> Result<(), String> {
        let power_of_two = |number: i32| number > 0 && number.unsigned_abs().is_power_of_two();
        let (term_length, page_size) = (self.term_length, self.page_size);
        if !TERM_LENGTHS.contains(&term_length) || !power_of_two(term_length) {
            return Err(format!("a term length of {term_length}"));
        }
        if !PAGE_SIZES.contains(&page_size) || !power_of_two(page_size) {
            return Err(format!("a page size of {page_size}"));
        }
        let terms = PARTITION_COUNT as u64 * u64::from(term_length.unsigned_abs());
        let length = (terms + METADATA_LENGTH).next_multiple_of(page_size.unsigned_abs().into());
        if file_length == length {
            return Ok(());
        }
        let of = format!("for terms of {term_length} bytes and pages of {page_size}");
        Err(format!("{file_length} bytes instead of {length} {of}"))
    }

    fn tail(&self, raw: i64) -> Tail {
        let (term_id, term_offset) = ((raw >> 32) as i32, raw as u32);
        let within = i64::from(term_offset).min(self.term_length.into());
        Tail { term_id, term_offset, position: self.position(term_id, within) }
    }

    /// The position of an offset in the term with an id. Term ids wrap around.
    fn position(&self, term_id: i32, term_offset: i64) -> i64 {
        let term_count = i64::from(term_id.wrapping_sub(self.initial_term_id));
        term_count * i64::from(self.term_length) + term_offset
    }
}

impl fmt::Display for LogKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ConcurrentPublication => "publication",
            Self::ExclusivePublication => "exclusive publication",
            Self::Image => "image",
            Self::Unknown => "unknown",
        })
    }
}

/// The length of a frame's header, and the alignment of all frames.
pub(crate) const HEADER_LENGTH: u64 = 32;

/// The flags of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub(crate) struct Flags(pub(crate) u8);

/// An entry of a term, in the term's order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "entry", rename_all = "lowercase")]
pub(crate) enum Entry {
    Frame(Frame),
    /// Zeros before a later frame. Either frames are missing, or the stream starts within the term.
    Gap {
        partition: usize,
        offset: u64,
        length: u64,
    },
    /// Bytes that are no frame. Frames behind a fault cannot be found.
    Fault {
        partition: usize,
        offset: u64,
        reason: String,
    },
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Frame {
    /// The index of the term in the file.
    pub(crate) partition: usize,
    /// Start of the frame in its term.
    pub(crate) offset: u64,
    /// Start of the frame in its stream, according to the term id in the header.
    pub(crate) position: i64,
    /// Includes the header.
    pub(crate) length: u32,
    /// `true` if the publisher has committed the frame.
    pub(crate) committed: bool,
    pub(crate) version: u8,
    pub(crate) flags: Flags,
    #[serde(rename = "type")]
    pub(crate) frame_type: FrameType,
    /// Offset in the header. Equal to `offset` in an intact frame.
    pub(crate) term_offset: i32,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) term_id: i32,
    pub(crate) reserved_value: i64,
    /// Payload up to the limit. Empty for padding.
    #[serde(skip)]
    pub(crate) payload: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FrameType {
    Padding,
    Data,
    #[serde(untagged)]
    Other(u16),
}

/// The names of the flags that are set, joined, and the number of those without a name.
impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(u8, &str); 4] =
            [(0x80, "begin"), (0x40, "end"), (0x20, "eos"), (0x10, "revoked")];
        let mut rest = self.0;
        let mut separator = "";
        for (flag, name) in NAMES {
            if rest & flag != 0 {
                write!(f, "{separator}{name}")?;
                separator = "+";
                rest &= !flag;
            }
        }
        if rest != 0 || self.0 == 0 {
            write!(f, "{separator}{rest:#04x}")?;
        }
        Ok(())
    }
}

impl From<Flags> for String {
    fn from(flags: Flags) -> Self {
        flags.to_string()
    }
}

impl From<u16> for FrameType {
    fn from(number: u16) -> Self {
        match number {
            0 => Self::Padding,
            1 => Self::Data,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for FrameType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Padding => f.write_str("padding"),
            Self::Data => f.write_str("data"),
            Self::Other(number) => write!(f, "type {number:#06x}"),
        }
    }
}

/// Little-endian numbers in bytes. All offsets lie within the bytes.
struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&self, offset: usize) -> [u8; N] {
        let bytes = self.0.get(offset..).and_then(|bytes| bytes.first_chunk());
        bytes.copied().unwrap_or([0; N])
    }

    fn u8(&self, offset: usize) -> u8 {
        u8::from_le_bytes(self.bytes(offset))
    }

    fn u16(&self, offset: usize) -> u16 {
        u16::from_le_bytes(self.bytes(offset))
    }

    fn i32(&self, offset: usize) -> i32 {
        i32::from_le_bytes(self.bytes(offset))
    }

    fn i64(&self, offset: usize) -> i64 {
        i64::from_le_bytes(self.bytes(offset))
    }
}

// The path is for the fuzz targets, which compile this file as a module of theirs.
#[cfg(test)]
#[path = "log_file/tests.rs"]
mod tests;
