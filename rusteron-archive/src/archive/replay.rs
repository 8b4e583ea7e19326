//! Replaying recordings.

use std::ffi::CString;

use rusteron_client::{AsChannel, ChannelUri, ControlMode, Error, Position, Subscription};
use rusteron_core::RecordingId;
use rusteron_core::channel::ChannelUse;
use rusteron_sys::archive as sys;

use crate::archive::Archive;
use crate::archive::recording::with_session_id;
use crate::checks::{NULL_VALUE, file_io_max_length, or_null, other_than_null};
use crate::error::{ArchiveError, Result};
use crate::ids::ReplaySessionId;

/// Makes a setter for each of some parameters, which takes and returns the parameters.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $value:ty;)+) => {
        $($(#[$doc])*
        pub fn $name(mut self, $name: $value) -> Self {
            self.$name = $name.into();
            self
        })+
    };
}
pub(super) use setters;

/// Parameters of a replay: the part of the recording, and the way to replay it.
///
/// By default, the whole recording is replayed, and an active recording is followed until it stops.
/// Values out of range (negative positions, ids and lengths) are refused when the replay is
/// requested.
///
/// ```
/// use rusteron_archive::{ReplayLength, ReplayParams};
///
/// let from_there_on = ReplayParams::new().position(4096);
/// let one_block = ReplayParams::new().position(4096).length(ReplayLength::Bytes(8192));
/// # let _ = (from_there_on, one_block);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[doc(alias = "aeron_archive_replay_params_t")]
#[must_use = "parameters do nothing by themselves"]
pub struct ReplayParams {
    position: Option<Position>,
    length: ReplayLength,
    bounding_limit_counter_id: Option<i32>,
    file_io_max_length: Option<usize>,
    replay_token: Option<i64>,
    subscription_registration_id: Option<i64>,
}

/// Length of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplayLength {
    /// To the end of the recording. An active recording ends later.
    #[default]
    Follow,
    /// To the end of the recording, or to the position recorded when the replay starts.
    Recorded,
    /// This number of bytes, headers included. Can reach beyond the recorded position. Up to
    /// `i64::MAX`.
    Bytes(u64),
}

impl ReplayParams {
    /// The whole recording.
    ///
    /// Corresponds to `aeron_archive_replay_params_init`.
    #[doc(alias = "aeron_archive_replay_params_init")]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Begins at a position in the recording, in bytes of the stream. A frame has to begin there.
        /// The default is the start of the recording.
        ///
        /// Corresponds to `position` of `aeron_archive_replay_params_t`.
        position: Position;

        /// Ends after this length. The default is to follow.
        ///
        /// Corresponds to `length` of `aeron_archive_replay_params_t`.
        length: ReplayLength;

        /// Limits the replay to the position that a counter of the archive's media driver shows at that
        /// time.
        ///
        /// Corresponds to `bounding_limit_counter_id` of `aeron_archive_replay_params_t`.
        bounding_limit_counter_id: i32;

        /// Limits one read from a file to this number of bytes, up to 2,147,483,647. The default is the
        /// archive's.
        ///
        /// Corresponds to `file_io_max_length` of `aeron_archive_replay_params_t`.
        file_io_max_length: usize;

        /// Proves with a token that another session of this client has requested the replay.
        ///
        /// Replays over response channels set the token themselves. Any number but -1.
        ///
        /// Corresponds to `replay_token` of `aeron_archive_replay_params_t`.
        replay_token: i64;

        /// Replays to the subscription with this registration id, whose channel is a response channel.
        ///
        /// Corresponds to `subscription_registration_id` of `aeron_archive_replay_params_t`.
        subscription_registration_id: i64;
    }

    pub(crate) fn to_raw(self) -> Result<sys::aeron_archive_replay_params_t> {
        const OPERATION: &str = "start_replay";
        let length = match self.length {
            ReplayLength::Follow => sys::ARCHIVE_REPLAY_ALL_AND_FOLLOW.into(),
            ReplayLength::Recorded => sys::ARCHIVE_REPLAY_ALL_AND_STOP.into(),
            ReplayLength::Bytes(length) => {
                let too_long = |_| format!("length: {length} bytes are too many");
                i64::try_from(length)
                    .map_err(|error| ArchiveError::invalid(OPERATION, too_long(error)))?
            }
        };
        Ok(sys::aeron_archive_replay_params_t {
            bounding_limit_counter_id: or_null(
                OPERATION,
                "bounding_limit_counter_id",
                self.bounding_limit_counter_id,
            )?,
            file_io_max_length: file_io_max_length(OPERATION, self.file_io_max_length)?,
            position: or_null(OPERATION, "position", self.position)?,
            length,
            replay_token: other_than_null(OPERATION, "replay_token", self.replay_token)?,
            subscription_registration_id: or_null(
                OPERATION,
                "subscription_registration_id",
                self.subscription_registration_id,
            )?,
        })
    }
}

