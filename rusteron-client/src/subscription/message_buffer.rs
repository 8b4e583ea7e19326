//! Memory of a message that is assembled from its fragments.

use std::mem::MaybeUninit;
use std::ops::Deref;
use std::{ptr, slice};

use rusteron_core::log_buffer::FRAME_ALIGNMENT;

/// Bytes that start at a multiple of 32 in memory, as messages in the log buffer do.
///
/// A vector of bytes would have no alignment that handlers could rely on.
pub(crate) struct MessageBuffer {
    /// The bytes, and at the end of the last block uninitialised memory.
    blocks: Vec<Block>,
    /// Length of the message in bytes.
    length: usize,
}

#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Block {
    _bytes: [MaybeUninit<u8>; BLOCK_LENGTH],
}

const BLOCK_LENGTH: usize = FRAME_ALIGNMENT;
const _: () = assert!(size_of::<Block>() == BLOCK_LENGTH && align_of::<Block>() == BLOCK_LENGTH);

impl MessageBuffer {
    pub(crate) const fn new() -> Self {
        Self { blocks: Vec::new(), length: 0 }
    }

    /// Returns the length of the message in bytes.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Shortens the message. A length that is not shorter changes nothing.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
        self.blocks.truncate(self.length.div_ceil(BLOCK_LENGTH));
    }

    /// Appends bytes. Allocates if the message has never been as long before.
    pub(crate) fn extend_from_slice(&mut self, bytes: &[u8]) {
        let length = self.length + bytes.len();
        let count = length.div_ceil(BLOCK_LENGTH);
        self.blocks.reserve(count - self.blocks.len());
        // SAFETY: the capacity is `count` blocks, so `length` bytes fit. `bytes` lies in other
        // memory, because `self` is borrowed mutably. Blocks may be uninitialised.
        unsafe {
            let end = self.blocks.as_mut_ptr().cast::<u8>().add(self.length);
            ptr::copy_nonoverlapping(bytes.as_ptr(), end, bytes.len());
            self.blocks.set_len(count);
        }
        self.length = length;
    }
}

impl Deref for MessageBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `extend_from_slice` has written the first `length` bytes, and they change through
        // `&mut self` only.
        unsafe { slice::from_raw_parts(self.blocks.as_ptr().cast(), self.length) }
    }
}

#[cfg(test)]
impl MessageBuffer {
    pub(crate) fn capacity(&self) -> usize {
        self.blocks.capacity() * BLOCK_LENGTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of both after the same steps, at each length around the ends of blocks.
    #[test]
    fn grows_and_shrinks_as_a_vector_does() {
        let source: Vec<u8> = (0..=u8::MAX).collect();
        for first in [0, 1, 31, 32, 33, 63, 64, 65] {
            for second in [0, 1, 31, 32, 33, 100] {
                let (mut buffer, mut vector) = (MessageBuffer::new(), Vec::new());
                for piece in [&source[..first], &source[first..][..second]] {
                    buffer.extend_from_slice(piece);
                    vector.extend_from_slice(piece);
                    assert_eq!(*buffer, *vector);
                }
                buffer.truncate(first + second + 1);
                assert_eq!(*buffer, *vector);
                buffer.truncate(first);
                buffer.extend_from_slice(b"after");
                assert_eq!(*buffer, *[&source[..first], b"after"].concat());
            }
        }
    }

    #[test]
    fn starts_aligned_empty_and_grown() {
        let mut buffer = MessageBuffer::new();
        for _ in 0..20 {
            assert!(buffer.as_ptr().cast::<Block>().is_aligned());
            buffer.extend_from_slice(&[7; 1000]);
        }
    }
}
