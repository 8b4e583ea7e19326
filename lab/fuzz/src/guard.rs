//! Shared files are mapped with memory around them that nothing may touch.
//!
//! AddressSanitizer knows nothing of the bounds of a mapping. The kernel puts mappings side by side, so that an access
//! beyond one lands in another and goes unnoticed. Here it ends the process.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// More than the longest term, which is 1 GiB: a position in the wrong term is beyond the mapping.
const GUARD_LENGTH: usize = 2 << 30;

/// The lengths of guarded mappings by their addresses.
static GUARDED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

unsafe extern "C" {
    fn __real_mmap64(
        address: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn __real_munmap(address: *mut c_void, length: usize) -> c_int;
}

/// # Safety
/// As for `mmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_mmap64(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: i64,
) -> *mut c_void {
    let is_shared_file = fd >= 0 && flags & libc::MAP_SHARED != 0 && address.is_null();
    if !is_shared_file {
        // SAFETY: handed on.
        return unsafe { __real_mmap64(address, length, protection, flags, fd, offset) };
    }
    let reserved = reserved_length(length);
    // SAFETY: memory that nobody has yet is reserved, and its middle replaced by the file.
    unsafe {
        let nothing = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let start = __real_mmap64(ptr::null_mut(), reserved, libc::PROT_NONE, nothing, -1, 0);
        if start == libc::MAP_FAILED {
            return start;
        }
        let middle = start.byte_add(GUARD_LENGTH);
        let flags = flags | libc::MAP_FIXED;
        let mapped = __real_mmap64(middle, length, protection, flags, fd, offset);
        if mapped == libc::MAP_FAILED {
            let cause = *libc::__errno_location();
            __real_munmap(start, reserved);
            *libc::__errno_location() = cause;
            return mapped;
        }
        GUARDED.lock().unwrap_or_else(PoisonError::into_inner).insert(mapped as usize, length);
        mapped
    }
}

/// # Safety
/// As for `munmap`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __wrap_munmap(address: *mut c_void, length: usize) -> c_int {
    let guarded =
        GUARDED.lock().unwrap_or_else(PoisonError::into_inner).remove(&(address as usize));
    // SAFETY: handed on; the guards are unmapped with what they guard.
    unsafe {
        match guarded {
            Some(whole) => {
                assert_eq!(whole, length, "a shared file is mapped and unmapped with one length");
                __real_munmap(address.byte_sub(GUARD_LENGTH), reserved_length(length))
            }
            None => __real_munmap(address, length),
        }
    }
}

fn reserved_length(length: usize) -> usize {
    // The largest pages of any Linux.
    length.next_multiple_of(64 << 10) + 2 * GUARD_LENGTH
}
