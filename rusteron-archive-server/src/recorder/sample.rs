//! Random streams for tests of recorder and replayer.

use rusteron_core::log_buffer::{HEADER_LENGTH, TYPE_PAD, align};
use rusteron_test_support::Random;

use crate::conductor::effect::{Progress, StartRecording};
use crate::recorder::recording::BlockSource;
use crate::segment::{Geometry, frame, sample};

/// The shortest.
pub(crate) const MTU: usize = 1408;

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
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let position = position + bytes.len() as i64;
            let term_offset = geometry.term_offset(position);
            let term_id = geometry.term_id(position);
            let rest_of_term = geometry.term_length as usize - term_offset;
            let payload_length = match random.below(4) {
                0 => random.below(5),
                1 => random.below(200),
                2 => random.below(MTU - HEADER_LENGTH),
                _ => MTU - HEADER_LENGTH,
            };
            let end = bytes.len() + align(HEADER_LENGTH + payload_length).min(rest_of_term);
            if align(HEADER_LENGTH + payload_length) > rest_of_term || random.percent(2) {
                bytes.extend(sample::padding(end - bytes.len(), term_id, term_offset));
                bytes.resize(end, 0);
            } else {
                let payload = vec![random.next() as u8; payload_length];
                bytes.extend(sample::data(&payload, term_id, term_offset));
            }
        }
        Self { geometry, position, bytes }
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
            subscription: 11,
            image: 12,
            session_id: 13,
            stripped_channel: "aeron:ipc".to_owned(),
            source_identity: "aeron:ipc".to_owned(),
            join_position: self.position,
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
}

impl StreamSource {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, offset: 0, is_end_of_stream: false, is_closed: false }
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
            let frame_length = frame::aligned_length(rest).unwrap();
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
            return length;
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
