//! Sending messages.
//!
//! `offer` and `try_claim` are Rust and compile into the caller's loop. They work on the C
//! publication's own fields, whose addresses the shim returns, with C's memory orders. No second
//! copy of the state exists, so C functions work on the same handle before and after a Rust call.
//! Slow paths are functions outside the caller's loop.
//!
//! - **Exclusive publication.** An offer compares the position with the position limit, and the
//!   frame's end with the term's end. It moves the tail, writes the header with the negative
//!   length, copies the payload, and stores the positive length with release, which publishes the
//!   frame. Offset, index and lengths are in private memory, and were checked when the publication
//!   was made.
//! - **Shared publication.** An offer claims its range with one atomic addition to the tail. The
//!   tail is in shared memory, so a range is used only if its end lies in the term and is aligned.
//!   The publisher whose claim passes the end of the term writes padding and rotates the log. Each
//!   offer is a claim that is committed at once; if the driver has unblocked it, the commit writes
//!   nothing.
//! - **Several fragments** claim one range, and each is published as soon as it is written. C
//!   writes nothing, because its functions read the tail again after any check.
//! - **Batches** consist of runs. The tail moves once for each run: its first frame gets the
//!   negative length of the whole run, the others their own lengths, and the first frame's positive
//!   length comes last. If the publisher dies, one gap remains, which the driver turns into one
//!   padding frame, so subscribers get the whole run or nothing of it. They do not touch the cache
//!   lines that the publisher is writing. The caller's code (`as_ref`) runs before the range is
//!   claimed.
//! - **Copying.** On x86-64, payloads of 256 bytes to 3 KiB are copied forward, one cache line at a
//!   time. Each written line may come from memory, and `memcpy`, which stores more bytes at a time,
//!   is slower there.

mod batch;
mod buffer_claim;
mod exclusive_publication;
mod fill_block;
mod fragments;
mod handle;
mod next_frame;
mod publisher;

pub use batch::OfferedBatch;
pub use buffer_claim::BufferClaim;
pub use exclusive_publication::ExclusivePublication;
pub use handle::PublicationHandle;
pub(crate) use handle::RawPublication;
pub use publisher::{AnyPublication, Publisher};

use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};

use rusteron_core::error::{OfferError, Position, Result};
use rusteron_core::ffi::last_error;
use rusteron_core::log_buffer::protocol::{Tail, Terms};
use rusteron_core::log_buffer::{
    self, FRAME_ALIGNMENT, FrameIds, HEADER_LENGTH, PARTITION_COUNT, align,
};
use rusteron_sys as sys;

use crate::client::Client;
use crate::client::registration::{CancelRequest, PollRequest, Resource, sealed};
use crate::client::subscription_callbacks::CallbackHandle;

/// Sends messages to the subscribers of a channel and stream; threads share it by reference.
///
/// Messages of several threads go one after the other into the same log buffer, each whole. A
/// publication keeps its client open. Dropping it tells the media driver that this publisher is
/// gone, after the offered messages have been delivered.
///
/// Made by [`Aeron::add_publication`](crate::Aeron::add_publication).
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// use std::thread;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// # let _subscription = aeron.add_subscription("aeron:ipc", 1001)?;
/// let publication = aeron.add_publication("aeron:ipc", 1001)?;
/// thread::scope(|scope| {
///     for message in ["one", "two"] {
///         let publication = &publication;
///         scope.spawn(move || {
///             // An offer fails before a subscriber is connected, and under back pressure.
///             while publication.offer(message.as_bytes()).is_err_and(|error| error.is_retryable()) {
///                 thread::yield_now();
///             }
///         });
///     }
/// });
/// # Ok(())
/// # }
/// ```
#[doc(alias("ConcurrentPublication", "aeron_publication_t"))]
#[must_use = "the publication is closed when this is dropped"]
pub struct Publication {
    pub(crate) handle: PublicationHandle,
    /// The fields of the C structure that an offer works on, at the addresses C uses itself.
    pub(crate) fields: sys::rusteron_publication_t,
    /// The length of a term, in units of the frame alignment.
    aligned_lengths_per_term: u64,
    raw: NonNull<sys::aeron_publication_t>,
    pub(crate) ids: FrameIds,
}

/// A range of the stream that one publisher has claimed.
#[derive(Clone, Copy)]
pub(crate) struct ClaimedRange {
    /// Address of the first frame.
    pub(crate) frame: *mut u8,
    /// The same position as a tail.
    pub(crate) raw_tail: i64,
    pub(crate) end_position: Position,
}

/// The remaining range that can be claimed, in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Remaining {
    /// Remaining bytes up to the position limit, below which every message has to begin.
    pub(crate) window: usize,
    /// Remaining bytes up to the end of the term, or the most that is claimed at once.
    pub(crate) length: usize,
}

