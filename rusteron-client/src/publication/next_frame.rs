//! Position of the next frame of an exclusive publication.

use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};

use rusteron_core::error::{OfferError, Position};
use rusteron_core::log_buffer::protocol::{self, Terms};
use rusteron_core::log_buffer::{self, HEADER_LENGTH, PARTITION_COUNT, align, low_half_first};
use rusteron_sys as sys;

use crate::publication::ExclusivePublication;

const CACHE_LINE_LENGTH: usize = 64;
/// Distance in bytes between a short frame and the line to fetch meanwhile, which the conductor has cleaned, and which is in
/// its cache or in memory. Longer frames gained nothing: the processor itself fetches their lines ahead.
const PREFETCH_DISTANCE: usize = 2048;

/// The publication's fields for its position.
pub(crate) type NextFrame = sys::rusteron_next_frame_t;

/// The term offset and the term id in one aligned word. The tail counter has the same value.
#[derive(Clone, Copy)]
pub(crate) struct OwnTail(*mut i64);

impl OwnTail {
    /// # Safety
    /// As long as the result is used, `next` points to a live structure that belongs to the caller
    /// alone.
    #[inline(always)]
    pub(crate) unsafe fn of(next: *mut NextFrame) -> Self {
        const OFFSET: usize = offset_of!(NextFrame, term_offset);
        const _: () = assert!(OFFSET % align_of::<i64>() == 0);
        const _: () = assert!(offset_of!(NextFrame, term_id) == OFFSET + size_of::<i32>());
        // SAFETY: a part of the structure, by the contract.
        Self(unsafe { next.byte_add(OFFSET) }.cast())
    }

    /// Returns the value of the tail counter at this position.
    #[inline(always)]
    pub(crate) fn raw_tail(self) -> i64 {
        // SAFETY: by the contract of `of`; the word is aligned, by the assertions there.
        low_half_first(unsafe { self.0.read() })
    }

    /// Stores the term id as well, although it does not change. After a store of half a word, a
    /// processor has to wait before it can load the whole word.
    #[inline(always)]
    pub(crate) fn set(self, raw_tail: i64) {
        // SAFETY: as above.
        unsafe { self.0.write(low_half_first(raw_tail)) }
    }
}

/// A frame that has its range and its header, but neither its payload nor its positive length.
pub(crate) struct BegunFrame {
    pub(crate) frame: *mut u8,
    pub(crate) end_position: Position,
}

impl BegunFrame {
    /// Writes the message and publishes it. Returns the position after it.
    ///
    /// # Safety
    /// The frame was begun for a payload of this length, and is the caller's alone.
    #[inline(always)]
    pub(crate) unsafe fn publish(self, message: &[u8]) -> Position {
        // SAFETY: by the contract.
        unsafe {
            log_buffer::copy_payload(message, self.frame);
            let length = log_buffer::frame_length_of(self.frame);
            protocol::publish_frame(length, (message.len() + HEADER_LENGTH) as i32);
        }
        self.end_position
    }
}

