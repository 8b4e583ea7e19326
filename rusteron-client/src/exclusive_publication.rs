//! A publication with a log buffer of its own, and its offer in Rust.

use std::ffi::CStr;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use rusteron_sys as sys;

use crate::client::Client;
use crate::error::Result;
use crate::ffi::{Fallible, SendPtr};
use crate::generated::PublicationConstants;
use crate::log_buffer::{self, HEADER_LENGTH, PARTITION_COUNT, align};
use crate::offer_error::{OfferError, Position};
use crate::registration::{Resource, sealed};

/// Sends messages to the subscribers of a channel and stream, from one thread at a time.
///
/// It has a log buffer, and so a session id, of its own, which makes it faster than a
/// [`Publication`](crate::Publication). It keeps its client open; dropping it tells the media driver
/// that this publisher is gone, after what was offered has been delivered.
///
/// Made by [`Aeron::add_exclusive_publication`](crate::Aeron::add_exclusive_publication).
pub struct ExclusivePublication {
    /// The fields of the C structure that an offer works on, at the addresses C uses itself.
    fields: sys::rusteron_exclusive_publication_t,
    raw: NonNull<sys::aeron_exclusive_publication_t>,
    constants: PublicationConstants,
    client: Arc<Client>,
}

// SAFETY: nothing in the C structure is tied to a thread; its fields for one writer are reached by
// `&mut self` only, so that moving it is moving the writer.
unsafe impl Send for ExclusivePublication {}

