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
    let metadata = log.metadata();
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
    let mut log =
        Builder::new().frame(32 + 5, 1, b"hello").frame(64, 0, b"xxx").frame(-32, 1, b"").open();
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
        let fault = LogFile::open(Cursor::new(whole[..length].to_vec())).expect_err("too short");
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
    let term_length = log.metadata().term_length.unsigned_abs().into();
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
