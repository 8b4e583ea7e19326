//! The service in its caller's process: the same messages, without channels.
//!
//! The functions of `c/session.h` make it a C library, which the programs of other languages link or load instead of an
//! Aeron client.

#![expect(unsafe_code, reason = "an interface for C")]

use std::ffi::{c_char, c_int, c_void};
use std::time::{Duration, Instant};

use prost::Message;

use crate::protocol::Response;
use crate::{CallError, Service, Transport};

/// Never checked, because the caller answers a callback before it returns.
const CALLBACK_TIMEOUT: Duration = Duration::from_secs(60);

/// A session with the service in this process.
#[derive(Debug)]
pub struct InProcess {
    service: Service,
    /// The response to the last request, which callers of C read in place.
    message: Vec<u8>,
    has_message: bool,
}

impl InProcess {
    /// Begins a session.
    #[must_use]
    pub fn new() -> Self {
        let service = Service::new(CALLBACK_TIMEOUT);
        Self { service, message: Vec::new(), has_message: false }
    }

    fn execute(&mut self, message: &[u8]) {
        let response = self.service.receive(message);
        self.message.clear();
        response.encode(&mut self.message).expect("a vector grows");
        self.has_message = true;
    }

    fn next_message(&mut self) -> Option<&[u8]> {
        std::mem::take(&mut self.has_message).then_some(&self.message)
    }
}

impl Default for InProcess {
    fn default() -> Self {
        Self::new()
    }
}

impl Transport for InProcess {
    fn send(&mut self, message: &[u8], _deadline: Instant) -> Result<(), CallError> {
        self.execute(message);
        Ok(())
    }

    fn receive(&mut self, _deadline: Instant) -> Result<Response, CallError> {
        Ok(Response::decode(self.next_message().ok_or(CallError::TimedOut)?)?)
    }
}

const OK: c_int = 0;
const TIMED_OUT: c_int = 3;

/// Begins a session, and ignores the options, which are those of a connection over Aeron.
///
/// # Safety
/// `session` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn session_connect(
    session: *mut *mut InProcess,
    _options: *const c_void,
) -> c_int {
    // SAFETY: the caller of this function passes a pointer that is valid for a write.
    unsafe { session.write(Box::into_raw(Box::new(InProcess::new()))) };
    OK
}

/// Executes the call of a message, up to its next callback.
///
/// # Safety
/// `session` is of `session_connect`, and not used by another thread meanwhile. `message` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn session_send(
    session: *mut InProcess,
    message: *const u8,
    length: usize,
    _deadline_ns: i64,
) -> c_int {
    // SAFETY: the caller of this function passes a session that is open and that it alone uses, and readable bytes.
    let (session, message) =
        unsafe { (&mut *session, std::slice::from_raw_parts(message, length)) };
    session.execute(message);
    OK
}

/// Returns a message that lasts until the next call with the session.
///
/// # Safety
/// `session` is of `session_connect`, and not used by another thread meanwhile. `message` and `length` are valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn session_receive(
    session: *mut InProcess,
    message: *mut *const u8,
    length: *mut usize,
    _deadline_ns: i64,
) -> c_int {
    // SAFETY: the caller of this function passes a session that is open and that it alone uses.
    let Some(received) = (unsafe { &mut *session }).next_message() else { return TIMED_OUT };
    // SAFETY: the caller of this function passes pointers that are valid for writes.
    unsafe {
        message.write(received.as_ptr());
        length.write(received.len());
    }
    OK
}

/// Ends a session.
///
/// # Safety
/// `session` is of `session_connect`, and not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn session_close(session: *mut InProcess) {
    // SAFETY: `session_connect` has made the session of a box, and its owner gives it back here, once.
    drop(unsafe { Box::from_raw(session) });
}

/// Returns an empty text: no function of this library fails by Aeron.
#[unsafe(no_mangle)]
pub extern "C" fn session_error() -> *const c_char {
    c"".as_ptr()
}
