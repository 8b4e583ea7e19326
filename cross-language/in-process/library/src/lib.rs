//! The cross-language service as a C library. `cross_language.h` is its interface.

use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};

use cross_language::InProcess;

/// A pointer that must not be null is null.
pub const NULL_POINTER: i32 = -1;
/// A call of the session is under way.
pub const IN_USE: i32 = -2;

/// Answers a callback, see the header.
pub type Callback =
    unsafe extern "C" fn(context: *mut c_void, argument: i64, answer: *mut i64) -> i32;

/// The objects of one caller, see the header.
#[derive(Debug)]
pub struct Session {
    /// True during a call. Whoever sets the flag owns `state` until it is cleared.
    is_in_use: AtomicBool,
    state: UnsafeCell<State>,
    callback: Option<Callback>,
    context: *mut c_void,
}

#[derive(Debug, Default)]
struct State {
    service: InProcess,
    /// The last result.
    result: Vec<u8>,
}

impl Session {
    fn try_enter(&self) -> bool {
        // Acquires what the last call has written, perhaps in another thread.
        !self.is_in_use.swap(true, Ordering::Acquire)
    }

    fn leave(&self) {
        self.is_in_use.store(false, Ordering::Release);
    }

    fn answer(&self, argument: i64) -> Result<i64, String> {
        let Some(callback) = self.callback else {
            return Err("the session has no callback".to_owned());
        };
        let mut answer = 0;
        // SAFETY: the caller of `cross_language_session_new` vouches for the function and its context. The function may
        // write to `answer`, which lives during the call, and reach this session only through a pointer. Functions that
        // get this pointer see the flag, and do not touch the state.
        match unsafe { callback(self.context, argument, &raw mut answer) } {
            0 => Ok(answer),
            status => Err(format!("the callback returned {status} for {argument}")),
        }
    }
}

/// Creates a session, see the header.
///
/// # Safety
/// The callback can be called with the context, and returns, until the session is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cross_language_session_new(
    callback: Option<Callback>,
    context: *mut c_void,
) -> *mut Session {
    let state = UnsafeCell::default();
    Box::into_raw(Box::new(Session { is_in_use: AtomicBool::new(false), state, callback, context }))
}

/// Frees a session, see the header.
///
/// # Safety
/// The pointer is null, or comes from [`cross_language_session_new`] and was not freed. No other thread uses the session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cross_language_session_free(session: *mut Session) -> i32 {
    // SAFETY: null, or a session that lives, as the caller promises.
    let Some(shared) = (unsafe { session.as_ref() }) else { return 0 };
    if !shared.try_enter() {
        return IN_USE;
    }
    // SAFETY: `Box::into_raw` made the pointer, and it was not freed. The flag shows that no call is under way, and the
    // caller promises that none begins. `shared` is not used any more.
    drop(unsafe { Box::from_raw(session) });
    0
}

