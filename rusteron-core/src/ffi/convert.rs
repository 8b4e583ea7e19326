//! Values on their way to C and back: texts, paths, durations.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::time::Duration;

use rusteron_sys as sys;

use crate::error::{Error, ErrorKind, Result};

/// Makes a C string for the argument called `name`.
pub fn c_string(name: &'static str, value: &str) -> Result<CString> {
    CString::new(value).map_err(|error| {
        invalid(name, format!("a NUL byte at offset {} of {value:?}", error.nul_position()))
    })
}

/// Makes a C string of a path. Aeron truncates long paths silently, so a path that is too long is
/// an error here.
pub fn c_path(name: &'static str, path: &Path) -> Result<CString> {
    const MAX: usize = sys::AERON_MAX_PATH as usize - 1;
    let bytes = path_bytes(name, path)?;
    if bytes.is_empty() {
        return Err(invalid(name, "the path is empty".into()));
    }
    if bytes.len() > MAX {
        let length = bytes.len();
        return Err(invalid(name, format!("a path of {length} bytes; the maximum is {MAX}")));
    }
    CString::new(bytes).map_err(|_| invalid(name, format!("a NUL byte in {path:?}")))
}

#[cfg(unix)]
fn path_bytes<'a>(_name: &'static str, path: &'a Path) -> Result<&'a [u8]> {
    use std::os::unix::ffi::OsStrExt;
    Ok(path.as_os_str().as_bytes())
}

#[cfg(not(unix))]
fn path_bytes<'a>(name: &'static str, path: &'a Path) -> Result<&'a [u8]> {
    path.to_str()
        .map(str::as_bytes)
        .ok_or_else(|| invalid(name, format!("{path:?} is not valid Unicode")))
}

/// Converts a duration to the nanoseconds that C takes.
pub fn nanos(name: &'static str, value: Duration) -> Result<u64> {
    in_range(name, value, value.as_nanos())
}

/// Converts a duration to the milliseconds that C takes.
///
/// A fraction of a millisecond is rounded up, so a short timeout does not become 0.
pub fn millis(name: &'static str, value: Duration) -> Result<u64> {
    in_range(name, value, value.as_nanos().div_ceil(1_000_000))
}

/// Limits a duration: C adds durations to the time of day and to each other in signed numbers,
/// without a check for overflow.
fn in_range(name: &'static str, value: Duration, units: u128) -> Result<u64> {
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    u64::try_from(units)
        .ok()
        .filter(|_| value <= LONGEST)
        .ok_or_else(|| invalid(name, format!("{value:?} is longer than 100 years")))
}

fn invalid(name: &'static str, why: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("{name}: {why}"))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nul_byte_error_names_argument() {
        let error = c_string("channel", "aeron\0ipc").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().starts_with("channel: a NUL byte at offset 5"), "{error}");
    }

    #[test]
    fn a_path_that_c_would_truncate_is_an_error() {
        let longest = "x".repeat(sys::AERON_MAX_PATH as usize - 1);
        assert!(c_path("dir", Path::new(&longest)).is_ok());
        let error = c_path("dir", Path::new(&format!("{longest}x"))).unwrap_err();
        assert!(error.message().contains("4096 bytes; the maximum is 4095"), "{error}");
        assert!(c_path("dir", Path::new("")).is_err());
    }

    #[test]
    fn durations_keep_their_value_or_are_an_error() {
        assert_eq!(nanos("linger", Duration::from_nanos(7)).unwrap(), 7);
        assert_eq!(millis("timeout", Duration::from_millis(250)).unwrap(), 250);
        assert_eq!(millis("timeout", Duration::from_nanos(1)).unwrap(), 1);
        let error = nanos("linger", Duration::MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().starts_with("linger: "), "{error}");
        assert!(millis("timeout", Duration::MAX).is_err());
        let years = |years: u64| Duration::from_secs(years * 365 * 24 * 60 * 60);
        assert!(nanos("linger", years(100)).is_ok() && millis("timeout", years(100)).is_ok());
        assert!(nanos("linger", years(101)).is_err() && millis("timeout", years(101)).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_not_unicode_keeps_its_bytes() {
        use std::os::unix::ffi::OsStrExt;
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/tmp/\xff"));
        let text = c_path("dir", odd).unwrap();
        // SAFETY: `text` lives to the end of the test.
        assert_eq!(unsafe { path(text.as_ptr()) }, odd);
    }
}
