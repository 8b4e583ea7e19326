//! Builder of replay merges.

use std::ffi::CString;
use std::ptr::{self, NonNull};
use std::time::{Duration, SystemTime};

use rusteron_client::__private::{Fallible, c_string, last_error, millis, receive_destination};
use rusteron_client::{AsChannel, ChannelUri, Error, Position, Subscription};
use rusteron_sys::archive as sys;

use crate::archive::Archive;
use crate::argument::not_negative;
use crate::error::Result;
use crate::replay_merge::error::ReplayMergeError;
use crate::replay_merge::replay_merge::{OPERATION, Parts, ReplayMerge};

/// Builds a [`ReplayMerge`], with the channels that [`ReplayMerge::builder`] has been given.
///
/// A clone can start another merge of the same stream, for example after a failure.
///
/// ```no_run
/// use std::time::Duration;
///
/// use rusteron_archive::{Archive, ReplayMerge};
///
/// # fn follow(archive: Archive, recording_id: i64, session_id: i32) -> rusteron_archive::Result<()> {
/// let subscription = archive.aeron().add_subscription("aeron:udp?control-mode=manual", 1001)?;
/// let merge = ReplayMerge::builder(
///     format!("aeron:udp?session-id={session_id}"),
///     "aeron:udp?endpoint=localhost:0",
///     "aeron:udp?endpoint=localhost:40123",
/// )
/// .start_position(4096)
/// .progress_timeout(Duration::from_secs(30))
/// .start(archive, subscription, recording_id)?;
/// # drop(merge);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "no merge begins until `start` is called"]
pub struct ReplayMergeBuilder {
    replay_channel: String,
    replay_destination: Result<CString>,
    live_destination: Result<CString>,
    start_position: Position,
    progress_timeout: Duration,
}

impl ReplayMergeBuilder {
    pub(super) fn new(
        replay_channel: String,
        replay_destination: &impl AsChannel,
        live_destination: &impl AsChannel,
    ) -> Self {
        Self {
            replay_channel,
            replay_destination: channel(replay_destination),
            live_destination: channel(live_destination),
            start_position: 0,
            progress_timeout: ReplayMerge::DEFAULT_PROGRESS_TIMEOUT,
        }
    }

    /// Replays from this position, in bytes of the stream, 0 or more. A frame has to begin there.
    ///
    /// The default is 0. A recording that begins later, because it was recorded late or its first
    /// segments were purged, needs its [start position](Archive::start_position) or a later one.
    ///
    /// Corresponds to `start_position` of `aeron_archive_replay_merge_init`.
    #[doc(alias = "aeron_archive_replay_merge_init")]
    pub fn start_position(mut self, position: Position) -> Self {
        self.start_position = position;
        self
    }

    /// Limits the time without progress of the replay. A merge fails when the timeout is over. The
    /// default is [`ReplayMerge::DEFAULT_PROGRESS_TIMEOUT`].
    ///
    /// The timeout is rounded up to whole milliseconds, and 100 years at most.
    ///
    /// A live stream that never comes does not count: while the merge waits for the live stream,
    /// each answer of the archive is progress.
    ///
    /// Corresponds to `merge_progress_timeout_ms` of `aeron_archive_replay_merge_init`.
    #[doc(alias = "aeron_archive_replay_merge_init")]
    pub fn progress_timeout(mut self, timeout: Duration) -> Self {
        self.progress_timeout = timeout;
        self
    }

    /// Starts merging the recording with the live stream, and takes ownership of session and
    /// subscription. Does not wait for an answer of the archive.
    ///
    /// The channel of the subscription has to be UDP with `control-mode=manual`.
    ///
    /// # Errors
    /// - [`InvalidArgument`](crate::ArchiveErrorKind::InvalidArgument): IPC, a subscription without
    ///   `control-mode=manual`, a replay destination without an endpoint, a negative id or
    ///   position;
    /// - [`Client`](crate::ArchiveErrorKind::Client): a channel is not valid or contains a NUL byte,
    ///   the progress timeout is too long, or the client failed.
    ///
    /// The error [gives back](ReplayMergeError::into_parts) archive and subscription. If the
    /// operator `?` converts it to an [`ArchiveError`](crate::ArchiveError), both are dropped.
    ///
    /// Corresponds to `aeron_archive_replay_merge_init`.
    #[doc(alias = "aeron_archive_replay_merge_init")]
    pub fn start(
        self,
        archive: Archive,
        subscription: Subscription,
        recording_id: i64,
    ) -> Result<ReplayMerge, ReplayMergeError> {
        let raw = self.init(&archive, &subscription, recording_id);
        let parts = Parts { subscription, archive };
        match raw {
            Ok(raw) => {
                let merge = ReplayMerge::from_raw(raw, recording_id, parts);
                merge.deliver();
                Ok(merge)
            }
            Err(error) => {
                parts.archive.deliver();
                Err(ReplayMergeError::new(error, parts))
            }
        }
    }

    /// Makes C's structure, which has pointers to archive and subscription. Both have to outlive the
    /// structure. The caller delivers the archive's reports to their handlers.
    fn init(
        self,
        archive: &Archive,
        subscription: &Subscription,
        recording_id: i64,
    ) -> Result<NonNull<sys::aeron_archive_replay_merge_t>> {
        not_negative(OPERATION, "start_position", self.start_position)?;
        // Only parsed: C adds the endpoint, and without it the text is no complete channel.
        self.replay_channel.parse::<ChannelUri>().map_err(Error::from)?;
        let replay_channel = c_string("replay_channel", &self.replay_channel)?;
        let replay_destination = self.replay_destination?;
        let live_destination = self.live_destination?;
        let timeout = millis("progress_timeout", self.progress_timeout)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut raw = ptr::null_mut();
        let relevant_id = Some(("recording_id", recording_id));
        archive.undelivered_request(OPERATION, relevant_id, |archive| {
            // SAFETY: archive and subscription are live. The merge owns both, and closes the new
            // structure before it drops them. C copies the channels, which are terminated strings.
            unsafe {
                sys::aeron_archive_replay_merge_init(
                    &mut raw,
                    subscription.as_ptr(),
                    archive,
                    replay_channel.as_ptr(),
                    replay_destination.as_ptr(),
                    live_destination.as_ptr(),
                    recording_id,
                    self.start_position,
                    now.as_millis() as i64,
                    timeout as i64,
                )
            }
            .into_result()
        })?;
        Ok(NonNull::new(raw).ok_or_else(last_error)?)
    }
}

/// Returns the checked text of a channel: C parses it without a check.
fn channel(channel: &impl AsChannel) -> Result<CString> {
    let text = receive_destination(channel)?;
    text.to_string_lossy().parse::<ChannelUri>().map_err(Error::from)?;
    Ok(text)
}