impl ExclusivePublication {
    /// Begins the next frame, for a payload of `length` bytes, and moves the tail past it.
    ///
    /// Changes nothing and returns `None` in four cases: the publication is closed, the position
    /// limit is reached, the payload is longer than a fragment, or the frame does not fit into the
    /// term. [`begin_frame_or_rotate`](Self::begin_frame_or_rotate) finds out which case it is. So
    /// the loop that inlines this function builds no errors.
    #[inline(always)]
    pub(crate) fn begin_frame(&mut self, length: usize) -> Option<BegunFrame> {
        let fields = &self.fields;
        // Copied before the acquire loads, after which the compiler would read the fields again.
        let (limit, next) = (self.handle.limit, fields.next_frame);
        // SAFETY: as in `next_frame_and_limit`.
        if unsafe { AtomicBool::from_ptr(fields.is_closed).load(Ordering::Acquire) } {
            return None;
        }
        let limit = limit.position()?;
        // SAFETY: as above.
        let own_tail = unsafe { OwnTail::of(next) };
        let raw_tail = own_tail.raw_tail();
        let offset = raw_tail as u32;
        // SAFETY: as above.
        let position = unsafe { (*next).term_begin_position } + i64::from(offset);
        if position >= limit || length > fields.max_payload_length {
            return None;
        }
        // No value can overflow its type: a term has at most 1 GiB, and a fragment less. All of them
        // are in private memory, and were checked when the publication was made
        // (`RUSTERON_DEFINE_CREATE` in the shim).
        let aligned = align(length + HEADER_LENGTH);
        if offset + aligned as u32 > fields.term_buffer_length as u32 {
            return None;
        }
        // SAFETY: the frame lies within the active term, as checked above, and behind the position
        // limit, where payload and header are not read, nor anything cleaned, before the frame
        // length turns positive. For the index see `move_tail`.
        unsafe {
            let index = (*next).active_partition_index;
            debug_assert!(index < PARTITION_COUNT);
            let tail = AtomicI64::from_ptr(fields.term_tail_counters.add(index));
            // The offset stays below 2³²: the id is not touched.
            let end = raw_tail + aligned as i64;
            protocol::set_tail(tail, end);
            own_tail.set(end);
            let frame = fields.term_buffers.get_unchecked(index).add(offset as usize);
            if aligned <= CACHE_LINE_LENGTH {
                log_buffer::prefetch_for_write::<PREFETCH_DISTANCE>(frame);
            }
            log_buffer::begin_frame(frame, (length + HEADER_LENGTH) as i32, raw_tail, self.ids);
            Some(BegunFrame { frame, end_position: position + aligned as i64 })
        }
    }

    /// Returns where the next frame begins. If no message of `length` bytes, at most `max`, is
    /// accepted now, returns the reason.
    ///
    /// C reports a message as too long only when it would otherwise accept the message. Until then
    /// a caller would retry in vain. C also allocates for the text of that error.
    pub(crate) fn next_frame(&self, length: usize, max: usize) -> Result<NextFrame, OfferError> {
        let Some((next, limit)) = self.next_frame_and_limit() else {
            return Err(self.closed());
        };
        if length > max {
            return Err(OfferError::MessageTooLong { length, max_message_length: max });
        }
        let position = next.term_begin_position + i64::from(next.term_offset);
        if position >= limit {
            return Err(self.back_pressure(position, length));
        }
        Ok(next)
    }

    /// Returns where the next frame begins, and the position limit. Returns `None` if the
    /// publication is closed.
    #[inline(always)]
    pub(crate) fn next_frame_and_limit(&self) -> Option<(NextFrame, Position)> {
        // SAFETY: these addresses belong to the publication, which lives as long as `self`, and to
        // memory that stays mapped until then, even if the driver dies; C writes them atomically.
        // The next frame belongs to the only writer: the holder of this value, as the type is not
        // `Sync`.
        let (is_closed, next) = unsafe {
            (
                AtomicBool::from_ptr(self.fields.is_closed).load(Ordering::Acquire),
                *self.fields.next_frame,
            )
        };
        // The limit belongs to another publication: the driver has timed out the client, and closed
        // the publication.
        let limit = self.handle.limit.position()?;
        (!is_closed).then_some((next, limit))
    }

    /// Moves the tail to the offset `end` of the active term. Returns the address of `next`.
    ///
    /// # Safety
    /// `next` is the publication's, and `end` is not beyond the term.
    pub(crate) unsafe fn move_tail(&mut self, next: NextFrame, end: i32) -> *mut u8 {
        // SAFETY: by the contract.
        unsafe {
            let (term, tail, own_tail) = self.active_term(next);
            let raw_tail = protocol::raw_tail(next.term_id, end);
            protocol::set_tail(tail, raw_tail);
            own_tail.set(raw_tail);
            term.add(next.term_offset as usize)
        }
    }

