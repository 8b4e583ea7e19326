//! The polls of an image, in Rust, on the fields that C works on.

use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};

use rusteron_sys as sys;

use crate::action::Action;
use crate::assembly::Assembly;
use crate::error::{Error, ErrorKind, Result};
use crate::header::Header;
use crate::log_buffer::{self, FRAME_ALIGNMENT, HEADER_LENGTH, PARTITION_COUNT, align};
use crate::offer_error::Position;
use crate::protocol;

/// How often a poll looks whether its image has been closed. C looks at every fragment, which would be a
/// seventh of what a fragment costs here.
const FRAGMENTS_PER_LOOK: usize = 16;

/// The fields of a C image that a poll works on, at the addresses C uses itself.
///
/// Every poll ends, in whatever way it ends, with the subscriber position after what its handler was
/// given: a handler that panics has had its fragment.
pub(crate) struct ImageFields(sys::rusteron_image_t);

// SAFETY: nothing in the C image is tied to a thread; a poll needs exclusiveness by its contract.
unsafe impl Send for ImageFields {}

impl ImageFields {
    /// # Safety
    /// What the addresses point to stays mapped while the image is used, and the subscriber position
    /// is written through it by one thread at a time, by nobody else.
    pub(crate) unsafe fn new(fields: sys::rusteron_image_t) -> Self {
        Self(fields)
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::aeron_image_t {
        self.0.image
    }

    #[inline(always)]
    pub(crate) fn correlation_id(&self) -> i64 {
        self.0.correlation_id
    }

    #[inline(always)]
    pub(crate) fn session_id(&self) -> i32 {
        self.0.session_id
    }

    #[inline(always)]
    pub(crate) fn initial_term_id(&self) -> i32 {
        self.0.initial_term_id
    }

    #[inline(always)]
    pub(crate) fn position_bits_to_shift(&self) -> usize {
        self.0.position_bits_to_shift
    }

    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed_flag().load(Ordering::Acquire)
    }

    #[inline(always)]
    fn is_closed_flag(&self) -> &AtomicBool {
        // SAFETY: part of the C image, which lives by the contract of `new`.
        unsafe { log_buffer::atomic_bool(self.0.is_closed) }
    }

