//! The cluster client: connecting, ingress and egress.
//!
//! `connect` and `session` are state machines without I/O. `network` does the I/O of the first, and
//! `ingress` and `cluster_egress`, the halves of a session, that of the second.

mod async_connect;
mod claim;
mod cluster_client;
mod cluster_egress;
mod connect;
mod context;
mod credentials;
mod egress;
mod egress_adapter;
mod endpoints;
mod ingress;
mod ingress_channel;
mod ingress_publication;
mod network;
mod session;
mod session_header;
mod shared_session;

pub use async_connect::AsyncConnect;
pub use claim::IngressClaim;
pub use cluster_client::{ClusterClient, JoinError};
pub use cluster_egress::ClusterEgress;
pub use connect::ConnectState;
pub use context::ClusterContext;
pub use credentials::CredentialsSupplier;
pub use egress::{AdminRequestType, AdminResponseCode, Egress, EventCode};
pub use egress_adapter::EgressAdapter;
pub use endpoints::IngressEndpoints;
pub use ingress::Ingress;
pub use ingress_publication::IngressPublication;
pub use session::{CloseCause, ClusterState};
pub use session_header::SessionHeader;