impl ExclusivePublication {
    /// Offers one message, of any length up to
    /// [`max_message_length`](PublicationConstants::max_message_length) bytes, to the subscribers;
    /// if it does not fit in one fragment, it is sent in several.
    ///
    /// Copies the message into the log buffer and returns the position after it. Does not block,
    /// does not allocate, makes no system call.
    ///
    /// # Errors
    /// Nothing has been sent; see [`OfferError`].
    ///
    /// Corresponds to `aeron_exclusive_publication_offer`.
    #[inline]
    pub fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        let fields = &self.fields;
        // SAFETY: these addresses belong to the publication, which lives as long as `self`, and to
        // memory that stays mapped until then, even if the driver dies; C writes them atomically.
        let (is_closed, limit) = unsafe {
            (
                log_buffer::atomic_bool(fields.is_closed).load(Ordering::Acquire),
                log_buffer::atomic_i64(fields.position_limit).load(Ordering::Acquire),
            )
        };
        if is_closed {
            return Err(OfferError::Closed);
        }
        // SAFETY: the fields of the only writer, which `&mut self` is.
        let (term_offset, term_begin_position) =
            unsafe { (*fields.term_offset, *fields.term_begin_position) };
        let position = term_begin_position + i64::from(term_offset);
        if position >= limit {
            return Err(self.back_pressure(position, message.len()));
        }
        let frame_length = message.len() + HEADER_LENGTH;
        let end = term_offset as usize + align(frame_length);
        if message.len() > fields.max_payload_length || end > fields.term_buffer_length as usize {
            // Several fragments, or the end of a term: C does that rarer work.
            return self.offer_in_c(message);
        }
        // SAFETY: the frame lies within the active term, as checked above, and behind the position
        // limit, so that nobody reads or cleans there.
        unsafe { self.append(message, term_offset, end as i32) };
        Ok(term_begin_position + end as i64)
    }

    /// Writes one frame at `offset`, which makes the stream end at `end`.
    ///
    /// # Safety
    /// `offset` is the publication's term offset, `end` that of the frame's end after alignment, and
    /// `end` is not beyond the term. The position of `offset` is below the position limit.
    #[inline(always)]
    unsafe fn append(&mut self, message: &[u8], offset: i32, end: i32) {
        let fields = &self.fields;
        let frame_length = (message.len() + HEADER_LENGTH) as i32;
        // SAFETY: by the contract, all addresses below lie in the frame or are the writer's own
        // fields; the active index is always below the number of partitions. Payload and header are
        // not read by anybody before the frame length turns positive.
        unsafe {
            let index = *fields.active_partition_index;
            debug_assert!(index < PARTITION_COUNT);
            let term_id = *fields.term_id;
            // The tail goes first, as in C: should this process die in between, the driver finds
            // the length that it has to unblock.
            let tail = (i64::from(term_id) << 32) | i64::from(end);
            log_buffer::atomic_i64(fields.term_tail_counters.add(index))
                .store(tail, Ordering::Release);

            let frame = fields.term_buffers.get_unchecked(index).add(offset as usize);
            let published_length =
                log_buffer::atomic_i32(frame.add(log_buffer::FRAME_LENGTH).cast());
            // Negative: here is a frame, and it is not finished. The fence keeps the rest of the
            // header from being seen before that.
            published_length.store(-frame_length, Ordering::Release);
            fence(Ordering::Release);

            frame.add(log_buffer::VERSION).write(log_buffer::CURRENT_VERSION);
            frame.add(log_buffer::FLAGS).write(log_buffer::BEGIN_FLAG | log_buffer::END_FLAG);
            frame.add(log_buffer::TYPE).cast::<u16>().write(log_buffer::TYPE_DATA);
            frame.add(log_buffer::TERM_OFFSET).cast::<i32>().write(offset);
            frame.add(log_buffer::SESSION_ID).cast::<i32>().write(fields.session_id);
            frame.add(log_buffer::STREAM_ID).cast::<i32>().write(fields.stream_id);
            frame.add(log_buffer::TERM_ID).cast::<i32>().write(term_id);
            ptr::copy_nonoverlapping(message.as_ptr(), frame.add(HEADER_LENGTH), message.len());

            // Everything above becomes visible with this.
            published_length.store(frame_length, Ordering::Release);
            *fields.term_offset = end;
        }
    }

    #[cold]
    fn offer_in_c(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        // SAFETY: the publication is live and `&mut self` is its only user; the message is readable
        // for its whole length, and without a supplier C calls nothing back.
        let returned = unsafe {
            sys::aeron_exclusive_publication_offer(
                self.raw.as_ptr(),
                message.as_ptr(),
                message.len(),
                None,
                ptr::null_mut(),
            )
        };
        OfferError::from_c(returned, message.len(), self.fields.max_message_length)
    }

    #[cold]
    fn back_pressure(&self, position: Position, length: usize) -> OfferError {
        let end = position.saturating_add(align(length.saturating_add(HEADER_LENGTH)) as i64);
        if end >= self.fields.max_possible_position {
            OfferError::MaxPositionExceeded
        } else if self.is_connected() {
            OfferError::BackPressured
        } else {
            OfferError::NotConnected
        }
    }

    /// Whether a subscriber has been heard of lately.
    ///
    /// Corresponds to `aeron_exclusive_publication_is_connected`.
    pub fn is_connected(&self) -> bool {
        // SAFETY: the publication is live; the function reads atomics.
        unsafe { sys::aeron_exclusive_publication_is_connected(self.raw.as_ptr()) }
    }

    /// Whether the client was closed by a fatal error, and this publication with it.
    ///
    /// Corresponds to `aeron_exclusive_publication_is_closed`.
    pub fn is_closed(&self) -> bool {
        // SAFETY: the publication is live; the function reads an atomic flag.
        unsafe { sys::aeron_exclusive_publication_is_closed(self.raw.as_ptr()) }
    }

    /// The position after everything that has been offered so far.
    ///
    /// # Errors
    /// [`OfferError::Closed`] once the publication is closed.
    ///
    /// Corresponds to `aeron_exclusive_publication_position`.
    pub fn position(&self) -> Result<Position, OfferError> {
        // SAFETY: the publication is live; what the function reads is written by the holder of
        // `&mut self` only, which cannot be at work now, because this type is not `Sync`.
        let returned = unsafe { sys::aeron_exclusive_publication_position(self.raw.as_ptr()) };
        OfferError::from_c(returned, 0, 0)
    }

    /// The stream's channel, as it was given when the publication was added.
    pub fn channel(&self) -> &str {
        &self.constants.channel
    }

    /// The stream id within the channel.
    pub fn stream_id(&self) -> i32 {
        self.constants.stream_id
    }

    /// The number that tells this publisher from others of the same stream.
    pub fn session_id(&self) -> i32 {
        self.constants.session_id
    }

    /// What does not change during the publication's life: ids, lengths in bytes, counters.
    ///
    /// Corresponds to `aeron_exclusive_publication_constants`.
    pub fn constants(&self) -> &PublicationConstants {
        &self.constants
    }

    /// The C publication, for the functions that have no safe form yet.
    ///
    /// It is live as long as `self`. Calling C's functions for one writer on it needs the same
    /// exclusiveness as `&mut self`, and closing it is never allowed.
    pub fn as_ptr(&self) -> *mut sys::aeron_exclusive_publication_t {
        self.raw.as_ptr()
    }
}

