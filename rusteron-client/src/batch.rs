//! Offering many messages at once.

use std::sync::atomic::{AtomicI64, Ordering};

use rusteron_sys as sys;

use crate::exclusive_place::PlaceInTerm;
use crate::exclusive_publication::ExclusivePublication;
use crate::log_buffer::{self, FrameIds, HEADER_LENGTH, align};
use crate::offer_error::OfferError;
use crate::protocol;
use crate::publication::{Place, Publication};

/// How many messages of a batch were taken, and what kept the others from it.
///
/// The messages that were taken are the first ones of the batch, and have been sent like single ones:
/// subscribers get each of them once and in this order. To go on, offer the rest of the slice:
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
/// # let mut publication = aeron.add_exclusive_publication("aeron:ipc", 1001)?;
/// # while !publication.is_connected() { std::thread::yield_now(); }
/// let messages = [b"one".as_slice(), b"two", b"three"];
/// let mut left = &messages[..];
/// while !left.is_empty() {
///     let batch = publication.offer_batch(left);
///     left = &left[batch.accepted..];
///     match batch.stopped_by {
///         Some(error) if !error.is_retryable() => return Err(error.into()),
///         Some(_) => std::thread::yield_now(),
///         None => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "the messages after the accepted ones have not been sent"]
pub struct OfferedBatch {
    /// How many messages were taken, from the first on.
    pub accepted: usize,
    /// Why the message after them was not; `None` if all were.
    pub stopped_by: Option<OfferError>,
}

impl ExclusivePublication {
    /// Offers messages one after the other, as [`offer`](Self::offer) does, and stops at the first that
    /// is not taken.
    ///
    /// Looks once whether the publication is closed and how far the subscribers are, instead of for
    /// every message; otherwise what is written, and in which order it becomes visible, is the same.
    /// Goes on into the next term by itself. Long messages are sent in fragments.
    ///
    /// Does not block, does not allocate, makes no system call. If `as_ref` of a message panics, the
    /// messages before it have been sent.
    ///
    /// Corresponds to no function of C.
    pub fn offer_batch<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> OfferedBatch {
        let mut accepted = 0;
        while accepted < messages.len() {
            accepted += self.offer_run(&messages[accepted..]);
            let Some(message) = messages.get(accepted) else { break };
            // What the run has left over: a long message, the end of the term, an error.
            match self.offer(message.as_ref()) {
                Ok(_) => accepted += 1,
                // The term was filled up, and the next one begun.
                Err(OfferError::AdminAction) => {}
                Err(error) => return OfferedBatch { accepted, stopped_by: Some(error) },
            }
        }
        OfferedBatch { accepted, stopped_by: None }
    }

    /// The messages that need nothing but a frame in this term, up to the first that does; how many.
    fn offer_run<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> usize {
        let Some(mut writer) = self.writer() else { return 0 };
        let mut accepted = 0;
        for message in messages {
            if !writer.write(message.as_ref()) {
                break;
            }
            accepted += 1;
        }
        accepted
    }
}

impl Publication {
    /// Offers messages one after the other, as [`offer`](Self::offer) does, and stops at the first that
    /// is not taken.
    ///
    /// Takes a place for many messages with one atomic addition, which is what publishers on other
    /// threads wait for: up to [`max_message_length`](Self::max_message_length) bytes, headers
    /// included, or to the end of the term. Messages that share a place follow each other directly;
    /// between places, messages of other threads can come. Long messages are sent in fragments.
    ///
    /// Does not block, does not allocate, makes no system call. `as_ref` is called several times for
    /// each message, the last time while nothing that is offered after the batch reaches anybody, so it
    /// should be quick. If it panics, the messages before have been sent, and padding takes the place of
    /// the others; so it does if it returns something longer than before.
    ///
    /// Corresponds to no function of C.
    pub fn offer_batch<M: AsRef<[u8]>>(&self, messages: &[M]) -> OfferedBatch {
        let mut accepted = 0;
        let mut is_rotated = false;
        while let Some(message) = messages.get(accepted) {
            let outcome = if message.as_ref().len() > self.max_payload_length() {
                self.offer(message.as_ref()).map(|_| 1)
            } else {
                self.offer_run(&messages[accepted..])
            };
            match outcome {
                Ok(count) => {
                    accepted += count;
                    is_rotated = false;
                }
                // The next term has most likely been begun; but another publisher can be at it.
                Err(OfferError::AdminAction) if !is_rotated => is_rotated = true,
                Err(error) => return OfferedBatch { accepted, stopped_by: Some(error) },
            }
        }
        OfferedBatch { accepted, stopped_by: None }
    }

    /// As many messages as one place takes, one at least; how many.
    fn offer_run<M: AsRef<[u8]>>(&self, messages: &[M]) -> Result<usize, OfferError> {
        let mut count = 0;
        let max = self.max_payload_length();
        let place = self.claim_place(0, |room| {
            let mut taken = 0;
            for message in messages {
                let length = message.as_ref().len();
                let end = taken + align(length.min(max) + HEADER_LENGTH);
                // The first comes in any case: if there is no room for it, that has to be found out.
                let fits = length <= max && taken < room.window && end <= room.length;
                if !fits && count > 0 {
                    break;
                }
                (taken, count) = (end, count + 1);
            }
            taken
        })?;
        // SAFETY: the place was taken just now, for this alone.
        let mut unfilled = unsafe { Unfilled::new(place) };
        for (index, message) in messages[..count].iter().enumerate() {
            if !unfilled.fill(message.as_ref(), max) {
                return if index > 0 { Ok(index) } else { Err(OfferError::Unblocked) };
            }
        }
        Ok(count)
    }
}

