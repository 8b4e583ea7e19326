//! An entry of the catalog: its header, and the descriptor of a recording.

use std::fmt;

use rusteron_core::log_buffer::FRAME_ALIGNMENT;

use crate::catalog::header::{ALIGNMENT, i32_at, i64_at};
use crate::ids::RecordingId;
use crate::segment::Geometry;
use crate::segment::checksum::Checksum;

/// The stop position of an active recording.
pub(crate) const NULL_POSITION: i64 = -1;
/// The stop time of an active recording.
pub(crate) const NULL_TIMESTAMP: i64 = -1;

/// The length of an entry's header.
pub(super) const ENTRY_HEADER_LENGTH: usize = 32;
/// The length of an entry up to its texts.
pub(super) const FIXED_LENGTH: usize = 112;

pub(super) const STATE_OFFSET: usize = 4;
pub(super) const CHECKSUM_OFFSET: usize = 8;
pub(super) const RECORDING_ID_OFFSET: usize = 48;
const STOP_TIMESTAMP_OFFSET: usize = 64;
const STOP_POSITION_OFFSET: usize = 80;

/// The state of a recording in the catalog. Clients see valid recordings only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingState {
    /// Excluded by an operator, or by a verification.
    Invalid,
    /// The state of a recording from its start on.
    Valid,
    /// Its segments have been deleted, or are about to be.
    Deleted,
}

impl RecordingState {
    pub(super) fn of(entry: &[u8]) -> Result<Self, String> {
        match i32_at(entry, STATE_OFFSET) {
            0 => Ok(Self::Invalid),
            1 => Ok(Self::Valid),
            2 => Ok(Self::Deleted),
            other => Err(format!("state {other}: must be from 0 to 2")),
        }
    }

    pub(super) fn to_bytes(self) -> [u8; 4] {
        (self as i32).to_le_bytes()
    }
}

/// A recording. Positions, lengths and the MTU are in bytes, times in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// The session and the request that extended the recording last, or 0.
    pub(crate) control_session_id: i64,
    pub(crate) correlation_id: i64,
    pub(crate) recording_id: RecordingId,
    pub(crate) start_timestamp: i64,
    /// [`NULL_TIMESTAMP`] while the recording is active.
    pub(crate) stop_timestamp: i64,
    pub(crate) start_position: i64,
    /// [`NULL_POSITION`] while the recording is active.
    pub(crate) stop_position: i64,
    pub(crate) initial_term_id: i32,
    pub(crate) segment_length: i32,
    pub(crate) term_length: i32,
    pub(crate) mtu: i32,
    /// Of the image that was recorded last.
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
}

impl Descriptor {
    /// Tells whether the recording has no end yet.
    pub(crate) fn is_active(&self) -> bool {
        self.stop_position == NULL_POSITION
    }

    /// Reads a valid entry, or says what is wrong with it.
    pub(super) fn read(entry: &[u8]) -> Result<Self, String> {
        let fixed = entry.first_chunk().ok_or_else(|| {
            format!("entry of {} bytes: must have at least {FIXED_LENGTH}", entry.len())
        })?;
        let descriptor = Self::decode(fixed);
        descriptor.check()?;
        Texts::read(entry).ok_or("texts longer than the entry")?;
        Ok(descriptor)
    }

    /// Reads an entry as it is.
    pub(super) fn decode(entry: &[u8; FIXED_LENGTH]) -> Self {
        Self {
            control_session_id: i64_at(entry, 32),
            correlation_id: i64_at(entry, 40),
            recording_id: stated_id(entry),
            start_timestamp: i64_at(entry, 56),
            stop_timestamp: i64_at(entry, 64),
            start_position: i64_at(entry, 72),
            stop_position: i64_at(entry, 80),
            initial_term_id: i32_at(entry, 88),
            segment_length: i32_at(entry, 92),
            term_length: i32_at(entry, 96),
            mtu: i32_at(entry, 100),
            session_id: i32_at(entry, 104),
            stream_id: i32_at(entry, 108),
        }
    }

    /// Returns what segments and frames follow from.
    pub(crate) fn geometry(&self) -> Geometry {
        Geometry {
            recording_id: self.recording_id,
            start_position: self.start_position,
            initial_term_id: self.initial_term_id,
            term_length: self.term_length,
            segment_length: self.segment_length,
            stream_id: self.stream_id,
        }
    }

