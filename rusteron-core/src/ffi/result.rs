//! The results of C functions.

use std::ffi::c_int;

use rusteron_sys as sys;

use crate::error::{Error, Result};
use crate::ffi::lossy;

/// The result of a C function that reports failure by a negative number.
///
/// Code and text of the failure live in a thread-local. The next call overwrites them, so they are
/// read in the same expression as the call.
pub trait Fallible: Sized {
    /// Returns the number unchanged, or the error that C left behind.
    fn into_result(self) -> Result<Self>;
}

impl Fallible for c_int {
    fn into_result(self) -> Result<Self> {
        if self < 0 { Err(last_error()) } else { Ok(self) }
    }
}

impl Fallible for i64 {
    fn into_result(self) -> Result<Self> {
        if self < 0 { Err(last_error()) } else { Ok(self) }
    }
}

/// Returns the error that the last failed C call left in this thread.
pub fn last_error() -> Error {
    // SAFETY: both functions read a thread-local that Aeron creates on demand.
    let code = unsafe { sys::aeron_errcode() };
    // SAFETY: as above; the text stays valid until this thread's next call into Aeron, and it is copied before
    // that.
    let message = unsafe { lossy(sys::aeron_errmsg()) }.trim_end().to_owned();
    // SAFETY: clears the same thread-local.
    unsafe { sys::aeron_err_clear() };
    Error::from_code(code, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn the_last_error_is_taken_once() {
        // SAFETY: passing no client is what makes the call fail; C checks for it.
        assert_eq!(unsafe { sys::aeron_client_id(std::ptr::null_mut()) }, -1);
        let error = last_error();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("aeron_client_id(NULL)"), "{error:?}");
        assert_eq!(last_error().code(), 0);
    }
}
