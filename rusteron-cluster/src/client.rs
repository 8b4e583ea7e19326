//! The cluster client: connecting, ingress and egress.
//!
//! `connect` and `session` are state machines without I/O. `async_connect` does the I/O of the first, and
//! `ingress` and `cluster_egress`, the halves of a session, that of the second.
//!
//! # Differences from Java's client
//! - A new leader's publication is added without waiting. Offers return `NotConnected` meanwhile.
//! - The endpoints of a redirect are remembered, also if the settings have none.
//! - A late event of an old term is ignored.
//! - Automatic keep-alives are opt-in. They also send the first message to a new leader; without them, the
//!   cluster closes a session that only polls.
//! - An event of a foreign schema belongs to no session and ends with its decoding.
//! - A close has a cause, and polls after it return an error.
//! - A new leader gets a new image with its own assembler, so partial messages cannot mix.

mod async_connect;
mod cluster_client;
mod cluster_egress;
mod connect;
mod context;
mod egress;
mod endpoints;
mod ingress;
mod pending_ingress;
mod session;
mod session_header;
mod shared_session;

pub use async_connect::AsyncClusterConnect;
pub use cluster_client::{ClusterClient, JoinError};
pub use cluster_egress::ClusterEgress;
pub use connect::ConnectState;
pub use context::ClusterContext;
pub use egress::{AdminRequestType, AdminResponseCode, Egress, EgressAdapter, EventCode};
pub use endpoints::IngressEndpoints;
pub use ingress::{Ingress, IngressClaim};
pub use session::{ClusterCloseCause, ClusterState};
pub use session_header::SessionHeader;
