//! What a handler learns about a message besides its bytes.

use std::fmt;

use crate::image_fields::ImageFields;
use crate::log_buffer::{self, HEADER_LENGTH, align};
use crate::offer_error::Position;

/// The header of a received message or fragment; valid during the handler's call only.
///
/// Of a message that was put together from fragments, it is the header of the first one, with the
/// frame length and the flags of the whole and the position after the last.
///
/// Every method reads the frame in memory, without a call into C.
///
/// ```compile_fail,E0521
/// # use rusteron_client::{Header, Subscription};
/// fn keep_one(subscription: &mut Subscription) {
///     let mut kept: Option<Header<'_>> = None;
///     let _ = subscription.poll(|_message, header| kept = Some(*header), 10);
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Header<'a> {
    frame: *const u8,
    image: &'a ImageFields,
    /// The length in the log of all frames of an assembled message, which start at the frame; less
    /// than the frame's own length if it is the only one.
    assembled_length: usize,
}

impl<'a> Header<'a> {
    /// The header of the frame at an address.
    ///
    /// # Safety
    /// For the lifetime, `frame` points to a complete, published frame that nobody changes.
    #[inline(always)]
    pub(crate) unsafe fn new(frame: *const u8, image: &'a ImageFields) -> Self {
        Self { frame, image, assembled_length: 0 }
    }

    /// The header of a message whose frames take up `assembled_length` bytes of the log.
    pub(crate) fn assembled(frame: &'a FrameHeader, last: &Self, assembled_length: usize) -> Self {
        Self { frame: frame.as_ptr(), image: last.image, assembled_length }
    }

    /// A copy of the frame's own header.
    pub(crate) fn frame_header(&self) -> FrameHeader {
        FrameHeader(self.read(0))
    }

    /// The length of the frame in bytes, header included, padding for alignment not. Of a message
    /// that was put together: that of one header and the whole message.
    ///
    /// Corresponds to `frame_length` of `aeron_header_values`.
    #[inline]
    pub fn frame_length(&self) -> usize {
        self.read::<i32>(log_buffer::FRAME_LENGTH) as usize
    }

    /// The version of the frame's layout.
    ///
    /// Corresponds to `version` of `aeron_header_values`.
    #[inline]
    pub fn version(&self) -> u8 {
        self.read(log_buffer::VERSION)
    }

    /// The type of the frame: that of data, 1.
    ///
    /// Corresponds to `type` of `aeron_header_values`.
    #[inline]
    pub fn frame_type(&self) -> u16 {
        self.read(log_buffer::TYPE)
    }

    /// The flags: `0x80` marks the first fragment of a message, `0x40` the last; a whole message has
    /// both.
    ///
    /// Corresponds to `flags` of `aeron_header_values`.
    #[inline]
    pub fn flags(&self) -> u8 {
        self.read(log_buffer::FLAGS)
    }

    /// Whether this is a whole message.
    #[inline(always)]
    pub fn is_unfragmented(&self) -> bool {
        const BOTH: u8 = log_buffer::BEGIN_FLAG | log_buffer::END_FLAG;
        self.flags() & BOTH == BOTH
    }

    /// The frame's offset in its term, in bytes.
    ///
    /// Corresponds to `term_offset` of `aeron_header_values`.
    #[inline]
    pub fn term_offset(&self) -> i32 {
        self.read(log_buffer::TERM_OFFSET)
    }

    /// The number that tells the publisher from others of the same stream.
    ///
    /// Corresponds to `session_id` of `aeron_header_values`.
    #[inline]
    pub fn session_id(&self) -> i32 {
        self.read(log_buffer::SESSION_ID)
    }

    /// The stream id within the channel.
    ///
    /// Corresponds to `stream_id` of `aeron_header_values`.
    #[inline]
    pub fn stream_id(&self) -> i32 {
        self.read(log_buffer::STREAM_ID)
    }

    /// The id of the term the frame is in.
    ///
    /// Corresponds to `term_id` of `aeron_header_values`.
    #[inline]
    pub fn term_id(&self) -> i32 {
        self.read(log_buffer::TERM_ID)
    }

    /// What the publisher put into the frame's reserved value; 0 if nothing. Of a message that was put
    /// together, it is the one of the first frame.
    ///
    /// Corresponds to `reserved_value` of `aeron_header_values`.
    #[inline]
    pub fn reserved_value(&self) -> i64 {
        self.read(log_buffer::RESERVED_VALUE)
    }

    /// The id of the stream's first term.
    ///
    /// Corresponds to `initial_term_id` of `aeron_header_values`.
    #[inline]
    pub fn initial_term_id(&self) -> i32 {
        self.image.initial_term_id()
    }

    /// How far a count of terms has to be shifted to the left to become a position: the binary
    /// logarithm of the term length.
    ///
    /// Corresponds to `aeron_header_position_bits_to_shift`.
    #[inline]
    pub fn position_bits_to_shift(&self) -> usize {
        self.image.position_bits_to_shift()
    }

    /// The offset in the term, in bytes, of what comes after this fragment or message.
    ///
    /// Corresponds to `aeron_header_next_term_offset`.
    #[inline]
    pub fn next_term_offset(&self) -> i32 {
        self.term_offset() + align(self.frame_length()).max(self.assembled_length) as i32
    }

    /// The position in the stream after this fragment or message.
    ///
    /// Corresponds to `aeron_header_position`.
    #[inline]
    pub fn position(&self) -> Position {
        self.term_begin_position() + Position::from(self.next_term_offset())
    }

    /// The position in the stream at which this fragment or message begins.
    pub(crate) fn start_position(&self) -> Position {
        self.term_begin_position() + Position::from(self.term_offset())
    }

    /// The id by which the media driver knows the image that this comes from; see
    /// [`ImageConstants::correlation_id`](crate::ImageConstants::correlation_id).
    ///
    /// Corresponds to `aeron_header_context`.
    #[inline]
    pub fn image_correlation_id(&self) -> i64 {
        self.image.correlation_id()
    }

    #[inline(always)]
    fn term_begin_position(&self) -> Position {
        // Term ids wrap around.
        let term_count = i64::from(self.term_id().wrapping_sub(self.initial_term_id()));
        term_count << self.position_bits_to_shift()
    }

    #[inline(always)]
    fn read<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: by the contract of `new` the frame is published and does not change, or it is a
        // `FrameHeader` that is borrowed for the lifetime; all callers name a field of its 32 bytes,
        // and it is aligned to 8 at least.
        unsafe { self.frame.add(offset).cast::<T>().read() }
    }
}

/// A frame's header away from its frame.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct FrameHeader([u8; HEADER_LENGTH]);

impl FrameHeader {
    pub(crate) const EMPTY: Self = Self([0; HEADER_LENGTH]);

    /// Makes it that of a message which ends with the fragment that has these flags.
    pub(crate) fn complete(&mut self, message_length: usize, last_flags: u8) {
        // What fits in a term fits in this number.
        let frame_length = (HEADER_LENGTH + message_length) as i32;
        self.0[log_buffer::FRAME_LENGTH..][..4].copy_from_slice(&frame_length.to_ne_bytes());
        self.0[log_buffer::FLAGS] |= last_flags;
    }

    fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr()
    }
}

impl fmt::Debug for Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("frame_length", &self.frame_length())
            .field("flags", &format_args!("{:#04x}", self.flags()))
            .field("session_id", &self.session_id())
            .field("stream_id", &self.stream_id())
            .field("term_id", &self.term_id())
            .field("term_offset", &self.term_offset())
            .field("reserved_value", &self.reserved_value())
            .field("position", &self.position())
            .finish()
    }
}
