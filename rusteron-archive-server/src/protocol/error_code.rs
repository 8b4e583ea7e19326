//! Codes of errors.

/// Why a request is refused, or why a recording or a replay has ended. The code is the relevant id of the answer.
///
/// Corresponds to the constants of `io.aeron.archive.client.ArchiveException`.
#[allow(dead_code, reason = "all codes of the protocol")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorCode {
    /// The text alone says what is wrong.
    Generic = 0,
    /// The session has another listing in progress.
    ActiveListing = 1,
    /// The recording is active.
    ActiveRecording = 2,
    /// A subscription of the same channel and stream records.
    ActiveSubscription = 3,
    UnknownSubscription = 4,
    UnknownRecording = 5,
    UnknownReplay = 6,
    MaxReplays = 7,
    MaxRecordings = 8,
    /// The image does not continue the recording.
    InvalidExtension = 9,
    AuthenticationRejected = 10,
    /// The disk is full, or nearly.
    StorageSpace = 11,
    UnknownReplication = 12,
    UnauthorisedAction = 13,
    /// The other archive does not answer.
    ReplicationConnectionFailure = 14,
    EmptyRecording = 15,
    /// The position is outside the recording, or inside a frame.
    InvalidPosition = 16,
}

impl ErrorCode {
    /// Returns the relevant id of the answer.
    pub(crate) const fn code(self) -> i64 {
        self as i64
    }
}