/// Calls an operation, see the header.
///
/// # Safety
/// `session` is null, or comes from [`cross_language_session_new`] and was not freed. `argument` has so many readable bytes,
/// which nobody writes meanwhile. `result` and `result_length` are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cross_language_call(
    session: *mut Session,
    operation: u8,
    encoding: u8,
    argument: *const u8,
    argument_length: usize,
    result: *mut *const u8,
    result_length: *mut usize,
) -> i32 {
    // SAFETY: null, or a session that lives, as the caller promises. A shared reference: the callback may make another one.
    let Some(session) = (unsafe { session.as_ref() }) else { return NULL_POINTER };
    if result.is_null() || result_length.is_null() || argument.is_null() && argument_length > 0 {
        return NULL_POINTER;
    }
    let argument = match argument_length {
        // A slice of no bytes must not be null either.
        0 => &[],
        // SAFETY: not null, and so many bytes are readable and unchanged during the call, as the caller promises.
        length => unsafe { slice::from_raw_parts(argument, length) },
    };
    if !session.try_enter() {
        return IN_USE;
    }
    // SAFETY: this call has set the flag, so no other reference to the state exists until `leave`.
    let state = unsafe { &mut *session.state.get() };
    let answer = |argument| session.answer(argument);
    let status = state.service.call(operation, encoding, argument, answer, &mut state.result);
    let (bytes, length) = (state.result.as_ptr(), state.result.len());
    // SAFETY: neither is null, and both are writable, as the caller promises.
    unsafe {
        ptr::write(result, bytes);
        ptr::write(result_length, length);
    }
    session.leave();
    status as i32
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn call(session: *mut Session, operation: u8, argument: &[u8]) -> (i32, Vec<u8>) {
        let (mut result, mut length) = (ptr::null(), 0);
        // SAFETY: the session lives, and the slices are what they say.
        let status = unsafe {
            let (bytes, count) = (argument.as_ptr(), argument.len());
            cross_language_call(session, operation, 1, bytes, count, &mut result, &mut length)
        };
        if status < 0 {
            return (status, Vec::new());
        }
        // SAFETY: the session owns the result until its next call.
        (status, unsafe { slice::from_raw_parts(result, length) }.to_vec())
    }

    unsafe extern "C" fn double(_: *mut c_void, argument: i64, answer: *mut i64) -> i32 {
        // SAFETY: the library passes a writable integer.
        unsafe { *answer = 2 * argument };
        0
    }

    unsafe extern "C" fn call_again(context: *mut c_void, _: i64, answer: *mut i64) -> i32 {
        // SAFETY: the context is that of the test, a pointer to a cell with the session.
        let session = unsafe { &*context.cast::<Cell<*mut Session>>() }.get();
        assert_eq!(call(session, 1, b"null").0, IN_USE);
        // SAFETY: the session lives, and refuses to be freed. The answer is writable.
        unsafe {
            assert_eq!(cross_language_session_free(session), IN_USE);
            *answer = 5;
        }
        0
    }

    #[test]
    fn objects_and_callbacks_belong_to_a_session() {
        // SAFETY: the callback accepts every context.
        let session = unsafe { cross_language_session_new(Some(double), ptr::null_mut()) };
        let create = br#"{"initialValue":1,"amount":2}"#;
        assert_eq!(call(session, 5, create), (0, br#"{"objectId":1,"value":3}"#.to_vec()));
        assert_eq!(call(session, 7, b"3"), (0, b"12".to_vec()));
        // SAFETY: as above; and each session is freed once.
        unsafe {
            let other = cross_language_session_new(None, ptr::null_mut());
            assert_eq!(call(other, 6, br#"{"objectId":1,"amount":0}"#).0, 6);
            assert_eq!(call(other, 7, b"1").0, 8);
            assert_eq!(cross_language_session_free(other), 0);
            assert_eq!(cross_language_session_free(session), 0);
        }
    }

    #[test]
    fn null_pointers_are_refused() {
        let (mut result, mut length) = (ptr::null(), 0);
        // SAFETY: null pointers are allowed. The session is freed once.
        unsafe {
            let session = cross_language_session_new(None, ptr::null_mut());
            let null = ptr::null_mut();
            assert_eq!(call(null, 1, b"null").0, NULL_POINTER);
            let calls = [
                cross_language_call(session, 1, 1, ptr::null(), 4, &mut result, &mut length),
                cross_language_call(session, 1, 1, ptr::null(), 0, ptr::null_mut(), &mut length),
                cross_language_call(session, 1, 1, ptr::null(), 0, &mut result, ptr::null_mut()),
            ];
            assert_eq!(calls, [NULL_POINTER; 3]);
            let empty =
                cross_language_call(session, 1, 1, ptr::null(), 0, &mut result, &mut length);
            assert_eq!(empty, 4);
            assert_eq!(cross_language_session_free(session), 0);
            assert_eq!(cross_language_session_free(null), 0);
        }
    }

    #[test]
    fn calls_in_a_callback_are_refused() {
        let cell = Cell::new(ptr::null_mut());
        let context: *const Cell<*mut Session> = &raw const cell;
        // SAFETY: the callback gets the context that it expects, which outlives the session.
        let session =
            unsafe { cross_language_session_new(Some(call_again), context.cast_mut().cast()) };
        cell.set(session);
        assert_eq!(call(session, 7, b"2"), (0, b"10".to_vec()));
        // SAFETY: the session is freed once.
        unsafe { assert_eq!(cross_language_session_free(session), 0) };
    }
}
