//! The cluster client: connecting, ingress and egress.
//!
//! `connect` and `session` are state machines without I/O. `async_connect` does the I/O of the first, and
//! `ingress` and `cluster_egress`, the halves of a session, that of the second.

mod async_connect;
mod cluster_client;
mod cluster_egress;
mod connect;
mod context;
mod egress;
mod endpoints;
mod ingress;
mod ingress_publication;
mod session;
mod session_header;
mod shared_session;

pub use async_connect::AsyncConnect;
pub use cluster_client::{ClusterClient, JoinError};
pub use cluster_egress::ClusterEgress;
pub use connect::ConnectState;
pub use context::{ClusterContext, CredentialsSupplier};
pub use egress::{AdminRequestType, AdminResponseCode, Egress, EgressAdapter, EventCode};
pub use endpoints::IngressEndpoints;
pub use ingress::Ingress;
pub use ingress_publication::{IngressClaim, IngressPublication};
pub use session::{CloseCause, ClusterState};
pub use session_header::SessionHeader;
