//! The frames of an image's term, and the progress of a poll.

use std::slice;

use crate::subscription::assembly::Assembly;
use crate::subscription::image::Header;
use crate::subscription::image::fields::ImageFields;
use rusteron_core::error::Position;
use rusteron_core::log_buffer::{self, HEADER_LENGTH, align};

/// The end of a term, as an address and as a position.
#[derive(Clone, Copy)]
pub(crate) struct Term {
    pub(crate) end: *const u8,
    pub(crate) end_position: Position,
}

impl Term {
    /// Returns the cursor of a limit; see [`Progress`]. For a limit beyond the term, returns the
    /// cursor of the term's end.
    #[inline(always)]
    pub(crate) fn cursor_of(self, limit: Position) -> i64 {
        limit.saturating_sub(self.end_position).min(0)
    }
}

/// A published frame: its length is set, and it does not change while it is used.
pub(crate) struct Frame<'a> {
    image: &'a ImageFields,
    start: *const u8,
    payload_length: usize,
}

impl<'a> Frame<'a> {
    /// # Safety
    /// For the lifetime, a frame with such a payload is there, published and unchanged.
    #[inline(always)]
    pub(crate) unsafe fn new(
        image: &'a ImageFields,
        start: *const u8,
        payload_length: usize,
    ) -> Self {
        Self { image, start, payload_length }
    }

    /// Passes the fragment to the handler, unless it is padding. Returns whether the fragment was
    /// passed.
    #[inline(always)]
    pub(crate) fn give_fragment<F>(self, handler: &mut F) -> bool
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        if self.is_padding() {
            return false;
        }
        handler(self.payload(), &self.header());
        true
    }

    /// As [`give_fragment`](Self::give_fragment), for whole messages. A message in a single
    /// fragment costs one comparison, which also excludes padding.
    #[inline(always)]
    pub(crate) fn give_message<F>(self, assembly: &mut Assembly, handler: &mut F) -> bool
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        if self.is_message() {
            handler(self.payload(), &self.header());
        } else if self.is_padding() {
            return false;
        } else {
            assembly.give(self.payload(), &self.header(), handler);
        }
        true
    }

    /// Returns whether the frame is a whole message, and no padding.
    #[inline(always)]
    pub(crate) fn is_message(&self) -> bool {
        const BOTH: u8 = log_buffer::BEGIN_FLAG | log_buffer::END_FLAG;
        const MASK: u32 = u32::from_ne_bytes([0, BOTH, 0xff, 0xff]);
        const DATA: [u8; 2] = log_buffer::TYPE_DATA.to_ne_bytes();
        const WHOLE: u32 = u32::from_ne_bytes([0, BOTH, DATA[0], DATA[1]]);
        // SAFETY: version, flags and type, in this order, in one aligned word of the header.
        let word = unsafe { self.start.add(log_buffer::VERSION).cast::<u32>().read() };
        word & MASK == WHOLE
    }

    /// Returns the length of the frame in the log.
    #[inline(always)]
    pub(crate) fn aligned_length(&self) -> usize {
        align(self.payload_length + HEADER_LENGTH)
    }

    #[inline(always)]
    pub(crate) fn is_padding(&self) -> bool {
        // SAFETY: a field of the published header.
        let kind = unsafe { self.start.add(log_buffer::TYPE).cast::<u16>().read() };
        kind == log_buffer::TYPE_PAD
    }

    /// Returns the payload. No caller asks for the payload of padding, which was never written.
    #[inline(always)]
    pub(crate) fn payload(&self) -> &'a [u8] {
        // SAFETY: a published frame is as long as it says, header included.
        unsafe { slice::from_raw_parts(self.start.add(HEADER_LENGTH), self.payload_length) }
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> Header<'a> {
        // SAFETY: published and unchanged, by the type's own contract.
        unsafe { Header::new(self.start, self.image) }
    }
}

/// The frames that have arrived, one after the other. Dropping this moves the subscriber position
/// past the consumed frames.
pub(crate) struct Frames<'a>(Progress<'a>);

impl<'a> Frames<'a> {
    /// # Safety
    /// As for [`ImageFields::poll`], as long as this lives, and no frame is used after that.
    #[inline(always)]
    pub(crate) unsafe fn new(image: &'a ImageFields) -> Option<Self> {
        image.subscriber_position().map(|position| Self(Progress::new(image, position)))
    }

    /// Returns the next frame of the term, if it has arrived.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<Frame<'a>> {
        if self.0.cursor >= 0 {
            return None;
        }
        // SAFETY: the cursor is within the term, as above, and a frame starts there: the subscriber
        // position is the end of one, and so is what follows.
        unsafe { self.0.frame() }
    }

    /// Moves past `frame`, which must be the frame that [`peek`](Self::peek) has returned last.
    #[inline(always)]
    pub(crate) fn take(&mut self, frame: &Frame<'a>) {
        self.0.cursor += frame.aligned_length() as i64;
    }
}

/// The progress of a poll. When the poll ends, in whatever way, its position is published, and the
/// publisher can read it.
pub(crate) struct Progress<'a> {
    image: &'a ImageFields,
    /// The position that the publisher knows.
    published: Position,
    pub(crate) term: Term,
    /// Position of the poll relative to the end of the term: negative within the term, and 0 at its
    /// end.
    pub(crate) cursor: i64,
}

impl<'a> Progress<'a> {
    /// Starts at the subscriber position.
    #[inline(always)]
    pub(crate) fn new(image: &'a ImageFields, position: Position) -> Self {
        let term = image.term_of(position);
        Self { image, published: position, term, cursor: position - term.end_position }
    }

    /// # Safety
    /// As for [`ImageFields::frame`], at the cursor.
    #[inline(always)]
    pub(crate) unsafe fn frame(&self) -> Option<Frame<'a>> {
        // SAFETY: the caller guarantees a mapped log buffer, and a cursor at a frame (`ImageFields::frame`).
        unsafe { self.image.frame(self.term.end, self.cursor) }
    }

    #[inline(always)]
    pub(crate) fn commit(&mut self) {
        let position = self.term.end_position.wrapping_add(self.cursor);
        if position > self.published {
            self.published = position;
            self.image.publish(position);
        }
    }
}

impl Drop for Progress<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.commit();
    }
}
