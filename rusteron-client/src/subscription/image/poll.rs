//! The polls of an image, in Rust, on the fields that C works on: the position, and the frames
//! behind it.

use std::cell::Cell;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rusteron_core::error::{Error, ErrorKind, Position, Result};
use rusteron_core::log_buffer::{self, CounterValue, FRAME_ALIGNMENT, PARTITION_COUNT, protocol};
use rusteron_sys as sys;

use crate::subscription::image::action::Action;
use crate::subscription::image::frame::{Frame, Term};
use crate::subscription::image::header::Header;

/// Number of fragments between two checks of whether the image has been closed. C checks at every
/// fragment. Here that would be a seventh of the cost of a fragment.
const FRAGMENTS_PER_CLOSED_CHECK: usize = 16;

/// No position, nor the inverted bits of one.
const NO_POSITION: Position = Position::MIN;

/// The fields of a C image that a poll works on, at the addresses C uses itself.
///
/// Every poll, in whatever way it ends, leaves the subscriber position after the fragments that its
/// handler got. If a handler panics, its fragment counts as received.
pub(crate) struct ImageFields {
    /// Constants, and addresses of what changes.
    pub(crate) raw: sys::rusteron_image_t,
    /// The counter `raw.subscriber_position`.
    position: CounterValue,
    /// The subscriber position as last read or published here; [`NO_POSITION`] until then. Its bits
    /// are inverted, which makes it negative, once the counter belongs to another image.
    last_position: Cell<Position>,
    /// The term that the subscriber position was in when a poll began.
    term: Cell<Term>,
}

// SAFETY: nothing in the C image is tied to a thread; a poll needs exclusiveness by its contract.
unsafe impl Send for ImageFields {}

impl ImageFields {
    /// # Safety
    /// The memory behind the addresses stays mapped while the image is used. Only this image writes
    /// the subscriber position, on one thread at a time.
    pub(crate) unsafe fn new(raw: sys::rusteron_image_t) -> Self {
        let end_position = i64::from(raw.term_length);
        // The first term of the stream.
        let end = raw.term_buffers[0].wrapping_add(raw.term_length as usize);
        // SAFETY: by the contract.
        let position =
            unsafe { CounterValue::new(raw.subscriber_position, raw.subscription_registration_id) };
        Self {
            raw,
            position,
            last_position: Cell::new(NO_POSITION),
            term: Cell::new(Term { end, end_position }),
        }
    }

    #[inline(always)]
    pub(crate) fn is_closed(&self) -> bool {
        // SAFETY: part of the C image, which lives by the contract of `new`.
        unsafe { AtomicBool::from_ptr(self.raw.is_closed) }.load(Ordering::Acquire)
    }

