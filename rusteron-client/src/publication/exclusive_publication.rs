//! A publication with its own log buffer, and its offer in Rust.

use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use rusteron_core::error::{BlockFault, Mismatch, OfferError, Position, Result};
use rusteron_core::ffi::last_error;
use rusteron_core::log_buffer::{self, FrameIds, HEADER_LENGTH, align, protocol};
use rusteron_core::threads::SharedBetweenThreads;
use rusteron_sys as sys;

use crate::client::Client;
use crate::client::registration::{CancelRequest, PollRequest, Resource, sealed};
use crate::client::subscription_callbacks::CallbackHandle;
use crate::publication::next_frame::BegunFrame;
use crate::publication::{BufferClaim, PublicationHandle, RawPublication};

/// Sends messages to the subscribers of a channel and stream, from one thread at a time.
///
/// An exclusive publication has its own log buffer, and so its own session id. This makes it faster
/// than a [`Publication`](crate::Publication). It keeps its client open. Dropping it tells the
/// media driver that this publisher is gone, after the offered messages have been delivered.
///
/// Made by [`Aeron::add_exclusive_publication`](crate::Aeron::add_exclusive_publication).
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// # let _subscription = aeron.add_subscription("aeron:ipc", 1001)?;
/// let mut publication = aeron.add_exclusive_publication("aeron:ipc", 1001)?;
/// // An offer fails before a subscriber is connected, and under back pressure. Repeat it.
/// while let Err(error) = publication.offer(b"hello") {
///     if !error.is_retryable() {
///         return Err(error.into());
///     }
///     std::thread::yield_now();
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "aeron_exclusive_publication_t")]
#[must_use = "the publication is closed when this is dropped"]
pub struct ExclusivePublication {
    pub(crate) handle: PublicationHandle,
    /// The fields of the C structure that an offer works on, at the addresses C uses itself.
    pub(crate) fields: sys::rusteron_publication_t,
    raw: NonNull<sys::aeron_exclusive_publication_t>,
    pub(crate) ids: FrameIds,
}

// SAFETY: nothing in the C structure is tied to a thread; its fields for one writer are reached by
// `&mut self` only, so that moving it is moving the writer.
unsafe impl Send for ExclusivePublication {}

// SAFETY: the bound never holds.
unsafe impl Sync for ExclusivePublication where for<'a> Self: SharedBetweenThreads<'a> {}

