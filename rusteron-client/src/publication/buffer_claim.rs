//! A claimed range of the log buffer that a publisher writes its message into.

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::Ordering;

use rusteron_core::error::{OfferError, Position};
use rusteron_core::log_buffer::{self, HEADER_LENGTH, protocol};

/// A range of the stream claimed for one message, which is written into it without a copy.
///
/// A claim dereferences to the message's bytes, as a slice. Subscribers get the message when the
/// claim is [committed](Self::commit). They skip the range when the claim is
/// [aborted](Self::abort); dropping the claim also aborts it. Until then no later message reaches a
/// subscriber: hold a claim briefly. The bytes are initially those that the media driver left
/// there, usually zeros.
///
/// ```
/// # use rusteron_client::{Aeron, Context, OfferError};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// # let _subscription = aeron.add_subscription("aeron:ipc", 1001)?;
/// let mut publication = aeron.add_exclusive_publication("aeron:ipc", 1001)?;
/// # while !publication.is_connected() { std::thread::yield_now(); }
/// let mut claim = publication.try_claim(12)?;
/// claim[..4].copy_from_slice(&7_i32.to_le_bytes());
/// claim[4..].copy_from_slice(&[0xff; 8]);
/// let position = claim.commit()?;
/// assert_eq!(publication.position(), Ok(position));
/// # Ok(())
/// # }
/// ```
///
/// # Alignment
/// The slice starts at a multiple of 32 bytes in memory. A value with an alignment of at most 32
/// can be written in place, with a crate such as `zerocopy` without `unsafe`.
///
/// # Held too long, or forgotten
/// A claim is never finished if it was passed to [`std::mem::forget`], or if its process died. The
/// media driver then unblocks the stream: it turns the claimed range into padding, and the stream
/// goes on behind it. For a [`Publication`](crate::Publication) this happens after the driver's
/// publication unblock timeout, 15 s by default. For both kinds of publication it also happens when
/// the driver finds the publication closed or its client dead. An exclusive publication that stays
/// open is blocked until then.
///
/// A claim can still be held after the unblocking. Its memory stays mapped as long as the
/// publication exists, so writing to it is harmless to the process. But the range belongs to the
/// stream again: [`commit`](Self::commit) returns [`OfferError::Unblocked`] and changes nothing.
/// Bytes that are written into the slice after the unblocking can corrupt later messages. This
/// happens when the stream reuses the range, one round through the log buffer's three terms later.
/// Aeron's other clients behave the same, and also publish the frame again.
///
/// A claim can also be held after the death of the media driver, or of its own client. Committing
/// and aborting then work on memory that no process reads any more.
///
/// Made by [`Publication::try_claim`](crate::Publication::try_claim) and
/// [`ExclusivePublication::try_claim`](crate::ExclusivePublication::try_claim). A claim does not
/// outlive the publication. This does not compile:
///
/// ```compile_fail,E0505
/// # use rusteron_client::{OfferError, Publication};
/// # fn test(publication: Publication) -> Result<(), OfferError> {
/// let claim = publication.try_claim(8)?;
/// drop(publication);
/// claim.commit()?;
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `aeron_buffer_claim_t`.
#[doc(alias = "aeron_buffer_claim_t")]
#[must_use = "dropping a claim aborts it"]
pub struct BufferClaim<'a> {
    /// The header of the frame, with the payload behind it.
    frame: NonNull<u8>,
    /// Length of the payload in bytes.
    length: usize,
    /// Position after the frame.
    position: Position,
    publication: PhantomData<&'a mut [u8]>,
}

// SAFETY: a claim is the only user of its part of the log buffer, on whatever thread, and its
// accesses do not depend on the thread.
unsafe impl Send for BufferClaim<'_> {}
// SAFETY: a shared reference only reads the claim.
unsafe impl Sync for BufferClaim<'_> {}

impl<'a> BufferClaim<'a> {
    /// # Safety
    /// For `'a`, `frame` points to a frame of the log buffer with a payload of `length` bytes. The
    /// frame is mapped, aligned to 32 bytes, and belongs to no other publisher. Its header marks it
    /// as data and as not finished. No other claim is made of the frame.
    #[inline(always)]
    pub(crate) unsafe fn new(frame: NonNull<u8>, length: usize, position: Position) -> Self {
        Self { frame, length, position, publication: PhantomData }
    }

    /// Returns the address of the frame.
    #[inline(always)]
    pub(crate) fn frame(&self) -> *mut u8 {
        self.frame.as_ptr()
    }

    /// Publishes the message, and returns the position after it.
    ///
    /// Does not block, does not allocate.
    ///
    /// # Errors
    /// [`OfferError::Unblocked`] if the claim was held for so long that the media driver has
    /// unblocked its range, by turning it into padding. Subscribers skip the message.
    ///
    /// Corresponds to `aeron_buffer_claim_commit`, which does not notice that.
    #[doc(alias = "aeron_buffer_claim_commit")]
    #[inline]
    pub fn commit(self) -> Result<Position, OfferError> {
        let claim = ManuallyDrop::new(self);
        if !claim.is_unfinished() {
            return Err(OfferError::Unblocked.rare());
        }
        // SAFETY: the frame is still this claim's, by the check above, which is the last use of it.
        unsafe { claim.publish() };
        Ok(claim.position)
    }

