//! Random streams for tests of recorder and replayer.

use rusteron_core::log_buffer::{HEADER_LENGTH, TYPE_PAD, align};
use rusteron_test_support::Random;

use crate::conductor::effect::{Progress, StartRecording};
use crate::recorder::recording::BlockSource;
use crate::segment::{Geometry, frame, sample};
use crate::storage::PAGE_LENGTH;

/// The shortest.
pub(crate) const MTU: usize = 1408;
/// A frame of this length lies on five pages at most.
pub(crate) const MTU_OF_PAGES: usize = 4 * PAGE_LENGTH;
/// Of padding within a term.
const PADDING_LENGTH: usize = 480;

/// Frames of a stream from a position on, as a log buffer has them.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) geometry: Geometry,
    /// The position of the first byte.
    pub(crate) position: i64,
    /// The body of padding is zero.
    pub(crate) bytes: Vec<u8>,
}

impl Stream {
    /// Makes frames of all lengths up to the MTU, from `position` on, until there are `length`
    /// bytes. Ends terms in padding, and has some padding elsewhere.
    pub(crate) fn random(
        random: &mut Random,
        geometry: Geometry,
        position: i64,
        length: usize,
    ) -> Self {
        Self::of_messages(geometry, position, length, &mut |_| {
            let payload_length = match random.below(4) {
                0 => random.below(5),
                1 => random.below(200),
                2 => random.below(MTU - HEADER_LENGTH),
                _ => MTU - HEADER_LENGTH,
            };
            let is_padding = random.percent(2);
            let payload = vec![random.next() as u8; payload_length];
            (!is_padding).then_some(payload)
        })
    }

    /// Makes messages that crashes of a file system's pages are hard on, until there are `length`
    /// bytes: of several pages, up to the end of a page, and full of zeros.
    pub(crate) fn across_pages(
        random: &mut Random,
        geometry: Geometry,
        position: i64,
        length: usize,
    ) -> Self {
        Self::of_messages(geometry, position, length, &mut |term_offset| {
            let rest_of_page = PAGE_LENGTH - term_offset % PAGE_LENGTH;
            let frame_length = match random.below(6) {
                0 => HEADER_LENGTH + random.below(200),
                1 => HEADER_LENGTH + random.below(PAGE_LENGTH),
                2 => rest_of_page,
                3 => rest_of_page + PAGE_LENGTH * random.below(3),
                _ => rest_of_page + random.below(MTU_OF_PAGES - PAGE_LENGTH),
            };
            let value = if random.percent(30) { 0 } else { random.next() as u8 | 1 };
            let is_padding = random.percent(2);
            (!is_padding).then(|| [value].repeat(frame_length - HEADER_LENGTH))
        })
    }

    /// Makes frames of the payloads that `next` returns for offsets in a term, and padding for `None`.
    fn of_messages(
        geometry: Geometry,
        position: i64,
        length: usize,
        next: &mut dyn FnMut(usize) -> Option<Vec<u8>>,
    ) -> Self {
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let position = position + bytes.len() as i64;
            let term_offset = geometry.term_offset(position);
            let term_id = geometry.term_id(position);
            let rest_of_term = geometry.term_length as usize - term_offset;
            let payload = next(term_offset);
            let frame_length =
                align(HEADER_LENGTH + payload.as_ref().map_or(PADDING_LENGTH, Vec::len));
            match payload.filter(|_| frame_length <= rest_of_term) {
                Some(payload) => bytes.extend(sample::data(&payload, term_id, term_offset)),
                None => {
                    let end = bytes.len() + frame_length.min(rest_of_term);
                    bytes.extend(sample::padding(end - bytes.len(), term_id, term_offset));
                    bytes.resize(end, 0);
                }
            }
        }
        Self { geometry, position, bytes }
    }

    /// Lets another stream follow from one of its positions on.
    pub(crate) fn replace_from(&mut self, next: &Self) {
        self.bytes.truncate((next.position - self.position) as usize);
        assert_eq!(self.end(), next.position);
        self.bytes.extend(&next.bytes);
    }

    pub(crate) fn end(&self) -> i64 {
        self.position + self.bytes.len() as i64
    }

    /// Returns the frames with their positions: whole if they are data, otherwise the header.
    pub(crate) fn frames(&self) -> Vec<(i64, &[u8])> {
        let mut frames = Vec::new();
        let mut offset = 0;
        while offset < self.bytes.len() {
            let rest = &self.bytes[offset..];
            let length = frame::aligned_length(rest).unwrap();
            let is_padding = frame::frame_type(rest) == TYPE_PAD;
            let shown = if is_padding { HEADER_LENGTH } else { length };
            frames.push((self.position + offset as i64, &rest[..shown]));
            offset += length;
        }
        frames
    }

    /// Returns the stream from a position on, where a frame begins.
    pub(crate) fn from(&self, position: i64) -> Self {
        let bytes = self.bytes[(position - self.position) as usize..].to_vec();
        Self { position, bytes, ..self.clone() }
    }

    /// Records it as the beginning of a recording, or as an extension.
    pub(crate) fn start_recording(&self) -> StartRecording {
        StartRecording {
            geometry: self.geometry,
            subscription: 11.into(),
            image: 12.into(),
            session_id: sample::SESSION_ID,
            mtu: MTU_OF_PAGES as i32,
            stripped_channel: "aeron:ipc".to_owned(),
            source_identity: "aeron:ipc".to_owned(),
            join_position: self.position,
            is_new: false,
            progress: Progress::from(self.position),
        }
    }
}

/// An image of a stream.
#[derive(Debug)]
pub(crate) struct StreamSource {
    stream: Stream,
    offset: usize,
    pub(crate) is_end_of_stream: bool,
    pub(crate) is_closed: bool,
    /// It does not hold up its publisher any more.
    pub(crate) is_lost: bool,
}

impl StreamSource {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, offset: 0, is_end_of_stream: false, is_closed: false, is_lost: false }
    }
}

impl BlockSource for StreamSource {
    fn poll_block(&mut self, limit: usize, handler: &mut dyn FnMut(&[u8])) -> usize {
        let Stream { geometry, position, bytes } = &self.stream;
        let term_offset = geometry.term_offset(position + self.offset as i64);
        let rest_of_term = geometry.term_length as usize - term_offset;
        let available = &bytes[self.offset..];
        let mut length = 0;
        while length < limit.min(available.len()).min(rest_of_term) {
            let rest = &available[length..];
            let Some(frame_length) = frame::aligned_length(rest) else { break };
            if frame::frame_type(rest) == TYPE_PAD {
                // A block of its own, however long.
                if length == 0 {
                    length = frame_length;
                }
                break;
            }
            if length + frame_length > limit {
                break;
            }
            length += frame_length;
        }
        if length > 0 && !self.is_closed {
            handler(&available[..length]);
            self.offset += length;
            return if self.is_lost { 0 } else { length };
        }
        0
    }

    fn is_end_of_stream(&self) -> bool {
        self.is_end_of_stream && self.offset == self.stream.bytes.len()
    }

    fn is_closed(&self) -> bool {
        self.is_closed
    }
}
