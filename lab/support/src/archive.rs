//! Archives: Java's or our own in a process, and one whose answers the test chooses.

mod archive_process;
pub mod fake_archive;
mod recordings;

pub use archive_process::{ArchiveProcess, Options};
pub use recordings::{
    REPLAY_STREAM, STREAM, await_recording, drain, long_message, mapped_log_buffers, message,
    numbered, offer_numbered, record, replay_all,
};
