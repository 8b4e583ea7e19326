//! Aeron's archive client for Rust: records streams, and replays them later.
//!
//! [`Archive`] is a session with an archive: `ArchiveServer` or a program of `rusteron-archive-server`,
//! or Aeron's in Java. A session needs a client of `rusteron-client`, and uses that crate's types. A
//! [`Publication`](rusteron_client::Publication) is recorded, and a
//! [`Subscription`](rusteron_client::Subscription) receives the replay.
//!
//! # Threads
//! Threads can share an [`Archive`]; one request is under way at a time. There are no threads
//! besides the client's. Handlers run on the thread that calls a method, before the method returns.
//!
//! # Allocation and blocking
//! Every request waits for the requests of other threads on the same session, and then for the
//! archive's answer. The limit is the message timeout, 10 s by default; [`Archive`] lists the waits
//! that can add to it. A request may allocate. Messages to be recorded and replayed messages take
//! the client's message path, in which the session has no part. [`Archive::async_connect`] is
//! polled or awaited. The requests of an [`AsyncArchive`] do not wait, and many can be under way.
//!
//! # Lifetimes
//! A session keeps its client open. Its results go on without it: publications and subscriptions
//! belong to the caller, recordings and replays to the archive.
//!
//! # Errors
//! Every operation returns an [`ArchiveError`] with its kind, the archive's number, the recording
//! and the archive's text. A connection that was lost stays lost.

mod archive;
mod async_archive;
mod checks;
mod context;
mod credentials;
mod error;
mod events;
mod ids;
mod persistent_subscription;
mod recording_descriptor;
mod recording_event;
mod recording_pos;
mod replay_merge;

/// The settings of the table `settings.txt`.
mod settings {
    use std::borrow::Cow;
    use std::ffi::c_int;
    use std::time::Duration;

    use rusteron_client::Result;
    use rusteron_core::ffi::{self, Fallible};
    use rusteron_sys::archive as sys;

    use crate::ArchiveContext;

    include!(concat!(env!("OUT_DIR"), "/settings.rs"));
}

pub use archive::{
    Archive, AsyncArchiveConnect, Listing, RecordingSubscriptions, Recordings, ReplayLength,
    ReplayParams, ReplicationParams, SourceLocation,
};
pub use async_archive::{AsyncArchive, Request};
pub use context::ArchiveContext;
pub use error::{ArchiveError, ArchiveErrorKind, Result};
pub use events::{RecordingSignal, RecordingSignalKind};
pub use ids::{
    ArchiveId, ControlSessionId, CorrelationId, RecordingSubscriptionId, ReplaySessionId,
    ReplicationId,
};
pub use persistent_subscription::{
    MessageInfo, PersistentSubscription, PersistentSubscriptionContext,
    PersistentSubscriptionCounters, PersistentSubscriptionEvent, StartPosition,
};
pub use recording_descriptor::{RecordingDescriptor, RecordingSubscriptionDescriptor};
pub use recording_event::RecordingEvent;
pub use recording_pos::RecordingPos;
pub use replay_merge::{
    ReplayMerge, ReplayMergeBuilder, ReplayMergeCloseError, ReplayMergeError, ReplayMergeState,
    Returned,
};
pub use rusteron_client::{Error, ErrorKind};
#[doc(inline)]
pub use rusteron_core::{CredentialsSupplier, RecordingId};

/// Misuse of handles, each with the error code of its refusal. rustdoc compiles the examples, and checks the codes
/// when it accepts unstable features, as in `.ci/run`.
///
/// Two threads do not share a merge.
///
/// ```compile_fail,E0277
/// use rusteron_archive::ReplayMerge;
///
/// fn share(merge: &ReplayMerge) {
///     std::thread::scope(|scope| {
///         scope.spawn(|| merge.is_merged());
///     });
/// }
/// ```
///
/// Two threads do not share a persistent subscription.
///
/// ```compile_fail,E0277
/// use std::sync::Arc;
///
/// use rusteron_archive::PersistentSubscription;
///
/// fn share(subscription: Arc<PersistentSubscription>) {
///     std::thread::spawn(move || subscription.is_live());
/// }
/// ```
///
/// Two threads do not share a pending connection.
///
/// ```compile_fail,E0277
/// use rusteron_archive::AsyncArchiveConnect;
///
/// fn share(connection: &AsyncArchiveConnect) {
///     std::thread::scope(|scope| {
///         scope.spawn(|| println!("{connection:?}"));
///     });
/// }
/// ```
#[cfg(doctest)]
mod misuse {}
