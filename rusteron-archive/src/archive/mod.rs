//! A session with an archive, and its requests by subject.
//!
//! `Archive` is the C archive client on a client of `rusteron-client`, whose handle it holds. Recorded
//! publications and the subscriptions of replays are added through that client, so all handles are of one kind
//! and have one owner; C sends the request only. The context belongs to the session, because C's copy points
//! into it.
//!
//! - **One request at a time.** Rust holds a lock during a C call. Without a conductor thread, it also holds
//!   the lock of the conductor's work, which C does while it waits. In a conductor's callback, a request
//!   returns an error.
//! - **No error handler in listings**, because C passes unterminated texts to it there.
//! - **Absent ids are `None`.** C writes an absent recording id as -1, which also means "all recordings". So
//!   requests refuse negative ids and name the argument.
//! - **Checked messages.** C trusts lengths and assumes the blocks of its own schema version. Each C file that
//!   decodes messages therefore polls through a guard (`rusteron_archive_messages.c` of `rusteron-sys`), which
//!   gives it checked copies. A malformed message fails the poll and does not come again.

mod archive;
pub(crate) mod connect;
mod listing;
mod recording;
mod replay;
mod replication;
mod segments;

pub use archive::Archive;
pub use connect::AsyncConnect;
pub(crate) use listing::fragment;
pub use listing::{Listing, RecordingSubscriptions, Recordings};
pub use recording::SourceLocation;
pub(crate) use replay::checked;
pub use replay::{ReplayLength, ReplayParams, ReplaySessionId};
pub use replication::ReplicationParams;
pub(crate) use replication::with_raw;
