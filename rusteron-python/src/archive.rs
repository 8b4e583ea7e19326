//! Sessions with an archive.

use std::sync::Arc;
use std::time::SystemTime;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rusteron_archive as rust;
use rusteron_archive::{ArchiveId, ReplayLength, ReplayParams, SourceLocation};

use crate::buffer::Payload;
use crate::channel_uri::Channel;
use crate::client::Aeron;
use crate::publication::{ExclusivePublication, Publication};
use crate::replay_merge::ReplayMerge;
use crate::settings::{Seconds, choice, each_setting, set_by_name};
use crate::slot::{Close, OwnedSlot, Scope, py_bool};
use crate::subscription::Subscription;
use crate::{error, exit, wait};

/// A session with an archive: an `ArchiveServer`, or Aeron's in Java.
///
/// Threads can share a session. Requests wait for the archive without the GIL, one after the other, up to the message
/// timeout. Failures raise `ArchiveError`. Ctrl-C ends the wait; the archive may still do what was asked, and the next
/// request waits for its answer.
#[pyclass(frozen, module = "rusteron")]
pub(crate) struct Archive {
    slot: Arc<OwnedSlot<Arc<rust::Archive>>>,
    scope: Scope,
}

impl Archive {
    /// Makes a request that the caller can interrupt.
    fn request<R: Send + 'static>(
        &self,
        py: Python<'_>,
        request: impl FnOnce(&rust::Archive) -> rust::Result<R> + Send + 'static,
    ) -> PyResult<R> {
        let archive = Arc::clone(&*self.slot.enter()?);
        // Dropped inside: closing waits.
        wait::interruptible(py, move || request(&archive))?.map_err(error::archive)
    }
}

/// Credentials that answer a challenge as well.
struct Credentials(Vec<u8>);

impl rust::CredentialsSupplier for Credentials {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        self.0.clone()
    }

    fn on_challenge(&mut self, _challenge: &[u8]) -> Vec<u8> {
        self.0.clone()
    }
}

/// "local" or "remote".
struct Source(SourceLocation);

impl<'py> FromPyObject<'_, 'py> for Source {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let names = [("local", SourceLocation::Local), ("remote", SourceLocation::Remote)];
        choice(&object, &names).map(Self)
    }
}

/// The part of a recording to replay.
fn params(position: Option<i64>, length: Option<&Bound<'_, PyAny>>) -> PyResult<ReplayParams> {
    let mut params = ReplayParams::new();
    if let Some(position) = position {
        params = params.position(position);
    }
    let length = match length {
        None => ReplayLength::Follow,
        Some(length) => match length.extract::<u64>() {
            Ok(length) => ReplayLength::Bytes(length),
            Err(_) => choice(
                length,
                &[("follow", ReplayLength::Follow), ("recorded", ReplayLength::Recorded)],
            )?,
        },
    };
    Ok(params.length(length))
}

#[pymethods]
impl Archive {
    /// Connects to an archive; waits, up to the message timeout.
    ///
    /// Settings are those of the archive's context: `control_request_channel`, `control_response_channel`,
    /// `message_timeout` and others; `credentials` are bytes for the archive's authenticator.
    #[staticmethod]
    #[pyo3(signature = (aeron, **settings))]
    fn connect(
        py: Python<'_>,
        aeron: &Bound<'_, Aeron>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut context = rust::ArchiveContext::new().map_err(error::client)?;
        each_setting(settings, |name, value| {
            if name == "credentials" {
                let credentials = Payload::of(value)?.bytes().to_vec();
                let set = context.set_credentials_supplier(Credentials(credentials));
                return set.map(drop).map_err(error::client);
            }
            let context = &mut context;
            rust::for_each_setting!(set_by_name!(context, name, value, error::client))
        })?;
        let handle = aeron.get().handle()?;
        let mut connecting = exit::detached(py, || rust::Archive::async_connect(&handle, context))
            .map_err(error::archive)?;
        let archive = wait::outcome(py, || connecting.poll(), error::archive)?;
        let scope = aeron.get().scope().clone();
        Ok(Self { slot: scope.own("archive session", Arc::new(archive)), scope })
    }

