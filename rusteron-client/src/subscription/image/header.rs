//! Header of a received message or fragment.

use std::fmt;

use rusteron_core::error::Position;
use rusteron_core::log_buffer::{self, HEADER_LENGTH, align};
use rusteron_core::threads::UsedByOtherThreads;
use rusteron_sys as sys;

/// The header of a received message or fragment. It is valid during the handler's call only.
///
/// For an assembled message, it is the header of the first fragment, with three differences: the
/// frame length and the flags are those of the whole message, and the position is the position
/// after the last fragment.
///
/// Every method reads the frame in memory, without a call into C.
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// let publication = aeron.add_publication("aeron:ipc", 1001)?;
/// let mut subscription = aeron.add_subscription("aeron:ipc", 1001)?;
/// # while publication.offer(b"hello").is_err() { std::thread::yield_now(); }
/// let mut last_position = None;
/// while last_position.is_none() {
///     subscription.poll(|_message, header| last_position = Some(header.position()), 10)?;
/// }
/// assert_eq!(last_position, publication.position().ok());
/// # Ok(())
/// # }
/// ```
///
/// A header cannot be kept. This does not compile:
///
/// ```compile_fail,E0521
/// # use rusteron_client::{Header, Subscription};
/// fn keep_one(subscription: &mut Subscription) {
///     let mut kept: Option<Header<'_>> = None;
///     let _ = subscription.poll(|_message, header| kept = Some(*header), 10);
/// }
/// ```
#[doc(alias("aeron_header_t", "aeron_header_values"))]
#[derive(Clone, Copy)]
pub struct Header<'a> {
    frame: *const u8,
    image: &'a sys::rusteron_image_t,
    /// Length in the log of all frames of an assembled message, starting at `frame`. For a single
    /// frame, less than the frame's own length.
    assembled_length: usize,
}

// SAFETY: the bound never holds.
unsafe impl Send for Header<'_> where for<'a> Self: UsedByOtherThreads<'a> {}
// SAFETY: as above.
unsafe impl Sync for Header<'_> where for<'a> Self: UsedByOtherThreads<'a> {}

impl<'a> Header<'a> {
    /// Returns the header of the frame at an address.
    ///
    /// # Safety
    /// For the lifetime, `frame` points to a complete, published frame that does not change.
    #[inline(always)]
    pub(crate) unsafe fn new(frame: *const u8, image: &'a sys::rusteron_image_t) -> Self {
        Self { frame, image, assembled_length: 0 }
    }

    /// Returns the header of a message whose frames take up `assembled_length` bytes of the log.
    pub(crate) fn assembled(frame: &'a FrameHeader, last: &Self, assembled_length: usize) -> Self {
        Self { frame: frame.as_ptr(), image: last.image, assembled_length }
    }

    /// Returns a copy of the frame's own header.
    pub(crate) fn frame_header(&self) -> FrameHeader {
        FrameHeader(self.read(0))
    }

    /// Returns the length of the frame in bytes. The header is included, and padding for alignment
    /// is not. For an assembled message, returns the length of one header and the whole message.
    ///
    /// Corresponds to `frame_length` of `aeron_header_values`.
    #[doc(alias = "aeron_header_values")]
    #[inline]
    pub fn frame_length(&self) -> usize {
        // Negative only if the frame is being overwritten; see `Frame::at`.
        self.read::<i32>(log_buffer::FRAME_LENGTH).max(0) as usize
    }

    /// Returns the version of the frame's layout.
    ///
    /// Corresponds to `version` of `aeron_header_values`.
    #[doc(alias = "aeron_header_values")]
    #[inline]
    pub fn version(&self) -> u8 {
        self.read(log_buffer::VERSION)
    }

    /// Returns the type of the frame: 1, the type of data frames.
    ///
    /// Corresponds to `type` of `aeron_header_values`.
    #[doc(alias = "aeron_header_values")]
    #[inline]
    pub fn frame_type(&self) -> u16 {
        self.read(log_buffer::TYPE)
    }

    /// Returns the flags: `0x80` marks the first fragment of a message, `0x40` the last. A whole
    /// message has both.
    ///
    /// Corresponds to `flags` of `aeron_header_values`.
    #[doc(alias = "aeron_header_values")]
    #[inline]
    pub fn flags(&self) -> u8 {
        self.read(log_buffer::FLAGS)
    }

