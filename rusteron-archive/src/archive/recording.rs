//! Starting and stopping recordings, and how far they have come.

use std::ffi::c_int;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_client::raw_client::RawClient;
use rusteron_client::{
    AsChannel, ChannelUri, Error, ErrorKind, ExclusivePublication, Position, Publication,
    PublicationConstants, UncheckedChannel,
};
use rusteron_core::RecordingId;
use rusteron_core::channel::{ChannelText, ChannelUse, Media};
use rusteron_sys::archive as sys;

use crate::archive::Archive;
use crate::checks::{not_negative, unless_null};
use crate::error::{ArchiveError, ArchiveErrorKind, Result};
use crate::ids::RecordingSubscriptionId;
use crate::recording_pos::RecordingPos;

/// Location of the publication to be recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SourceLocation {
    /// On the archive's own media driver: IPC, or a UDP publication that the archive spies on.
    Local = sys::aeron_archive_source_location_en_AERON_ARCHIVE_SOURCE_LOCATION_LOCAL,
    /// Anywhere: the archive subscribes to the channel.
    Remote = sys::aeron_archive_source_location_en_AERON_ARCHIVE_SOURCE_LOCATION_REMOTE,
}

/// Recording.
impl Archive {
    /// Adds a publication, and has the archive record it from its beginning. Returns the publication and the id of the
    /// recording.
    ///
    /// The recording ends with the publication, or when it is stopped, and the archive's
    /// subscription ends with it. The archive has to be on the same media driver as the client, and
    /// reads a UDP publication as a spy. A UDP channel that does not name `ssc` gets `ssc=true`, so
    /// that the spy counts as a subscriber: otherwise nothing is sent, and nothing recorded, before
    /// there is another subscriber. With `ssc=false`, messages wait for a subscriber.
    ///
    /// Blocks as [`start_recording`](Self::start_recording) and
    /// [`Aeron::add_publication`](rusteron_client::Aeron::add_publication) do together, and then until the recording
    /// has started, for the [message timeout](crate::ArchiveContext::message_timeout) at most.
    ///
    /// # Errors
    /// - [`ArchiveErrorKind::Client`] with [`ErrorKind::IllegalState`]: this client has the publication
    ///   already, so that its beginning is over;
    /// - others, as for the two methods and [`await_recording`](Self::await_recording).
    ///
    /// After an error, the publication is closed again, and the archive's subscription is removed if the archive answers.
    ///
    /// Corresponds to `aeron_archive_add_recorded_publication`.
    #[doc(alias = "aeron_archive_add_recorded_publication")]
    pub fn add_recorded_publication(
        &self,
        channel: impl AsChannel,
        stream_id: i32,
    ) -> Result<(Publication, RecordingId)> {
        let channel = counting_spies(&channel)?;
        let publication = self.aeron().add_publication(UncheckedChannel(&channel), stream_id)?;
        if publication.original_registration_id() != publication.registration_id() {
            return Err(Error::new(
                ErrorKind::IllegalState,
                format!("publication already added for channel={channel} streamId={stream_id}"),
            )
            .into());
        }
        let recording_id = self.record(publication.constants())?;
        Ok((publication, recording_id))
    }

    /// Adds an exclusive publication, and has the archive record it from its beginning. Returns the publication and the
    /// id of the recording.
    ///
    /// As [`add_recorded_publication`](Self::add_recorded_publication).
    ///
    /// # Errors
    /// As for [`start_recording`](Self::start_recording), [`await_recording`](Self::await_recording) and
    /// [`Aeron::add_exclusive_publication`](rusteron_client::Aeron::add_exclusive_publication). After an error, the
    /// publication is closed again.
    ///
    /// Corresponds to `aeron_archive_add_recorded_exclusive_publication`.
    #[doc(alias = "aeron_archive_add_recorded_exclusive_publication")]
    pub fn add_recorded_exclusive_publication(
        &self,
        channel: impl AsChannel,
        stream_id: i32,
    ) -> Result<(ExclusivePublication, RecordingId)> {
        let channel = counting_spies(&channel)?;
        let publication =
            self.aeron().add_exclusive_publication(UncheckedChannel(&channel), stream_id)?;
        let recording_id = self.record(publication.constants())?;
        Ok((publication, recording_id))
    }

