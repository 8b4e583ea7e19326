//! Offering many messages at once.

use std::sync::atomic::Ordering;

use rusteron_core::error::OfferError;
use rusteron_core::log_buffer::{self, FrameIds, HEADER_LENGTH, align, protocol};

use crate::publication::{ExclusivePublication, Publication, Remaining};

/// Greatest number of messages in a run.
const RUN_LENGTH: usize = 16;
/// All messages of a run begin within this many bytes. With longer runs, subscribers would wait for
/// long messages while they could receive others.
const RUN_BYTES: usize = 2048;
/// Longer messages of an exclusive publication are offered one by one: a subscriber that is a cache line behind gets the
/// first while the next is copied.
const EXCLUSIVE_RUN_PAYLOAD: usize = 256;

/// The number of accepted messages of a batch, and the reason why the next message was rejected.
///
/// The accepted messages are the first ones of the batch. They have been sent like single messages:
/// subscribers get each message once and in this order. To go on, offer the rest of the slice:
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
    /// Number of accepted messages, from the first on.
    pub accepted: usize,
    /// Reason why the message after them was rejected; `None` if all were accepted.
    pub stopped_by: Option<OfferError>,
}

impl ExclusivePublication {
    /// Offers messages one after the other, as [`offer`](Self::offer) does, and stops at the first
    /// rejected message.
    ///
    /// Works in runs of messages: up to 16 messages, or as many as begin within 2 KiB. For each
    /// run, checks once whether the publication is closed and where the position limit is, moves
    /// the tail once, and publishes the messages together. Rotates into the next term by itself.
    /// Sends long messages in fragments. Messages of more than 256 bytes are sent one by one, which is
    /// faster.
    ///
    /// Does not block, does not allocate, makes no system call. If `as_ref` of a message panics, the
    /// runs before it have been sent.
    ///
    /// Corresponds to no function of C.
    pub fn offer_batch<M: AsRef<[u8]>>(&mut self, messages: &[M]) -> OfferedBatch {
        let mut accepted = 0;
        while let Some(next) = messages.get(accepted) {
            let max_payload_length = self.fields.max_payload_length.min(EXCLUSIVE_RUN_PAYLOAD);
            let run = Run::gather(&messages[accepted..], max_payload_length);
            let offered = if run.count > 0 { self.offer_run(run) } else { Ok(0) };
            let outcome = match offered {
                // Cases that runs do not handle: a long message, the end of the term, an error.
                Ok(0) => self.offer(next.as_ref()).map(|_| 1),
                outcome => outcome,
            };
            match outcome {
                Ok(count) => accepted += count,
                // The log was rotated to the next term.
                Err(OfferError::AdminAction) => {}
                Err(error) => return OfferedBatch { accepted, stopped_by: Some(error) },
            }
        }
        OfferedBatch { accepted, stopped_by: None }
    }

    /// Offers the first messages that are accepted now, need one frame each and fit into this term.
    /// Returns their number.
    #[inline(always)]
    fn offer_run(&mut self, mut run: Run<'_>) -> Result<usize, OfferError> {
        let Some((next, limit)) = self.next_frame_and_limit() else { return Ok(0) };
        let position = next.term_begin_position + i64::from(next.term_offset);
        // Negative if the driver has lowered the limit.
        let Ok(window) = usize::try_from(limit.wrapping_sub(position)) else { return Ok(0) };
        let left_of_term = (self.fields.term_buffer_length - next.term_offset) as usize;
        run.cut(Remaining { window, length: left_of_term });
        if run.count == 0 {
            return Ok(0);
        }
        // SAFETY: the frames lie within the active term and begin behind the position limit, where
        // no process reads or cleans before the first frame is published; `&mut self` is the only
        // writer.
        unsafe {
            let frame = self.move_tail(next, next.term_offset + run.length as i32);
            let raw_tail = protocol::raw_tail(next.term_id, next.term_offset);
            run.publish(frame, raw_tail, self.ids)
        }
    }
}