    /// Checks what arithmetic on positions depends on. Like Java's archive, the server lists
    /// recordings whose other values are wrong, and refuses what cannot be done with them.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self { recording_id: id, stop_position: stop, .. } = *self;
        if id.get() < 0 {
            return Err(format!("recording id {id}: must not be negative"));
        }
        self.geometry().check().map_err(|wrong| format!("recording {id}: {wrong}"))?;
        if !self.is_active() && stop < 0 {
            return Err(format!("recording {id}: stop position {stop}: must not be negative"));
        }
        Ok(())
    }

    /// Checks that frames can begin at the start and end at the end, as Java's tool does.
    pub(super) fn check_edges(&self) -> Result<(), String> {
        let Self { recording_id: id, start_position: start, stop_position: stop, .. } = *self;
        let is_aligned = |position: i64| position % FRAME_ALIGNMENT as i64 == 0;
        if !is_aligned(start) {
            return Err(format!(
                "recording {id}: start position {start}: must be a multiple of {FRAME_ALIGNMENT}"
            ));
        }
        if !self.is_active() && (stop < start || !is_aligned(stop)) {
            return Err(format!(
                "recording {id}: stop position {stop}: must be a multiple of {FRAME_ALIGNMENT} from {start} on"
            ));
        }
        Ok(())
    }

    /// Returns the valid entry of the recording, of at least `min_length` bytes. Like Java's, the checksum covers
    /// everything behind the header, padding included.
    pub(super) fn to_entry(
        self,
        texts: &Texts<'_>,
        min_length: usize,
        checksum: Option<Checksum>,
    ) -> Vec<u8> {
        let mut entry = vec![0; FIXED_LENGTH];
        for text in [texts.stripped_channel, texts.original_channel, texts.source_identity] {
            entry.extend_from_slice(&(text.len() as u32).to_le_bytes());
            entry.extend_from_slice(text);
        }
        entry.resize(entry.len().next_multiple_of(ALIGNMENT).max(min_length), 0);
        let length = (entry.len() - ENTRY_HEADER_LENGTH) as i32;
        entry[..4].copy_from_slice(&length.to_le_bytes());
        entry[STATE_OFFSET..][..4].copy_from_slice(&RecordingState::Valid.to_bytes());
        self.write(&mut entry, checksum);
        entry
    }

    /// Writes the descriptor into its entry, and the checksum if there are any.
    pub(super) fn write(self, entry: &mut [u8], checksum: Option<Checksum>) {
        let longs = [
            (32, self.control_session_id),
            (40, self.correlation_id),
            (RECORDING_ID_OFFSET, self.recording_id.get()),
            (56, self.start_timestamp),
            (STOP_TIMESTAMP_OFFSET, self.stop_timestamp),
            (72, self.start_position),
            (STOP_POSITION_OFFSET, self.stop_position),
        ];
        let ints = [
            (88, self.initial_term_id),
            (92, self.segment_length),
            (96, self.term_length),
            (100, self.mtu),
            (104, self.session_id),
            (108, self.stream_id),
        ];
        for (offset, value) in longs {
            entry[offset..][..8].copy_from_slice(&value.to_le_bytes());
        }
        for (offset, value) in ints {
            entry[offset..][..4].copy_from_slice(&value.to_le_bytes());
        }
        if let Some(checksum) = checksum {
            let end = stated_end(entry);
            let value = checksum.of(&entry[ENTRY_HEADER_LENGTH..end]);
            entry[CHECKSUM_OFFSET..][..4].copy_from_slice(&value.to_le_bytes());
        }
    }
}

/// An entry's checksum, and the one that it must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrongChecksum {
    pub(crate) stored: i32,
    pub(crate) computed: i32,
}

impl fmt::Display for WrongChecksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "catalog checksum={}, computed checksum={}", self.stored, self.computed)
    }
}

