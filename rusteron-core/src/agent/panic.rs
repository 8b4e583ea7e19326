//! Panics of agents, caught.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::agent::Agent;

/// Runs an agent's code. A panic becomes its text.
///
/// The agent may be in the middle of a change then. Only its `on_close` and its `drop` follow.
pub(crate) fn catch<T>(code: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(into_text)
}

/// Returns an agent's role name for an error. A panic ends here.
pub(crate) fn role_name(agent: &(impl Agent + ?Sized)) -> String {
    catch(|| agent.role_name().to_owned()).unwrap_or_else(|_| "(no name)".to_owned())
}

/// Returns the text of a panic, and drops its payload.
pub(crate) fn into_text(payload: Box<dyn Any + Send>) -> String {
    let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "(no text)".to_owned(),
    };
    // The payload's `drop` is the agent's code, too. If it panics, that payload is not dropped.
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
    text
}
