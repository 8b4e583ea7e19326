//! Panics of user code, caught and made a text.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs user code. A panic becomes its text.
///
/// The code's captured values may be in the middle of a change then.
///
/// # Errors
/// The text of the panic.
pub fn catch<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(into_text)
}

/// Returns the text of a panic, and drops its payload.
pub fn into_text(payload: Box<dyn Any + Send>) -> String {
    let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "(no text)".to_owned(),
    };
    // The payload's `drop` is user code, too. If it panics, that payload is not dropped.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    text
}