// SAFETY: this is Aeron's publication for concurrent use: C and Rust move the shared tail with
// atomic operations and may do so on any number of threads. All other memory behind the fields is
// read only.
unsafe impl Send for Publication {}
// SAFETY: as above.
unsafe impl Sync for Publication {}

impl Publication {
    /// Offers one message, of any length up to
    /// [`max_message_length`](PublicationHandle::max_message_length) bytes, to the subscribers. A
    /// message that does not fit in one fragment is sent in several.
    ///
    /// Copies the message into the log buffer and returns the position after it. Does not block, does
    /// not allocate, makes no system call; may be called from any thread.
    ///
    /// # Errors
    /// Nothing has been sent; see [`OfferError`]. A thread gets [`OfferError::Unblocked`] only if
    /// it was held up for longer than the driver's publication unblock timeout while it copied the
    /// message. A thread that was held up earlier, between moving the tail and writing the header,
    /// gets no error, as in C: the message is lost.
    ///
    /// Corresponds to `aeron_publication_offer`.
    #[doc(alias = "aeron_publication_offer")]
    #[inline]
    pub fn offer(&self, message: &[u8]) -> Result<Position, OfferError> {
        if message.len() > self.fields.max_payload_length {
            return self.offer_fragments(message.len(), |part, frame| {
                // SAFETY: the frame was begun for this part of the message, and is this call's alone.
                unsafe { log_buffer::copy_payload(&message[part], frame) };
            });
        }
        let claim = self.claim(message.len())?;
        // SAFETY: the claim is as long as the message, and no other slice of its memory exists.
        unsafe { log_buffer::copy_payload(message, claim.frame()) };
        claim.commit()
    }