    /// Gives up to `fragment_limit` fragments to `give`, which is one of [`Frame`]'s functions of that
    /// name, and moves the subscriber position past them; returns how many.
    ///
    /// # Safety
    /// The contract of [`new`](Self::new) holds during the call, and no other poll of this image is
    /// under way.
    #[inline(always)]
    pub(crate) unsafe fn poll(
        &self,
        give: impl FnMut(Frame<'_>) -> bool,
        fragment_limit: usize,
    ) -> usize {
        let place = self.place(self.subscriber_position());
        // SAFETY: handed on to the caller.
        unsafe { self.poll_to(give, fragment_limit, place, 0) }
    }

    /// As [`poll`](Self::poll), for fragments that begin before `limit_position`.
    ///
    /// # Safety
    /// As for [`poll`](Self::poll).
    #[inline(always)]
    pub(crate) unsafe fn bounded_poll(
        &self,
        give: impl FnMut(Frame<'_>) -> bool,
        limit_position: Position,
        fragment_limit: usize,
    ) -> usize {
        let place = self.place(self.subscriber_position());
        let beyond = self.term_length() - align(self.limit_offset(&place, limit_position));
        // SAFETY: handed on to the caller.
        unsafe { self.poll_to(give, fragment_limit, place, beyond as i32) }
    }

    /// As [`poll`](Self::poll), for fragments that do not begin in the last `beyond` bytes of the term,
    /// a multiple of the frame alignment.
    ///
    /// # Safety
    /// As for [`poll`](Self::poll), and `place` is that of the subscriber position.
    #[inline(always)]
    unsafe fn poll_to(
        &self,
        mut give: impl FnMut(Frame<'_>) -> bool,
        fragment_limit: usize,
        place: Place,
        beyond: i32,
    ) -> usize {
        let mut progress = Progress::new(self, &place);
        let mut left = fragment_limit;
        let mut longest = self.longest(place.offset);
        // What is left of the term, and this, are multiples of the alignment: one frame header less of
        // it is below `beyond` exactly when a frame there is not wanted.
        while left > 0 && longest >= beyond && !self.is_closed() {
            let run = left.min(FRAGMENTS_PER_LOOK);
            let mut left_of_run = run;
            let has_more = loop {
                // SAFETY: the offset is within the term, and a frame starts there: the subscriber
                // position is the end of one, and so is what follows. It stays as it is until the
                // position has moved past it, at the end of this function.
                let frame = unsafe { self.frame_of(place.term, progress.offset, longest) };
                let Some(frame) = frame else { break false };
                // Before the handler, so that one that panics has had this fragment.
                let length = frame.aligned_length();
                progress.offset += length;
                longest -= length as i32;
                if give(frame) {
                    left_of_run -= 1;
                    if left_of_run == 0 {
                        break true;
                    }
                }
                if longest < beyond {
                    break false;
                }
            };
            left -= run - left_of_run;
            if !has_more {
                break;
            }
        }
        fragment_limit - left
    }

    /// Passes up to `fragment_limit` fragments that begin before `limit_position` to the handler,
    /// and does as it says with the subscriber position; returns how many it has not refused.
    ///
    /// # Safety
    /// As for [`poll`](Self::poll).
    #[inline]
    pub(crate) unsafe fn controlled_poll<F>(
        &self,
        handler: &mut F,
        limit_position: Position,
        fragment_limit: usize,
    ) -> usize
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        if self.is_closed() {
            return 0;
        }
        let place = self.place(self.subscriber_position());
        let limit_offset = self.limit_offset(&place, limit_position);
        let mut progress = Progress::new(self, &place);
        let mut fragments = 0;
        while fragments < fragment_limit && progress.offset < limit_offset && !self.is_closed() {
            // SAFETY: as in `poll_to`; a commit comes after the last use of the frame.
            let Some(frame) = (unsafe { self.frame(place.term, progress.offset) }) else { break };
            let length = frame.aligned_length();
            progress.offset += length;
            if frame.is_padding() {
                continue;
            }
            fragments += 1;
            match handler(frame.payload(), &frame.header()) {
                Action::Abort => {
                    fragments -= 1;
                    progress.offset -= length;
                    break;
                }
                Action::Break => break,
                Action::Commit => progress.commit(),
                Action::Continue => {}
            }
        }
        fragments
    }

    /// Passes the fragments from one position up to another to the handler, without moving the
    /// subscriber position; returns the position after the last message that was seen whole.
    ///
    /// # Safety
    /// As for [`poll`](Self::poll).
    #[inline]
    pub(crate) unsafe fn controlled_peek<F>(
        &self,
        initial_position: Position,
        handler: &mut F,
        limit_position: Position,
    ) -> Result<Position>
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        if self.is_closed() {
            return Ok(initial_position);
        }
        // SAFETY: handed on to the caller.
        unsafe { self.check_position(initial_position) }?;
        let place = self.place(initial_position);
        let limit_offset = self.limit_offset(&place, limit_position);
        let mut offset = place.offset;
        let mut seen = place.offset;
        while offset < limit_offset {
            // SAFETY: a frame starts here: `check_position` has seen the end of the one before, and
            // the rest is as in `poll_to`; the subscriber position does not move.
            let Some(frame) = (unsafe { self.frame(place.term, offset) }) else { break };
            let end = offset + frame.aligned_length();
            if frame.is_padding() {
                (offset, seen) = (end, end);
                continue;
            }
            let header = frame.header();
            let action = handler(frame.payload(), &header);
            if action == Action::Abort {
                break;
            }
            offset = end;
            if header.flags() & log_buffer::END_FLAG != 0 {
                seen = end;
            }
            if action == Action::Break {
                break;
            }
        }
        Ok(place.position_of(seen))
    }

    /// Passes the whole frames of the next `block_length_limit` bytes to the handler, in one piece
    /// with their headers, and moves the subscriber position past them; returns their length.
    ///
    /// # Safety
    /// As for [`poll`](Self::poll).
    #[inline]
    pub(crate) unsafe fn block_poll<F>(&self, handler: &mut F, block_length_limit: usize) -> usize
    where
        F: FnMut(&[u8], i32, i32),
    {
        if self.is_closed() {
            return 0;
        }
        let place = self.place(self.subscriber_position());
        let limit_offset = place.offset.saturating_add(block_length_limit).min(self.term_length());
        let mut end = place.offset;
        while end < limit_offset {
            // SAFETY: as in `poll_to`.
            let Some(frame) = (unsafe { self.frame(place.term, end) }) else { break };
            if frame.is_padding() {
                // It makes a block of its own, whatever its length.
                if end == place.offset {
                    end += frame.aligned_length();
                }
                break;
            }
            if end + frame.aligned_length() > limit_offset {
                break;
            }
            end += frame.aligned_length();
        }

        let mut progress = Progress::new(self, &place);
        progress.offset = end;
        let length = end - place.offset;
        if length > 0 {
            // SAFETY: the frames were published, are aligned, and stay as they are until the
            // subscriber position has moved, at the end of this function.
            let (block, term_id) = unsafe {
                let start = place.term.add(place.offset);
                let term_id = start.add(log_buffer::TERM_ID).cast::<i32>().read();
                (slice::from_raw_parts(start, length), term_id)
            };
            handler(block, self.session_id(), term_id);
        }
        length
    }

    /// Moves the subscriber position forward to the end of a frame that has arrived.
    ///
    /// # Errors
    /// As for [`check_position`](Self::check_position).
    ///
    /// # Safety
    /// As for [`poll`](Self::poll).
    pub(crate) unsafe fn set_position(&self, position: Position) -> Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        // SAFETY: handed on to the caller.
        unsafe { self.check_position(position) }?;
        self.publish(position);
        Ok(())
    }

