//! Offering many messages at once.

use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use crate::exclusive_place::PlaceInTerm;
use crate::exclusive_publication::ExclusivePublication;
use crate::log_buffer::{self, FrameIds, HEADER_LENGTH, align};
use crate::offer_error::OfferError;
use crate::protocol;
use crate::publication::{Place, Publication, Room};

/// How many messages are taken at once, at the most.
const RUN_LENGTH: usize = 16;
/// The frames of the first of them end before this many bytes; subscribers would have to wait for long
/// messages, while they could take others.
const RUN_BYTES: usize = 2048;

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
    /// Looks once for up to 16 messages, or 2 KiB, whether the publication is closed and how far the
    /// subscribers are, and makes these messages visible together, so that subscribers do not look at
    /// what is being written. Goes on into the next term by itself. Long messages are sent in fragments.
    ///
    /// Does not block, does not allocate, makes no system call. `as_ref` of a message is called while
    /// those before it are not visible yet, so it should be quick. If it panics, they have been sent.
    ///
    /// Corresponds to no function of C.
    pub fn offer_batch<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> OfferedBatch {
        let mut accepted = 0;
        while accepted < messages.len() {
            let left = &messages[accepted..];
            let run = &left[..left.len().min(RUN_LENGTH)];
            let taken = self.offer_run(run);
            accepted += taken;
            // There may be more.
            if taken > 0 {
                continue;
            }
            // What the run has left over: a long message, the end of the term, an error.
            match self.offer(messages[accepted].as_ref()) {
                Ok(_) => accepted += 1,
                // The term was filled up, and the next one begun.
                Err(OfferError::AdminAction) => {}
                Err(error) => return OfferedBatch { accepted, stopped_by: Some(error) },
            }
        }
        OfferedBatch { accepted, stopped_by: None }
    }

    /// The messages that need nothing but a frame in this term, up to the first that does; how many.
    #[inline(always)]
    fn offer_run<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> usize {
        let Some((first, others)) = messages.split_first() else { return 0 };
        let Some(mut writer) = self.writer() else { return 0 };
        // Published at the end: until then, nobody looks at the frames behind it.
        let Some(_first) = writer.write(first.as_ref()) else { return 0 };
        let mut accepted = 1;
        for message in others {
            let Some(_frame) = writer.write(message.as_ref()) else { break };
            accepted += 1;
        }
        accepted
    }

    /// What writes frames into the active term without looking at the publication again; `None` if no
    /// message is taken now.
    #[inline(always)]
    fn writer(&mut self) -> Option<Writer<'_>> {
        let (place, limit) = self.place_and_limit()?;
        let fields = &self.fields;
        let window = limit - place.term_begin_position;
        let run = place.term_offset.saturating_add(RUN_BYTES as i32);
        // SAFETY: as in `move_tail`.
        let (term, tail, place_in_term) = unsafe { self.active_term(place) };
        Some(Writer {
            term,
            tail,
            place: place_in_term,
            raw_tail: protocol::raw_tail(place.term_id, place.term_offset),
            // The driver has taken the limit back, if it is behind this term.
            limit_offset: window.clamp(0, fields.term_buffer_length.min(run).into()) as u32,
            term_length: fields.term_buffer_length as u32,
            max_payload_length: fields.max_payload_length,
            ids: self.ids,
        })
    }
}

