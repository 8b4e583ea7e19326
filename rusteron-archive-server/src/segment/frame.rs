//! Headers of recorded frames, which can be anything: files get damaged.

use std::fmt;

use rusteron_core::log_buffer::{
    CURRENT_VERSION, FRAME_LENGTH, HEADER_LENGTH, SESSION_ID, STREAM_ID, TERM_ID, TERM_OFFSET,
    TYPE, TYPE_DATA, TYPE_PAD, VERSION, align,
};

use crate::segment::checksum::Checksum;

/// The most bytes of a data frame, header included: the longest MTU.
pub(crate) const MAX_DATA_LENGTH: usize = 65_504;

/// A header's bytes.
pub(crate) type Header = [u8; HEADER_LENGTH];

/// A frame whose header has been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    /// With the header, and without the bytes that align the next frame: from 32 to the rest of the term.
    pub(crate) length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Data,
    /// Only the header is in the file.
    Padding,
}

impl Frame {
    /// Returns the distance to the next frame.
    pub(crate) fn aligned_length(self) -> usize {
        align(self.length)
    }
}

/// What all frames of a recording have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameCheck {
    pub(crate) stream_id: i32,
    pub(crate) term_length: usize,
    /// The most bytes of a data frame, header included.
    pub(crate) max_data_length: usize,
}

impl FrameCheck {
    /// Checks the header of the frame at an offset of a term. Only a type and length that pass lead to the next frame.
    #[inline]
    pub(crate) fn check(
        &self,
        header: &Header,
        term_id: i32,
        term_offset: usize,
    ) -> Result<Frame, FrameFault> {
        let length = int_at(header, FRAME_LENGTH);
        if length <= 0 {
            return Err(FrameFault::Missing);
        }
        self.check_place(header, term_id, term_offset)?;
        let remaining = self.term_length.saturating_sub(term_offset);
        let (kind, max) = match frame_type(header) {
            // Receivers drop other versions, and senders would repeat them for ever.
            TYPE_DATA if header[VERSION] != CURRENT_VERSION => {
                return Err(FrameFault::Version(header[VERSION]));
            }
            TYPE_DATA => (FrameKind::Data, self.max_data_length.min(remaining)),
            TYPE_PAD => (FrameKind::Padding, remaining),
            other => return Err(FrameFault::Type(other)),
        };
        // Not negative, and terms and their offsets are multiples of the alignment.
        match length as usize {
            length if (HEADER_LENGTH..=max).contains(&length) => Ok(Frame { kind, length }),
            _ => Err(FrameFault::Length(length)),
        }
    }

    /// Returns the aligned length of the frame at the start of `bytes`, if it is a data frame of the current version that
    /// passes [`check`](Self::check), and lies in `bytes` as a whole. Takes fewer instructions than the check.
    #[inline]
    pub(crate) fn data_length(
        &self,
        bytes: &[u8],
        term_id: i32,
        term_offset: usize,
    ) -> Option<usize> {
        /// Version and type, without the flags between them.
        const KIND_MASK: u32 = 0xffff_00ff;
        const KIND: u32 = (TYPE_DATA as u32) << 16 | CURRENT_VERSION as u32;
        let header: &Header = bytes.first_chunk()?;
        let length = usize::try_from(int_at(header, FRAME_LENGTH)).ok()?;
        let ids = u64::from(self.stream_id as u32) | u64::from(term_id as u32) << 32;
        let max = self.max_data_length.min(self.term_length.saturating_sub(term_offset));
        let is_data = int_at(header, VERSION) as u32 & KIND_MASK == KIND
            && int_at(header, TERM_OFFSET) == term_offset as i32
            && long_at(header, STREAM_ID) == ids
            && (HEADER_LENGTH..=max).contains(&length)
            && align(length) <= bytes.len();
        is_data.then(|| align(length))
    }

    /// Returns how many bytes at the start of `block` are whole frames of a session that pass
    /// [`check`](Self::check), and why the next one does not, if there is one.
    pub(crate) fn check_block(
        &self,
        block: &[u8],
        session: i32,
        term_id: i32,
        term_offset: usize,
    ) -> (usize, Option<FrameFault>) {
        let mut offset = 0;
        while let Some(header) = block[offset..].first_chunk::<HEADER_LENGTH>() {
            let rest = &block[offset..];
            let its_offset = term_offset + offset;
            let length = match self.data_length(rest, term_id, its_offset) {
                Some(length) => Ok(length),
                None => self.check(header, term_id, its_offset).map(Frame::aligned_length),
            };
            offset += match length {
                Ok(_) if session_id(header) != session => {
                    return (offset, Some(FrameFault::SessionId(session_id(header))));
                }
                Ok(length) if length > rest.len() => return (offset, Some(FrameFault::Incomplete)),
                Ok(length) => length,
                Err(fault) => return (offset, Some(fault)),
            };
        }
        (offset, None)
    }

