//! What the conductor is told once.

use crate::channel::ResponseDefaults;
use crate::conductor::effect::ControlSessionId;
use crate::control::session::SessionSettings;
use crate::ids::ArchiveId;

/// Settings of the conductor. Lengths are in bytes.
#[derive(Debug, Clone)]
pub(crate) struct ConductorSettings {
    pub(crate) archive_id: ArchiveId,
    pub(crate) session: SessionSettings,
    /// The id of the first control session. Ids of an earlier archive should not come again soon.
    pub(crate) first_session_id: ControlSessionId,
    pub(crate) response: ResponseDefaults,
    pub(crate) max_concurrent_recordings: usize,
    pub(crate) max_concurrent_replays: usize,
    pub(crate) segment_length: i32,
    pub(crate) file_io_max_length: i32,
    /// With this space left, or less, no recording begins.
    pub(crate) low_storage_space_threshold: u64,
    pub(crate) replay_linger_ns: i64,
    pub(crate) recording_events_enabled: bool,
    pub(crate) replication: ReplicationSettings,
}

/// Settings that all replications share.
#[derive(Debug, Clone)]
pub(crate) struct ReplicationSettings {
    /// Where sources send their recordings to, unless a request says so. May be empty.
    pub(crate) channel: String,
    /// Where sources send their answers to, unless a request says so. May be empty.
    pub(crate) response_channel: String,
    pub(crate) response_stream_id: i32,
    /// For a connection, and for each answer.
    pub(crate) message_timeout_ns: i64,
    pub(crate) max_concurrent: usize,
}
