//! States of a merge.

use std::ffi::c_int;
use std::fmt;

/// State of a [`ReplayMerge`](crate::ReplayMerge): what the merge waits for. `Display` says it in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplayMergeState {
    /// Waits for the media driver to bind the replay destination, whose port is 0.
    ResolveReplayPort,
    /// Waits for the archive to tell how far the recording goes.
    GetRecordingPosition,
    /// Waits for the archive to start the replay.
    Replay,
    /// Waits for the caller's polls to bring the replay to the recorded position.
    Catchup,
    /// Waits for the live stream: asks the archive for the recorded position, adds the live destination once the replay
    /// is close to it, and waits for the live stream beside the replay.
    AttemptLiveJoin,
    /// The subscription receives the live stream.
    Merged,
    /// The merge has failed, and does nothing any more.
    Failed,
}

impl ReplayMergeState {
    /// Converts C's `aeron_archive_replay_merge_state_t`, whose order a static assertion of the shim guards.
    pub(super) fn from_c(state: c_int) -> Self {
        match state {
            0 => Self::ResolveReplayPort,
            1 => Self::GetRecordingPosition,
            2 => Self::Replay,
            3 => Self::Catchup,
            4 => Self::AttemptLiveJoin,
            5 => Self::Merged,
            _ => Self::Failed,
        }
    }
}

impl fmt::Display for ReplayMergeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ResolveReplayPort => "waits for the port of the replay destination",
            Self::GetRecordingPosition => "waits for the recorded position from the archive",
            Self::Replay => "waits for the archive to start the replay",
            Self::Catchup => "waits for polls to bring the replay to the recorded position",
            Self::AttemptLiveJoin => "waits for the live stream",
            Self::Merged => "merged",
            Self::Failed => "failed",
        })
    }
}
