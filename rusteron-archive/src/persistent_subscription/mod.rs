//! A subscription that reads a recording and then goes on live.
//!
//! C polls, because it switches between images of its own. A trampoline calls the handler, which gets a
//! `MessageInfo` instead of a `Header`, and catches panics. Rust adds the counters: C would wait for them in a
//! loop that never ends if the client closes.

mod context;
mod events;
mod persistent_subscription;

pub use context::{PersistentSubscriptionContext, StartPosition};
pub use events::PersistentSubscriptionEvent;
pub use persistent_subscription::{
    MessageInfo, PersistentSubscription, PersistentSubscriptionCounters,
};