    /// Aborts the claim: subscribers skip its range. Dropping the claim does the same.
    ///
    /// Does not block, does not allocate.
    ///
    /// Corresponds to `aeron_buffer_claim_abort`.
    #[doc(alias = "aeron_buffer_claim_abort")]
    #[inline]
    pub fn abort(self) {
        drop(self);
    }

    /// Returns the position in the stream after this message.
    #[inline]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns the header flags: `0x80` marks the first fragment of a message, `0x40` the last.
    /// Initially a claim has both.
    ///
    /// Corresponds to a field of the header that `frame_header` of C's `aeron_buffer_claim_t` points to.
    #[doc(alias = "aeron_buffer_claim_t")]
    #[inline]
    pub fn flags(&self) -> u8 {
        // SAFETY: a field of the frame's header, which only this claim writes.
        unsafe { self.frame.add(log_buffer::FLAGS).read() }
    }

    /// Sets the header flags, which subscribers read with [`Header::flags`](crate::Header::flags).
    ///
    /// Assemblers treat a message as complete only if its first fragment has `0x80` and its last
    /// has `0x40`. The application may use the other bits, except for bits to which Aeron may give
    /// a meaning.
    #[inline]
    pub fn set_flags(&mut self, flags: u8) {
        // SAFETY: as in `flags`.
        unsafe { self.frame.add(log_buffer::FLAGS).write(flags) }
    }

    /// Returns the reserved value; 0 unless it was set.
    ///
    /// Corresponds to a field of the same header as [`flags`](Self::flags).
    #[inline]
    pub fn reserved_value(&self) -> i64 {
        // SAFETY: as in `flags`; frames are aligned to 32 bytes and the field lies at 24.
        unsafe { self.frame.add(log_buffer::RESERVED_VALUE).cast::<i64>().read() }
    }

    /// Sets the reserved value, 8 bytes of the header for the application, such as a timestamp or a
    /// checksum. Subscribers read it with
    /// [`Header::reserved_value`](crate::Header::reserved_value).
    #[inline]
    pub fn set_reserved_value(&mut self, value: i64) {
        // SAFETY: as in `reserved_value`.
        unsafe { self.frame.add(log_buffer::RESERVED_VALUE).cast::<i64>().write(value) }
    }

    fn frame_length(&self) -> i32 {
        // At most the length of a term, which is at most 1 GiB.
        (self.length + HEADER_LENGTH) as i32
    }

    /// Returns whether the header still has the negative length that the claim began with.
    ///
    /// The driver's unblocking replaces the negative length by the positive length, and cleaning
    /// replaces it by 0. This check is no lock: the driver could act between the check and the
    /// `publish` that follows. But the driver waits for many seconds first. So this takes a thread
    /// that is suspended at exactly this point, and the outcome is then the same as in C, which
    /// does not check. The check also cannot recognise an unfinished frame of the same length that
    /// another publisher has in the same range, a round through the log later.
    #[inline(always)]
    fn is_unfinished(&self) -> bool {
        // SAFETY: the frame is mapped, and all processes access this field atomically. Relaxed:
        // only the value matters, and no other read depends on it.
        let length = unsafe { log_buffer::frame_length_of(self.frame.as_ptr()) };
        length.load(Ordering::Relaxed) == -self.frame_length()
    }

    /// # Safety
    /// The frame is still this claim's, and not touched after.
    #[inline(always)]
    unsafe fn publish(&self) {
        // SAFETY: mapped, see above.
        let length = unsafe { log_buffer::frame_length_of(self.frame.as_ptr()) };
        protocol::publish_frame(length, self.frame_length());
    }
}

impl Deref for BufferClaim<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: by the contract of `new` the payload is mapped memory of this claim alone; this
        // borrows the claim, so that nothing writes meanwhile.
        unsafe { slice::from_raw_parts(self.frame.add(HEADER_LENGTH).as_ptr(), self.length) }
    }
}

impl DerefMut for BufferClaim<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; this borrows the claim mutably, so that there is no second slice.
        unsafe { slice::from_raw_parts_mut(self.frame.add(HEADER_LENGTH).as_ptr(), self.length) }
    }
}

impl Drop for BufferClaim<'_> {
    #[inline]
    fn drop(&mut self) {
        // Otherwise the range is padding already.
        if self.is_unfinished() {
            // SAFETY: the frame is still this claim's, and not touched after.
            unsafe {
                self.frame.add(log_buffer::TYPE).cast::<u16>().write(log_buffer::TYPE_PAD);
                self.publish();
            }
        }
    }
}

impl fmt::Debug for BufferClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferClaim")
            .field("length", &self.length)
            .field("position", &self.position)
            .field("flags", &format_args!("{:#04x}", self.flags()))
            .field("reserved_value", &self.reserved_value())
            .finish()
    }
}