impl Publication {
    /// Offers messages one after the other, as [`offer`](Self::offer) does, and stops at the first that
    /// is not taken.
    ///
    /// Takes a place for up to 16 messages, or 2 KiB, with one atomic addition, which is what publishers
    /// on other threads wait for. Messages that share a place follow each other directly; between
    /// places, messages of other threads can come. Long messages are sent in fragments.
    ///
    /// Does not block, does not allocate, makes no system call. If `as_ref` of a message panics, that
    /// message and up to 15 before it have not been sent.
    ///
    /// Corresponds to no function of C.
    pub fn offer_batch<M: AsRef<[u8]>>(&self, messages: &[M]) -> OfferedBatch {
        let mut accepted = 0;
        let mut is_rotated = false;
        while let Some(next) = messages.get(accepted) {
            let run = Run::gather(&messages[accepted..], self.max_payload_length());
            let outcome = match run.messages().first().map(|message| message.len()) {
                Some(first_length) => self.offer_run(run, first_length),
                None => self.offer(next.as_ref()).map(|_| 1),
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
    fn offer_run(&self, mut run: Run<'_>, first_length: usize) -> Result<usize, OfferError> {
        let place = self.claim_place(first_length, |room| {
            let first = align(first_length + HEADER_LENGTH);
            // If there is no room for the first, that has to be found out.
            run.cut(Room { window: room.window, length: room.length.max(first) });
            run.length
        })?;
        // SAFETY: the place was taken just now, for this alone.
        match unsafe { run.fill(&place, self.ids) } {
            0 => Err(OfferError::Unblocked),
            count => Ok(count),
        }
    }
}

/// Writes messages into the active term of an exclusive publication, one after the other.
struct Writer<'a> {
    term: *mut u8,
    tail: &'a AtomicI64,
    place: PlaceInTerm,
    /// What both of them say: where the next frame begins.
    raw_tail: i64,
    /// Where the position limit is, or the end of the run or of the term; frames begin before.
    limit_offset: u32,
    term_length: u32,
    max_payload_length: usize,
    ids: FrameIds,
}

impl<'a> Writer<'a> {
    /// Writes a message that needs one frame, which is before the limit and within the term; `None` if
    /// it is no such message.
    #[inline(always)]
    fn write(&mut self, message: &[u8]) -> Option<WrittenFrame<'a>> {
        let offset = self.raw_tail as u32;
        let length = message.len();
        if length > self.max_payload_length || offset >= self.limit_offset {
            return None;
        }
        // As in `ExclusivePublication::begin_frame`.
        let aligned = align(length + HEADER_LENGTH);
        if offset + aligned as u32 > self.term_length {
            return None;
        }
        let frame_length = (length + HEADER_LENGTH) as i32;
        let raw_tail = self.raw_tail;
        self.raw_tail += aligned as i64;
        protocol::set_tail(self.tail, self.raw_tail);
        self.place.set(self.raw_tail);
        // SAFETY: by the checks, as in `ExclusivePublication::begin_frame`.
        unsafe {
            let frame = self.term.add(offset as usize);
            log_buffer::begin_frame(frame, frame_length, raw_tail, self.ids);
            log_buffer::copy_payload(message, frame);
            let length = log_buffer::frame_length_of(frame);
            Some(WrittenFrame { length, frame_length })
        }
    }
}

/// A frame that has all but its positive length; dropping it publishes it.
struct WrittenFrame<'a> {
    length: &'a AtomicI32,
    frame_length: i32,
}

impl Drop for WrittenFrame<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        protocol::publish_frame(self.length, self.frame_length);
    }
}

/// Messages that need one frame each.
struct Run<'m> {
    messages: [&'m [u8]; RUN_LENGTH],
    count: usize,
    /// How much their frames take up, in bytes.
    length: usize,
}

impl<'m> Run<'m> {
    /// The first messages, up to one that is longer than a fragment.
    #[inline(always)]
    fn gather<M: AsRef<[u8]>>(messages: &'m [M], max_payload_length: usize) -> Self {
        let mut run = Self { messages: [&[]; RUN_LENGTH], count: 0, length: 0 };
        for (slot, message) in run.messages.iter_mut().zip(messages) {
            let message = message.as_ref();
            if message.len() > max_payload_length || run.length >= RUN_BYTES {
                break;
            }
            *slot = message;
            run.count += 1;
            run.length += align(message.len() + HEADER_LENGTH);
        }
        run
    }

    #[inline(always)]
    fn messages(&self) -> &[&'m [u8]] {
        // Never more than there are.
        self.messages.get(..self.count).unwrap_or_default()
    }

    /// Leaves those that begin within the window and fit.
    #[inline(always)]
    fn cut(&mut self, room: Room) {
        if self.length > room.window.min(room.length) {
            self.cut_one_by_one(room);
        }
    }

    #[cold]
    fn cut_one_by_one(&mut self, room: Room) {
        let (mut count, mut length) = (0, 0);
        for message in self.messages() {
            let end = length + align(message.len() + HEADER_LENGTH);
            if length >= room.window || end > room.length {
                break;
            }
            (count, length) = (count + 1, end);
        }
        (self.count, self.length) = (count, length);
    }

    /// Writes and publishes one frame after the other; returns how many were, which is all of them
    /// unless the media driver has made padding of a place because it took too long.
    ///
    /// # Safety
    /// The place is for all of them, and this call's alone, as [`Publication::claim_place`] gives it.
    #[inline(always)]
    unsafe fn fill(&self, place: &Place, ids: FrameIds) -> usize {
        let mut offset = 0;
        for (index, message) in self.messages().iter().enumerate() {
            let frame_length = message.len() + HEADER_LENGTH;
            // SAFETY: by the contract, as no frame ends behind `length`.
            let outcome = unsafe {
                let frame = place.frame.add(offset);
                fill_frame(frame, message, place.raw_tail + offset as i64, ids)
            };
            offset += align(frame_length);
            match outcome {
                Filling::Published => {}
                Filling::TooLate => return index,
                Filling::Lost => {
                    // SAFETY: the rest of the place, which nobody uses any more.
                    unsafe { pad(place, offset, ids) };
                    return index;
                }
            }
        }
        self.count
    }
}

/// What came of a frame.
enum Filling {
    Published,
    /// The media driver had made padding of its place, and of what follows.
    TooLate,
    /// The media driver has made padding of it meanwhile.
    Lost,
}