/// Replaying.
impl Archive {
    /// Has the archive replay a recording to a channel and stream. Returns the id of the replay,
    /// with which the replay can be stopped. The id contains the [session
    /// id](ReplaySessionId::image_session_id) of the image.
    ///
    /// The subscription is up to the caller. It is usually added before, with a channel that has
    /// this endpoint, or afterwards, with the session id. [`replay`](Self::replay) does both.
    ///
    /// With a response channel this is two requests: one for a token, one for the replay. The steps
    /// between the two requests share one message timeout, which counts from the beginning. The
    /// whole can take two timeouts.
    ///
    /// # Errors
    /// - [`InvalidArgument`](crate::ArchiveErrorKind::InvalidArgument): a parameter is negative, or a
    ///   response channel comes without a
    ///   [subscription](ReplayParams::subscription_registration_id);
    /// - [`UnknownRecording`](crate::ArchiveErrorKind::UnknownRecording): there is no such recording;
    /// - [`InvalidPosition`](crate::ArchiveErrorKind::InvalidPosition): nothing was recorded there, or no
    ///   frame begins there;
    /// - [`EmptyRecording`](crate::ArchiveErrorKind::EmptyRecording): there is nothing to replay;
    /// - [`MaxReplays`](crate::ArchiveErrorKind::MaxReplays): the archive runs its maximum of
    ///   replays;
    /// - others, as for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_start_replay`.
    #[doc(alias("aeron_archive_start_replay", "startBoundedReplay"))]
    pub fn start_replay(
        &self,
        recording_id: RecordingId,
        replay_channel: impl AsChannel,
        replay_stream_id: i32,
        params: ReplayParams,
    ) -> Result<ReplaySessionId> {
        let (channel, is_response) = checked(&replay_channel)?;
        if is_response && params.subscription_registration_id.is_none() {
            let text = "a response channel needs subscription_registration_id";
            return Err(ArchiveError::invalid("start_replay", text));
        }
        let mut params = params.to_raw()?;
        let id = Some(("recording_id", recording_id.get()));
        // SAFETY: `ask` passes the live structure; channel and parameters live during the call.
        let replay = self.ask("start_replay", id, |replay_session_id, raw| unsafe {
            sys::aeron_archive_start_replay(
                replay_session_id,
                raw,
                recording_id.get(),
                channel.as_ptr(),
                replay_stream_id,
                &mut params,
            )
        });
        replay.map(ReplaySessionId::new)
    }

    /// Has the archive replay a recording. Returns the subscription at which the replay arrives.
    ///
    /// The subscription receives only this replay, and may not be connected yet. The replay ends
    /// with the subscription: the archive notices that within the drivers' timeouts, and counts the
    /// replay against its limit until then. [`stop_replay`](Self::stop_replay) ends it at once.
    /// With `control-mode=response` in the channel, the archive connects back to this client.
    ///
    /// The replay waits for a slow subscriber, up to the timeouts of the media drivers. Nothing is
    /// lost if polls come in time. If the archive cannot read on, the image ends, and
    /// [`poll_for_error_response`](Self::poll_for_error_response) or the [error
    /// handler](crate::ArchiveContext::set_error_handler) gets the reason.
    ///
    /// # Errors
    /// As for [`start_replay`](Self::start_replay) and
    /// [`Aeron::add_subscription`](rusteron_client::Aeron::add_subscription); if the subscription
    /// fails, the replay is stopped.
    ///
    /// Corresponds to `aeron_archive_replay`.
    #[doc(alias = "aeron_archive_replay")]
    pub fn replay(
        &self,
        recording_id: RecordingId,
        replay_channel: impl AsChannel,
        replay_stream_id: i32,
        params: ReplayParams,
    ) -> Result<Subscription> {
        self.replay_with_id(recording_id, replay_channel, replay_stream_id, params)
            .map(|(subscription, _replay_session_id)| subscription)
    }