    fn record(&self, publication: &PublicationConstants) -> Result<RecordingId> {
        let &PublicationConstants { stream_id, session_id, .. } = publication;
        let channel = limited_to_session(&publication.channel, session_id);
        let subscribed = UncheckedChannel(&channel);
        let earlier = self.active_recordings(session_id);
        // No other publication has this session, so a subscription that outlives it would record
        // nothing, and count against the archive's limit until somebody stops it.
        let auto_stop = true;
        let started = self.start_recording(subscribed, stream_id, SourceLocation::Local, auto_stop);
        let recorded = match started {
            // The archive has refused, perhaps because of a subscription that is not ours.
            Err(error) if error.code() != 0 => return Err(error),
            Err(error) => Err(error),
            Ok(_) => self.await_recording_of(&channel, publication, earlier),
        };
        recorded.inspect_err(|_| {
            // The caller gets neither the subscription's id nor its channel with which to end it.
            // After a timeout, the archive may yet start it, and executes this request after that.
            let _ = self.try_stop_recording(subscribed, stream_id);
        })
    }

    /// Returns the ids of the active recordings of a session id, on any stream.
    fn active_recordings(&self, session_id: i32) -> Vec<RecordingId> {
        let mut ids = Vec::new();
        RecordingPos::find(self.aeron(), |found| {
            if found.is_of_session(session_id, self.archive_id()) {
                ids.push(found.recording_id());
            }
            false
        });
        ids
    }

