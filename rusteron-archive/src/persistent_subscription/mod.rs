//! A subscription that reads a recording and then goes on live.

mod context;
mod events;
mod persistent_subscription;

pub use context::{PersistentSubscriptionContext, StartPosition};
pub use events::PersistentSubscriptionEvent;
pub use persistent_subscription::{
    MessageInfo, PersistentSubscription, PersistentSubscriptionCounters,
};
