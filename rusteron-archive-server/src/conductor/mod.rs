//! What the archive decides, without I/O but that of [`Storage`](crate::storage::Storage).
//!
//! | file | what it decides |
//! |---|---|
//! | `conductor.rs` | what comes when: requests, events, turns |
//! | `sessions.rs` | who gets an answer |
//! | `recordings.rs`, `subscriptions.rs` | what is recorded |
//! | `replays.rs`, `tokens.rs` | what is replayed |
//! | `segments.rs`, `deletion.rs`, `migration.rs` | which segments are removed, deleted and moved |
//! | `replications.rs` | what is copied from other archives |
//! | `listing.rs` | which recordings match |
//! | `effect.rs` | the orders to the outside |

mod conductor;
mod deletion;
pub(crate) mod effect;
mod listing;
mod migration;
mod recordings;
mod replays;
mod replications;
mod segments;
mod sessions;
mod subscriptions;
mod tokens;

#[cfg(any(test, fuzzing))]
pub(crate) mod tests;

pub(crate) use conductor::{Conductor, ConductorSettings};
pub(crate) use replications::ReplicationSettings;