    /// Passes up to `fragment_limit` fragments to `give`, one of [`Frame`]'s functions with that
    /// prefix, and moves the subscriber position past them. Returns their number.
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
        let Some(position) = self.subscriber_position() else { return 0 };
        let progress = Progress::new(self, position);
        // SAFETY: the caller guarantees that the image outlives the poll, which is the only one (`poll`).
        unsafe { self.poll_to(give, fragment_limit, progress, 0) }
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
        let Some(position) = self.subscriber_position() else { return 0 };
        let progress = Progress::new(self, position);
        let limit = progress.term.cursor_of(limit_position);
        if progress.cursor >= limit {
            return 0;
        }
        // SAFETY: the caller guarantees that the image outlives the poll, which is the only one (`poll`).
        unsafe { self.poll_to(give, fragment_limit, progress, limit) }
    }

    /// As [`poll`](Self::poll), for fragments that begin before a limit in the term.
    ///
    /// # Safety
    /// As for [`poll`](Self::poll). The progress is at the subscriber position and before `limit`.
    /// `limit` is a cursor, and not beyond the term.
    #[inline(always)]
    unsafe fn poll_to(
        &self,
        mut give: impl FnMut(Frame<'_>) -> bool,
        fragment_limit: usize,
        mut progress: Progress<'_>,
        limit: i64,
    ) -> usize {
        let mut left = fragment_limit;
        while left > 0 && !self.is_closed() {
            let run = left.min(FRAGMENTS_PER_CLOSED_CHECK);
            let mut left_of_run = run;
            let has_more = loop {
                // SAFETY: the cursor is before the limit, and a frame starts there: the subscriber
                // position is the end of one, and so is what follows. It stays as it is until the
                // position has moved past it, at the end of this function.
                let Some(frame) = (unsafe { progress.frame() }) else { break false };
                // Moved before the handler runs: if the handler panics, this fragment counts as
                // received.
                progress.cursor += frame.aligned_length() as i64;
                if give(frame) {
                    left_of_run -= 1;
                    if left_of_run == 0 {
                        break progress.cursor < limit;
                    }
                }
                if progress.cursor >= limit {
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

    /// Passes up to `fragment_limit` fragments that begin before `limit_position` to the handler.
    /// Carries out the handler's actions on the subscriber position. Returns the number of
    /// fragments that the handler has not rejected.
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
        let Some(position) = self.subscriber_position() else { return 0 };
        let mut progress = Progress::new(self, position);
        let limit = progress.term.cursor_of(limit_position);
        let mut fragments = 0;
        while fragments < fragment_limit && progress.cursor < limit && !self.is_closed() {
            // SAFETY: as in `poll_to`; a commit comes after the last use of the frame.
            let Some(frame) = (unsafe { progress.frame() }) else { break };
            let length = frame.aligned_length() as i64;
            progress.cursor += length;
            if frame.is_padding() {
                continue;
            }
            fragments += 1;
            match handler(frame.payload(), &frame.header()) {
                Action::Abort => {
                    fragments -= 1;
                    progress.cursor -= length;
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
    /// subscriber position. Returns the position after the last message that was passed whole.
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
        // SAFETY: the caller guarantees that the image outlives this call (`poll`).
        let Some(term) = (unsafe { self.check_position(initial_position) })? else {
            return Ok(initial_position);
        };
        let limit = term.cursor_of(limit_position);
        let mut cursor = initial_position - term.end_position;
        let mut seen = cursor;
        while cursor < limit {
            // SAFETY: a frame starts here: `check_position` has seen the end of the one before, and
            // the rest is as in `poll_to`; the subscriber position does not move.
            let Some(frame) = (unsafe { Frame::at(&self.raw, term.end, cursor) }) else { break };
            let end = cursor + frame.aligned_length() as i64;
            if frame.is_padding() {
                (cursor, seen) = (end, end);
                continue;
            }
            let header = frame.header();
            let action = handler(frame.payload(), &header);
            if action == Action::Abort {
                break;
            }
            cursor = end;
            if header.flags() & log_buffer::END_FLAG != 0 {
                seen = end;
            }
            if action == Action::Break {
                break;
            }
        }
        Ok(term.end_position + seen)
    }

    /// Passes the whole frames of the next `block_length_limit` bytes to the handler, in one piece
    /// with their headers. Moves the subscriber position past them. Returns their length, or 0 if
    /// they may have been overwritten while the handler read them: the driver has freed the
    /// position, because it has timed out the client.
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
        let Some(position) = self.subscriber_position() else { return 0 };
        let mut progress = Progress::new(self, position);
        let start = progress.cursor;
        let limit = i64::try_from(block_length_limit)
            .map_or(0, |length| start.saturating_add(length).min(0));
        let mut end = start;
        while end < limit {
            // SAFETY: as in `poll_to`.
            let Some(frame) = (unsafe { Frame::at(&self.raw, progress.term.end, end) }) else {
                break;
            };
            let frame_end = end + frame.aligned_length() as i64;
            if frame.is_padding() {
                // Padding is a separate block, whatever its length.
                if end == start {
                    end = frame_end;
                }
                break;
            }
            if frame_end > limit {
                break;
            }
            end = frame_end;
        }

        progress.cursor = end;
        let length = (end - start) as usize;
        if length > 0 {
            // SAFETY: the frames were published, are aligned, and stay as they are until the
            // subscriber position has moved, at the end of this function.
            let (block, term_id) = unsafe {
                let start = progress.term.end.offset(start as isize);
                let term_id = start.add(log_buffer::TERM_ID).cast::<i32>().read();
                (slice::from_raw_parts(start, length), term_id)
            };
            handler(block, self.raw.session_id, term_id);
            // Otherwise the handler's reads could come after the driver's answer.
            fence(Ordering::Acquire);
            // SAFETY: the caller guarantees that the image outlives the poll.
            if !unsafe { sys::rusteron_image_holds_publisher(self.raw.image) } {
                return 0;
            }
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
        // SAFETY: the caller guarantees that the image outlives this call (`poll`).
        if (unsafe { self.check_position(position) })?.is_some() {
            self.publish(position);
        }
        Ok(())
    }

    /// Returns the term of `position`, if a frame that has arrived begins or ends there. Returns
    /// `None` if the subscriber position does not belong to the image any more.
    ///
    /// C checks only that the position is aligned, in the term, and not behind. But a position can
    /// lie in the middle of a message, or of a message that is being written. The next poll would
    /// then read arbitrary bytes as the length of a frame, and could go anywhere.
    ///
    /// # Safety
    /// As for [`poll`](Self::poll).
    unsafe fn check_position(&self, position: Position) -> Result<Option<Term>> {
        let Some(current) = self.subscriber_position() else { return Ok(None) };
        let term = self.term_of(current);
        if position < current || position > term.end_position {
            let end = term.end_position;
            return Err(invalid(format!("{position} is out of the range {current}-{end}")));
        }
        if position % FRAME_ALIGNMENT as i64 != 0 {
            return Err(invalid(format!("{position} is not a multiple of {FRAME_ALIGNMENT}")));
        }
        let mut end = current;
        while end < position {
            // SAFETY: as in `poll_to`.
            let Some(frame) = (unsafe { Frame::at(&self.raw, term.end, end - term.end_position) })
            else {
                return Err(invalid(format!("{position} is after {end}, where nothing is yet")));
            };
            end += frame.aligned_length() as i64;
        }
        if end > position {
            return Err(invalid(format!("{position} is in the middle of a frame")));
        }
        Ok(Some(self.term_of(position)))
    }

    /// Returns the subscriber position, where a frame starts or will start. Returns `None` once the
    /// counter belongs to another image.
    #[inline(always)]
    pub(super) fn subscriber_position(&self) -> Option<Position> {
        let position = protocol::position(self.position.value());
        // An equal position can belong to another image: a subscriber can join a stream at the
        // position where this image was.
        let is_known = position == self.last_position.get() && self.position.is_owned();
        (is_known || self.is_moved_to(position)).then_some(position)
    }

    /// Returns whether C's functions have moved this image's position. Otherwise the position
    /// belongs to another image.
    #[cold]
    fn is_moved_to(&self, position: Position) -> bool {
        let end_of_stream = i64::from(self.raw.term_length) << 31;
        let is_start =
            (0..=end_of_stream).contains(&position) && position % FRAME_ALIGNMENT as i64 == 0;
        let is_moved = is_start && self.owns_position();
        if is_moved {
            self.last_position.set(position);
        }
        is_moved
    }

    /// Returns whether the subscriber position belongs to this image. The driver frees the position
    /// when it times out the client, or when the image has become unavailable. It can then give the
    /// position to other images.
    #[inline(always)]
    pub(crate) fn owns_position(&self) -> bool {
        self.position.is_owned() && {
            // Distinguishes images of one subscription. Drivers that do not record the image of a
            // counter leave 0.
            let image = self.position.reference_id();
            image == self.raw.correlation_id || image == 0
        }
    }

    /// Returns the subscriber position. If the counter does not belong to this image any more,
    /// returns the position up to which this image has read.
    pub(crate) fn position(&self) -> Position {
        self.subscriber_position().unwrap_or_else(|| match self.last_position.get() {
            NO_POSITION => self.raw.join_position,
            inverted @ ..0 => !inverted,
            last => last,
        })
    }

    /// Publishes the position up to which the publisher may overwrite. The position of a closed
    /// image is final, as in C.
    ///
    /// Not inlined into the polls, which call this once, also when a handler panics. Inlined, the
    /// polls would keep values in memory that they can keep in registers.
    #[inline(never)]
    pub(super) fn publish(&self, position: Position) {
        if !self.is_closed() && self.owns_position() {
            protocol::set_position(self.position.value(), position);
            self.last_position.set(position);
        } else if self.last_position.get() >= 0 {
            // No later poll takes an equal position of another image for this one's.
            self.last_position.set(!self.last_position.get());
        }
    }

    /// Returns the term of a position that is not negative. The term of the last poll is found at
    /// once.
    #[inline(always)]
    pub(super) fn term_of(&self, position: Position) -> Term {
        let term = self.term.get();
        let length = i64::from(self.raw.term_length);
        let offset = position.wrapping_sub(term.end_position).wrapping_add(length);
        // One comparison covers both "before the term" and "after the term".
        if offset as u64 >= length as u64 {
            return self.find_term(position);
        }
        term
    }

    #[cold]
    #[inline(never)]
    fn find_term(&self, position: Position) -> Term {
        let length = i64::from(self.raw.term_length);
        let count = (position as u64) >> self.raw.position_bits_to_shift;
        let buffer = self.raw.term_buffers[(count % PARTITION_COUNT as u64) as usize];
        let term = Term {
            // One past the end of the buffer.
            end: buffer.wrapping_add(length as usize),
            end_position: (position & -length).wrapping_add(length),
        };
        self.term.set(term);
        term
    }
}

/// The frames that have arrived, one after the other. Dropping this moves the subscriber position
/// past the consumed frames.
pub(crate) struct Frames<'a>(Progress<'a>);

impl<'a> Frames<'a> {
    /// # Safety
    /// As for [`ImageFields::poll`], as long as this lives, and no frame is used after that.
    #[inline(always)]
    pub(crate) unsafe fn new(image: &'a ImageFields) -> Option<Self> {
        image.subscriber_position().map(|position| Self(Progress::new(image, position)))
    }

    /// Returns the next frame of the term, if it has arrived.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<Frame<'a>> {
        if self.0.cursor >= 0 {
            return None;
        }
        // SAFETY: the cursor is within the term, as above, and a frame starts there: the subscriber
        // position is the end of one, and so is what follows.
        unsafe { self.0.frame() }
    }

    /// Moves past `frame`, which must be the frame that [`peek`](Self::peek) has returned last.
    #[inline(always)]
    pub(crate) fn take(&mut self, frame: &Frame<'a>) {
        self.0.cursor += frame.aligned_length() as i64;
    }
}

/// The progress of a poll. When the poll ends, in whatever way, its position is published, and the
/// publisher can read it.
struct Progress<'a> {
    image: &'a ImageFields,
    /// The position that the publisher knows.
    published: Position,
    term: Term,
    /// Position of the poll relative to the end of the term: negative within the term, and 0 at its
    /// end.
    cursor: i64,
}

impl<'a> Progress<'a> {
    /// Starts at the subscriber position.
    #[inline(always)]
    fn new(image: &'a ImageFields, position: Position) -> Self {
        let term = image.term_of(position);
        Self { image, published: position, term, cursor: position - term.end_position }
    }

    /// # Safety
    /// As for [`Frame::at`], at the cursor.
    #[inline(always)]
    unsafe fn frame(&self) -> Option<Frame<'a>> {
        // SAFETY: the caller guarantees a mapped log buffer, and a cursor at a frame (`Frame::at`).
        unsafe { Frame::at(&self.image.raw, self.term.end, self.cursor) }
    }

    #[inline(always)]
    fn commit(&mut self) {
        let position = self.term.end_position.wrapping_add(self.cursor);
        if position > self.published {
            self.published = position;
            self.image.publish(position);
        }
    }
}

impl Drop for Progress<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.commit();
    }
}

fn invalid(what: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("position: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::image::header::tests::image;

    /// The driver has given the counter of a lost image to another image of the same subscription.
    #[test]
    fn position_of_another_image_is_not_owned() {
        for (reference_id, is_owned) in [(3, true), (4, false), (0, true)] {
            // SAFETY: the structure consists of numbers, for which zeros are valid.
            let mut counter: sys::rusteron_counter_value_t = unsafe { std::mem::zeroed() };
            (counter.registration_id, counter.reference_id) = (7, reference_id);
            let raw = sys::rusteron_image_t {
                subscriber_position: &raw mut counter,
                subscription_registration_id: 7,
                correlation_id: 3,
                ..image()
            };
            // SAFETY: only the counter is read, which lives long enough.
            let fields = unsafe { ImageFields::new(raw) };
            assert_eq!(fields.owns_position(), is_owned, "{reference_id}");
        }
    }
}