impl ExclusivePublication {
    /// Offers one message, of any length up to
    /// [`max_message_length`](PublicationHandle::max_message_length) bytes, to the subscribers. A
    /// message that does not fit in one fragment is sent in several.
    ///
    /// Copies the message into the log buffer and returns the position after it. Does not block,
    /// does not allocate, makes no system call.
    ///
    /// # Errors
    /// Nothing has been sent; see [`OfferError`].
    ///
    /// Corresponds to `aeron_exclusive_publication_offer`.
    #[doc(alias = "aeron_exclusive_publication_offer")]
    #[inline]
    pub fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        let Some(begun) = self.begin_frame(message.len()) else {
            return self.offer_otherwise(message);
        };
        // SAFETY: the frame was begun for the message just now.
        Ok(unsafe { begun.publish(message) })
    }

    /// Slow path: returns the error, sends the message in several fragments, or ends the term.
    #[cold]
    fn offer_otherwise(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        if message.len() <= self.fields.max_payload_length {
            let begun = self.begin_frame_or_rotate(message.len())?;
            // SAFETY: as in `offer`.
            return Ok(unsafe { begun.publish(message) });
        }
        self.offer_fragments(message.len(), |part, frame| {
            // SAFETY: the frame was begun for this part of the message, and is this call's alone.
            unsafe { log_buffer::copy_payload(&message[part], frame) };
        })
    }

    /// Claims a range of the log buffer for a message of `length` bytes, up to
    /// [`max_payload_length`](PublicationHandle::max_payload_length). The caller writes the message
    /// there without a copy. The range starts at a multiple of 32 bytes in memory.
    ///
    /// Does not block, does not allocate, makes no system call. The publication is borrowed until
    /// the claim is committed, aborted or dropped. A retry loop therefore has to fill and commit
    /// the claim inside the loop. A length of 0 is an empty message.
    ///
    /// # Errors
    /// Nothing has been claimed; see [`OfferError`].
    ///
    /// ```
    /// use rusteron_client::{ExclusivePublication, OfferError};
    ///
    /// fn send(publication: &mut ExclusivePublication, value: u64) -> Result<(), OfferError> {
    ///     loop {
    ///         match publication.try_claim(8) {
    ///             Ok(mut claim) => {
    ///                 claim.copy_from_slice(&value.to_le_bytes());
    ///                 return claim.commit().map(drop);
    ///             }
    ///             Err(error) if error.is_retryable() => std::thread::yield_now(),
    ///             Err(error) => return Err(error),
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// Corresponds to `aeron_exclusive_publication_try_claim`.
    #[doc(alias = "aeron_exclusive_publication_try_claim")]
    #[inline]
    pub fn try_claim(&mut self, length: usize) -> Result<BufferClaim<'_>, OfferError> {
        let begun = match self.begin_frame(length) {
            Some(begun) => begun,
            None => self.begin_claim_or_rotate(length)?,
        };
        let BegunFrame { frame, end_position } = begun;
        // SAFETY: the frame was begun for this length. The claim is the frame's only user, as `self` is
        // borrowed mutably and the tail has moved past it. Its memory is mapped as long as the
        // publication lives: the conductor unmaps it on closing it, for which `self` cannot be
        // borrowed, or in `aeron_close`, before which `self` holds the client; the death of the client
        // or the driver marks the publication as closed and unmaps nothing.
        Ok(unsafe { BufferClaim::new(NonNull::new_unchecked(frame), length, end_position) })
    }

    /// As [`begin_frame_or_rotate`](Self::begin_frame_or_rotate). As in C, a length that is too long
    /// is reported for a closed publication as well.
    #[cold]
    fn begin_claim_or_rotate(&mut self, length: usize) -> Result<BegunFrame, OfferError> {
        let max = self.fields.max_payload_length;
        if length > max {
            return Err(OfferError::MessageTooLong { length, max_message_length: max });
        }
        self.begin_frame_or_rotate(length)
    }

    /// Appends padding as long as a message of `length` bytes, up to
    /// [`max_message_length`](PublicationHandle::max_message_length), and returns the position
    /// after it. Subscribers skip padding.
    ///
    /// Does not block, does not allocate.
    ///
    /// # Errors
    /// Nothing has been appended; see [`OfferError`].
    ///
    /// Corresponds to `aeron_exclusive_publication_append_padding`.
    #[doc(alias = "aeron_exclusive_publication_append_padding")]
    pub fn append_padding(&mut self, length: usize) -> Result<Position, OfferError> {
        let next = self.next_frame(length, self.fields.max_message_length)?;
        let frame_length = length + HEADER_LENGTH;
        let (frame, end_position) = self.claim_range(next, align(frame_length))?;
        let raw_tail = protocol::raw_tail(next.term_id, next.term_offset);
        // SAFETY: the range was claimed just now, and lies behind the position limit.
        unsafe { log_buffer::write_padding(frame, frame_length as i32, raw_tail, self.ids) };
        Ok(end_position)
    }

    /// Offers frames as they are, headers included, and returns the position after them. This
    /// repeats, byte for byte, a part of a stream that was recorded or received elsewhere.
    ///
    /// The block is a sequence of whole frames, each padded to a multiple of 32 bytes. The first
    /// frame is data. The headers must have this publication's session id, stream id and current
    /// term id. Each header must have the term offset at which its frame will lie. So the
    /// publication must have been added with the position, session id and term length of the
    /// original. The block must fit into the rest of the term.
    ///
    /// All frames are checked, which takes time in proportion to their number. Reserved values,
    /// flags and payload are copied unchanged.
    ///
    /// Does not block, does not allocate.
    ///
    /// # Errors
    /// Nothing has been sent; see [`OfferError`]. For a block that does not fit, the error is
    /// [`OfferError::InvalidBlock`].
    ///
    /// Corresponds to `aeron_exclusive_publication_offer_block`, which checks the first frame only.
    #[doc(alias = "aeron_exclusive_publication_offer_block")]
    pub fn offer_block(&mut self, block: &[u8]) -> Result<Position, OfferError> {
        // The check of the block below also finds a block that does not fit.
        let next = self.next_block(block.len())?;
        let expected = Expected {
            term_offset: next.term_offset,
            term_id: next.term_id,
            session_id: self.fields.session_id,
            stream_id: self.fields.stream_id,
            max_payload_length: self.fields.max_payload_length,
            term_buffer_length: self.fields.term_buffer_length,
        };
        expected.check(block)?;
        let end = next.term_offset + block.len() as i32;
        let (length, rest) = block.split_at(size_of::<i32>());
        let length = i32::from_ne_bytes([length[0], length[1], length[2], length[3]]);
        // SAFETY: by the check the block lies within the active term; it is behind the position
        // limit, so that no process reads or cleans there. The order is the same as in C: first the
        // tail, and last the first frame's length, which makes the whole block visible.
        unsafe {
            let frame = self.move_tail(next, end);
            ptr::copy_nonoverlapping(rest.as_ptr(), frame.add(size_of::<i32>()), rest.len());
            protocol::publish_frame(log_buffer::frame_length_of(frame), length);
        }
        Ok(next.term_begin_position + i64::from(end))
    }

    /// Makes closing this publication revoke it; see [`revoke`](Self::revoke).
    ///
    /// Corresponds to `aeron_exclusive_publication_revoke_on_close`.
    #[doc(alias = "aeron_exclusive_publication_revoke_on_close")]
    pub fn revoke_on_close(&mut self) {
        // SAFETY: the publication is live; the function sets an atomic flag.
        unsafe { sys::aeron_exclusive_publication_revoke_on_close(self.raw.as_ptr()) };
    }

    /// Closes the publication at once. Subscribers do not get the messages that they have not
    /// received yet, and their images end. Does not block.
    ///
    /// For a notification of the end, call [`revoke_on_close`](Self::revoke_on_close) and
    /// [`close_with`](Self::close_with) instead.
    ///
    /// Corresponds to `aeron_exclusive_publication_revoke`.
    #[doc(alias = "aeron_exclusive_publication_revoke")]
    pub fn revoke(mut self) {
        self.revoke_on_close();
    }

    /// Returns the position after all messages that have been offered or claimed so far, in bytes.
    ///
    /// # Errors
    /// [`OfferError::Closed`] once the publication is closed.
    ///
    /// Corresponds to `aeron_exclusive_publication_position`.
    #[doc(alias = "aeron_exclusive_publication_position")]
    pub fn position(&self) -> Result<Position, OfferError> {
        if self.is_closed() {
            return Err(self.closed());
        }
        // SAFETY: the next frame belongs to the only writer, who cannot be at work now, because the
        // type is not `Sync`.
        let next = unsafe { *self.fields.next_frame };
        Ok(next.term_begin_position + i64::from(next.term_offset))
    }

    /// Closes the publication, as [`Publication::close`](crate::Publication::close) does.
    ///
    /// Corresponds to `aeron_exclusive_publication_close`.
    #[doc(alias = "aeron_exclusive_publication_close")]
    pub fn close(self) {
        drop(self);
    }

    /// Closes the publication, and calls `on_complete` once when the publication is closed; see
    /// [`Publication::close_with`](crate::Publication::close_with).
    ///
    /// Corresponds to `aeron_exclusive_publication_close`.
    #[doc(alias = "aeron_exclusive_publication_close")]
    pub fn close_with(self, on_complete: impl FnOnce() + Send + 'static) {
        self.handle.close_with(on_complete);
    }

    /// Returns the C publication, for the functions that have no safe form.
    ///
    /// It is live as long as `self`. Calling C's functions for one writer on it needs the same
    /// exclusiveness as `&mut self`, and closing it is never allowed.
    pub fn as_ptr(&self) -> *mut sys::aeron_exclusive_publication_t {
        self.raw.as_ptr()
    }
}