    /// Whether a frame that has arrived ends, or begins, at `position`.
    ///
    /// C checks that the position is aligned, in the term, and not behind. But bytes in the middle of
    /// a message, or of one that is being written, taken for the length of a frame, would send the
    /// next poll anywhere.
    ///
    /// # Safety
    /// As for [`poll`](Self::poll).
    unsafe fn check_position(&self, position: Position) -> Result<()> {
        let current = self.subscriber_position();
        if position == current {
            return Ok(());
        }
        let place = self.place(current);
        let term_end = place.position_of(self.term_length());
        if position < current || position > term_end {
            return Err(invalid(format!("{position} is out of the range {current}-{term_end}")));
        }
        if position % FRAME_ALIGNMENT as i64 != 0 {
            return Err(invalid(format!("{position} is not a multiple of {FRAME_ALIGNMENT}")));
        }
        let target = place.offset + (position - current) as usize;
        let mut offset = place.offset;
        while offset < target {
            // SAFETY: as in `poll_to`.
            let Some(frame) = (unsafe { self.frame(place.term, offset) }) else {
                let end = place.position_of(offset);
                return Err(invalid(format!("{position} is after {end}, where nothing is yet")));
            };
            offset += frame.aligned_length();
        }
        if offset > target {
            return Err(invalid(format!("{position} is in the middle of a frame")));
        }
        Ok(())
    }

    /// The frame at an offset of a term, if it has been published.
    ///
    /// # Safety
    /// As for [`frame_of`](Self::frame_of), without `longest`.
    #[inline(always)]
    unsafe fn frame(&self, term: *const u8, offset: usize) -> Option<Frame<'_>> {
        // SAFETY: handed on to the caller.
        unsafe { self.frame_of(term, offset, self.longest(offset)) }
    }

    /// The length, without header, of the longest frame that fits between an offset and the end of the
    /// term; negative at the end.
    #[inline(always)]
    fn longest(&self, offset: usize) -> i32 {
        self.0.term_length - offset as i32 - HEADER_LENGTH as i32
    }

    /// As [`frame`](Self::frame), where `longest` is known.
    ///
    /// A length that a frame at this offset cannot have is taken for none: a driver that has given
    /// this client up for dead, because its conductor was kept from its work for too long, lets
    /// publishers overwrite what is being read, and a length may then be anything.
    ///
    /// # Safety
    /// The contract of [`new`](Self::new) holds, a frame starts or will start at the offset, which is
    /// aligned to frames and below the term's length, and the subscriber position does not move past
    /// it while it is used. `longest` is what the function of that name says of the offset.
    #[inline(always)]
    unsafe fn frame_of(&self, term: *const u8, offset: usize, longest: i32) -> Option<Frame<'_>> {
        // SAFETY: by the contract.
        unsafe {
            let start = term.add(offset);
            let length = log_buffer::frame_length_of(start.cast_mut());
            let length = protocol::published_length(length) as u32;
            // One comparison for "not positive", "shorter than a header" and "beyond the term".
            let fits = length.wrapping_sub(HEADER_LENGTH as u32) <= longest as u32;
            fits.then_some(Frame { image: self, start, length: length as usize })
        }
    }

    #[inline(always)]
    fn term_length(&self) -> usize {
        self.0.term_length as usize
    }

    #[inline(always)]
    fn subscriber_position(&self) -> Position {
        // SAFETY: mapped, by the contract of `new`. Nobody else writes it, so that no order is
        // needed.
        unsafe { log_buffer::atomic_i64(self.0.subscriber_position).load(Ordering::Relaxed) }
    }

    /// Tells the publisher how far it may overwrite. A closed image's position is final, as in C.
    #[inline(always)]
    fn publish(&self, position: Position) {
        if !self.is_closed() {
            // SAFETY: mapped, by the contract of `new`.
            let counter = unsafe { log_buffer::atomic_i64(self.0.subscriber_position) };
            protocol::set_position(counter, position);
        }
    }

    #[inline(always)]
    fn place(&self, position: Position) -> Place {
        let index = ((position as u64) >> self.0.position_bits_to_shift) % PARTITION_COUNT as u64;
        Place {
            term: self.0.term_buffers[index as usize],
            position,
            offset: position as usize & (self.term_length() - 1),
        }
    }

    /// The offset that the limit has in the term of the place, which frames must begin before.
    #[inline(always)]
    fn limit_offset(&self, place: &Place, limit_position: Position) -> usize {
        if limit_position <= place.position {
            return 0;
        }
        let ahead = usize::try_from(limit_position - place.position).unwrap_or(usize::MAX);
        place.offset.saturating_add(ahead).min(self.term_length())
    }
}

