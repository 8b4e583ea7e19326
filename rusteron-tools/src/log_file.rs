//! Reads a log buffer file. The file may be damaged, foreign, or in use.
//!
//! The file is read, not mapped: if the file shrinks meanwhile, a read only returns fewer bytes. The
//! layout follows `aeron_logbuffer_descriptor.h` and `aeron_udp_protocol.h`: three terms of the same
//! length, and 4,096 bytes at the end that describe them.

pub(crate) mod entries;
pub(crate) mod frame;
pub(crate) mod metadata;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use rusteron_core::files;

use self::entries::Entries;
use self::metadata::{METADATA_LENGTH, Metadata};

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
        Self::open(files::open(path, OpenOptions::new().read(true))?)
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
        Entries::new(self, partition, payload_limit)
    }
}

/// Little-endian numbers in bytes. All offsets lie within the bytes.
struct Fields<'a>(&'a [u8]);

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

    use super::entries::Entry;
    use super::frame::HEADER_LENGTH;
    use super::metadata::PARTITION_COUNT;
    use super::*;

    pub(super) const TERM_LENGTH: usize = 64 * 1024;
    const METADATA: usize = PARTITION_COUNT * TERM_LENGTH;
    const INITIAL_TERM_ID: i32 = i32::MAX;

    /// A file as a driver makes it, with frames in its first term.
    pub(super) struct Builder {
        bytes: Vec<u8>,
        pub(super) offset: usize,
    }

    impl Builder {
        pub(super) fn new() -> Self {
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

        pub(super) fn put(&mut self, offset: usize, bytes: &[u8]) {
            self.bytes[offset..][..bytes.len()].copy_from_slice(bytes);
        }

        fn metadata(&mut self, offset: usize, value: i32) {
            self.put(METADATA + offset, &value.to_le_bytes());
        }

        pub(super) fn frame(mut self, length: i32, frame_type: u16, payload: &[u8]) -> Self {
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

        pub(super) fn open(self) -> LogFile<Cursor<Vec<u8>>> {
            LogFile::open(Cursor::new(self.bytes)).expect("a log buffer")
        }
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
        fn changing_log_buffer(
            changes in changes(40),
            cut in prop::option::of(0..METADATA + 4096),
        ) {
            let builder = Builder::new()
                .frame(37, 1, b"hello").frame(1408, 1, b"x").frame(-64, 1, b"").frame(64, 0, b"");
            read_all(Restless { bytes: Cursor::new(builder.bytes), changes, cut })?;
        }
    }
}
