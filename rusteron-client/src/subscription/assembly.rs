//! Assembly of long messages from their fragments.

use rusteron_core::error::Position;
use rusteron_core::log_buffer::{BEGIN_FLAG, END_FLAG};

use crate::subscription::image::action::Action;
use crate::subscription::image::header::{FrameHeader, Header};
use crate::subscription::message_buffer::MessageBuffer;

/// The partly assembled message of one image or session.
///
/// Memory is allocated for the first long message and reused for all later messages.
pub(crate) struct Assembly {
    message: MessageBuffer,
    /// Length of the message without the last fragment. If the handler rejected the message,
    /// `message` still contains the last fragment.
    length: usize,
    /// Position at which the next fragment begins; `None` if no message has begun.
    next_position: Option<Position>,
    start_position: Position,
    first: FrameHeader,
    max_length: usize,
}

impl Assembly {
    pub(crate) const fn new() -> Self {
        Self::bounded(usize::MAX)
    }

    /// Returns an assembly of messages of up to `max_length` bytes.
    pub(crate) const fn bounded(max_length: usize) -> Self {
        Self {
            message: MessageBuffer::new(),
            length: 0,
            next_position: None,
            start_position: 0,
            first: FrameHeader::EMPTY,
            max_length,
        }
    }

    pub(crate) fn set_max_length(&mut self, max_length: usize) {
        self.max_length = max_length;
    }

    /// Passes a whole message to the handler. If the fragment is a whole message, passes the
    /// fragment itself. If it is the last fragment of a message, passes all fragments in one piece.
    ///
    /// A message is dropped if its first fragments are missing, because the subscriber joined later
    /// or other polls have read them. A message that is longer than any that its publisher can
    /// offer, or than `max_length`, is also dropped, and its memory is freed.
    #[inline(always)]
    pub(crate) fn poll<F>(&mut self, fragment: &[u8], header: &Header<'_>, handler: &mut F)
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        if header.is_unfragmented() {
            handler(fragment, header);
        } else {
            self.give(fragment, header, handler);
        }
    }

    /// As [`poll`](Self::poll), for a fragment that is no whole message by itself.
    #[inline(always)]
    pub(crate) fn give<F>(&mut self, fragment: &[u8], header: &Header<'_>, handler: &mut F)
    where
        F: FnMut(&[u8], &Header<'_>),
    {
        if self.append(fragment, header) {
            // If the handler panics, this message counts as received.
            self.next_position = None;
            handler(&self.message, &self.header(header));
        }
    }

    /// As [`poll`](Self::poll). If the handler rejects a message, the message is whole again when
    /// its last fragment is passed again.
    #[inline(always)]
    pub(crate) fn controlled_poll<F>(
        &mut self,
        fragment: &[u8],
        header: &Header<'_>,
        handler: &mut F,
    ) -> Action
    where
        F: FnMut(&[u8], &Header<'_>) -> Action,
    {
        if header.is_unfragmented() {
            return handler(fragment, header);
        }
        if !self.append(fragment, header) {
            return Action::Continue;
        }
        // As in `give`.
        self.next_position = None;
        let action = handler(&self.message, &self.header(header));
        if action == Action::Abort {
            self.next_position = Some(header.start_position());
        }
        action
    }

    /// Returns the whole message, if this fragment ends it. Passing the same fragment again returns
    /// the same message.
    pub(crate) fn whole<'a>(
        &'a mut self,
        fragment: &[u8],
        header: &Header<'a>,
    ) -> Option<(&'a [u8], Header<'a>)> {
        let is_whole = self.append(fragment, header);
        is_whole.then(|| (&self.message[..], self.header(header)))
    }

    /// Appends a fragment, and returns whether it ends a message. A fragment that ends a message
    /// can be passed again.
    ///
    /// Out of line, and without the handler, to keep the loops of the polls small.
    #[cold]
    #[inline(never)]
    fn append(&mut self, fragment: &[u8], header: &Header<'_>) -> bool {
        let start = header.start_position();
        if header.flags() & BEGIN_FLAG != 0 {
            self.length = 0;
            self.first = header.frame_header();
            self.start_position = start;
        } else if self.next_position != Some(start) {
            self.next_position = None;
            return false;
        }
        self.message.truncate(self.length);
        // Fragments that a publisher claims one by one, or a host sends, could go on for ever.
        let max_length = self.max_length.min(header.max_message_length());
        if fragment.len() > max_length.saturating_sub(self.length) {
            *self = Self::bounded(self.max_length);
            return false;
        }
        self.message.extend_from_slice(fragment);
        if header.flags() & END_FLAG == 0 {
            self.length = self.message.len();
            self.next_position = Some(header.position());
            return false;
        }
        self.next_position = Some(start);
        self.first.complete(self.message.len(), header.flags());
        true
    }

    /// Returns the header of the whole message, whose last fragment has the header `last`.
    #[cold]
    fn header<'a>(&'a self, last: &Header<'a>) -> Header<'a> {
        // Fragments of a message lie one after the other. Frames that are being overwritten can
        // have any position.
        let length = usize::try_from(last.position() - self.start_position).unwrap_or(0);
        Header::assembled(&self.first, last, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::image::header::tests::{frame, image};

    /// Appends one fragment of 32 bytes after another to an assembly, and returns the greatest
    /// length of the message.
    fn longest(term_length: usize, mut assembly: Assembly) -> usize {
        let bits = term_length.ilog2() as usize;
        let image = rusteron_sys::rusteron_image_t { position_bits_to_shift: bits, ..image() };
        let mut longest = 0;
        for offset in (0..term_length).step_by(64) {
            let flags = if offset == 0 { BEGIN_FLAG } else { 0 };
            let fragment = frame(64, offset as i32, i32::MIN, flags);
            // SAFETY: the frame lives as long as the header.
            let header = unsafe { Header::new(fragment.as_ptr(), &image) };
            assert!(!assembly.append(&[7; 32], &header));
            longest = longest.max(assembly.message.len());
        }
        assert_eq!(assembly.message.capacity(), 0, "memory of a dropped message");
        assert_eq!(assembly.next_position, None);
        longest
    }

    #[test]
    fn endless_message_is_bounded() {
        assert_eq!(longest(64 << 10, Assembly::new()), 8 << 10);
        assert_eq!(longest(256 << 20, Assembly::new()), 16 << 20);
        assert_eq!(longest(64 << 10, Assembly::bounded(4 << 10)), 4 << 10);
        assert_eq!(longest(64 << 10, Assembly::bounded(1 << 20)), 8 << 10);
    }
}
