//! Aeron Cluster for Rust: sessions with replicated services, and services themselves.
//!
//! Aeron Cluster replicates services with Raft. Each member has a consensus module, which runs in
//! Java, and services, in Java or in Rust. The leader appends messages to the log, and all members
//! process them in its order.
//!
//! - [`ClusterClient`] is a session with a cluster. Messages to the cluster are the **ingress**, the
//!   leader's messages to the session are the **egress**.
//! - [`ClusteredService`] is a replicated service, and [`ServiceContainer`] runs it beside the
//!   consensus module of its node. These need the feature `service`, which is on by default, and
//!   brings `rusteron-archive`.
//!
//! Both use the types of `rusteron-client`. The chapters up to [Versions](#versions) are about
//! clients, those behind it about services.
//!
//! # Threads
//! One thread at a time uses a [`ClusterClient`], and threads can hand it on.
//! [`ClusterClient::split`] makes two halves of it, for a thread that sends and one that receives. A
//! session has no thread of its own. Handlers run on the thread that polls, before the poll returns.
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
//!   closes with [`ClusterCloseCause::NoNewLeader`].
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
//! The crate writes version 17 of the cluster's schema, and reads all versions. The client speaks
//! version 0.3.0 of the protocol.
//!
//! # Services
//! A node is a media driver, an archive and a consensus module in Java, and one container for each
//! service. The container recovers the service from the node's last snapshot, and replays the log
//! behind it. It then passes the log on, as far as most members have it.
//!
//! - **Threads.** All callbacks run on the container's thread, or on the thread that calls
//!   [`ServiceAgent::do_work`].
//! - **Answers.** Only the leader's answers reach clients. Other members' answers do nothing.
//! - **Blocking.** A callback delays its member, and the leader's callbacks delay the cluster.
//!   [`Cluster::schedule_timer`], [`Cluster::cancel_timer`] and [`Cluster::offer`] wait for the
//!   consensus module. A snapshot waits for the archive. The publication to a new session waits for
//!   the media driver.
//! - **Allocation.** Sessions and snapshots allocate.
//! - **End.** Container and consensus module end together: each watches the other. The supervisor
//!   of a node starts both again. [`TerminationCause`] says why a container has ended.
//! - **Errors.** An error or panic in a callback ends the container, unless [`ErrorPolicy`] says
//!   otherwise. Errors are counted in the node's counters and logged. A message that was not sent
//!   is [`NotSent`], which `?` does not convert. A failed snapshot leaves the service running.
//! - **Versions.** Consensus modules of Aeron 1.51 and later. Members of different minor versions
//!   can run together.
//!
//! # Determinism
//! All members must make the same state out of the same log. Nothing checks that: a service that
//! diverges gives other answers after the next change of leader. These things diverge in Rust:
//!
//! | Source | Instead |
//! |---|---|
//! | Iterating a `HashMap` or `HashSet`: each process has another order | `BTreeMap`, a `Vec`, or a hasher with a fixed seed |
//! | `Instant`, `SystemTime` | [`Lifecycle::time`], timers |
//! | Random numbers, UUIDs | a generator whose seed is part of the state |
//! | Threads, channels, async tasks | all work in the callbacks; background work must not change the state |
//! | Files, environment, network, addresses of pointers | messages through the log |
//! | `usize`, and floating point functions such as `sin`, on members of different architectures | `u64`, integers, fixed point |
//! | [`Lifecycle::role`], [`Lifecycle::member_id`], results of offers, [`SessionInfo::is_closing`] | decide by the log only |
//! | Errors that only some members have, such as a full disk | end the container |
//! | State that a snapshot leaves out, or restores in another order | compare a restored service with the original |
//! | Another version of the service | deploy code that acts on a message, and then send the message |
//!
//! To find divergence, run the service over a log that a member has recorded. [`DeterminismCheck`]
//! runs it twice, compares all that the service sends and its snapshots, and names the first event
//! after which the runs differ. It needs no cluster, only the files:
//!
//! ```no_run
//! # use rusteron_cluster::*;
//! # #[derive(Default)]
//! # struct OrderBook;
//! # impl ClusteredService for OrderBook {
//! #   fn on_start(&mut self, _: &mut Lifecycle<'_>, _: Option<&mut SnapshotReader<'_>>) -> ServiceResult { Ok(()) }
//! #   fn on_session_message(&mut self, _: &mut Cluster<'_>, _: &SessionMessage<'_>) -> ServiceResult { Ok(()) }
//! #   fn on_take_snapshot(&self, _: &mut SnapshotWriter<'_>) -> ServiceResult { Ok(()) }
//! # }
//! # fn main() -> Result<()> {
//! let log = RecordedLog::open("node0/cluster", "node0/archive")?;
//! let comparison = DeterminismCheck::new(log).run(OrderBook::default)?;
//! // Such as: different at event 7: position 1248, message of session 1: 12 bytes "buy 100 @ 20": …
//! assert!(comparison.is_equal(), "{comparison}");
//! # Ok(())
//! # }
//! ```
//!
//! The check finds hash maps, addresses, incomplete snapshots, and clocks and threads whose readings
//! reach an effect. One process cannot find all: its [documentation](DeterminismCheck) says what is
//! left. For that, digest the state after each event, together with [`Lifecycle::log_position`], and
//! compare members. Equal positions must have equal digests: on all members, after a replay, and
//! after a restart from a snapshot.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod client;
pub mod codec;
mod error;
mod ids;
#[cfg(feature = "service")]
mod service;
mod stream;

pub use client::{
    AdminRequestType, AdminResponseCode, AsyncClusterConnect, ClusterClient, ClusterCloseCause,
    ClusterContext, ClusterEgress, ClusterState, ConnectState, Egress, EgressAdapter, EventCode,
    Ingress, IngressClaim, IngressEndpoints, JoinError, SessionHeader,
};
pub use error::{ClusterError, ClusterErrorKind, Result};
pub use ids::{ClusterSessionId, CorrelationId, LeadershipTermId, MemberId, ServiceId};
#[doc(inline)]
pub use rusteron_core::{CredentialsSupplier, RecordingId};
#[cfg(feature = "service")]
pub use service::mark_file;
#[cfg(feature = "service")]
pub use service::{
    AppVersion, ClientSession, CloseReason, Cluster, ClusterTimeUnit, ClusteredService, Comparison,
    DeterminismCheck, Divergence, Effect, ErrorPolicy, LeadershipTerm, Lifecycle, MessageClaim,
    MessageSource, NotSent, RecordedLog, Role, Sent, ServiceAgent, ServiceContainer,
    ServiceContext, ServiceError, ServiceResult, SessionClaim, SessionInfo, SessionMessage,
    SnapshotReader, SnapshotWriter, TerminationCause,
};