impl Resource for ExclusivePublication {}

impl sealed::Resource for ExclusivePublication {
    type Raw = sys::aeron_exclusive_publication_t;
    type Callbacks = ();

    unsafe fn poll(
        raw: &mut *mut Self::Raw,
        registering: *mut sys::aeron_client_registering_resource_stct,
    ) -> i32 {
        // SAFETY: handed on to the caller.
        unsafe { sys::aeron_async_add_exclusive_publication_poll(raw, registering) }
    }

    unsafe fn cancel(
        client: *mut sys::aeron_t,
        registering: *mut sys::aeron_client_registering_resource_stct,
        (): (),
    ) -> i32 {
        // SAFETY: handed on to the caller.
        unsafe { sys::aeron_async_add_exclusive_publication_cancel(client, registering) }
    }

    unsafe fn from_raw(raw: NonNull<Self::Raw>, client: Arc<Client>, (): ()) -> Result<Self> {
        let mut constants = MaybeUninit::uninit();
        // SAFETY: the publication is live, and C fills the structure in or fails.
        unsafe { sys::aeron_exclusive_publication_constants(raw.as_ptr(), constants.as_mut_ptr()) }
            .into_result()?;
        // SAFETY: filled in just now; its channel lives as long as the publication.
        let constants = unsafe { PublicationConstants::from_raw(constants.assume_init_ref()) };
        let mut fields = MaybeUninit::uninit();
        // SAFETY: the publication is live, and the function fills in the whole structure.
        let fields = unsafe {
            sys::rusteron_exclusive_publication_fields(raw.as_ptr(), fields.as_mut_ptr());
            fields.assume_init()
        };
        Ok(Self { fields, raw, constants, client })
    }
}

impl sealed::Stream for ExclusivePublication {
    unsafe fn add(
        registering: &mut *mut sys::aeron_client_registering_resource_stct,
        client: *mut sys::aeron_t,
        channel: &CStr,
        stream_id: i32,
        (): (),
    ) -> i32 {
        let channel = channel.as_ptr();
        // SAFETY: handed on to the caller; C copies the channel.
        unsafe {
            sys::aeron_async_add_exclusive_publication(registering, client, channel, stream_id)
        }
    }
}

impl Drop for ExclusivePublication {
    fn drop(&mut self) {
        let (raw, registration_id) = (SendPtr(self.raw.as_ptr()), self.constants.registration_id);
        self.client.release(move || {
            // SAFETY: the publication is live, and closing hands it over to the conductor, which frees
            // it; this was the only owner. If the client was ended by an error, nothing happens
            // here and the publication is freed with the client.
            let closed =
                unsafe { sys::aeron_exclusive_publication_close(raw.get(), None, ptr::null_mut()) };
            if let Err(error) = closed.into_result() {
                log::debug!("exclusive publication {registration_id}: {error}");
            }
        });
    }
}

impl fmt::Debug for ExclusivePublication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExclusivePublication")
            .field("channel", &self.channel())
            .field("stream_id", &self.stream_id())
            .field("session_id", &self.session_id())
            .field("is_connected", &self.is_connected())
            .field("client_is_closed", &self.client.is_closed())
            .finish()
    }
}