    /// As [`replay`](Self::replay), but also returns the id of the replay. With the id,
    /// [`stop_replay`](Self::stop_replay) ends the replay while the subscription goes on.
    ///
    /// # Errors
    /// As for [`replay`](Self::replay).
    ///
    /// Corresponds to `aeron_archive_start_replay`, and `aeron_archive_replay`, which keeps the id to
    /// itself.
    #[doc(alias("aeron_archive_start_replay", "aeron_archive_replay"))]
    pub fn replay_with_id(
        &self,
        recording_id: RecordingId,
        replay_channel: impl AsChannel,
        replay_stream_id: i32,
        params: ReplayParams,
    ) -> Result<(Subscription, ReplaySessionId)> {
        let (text, is_response) = checked(&replay_channel)?;
        if is_response {
            let subscription = self.aeron().add_subscription(&replay_channel, replay_stream_id)?;
            let params =
                params.subscription_registration_id(subscription.constants().registration_id);
            let replay_session_id =
                self.start_replay(recording_id, replay_channel, replay_stream_id, params)?;
            return Ok((subscription, replay_session_id));
        }
        let replay_session_id =
            self.start_replay(recording_id, &replay_channel, replay_stream_id, params)?;
        let subscribe = || {
            let session_id = replay_session_id.image_session_id();
            let channel = with_session_id(&text.to_string_lossy(), session_id)?;
            let subscription = self.aeron().add_subscription(channel, replay_stream_id)?;
            Ok((subscription, replay_session_id))
        };
        subscribe().inspect_err(|_| {
            // Without a subscriber, the replay would wait for one, and then end by itself.
            let _ = self.stop_replay(replay_session_id);
        })
    }

    /// Stops a replay.
    ///
    /// An id without a running replay is no error: archives, up to 1.54 at least, answer as if
    /// there had been one.
    ///
    /// # Errors
    /// As for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_stop_replay`.
    #[doc(alias = "aeron_archive_stop_replay")]
    pub fn stop_replay(&self, replay_session_id: ReplaySessionId) -> Result<()> {
        let id = i64::from(replay_session_id);
        // The upper half of the id is a count that can become negative. So a negative id is not
        // refused.
        // SAFETY: `request` passes the live structure.
        self.request("stop_replay", None, |raw| unsafe { sys::aeron_archive_stop_replay(raw, id) })
            .map_err(|error| error.about(Some(id)))
    }

    /// Stops all replays of a recording, or, without an id, of all recordings. Replays of other
    /// sessions are stopped as well.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ArchiveErrorKind::InvalidArgument): a negative id; others, as for
    /// [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_stop_all_replays`.
    #[doc(alias = "aeron_archive_stop_all_replays")]
    pub fn stop_all_replays(&self, recording_id: Option<RecordingId>) -> Result<()> {
        let relevant_id = recording_id.map(|id| ("recording_id", id.get()));
        // SAFETY: `request` passes the live structure.
        self.request("stop_all_replays", relevant_id, |raw| unsafe {
            sys::aeron_archive_stop_all_replays(
                raw,
                recording_id.map_or(NULL_VALUE, RecordingId::get),
            )
        })
    }
}

/// Returns the text for C, and whether it is a response channel. A response channel gets its
/// address from the subscriber, not from the publisher.
pub(crate) fn checked(channel: &impl AsChannel) -> Result<(CString, bool)> {
    let text = channel.to_c_string(ChannelUse::Subscription)?;
    let uri: ChannelUri = text.to_string_lossy().parse().map_err(Error::from)?;
    if matches!(uri.control_mode(), Ok(Some(ControlMode::Response))) {
        return Ok((text, true));
    }
    Ok((channel.to_c_string(ChannelUse::Publication)?, false))
}