    /// The archive's own id, or `None` if the archive does not tell.
    #[getter]
    fn archive_id(&self) -> PyResult<Option<i64>> {
        Ok(self.slot.enter()?.archive_id().map(ArchiveId::get))
    }

    /// The id of this session.
    #[getter]
    fn control_session_id(&self) -> PyResult<i64> {
        Ok(self.slot.enter()?.control_session_id().get())
    }

    /// True if the session is connected.
    #[getter]
    fn is_connected(&self) -> PyResult<bool> {
        Ok(self.slot.enter()?.is_connected())
    }

    /// Adds a publication and records it. Returns the publication and the recording's id.
    fn add_recorded_publication(
        &self,
        py: Python<'_>,
        channel: Channel,
        stream_id: i32,
    ) -> PyResult<(Publication, i64)> {
        let (added, recording_id) = self
            .request(py, move |archive| archive.add_recorded_publication(&*channel, stream_id))?;
        Ok((Publication::new(&self.scope, added), recording_id.get()))
    }

    /// Adds an exclusive publication and records it. Returns the publication and the recording's id.
    fn add_recorded_exclusive_publication(
        &self,
        py: Python<'_>,
        channel: Channel,
        stream_id: i32,
    ) -> PyResult<(Py<ExclusivePublication>, i64)> {
        let (added, recording_id) = self.request(py, move |archive| {
            archive.add_recorded_exclusive_publication(&*channel, stream_id)
        })?;
        Ok((ExclusivePublication::new(py, &self.scope, added)?, recording_id.get()))
    }

    /// Has the archive record a channel and stream. Returns the id of the archive's subscription.
    ///
    /// `source_location` is "local" if the publisher uses the archive's driver, and "remote" otherwise. With `auto_stop`,
    /// the archive stops after the first recording has ended.
    #[pyo3(signature = (channel, stream_id, source_location=Source(SourceLocation::Local), auto_stop=false))]
    fn start_recording(
        &self,
        py: Python<'_>,
        channel: Channel,
        stream_id: i32,
        source_location: Source,
        auto_stop: bool,
    ) -> PyResult<i64> {
        let location = source_location.0;
        self.request(py, move |archive| {
            archive.start_recording(&*channel, stream_id, location, auto_stop).map(i64::from)
        })
    }

    /// Has the archive continue a recording. Returns the id of the archive's subscription.
    #[pyo3(signature = (recording_id, channel, stream_id, source_location=Source(SourceLocation::Local), auto_stop=false))]
    fn extend_recording(
        &self,
        py: Python<'_>,
        recording_id: i64,
        channel: Channel,
        stream_id: i32,
        source_location: Source,
        auto_stop: bool,
    ) -> PyResult<i64> {
        let location = source_location.0;
        self.request(py, move |archive| {
            archive
                .extend_recording(recording_id.into(), &*channel, stream_id, location, auto_stop)
                .map(i64::from)
        })
    }

    /// Stops recording a channel and stream.
    fn stop_recording(&self, py: Python<'_>, channel: Channel, stream_id: i32) -> PyResult<()> {
        self.request(py, move |archive| archive.stop_recording(&*channel, stream_id))
    }

    /// Stops what `start_recording` or `extend_recording` has started.
    fn stop_recording_subscription(&self, py: Python<'_>, subscription_id: i64) -> PyResult<()> {
        self.request(py, move |archive| archive.stop_recording_subscription(subscription_id.into()))
    }

    /// Stops a recording, and returns whether it was active.
    fn try_stop_recording_by_identity(&self, py: Python<'_>, recording_id: i64) -> PyResult<bool> {
        self.request(py, move |archive| archive.try_stop_recording_by_identity(recording_id.into()))
    }

    /// Lists the recordings, from a recording id on.
    #[pyo3(signature = (from_recording_id=0))]
    fn list_recordings(
        &self,
        py: Python<'_>,
        from_recording_id: i64,
    ) -> PyResult<Vec<RecordingDescriptor>> {
        self.request(py, move |archive| {
            archive
                .recordings_from(from_recording_id.into())
                .map(|found| found.map(Into::into))
                .collect()
        })
    }

