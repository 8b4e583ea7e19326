//! Panics of a service's callbacks.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crate::service::error::ServiceResult;

/// Runs a callback. A panic becomes its text.
pub(crate) fn caught(callback: impl FnOnce() -> ServiceResult) -> Result<ServiceResult, String> {
    catch_unwind(AssertUnwindSafe(callback)).map_err(panic_text)
}

pub(crate) fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "no text".to_owned(),
    };
    // The payload's `drop` is the service's code, too. If it panics, that payload is not dropped.
    let dropped: thread::Result<()> = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    if let Err(another) = dropped {
        std::mem::forget(another);
    }
    format!("panic: {text}")
}
