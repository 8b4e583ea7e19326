//! A subscription that reads a recording and then goes on live.

mod context;
mod counters;
mod persistent_subscription;

pub use context::{PersistentSubscriptionContext, StartPosition};
pub use counters::PersistentSubscriptionCounters;
pub use persistent_subscription::{
    MessageInfo, PersistentSubscription, PersistentSubscriptionEvent,
};
