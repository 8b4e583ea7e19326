//! The container of replicated services.
//!
//! `core` is the state machine without I/O. `ack_ledger` alone acknowledges.

mod ack_ledger;
mod client_session;
mod cluster;
mod clustered_service;
mod core;
mod error;
mod event;
mod message_claim;
mod network;
#[cfg(test)]
mod script;
mod session;
mod snapshot_reader;
mod snapshot_writer;
mod state;
mod types;

pub use client_session::{ClientSession, Sent, SessionClaim};
pub use cluster::{Cluster, Lifecycle};
pub use clustered_service::ClusteredService;
pub use error::{ErrorPolicy, ServiceError, ServiceResult, TerminationCause, UnknownSession};
pub use message_claim::MessageClaim;
pub use session::SessionInfo;
pub use snapshot_reader::SnapshotReader;
pub use snapshot_writer::SnapshotWriter;
pub use types::{
    AppVersion, CloseReason, ClusterTimeUnit, LeadershipTerm, MessageSource, Role, SessionMessage,
};