fn invalid(what: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("position: {what}"))
}

/// Where a position is in memory.
struct Place {
    term: *const u8,
    position: Position,
    offset: usize,
}

impl Place {
    /// The position of another offset in the same term.
    #[inline(always)]
    fn position_of(&self, offset: usize) -> Position {
        self.position + offset as i64 - self.offset as i64
    }
}

/// A frame that is published, its length being set, and does not change while it is used.
pub(crate) struct Frame<'a> {
    image: &'a ImageFields,
    start: *const u8,
    length: usize,
}

impl<'a> Frame<'a> {
    /// Gives the fragment to the handler, unless it is padding; returns whether it was none.
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

    /// As [`give_fragment`](Self::give_fragment), for whole messages. One that is a fragment by
    /// itself costs a single comparison, which also tells it from padding.
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

    /// Whether it is a whole message, and no padding.
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

    #[inline(always)]
    fn aligned_length(&self) -> usize {
        align(self.length)
    }

    #[inline(always)]
    pub(crate) fn is_padding(&self) -> bool {
        // SAFETY: a field of the published header.
        let kind = unsafe { self.start.add(log_buffer::TYPE).cast::<u16>().read() };
        kind == log_buffer::TYPE_PAD
    }

    /// The payload; of padding, for which it was never written, nobody asks.
    #[inline(always)]
    pub(crate) fn payload(&self) -> &'a [u8] {
        // SAFETY: a published frame is as long as it says, header included.
        unsafe { slice::from_raw_parts(self.start.add(HEADER_LENGTH), self.length - HEADER_LENGTH) }
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> Header<'a> {
        // SAFETY: published and unchanged, by the type's own contract.
        unsafe { Header::new(self.start, self.image) }
    }
}

/// The frames that have arrived, one after the other. Dropping it moves the subscriber position past
/// those that were taken.
pub(crate) struct Frames<'a> {
    term: *const u8,
    /// What [`ImageFields::longest`] says of where the progress has come to.
    longest: i32,
    progress: Progress<'a>,
}

impl<'a> Frames<'a> {
    /// # Safety
    /// As for [`ImageFields::poll`], as long as this lives, and nobody uses a frame after it.
    #[inline(always)]
    pub(crate) unsafe fn new(image: &'a ImageFields) -> Self {
        let place = image.place(image.subscriber_position());
        let longest = image.longest(place.offset);
        Self { term: place.term, longest, progress: Progress::new(image, &place) }
    }

    /// The next frame of the term, if it has arrived.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<Frame<'a>> {
        if self.longest < 0 {
            return None;
        }
        // SAFETY: the offset is within the term, as above, and a frame starts there: the subscriber
        // position is the end of one, and so is what follows.
        unsafe { self.progress.image.frame_of(self.term, self.progress.offset, self.longest) }
    }

    /// Goes on after a frame, the one that [`peek`](Self::peek) has returned last.
    #[inline(always)]
    pub(crate) fn take(&mut self, frame: &Frame<'a>) {
        self.progress.offset += frame.aligned_length();
        self.longest -= frame.aligned_length() as i32;
    }

    /// Takes back what was taken last.
    pub(crate) fn put_back(&mut self, frame: &Frame<'a>) {
        self.progress.offset -= frame.aligned_length();
        self.longest += frame.aligned_length() as i32;
    }
}

/// How far a poll has come; tells the publisher when the poll ends, in whatever way it ends.
struct Progress<'a> {
    image: &'a ImageFields,
    start: Position,
    start_offset: usize,
    offset: usize,
}

impl<'a> Progress<'a> {
    #[inline(always)]
    fn new(image: &'a ImageFields, place: &Place) -> Self {
        Self { image, start: place.position, start_offset: place.offset, offset: place.offset }
    }

    #[inline(always)]
    fn commit(&mut self) {
        if self.offset > self.start_offset {
            self.start += (self.offset - self.start_offset) as i64;
            self.start_offset = self.offset;
            self.image.publish(self.start);
        }
    }
}

impl Drop for Progress<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.commit();
    }
}
