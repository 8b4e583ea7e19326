//! Copying a recording from another archive, the source: what is asked of it, and when, without I/O.
//!
//! | file | what it decides |
//! |---|---|
//! | `replication.rs` | the states of a replication |
//! | `action.rs` | nothing: it defines input and actions |
//! | `source.rs` | the session with the source: connecting, requests and their answers |
//! | `recording.rs` | the source's recording |
//! | `channels.rs` | channels to the source, and from it |

mod action;
mod channels;
mod recording;
#[expect(clippy::module_inception, reason = "the noun of the folder")]
mod replication;
mod source;

pub(crate) use action::{Action, Copy, ReplicatedImage, ReplicationRequest};
pub(crate) use channels::{ControlChannels, ReplayChannels};
pub(crate) use recording::SourceRecording;
pub(crate) use replication::Replication;
pub(crate) use source::{RequestStream, SourceLink, SourceSession, SourceSettings};