impl Deref for ExclusivePublication {
    type Target = PublicationHandle;

    #[inline]
    fn deref(&self) -> &PublicationHandle {
        &self.handle
    }
}

impl Resource for ExclusivePublication {}

// SAFETY: both functions are C's for requests of this kind.
unsafe impl sealed::Resource for ExclusivePublication {
    type Raw = *mut sys::aeron_exclusive_publication_t;

    const POLL: PollRequest<Self::Raw> = sys::aeron_async_add_exclusive_publication_poll;
    const CANCEL: CancelRequest = sys::aeron_async_add_exclusive_publication_cancel;

    unsafe fn from_raw(
        raw: Self::Raw,
        client: Arc<Client>,
        _callbacks: Option<CallbackHandle>,
    ) -> Result<Self> {
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        let mut fields = MaybeUninit::uninit();
        // SAFETY: the publication is live, and the function fills in the whole structure.
        let fields = unsafe {
            sys::rusteron_exclusive_publication_fields(raw.as_ptr(), fields.as_mut_ptr());
            fields.assume_init()
        };
        // SAFETY: by the contract, nothing else owns the publication; the fields are its own.
        let handle =
            unsafe { PublicationHandle::new(RawPublication::Exclusive(raw), client, &fields)? };
        let ids = FrameIds::new(fields.session_id, fields.stream_id);
        Ok(Self { handle, fields, raw, ids })
    }
}

