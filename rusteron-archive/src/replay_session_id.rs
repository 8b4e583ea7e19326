//! The number of a replay.

use std::fmt;

/// The id that an archive gives a replay. It stops the replay, and distinguishes the replay's image
/// from others.
///
/// ```
/// use rusteron_archive::ReplaySessionId;
///
/// let id = ReplaySessionId::from(3 << 32 | 7);
/// assert_eq!(id.image_session_id(), 7);
/// assert_eq!(i64::from(id).to_string(), id.to_string());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplaySessionId(i64);

impl ReplaySessionId {
    /// Returns the session id of the replay's image, for
    /// [`Subscription::image_by_session_id`](rusteron_client::Subscription::image_by_session_id):
    /// the low 32 bits. The upper bits count the archive's replays.
    ///
    /// Corresponds to the conversion to `int32_t` that users of `aeron_archive_start_replay` write.
    #[doc(alias = "aeron_archive_start_replay")]
    pub fn image_session_id(self) -> i32 {
        self.0 as i32
    }
}

impl From<i64> for ReplaySessionId {
    fn from(id: i64) -> Self {
        Self(id)
    }
}

impl From<ReplaySessionId> for i64 {
    fn from(id: ReplaySessionId) -> Self {
        id.0
    }
}

impl fmt::Display for ReplaySessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