    /// Claims a range of the log buffer for a message of `length` bytes, up to
    /// [`max_payload_length`](PublicationHandle::max_payload_length). The caller writes the message
    /// there without a copy. The range starts at a multiple of 32 bytes in memory.
    ///
    /// Does not block, does not allocate; may be called from any thread, also while there are other
    /// claims. A length of 0 is an empty message.
    ///
    /// # Errors
    /// Nothing has been claimed; see [`OfferError`].
    ///
    /// Corresponds to `aeron_publication_try_claim`.
    #[doc(alias = "aeron_publication_try_claim")]
    #[inline]
    pub fn try_claim(&self, length: usize) -> Result<BufferClaim<'_>, OfferError> {
        let max = self.fields.max_payload_length;
        if length > max {
            return Err(OfferError::MessageTooLong { length, max_message_length: max });
        }
        self.claim(length)
    }

    /// Claims a range of a length that fits into a fragment.
    #[inline(always)]
    fn claim(&self, length: usize) -> Result<BufferClaim<'_>, OfferError> {
        let frame_length = length + HEADER_LENGTH;
        let range = self.claim_range(length, |_| align(frame_length))?;
        // As in C, does not check for unblocking: reading the frame first would cost a second
        // transfer of its cache line between the cores. If the driver has unblocked the range since
        // this thread claimed it, the message is lost without an error.
        //
        // SAFETY: the claimed range is this call's alone, whose claim is the frame's only user. Its
        // memory is mapped as long as the publication lives: the conductor unmaps it on closing it,
        // for which `self` cannot be borrowed, or in `aeron_close`, before which `self` holds the
        // client; the death of the client or the driver marks the publication as closed and unmaps
        // nothing.
        unsafe {
            log_buffer::begin_frame(range.frame, frame_length as i32, range.raw_tail, self.ids);
            let frame = NonNull::new_unchecked(range.frame);
            Ok(BufferClaim::new(frame, length, range.end_position))
        }
    }

    /// Claims a range of the stream. `choose` gets the remaining length and returns the length to
    /// claim, a multiple of the frame alignment. If no message of `length` bytes is accepted now,
    /// returns the reason.
    ///
    /// The returned range lies in the active term. No other publisher gets it, no subscriber reads
    /// it, and the driver does not clean it. The tail was below the limit, which is at most half a
    /// term ahead of the subscribers. If other publishers come first, the range can begin above the
    /// limit, but in the same term. It is then less than one and a half terms ahead of the
    /// subscribers, and all of that has been cleaned.
    #[inline(always)]
    pub(crate) fn claim_range(
        &self,
        length: usize,
        choose: impl FnOnce(Remaining) -> usize,
    ) -> Result<ClaimedRange, OfferError> {
        let fields = &self.fields;
        // Copied before the acquire loads, after which the compiler would read the fields again.
        let (limit, terms) = (self.handle.limit, self.terms());
        log_buffer::prefetch_for_write::<0>(fields.term_tail_counters.cast());
        // SAFETY: the address belongs to the publication, which lives as long as `self`; C writes it atomically.
        if unsafe { AtomicBool::from_ptr(fields.is_closed).load(Ordering::Acquire) } {
            return Err(self.closed());
        }
        // The limit belongs to another publication: the driver has timed out the client, and closed
        // the publication.
        let Some(limit) = limit.position() else { return Err(self.closed()) };
        let Some(tail) = terms.tail() else { return Err(OfferError::AdminAction.rare()) };
        let position = self.begin_position(tail) + tail.offset();
        // Unsigned, so that no negative position passes.
        if position as u64 >= limit as u64 {
            self.check_limit(tail, limit, length)?;
        }
        let left_of_term = i64::from(fields.term_buffer_length) - tail.offset();
        let claimed = choose(Remaining {
            // Negative only for a tail beyond its term, where nothing remains whatever this value
            // is.
            window: usize::try_from(limit.wrapping_sub(position)).unwrap_or(usize::MAX),
            length: fields.max_message_length.min(left_of_term.max(0) as usize),
        });
        // Meanwhile the tail can have moved on or, after a long pause, be in a later term.
        let tail = terms.claim(tail.index, claimed);
        // Another process can have written any tail. Of an unaligned end, the rotation makes a number
        // greater than that of any term's end, so that one comparison refuses both.
        let end = (tail.offset() + claimed as i64) as u64;
        if end.rotate_right(FRAME_ALIGNMENT.trailing_zeros()) > self.aligned_lengths_per_term {
            return Err(self.end_of_term(tail, claimed));
        }
        Ok(self.claimed_range(tail, claimed))
    }

    /// # Panics
    /// Never: the index of a tail is below the number of term buffers.
    #[inline(always)]
    fn claimed_range(&self, tail: Tail, claimed: usize) -> ClaimedRange {
        let fields = &self.fields;
        ClaimedRange {
            // An offset within the term, or the term's length.
            frame: fields.term_buffers[tail.index].wrapping_add(tail.offset() as usize),
            raw_tail: tail.raw(),
            end_position: self.position_of(tail) + claimed as i64,
        }
    }

    /// Returns the position of a tail. For a tail beyond the end of its term, returns the position
    /// of that end.
    #[inline(always)]
    fn position_of(&self, tail: Tail) -> Position {
        self.begin_position(tail) + tail.offset().min(self.fields.term_buffer_length.into())
    }

    /// Returns the position at which the tail's term begins.
    #[inline(always)]
    fn begin_position(&self, tail: Tail) -> Position {
        let term_count = tail.term_id().wrapping_sub(self.fields.initial_term_id);
        // Takes an instruction less than a shift by a number of bits that is not constant.
        i64::from(term_count) * i64::from(self.fields.term_buffer_length)
    }

    /// Returns an error for a tail beyond the limit. If the tail is also beyond its term, and the
    /// term's end is below the limit, returns no error: the caller then rotates the log.
    #[cold]
    #[inline(never)]
    fn check_limit(&self, tail: Tail, limit: Position, length: usize) -> Result<(), OfferError> {
        let position = self.position_of(tail);
        match position {
            ..0 => Err(OfferError::CorruptLogBuffer),
            _ if position >= limit => Err(self.back_pressure(position, length)),
            _ => Ok(()),
        }
    }

    /// Ends the term. If this publisher's claim crossed the end, pads the rest of the term. Rotates
    /// the log, unless another publisher has done so. `tail` is the tail at which the claim of
    /// `claimed` bytes failed.
    #[cold]
    fn end_of_term(&self, tail: Tail, claimed: usize) -> OfferError {
        if tail.offset() % FRAME_ALIGNMENT as i64 != 0 || self.begin_position(tail) < 0 {
            // The tail stays where it is, so that no later claim is accepted either.
            self.terms().give_back(tail.index, claimed);
            return OfferError::CorruptLogBuffer;
        }
        let left = i64::from(self.fields.term_buffer_length) - tail.offset();
        if left > 0 {
            let range = self.claimed_range(tail, claimed);
            // SAFETY: the rest of the term is this publisher's: the tail is now beyond the term.
            unsafe {
                if log_buffer::is_vacant(range.frame) {
                    log_buffer::write_padding(range.frame, left as i32, range.raw_tail, self.ids);
                }
            }
        }
        if self.position_of(tail) + claimed as i64 >= self.fields.max_possible_position {
            if left <= 0 {
                // There is no next term. With ever more offers, the tail would overflow into its
                // highest bits.
                self.terms().give_back(tail.index, claimed);
            }
            return OfferError::MaxPositionExceeded;
        }
        self.terms().rotate(tail.term_id());
        OfferError::AdminAction
    }

    #[inline(always)]
    fn terms(&self) -> Terms<'_, AtomicI64, AtomicI32> {
        let fields = &self.fields;
        // SAFETY: mapped as in `claim_range`; `term_tail_counters` is the address of one tail for
        // each term buffer, and all publishers write the tails atomically.
        unsafe {
            Terms {
                tails: &*fields.term_tail_counters.cast::<[AtomicI64; PARTITION_COUNT]>(),
                active_term_count: AtomicI32::from_ptr(fields.active_term_count),
                initial_term_id: fields.initial_term_id,
            }
        }
    }

    /// Returns the position after all messages that have been offered or claimed so far, in bytes.
    ///
    /// # Errors
    /// [`OfferError::Closed`] once the publication is closed; [`OfferError::CorruptLogBuffer`] if
    /// another process has overwritten the tail.
    ///
    /// Corresponds to `aeron_publication_position`.
    #[doc(alias = "aeron_publication_position")]
    pub fn position(&self) -> Result<Position, OfferError> {
        if self.is_closed() {
            return Err(self.closed());
        }
        let (_, tail) = self.terms().newest_tail();
        let position = self.position_of(tail);
        if position < 0 { Err(OfferError::CorruptLogBuffer) } else { Ok(position) }
    }

    /// Closes the publication: tells the media driver that this publisher is gone, after the offered
    /// messages have been delivered. Dropping the publication does the same. Does not block.
    ///
    /// Corresponds to `aeron_publication_close`.
    #[doc(alias = "aeron_publication_close")]
    pub fn close(self) {
        drop(self);
    }

    /// Closes the publication, and calls `on_complete` once when the publication is closed. By then
    /// the log buffer is unmapped, unless another handle uses it, and the media driver has been told.
    ///
    /// Does not block. The callback runs on the client's conductor thread and holds up the conductor
    /// meanwhile. If the client closes first, the callback runs on the thread that closes the client.
    /// Calls in the callback that would wait for the conductor return
    /// [`ErrorKind::CalledFromConductor`](crate::ErrorKind::CalledFromConductor). A panic in the
    /// callback is logged.
    ///
    /// If a fatal error has ended the client, the publication is closed already, and is freed when the
    /// last handle of the client is dropped. The callback then runs in this call. If the error comes
    /// between this call and the closing, the callback runs when that last handle is dropped. So the
    /// callback must not own a handle of the client.
    ///
    /// A client without a conductor thread closes the publication, and calls the callback, in this
    /// call. If this is called from a callback, both happen after that callback has returned.
    ///
    /// Corresponds to `aeron_publication_close`.
    #[doc(alias = "aeron_publication_close")]
    pub fn close_with(self, on_complete: impl FnOnce() + Send + 'static) {
        self.handle.close_with(on_complete);
    }

    /// Returns the C publication, for the functions that have no safe form.
    ///
    /// It is live as long as `self`. Any thread may call C's functions for offers on it; closing it is
    /// never allowed.
    pub fn as_ptr(&self) -> *mut sys::aeron_publication_t {
        self.raw.as_ptr()
    }
}

