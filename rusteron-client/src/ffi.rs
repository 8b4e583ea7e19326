//! The border with C: conversions that the generated wrappers and the sibling crates share.
//!
//! Hidden from the documentation: it is public for `rusteron-media-driver` and `rusteron-archive`
//! only, and may change in every release.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusteron_sys as sys;

use crate::aeron::Aeron;
use crate::callback;
use crate::channel_uri::{AsChannel, Use, address};
use crate::counter::Counter;
use crate::registration;

pub use crate::callback::{catch, mark, run};
pub use crate::error::{Error, ErrorKind, Result};
pub use crate::retained::Retained;
pub use crate::wake::soon as wake_soon;

/// The result of a C function that reports failure by a negative number.
///
/// Code and text of the failure live in a thread-local that the next call overwrites, so they are
/// read in the same expression as the call.
pub trait Fallible: Sized {
    /// The number as it is, or the error that C left behind.
    fn into_result(self) -> Result<Self>;
}

impl Fallible for c_int {
    fn into_result(self) -> Result<Self> {
        if self < 0 { Err(Error::last()) } else { Ok(self) }
    }
}

impl Fallible for i64 {
    fn into_result(self) -> Result<Self> {
        if self < 0 { Err(Error::last()) } else { Ok(self) }
    }
}

/// To be held while C makes a context, whoever's: it reads the user's name, a part of the default
/// directory, into a buffer that all threads share (`aeron_fileutil.c`, `username`), and writes to the
/// driver's static bindings (`aeron_udp_channel_transport_bindings.c`); and while those are read.
pub fn lock_context_init() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The C client behind a handle, and in which way it may be called.
///
/// C's archive client calls C's functions for commands by itself, and, for a client without a
/// conductor thread, those for the conductor's work. All its functions are therefore called in
/// [`command`](Self::command) or, where nothing may wait, in [`release`](Self::release).
#[derive(Clone, Copy, Debug)]
pub struct RawClient<'a>(&'a Aeron);

impl<'a> RawClient<'a> {
    /// That of `aeron`.
    pub fn new(aeron: &'a Aeron) -> Self {
        Self(aeron)
    }

    /// The C client, which is live as long as a handle of it.
    pub fn as_ptr(self) -> *mut sys::aeron_t {
        self.0.client().as_ptr()
    }

    /// Whether there is no conductor thread, so that whoever waits has to do its work.
    pub fn has_invoker(self) -> bool {
        self.0.client().has_invoker()
    }

    /// Runs a C function that may wait, or give the conductor commands; `operation` names it. The conductor is
    /// woken for its commands when it returns.
    ///
    /// # Errors
    /// [`ErrorKind::CalledFromConductor`] in a callback of a conductor.
    pub fn command<T>(self, operation: &str, call: impl FnOnce() -> T) -> Result<T> {
        callback::forbid_blocking(operation)?;
        self.0.client().command(call)
    }

    /// Runs a C function that gives a resource back, now or, in a callback of a client without a
    /// conductor thread, when that has ended. `call` needs nothing but the C client.
    pub fn release(self, call: impl FnOnce() + Send + 'static) {
        self.0.client().release(call);
    }

    /// Polls until there is an outcome, doing the conductor's work if nobody else does and yielding
    /// the processor meanwhile.
    ///
    /// # Errors
    /// Those of `poll`.
    pub fn wait_for<T>(self, poll: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        registration::wait_for(self.0.client(), poll)
    }
}

/// Gives a counter to C, whose function for closing it is then to be called.
pub fn counter_into_raw(counter: Counter) -> *mut sys::aeron_counter_t {
    counter.into_raw()
}

/// The text for C of a channel that somebody else subscribes to, checked.
pub fn subscription_channel(channel: &impl AsChannel) -> Result<CString> {
    channel.to_c_string(Use::Subscription)
}

/// The text for C of a channel that somebody else publishes to, checked.
pub fn publication_channel(channel: &impl AsChannel) -> Result<CString> {
    channel.to_c_string(Use::Publication)
}

/// The text for C of a destination that a subscription receives from, checked.
pub fn receive_destination(channel: &impl AsChannel) -> Result<CString> {
    channel.to_c_string(Use::ReceiveDestination)
}

/// A pointer on its way to another thread.
///
/// Whoever wraps it vouches that the other thread may use it.
#[derive(Debug)]
pub(crate) struct SendPtr<T>(pub(crate) *mut T);

// SAFETY: a pointer by itself does nothing; see above for its use.
unsafe impl<T> Send for SendPtr<T> {}

impl<T> SendPtr<T> {
    /// A method, so that closures capture the wrapper and not the pointer in it.
    pub(crate) fn get(&self) -> *mut T {
        self.0
    }
}

/// A C string for the argument called `name`.
pub fn c_string(name: &'static str, value: &str) -> Result<CString> {
    CString::new(value).map_err(|error| {
        invalid(name, format!("a NUL byte at offset {} of {value:?}", error.nul_position()))
    })
}

/// A C string with a path that Aeron, which truncates silently, can hold.
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

/// A duration as the nanoseconds that C takes.
pub fn nanos(name: &'static str, value: Duration) -> Result<u64> {
    in_range(name, value, value.as_nanos())
}

/// A duration as the milliseconds that C takes; a fraction of one is rounded up, so that a short
/// timeout does not become none.
pub fn millis(name: &'static str, value: Duration) -> Result<u64> {
    in_range(name, value, value.as_nanos().div_ceil(1_000_000))
}

/// C adds durations to the time of day and to each other in signed numbers, without looking for an
/// overflow.
fn in_range(name: &'static str, value: Duration, units: u128) -> Result<u64> {
    const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    u64::try_from(units)
        .ok()
        .filter(|_| value <= LONGEST)
        .ok_or_else(|| invalid(name, format!("{value:?} is longer than 100 years")))
}

/// Whether C can take a setting's address or interface apart without copying a text of negative length.
pub fn is_safe_address(text: &str, is_interface: bool) -> bool {
    address::is_safe_for_c(text, is_interface)
}

fn invalid(name: &'static str, why: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("{name}: {why}"))
}

/// The text at `text`, or an empty one if there is none.
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

/// The path at `text`, or an empty one if there is none.
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

/// Paths get into C as Unicode only; anything else can have come from the environment alone.
#[cfg(not(unix))]
fn path_from_c(text: &CStr) -> &Path {
    Path::new(text.to_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_byte_is_an_error_that_names_the_argument() {
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