    /// Checks that a header belongs to this place of the stream. Java checks no more where a replay begins.
    #[inline]
    pub(crate) fn check_place(
        &self,
        header: &Header,
        term_id: i32,
        term_offset: usize,
    ) -> Result<(), FrameFault> {
        let require = |field, expected, fault: fn(i32) -> FrameFault| {
            let found = int_at(header, field);
            if found == expected { Ok(()) } else { Err(fault(found)) }
        };
        require(TERM_OFFSET, term_offset as i32, FrameFault::TermOffset)?;
        require(TERM_ID, term_id, FrameFault::TermId)?;
        require(STREAM_ID, self.stream_id, FrameFault::StreamId)
    }
}

/// Why there is no frame. Numbers are what the header has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameFault {
    /// The length is zero or negative, as behind the last frame.
    Missing,
    /// The bytes end within the frame.
    Incomplete,
    Length(i32),
    Type(u16),
    TermOffset(i32),
    TermId(i32),
    StreamId(i32),
    SessionId(i32),
    Version(u8),
    Checksum {
        recorded: i32,
        computed: i32,
    },
}

impl fmt::Display for FrameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("no frame"),
            Self::Incomplete => f.write_str("the bytes end within the frame"),
            Self::Length(length) => write!(f, "frame length {length} is out of range"),
            Self::Type(found) => write!(f, "frame type {found} is neither data nor padding"),
            Self::TermOffset(found) => write!(f, "wrong term offset {found}"),
            Self::TermId(found) => write!(f, "wrong term id {found}"),
            Self::StreamId(found) => write!(f, "wrong stream id {found}"),
            Self::SessionId(found) => write!(f, "wrong session id {found}"),
            Self::Version(found) => write!(f, "frame version {found} is unknown"),
            Self::Checksum { recorded, computed } => {
                write!(f, "recorded checksum={recorded}, computed checksum={computed}")
            }
        }
    }
}

/// Returns the type of the frame at the start of `bytes`, which hold a header.
#[inline]
pub(crate) fn frame_type(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[TYPE], bytes[TYPE + 1]])
}

/// Returns the aligned length of the frame at the start of `bytes`: `None` if there is no header, or if its length is
/// shorter than a header.
#[inline]
pub(crate) fn aligned_length(bytes: &[u8]) -> Option<usize> {
    let header: &Header = bytes.first_chunk()?;
    let length = usize::try_from(int_at(header, FRAME_LENGTH)).ok()?;
    (length >= HEADER_LENGTH).then(|| align(length))
}

/// Returns why the frame that fills `bytes`, alignment included, does not match the checksum in its session id.
pub(crate) fn checksum_fault(bytes: &[u8], checksum: Checksum) -> Option<FrameFault> {
    let recorded = session_id(bytes);
    let computed = checksum.of(&bytes[HEADER_LENGTH..]);
    (recorded != computed).then_some(FrameFault::Checksum { recorded, computed })
}

/// Returns the session id of the frame at the start of `bytes`, which hold a header. It may be a checksum.
#[inline]
pub(crate) fn session_id(bytes: &[u8]) -> i32 {
    int_at(bytes, SESSION_ID)
}

#[inline]
pub(crate) fn set_session_id(bytes: &mut [u8], session_id: i32) {
    bytes[SESSION_ID..][..4].copy_from_slice(&session_id.to_le_bytes());
}

#[cfg(test)]
pub(crate) fn set_stream_id(bytes: &mut [u8], stream_id: i32) {
    bytes[STREAM_ID..][..4].copy_from_slice(&stream_id.to_le_bytes());
}

/// Puts session id and stream id into the header at the start of `bytes`.
#[inline]
pub(crate) fn set_ids(bytes: &mut [u8], session_id: i32, stream_id: i32) {
    let ids = u64::from(session_id as u32) | u64::from(stream_id as u32) << 32;
    bytes[SESSION_ID..][..8].copy_from_slice(&ids.to_le_bytes());
}

#[inline]
fn long_at(bytes: &Header, at: usize) -> u64 {
    u64::from(int_at(bytes, at) as u32) | u64::from(int_at(bytes, at + 4) as u32) << 32
}

