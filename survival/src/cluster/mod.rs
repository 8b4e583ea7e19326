//! A fault campaign on a cluster with replicated services in Rust.
//!
//! A member is three processes: a media driver (ours), Java's archive and consensus module, and a ledger, which is a
//! replicated service in Rust. The supervisor kills and pauses them at random, as `faults` chooses. As a supervisor of
//! nodes has to, it starts a member again after the member's processes have ended (`node`). Clients in the
//! supervisor's process (`client`) keep the rules for exactly-once answers.
//!
//! These conditions must hold:
//! - Ledgers have equal digests at equal positions of the log, on all members and across restarts.
//! - A request that was answered keeps its number; no request has two numbers, and no attempt two answers.
//! - After each fault, the cluster goes on to answer, and the member comes back and catches up.
//! - A service whose consensus module or media driver has gone ends by itself, with that cause.

mod answers;
mod campaign;
mod client;
mod faults;
mod node;
mod options;
mod parts;
mod report;

pub(crate) use campaign::run;
pub use faults::ClusterFault;
pub use options::{ClusterCampaignOptions, ClusterCommand, ClusterSurvivalOptions, MemberOptions};
pub(crate) use parts::play;