    /// Slow path of [`begin_frame`](Self::begin_frame), with its error. Ends the term if the frame
    /// does not fit into it.
    #[cold]
    pub(crate) fn begin_frame_or_rotate(
        &mut self,
        length: usize,
    ) -> Result<BegunFrame, OfferError> {
        let next = self.next_frame(length, self.fields.max_payload_length)?;
        let frame_length = length + HEADER_LENGTH;
        let (frame, end_position) = self.claim_range(next, align(frame_length))?;
        let raw_tail = protocol::raw_tail(next.term_id, next.term_offset);
        // SAFETY: the claimed range is as long as the frame and, as in `begin_frame`, this call's.
        unsafe { log_buffer::begin_frame(frame, frame_length as i32, raw_tail, self.ids) };
        Ok(BegunFrame { frame, end_position })
    }

    /// Moves the tail past `length` bytes, a multiple of the frame alignment. Returns the address of
    /// the first and the position after the last. If they do not fit into the term, ends the term.
    pub(crate) fn claim_range(
        &mut self,
        next: NextFrame,
        length: usize,
    ) -> Result<(*mut u8, Position), OfferError> {
        // At most a term and a quarter: a message is as long as an eighth of a term, and headers
        // take at most as much again.
        let end = next.term_offset as usize + length;
        if end > self.fields.term_buffer_length as usize {
            return Err(self.end_of_term(next, end));
        }
        // SAFETY: `next` is the publication's, and the end lies within the term.
        let frame = unsafe { self.move_tail(next, end as i32) };
        Ok((frame, next.term_begin_position + end as Position))
    }

    /// Pads the rest of the term, and begins the next term. `end` is the offset beyond the term at
    /// which the rejected message would have ended.
    #[cold]
    pub(crate) fn end_of_term(&mut self, next: NextFrame, end: usize) -> OfferError {
        let (offset, length) = (next.term_offset, self.fields.term_buffer_length);
        // SAFETY: `next` is the publication's.
        let (term, tail, _) = unsafe { self.active_term(next) };
        protocol::set_tail(tail, protocol::raw_tail(next.term_id, 0) + end as i64);
        if offset < length {
            let raw_tail = protocol::raw_tail(next.term_id, offset);
            // SAFETY: the rest of the term lies behind the position limit, and is the only writer's.
            unsafe {
                let frame = term.add(offset as usize);
                log_buffer::write_padding(frame, length - offset, raw_tail, self.ids);
            }
        }
        let end_position = next.term_begin_position + Position::from(length);
        if end_position >= self.fields.max_possible_position {
            // The padding has been read: a shorter message must not be written over it, as C does.
            // SAFETY: as above; the offset is the term's end.
            unsafe { self.move_tail(next, length) };
            return OfferError::MaxPositionExceeded;
        }
        let fields = &self.fields;
        let term_id = next.term_id.wrapping_add(1);
        // SAFETY: the next frame belongs to the only writer. The addresses are those of the log
        // buffer's metadata, one tail for each term buffer; all processes access them atomically.
        unsafe {
            *fields.next_frame = NextFrame {
                term_begin_position: end_position,
                term_offset: 0,
                term_id,
                active_partition_index: (next.active_partition_index + 1) % PARTITION_COUNT,
            };
            Terms {
                tails: &*fields.term_tail_counters.cast::<[AtomicI64; PARTITION_COUNT]>(),
                active_term_count: AtomicI32::from_ptr(fields.active_term_count),
                initial_term_id: fields.initial_term_id,
            }
            .begin_term(term_id);
        }
        OfferError::AdminAction
    }

    /// Returns the active term's buffer, its tail, and the publication's own copy of the tail.
    ///
    /// # Safety
    /// `next` is the publication's, and only the publication's only writer uses the returned
    /// values.
    #[inline(always)]
    pub(crate) unsafe fn active_term(&self, next: NextFrame) -> (*mut u8, &AtomicI64, OwnTail) {
        let index = next.active_partition_index;
        debug_assert!(index < PARTITION_COUNT);
        // SAFETY: the active index is the term count modulo the number of partitions, which was
        // checked when the publication was made. It is the index of one of the log's three tail
        // counters and term buffers; the next frame is the writer's own.
        unsafe {
            (
                *self.fields.term_buffers.get_unchecked(index),
                AtomicI64::from_ptr(self.fields.term_tail_counters.add(index)),
                OwnTail::of(self.fields.next_frame),
            )
        }
    }
}
