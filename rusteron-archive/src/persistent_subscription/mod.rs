//! A subscription that reads a recording and then goes on live.

mod context;
mod counters;
mod events;
mod failure;
mod persistent_subscription;

pub use context::{PersistentSubscriptionContext, StartPosition};
pub use counters::PersistentSubscriptionCounters;
pub use events::PersistentSubscriptionEvent;
pub use persistent_subscription::{MessageInfo, PersistentSubscription};