/// Checks that an entry is the one that its checksum was made of, by either kind of checksum. An
/// archive without checksums leaves none.
///
/// Java's archive leaves the checksum of the active entry when it finds an end after a crash, and
/// that of fewer bytes when an entry gets shorter texts.
pub(crate) fn check_checksum(entry: &[u8]) -> Result<(), WrongChecksum> {
    let stored = i32_at(entry, CHECKSUM_OFFSET);
    let end = stated_end(entry);
    if stored == 0 || end < FIXED_LENGTH {
        return Ok(());
    }
    let texts = Texts::read(entry).unwrap_or(Texts::EMPTY);
    let texts = [texts.stripped_channel, texts.original_channel, texts.source_identity];
    let texts_end: usize = FIXED_LENGTH + texts.iter().map(|text| 4 + text.len()).sum::<usize>();
    let mut active = entry.to_vec();
    active[STOP_TIMESTAMP_OFFSET..][..8].copy_from_slice(&NULL_TIMESTAMP.to_le_bytes());
    active[STOP_POSITION_OFFSET..][..8].copy_from_slice(&NULL_POSITION.to_le_bytes());
    let ends = [end, texts_end.min(end), texts_end.next_multiple_of(ALIGNMENT).min(end)];
    let is_of = |bytes: &[u8], end: usize| {
        let kinds = [Checksum::Crc32, Checksum::Crc32c];
        kinds.iter().any(|kind| kind.of(&bytes[ENTRY_HEADER_LENGTH..end]) == stored)
    };
    if ends.iter().any(|&end| is_of(entry, end) || is_of(&active, end)) {
        return Ok(());
    }
    Err(WrongChecksum { stored, computed: Checksum::Crc32.of(&entry[ENTRY_HEADER_LENGTH..end]) })
}

/// The texts of an entry. They are ASCII unless a client or a corrupt file has other bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Texts<'a> {
    pub(super) stripped_channel: &'a [u8],
    pub(super) original_channel: &'a [u8],
    pub(super) source_identity: &'a [u8],
}

impl<'a> Texts<'a> {
    pub(super) const EMPTY: Self =
        Self { stripped_channel: b"", original_channel: b"", source_identity: b"" };

    /// Reads the texts of an entry, if they end in it.
    pub(super) fn read(entry: &'a [u8]) -> Option<Self> {
        let (stripped_channel, rest) = split_text(entry.get(FIXED_LENGTH..)?)?;
        let (original_channel, rest) = split_text(rest)?;
        let (source_identity, _) = split_text(rest)?;
        Some(Self { stripped_channel, original_channel, source_identity })
    }
}

fn split_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// Returns the length of the entry that begins with these bytes, header and padding included, or `None` where the
/// entries end.
pub(super) fn entry_length(bytes: &[u8]) -> Option<usize> {
    let length = i32::from_le_bytes(*bytes.first_chunk()?);
    (length > 0).then(|| (length as usize + ENTRY_HEADER_LENGTH).next_multiple_of(ALIGNMENT))
}

/// Returns where the descriptor ends by the entry's length. Padding may follow.
pub(super) fn stated_id(entry: &[u8]) -> RecordingId {
    RecordingId::new(i64_at(entry, RECORDING_ID_OFFSET))
}