#[inline]
fn int_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::sample;

    const CHECK: FrameCheck =
        FrameCheck { stream_id: sample::STREAM_ID, term_length: 65_536, max_data_length: 1_408 };

    fn check(header: &Header) -> Result<Frame, FrameFault> {
        CHECK.check(header, 7, 64_512)
    }

    fn header(length: i32, frame_type: u16) -> Header {
        let mut header = sample::header(length as usize, frame_type, 7, 64_512);
        header[..4].copy_from_slice(&length.to_le_bytes());
        header
    }

    #[test]
    fn frames_within_the_term_pass() {
        for length in [32, 33, 100, 1_024] {
            let data = Frame { kind: FrameKind::Data, length };
            assert_eq!(check(&header(length as i32, TYPE_DATA)), Ok(data));
            let padding = Frame { kind: FrameKind::Padding, length };
            assert_eq!(check(&header(length as i32, TYPE_PAD)), Ok(padding));
        }
    }

    #[test]
    fn lengths_out_of_range_are_rejected() {
        for length in [1, 31, 1_025, i32::MAX] {
            for frame_type in [TYPE_DATA, TYPE_PAD] {
                let header = header(length, frame_type);
                assert_eq!(check(&header), Err(FrameFault::Length(length)));
            }
        }
        for length in [0, -1, i32::MIN] {
            assert_eq!(check(&header(length, TYPE_DATA)), Err(FrameFault::Missing));
        }
        let long = sample::header(1_409, TYPE_DATA, 7, 0);
        assert_eq!(CHECK.check(&long, 7, 0), Err(FrameFault::Length(1_409)));
        let padding = sample::header(65_536, TYPE_PAD, 7, 0);
        assert!(CHECK.check(&padding, 7, 0).is_ok());
    }

    #[test]
    fn foreign_fields_are_rejected() {
        assert_eq!(check(&header(64, 2)), Err(FrameFault::Type(2)));
        let header = header(64, TYPE_DATA);
        assert_eq!(CHECK.check(&header, 8, 64_512), Err(FrameFault::TermId(7)));
        assert_eq!(CHECK.check(&header, 7, 0), Err(FrameFault::TermOffset(64_512)));
        let other = FrameCheck { stream_id: 1, ..CHECK };
        let fault = Err(FrameFault::StreamId(sample::STREAM_ID));
        assert_eq!(other.check(&header, 7, 64_512), fault);
        // A place behind the term leaves no length.
        let behind = sample::header(64, TYPE_DATA, 7, 65_536);
        assert_eq!(CHECK.check(&behind, 7, 65_536), Err(FrameFault::Length(64)));
    }

    #[test]
    fn data_length_agrees_with_the_check() {
        let data = sample::data(&[1; 100], 7, 64_512);
        let agree = |bytes: &[u8]| {
            let header: &Header = bytes.first_chunk().expect("a header");
            let checked = check(header)
                .ok()
                .filter(|it| it.kind == FrameKind::Data && it.aligned_length() <= bytes.len());
            let length = CHECK.data_length(bytes, 7, 64_512);
            assert_eq!(length, checked.map(Frame::aligned_length), "{header:?}");
            length
        };
        assert_eq!(agree(&data), Some(160));
        assert_eq!(agree(&data[..159]), None);
        assert_eq!(CHECK.data_length(&data[..31], 7, 64_512), None);
        let mut differ = 0;
        for at in 0..HEADER_LENGTH {
            for bit in 0..8 {
                let mut bytes = data.clone();
                bytes[at] ^= 1 << bit;
                differ += usize::from(agree(&bytes).is_none());
            }
        }
        // Flags, session id and reserved value may be anything; the length may be some others.
        assert!((100..=160).contains(&differ), "{differ}");
    }

    #[test]
    fn aligned_length_needs_a_header() {
        let header = header(33, TYPE_DATA);
        assert_eq!(aligned_length(&header), Some(64));
        assert_eq!(aligned_length(&header[..31]), None);
        assert_eq!(aligned_length(&[0; 32]), None);
        assert_eq!(aligned_length(&[0xff; 32]), None);
    }

    #[test]
    fn ids_are_put_in() {
        let mut header = header(64, TYPE_DATA);
        set_ids(&mut header, -5, 6);
        assert_eq!(session_id(&header), -5);
        let other = FrameCheck { stream_id: 6, ..CHECK };
        assert!(other.check(&header, 7, 64_512).is_ok());
    }
}
