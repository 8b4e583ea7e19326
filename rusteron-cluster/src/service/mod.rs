//! The container of replicated services.
//!
//! `core` is the state machine without I/O. `ack_ledger` alone acknowledges. `network`, `log` and
//! `agent` do the I/O. `replay` runs a service over a recorded log, without a cluster.

mod ack_ledger;
mod agent;
mod client_session;
mod cluster;
mod clustered_service;
mod container;
mod context;
mod core;
mod counters;
mod error;
mod event;
mod files;
mod log;
pub(crate) mod mark_file;
mod message_claim;
mod monitor;
mod network;
mod replay;
#[cfg(test)]
mod script;
mod session;
mod snapshot_reader;
mod snapshot_writer;
mod ticker;
mod types;

pub use agent::ServiceAgent;
pub use client_session::{ClientSession, Sent, SessionClaim};
pub use cluster::{Cluster, Lifecycle};
pub use clustered_service::ClusteredService;
pub use container::ServiceContainer;
pub use context::ServiceContext;
pub use error::{ErrorPolicy, NotSent, ServiceError, ServiceResult, TerminationCause};
pub use message_claim::MessageClaim;
pub use replay::{Comparison, DeterminismCheck, Divergence, Effect, RecordedLog};
pub use session::SessionInfo;
pub use snapshot_reader::SnapshotReader;
pub use snapshot_writer::SnapshotWriter;
pub use types::{
    AppVersion, CloseReason, ClusterTimeUnit, LeadershipTerm, MessageSource, Role, SessionMessage,
};
