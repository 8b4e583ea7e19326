//! Reads memory that other processes write to. This process may have mapped it for reading only.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, Ordering, fence};

/// A stretch of shared memory.
///
/// Reads copy the contents, which may be anything. This type checks offsets and alignment. The
/// caller checks the contents.
#[derive(Clone, Copy)]
pub(crate) struct SharedMemory<'a> {
    start: *const u8,
    length: usize,
    mapping: PhantomData<&'a AtomicU8>,
}

// SAFETY: all access is atomic, and by shared reference in any case.
unsafe impl Send for SharedMemory<'_> {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory<'_> {}

impl<'a> SharedMemory<'a> {
    /// # Safety
    /// The `length` bytes from `start` are mapped for `'a`.
    pub(crate) unsafe fn new(start: *const u8, length: usize) -> Self {
        Self { start, length, mapping: PhantomData }
    }

    pub(crate) fn start(&self) -> *const u8 {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns a part of this stretch, if the part lies within.
    pub(crate) fn part(&self, offset: usize, length: usize) -> Option<Self> {
        let end = offset.checked_add(length)?;
        (end <= self.length).then(|| Self {
            // SAFETY: at most one past the end of one mapping.
            start: unsafe { self.start.add(offset) },
            length,
            mapping: PhantomData,
        })
    }

    /// Loads the number at an offset. All writes before its release store are then visible.
    pub(crate) fn load_i32(&self, offset: usize) -> Option<i32> {
        let address = self.aligned::<AtomicI32>(offset)?;
        // SAFETY: mapped and aligned, by `aligned`. Of atomic accesses, only relaxed loads are
        // allowed on memory mapped for reading, which is why the acquire is a fence.
        let value = unsafe { &*address }.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        Some(value)
    }

    /// Like [`load_i32`](Self::load_i32).
    pub(crate) fn load_i64(&self, offset: usize) -> Option<i64> {
        let address = self.aligned::<AtomicI64>(offset)?;
        // SAFETY: as in `load_i32`.
        let value = unsafe { &*address }.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        Some(value)
    }

    /// Adds the bytes to `target`. If others write meanwhile, the copy mixes old and new bytes.
    pub(crate) fn copy_to(&self, target: &mut Vec<u8>) {
        target.extend((0..self.length).map(|offset| {
            // SAFETY: within the stretch, which is mapped; a byte is always aligned.
            unsafe { &*self.start.add(offset).cast::<AtomicU8>() }.load(Ordering::Relaxed)
        }));
        fence(Ordering::Acquire);
    }

    /// Like [`copy_to`](Self::copy_to), for a length known before. `None` if the stretch is
    /// shorter.
    pub(crate) fn copy_to_slice(&self, target: &mut [u8]) -> Option<()> {
        let source = self.part(0, target.len())?;
        for (offset, byte) in target.iter_mut().enumerate() {
            // SAFETY: as in `copy_to`.
            let shared = unsafe { &*source.start.add(offset).cast::<AtomicU8>() };
            *byte = shared.load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        Some(())
    }

    /// Returns the address of a `T` at an offset, if the address is aligned and the `T` lies
    /// within.
    fn aligned<T>(&self, offset: usize) -> Option<*const T> {
        let address = self.part(offset, size_of::<T>())?.start.cast::<T>();
        address.is_aligned().then_some(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_or_askew_is_none() {
        let mut words = [i64::from_ne_bytes([1, 0, 0, 0, 2, 0, 0, 0]), 7];
        // SAFETY: the array lives to the end of the test.
        let memory = unsafe { SharedMemory::new(words.as_mut_ptr().cast(), 16) };
        if cfg!(target_endian = "little") {
            assert_eq!(memory.load_i32(0), Some(1));
            assert_eq!(memory.load_i32(4), Some(2));
        }
        assert_eq!(memory.load_i64(8), Some(7));
        assert_eq!(memory.load_i64(4), None);
        assert_eq!(memory.load_i64(16), None);
        assert_eq!(memory.load_i32(13), None);
        assert_eq!(memory.load_i32(usize::MAX), None);
        assert!(memory.part(16, 0).is_some());
        assert!(memory.part(8, usize::MAX).is_none());

        let mut copied = Vec::new();
        memory.part(8, 8).expect("within").copy_to(&mut copied);
        assert_eq!(copied, 7_i64.to_ne_bytes());
        assert_eq!(memory.copy_to_slice(&mut [0; 17]), None);
    }
}