/// Writes messages into the active term of an exclusive publication, one after the other.
pub(crate) struct Writer<'a> {
    term: *mut u8,
    tail: &'a AtomicI64,
    place: PlaceInTerm,
    /// What both of them say: where the next frame begins.
    raw_tail: i64,
    /// Where the position limit is, or the end of the term; frames begin before.
    limit_offset: u32,
    term_length: u32,
    max_payload_length: usize,
    ids: FrameIds,
}

impl<'a> Writer<'a> {
    /// # Safety
    /// Term, tail and place are those of the publication's active term, and nobody else uses the
    /// publication as long as this lives.
    #[inline(always)]
    pub(crate) unsafe fn new(
        term: *mut u8,
        tail: &'a AtomicI64,
        place: PlaceInTerm,
        limit_offset: u32,
        fields: &sys::rusteron_exclusive_publication_t,
    ) -> Self {
        let raw_tail = place.raw_tail();
        Self {
            term,
            tail,
            place,
            raw_tail,
            limit_offset,
            term_length: fields.term_buffer_length as u32,
            max_payload_length: fields.max_payload_length,
            ids: FrameIds {
                session_id: fields.session_id,
                stream_id: fields.stream_id,
                term_id: (raw_tail >> 32) as i32,
            },
        }
    }

    /// Publishes a message that needs one frame, which is before the limit and within the term; returns
    /// whether it is such a message.
    #[inline(always)]
    fn write(&mut self, message: &[u8]) -> bool {
        let offset = self.raw_tail as u32;
        let length = message.len();
        if length > self.max_payload_length || offset >= self.limit_offset {
            return false;
        }
        // As in `ExclusivePublication::begin_frame`.
        let aligned = align(length + HEADER_LENGTH);
        if offset + aligned as u32 > self.term_length {
            return false;
        }
        let frame_length = (length + HEADER_LENGTH) as i32;
        self.raw_tail += aligned as i64;
        protocol::set_tail(self.tail, self.raw_tail);
        self.place.set(self.raw_tail);
        // SAFETY: by the checks, as in `ExclusivePublication::begin_frame`.
        unsafe {
            let frame = self.term.add(offset as usize);
            log_buffer::begin_frame(frame, frame_length, offset as i32, self.ids);
            log_buffer::copy_payload(message, frame);
            protocol::publish_frame(log_buffer::frame_length_of(frame), frame_length);
        }
        true
    }
}

/// What is left of a place that was taken for several frames. Dropping it makes padding of that, so that
/// the stream goes on.
struct Unfilled {
    frame: *mut u8,
    offset: i32,
    left: usize,
    ids: FrameIds,
}

impl Unfilled {
    /// # Safety
    /// The place is this call's alone, as [`Publication::claim_place`] gives it.
    unsafe fn new(place: Place) -> Self {
        Self { frame: place.frame, offset: place.offset, left: place.length, ids: place.ids }
    }

    /// Writes and publishes a frame; returns whether it is there. It is not if the media driver has made
    /// padding of its place because it took too long, or if the message does not fit.
    #[inline(always)]
    fn fill(&mut self, message: &[u8], max_payload_length: usize) -> bool {
        let frame_length = message.len() + HEADER_LENGTH;
        let aligned = align(frame_length);
        if message.len() > max_payload_length || aligned > self.left || !self.is_vacant() {
            return false;
        }
        let frame_length = frame_length as i32;
        let frame = self.frame;
        // SAFETY: by the check the frame lies in the place, which is mapped as long as the publication,
        // and by the contract of `new` it is this call's alone.
        unsafe {
            log_buffer::begin_frame(frame, frame_length, self.offset, self.ids);
            self.frame = frame.add(aligned);
            self.offset += aligned as i32;
            self.left -= aligned;
            log_buffer::copy_payload(message, frame);
            let length = log_buffer::frame_length_of(frame);
            // As in `BufferClaim::commit`.
            if length.load(Ordering::Relaxed) != -frame_length {
                return false;
            }
            protocol::publish_frame(length, frame_length);
        }
        true
    }

    /// Whether the next frame has not been made padding by the media driver: it is as it was cleaned.
    #[inline(always)]
    fn is_vacant(&self) -> bool {
        // SAFETY: as in `fill`; with anything left, it is at least a header.
        let length = unsafe { log_buffer::frame_length_of(self.frame) };
        // Relaxed, as in `BufferClaim::commit`.
        length.load(Ordering::Relaxed) == 0
    }
}

impl Drop for Unfilled {
    #[inline]
    fn drop(&mut self) {
        if self.left > 0 && self.is_vacant() {
            // SAFETY: as in `fill`; the rest of the place is not used by anybody any more.
            unsafe {
                log_buffer::write_padding(self.frame, self.left as i32, self.offset, self.ids);
            }
        }
    }
}
