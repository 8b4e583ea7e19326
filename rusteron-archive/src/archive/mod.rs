//! A session with an archive, and its requests by subject.

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
pub use listing::{RecordingSubscriptions, Recordings};
pub use recording::SourceLocation;
pub(crate) use replay::checked;
pub use replay::{ReplayLength, ReplayParams, ReplaySessionId};
pub use replication::ReplicationParams;
pub(crate) use replication::with_raw;