impl Publication {
    /// Offers messages one after the other, as [`offer`](Self::offer) does, and stops at the first
    /// rejected message.
    ///
    /// Works in runs of messages: up to 16 messages, or as many as begin within 2 KiB. Each run is
    /// claimed by one atomic addition, the step for which publishers on other threads wait. The
    /// messages of a run are published together. Messages of other threads can come between runs.
    /// Long messages are sent in fragments.
    ///
    /// Does not block, does not allocate, makes no system call. If `as_ref` of a message panics,
    /// the runs before it have been sent. `as_ref` is called before the range is claimed, so that
    /// other publishers do not wait for it.
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
                // The log has most likely been rotated, but another publisher can still be rotating
                // it.
                Err(OfferError::AdminAction) if !is_rotated => is_rotated = true,
                Err(error) => return OfferedBatch { accepted, stopped_by: Some(error) },
            }
        }
        OfferedBatch { accepted, stopped_by: None }
    }

    /// Offers as many messages as fit into the remaining range, at least one. Returns their number.
    #[inline(always)]
    fn offer_run(&self, mut run: Run<'_>, first_length: usize) -> Result<usize, OfferError> {
        let range = self.claim_range(first_length, |remaining| {
            let first = align(first_length + HEADER_LENGTH);
            // If the first message does not fit, the claim has to find that out. The window is empty
            // only for a tail beyond its term.
            run.cut(Remaining {
                window: remaining.window.max(1),
                length: remaining.length.max(first),
            });
            run.length
        })?;
        // SAFETY: the range was claimed just now, for this call alone.
        unsafe {
            if !log_buffer::is_vacant(range.frame) {
                return Err(OfferError::Unblocked);
            }
            run.publish(range.frame, range.raw_tail, self.ids)
        }
    }
}

/// Messages that need one frame each.
struct Run<'m> {
    messages: [&'m [u8]; RUN_LENGTH],
    count: usize,
    /// Length of their frames in bytes.
    length: usize,
}

