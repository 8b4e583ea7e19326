//! Runs user code on threads that belong to C.
//!
//! A callback must not unwind into C, and must not wait for the conductor that runs it. This module
//! enforces both rules: [`run`] catches panics and marks the thread, and [`forbid_blocking`] checks
//! the mark.
//!
//! A panic is logged, and so is a panic of its payload's drop. If the last handle is dropped in a callback,
//! another thread closes the client. The notification of a close is called exactly once, by C or by Rust, and
//! freed by that call.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use crate::error::{Error, ErrorKind, Result};
use crate::panic;

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Runs a callback on the conductor's thread. A panic is caught and logged.
pub fn run(role: &str, callback: impl FnOnce()) {
    mark(|| catch(role, callback));
}

/// Runs user code on a thread that has to continue afterwards. A panic is caught and logged.
pub fn catch(role: &str, code: impl FnOnce()) {
    // C cannot remove a callback that panicked, and calls it again for the next event. The
    // callback's author keeps the captured values consistent.
    if let Err(text) = panic::catch(code) {
        // The logger is user code, too.
        let _ = panic::catch(|| log::error!("the {role} panicked: {text}"));
    }
}

/// Runs an action as in a callback: blocking calls in it fail.
pub fn mark<T>(action: impl FnOnce() -> T) -> T {
    struct Unmark;
    impl Drop for Unmark {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }
    DEPTH.set(DEPTH.get() + 1);
    let _unmark = Unmark;
    action()
}

/// A callback for the close of an object. C calls it once, or dropping this calls it if C never
/// will.
pub struct Notification {
    /// A double box, so that the pointer for C is thin.
    callback: Option<Box<Box<dyn FnOnce() + Send>>>,
}

impl Notification {
    /// Makes a notification that calls `callback`.
    pub fn new(callback: impl FnOnce() + Send + 'static) -> Self {
        Self { callback: Some(Box::new(Box::new(callback))) }
    }

    /// Returns the argument for C that belongs to [`notify`].
    pub fn into_raw(mut self) -> *mut c_void {
        self.callback.take().map_or(ptr::null_mut(), |callback| Box::into_raw(callback).cast())
    }

    /// # Safety
    /// `clientd` is from [`into_raw`](Self::into_raw), and neither this nor [`notify`] has been
    /// called with it.
    pub unsafe fn from_raw(clientd: *mut c_void) -> Self {
        // SAFETY: the caller guarantees that `clientd` is from `into_raw`, and given back once.
        Self { callback: Some(unsafe { Box::from_raw(clientd.cast()) }) }
    }
}

crate::impl_debug!(Notification);

impl Drop for Notification {
    fn drop(&mut self) {
        if let Some(callback) = self.callback.take() {
            run("close notification", *callback);
        }
    }
}

/// Calls and frees a [`Notification`].
///
/// # Safety
/// As for [`Notification::from_raw`].
pub unsafe extern "C" fn notify(clientd: *mut c_void) {
    // SAFETY: the caller, C, passes what `into_raw` gave it, once (`Notification::from_raw`).
    drop(unsafe { Notification::from_raw(clientd) });
}

/// Returns whether this thread is in a callback of a conductor.
pub fn is_running() -> bool {
    DEPTH.get() > 0
}

/// Returns an error if waiting in this thread would be a deadlock. It names the function that can
/// be called instead, if there is one.
pub fn forbid_blocking(operation: &str, instead: Option<&str>) -> Result<()> {
    if is_running() {
        let or_call = instead.map_or(String::new(), |instead| format!(", or call {instead}"));
        return Err(Error::new(
            ErrorKind::CalledFromConductor,
            format!(
                "{operation} would wait for the conductor, whose thread this is; pass the event to \
                 another thread{or_call}"
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocking_is_forbidden_in_callbacks() {
        assert!(forbid_blocking("add_publication", Some("async_add_publication")).is_ok());
        let mut inside = None;
        run("handler", || {
            inside = Some(forbid_blocking("add_publication", Some("async_add_publication")))
        });
        let error = inside.expect("the callback ran").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CalledFromConductor);
        assert!(
            error.message().ends_with("another thread, or call async_add_publication"),
            "{error}"
        );
        assert!(forbid_blocking("add_publication", Some("async_add_publication")).is_ok());
    }

    #[test]
    fn notification_runs_and_is_freed_once() {
        let calls = std::sync::Arc::new(());
        let (sender, called) = std::sync::mpsc::channel();
        let notification = || {
            let (captured, sender) = (std::sync::Arc::clone(&calls), sender.clone());
            Notification::new(move || {
                drop(captured);
                sender.send(is_running()).expect("a receiver");
            })
        };
        let clientd = notification().into_raw();
        assert!(called.try_recv().is_err(), "not yet");
        // SAFETY: from `into_raw` just now, and used once.
        unsafe { notify(clientd) };
        assert_eq!(called.try_iter().collect::<Vec<_>>(), [true]);
        drop(notification());
        assert_eq!(called.try_iter().collect::<Vec<_>>(), [true]);
        assert_eq!(std::sync::Arc::strong_count(&calls), 1);
    }

    #[test]
    fn panic_ends_in_callback() {
        run("handler", || panic!("on purpose"));
        assert!(!is_running());
    }
}
