//! A file that is mapped for reading and writing.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use crate::ffi::ForkGuard;

/// The first bytes of a file, mapped for reading and writing. This process accesses them by atomic
/// operations only.
///
/// The operating system ends a process (SIGBUS) that writes to a part of a mapped file for which
/// the disk has no space, or which another process has cut off. The caller has written the whole
/// file before.
///
/// A forked child has memory of its own instead, full of zeros.
#[derive(Debug)]
pub struct MappedFile {
    /// Dropped before the mapping.
    _fork_guard: ForkGuard,
    map: MmapRaw,
}

impl MappedFile {
    /// Maps the first `length` bytes. `length` is not 0.
    ///
    /// # Errors
    /// The file is shorter, or cannot be mapped.
    pub fn new(file: &File, length: usize) -> io::Result<Self> {
        if file.metadata()?.len() < length as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let map = MmapOptions::new().len(length).map_raw(file)?;
        // SAFETY: a whole mapping, which is dropped after the guard. All access is atomic.
        let _fork_guard = unsafe { ForkGuard::of_mapping(map.as_mut_ptr(), map.len()) };
        Ok(Self { _fork_guard, map })
    }

    /// The number at an offset, in the byte order of this machine, as Aeron's own files.
    ///
    /// # Panics
    /// The number is not aligned, or lies outside. Callers know their offsets.
    pub fn i64_at(&self, offset: usize) -> &AtomicI64 {
        // SAFETY: `address` has checked that the bytes are mapped and aligned. The mapping lives as
        // long as the reference. All access to the mapping is atomic.
        unsafe { AtomicI64::from_ptr(self.address(offset)) }
    }

    /// Like [`i64_at`](Self::i64_at).
    ///
    /// # Panics
    /// As there.
    pub fn i32_at(&self, offset: usize) -> &AtomicI32 {
        // SAFETY: as in `i64_at`.
        unsafe { AtomicI32::from_ptr(self.address(offset)) }
    }

    /// Writes bytes, in any order. A release store must follow, for those who look for it.
    ///
    /// # Panics
    /// The bytes lie outside.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        for (index, byte) in bytes.iter().enumerate() {
            // SAFETY: as in `i64_at`.
            let target = unsafe { AtomicU8::from_ptr(self.address(offset + index)) };
            target.store(*byte, Ordering::Relaxed);
        }
    }

    fn address<T>(&self, offset: usize) -> *mut T {
        let is_within = offset.checked_add(size_of::<T>()).is_some_and(|end| end <= self.map.len());
        assert!(is_within, "{offset} of {} bytes", self.map.len());
        // SAFETY: within the mapping, by the assertion.
        let address = unsafe { self.map.as_mut_ptr().add(offset) }.cast::<T>();
        assert!(address.is_aligned(), "{offset}");
        address
    }
}