/// Writes and publishes a frame.
///
/// # Safety
/// The frame's place is in the active term, mapped, and this call's alone; `raw_tail` is the same as a
/// tail.
#[inline(always)]
unsafe fn fill_frame(frame: *mut u8, message: &[u8], raw_tail: i64, ids: FrameIds) -> Filling {
    let frame_length = (message.len() + HEADER_LENGTH) as i32;
    // SAFETY: by the contract. The length is loaded relaxed, as in `BufferClaim::commit`.
    unsafe {
        if !is_vacant(frame) {
            return Filling::TooLate;
        }
        log_buffer::begin_frame(frame, frame_length, raw_tail, ids);
        log_buffer::copy_payload(message, frame);
        let length = log_buffer::frame_length_of(frame);
        if length.load(Ordering::Relaxed) != -frame_length {
            return Filling::Lost;
        }
        protocol::publish_frame(length, frame_length);
    }
    Filling::Published
}

/// Makes padding of what is left of a place from an offset on, so that the stream goes on.
///
/// # Safety
/// As for [`Run::fill`].
#[cold]
unsafe fn pad(place: &Place, offset: usize, ids: FrameIds) {
    let left = place.length - offset;
    // SAFETY: by the contract; with anything left, it is at least a header.
    unsafe {
        let frame = place.frame.add(offset);
        if left > 0 && is_vacant(frame) {
            log_buffer::write_padding(frame, left as i32, place.raw_tail + offset as i64, ids);
        }
    }
}

/// Whether the media driver has not made padding of a place: it is as it was cleaned.
///
/// # Safety
/// There is place for a header, mapped and aligned to 32 bytes.
#[inline(always)]
unsafe fn is_vacant(frame: *mut u8) -> bool {
    // SAFETY: by the contract. Relaxed: nothing is read on the strength of it.
    unsafe { log_buffer::frame_length_of(frame).load(Ordering::Relaxed) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(32))]
    struct Memory([u8; 256]);

    /// Fills a place of 192 bytes with three messages; the driver has made one padding of what there is
    /// of it from an offset on.
    fn fill_behind_the_driver(padding_at: usize) -> (usize, Memory, [i32; 3]) {
        let mut memory = Memory([0; 256]);
        let frame = memory.0.as_mut_ptr();
        let ids = FrameIds::new(1, 2);
        let length_at = |offset: usize| {
            // SAFETY: a multiple of the frame alignment, in the memory.
            unsafe { log_buffer::frame_length_of(frame.add(offset)) }.load(Ordering::Relaxed)
        };
        let place = Place { frame, raw_tail: 0, length: 192, end_position: 192 };
        let messages: [&[u8]; 3] = [b"one", b"two", b"three"];
        let mut run = Run::gather(&messages, 64);
        assert_eq!((run.count, run.length), (3, 192));
        run.cut(Room { window: 192, length: 192 });
        // SAFETY: the memory is this test's, and longer than the place.
        let filled = unsafe {
            pad(&place, padding_at, ids);
            run.fill(&place, ids)
        };
        let lengths = [0, 64, 128].map(length_at);
        (filled, memory, lengths)
    }

    #[test]
    fn what_the_driver_gave_up_is_not_published_again() {
        assert_eq!(fill_behind_the_driver(192).2, [35, 35, 37]);
        for (padding_at, filled, expected) in
            [(0, 0, [192, 0, 0]), (64, 1, [35, 128, 0]), (128, 2, [35, 35, 64])]
        {
            let (count, memory, lengths) = fill_behind_the_driver(padding_at);
            assert_eq!((count, lengths), (filled, expected), "padding at {padding_at}");
            assert!(memory.0[padding_at + HEADER_LENGTH..].iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn a_run_is_cut_to_messages_that_begin_in_the_window_and_fit() {
        let messages = [[0_u8; 10]; 3];
        for (window, length, expected) in [
            (192, 192, (3, 192)),
            (191, 192, (3, 192)),
            (128, 192, (2, 128)),
            (192, 191, (2, 128)),
            (1, 192, (1, 64)),
            (0, 192, (0, 0)),
            (192, 63, (0, 0)),
        ] {
            let mut run = Run::gather(&messages, 64);
            run.cut(Room { window, length });
            assert_eq!((run.count, run.length), expected, "{window}, {length}");
        }
    }

    #[test]
    fn a_run_ends_before_a_long_message_and_after_two_kibibytes() {
        let [short, long, too_long] = [10, 1_000, 2_000].map(|length| vec![0; length]);
        assert_eq!(Run::gather(&[&short, &too_long, &short], 1_408).count, 1);
        assert_eq!(Run::gather(&[&too_long], 1_408).count, 0);
        assert_eq!(Run::gather(&[&long, &long, &long], 1_408).count, 2);
        assert_eq!(Run::gather(&[(); 20].map(|()| &short), 1_408).count, RUN_LENGTH);
    }
}
