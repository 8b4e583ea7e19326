//! An Aeron archive without a JVM: records streams to files, and replays them.
//!
//! It speaks the control protocol of Aeron 1.54.0's `Archive` and keeps the same files, so the clients of Java, C and Rust
//! take it for Java's, and a directory goes back and forth between both.

mod authenticators;
mod catalog;
mod channel;
mod conductor;
mod context;
mod control;
mod counters;
mod error;
mod java_names;
mod mark_file;
mod network;
#[cfg(feature = "binary")]
#[doc(hidden)]
pub mod program;
mod protocol;
mod recorder;
mod replayer;
mod segment;
mod server;
mod storage;

pub use context::{ArchiveServerContext, ArchiveThreadingMode, Setting};
pub use control::authentication::{
    AcceptAll, AllowAll, Authentication, Authenticator, Authorisation,
};
pub use error::{Result, ServerError, ServerErrorKind};
pub use segment::checksum::Checksum;
pub use server::ArchiveServer;
