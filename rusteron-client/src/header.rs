//! What a handler learns about a message besides its bytes.

use std::fmt;
use std::marker::PhantomData;

use crate::log_buffer::{self, align};
use crate::offer_error::Position;

/// The header of a received fragment; valid during the handler's call only.
///
/// Every method reads the frame in the log buffer, without a call into C.
#[derive(Clone, Copy)]
pub struct Header<'a> {
    frame: *const u8,
    initial_term_id: i32,
    position_bits_to_shift: usize,
    fragment: PhantomData<&'a [u8]>,
}

impl Header<'_> {
    /// The header of the frame at an address.
    ///
    /// # Safety
    /// For the lifetime, `frame` points to a complete, published frame that nobody changes.
    #[inline(always)]
    pub(crate) unsafe fn new(
        frame: *const u8,
        initial_term_id: i32,
        position_bits_to_shift: usize,
    ) -> Self {
        Self { frame, initial_term_id, position_bits_to_shift, fragment: PhantomData }
    }

    /// The length of the frame in bytes, header included, padding for alignment not.
    #[inline]
    pub fn frame_length(&self) -> usize {
        self.read::<i32>(log_buffer::FRAME_LENGTH) as usize
    }

    /// The flags: `0x80` marks the first fragment of a message, `0x40` the last.
    ///
    /// Corresponds to `flags` of `aeron_header_values`.
    #[inline]
    pub fn flags(&self) -> u8 {
        self.read(log_buffer::FLAGS)
    }

    /// Whether the fragment is a whole message by itself.
    #[inline]
    pub fn is_unfragmented(&self) -> bool {
        const BOTH: u8 = log_buffer::BEGIN_FLAG | log_buffer::END_FLAG;
        self.flags() & BOTH == BOTH
    }

    /// The frame's offset in its term, in bytes.
    #[inline]
    pub fn term_offset(&self) -> i32 {
        self.read(log_buffer::TERM_OFFSET)
    }

    /// The number that tells the publisher from others of the same stream.
    #[inline]
    pub fn session_id(&self) -> i32 {
        self.read(log_buffer::SESSION_ID)
    }

    /// The stream id within the channel.
    #[inline]
    pub fn stream_id(&self) -> i32 {
        self.read(log_buffer::STREAM_ID)
    }

    /// The id of the term the frame is in.
    #[inline]
    pub fn term_id(&self) -> i32 {
        self.read(log_buffer::TERM_ID)
    }

    /// What the publisher put into the frame's reserved value; 0 if nothing.
    #[inline]
    pub fn reserved_value(&self) -> i64 {
        self.read(log_buffer::RESERVED_VALUE)
    }

    /// The id of the stream's first term.
    ///
    /// Corresponds to `aeron_header_initial_term_id`.
    #[inline]
    pub fn initial_term_id(&self) -> i32 {
        self.initial_term_id
    }

    /// The position in the stream after this fragment.
    ///
    /// Corresponds to `aeron_header_position`.
    #[inline]
    pub fn position(&self) -> Position {
        // Term ids wrap around.
        let term_count = i64::from(self.term_id().wrapping_sub(self.initial_term_id));
        let next_term_offset = self.term_offset() as usize + align(self.frame_length());
        (term_count << self.position_bits_to_shift) + next_term_offset as i64
    }

    #[inline(always)]
    fn read<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: by the contract of `new` the frame is published and does not change; all callers
        // name a field of its 32-byte header, and frames are aligned to 32 bytes.
        unsafe { self.frame.add(offset).cast::<T>().read() }
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
