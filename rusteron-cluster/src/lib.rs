//! Aeron's cluster client for Rust: sessions with the replicated services of Aeron Cluster.
//!
//! Aeron Cluster replicates services with Raft. Its members run in Java: a consensus module and the
//! services. [`ClusterClient`] is a session with such a cluster. Messages to the cluster are the
//! **ingress**; the leader appends them to the log, and all members process them in its order. The
//! leader's messages to the session are the **egress**.
//!
//! A session needs an Aeron client of `rusteron-client`, and uses that crate's types.
//!
//! # Threads
//! One thread at a time uses a [`ClusterClient`], and threads can hand it on. A session has no
//! thread of its own. Handlers run on the thread that polls, before the poll returns.
//!
//! # Allocation and blocking
//! Offering, claiming and polling neither block nor allocate. Exceptions are changes of leader, and
//! those of `rusteron-client`. [`ClusterClient::connect`] waits for the cluster, up to the message
//! timeout. [`ClusterClient::async_connect`] is polled or awaited.
//!
//! # What can be lost
//! - **An accepted offer is no commit.** It is on its way to the leader. The message is committed
//!   once most members have it. Only an answer of the service says so.
//! - **A leader can fail** between an offer and the commit. The message is then lost, or it is
//!   committed and only the answer is lost. The client cannot tell these apart.
//! - **Messages of an old term are dropped** by a new leader, without an answer. So are messages
//!   that were offered after the old leader failed, before its failure was noticed.
//! - **A new session can vanish**: the cluster answers a connect request when the session is
//!   appended, not when it is committed. The next leader may not know the session. The client then
//!   closes with [`CloseCause::NoNewLeader`].
//! - **A restart of the whole cluster** ends all sessions.
//! - **Sessions over IPC** end with their leader, which runs on the same media driver.
//!
//! Answered messages are committed, in the order in which they were answered. Messages of one
//! session are never reordered.
//!
//! # Exactly-once answers
//! 1. Give each request an id: an id of the client that survives sessions, and a sequence number.
//! 2. Keep each request until its answer arrives.
//! 3. After a change of leader, send a keep-alive, then all unanswered requests again, in order.
//!    After the end of a session, connect anew and do the same.
//! 4. The service keeps, for each client, the last sequence number and its answer, as part of its
//!    state. A request with a known number gets the same answer, and changes nothing.
//! 5. The client drops answers to requests that it has no longer.
//!
//! # Change of leader
//! A poll notices the loss of the egress and the event of a new leader. An offer notices the loss of
//! the ingress. [`ClusterState`] says what the session waits for:
//!
//! | State | Ends |
//! |---|---|
//! | [`Connected`](ClusterState::Connected) | with a lost ingress or egress, or an event |
//! | [`AwaitNewLeader`](ClusterState::AwaitNewLeader) | with the new leader's event, or after the new leader timeout |
//! | [`AwaitNewLeaderConnection`](ClusterState::AwaitNewLeaderConnection) | with the first accepted message, or after the message timeout |
//! | [`Closed`](ClusterState::Closed) | never; connect anew |
//!
//! The application sends the first message to the new leader, best a
//! [keep-alive](ClusterClient::send_keep_alive). With
//! [`set_keep_alive_interval`](ClusterContext::set_keep_alive_interval), polls do. The new leader can
//! send an event [`EventCode::Ok`] for the session again.
//!
//! # Versions
//! The client writes version 17 of the cluster's schema, and reads all versions. It speaks version
//! 0.3.0 of the protocol.

mod client;
mod codec;
mod error;
#[cfg(feature = "service")]
mod service;

pub use client::{
    AdminRequestType, AdminResponseCode, AsyncConnect, CloseCause, ClusterClient, ClusterContext,
    ClusterState, ConnectState, CredentialsSupplier, Egress, EgressAdapter, EventCode, Ingress,
    IngressClaim, IngressEndpoints, SessionHeader,
};
pub use error::{ClusterError, ClusterErrorKind, Result};
#[cfg(feature = "service")]
pub use service::{
    AppVersion, ClientSession, CloseReason, Cluster, ClusterTimeUnit, ClusteredService,
    ErrorPolicy, LeadershipTerm, Lifecycle, MessageClaim, MessageSource, Role, Sent, ServiceAgent,
    ServiceContainer, ServiceContext, ServiceError, ServiceResult, SessionClaim, SessionInfo,
    SessionMessage, SnapshotReader, SnapshotWriter, TerminationCause, UnknownSession,
};

/// The parts of this crate that its tests and fuzz targets need. They may change in every release.
#[doc(hidden)]
pub mod __private {
    pub use crate::codec::*;
}
