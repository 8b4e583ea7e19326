//! Signals of what happens to a recording.

/// What has happened to a recording: the field `signal` of a `RecordingSignalEvent`.
#[allow(dead_code, reason = "all signals of the protocol")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Start = 0,
    Stop = 1,
    /// A recording goes on behind its end.
    Extend = 2,
    /// The descriptor has been copied from another archive.
    Replicate = 3,
    /// A replication has joined the live stream.
    Merge = 4,
    /// A replication has all that the other archive has.
    Sync = 5,
    /// Segments have been deleted.
    Delete = 6,
    ReplicateEnd = 7,
}