    /// Returns whether this is the header of a whole message.
    #[inline(always)]
    pub fn is_unfragmented(&self) -> bool {
        const BOTH: u8 = log_buffer::BEGIN_FLAG | log_buffer::END_FLAG;
        self.flags() & BOTH == BOTH
    }

    /// Returns the frame's offset in its term, in bytes.
    ///
    /// Corresponds to `term_offset` of `aeron_header_values`.
    #[doc(alias = "aeron_header_values")]
    #[inline]
    pub fn term_offset(&self) -> i32 {
        self.read(log_buffer::TERM_OFFSET)
    }

    /// Returns the session id, which distinguishes the publisher from others of the same stream.
    ///
    /// Corresponds to `session_id` of `aeron_header_values`.
    #[doc(alias = "aeron_header_values")]
    #[inline]
    pub fn session_id(&self) -> i32 {
        self.read(log_buffer::SESSION_ID)
    }

    /// Returns the stream id within the channel.
    ///
    /// Corresponds to `stream_id` of `aeron_header_values`.
    #[doc(alias = "aeron_header_values")]
    #[inline]
    pub fn stream_id(&self) -> i32 {
        self.read(log_buffer::STREAM_ID)
    }

    /// Returns the id of the frame's term.
    ///
    /// Corresponds to `term_id` of `aeron_header_values`.
    #[doc(alias = "aeron_header_values")]
    #[inline]
    pub fn term_id(&self) -> i32 {
        self.read(log_buffer::TERM_ID)
    }

    /// Returns the reserved value that the publisher set in the frame; 0 if it set none. For an
    /// assembled message, returns the reserved value of the first frame.
    ///
    /// Corresponds to `reserved_value` of `aeron_header_values`.
    #[doc(alias = "aeron_header_values")]
    #[inline]
    pub fn reserved_value(&self) -> i64 {
        self.read(log_buffer::RESERVED_VALUE)
    }

    /// Returns the id of the stream's first term.
    ///
    /// Corresponds to `initial_term_id` of `aeron_header_values`.
    #[doc(alias = "aeron_header_values")]
    #[inline]
    pub fn initial_term_id(&self) -> i32 {
        self.image.initial_term_id
    }

    /// Returns log₂ of the term length. Shifting a count of terms left by this number makes it a
    /// position.
    ///
    /// Corresponds to `aeron_header_position_bits_to_shift`.
    #[doc(alias = "aeron_header_position_bits_to_shift")]
    #[inline]
    pub fn position_bits_to_shift(&self) -> usize {
        self.image.position_bits_to_shift
    }

    /// Returns the offset in the term after this fragment or message, in bytes.
    ///
    /// Corresponds to `aeron_header_next_term_offset`.
    #[doc(alias = "aeron_header_next_term_offset")]
    #[inline]
    pub fn next_term_offset(&self) -> i32 {
        self.term_offset().wrapping_add(self.aligned_length() as i32)
    }

    /// Returns the position in the stream after this fragment or message.
    ///
    /// Corresponds to `aeron_header_position`.
    #[doc(alias = "aeron_header_position")]
    #[inline]
    pub fn position(&self) -> Position {
        self.start_position() + self.aligned_length() as Position
    }

    /// Returns the position in the stream at which this fragment or message begins.
    pub(crate) fn start_position(&self) -> Position {
        self.term_begin_position() + Position::from(self.term_offset())
    }

    /// Returns the length of the longest message that a publisher with this term length can offer.
    pub(crate) fn max_message_length(&self) -> usize {
        // Corresponds to `aeron_compute_max_message_length`, for legal term lengths.
        const MOST: usize = 16 << 20;
        MOST.min((1 << self.position_bits_to_shift()) / 8)
    }

    /// Returns the id by which the media driver knows the image of this message; see
    /// [`ImageConstants::correlation_id`](crate::ImageConstants::correlation_id).
    ///
    /// Corresponds to `aeron_header_context`.
    #[doc(alias = "aeron_header_context")]
    #[inline]
    pub fn image_correlation_id(&self) -> i64 {
        self.image.correlation_id
    }

