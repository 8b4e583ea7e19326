//! Archives: Aeron's, in Java, and one whose answers the test chooses.

pub mod fake_archive;
mod java_archive;
mod recordings;

pub use java_archive::{JavaArchive, Options};
pub use recordings::{
    REPLAY_STREAM, STREAM, await_recording, drain, extend_what_was_kept, long_message,
    mapped_log_buffers, message, numbered, offer_numbered, offer_until_recorded, record,
    replay_all,
};
