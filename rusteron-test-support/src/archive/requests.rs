//! Requests that not every archive carries out.

/// A request to an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveRequest {
    Replicate,
    StopReplication,
}

use ArchiveRequest::*;

/// The requests that `rusteron-archive-server` refuses: tests that need one are skipped with it. A test of that crate
/// fails if one of these is carried out.
pub const NOT_SUPPORTED: &[ArchiveRequest] = &[Replicate, StopReplication];
