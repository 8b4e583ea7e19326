//! A message in several parts.

use std::io::IoSlice;
use std::ops::Range;
use std::slice;

use rusteron_core::log_buffer;

/// Returns the length of the message in bytes. Returns `usize::MAX` if the sum overflows, which it
/// can because slices can overlap.
#[inline]
pub(crate) fn total_length(parts: &[IoSlice<'_>]) -> usize {
    parts.iter().fold(0, |sum, part| sum.saturating_add(part.len()))
}

/// Copies the parts one after the other into a target of their [`total_length`].
#[inline]
pub(crate) fn copy(parts: &[IoSlice<'_>], mut target: &mut [u8]) {
    for part in parts {
        let (range, rest) = target.split_at_mut(part.len());
        range.copy_from_slice(part);
        target = rest;
    }
}

/// Returns a function that fills fragments with the parts, from the first fragment to the last.
pub(crate) fn filler(parts: &[IoSlice<'_>]) -> impl FnMut(Range<usize>, *mut u8) {
    let mut pieces = Pieces::new(parts);
    move |part, frame| {
        // SAFETY: the publication has begun the frame for a payload of this length, for this call
        // alone. The memory is initialised: it is mapped from a file.
        let payload =
            unsafe { slice::from_raw_parts_mut(frame.add(log_buffer::HEADER_LENGTH), part.len()) };
        pieces.copy_next(payload);
    }
}

/// The parts of a message, which are copied one piece after the other.
struct Pieces<'a> {
    parts: &'a [IoSlice<'a>],
    /// Number of bytes of the first part that have been copied.
    copied: usize,
}

impl<'a> Pieces<'a> {
    fn new(parts: &'a [IoSlice<'a>]) -> Self {
        Self { parts, copied: 0 }
    }

    /// Copies the next bytes, as many as fit or remain.
    fn copy_next(&mut self, mut target: &mut [u8]) {
        while let Some((part, others)) = self.parts.split_first() {
            let piece = &part[self.copied..];
            let length = piece.len().min(target.len());
            let (range, rest) = target.split_at_mut(length);
            range.copy_from_slice(&piece[..length]);
            target = rest;
            if length < piece.len() {
                self.copied += length;
                return;
            }
            (self.parts, self.copied) = (others, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cross_parts() {
        let parts = [&[1, 2, 3][..], &[], &[4], &[5, 6]].map(IoSlice::new);
        let mut pieces = Pieces::new(&parts);
        let mut target = [0; 2];
        for expected in [[1, 2], [3, 4], [5, 6]] {
            pieces.copy_next(&mut target);
            assert_eq!(target, expected);
        }
        pieces.copy_next(&mut target);
        assert_eq!(target, [5, 6]);
    }

    #[test]
    fn impossible_lengths_do_not_overflow() {
        assert_eq!(total_length(&[]), 0);
        let bytes = vec![0; 1 << 20];
        assert_eq!(total_length(&[IoSlice::new(&bytes), IoSlice::new(&bytes)]), 2 << 20);
    }
}
