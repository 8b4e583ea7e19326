//! The container of replicated services.
//!
//! `core` is the state machine without I/O. `ack_ledger` alone acknowledges. `network` is the I/O
//! that the state machine asks for; `aeron_network`, `log` and `container` do it. `replay` runs a
//! service over a recorded log, without a cluster. The files depend on each other in one direction:
//! `container`, `log`, `core`, the handles of a callback in `cluster` and `client_session`,
//! `state`, `session`, `network`.
//!
//! # Differences from Java's container
//! - An error or panic in a callback ends the container by default. Java records it and goes on. A failed
//!   `on_take_snapshot` leaves the service running, as in Java: it borrows the service by `&self`, so it cannot
//!   leave half a change. Java ends the container if the archive has no space for a snapshot; this one goes on.
//! - A message that was not sent is `NotSent`, which is no `std::error::Error`. So `?` does not make a
//!   `ServiceError` of a client that does not read.
//! - A log that is not contiguous, or a replay that ends early, ends the container. Java waits forever, or
//!   passes the shorter state on.
//! - A request to join another log ends the wait for a log that has not come.
//! - A termination without `ackRequired`, from consensus modules before 1.53, is acknowledged.
//! - The mark file can be turned off. CPU affinity and classes named by properties have no counterpart.
//! - The wait for a consensus module ends with the container, and after 30 s if the commit position counter is
//!   there and no connection is.

mod ack_ledger;
mod aeron_network;
mod client_session;
mod cluster;
mod clustered_service;
mod container;
mod context;
mod core;
mod counters;
mod error;
mod log;
pub mod mark_file;
mod network;
mod replay;
mod session;
mod snapshot_reader;
mod snapshot_writer;
mod state;
#[cfg(test)]
mod tests;
mod ticker;
mod types;

pub use client_session::{ClientSession, Sent, SessionClaim};
pub use cluster::{Cluster, Lifecycle, MessageClaim};
pub use clustered_service::ClusteredService;
pub use container::{ServiceAgent, ServiceContainer};
pub use context::ServiceContext;
pub use error::{ErrorPolicy, NotSent, ServiceError, ServiceResult, TerminationCause};
pub use replay::{Comparison, DeterminismCheck, Divergence, Effect, RecordedLog};
pub use session::SessionInfo;
pub use snapshot_reader::SnapshotReader;
pub use snapshot_writer::SnapshotWriter;
pub use types::{
    AppVersion, CloseReason, ClusterTimeUnit, LeadershipTerm, MessageSource, Role, SessionMessage,
};
