//! Aeron's archive client for Rust: streams that are recorded, and replayed later.
//!
//! [`Archive`] is a session with an archive, such as Aeron's Java `ArchivingMediaDriver`, which
//! `just run-archive-java` starts in a checkout of the source. It is made
//! with a client of `rusteron-client`, and takes and gives that crate's types: what is recorded is a
//! [`Publication`](rusteron_client::Publication), and what is replayed arrives at a
//! [`Subscription`](rusteron_client::Subscription).
//!
//! # Threads
//! An [`Archive`] is shared by threads; one request is under way at a time. There are no threads besides
//! the client's. Handlers run on the thread that calls a method, before it returns.
//!
//! # Allocation and blocking
//! Every request waits for those of other threads on the same session, and then for the archive's answer,
//! up to the message timeout, 10 s by default; [`Archive`] says what can add to that. It may allocate.
//! What is recorded and replayed takes the client's message path, with which the archive's session has
//! nothing to do. [`Archive::async_connect`] waits by being polled or awaited.
//!
//! # Lifetimes
//! A session keeps its client open. What it has started goes on without it: publications and
//! subscriptions it has given belong to the caller, recordings and replays to the archive.
//!
//! # Errors
//! Everything returns an [`ArchiveError`]: of what kind, with the archive's number, about which
//! recording, and in whose words. A connection that was lost stays lost.

mod archive;
mod argument;
mod context;
mod credentials;
mod error;
mod events;
mod persistent_subscription;
mod recording_descriptor;
mod recording_event;
mod recording_pos;
mod recording_signal;
mod reentry;
mod replay_merge;
mod replay_session_id;

/// What `rusteron-codegen` makes of Aeron's headers: the context's settings.
mod generated {
    use crate::Context;

    include!(concat!(env!("OUT_DIR"), "/generated.rs"));
}

pub use archive::{
    Archive, AsyncConnect, RecordingSubscriptions, Recordings, ReplayLength, ReplayParams,
    ReplicationParams, SourceLocation,
};
pub use context::Context;
pub use credentials::CredentialsSupplier;
pub use error::{ArchiveError, ArchiveErrorKind, Result};
pub use persistent_subscription::{
    MessageInfo, PersistentSubscription, PersistentSubscriptionContext,
    PersistentSubscriptionCounters, PersistentSubscriptionEvent, StartPosition,
};
pub use recording_descriptor::{RecordingDescriptor, RecordingSubscriptionDescriptor};
pub use recording_event::RecordingEvent;
pub use recording_pos::RecordingPos;
pub use recording_signal::{RecordingSignal, RecordingSignalKind};
pub use replay_merge::{ReplayMerge, ReplayMergeCloseError, ReplayMergeError};
pub use replay_session_id::ReplaySessionId;
pub use rusteron_client::{Error, ErrorKind};
