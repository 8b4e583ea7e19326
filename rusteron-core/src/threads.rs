//! Reasons why a type is not `Send` or not `Sync`, for the compiler's errors.
//!
//! By default the compiler lists each raw pointer in a type, with the path to the pointer. A type
//! with a conditional implementation has one reason instead:
//!
//! ```text
//! // SAFETY: the bound never holds.
//! unsafe impl Sync for Subscription where for<'a> Self: SharedBetweenThreads<'a> {}
//! ```
//!
//! The compiler refuses a bound that is never fulfilled, unless the bound has a lifetime. The
//! lifetimes of these traits serve no other purpose. No type implements the traits, and other crates
//! cannot implement them for the types here.

/// A type that several threads can use at a time.
#[diagnostic::on_unimplemented(
    message = "only one thread at a time may use `{Self}`",
    label = "this needs a type that several threads can use at a time",
    note = "move it to the other thread, put it in a `std::sync::Mutex`, or make one for each thread"
)]
pub trait SharedBetweenThreads<'a> {}

/// A type that other threads than the polling one can use.
#[diagnostic::on_unimplemented(
    message = "only the polling thread may use `{Self}`, during its handler",
    label = "this needs a type that other threads can use",
    note = "copy the message and the numbers that the other thread needs, such as `position()`"
)]
pub trait UsedByOtherThreads<'a> {}
