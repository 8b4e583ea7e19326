//! Reads a log buffer file. The file may be damaged, foreign, or in use.
//!
//! The file is read, not mapped: if the file shrinks meanwhile, a read only returns fewer bytes. The
//! layout follows `aeron_logbuffer_descriptor.h` and `aeron_udp_protocol.h`: three terms of the same
//! length, and 4,096 bytes at the end that describe them.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::Serialize;

/// Bytes per read.
const BUFFER_LENGTH: usize = 64 * 1024;

fn incomplete(fault: impl fmt::Display) -> io::Error {
    io::Error::other(format!("not a complete log buffer: {fault}"))
}

/// A log buffer file, open for reading.
#[derive(Debug)]
pub(crate) struct LogFile<R> {
    source: BufReader<R>,
    pub(crate) metadata: Metadata,
}

impl LogFile<File> {
    /// Opens the file at a path.
    pub(crate) fn open_path(path: &Path) -> io::Result<Self> {
        // Opening a pipe would wait for a writer.
        if !fs::metadata(path)?.is_file() {
            return Err(incomplete("not a regular file"));
        }
        Self::open(File::open(path)?)
    }
}

impl<R: Read + Seek> LogFile<R> {
    /// Reads the metadata of the file, and checks that the file's length fits.
    pub(crate) fn open(mut source: R) -> io::Result<Self> {
        let length = source.seek(SeekFrom::End(0))?;
        let Some(start) = length.checked_sub(METADATA_LENGTH) else {
            return Err(incomplete(format_args!("{length} bytes are too few")));
        };
        source.seek(SeekFrom::Start(start))?;
        let mut bytes = [0; METADATA_LENGTH as usize];
        source.read_exact(&mut bytes)?;
        let metadata = Metadata::parse(&bytes);
        metadata.check(length).map_err(incomplete)?;
        Ok(Self { source: BufReader::with_capacity(BUFFER_LENGTH, source), metadata })
    }

