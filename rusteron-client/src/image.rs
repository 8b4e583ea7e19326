//! One publisher's stream as a subscription sees it, and the poll of it in Rust.

use std::slice;
use std::sync::atomic::Ordering;

use rusteron_sys as sys;

use crate::header::Header;
use crate::log_buffer::{self, HEADER_LENGTH, PARTITION_COUNT, align};

/// The fields of a C image that a poll works on, at the addresses C uses itself.
pub(crate) struct ImageFields(sys::rusteron_image_t);

impl ImageFields {
    /// # Safety
    /// What the addresses point to stays mapped while the image is used, and the subscriber position
    /// is written through it by one thread at a time, by nobody else.
    pub(crate) unsafe fn new(fields: sys::rusteron_image_t) -> Self {
        Self(fields)
    }

    /// Passes up to `fragment_limit` fragments to the handler and moves the subscriber position past
    /// them; returns how many.
    ///
    /// # Safety
    /// The contract of [`new`](Self::new) holds during the call, and no other poll of this image is
    /// under way.
    #[inline]
    pub(crate) unsafe fn poll<F>(&self, handler: &mut F, fragment_limit: usize) -> usize
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        let fields = &self.0;
        if self.is_closed() {
            return 0;
        }
        // SAFETY: mapped, by the contract. Nobody else writes it, so that no order is needed.
        let start =
            unsafe { log_buffer::atomic_i64(fields.subscriber_position).load(Ordering::Relaxed) };
        let term_length = fields.term_length as usize;
        let index = ((start as u64) >> fields.position_bits_to_shift) % PARTITION_COUNT as u64;
        let term = fields.term_buffers[index as usize];
        let start_offset = start as usize & (term_length - 1);

        let mut progress = Progress { image: self, start, start_offset, offset: start_offset };
        let mut fragments = 0;
        while fragments < fragment_limit && progress.offset < term_length && !self.is_closed() {
            // SAFETY: frames begin at aligned offsets below the term's length, and the term is
            // mapped, by the contract.
            let (frame, frame_length) = unsafe {
                let frame = term.add(progress.offset);
                let length = frame.add(log_buffer::FRAME_LENGTH).cast::<i32>();
                (frame, log_buffer::atomic_i32(length).load(Ordering::Acquire))
            };
            if frame_length <= 0 {
                break;
            }
            // Before the handler, so that one that panics has had this fragment.
            progress.offset += align(frame_length as usize);
            // SAFETY: the positive length, read with acquire, publishes the whole frame; it stays
            // as it is until the subscriber position has moved past it.
            unsafe {
                if frame.add(log_buffer::TYPE).cast::<u16>().read() != log_buffer::TYPE_PAD {
                    fragments += 1;
                    let payload_length = frame_length as usize - HEADER_LENGTH;
                    let payload = slice::from_raw_parts(frame.add(HEADER_LENGTH), payload_length);
                    let header =
                        Header::new(frame, fields.initial_term_id, fields.position_bits_to_shift);
                    handler(payload, &header);
                }
            }
        }
        fragments
    }

    #[inline(always)]
    fn is_closed(&self) -> bool {
        // SAFETY: part of the C image, which lives by the contract of `new`.
        unsafe { log_buffer::atomic_bool(self.0.is_closed).load(Ordering::Acquire) }
    }
}

/// How far a poll has come; tells the publisher when the poll ends, in whatever way it ends.
struct Progress<'a> {
    image: &'a ImageFields,
    start: i64,
    start_offset: usize,
    offset: usize,
}

impl Drop for Progress<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // A closed image's position is final, as in C.
        if self.offset > self.start_offset && !self.image.is_closed() {
            let position = self.start + (self.offset - self.start_offset) as i64;
            // SAFETY: mapped, by the contract of `ImageFields::new`. Release: the publisher may
            // overwrite what this poll has read only after it has seen the position.
            unsafe {
                log_buffer::atomic_i64(self.image.0.subscriber_position)
                    .store(position, Ordering::Release);
            }
        }
    }
}