    /// Waits for the recording of a subscription to this channel. Publications on different channels or streams can have
    /// equal session ids, so the archive has to tell whose recording a counter belongs to.
    fn await_recording_of(
        &self,
        channel: &str,
        publication: &PublicationConstants,
        mut others: Vec<RecordingId>,
    ) -> Result<RecordingId> {
        let start = Instant::now();
        let timeout = self.context().message_timeout();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            let id = self.await_recording_except(publication.session_id, &others, left)?;
            let is_own = self.recording(id)?.is_some_and(|found| {
                found.stream_id == publication.stream_id && found.original_channel == channel
            });
            if is_own {
                return Ok(id);
            }
            others.push(id);
        }
    }

    /// Has the archive record a channel and stream from now on. Each publisher's stream becomes a
    /// recording of its own. Returns the id of the archive's subscription, with which recording can
    /// be stopped.
    ///
    /// A channel with a session id counts as another channel than the one without. A publication
    /// that matches both is recorded twice. With `auto_stop`, the subscription ends with the first
    /// recording.
    ///
    /// Recordings appear as publishers appear: the answer is about the subscription only. The ids
    /// of recordings can be found with [`RecordingPos`](crate::RecordingPos) or
    /// [`find_last_matching_recording`](Self::find_last_matching_recording).
    ///
    /// # Errors
    /// - [`ArchiveErrorKind::ActiveSubscription`]: it is recorded already;
    /// - [`ArchiveErrorKind::MaxRecordings`]: the archive records as much as it may;
    /// - [`ArchiveErrorKind::StorageSpace`]: there is not enough space;
    /// - [`ArchiveErrorKind::Refused`] or others, in the archive's words;
    /// - [`ArchiveErrorKind::Timeout`]: no answer in time;
    /// - [`ArchiveErrorKind::MalformedMessage`]: an answer cannot be decoded;
    /// - [`ArchiveErrorKind::NotConnected`]: the connection was lost;
    /// - [`ArchiveErrorKind::Reentrant`]: called in a delegating invoker;
    /// - [`ArchiveErrorKind::Client`]: the channel is not valid, or this is a callback of a conductor.
    ///
    /// Corresponds to `aeron_archive_start_recording`.
    #[doc(alias = "aeron_archive_start_recording")]
    pub fn start_recording(
        &self,
        channel: impl AsChannel,
        stream_id: i32,
        source_location: SourceLocation,
        auto_stop: bool,
    ) -> Result<RecordingSubscriptionId> {
        let channel = channel.to_c_string(ChannelUse::Subscription)?;
        // SAFETY: `ask` passes the live structure; the channel lives during the call.
        self.ask("start_recording", None, |subscription_id, raw| unsafe {
            sys::aeron_archive_start_recording(
                subscription_id,
                raw,
                channel.as_ptr(),
                stream_id,
                source_location as u32,
                auto_stop,
            )
        })
        .map(RecordingSubscriptionId::new)
    }

    /// Has the archive continue a recording that has stopped. Returns the id of the archive's
    /// subscription.
    ///
    /// The publication has to begin where the recording ended, with the same stream id, term length
    /// and initial term id. [`RecordingDescriptor::continuation`](crate::RecordingDescriptor) makes
    /// a channel for it.
    ///
    /// # Errors
    /// - [`ArchiveErrorKind::UnknownRecording`]: there is no such recording;
    /// - [`ArchiveErrorKind::ActiveRecording`]: it is being recorded;
    /// - [`ArchiveErrorKind::InvalidExtension`]: the stream does not continue it;
    /// - others, as for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_extend_recording`.
    #[doc(alias = "aeron_archive_extend_recording")]
    pub fn extend_recording(
        &self,
        recording_id: RecordingId,
        channel: impl AsChannel,
        stream_id: i32,
        source_location: SourceLocation,
        auto_stop: bool,
    ) -> Result<RecordingSubscriptionId> {
        let channel = channel.to_c_string(ChannelUse::Subscription)?;
        let id = Some(("recording_id", recording_id.get()));
        // SAFETY: as in `start_recording`.
        self.ask("extend_recording", id, |subscription_id, raw| unsafe {
            sys::aeron_archive_extend_recording(
                subscription_id,
                raw,
                recording_id.get(),
                channel.as_ptr(),
                stream_id,
                source_location as u32,
                auto_stop,
            )
        })
        .map(RecordingSubscriptionId::new)
    }

    /// Ends a subscription that [`start_recording`](Self::start_recording) added, and its
    /// recordings.
    ///
    /// # Errors
    /// [`ArchiveErrorKind::UnknownSubscription`]: there is no such subscription; others, as for
    /// `start_recording`.
    ///
    /// Corresponds to `aeron_archive_stop_recording_subscription`.
    #[doc(alias = "aeron_archive_stop_recording_subscription")]
    pub fn stop_recording_subscription(
        &self,
        subscription_id: RecordingSubscriptionId,
    ) -> Result<()> {
        let id = Some(("subscription_id", subscription_id.get()));
        // SAFETY: `request` passes the live structure.
        self.request("stop_recording_subscription", id, |raw| unsafe {
            sys::aeron_archive_stop_recording_subscription(raw, subscription_id.get())
        })
    }

    /// As [`stop_recording_subscription`](Self::stop_recording_subscription), but returns `false`
    /// if there is no such subscription.
    ///
    /// # Errors
    /// As for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_try_stop_recording_subscription`.
    #[doc(alias = "aeron_archive_try_stop_recording_subscription")]
    pub fn try_stop_recording_subscription(
        &self,
        subscription_id: RecordingSubscriptionId,
    ) -> Result<bool> {
        let id = Some(("subscription_id", subscription_id.get()));
        // SAFETY: `ask` passes the live structure.
        self.ask("try_stop_recording_subscription", id, |is_stopped, raw| unsafe {
            sys::aeron_archive_try_stop_recording_subscription(
                is_stopped,
                raw,
                subscription_id.get(),
            )
        })
    }

    /// Ends the subscription to a channel and stream, and its recordings. The channel is the one
    /// that was given to `start_recording`.
    ///
    /// # Errors
    /// [`ArchiveErrorKind::UnknownSubscription`]: it is not recorded; others, as for
    /// [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_stop_recording_channel_and_stream`.
    #[doc(alias = "aeron_archive_stop_recording_channel_and_stream")]
    pub fn stop_recording(&self, channel: impl AsChannel, stream_id: i32) -> Result<()> {
        let channel = channel.to_c_string(ChannelUse::Subscription)?;
        // SAFETY: as in `start_recording`.
        self.request("stop_recording", None, |raw| unsafe {
            sys::aeron_archive_stop_recording_channel_and_stream(raw, channel.as_ptr(), stream_id)
        })
    }

    /// As [`stop_recording`](Self::stop_recording), but returns `false` if the channel and stream
    /// are not recorded.
    ///
    /// # Errors
    /// As for [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_try_stop_recording_channel_and_stream`.
    #[doc(alias = "aeron_archive_try_stop_recording_channel_and_stream")]
    pub fn try_stop_recording(&self, channel: impl AsChannel, stream_id: i32) -> Result<bool> {
        let channel = channel.to_c_string(ChannelUse::Subscription)?;
        // SAFETY: as in `start_recording`.
        self.ask("try_stop_recording", None, |is_stopped, raw| unsafe {
            sys::aeron_archive_try_stop_recording_channel_and_stream(
                is_stopped,
                raw,
                channel.as_ptr(),
                stream_id,
            )
        })
    }

    /// Stops one recording. Returns `false` if it is not active.
    ///
    /// # Errors
    /// [`ArchiveErrorKind::UnknownRecording`]: there is no such recording; others, as for
    /// [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_try_stop_recording_by_identity`.
    #[doc(alias = "aeron_archive_try_stop_recording_by_identity")]
    pub fn try_stop_recording_by_identity(&self, recording_id: RecordingId) -> Result<bool> {
        let id = Some(("recording_id", recording_id.get()));
        // SAFETY: `ask` passes the live structure.
        self.ask("try_stop_recording_by_identity", id, |is_stopped, raw| unsafe {
            sys::aeron_archive_try_stop_recording_by_identity(is_stopped, raw, recording_id.get())
        })
    }

    /// Stops the recording that [`add_recorded_publication`](Self::add_recorded_publication)
    /// started. The publication goes on.
    ///
    /// # Errors
    /// As for [`stop_recording`](Self::stop_recording).
    ///
    /// Corresponds to `aeron_archive_stop_recording_publication`.
    #[doc(alias = "aeron_archive_stop_recording_publication")]
    pub fn stop_recording_publication(&self, publication: &Publication) -> Result<()> {
        self.stop_recording_of(publication.constants())
    }

    /// Stops the recording that
    /// [`add_recorded_exclusive_publication`](Self::add_recorded_exclusive_publication) started.
    /// The publication goes on.
    ///
    /// # Errors
    /// As for [`stop_recording`](Self::stop_recording).
    ///
    /// Corresponds to `aeron_archive_stop_recording_exclusive_publication`.
    #[doc(alias = "aeron_archive_stop_recording_exclusive_publication")]
    pub fn stop_recording_exclusive_publication(
        &self,
        publication: &ExclusivePublication,
    ) -> Result<()> {
        self.stop_recording_of(publication.constants())
    }

    fn stop_recording_of(&self, publication: &PublicationConstants) -> Result<()> {
        let channel = limited_to_session(&publication.channel, publication.session_id);
        self.stop_recording(UncheckedChannel(&channel), publication.stream_id)
    }

    /// Returns the recorded position of an active recording, or `None` if the recording is not
    /// active.
    ///
    /// Everything up to this position has been written to the archive's files.
    ///
    /// # Errors
    /// [`ArchiveErrorKind::UnknownRecording`]: there is no such recording; others, as for
    /// [`start_recording`](Self::start_recording).
    ///
    /// Corresponds to `aeron_archive_get_recording_position`.
    #[doc(alias("aeron_archive_get_recording_position", "getRecordingPosition"))]
    pub fn recording_position(&self, recording_id: RecordingId) -> Result<Option<Position>> {
        let get = sys::aeron_archive_get_recording_position;
        self.position("recording_position", recording_id, get).map(unless_null)
    }

    /// Returns the position at which a recording begins.
    ///
    /// # Errors
    /// As for [`recording_position`](Self::recording_position).
    ///
    /// Corresponds to `aeron_archive_get_start_position`.
    #[doc(alias("aeron_archive_get_start_position", "getStartPosition"))]
    pub fn start_position(&self, recording_id: RecordingId) -> Result<Position> {
        self.position("start_position", recording_id, sys::aeron_archive_get_start_position)
    }

    /// Returns the position at which a recording ends, or `None` if it is active.
    ///
    /// # Errors
    /// As for [`recording_position`](Self::recording_position).
    ///
    /// Corresponds to `aeron_archive_get_stop_position`.
    #[doc(alias("aeron_archive_get_stop_position", "getStopPosition"))]
    pub fn stop_position(&self, recording_id: RecordingId) -> Result<Option<Position>> {
        let get = sys::aeron_archive_get_stop_position;
        self.position("stop_position", recording_id, get).map(unless_null)
    }

    /// Returns the recorded position of an active recording, or the end of one that is not active.
    ///
    /// # Errors
    /// As for [`recording_position`](Self::recording_position).
    ///
    /// Corresponds to `aeron_archive_get_max_recorded_position`.
    #[doc(alias("aeron_archive_get_max_recorded_position", "getMaxRecordedPosition"))]
    pub fn max_recorded_position(&self, recording_id: RecordingId) -> Result<Position> {
        let get = sys::aeron_archive_get_max_recorded_position;
        self.position("max_recorded_position", recording_id, get)
    }

    /// Waits until the stream of a publication is being recorded, and returns the id of the recording.
    /// [`start_recording`](Self::start_recording) and [`extend_recording`](Self::extend_recording) do not wait for that.
    ///
    /// Blocks until then, or until the timeout is over, and yields the processor between two looks at the counters of
    /// the media driver. The archive has to be on the same media driver as the client. For a client without a conductor
    /// thread, does the conductor's work meanwhile. [`RecordingPos::find_by_session_id`] is one look, which does not
    /// block: the form for async code.
    ///
    /// # Errors
    /// - [`ArchiveErrorKind::Timeout`]: no recording of the session within the timeout;
    /// - [`ArchiveErrorKind::Client`]: this is a callback of a conductor, or the client is closed.
    pub fn await_recording(&self, session_id: i32, timeout: Duration) -> Result<RecordingId> {
        self.await_recording_except(session_id, &[], timeout)
    }

    fn await_recording_except(
        &self,
        session_id: i32,
        others: &[RecordingId],
        timeout: Duration,
    ) -> Result<RecordingId> {
        const OPERATION: &str = "await_recording";
        let aeron = self.aeron();
        let client = RawClient::new(aeron);
        client.forbid_blocking(OPERATION, None)?;
        let start = Instant::now();
        let found = client.wait_for(|| -> Result<_> {
            aeron.check_open()?;
            // Read before the counters: however long reading them takes, the conductor works between two looks.
            let is_over = start.elapsed() >= timeout;
            let found = RecordingPos::find(aeron, |found| {
                found.is_of_session(session_id, self.archive_id())
                    && !others.contains(&found.recording_id())
            });
            Ok((found.is_some() || is_over).then_some(found))
        })?;
        found.map(|found| found.recording_id()).ok_or_else(|| {
            let text = format!(
                "session {session_id} is not recorded after {timeout:.1?} by an archive on the client's media driver"
            );
            ArchiveError::new(ArchiveErrorKind::Timeout, OPERATION, text)
        })
    }

    /// Waits until everything up to a position has been recorded, and returns the recorded
    /// position.
    ///
    /// Polls the archive at intervals of up to 10 ms. A request that has begun is not abandoned. So
    /// two requests can outlast `timeout`, each for as long as [`Archive`] says.
    ///
    /// # Errors
    /// - [`ArchiveErrorKind::Timeout`]: the position was not reached within the timeout;
    /// - [`ArchiveErrorKind::InvalidPosition`]: the recording stopped before the position;
    /// - others, as for [`recording_position`](Self::recording_position).
    ///
    /// Corresponds to `aeron_archive_get_recording_position` and
    /// `aeron_archive_get_max_recorded_position`.
    #[doc(alias(
        "aeron_archive_get_recording_position",
        "aeron_archive_get_max_recorded_position"
    ))]
    pub fn await_recorded(
        &self,
        recording_id: RecordingId,
        position: Position,
        timeout: Duration,
    ) -> Result<Position> {
        const OPERATION: &str = "await_recorded";
        const LONGEST_PAUSE: Duration = Duration::from_millis(10);
        let failed = |kind, text| {
            Err(ArchiveError::new(kind, OPERATION, text).about(Some(recording_id.get())))
        };
        not_negative(OPERATION, "position", position)?;
        let start = Instant::now();
        let mut pause = Duration::from_micros(50);
        loop {
            let active = self.recording_position(recording_id)?;
            let recorded = match active {
                Some(recorded) => recorded,
                // A recording that has just stopped may end after the position seen last.
                None => self.max_recorded_position(recording_id)?,
            };
            if recorded >= position {
                return Ok(recorded);
            }
            if active.is_none() {
                let text = format!("recording stopped at {recorded}, before {position}");
                return failed(ArchiveErrorKind::InvalidPosition, text);
            }
            let Some(left) = timeout.checked_sub(start.elapsed()) else {
                let text = format!("recorded up to {recorded}, awaited {position}");
                return failed(ArchiveErrorKind::Timeout, text);
            };
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Sends a request whose answer is a position of a recording.
    fn position(
        &self,
        operation: &'static str,
        recording_id: RecordingId,
        get: unsafe extern "C" fn(*mut i64, *mut sys::aeron_archive_t, i64) -> c_int,
    ) -> Result<Position> {
        let id = Some(("recording_id", recording_id.get()));
        // SAFETY: `ask` passes the live structure; all four functions are declared alike.
        self.ask(operation, id, |position, raw| unsafe { get(position, raw, recording_id.get()) })
    }
}

/// Adds `ssc=true` to a UDP channel that does not name `ssc`, so that the sender counts the archive's spy as a
/// subscriber. Otherwise, the text stays as the caller wrote it; the channel's own check is over.
fn counting_spies(channel: &impl AsChannel) -> Result<String> {
    let text = channel.to_c_string(ChannelUse::Publication)?;
    let text = text.to_string_lossy().into_owned();
    let parts = ChannelText::new(&text);
    let is_named = parts.values("ssc").next().is_some();
    Ok(if parts.media() == Some(Media::Udp) && !is_named {
        parts.with("ssc", true).to_string()
    } else {
        text
    })
}

/// Limits the channel of a publication to its session. The publication exists, so a channel that [`ChannelUri`] refuses
/// is unchecked, and its text stays as it is.
fn limited_to_session(channel: &str, session_id: i32) -> String {
    if let Ok(uri) = with_session_id(channel, session_id) {
        return uri.to_string();
    }
    ChannelText::new(channel).with("session-id", session_id).to_string()
}

/// Adds a session id to a channel, which limits it to one publisher.
pub(crate) fn with_session_id(channel: &str, session_id: i32) -> Result<ChannelUri> {
    let uri: ChannelUri = channel.parse().map_err(Error::from)?;
    Ok(uri.to_builder().session_id(session_id).build().map_err(Error::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_stay_as_they_were_written() {
        for (channel, expected) in [
            ("aeron:ipc?term-length=64K", "aeron:ipc?term-length=64K"),
            ("aeron:udp?", "aeron:udp?ssc=true"),
            ("aeron:udp?endpoint=A|mtu=8K", "aeron:udp?endpoint=A|mtu=8K|ssc=true"),
            ("aeron:udp?ssc=false|endpoint=A", "aeron:udp?ssc=false|endpoint=A"),
        ] {
            let text = counting_spies(&UncheckedChannel(channel)).expect("no danger");
            assert_eq!(text, expected);
        }
        assert!(counting_spies(&"aeron:udp?endpoint=A").is_err(), "checked as the caller asked");
        for (channel, expected) in [
            ("aeron:ipc", "aeron:ipc?session-id=-7"),
            ("aeron:ipc?session-id=3", "aeron:ipc?session-id=-7"),
            ("aeron:udp?session-id=tag:1|endpoint=A", "aeron:udp?endpoint=A|session-id=-7"),
        ] {
            assert_eq!(limited_to_session(channel, -7), expected);
        }
    }
}