    /// Lists the recordings of a stream whose channel contains a text.
    fn list_recordings_for_uri(
        &self,
        py: Python<'_>,
        channel_fragment: String,
        stream_id: i32,
    ) -> PyResult<Vec<RecordingDescriptor>> {
        self.request(py, move |archive| {
            archive
                .recordings_for_uri(&channel_fragment, stream_id)?
                .map(|found| found.map(Into::into))
                .collect()
        })
    }

    /// Returns a recording's description, or `None` if the archive has no such recording.
    fn list_recording(
        &self,
        py: Python<'_>,
        recording_id: i64,
    ) -> PyResult<Option<RecordingDescriptor>> {
        let found = self.request(py, move |archive| archive.recording(recording_id.into()))?;
        Ok(found.map(Into::into))
    }

    /// Returns the id of the newest recording that matches, or `None`.
    fn find_last_matching_recording(
        &self,
        py: Python<'_>,
        min_recording_id: i64,
        channel_fragment: String,
        stream_id: i32,
        session_id: i32,
    ) -> PyResult<Option<i64>> {
        self.request(py, move |archive| {
            archive.find_last_matching_recording(
                min_recording_id.into(),
                &channel_fragment,
                stream_id,
                session_id,
            )
        })
        .map(|found| found.map(i64::from))
    }

    /// Returns the position that an active recording has reached, or `None` if the recording is not active.
    fn recording_position(&self, py: Python<'_>, recording_id: i64) -> PyResult<Option<i64>> {
        self.request(py, move |archive| archive.recording_position(recording_id.into()))
    }

    /// Returns the position where a recording starts.
    fn start_position(&self, py: Python<'_>, recording_id: i64) -> PyResult<i64> {
        self.request(py, move |archive| archive.start_position(recording_id.into()))
    }

    /// Returns the position where a recording stopped, or `None` if the recording is active.
    fn stop_position(&self, py: Python<'_>, recording_id: i64) -> PyResult<Option<i64>> {
        self.request(py, move |archive| archive.stop_position(recording_id.into()))
    }

    /// Returns the greatest position that was recorded.
    fn max_recorded_position(&self, py: Python<'_>, recording_id: i64) -> PyResult<i64> {
        self.request(py, move |archive| archive.max_recorded_position(recording_id.into()))
    }

    /// Waits until the stream of a publication is being recorded. Returns the id of the recording.
    fn await_recording(&self, py: Python<'_>, session_id: i32, timeout: Seconds) -> PyResult<i64> {
        self.request(py, move |archive| {
            archive.await_recording(session_id, timeout.0).map(i64::from)
        })
    }

    /// Waits until a position is recorded. Returns the recorded position.
    fn await_recorded(
        &self,
        py: Python<'_>,
        recording_id: i64,
        position: i64,
        timeout: Seconds,
    ) -> PyResult<i64> {
        self.request(py, move |archive| {
            archive.await_recorded(recording_id.into(), position, timeout.0)
        })
    }

