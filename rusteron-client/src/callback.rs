//! Running user code on threads that belong to C.
//!
//! A callback must not unwind into C, and it must not wait for the conductor it runs on. Both rules
//! live here: [`run`] catches panics and marks the thread, [`forbid_blocking`] checks the mark.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{Error, ErrorKind, Result};

thread_local! {
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Runs a callback on the conductor's thread; a panic ends here and is logged.
pub(crate) fn run(role: &str, callback: impl FnOnce()) {
    mark(|| {
        // A callback that panicked is called again for the next event, as C offers no way to stop it;
        // what it captured is its author's to keep consistent.
        let Err(payload) = catch_unwind(AssertUnwindSafe(callback)) else { return };
        // The logger is somebody's code as well, and so is what drops the payload. What these panic
        // with is not dropped any more.
        let report = || {
            log::error!("the {role} panicked: {}", panic_text(&*payload));
            drop(payload);
        };
        if let Err(another) = catch_unwind(AssertUnwindSafe(report)) {
            std::mem::forget(another);
        }
    });
}

/// Runs something as in a callback: what would block is forbidden to it.
pub(crate) fn mark<T>(action: impl FnOnce() -> T) -> T {
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

/// Whether this thread is in a callback of a conductor.
pub(crate) fn is_running() -> bool {
    DEPTH.get() > 0
}

/// An error where waiting would be a deadlock.
pub(crate) fn forbid_blocking(operation: &str) -> Result<()> {
    if is_running() {
        return Err(Error::new(
            ErrorKind::CalledFromConductor,
            format!("{operation} blocks until the conductor has answered, and this is its thread"),
        ));
    }
    Ok(())
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "(no text)"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocking_is_forbidden_inside_a_callback_only() {
        assert!(forbid_blocking("add_publication").is_ok());
        let mut inside = None;
        run("handler", || inside = Some(forbid_blocking("add_publication")));
        let error = inside.expect("the callback ran").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CalledFromConductor);
        assert!(forbid_blocking("add_publication").is_ok());
    }

    #[test]
    fn a_panic_ends_in_the_callback_and_unmarks_the_thread() {
        run("handler", || panic!("on purpose"));
        assert!(!is_running());
    }
}
