//! Texts and paths that C returns.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::path::Path;

/// Returns the text at `text`. The text is empty if the pointer is null.
///
/// # Safety
/// `text` is null or points to a NUL-terminated string that lives, unchanged, for `'a`.
pub unsafe fn lossy<'a>(text: *const c_char) -> Cow<'a, str> {
    if text.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: not null, and the caller vouches for the rest.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// Returns the path at `text`. The path is empty if the pointer is null.
///
/// # Safety
/// As for [`lossy`].
pub unsafe fn path<'a>(text: *const c_char) -> &'a Path {
    if text.is_null() {
        return Path::new("");
    }
    // SAFETY: not null, and the caller vouches for the rest.
    path_from_c(unsafe { CStr::from_ptr(text) })
}

#[cfg(unix)]
fn path_from_c(text: &CStr) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(text.to_bytes()))
}

/// Rust passes paths to C as Unicode only. Any other bytes can only come from the environment.
#[cfg(not(unix))]
fn path_from_c(text: &CStr) -> &Path {
    Path::new(text.to_str().unwrap_or_default())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::ffi::c_path;

    #[test]
    fn a_path_that_is_not_unicode_keeps_its_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff"));
        let text = c_path("dir", odd).unwrap();
        // SAFETY: `text` lives to the end of the test.
        assert_eq!(unsafe { path(text.as_ptr()) }, odd);
    }
}