pub(super) fn stated_end(entry: &[u8]) -> usize {
    (ENTRY_HEADER_LENGTH + i32_at(entry, 0) as usize).min(entry.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESCRIPTOR: Descriptor = Descriptor {
        control_session_id: 1,
        correlation_id: 2,
        recording_id: RecordingId::new(3),
        start_timestamp: 4,
        stop_timestamp: 5,
        start_position: 64,
        stop_position: 96,
        initial_term_id: -8,
        segment_length: 128 * 1024,
        term_length: 64 * 1024,
        mtu: 1408,
        session_id: -12,
        stream_id: 13,
    };
    const TEXTS: Texts<'static> = Texts {
        stripped_channel: b"aeron:ipc",
        original_channel: b"aeron:ipc?mtu=1408",
        source_identity: b"aeron:ipc",
    };

    #[test]
    fn entry_has_layout_of_java() {
        let entry = DESCRIPTOR.to_entry(&TEXTS, 0, None);
        assert_eq!(entry.len(), 192);
        assert_eq!(entry_length(&entry), Some(192));
        assert_eq!(entry[..12], [160, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(entry[12..32], [0; 20]);
        let numbers = [(32, 1), (40, 2), (48, 3), (56, 4), (64, 5), (72, 64), (80, 96)];
        assert!(numbers.iter().all(|&(offset, number)| i64_at(&entry, offset) == number));
        let numbers = [(88, -8), (92, 131_072), (96, 65_536), (100, 1408), (104, -12), (108, 13)];
        assert!(numbers.iter().all(|&(offset, number)| i32_at(&entry, offset) == number));
        assert_eq!(entry[112..125], *b"\x09\0\0\0aeron:ipc");
        assert_eq!(entry[125..147], *b"\x12\0\0\0aeron:ipc?mtu=1408");
        assert_eq!(entry[147..160], *b"\x09\0\0\0aeron:ipc");
        assert_eq!(entry[160..], [0; 32]);
        assert_eq!(Descriptor::read(&entry), Ok(DESCRIPTOR));
        assert_eq!(Texts::read(&entry), Some(TEXTS));
    }

    #[test]
    fn checksum_covers_stated_length() {
        for min_length in [0, 256] {
            let entry = DESCRIPTOR.to_entry(&TEXTS, min_length, Some(Checksum::Crc32));
            let length = i32_at(&entry, 0) as usize;
            assert_eq!(entry.len(), ENTRY_HEADER_LENGTH + length);
            let expected = Checksum::Crc32.of(&entry[ENTRY_HEADER_LENGTH..][..length]);
            assert_eq!(i32_at(&entry, CHECKSUM_OFFSET), expected);
        }
    }

    #[test]
    fn wrong_descriptors_are_refused() {
        type Change = fn(&mut Descriptor);
        let refused = |change: Change| {
            let mut descriptor = DESCRIPTOR;
            change(&mut descriptor);
            Descriptor::read(&descriptor.to_entry(&TEXTS, 0, None)).expect_err("a wrong descriptor")
        };
        assert_eq!(
            refused(|d| d.recording_id = (-1).into()),
            "recording id -1: must not be negative"
        );
        let cases: [(&str, Change); 7] = [
            ("start position -32", |d| d.start_position = -32),
            ("stop position -2", |d| d.stop_position = -2),
            ("term length 0", |d| d.term_length = 0),
            ("term length 65537", |d| d.term_length = 65537),
            ("term length -2147483648", |d| d.term_length = i32::MIN),
            ("segment length 32768", |d| d.segment_length = 32768),
            ("segment length 196608", |d| d.segment_length = 196_608),
        ];
        for (text, change) in cases {
            let refusal = refused(change);
            assert!(refusal.starts_with(&format!("recording 3: {text}: must ")), "{refusal}");
        }
        let active = Descriptor { stop_position: NULL_POSITION, ..DESCRIPTOR };
        assert_eq!(Descriptor::read(&active.to_entry(&TEXTS, 0, None)), Ok(active));
    }

    #[test]
    fn edges_between_frames_are_read_and_named() {
        let wrong = [
            ("start position 65", Descriptor { start_position: 65, ..DESCRIPTOR }),
            ("stop position 32", Descriptor { stop_position: 32, ..DESCRIPTOR }),
            ("stop position 97", Descriptor { stop_position: 97, ..DESCRIPTOR }),
        ];
        for (text, descriptor) in wrong {
            assert_eq!(Descriptor::read(&descriptor.to_entry(&TEXTS, 0, None)), Ok(descriptor));
            let fault = descriptor.check_edges().expect_err("a wrong edge");
            assert!(fault.starts_with(&format!("recording 3: {text}: must be")), "{fault}");
        }
        assert_eq!(DESCRIPTOR.check_edges(), Ok(()));
    }

    #[test]
    fn texts_beyond_entry_are_refused() {
        let entry = DESCRIPTOR.to_entry(&TEXTS, 0, None);
        for offset in [112, 125, 147] {
            for length in [u32::MAX, 70] {
                let mut entry = entry.clone();
                entry[offset..][..4].copy_from_slice(&length.to_le_bytes());
                assert!(Descriptor::read(&entry).is_err(), "length {length} at {offset}");
            }
        }
        assert!((0..160).all(|length| Descriptor::read(&entry[..length]).is_err()));
    }

    #[test]
    fn entries_end_at_lengths_up_to_zero() {
        assert_eq!(entry_length(&1_i32.to_le_bytes()), Some(64));
        assert_eq!(entry_length(&33_i32.to_le_bytes()), Some(128));
        assert_eq!(entry_length(&i32::MAX.to_le_bytes()), Some((1 << 31) + 64));
        assert_eq!(entry_length(&0_i32.to_le_bytes()), None);
        assert_eq!(entry_length(&i32::MIN.to_le_bytes()), None);
        assert_eq!(entry_length(&[1, 0, 0]), None);
    }
}