impl Deref for Publication {
    type Target = PublicationHandle;

    #[inline]
    fn deref(&self) -> &PublicationHandle {
        &self.handle
    }
}

impl Resource for Publication {}

// SAFETY: both functions are C's for requests of this kind.
unsafe impl sealed::Resource for Publication {
    type Raw = *mut sys::aeron_publication_t;

    const POLL: PollRequest<Self::Raw> = sys::aeron_async_add_publication_poll;
    const CANCEL: CancelRequest = sys::aeron_async_add_publication_cancel;

    unsafe fn from_raw(
        raw: Self::Raw,
        client: Arc<Client>,
        _callbacks: Option<CallbackHandle>,
    ) -> Result<Self> {
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        let mut fields = MaybeUninit::uninit();
        // SAFETY: the publication is live, and the function fills in the whole structure.
        let fields = unsafe {
            sys::rusteron_publication_fields(raw.as_ptr(), fields.as_mut_ptr());
            fields.assume_init()
        };
        // SAFETY: by the contract, nothing else owns the publication; the fields are its own.
        let handle =
            unsafe { PublicationHandle::new(RawPublication::Shared(raw), client, &fields)? };
        let ids = FrameIds::new(fields.session_id, fields.stream_id);
        let aligned_lengths_per_term = fields.term_buffer_length as u64 / FRAME_ALIGNMENT as u64;
        Ok(Self { handle, fields, aligned_lengths_per_term, raw, ids })
    }
}

rusteron_core::impl_debug!(Publication: channel(), stream_id(), session_id(), is_connected(), is_closed());
