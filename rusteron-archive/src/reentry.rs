//! User code in the middle of a request: the delegating invoker.

use std::cell::Cell;

use crate::error::{ArchiveError, ArchiveErrorKind, Result};

thread_local! {
    static ENTERED: Cell<usize> = const { Cell::new(0) };
}

/// Runs user code in the middle of a request.
pub(crate) fn entered(action: impl FnOnce()) {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            ENTERED.set(ENTERED.get() - 1);
        }
    }
    ENTERED.set(ENTERED.get() + 1);
    let _leave = Leave;
    action();
}

/// Returns whether this is user code in the middle of a request.
pub(crate) fn is_entered() -> bool {
    ENTERED.get() > 0
}

/// Returns an error if this is user code in the middle of a request.
pub(crate) fn forbid_reentry(operation: &'static str) -> Result<()> {
    if is_entered() {
        return Err(ArchiveError::new(
            ArchiveErrorKind::Reentrant,
            operation,
            "called in the middle of a request",
        ));
    }
    Ok(())
}
