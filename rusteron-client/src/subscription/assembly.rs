//! Assembly of long messages from their fragments.

use crate::subscription::image::Action;
use crate::subscription::image::header::{FrameHeader, Header};
use crate::subscription::message_buffer::MessageBuffer;
use rusteron_core::error::Position;
use rusteron_core::log_buffer::{BEGIN_FLAG, END_FLAG};

/// Greatest length of an assembled message in bytes, as in C and Java. No offered message is as
/// long. But fragments that were claimed one by one could go on for ever.
const MAX_LENGTH: usize = (i32::MAX - 8) as usize;

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
}

impl Assembly {
    pub(crate) const fn new() -> Self {
        Self {
            message: MessageBuffer::new(),
            length: 0,
            next_position: None,
            start_position: 0,
            first: FrameHeader::EMPTY,
        }
    }

    /// Passes a whole message to the handler. If the fragment is a whole message, passes the
    /// fragment itself. If it is the last fragment of a message, passes all fragments in one piece.
    ///
    /// A message is dropped if its first fragments are missing, because the subscriber joined later
    /// or other polls have read them. A message of more than 2³¹ − 9 bytes is also dropped.
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
        if fragment.len() > MAX_LENGTH - self.length {
            *self = Self::new();
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

    #[test]
    fn endless_message_is_bounded() {
        let (image, middle) = (image(), frame(64, 0, i32::MIN, 0));
        // SAFETY: the frame lives as long as the header.
        let header = unsafe { Header::new(middle.as_ptr(), &image) };
        let begun = |length| {
            // Pages that are never written take no memory.
            // SAFETY: the test reads lengths only.
            let message = unsafe { MessageBuffer::unwritten(length, MAX_LENGTH) };
            Assembly { message, length, next_position: Some(0), ..Assembly::new() }
        };

        let mut assembly = begun(MAX_LENGTH - 32);
        assert!(!assembly.append(&[7; 32], &header));
        assert_eq!((assembly.message.len(), assembly.next_position), (MAX_LENGTH, Some(64)));

        let mut assembly = begun(MAX_LENGTH - 31);
        assert!(!assembly.append(&[7; 32], &header));
        assert_eq!((assembly.message.capacity(), assembly.next_position), (0, None));
    }
}
