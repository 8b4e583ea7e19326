//! Requests that not every archive carries out.

/// A request to an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveRequest {
    TruncateRecording,
    PurgeRecording,
    DetachSegments,
    PurgeSegments,
    DeleteDetachedSegments,
    AttachSegments,
    MigrateSegments,
    Replicate,
    StopReplication,
    UpdateChannel,
}

use ArchiveRequest::*;

/// The requests that `rusteron-archive-server` refuses: tests that need one are skipped with it. A test of that crate
/// fails if one of these is carried out.
pub const NOT_SUPPORTED: &[ArchiveRequest] = &[
    TruncateRecording,
    PurgeRecording,
    DetachSegments,
    PurgeSegments,
    DeleteDetachedSegments,
    AttachSegments,
    MigrateSegments,
    Replicate,
    StopReplication,
];
