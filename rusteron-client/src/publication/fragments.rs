//! Messages of several fragments, which an exclusive publication writes one after the other.

use crate::error::Position;
use crate::log_buffer::{self, BEGIN_FLAG, END_FLAG, FLAGS, HEADER_LENGTH, align, protocol};
use crate::publication::ExclusivePublication;
use crate::publication::next_frame::NextFrame;

impl ExclusivePublication {
    /// Sends a message in as many fragments as needed, and returns the position after it. If the
    /// message does not fit into the rest of the term, sends nothing and returns `None`.
    ///
    /// Works as C does. The tail moves past all fragments first. Each fragment is published as soon
    /// as it is written, so that subscribers need not wait for the last fragment.
    pub(crate) fn write_fragments(&mut self, next: NextFrame, message: &[u8]) -> Option<Position> {
        // At least 32 in every log buffer that a driver makes.
        let fragment_length = self.fields.max_payload_length.max(1);
        let length = framed_length(message.len(), fragment_length);
        let end = next.term_offset as usize + length;
        if end > self.fields.term_buffer_length as usize {
            return None;
        }
        let mut flags = BEGIN_FLAG;
        let mut raw_tail = protocol::raw_tail(next.term_id, next.term_offset);
        // SAFETY: `next` is the publication's, and the end lies within the term.
        let mut frame = unsafe { self.move_tail(next, end as i32) };
        let mut fragments = message.chunks(fragment_length).peekable();
        while let Some(fragment) = fragments.next() {
            if fragments.peek().is_none() {
                flags |= END_FLAG;
            }
            let frame_length = fragment.len() + HEADER_LENGTH;
            // SAFETY: the frames follow each other up to the end above. They lie behind the
            // position limit, where no process reads or cleans, until their lengths turn positive.
            unsafe {
                log_buffer::begin_frame(frame, frame_length as i32, raw_tail, self.ids);
                frame.add(FLAGS).write(flags);
                log_buffer::copy_payload(fragment, frame);
                protocol::publish_frame(log_buffer::frame_length_of(frame), frame_length as i32);
                frame = frame.add(align(frame_length));
            }
            raw_tail += align(frame_length) as i64;
            flags = 0;
        }
        Some(next.term_begin_position + end as Position)
    }
}

/// Returns the length of all fragments in the term in bytes, headers and alignment included.
fn framed_length(length: usize, fragment_length: usize) -> usize {
    let (full, rest) = (length / fragment_length, length % fragment_length);
    let last = if rest > 0 { align(rest + HEADER_LENGTH) } else { 0 };
    full * align(fragment_length + HEADER_LENGTH) + last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_take_headers_and_alignment_each() {
        assert_eq!(framed_length(1376, 1376), 1408);
        assert_eq!(framed_length(1377, 1376), 1408 + 64);
        assert_eq!(framed_length(2 * 1376, 1376), 2 * 1408);
        assert_eq!(framed_length(2 * 1376 + 32, 1376), 2 * 1408 + 64);
        assert_eq!(framed_length(2 * 1376 + 33, 1376), 2 * 1408 + 96);
    }
}