    /// Returns an iterator over the entries of a term. It reads `payload_limit` bytes of each payload.
    pub(crate) fn entries(&mut self, partition: usize, payload_limit: usize) -> Entries<'_, R> {
        Entries { log: self, partition, payload_limit, offset: Some(0), read_offset: None }
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
    /// The offset in the term that the source has come to. `None` before the first read.
    read_offset: Option<u64>,
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
            frame.payload = vec![0; wanted as usize];
            self.read(offset + HEADER_LENGTH, &mut frame.payload)?;
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
        self.read(offset, &mut header)?;
        Ok(header)
    }

    /// Fills `bytes` with those from an offset in the term.
    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), String> {
        let end = offset + bytes.len() as u64;
        if end > self.term_length() {
            return Err("the end of the term".to_owned());
        }
        let start = self.partition as u64 * self.term_length() + offset;
        let source = &mut self.log.source;
        let moved = match self.read_offset.replace(end) {
            // Keeps the buffer, unlike `seek`.
            Some(read_offset) => source.seek_relative(offset as i64 - read_offset as i64),
            None => source.seek(SeekFrom::Start(start)).map(drop),
        };
        moved.and_then(|()| source.read_exact(bytes)).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                "cannot be read: the file has become shorter".to_owned()
            }
            _ => format!("cannot be read: {error}"),
        })
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

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor, Read, Seek, SeekFrom};

    use proptest::prelude::*;

    use super::*;

    const TERM_LENGTH: usize = 64 * 1024;
    const METADATA: usize = PARTITION_COUNT * TERM_LENGTH;
    const INITIAL_TERM_ID: i32 = i32::MAX;

    /// A file as a driver makes it, with frames in its first term.
    struct Builder {
        bytes: Vec<u8>,
        offset: usize,
    }

    impl Builder {
        fn new() -> Self {
            let mut builder = Self { bytes: vec![0; METADATA + 4096], offset: 0 };
            // The second term is the active one; its id has wrapped around.
            let tails = [(INITIAL_TERM_ID, 70_000_u32), (i32::MIN, 96), (0, 0)];
            for (partition, (term_id, term_offset)) in tails.into_iter().enumerate() {
                let raw = i64::from(term_id) << 32 | i64::from(term_offset);
                builder.put(METADATA + 8 * partition, &raw.to_le_bytes());
            }
            builder.metadata(24, 1);
            builder.put(METADATA + 128, &i64::MAX.to_le_bytes());
            builder.metadata(136, 1);
            builder.put(METADATA + 256, &42_i64.to_le_bytes());
            builder.metadata(264, INITIAL_TERM_ID);
            builder.metadata(272, 1408);
            builder.metadata(276, TERM_LENGTH as i32);
            builder.metadata(280, 4096);
            builder.metadata(320 + 12, -7);
            builder.metadata(320 + 16, 1001);
            builder.bytes[METADATA + 497] = 1;
            builder
        }

        fn put(&mut self, offset: usize, bytes: &[u8]) {
            self.bytes[offset..][..bytes.len()].copy_from_slice(bytes);
        }

        fn metadata(&mut self, offset: usize, value: i32) {
            self.put(METADATA + offset, &value.to_le_bytes());
        }

        fn frame(mut self, length: i32, frame_type: u16, payload: &[u8]) -> Self {
            let offset = self.offset;
            self.put(offset, &length.to_le_bytes());
            self.bytes[offset + 5] = 0xC0;
            self.put(offset + 6, &frame_type.to_le_bytes());
            self.put(offset + 8, &(offset as i32).to_le_bytes());
            self.put(offset + 12, &(-7_i32).to_le_bytes());
            self.put(offset + 16, &1001_i32.to_le_bytes());
            self.put(offset + 20, &INITIAL_TERM_ID.to_le_bytes());
            self.put(offset + 24, &99_i64.to_le_bytes());
            self.put(offset + 32, payload);
            self.offset += (length.unsigned_abs() as usize).next_multiple_of(32);
            self
        }

        fn open(self) -> LogFile<Cursor<Vec<u8>>> {
            LogFile::open(Cursor::new(self.bytes)).expect("a log buffer")
        }
    }

    fn entries(log: &mut LogFile<Cursor<Vec<u8>>>) -> Vec<Entry> {
        log.entries(0, 100).collect()
    }

    #[track_caller]
    fn frame(entry: &Entry) -> &Frame {
        match entry {
            Entry::Frame(frame) => frame,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn fault(entry: &Entry) -> (u64, &str) {
        match entry {
            Entry::Fault { offset, reason, .. } => (*offset, reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn metadata_is_parsed() {
        let log = Builder::new().open();
        let metadata = log.metadata;
        assert_eq!(metadata.kind, LogKind::ExclusivePublication);
        assert_eq!((metadata.registration_id, metadata.mtu_length), (42, 1408));
        assert_eq!((metadata.session_id, metadata.stream_id), (-7, 1001));
        assert_eq!((metadata.is_connected, metadata.end_of_stream_position), (true, None));
        let term_length = TERM_LENGTH as i64;
        let expected = [
            Tail { term_id: i32::MAX, term_offset: 70_000, position: term_length },
            Tail { term_id: i32::MIN, term_offset: 96, position: term_length + 96 },
        ];
        assert_eq!(metadata.tails[..2], expected);
    }

    #[test]
    fn frames_up_to_the_last() {
        let mut log = Builder::new()
            .frame(32 + 5, 1, b"hello")
            .frame(64, 0, b"xxx")
            .frame(-32, 1, b"")
            .open();
        let entries = entries(&mut log);
        assert_eq!(entries.len(), 3, "{entries:?}");
        let first = frame(&entries[0]);
        assert_eq!((first.length, first.committed, first.frame_type), (37, true, FrameType::Data));
        assert_eq!((first.session_id, first.stream_id, first.reserved_value), (-7, 1001, 99));
        assert_eq!(
            (first.payload.as_slice(), first.flags.to_string()),
            (&b"hello"[..], "begin+end".into())
        );
        let padding = frame(&entries[1]);
        assert_eq!((padding.offset, padding.position), (64, 64));
        assert_eq!((padding.frame_type, padding.payload.len()), (FrameType::Padding, 0));
        let claim = frame(&entries[2]);
        assert_eq!((claim.offset, claim.length, claim.committed), (128, 32, false));
    }

    #[test]
    fn gap_before_a_frame() {
        let mut builder = Builder::new().frame(32, 1, b"");
        builder.offset += 64;
        let mut log = builder.frame(32, 1, b"").open();
        let found = entries(&mut log);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[1], Entry::Gap { partition: 0, offset: 32, length: 64 });
        assert_eq!(frame(&found[2]).offset, 96);
    }

    #[test]
    fn impossible_lengths_are_faults() {
        for length in [1, 31, -31, i32::MAX, i32::MIN, TERM_LENGTH as i32] {
            let mut builder = Builder::new().frame(32, 1, b"");
            builder.put(32, &length.to_le_bytes());
            let found = entries(&mut builder.open());
            assert_eq!(found.len(), 2, "{length}: {found:?}");
            let (offset, reason) = fault(&found[1]);
            assert_eq!(offset, 32);
            assert!(reason.contains(&length.to_string()), "{reason}");
        }
    }

    #[test]
    fn frame_may_end_with_its_term() {
        let mut log = Builder::new().frame(TERM_LENGTH as i32, 1, b"x").open();
        let found = entries(&mut log);
        assert_eq!((found.len(), frame(&found[0]).payload.len()), (1, 100));
    }

    #[test]
    fn foreign_file_is_refused() {
        let whole = Builder::new().bytes;
        for length in [0, 1, 4095] {
            let fault =
                LogFile::open(Cursor::new(whole[..length].to_vec())).expect_err("too short");
            assert!(fault.to_string().contains("too few"), "{fault}");
        }
        let fault = LogFile::open(Cursor::new(whole[4096..].to_vec())).expect_err("too short");
        assert!(fault.to_string().contains("196608 bytes instead of 200704"), "{fault}");
        let cases = [
            (276, 0, "term length of 0"),
            (276, -65536, "term length of -65536"),
            (276, 65537, "term length of 65537"),
            (276, i32::MIN, "term length"),
            (280, 0, "page size of 0"),
            (280, 5000, "page size of 5000"),
        ];
        for (offset, value, expected) in cases {
            let mut builder = Builder::new();
            builder.metadata(offset, value);
            let fault = LogFile::open(Cursor::new(builder.bytes)).expect_err("not a log buffer");
            assert!(fault.to_string().contains(expected), "{fault}");
        }
    }

    /// A file that others change: it has other bytes at each read, gets shorter, and sometimes fails.
    struct Restless {
        bytes: Cursor<Vec<u8>>,
        changes: Vec<(usize, u8)>,
        cut: Option<usize>,
    }

    impl Read for Restless {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            if let Some((offset, value)) = self.changes.pop() {
                let bytes = self.bytes.get_mut();
                let length = bytes.len().max(1);
                if let Some(byte) = bytes.get_mut(offset % length) {
                    *byte = value;
                }
                if offset % 97 == 0 {
                    return Err(io::Error::other("restless"));
                }
            } else if let Some(cut) = self.cut {
                self.bytes.get_mut().truncate(cut);
            }
            self.bytes.read(target)
        }
    }

    impl Seek for Restless {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.bytes.seek(to)
        }
    }

    /// Reads all that there is, and checks what must hold whatever that is.
    fn read_all<R: Read + Seek>(source: R) -> Result<(), TestCaseError> {
        let Ok(mut log) = LogFile::open(source) else { return Ok(()) };
        let term_length = log.metadata.term_length.unsigned_abs().into();
        for partition in 0..PARTITION_COUNT {
            let mut end = 0;
            for entry in log.entries(partition, usize::MAX) {
                let (offset, length) = match entry {
                    Entry::Frame(frame) => {
                        let length = u64::from(frame.length);
                        prop_assert!(frame.payload.len() as u64 <= length - HEADER_LENGTH);
                        (frame.offset, length)
                    }
                    Entry::Gap { offset, length, .. } => (offset, length),
                    Entry::Fault { offset, .. } => (offset, HEADER_LENGTH),
                };
                prop_assert!(offset >= end && length >= HEADER_LENGTH);
                end = offset + length;
                prop_assert!(end <= term_length);
            }
        }
        Ok(())
    }

    fn changes(count: usize) -> impl Strategy<Value = Vec<(usize, u8)>> {
        // Most of them where they matter: in the first frames, and in the metadata.
        let place = prop_oneof![0..512_usize, METADATA..METADATA + 512, 0..METADATA + 4096];
        prop::collection::vec((place, any::<u8>()), 0..count)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
            read_all(Cursor::new(bytes))?;
        }

        #[test]
        fn any_terms(
            bytes in prop::collection::vec(any::<u8>(), 0..2000),
            partition in 0..PARTITION_COUNT,
        ) {
            let mut builder = Builder::new();
            builder.put(partition * TERM_LENGTH, &bytes);
            read_all(Cursor::new(builder.bytes))?;
        }

        #[test]
        fn damaged_log_buffer(
            changes in changes(40),
            length in prop_oneof![Just(METADATA + 4096), 0..METADATA + 8192],
        ) {
            let mut builder = Builder::new()
                .frame(37, 1, b"hello").frame(1408, 1, b"x").frame(-64, 1, b"").frame(64, 0, b"");
            for (offset, value) in changes {
                builder.bytes[offset] = value;
            }
            builder.bytes.resize(length, 0);
            read_all(Cursor::new(builder.bytes))?;
        }

        #[test]
        fn changing_log_buffer(
            changes in changes(40),
            cut in prop::option::of(0..METADATA + 4096),
        ) {
            let builder = Builder::new().frame(37, 1, b"hello").frame(1408, 1, b"x");
            read_all(Restless { bytes: Cursor::new(builder.bytes), changes, cut })?;
        }
    }
}
