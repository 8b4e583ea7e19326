//! The move to the newest message, past those before it.

use rusteron_core::log_buffer;

use crate::subscription::image::frame::Frame;
use crate::subscription::image::poll::ImageFields;

/// The part of a stream that
/// [`Subscription::skip_to_latest`](crate::Subscription::skip_to_latest) has passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Skipped {
    /// The number of messages that were whole.
    pub messages: u64,
    /// The bytes of the stream, with headers and padding.
    pub bytes: u64,
}

impl ImageFields {
    /// Moves the subscriber position to where the newest message begins that has arrived whole.
    ///
    /// # Safety
    /// As for [`poll`](Self::poll).
    pub(crate) unsafe fn skip_to_latest(&self) -> Skipped {
        let nothing = Skipped::default();
        if self.is_closed() {
            return nothing;
        }
        let Some(start) = self.subscriber_position() else { return nothing };
        // A publisher is never further ahead. Frames after that were written for a client that is
        // taken for dead, and may go on without end.
        let limit = start.saturating_add(i64::from(self.raw.term_length));
        let (mut position, mut latest, mut begin, mut messages) = (start, start, None, 0);
        while position < limit {
            let term = self.term_of(position);
            // SAFETY: the position is in the term, and a frame starts there, as in `poll_to`. The
            // subscriber position moves after the last use of a frame.
            let frame = unsafe { Frame::at(&self.raw, term.end, position - term.end_position) };
            let Some(frame) = frame else { break };
            let end = position + frame.aligned_length() as i64;
            if frame.is_padding() {
                // Polls give no message with a hole.
                begin = None;
            } else {
                let flags = frame.header().flags();
                if flags & log_buffer::BEGIN_FLAG != 0 {
                    begin = Some(position);
                }
                if flags & log_buffer::END_FLAG != 0 {
                    if let Some(begin) = begin.take() {
                        latest = begin;
                        messages += 1;
                    }
                }
            }
            position = end;
        }
        if latest == start {
            return nothing;
        }
        self.publish(latest);
        Skipped { messages: messages - 1, bytes: (latest - start) as u64 }
    }
}
