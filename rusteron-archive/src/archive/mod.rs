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
pub use listing::{RecordingSubscriptions, Recordings};
pub use recording::SourceLocation;
pub use replay::{ReplayLength, ReplayParams};
pub use replication::ReplicationParams;