impl<'m> Run<'m> {
    /// Collects the first messages, up to a message that is longer than `max_payload_length`.
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
        // `count` is never greater than the length of the array.
        self.messages.get(..self.count).unwrap_or_default()
    }

    /// Shortens the run to the messages that begin within the window and fit.
    #[inline(always)]
    fn cut(&mut self, remaining: Remaining) {
        if self.length > remaining.window.min(remaining.length) {
            self.cut_one_by_one(remaining);
        }
    }

    #[cold]
    fn cut_one_by_one(&mut self, remaining: Remaining) {
        let (mut count, mut length) = (0, 0);
        for message in self.messages() {
            let end = length + align(message.len() + HEADER_LENGTH);
            if length >= remaining.window || end > remaining.length {
                break;
            }
            (count, length) = (count + 1, end);
        }
        (self.count, self.length) = (count, length);
    }

    /// Writes all frames and publishes them together. Returns their number.
    ///
    /// Until then the first frame has the negative length of the whole run. If this process dies,
    /// the driver turns the run into one padding frame, and subscribers get none of the messages.
    /// Subscribers read nothing behind the first frame before that frame is published. So the cache
    /// lines that are being written also stay with this core.
    ///
    /// # Errors
    /// [`OfferError::Unblocked`] if the driver has written that padding because this call took too
    /// long.
    ///
    /// # Safety
    /// `frame` is the address of a range for all frames. The range is this call's alone, mapped,
    /// and in an active term. `raw_tail` is the same position as a tail.
    #[inline(always)]
    unsafe fn publish(
        &self,
        frame: *mut u8,
        raw_tail: i64,
        ids: FrameIds,
    ) -> Result<usize, OfferError> {
        let Some((first, others)) = self.messages().split_first() else { return Ok(0) };
        let run_length = self.length as i32;
        // SAFETY: by the contract, as no frame ends behind `length`.
        unsafe {
            log_buffer::begin_frame(frame, run_length, raw_tail, ids);
            log_buffer::copy_payload(first, frame);
            let mut offset = align(first.len() + HEADER_LENGTH);
            for message in others {
                let frame = frame.add(offset);
                log_buffer::write_header(frame, raw_tail + offset as i64, ids);
                log_buffer::copy_payload(message, frame);
                let frame_length = (message.len() + HEADER_LENGTH) as i32;
                protocol::publish_frame(log_buffer::frame_length_of(frame), frame_length);
                offset += align(message.len() + HEADER_LENGTH);
            }
            let length = log_buffer::frame_length_of(frame);
            // As in `BufferClaim::commit`.
            if length.load(Ordering::Relaxed) != -run_length {
                return Err(OfferError::Unblocked);
            }
            protocol::publish_frame(length, (first.len() + HEADER_LENGTH) as i32);
        }
        Ok(self.count)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    /// Memory of a term, for messages of a short and a long payload.
    struct Term(Vec<u64>, usize);

    const LONG: usize = 4 << 20;

    impl Term {
        fn new() -> Self {
            let mut words = vec![0_u64; (LONG + 256) / 8];
            let address = words.as_mut_ptr().addr();
            Self(words, address.next_multiple_of(32) - address)
        }

        fn frame(&mut self, offset: usize) -> *mut u8 {
            self.0.as_mut_ptr().cast::<u8>().wrapping_add(self.1 + offset)
        }
    }

    #[test]
    fn unblocked_run_stays_padding() {
        let long = vec![7; LONG];
        let messages: [&[u8]; 2] = [&[1; 10], &long];
        let run = Run::gather(&messages, LONG);
        let run_length = run.length as i32;
        assert_eq!(run_length as usize, 64 + LONG + HEADER_LENGTH);
        const WATCHED: usize = 20;
        let (mut published, mut was_unblocked) = (0, false);
        // The driver acts before or after the last store: both happen, sooner or later.
        while !(published >= WATCHED && was_unblocked) {
            let mut term = Term::new();
            // SAFETY: in the term, which lives until the threads have ended.
            let [length, second] =
                [0, 64].map(|offset| unsafe { log_buffer::frame_length_of(term.frame(offset)) });
            let (is_begun, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
            let unblocks = published >= WATCHED;
            let outcome = thread::scope(|scope| {
                let watch_or_unblock = || {
                    is_begun.store(true, Ordering::Relaxed);
                    while !is_over.load(Ordering::Relaxed) {
                        let order = Ordering::Relaxed;
                        if !unblocks && length.load(Ordering::Acquire) > 0 {
                            assert_eq!(second.load(order), LONG as i32 + 32, "it comes first");
                            break;
                        }
                        let unblock =
                            || length.compare_exchange(-run_length, run_length, order, order);
                        if unblocks && unblock().is_ok() {
                            break;
                        }
                    }
                };
                scope.spawn(watch_or_unblock);
                while !is_begun.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                // SAFETY: the term is this call's alone but for the length, and longer than the run.
                let outcome = unsafe { run.publish(term.frame(0), 0, FrameIds::new(1, 2)) };
                is_over.store(true, Ordering::Relaxed);
                outcome
            });
            match outcome {
                Ok(count) => {
                    published += 1;
                    assert_eq!(count, 2);
                    let lengths = [length, second].map(|length| length.load(Ordering::Relaxed));
                    assert_eq!(lengths, [42, LONG as i32 + 32]);
                }
                Err(error) => {
                    was_unblocked = true;
                    assert_eq!(error, OfferError::Unblocked);
                    assert_eq!(length.load(Ordering::Relaxed), run_length);
                }
            }
        }
    }

    #[test]
    fn run_is_cut_to_window_and_term() {
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
            run.cut(Remaining { window, length });
            assert_eq!((run.count, run.length), expected, "{window}, {length}");
        }
    }

    #[test]
    fn run_ends_at_long_message_or_two_kibibytes() {
        let [short, long, too_long] = [10, 1_000, 2_000].map(|length| vec![0; length]);
        assert_eq!(Run::gather(&[&short, &too_long, &short], 1_408).count, 1);
        assert_eq!(Run::gather(&[&too_long], 1_408).count, 0);
        assert_eq!(Run::gather(&[&long, &long, &long], 1_408).count, 2);
        assert_eq!(Run::gather(&[(); 20].map(|()| &short), 1_408).count, RUN_LENGTH);
    }
}
