//! A message in several parts, in C's form.

use std::io::IoSlice;

use rusteron_sys as sys;

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

/// Calls `offer` with the parts in C's structure.
#[cfg(unix)]
#[inline]
pub(crate) fn with_iovecs<R>(
    parts: &[IoSlice<'_>],
    offer: impl FnOnce(*mut sys::aeron_iovec_t, usize) -> R,
) -> R {
    // The standard library guarantees that an `IoSlice` is a `struct iovec` on Unix; that this is
    // laid out as `aeron_iovec_t` is asserted where the shim is compiled. C does not write to them.
    const _: () = assert!(size_of::<IoSlice<'_>>() == size_of::<sys::aeron_iovec_t>());
    const _: () = assert!(align_of::<IoSlice<'_>>() == align_of::<sys::aeron_iovec_t>());
    offer(parts.as_ptr().cast_mut().cast(), parts.len())
}

/// Calls `offer` with the parts in C's structure, whose field order differs from that of Windows.
#[cfg(not(unix))]
pub(crate) fn with_iovecs<R>(
    parts: &[IoSlice<'_>],
    offer: impl FnOnce(*mut sys::aeron_iovec_t, usize) -> R,
) -> R {
    let mut iovecs: Vec<_> = parts
        .iter()
        .map(|part| sys::aeron_iovec_t { iov_base: part.as_ptr().cast_mut(), iov_len: part.len() })
        .collect();
    offer(iovecs.as_mut_ptr(), iovecs.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c_sees_the_parts() {
        let (first, second) = ([1, 2, 3], []);
        let parts = [IoSlice::new(&first), IoSlice::new(&second)];
        with_iovecs(&parts, |iovecs, count| {
            assert_eq!(count, 2);
            // SAFETY: `count` structures, which live as long as the parts.
            let iovecs = unsafe { std::slice::from_raw_parts(iovecs, count) };
            assert_eq!((iovecs[0].iov_base.cast_const(), iovecs[0].iov_len), (first.as_ptr(), 3));
            assert_eq!(iovecs[1].iov_len, 0);
        });
    }

    #[test]
    fn impossible_lengths_do_not_overflow() {
        assert_eq!(total_length(&[]), 0);
        let bytes = vec![0; 1 << 20];
        assert_eq!(total_length(&[IoSlice::new(&bytes), IoSlice::new(&bytes)]), 2 << 20);
    }
}