    /// Replays a recording to a new subscription.
    ///
    /// `position` is the start of the recording unless given. `length` is a number of bytes, "recorded" for what is
    /// recorded now, or "follow", the default, for all that is recorded until the recording ends.
    #[pyo3(signature = (recording_id, channel, stream_id, position=None, length=None))]
    fn replay(
        &self,
        py: Python<'_>,
        recording_id: i64,
        channel: Channel,
        stream_id: i32,
        position: Option<i64>,
        length: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Subscription> {
        let params = params(position, length)?;
        let added = self.request(py, move |archive| {
            archive.replay(recording_id.into(), &*channel, stream_id, params)
        })?;
        Ok(Subscription::new(&self.scope, added))
    }

    /// Starts a replay to a channel that the caller subscribes to. Returns the replay's id.
    #[pyo3(signature = (recording_id, channel, stream_id, position=None, length=None))]
    fn start_replay(
        &self,
        py: Python<'_>,
        recording_id: i64,
        channel: Channel,
        stream_id: i32,
        position: Option<i64>,
        length: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<i64> {
        let params = params(position, length)?;
        self.request(py, move |archive| {
            archive.start_replay(recording_id.into(), &*channel, stream_id, params).map(i64::from)
        })
    }

    /// Stops a replay.
    fn stop_replay(&self, py: Python<'_>, replay_session_id: i64) -> PyResult<()> {
        self.request(py, move |archive| archive.stop_replay(replay_session_id.into()))
    }

    /// Stops all replays, or all of a recording.
    #[pyo3(signature = (recording_id=None))]
    fn stop_all_replays(&self, py: Python<'_>, recording_id: Option<i64>) -> PyResult<()> {
        self.request(py, move |archive| archive.stop_all_replays(recording_id.map(Into::into)))
    }

    /// Cuts a recording that is not active off at a position. Returns the number of deleted segments.
    fn truncate_recording(
        &self,
        py: Python<'_>,
        recording_id: i64,
        position: i64,
    ) -> PyResult<u64> {
        self.request(py, move |archive| archive.truncate_recording(recording_id.into(), position))
    }

    /// Deletes a recording that is not active. Returns the number of deleted segments.
    fn purge_recording(&self, py: Python<'_>, recording_id: i64) -> PyResult<u64> {
        self.request(py, move |archive| archive.purge_recording(recording_id.into()))
    }

    /// Starts a replay that is merged with the live stream.
    ///
    /// `subscription` has a channel with `control-mode=manual`. Until the merge is closed, session and subscription
    /// belong to the merge, and calls of them raise `InUse`.
    #[pyo3(signature = (
        subscription, recording_id, replay_channel, replay_destination, live_destination, start_position=0,
        progress_timeout=None, live_timeout=None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn replay_merge(
        &self,
        py: Python<'_>,
        subscription: &Bound<'_, Subscription>,
        recording_id: i64,
        replay_channel: Channel,
        replay_destination: Channel,
        live_destination: Channel,
        start_position: i64,
        progress_timeout: Option<Seconds>,
        live_timeout: Option<Seconds>,
    ) -> PyResult<ReplayMerge> {
        let mut builder =
            rust::ReplayMerge::builder(&*replay_channel, &*replay_destination, &*live_destination)
                .start_position(start_position);
        if let Some(timeout) = progress_timeout {
            builder = builder.progress_timeout(timeout.0);
        }
        if let Some(timeout) = live_timeout {
            builder = builder.live_timeout(timeout.0);
        }
        ReplayMerge::start(
            py,
            &self.scope,
            builder,
            &self.slot,
            subscription.get().slot(),
            recording_id,
        )
    }

    /// True if the session was closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.slot.is_closed()
    }

    /// Closes the session. Does nothing if the session is closed.
    fn close(&self) {
        self.slot.close();
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }

    fn __repr__(&self) -> String {
        format!("Archive(is_closed={})", py_bool(self.is_closed()))
    }
}

snapshot! {
    /// A recording.
    RecordingDescriptor of found: rust::RecordingDescriptor {
        recording_id: i64 = found.recording_id.get(),
        start_time: SystemTime = found.start_time,
        stop_time: Option<SystemTime> = found.stop_time,
        start_position: i64 = found.start_position,
        stop_position: Option<i64> = found.stop_position,
        initial_term_id: i32 = found.initial_term_id,
        segment_file_length: usize = found.segment_file_length,
        term_buffer_length: usize = found.term_buffer_length,
        mtu_length: usize = found.mtu_length,
        session_id: i32 = found.session_id,
        stream_id: i32 = found.stream_id,
        stripped_channel: String = found.stripped_channel,
        original_channel: String = found.original_channel,
        source_identity: String = found.source_identity,
    }
}

#[pymethods]
impl RecordingDescriptor {
    fn __repr__(&self) -> String {
        format!(
            "RecordingDescriptor(recording_id={}, stripped_channel={:?}, stream_id={}, session_id={})",
            self.recording_id, self.stripped_channel, self.stream_id, self.session_id
        )
    }
}