rusteron_core::impl_debug!(ExclusivePublication: channel(), stream_id(), session_id(), is_connected(), is_closed());

/// Header values that the frames of an accepted block must have.
struct Expected {
    term_offset: i32,
    term_id: i32,
    session_id: i32,
    stream_id: i32,
    max_payload_length: usize,
    term_buffer_length: i32,
}

impl Expected {
    /// Checks that a block consists of whole frames, and that all of them belong at the stream's
    /// current position.
    ///
    /// C checks only the first frame, and reads it even if the block is too short to hold a frame.
    /// This checks all frames, because subscribers, senders and recorders walk from frame to frame
    /// by the lengths. A wrong length would lead them into bytes that are no frame, or make a
    /// sender wait for ever for a frame that it cannot send.
    fn check(&self, block: &[u8]) -> Result<(), OfferError> {
        let remaining = (self.term_buffer_length - self.term_offset) as usize;
        if block.len() > remaining {
            return Err(OfferError::InvalidBlock { offset: 0, fault: BlockFault::BeyondTerm });
        }
        let mut offset = 0;
        loop {
            // Below the term length, by the check above.
            let term_offset = self.term_offset + offset as i32;
            offset += self
                .check_frame(&block[offset..], term_offset, offset == 0)
                .map_err(|fault| OfferError::InvalidBlock { offset, fault })?;
            if offset == block.len() {
                return Ok(());
            }
        }
    }

    /// Returns the aligned length of the frame at the beginning of `bytes`.
    fn check_frame(
        &self,
        bytes: &[u8],
        term_offset: i32,
        is_first: bool,
    ) -> Result<usize, BlockFault> {
        let header: &[u8; HEADER_LENGTH] = bytes.first_chunk().ok_or(BlockFault::Truncated)?;
        let number = |at: usize| {
            i32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let max = match u16::from_ne_bytes([header[log_buffer::TYPE], header[log_buffer::TYPE + 1]])
        {
            log_buffer::TYPE_DATA => self.max_payload_length + HEADER_LENGTH,
            // The sender sends only the header of padding. As in C, a block must not begin with
            // padding.
            log_buffer::TYPE_PAD if !is_first => self.term_buffer_length as usize,
            other => return Err(BlockFault::Type(other)),
        };
        let (found, version) = (number(log_buffer::FRAME_LENGTH), header[log_buffer::VERSION]);
        let length = usize::try_from(found).unwrap_or(0);
        if !(HEADER_LENGTH..=max).contains(&length) {
            return Err(BlockFault::FrameLength(found));
        }
        if version != log_buffer::CURRENT_VERSION {
            return Err(BlockFault::Version(version));
        }
        let require = |at: usize, expected: i32, fault: fn(Mismatch) -> BlockFault| {
            let found = number(at);
            if found == expected { Ok(()) } else { Err(fault(Mismatch { found, expected })) }
        };
        require(log_buffer::TERM_OFFSET, term_offset, BlockFault::TermOffset)?;
        require(log_buffer::SESSION_ID, self.session_id, BlockFault::SessionId)?;
        require(log_buffer::STREAM_ID, self.stream_id, BlockFault::StreamId)?;
        require(log_buffer::TERM_ID, self.term_id, BlockFault::TermId)?;
        if align(length) > bytes.len() {
            return Err(BlockFault::Truncated);
        }
        Ok(align(length))
    }
}