    /// Returns the length in the log. Even for an overwritten frame, computations with this length
    /// cannot overflow.
    #[inline(always)]
    fn aligned_length(&self) -> usize {
        align(self.frame_length()).max(self.assembled_length)
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

/// A copy of a frame's header.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct FrameHeader([u8; HEADER_LENGTH]);

impl FrameHeader {
    pub(crate) const EMPTY: Self = Self([0; HEADER_LENGTH]);

    /// Turns the header of a first fragment into the header of the whole message. `last_flags` are
    /// the flags of the last fragment.
    pub(crate) fn complete(&mut self, message_length: usize, last_flags: u8) {
        // A message that was offered in one piece fits in a term, and so in an `i32`. Fragments
        // that were claimed one by one can be longer together.
        let frame_length = i32::try_from(HEADER_LENGTH + message_length).unwrap_or(i32::MAX);
        self.0[log_buffer::FRAME_LENGTH..][..4].copy_from_slice(&frame_length.to_ne_bytes());
        self.0[log_buffer::FLAGS] |= last_flags;
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::subscription::assembly::Assembly;

    pub(crate) fn frame(length: i32, term_offset: i32, term_id: i32, flags: u8) -> FrameHeader {
        let mut bytes = [0; HEADER_LENGTH];
        for (at, number) in [
            (log_buffer::FRAME_LENGTH, length),
            (log_buffer::TERM_OFFSET, term_offset),
            (log_buffer::TERM_ID, term_id),
        ] {
            bytes[at..][..4].copy_from_slice(&number.to_ne_bytes());
        }
        bytes[log_buffer::FLAGS] = flags;
        FrameHeader(bytes)
    }

    /// Returns the fields of an image without memory.
    pub(crate) fn image() -> sys::rusteron_image_t {
        sys::rusteron_image_t {
            image: std::ptr::null_mut(),
            term_buffers: [std::ptr::null_mut(); 3],
            subscriber_position: std::ptr::null_mut(),
            is_closed: std::ptr::null_mut(),
            position_bits_to_shift: 30,
            correlation_id: 0,
            subscription_registration_id: 0,
            join_position: 0,
            session_id: 0,
            term_length: 1 << 30,
            initial_term_id: i32::MIN,
        }
    }

    /// Values that a frame may have while another publisher overwrites it.
    const NUMBERS: [i32; 9] =
        [i32::MIN, i32::MIN + 1, -32, -1, 0, 1, 1 << 30, i32::MAX - 1, i32::MAX];

    #[test]
    fn overwritten_frame_cannot_overflow_header() {
        let image = image();
        for length in NUMBERS {
            for term_offset in NUMBERS {
                for term_id in NUMBERS {
                    let frame = frame(length, term_offset, term_id, 0);
                    // SAFETY: the frame lives as long as the header.
                    let header = unsafe { Header::new(frame.as_ptr(), &image) };
                    let aligned = align(length.max(0) as usize) as i64;
                    assert_eq!(header.frame_length(), length.max(0) as usize);
                    assert_eq!(header.position(), header.start_position() + aligned);
                    assert_eq!(
                        header.next_term_offset(),
                        term_offset.wrapping_add(aligned as i32),
                        "{header:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn overwritten_frame_cannot_overflow_assembly() {
        let image = image();
        for number in NUMBERS {
            for other in NUMBERS {
                let mut assembly = Assembly::new();
                let mut calls = 0;
                let frames = [
                    frame(number, other, 0, log_buffer::BEGIN_FLAG),
                    frame(other, number, 0, 0),
                    frame(number, number, other, log_buffer::END_FLAG),
                ];
                for frame in &frames {
                    // SAFETY: as above.
                    let header = unsafe { Header::new(frame.as_ptr(), &image) };
                    assembly.poll(
                        b"payload",
                        &header,
                        &mut |message: &[u8], header: &Header<'_>| {
                            calls += 1;
                            assert_eq!(header.frame_length(), HEADER_LENGTH + message.len());
                            assert!(header.position() >= header.start_position());
                        },
                    );
                }
                assert!(calls <= 1);
            }
        }
    }
}
