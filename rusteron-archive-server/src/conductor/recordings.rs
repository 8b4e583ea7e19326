//! Recordings: from an image to the catalog's stop position.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::catalog::{Catalog, CatalogError, Descriptor, NULL_POSITION, NewRecording};
use crate::channel::Channel;
use crate::conductor::Conductor;
use crate::conductor::effect::{
    Clock, Effect, Failure, ImageDetails, Outside, Progress, RecordingId, RegistrationId, Sending,
    SessionId, StartRecording,
};
use crate::conductor::sessions::Requester;
use crate::conductor::subscriptions::{Purpose, refused_channel};
use crate::control::responses::{Answer, SignalEvent};
use crate::mark_file::PositionSlot;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::messages::{RecordingProgress, RecordingStarted, RecordingStopped};
use crate::protocol::signal::Signal;
use crate::segment::cut::clear_behind;

/// The pause before the catalog is asked again to take a stop position.
const CATALOG_RETRY_NS: i64 = 1_000_000_000;
/// Attempts to publish the beginning or the end of a recording. Progress is published with the next position.
const EVENT_ATTEMPTS: usize = 3;

/// A recording in progress.
#[derive(Debug)]
pub(crate) struct ActiveRecording {
    pub(super) subscription: RegistrationId,
    requester: Requester,
    purpose: Purpose,
    pub(crate) progress: Arc<Progress>,
    session_id: i32,
    stream_id: i32,
    original_channel: String,
    source_identity: String,
    /// Where the image was joined.
    join_position: i64,
    /// The counter is there.
    has_started: bool,
    is_aborted: bool,
    /// The position that recording events have announced.
    announced_position: i64,
    /// Its end, which the catalog could not take yet, and when to ask it again.
    end: Option<(i64, i64)>,
}

impl ActiveRecording {
    /// The position up to which everything is recorded.
    pub(crate) fn position(&self) -> i64 {
        self.progress.position.load(Ordering::Acquire)
    }

    /// Of the image.
    pub(super) fn session_id(&self) -> i32 {
        self.session_id
    }

    pub(super) fn abort(&mut self, recording: RecordingId, out: &mut dyn Outside) {
        if !self.is_aborted && self.has_started && self.end.is_none() {
            out.order(Effect::AbortRecording { recording });
        }
        self.is_aborted = true;
    }
}

/// All recordings in progress.
pub(crate) type ActiveRecordings = BTreeMap<RecordingId, ActiveRecording>;

pub(super) fn unknown_recording(catalog: &Catalog, recording: RecordingId) -> Failure {
    unknown(catalog, recording, format!("unknown recording id: {recording}"))
}

/// Returns the refusal of a request for a recording that is not served. Its text is Java's, and the
/// reason follows if the recording was set aside.
pub(super) fn unknown(catalog: &Catalog, recording: RecordingId, mut text: String) -> Failure {
    if let Some(reason) = catalog.why_set_aside(recording) {
        text = format!("{text}: it was set aside when the archive started: {reason}");
    }
    Failure::new(ErrorCode::UnknownRecording, text)
}

pub(super) fn catalog_failure(error: &CatalogError) -> Failure {
    let code = if error.is_storage_full() { ErrorCode::StorageSpace } else { ErrorCode::Generic };
    Failure::new(code, error.to_string())
}

/// Reports why what a client has begun has ended, or cannot begin.
pub(super) fn report(failure: &Failure, out: &mut dyn Outside) {
    match failure.is_mistake {
        true => out.record_mistake(&failure.text),
        false => out.report(&failure.text),
    }
}

impl Conductor {
    /// A subscription has an image: a recording begins, or goes on.
    pub(crate) fn on_recording_image(
        &mut self,
        subscription: RegistrationId,
        image: &ImageDetails,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        let Some(source) = self.subscriptions.get_mut(subscription) else { return };
        if source.is_closing {
            return;
        }
        let (requester, purpose, auto_stop) = (source.requester, source.purpose, source.auto_stop);
        let outcome = match purpose {
            Purpose::Start => self.record_image(subscription, image, now, out),
            Purpose::Extend(recording) => self.extend_by_image(subscription, recording, image, out),
        };
        if let Err(failure) = outcome {
            report(&failure, out);
            self.sessions.respond(requester, &Answer::Error(failure), now, out);
            if auto_stop && purpose != Purpose::Start {
                self.close_subscription(subscription, out);
            }
        }
    }

    fn record_image(
        &mut self,
        subscription: RegistrationId,
        image: &ImageDetails,
        now: Clock,
        out: &mut dyn Outside,
    ) -> Result<(), Failure> {
        self.check_recording_limit(0)?;
        self.check_storage_space()?;
        let Some(source) = self.subscriptions.get_mut(subscription) else { return Ok(()) };
        let new = NewRecording {
            start_position: image.join_position,
            initial_term_id: image.initial_term_id,
            segment_length: self.settings.segment_length.max(image.term_length),
            term_length: image.term_length,
            mtu: image.mtu,
            session_id: image.session_id,
            stream_id: source.stream_id,
            stripped_channel: &source.stripped_channel,
            original_channel: &source.original_channel,
            source_identity: &image.source_identity,
        };
        let recording =
            self.catalog.add(new, now.epoch_ms).map_err(|error| catalog_failure(&error))?;
        let slot = self.claim_slot(recording, image.join_position);
        let progress = Progress::new(image.join_position, slot);
        self.begin(recording, subscription, image, progress, out);
        Ok(())
    }

    fn extend_by_image(
        &mut self,
        subscription: RegistrationId,
        recording: RecordingId,
        image: &ImageDetails,
        out: &mut dyn Outside,
    ) -> Result<(), Failure> {
        let Some(source) = self.subscriptions.get_mut(subscription) else { return Ok(()) };
        if self.recordings.contains_key(&recording) {
            return Err(Failure::new(
                ErrorCode::ActiveRecording,
                format!(
                    "cannot extend active recording {recording} streamId={} channel={}",
                    source.stream_id, source.original_channel
                ),
            ));
        }
        let (requester, stream_id) = (source.requester, source.stream_id);
        let place = format!(": streamId={} channel={}", source.stream_id, source.original_channel);
        self.check_recording_limit(0)?;
        self.check_storage_space()?;
        let descriptor = self.settled(recording)?;
        self.check_extension(&descriptor, &place)?;
        let invalid = |text: String| {
            let text = format!("cannot extend recording {recording} {text}");
            Failure::new(ErrorCode::InvalidExtension, text)
        };
        if image.join_position != descriptor.stop_position {
            return Err(invalid(format!(
                "image.joinPosition={} != rec.stopPosition={}",
                image.join_position, descriptor.stop_position
            )));
        }
        let fields = [
            ("initialTermId", image.initial_term_id, descriptor.initial_term_id),
            ("termBufferLength", image.term_length, descriptor.term_length),
            ("mtuLength", image.mtu, descriptor.mtu),
            // A replication may have described an empty recording anew.
            ("streamId", stream_id, descriptor.stream_id),
        ];
        for (name, theirs, ours) in fields {
            if theirs != ours {
                return Err(invalid(format!("image.{name}={theirs} != rec.{name}={ours}")));
            }
        }
        let geometry = descriptor.geometry();
        let level = self.catalog.sync_level();
        let kept = clear_behind(&*self.storage, &geometry, descriptor.stop_position, level)
            .map_err(|error| invalid(format!("behind its end: {error}")))?;
        if !kept.is_empty() {
            out.report(&format!(
                "recording {recording} is extended at {}, the end that the catalog has, and what its segments had behind \
                 that is in {} now: if the catalog is an older copy, it was recorded since",
                descriptor.stop_position,
                kept.join(", ")
            ));
        }
        // Before the catalog forgets the end.
        let slot = self.claim_slot(recording, image.join_position);
        let progress = Progress::new(image.join_position, slot);
        // Before the first byte is written: after a crash, recovery looks at active recordings only.
        self.catalog
            .set_extended(recording, requester.session, requester.correlation_id, image.session_id)
            .map_err(|error| {
                progress.release_slot();
                catalog_failure(&error)
            })?;
        self.begin(recording, subscription, image, progress, out);
        Ok(())
    }

    fn begin(
        &mut self,
        recording: RecordingId,
        subscription: RegistrationId,
        image: &ImageDetails,
        progress: Arc<Progress>,
        out: &mut dyn Outside,
    ) {
        let Some(geometry) = self.catalog.get(recording).map(Descriptor::geometry) else { return };
        let Some(source) = self.subscriptions.get_mut(subscription) else { return };
        source.recordings += 1;
        let active = ActiveRecording {
            subscription,
            requester: source.requester,
            purpose: source.purpose,
            progress: Arc::clone(&progress),
            session_id: image.session_id,
            stream_id: source.stream_id,
            original_channel: source.original_channel.clone(),
            source_identity: image.source_identity.clone(),
            join_position: image.join_position,
            has_started: false,
            is_aborted: false,
            announced_position: image.join_position,
            end: None,
        };
        self.recordings.insert(recording, active);
        out.order(Effect::StartRecording(StartRecording {
            geometry,
            subscription,
            image: image.image,
            session_id: image.session_id,
            mtu: image.mtu,
            stripped_channel: source.stripped_channel.clone(),
            source_identity: image.source_identity.clone(),
            join_position: image.join_position,
            is_new: source.purpose == Purpose::Start,
            progress,
        }));
    }

    /// Claims a slot for the position of a recording, if there is a mark file with space for it.
    fn claim_slot(&self, recording: RecordingId, position: i64) -> Option<PositionSlot> {
        PositionSlot::claim(self.mark_file.as_ref()?, recording, position)
    }

    /// The counter of a recording is there, or could not be added.
    pub(crate) fn on_recording_started(
        &mut self,
        recording: RecordingId,
        outcome: Result<(), String>,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        let Some(active) = self.recordings.get_mut(&recording) else { return };
        if let Err(text) = outcome {
            let position = active.join_position;
            active.progress.has_ended.store(true, Ordering::Release);
            let failure = Failure::generic(text);
            return self.on_recording_stopped(recording, position, Some(failure), now, out);
        }
        active.has_started = true;
        let event = SignalEvent {
            recording: Some(recording),
            subscription: Some(active.subscription),
            position: active.join_position,
            signal: match active.purpose {
                Purpose::Start => Signal::Start,
                Purpose::Extend(_) => Signal::Extend,
            },
        };
        self.sessions.signal(active.requester, &event, now, out);
        if self.settings.recording_events_enabled {
            let message = RecordingStarted {
                recording_id: recording.get(),
                start_position: active.join_position,
                session_id: active.session_id,
                stream_id: active.stream_id,
                channel: active.original_channel.as_bytes(),
                source_identity: active.source_identity.as_bytes(),
            };
            publish_event(&message.to_vec(), out);
        }
        if active.is_aborted {
            out.order(Effect::AbortRecording { recording });
        }
    }

    /// A recording has ended. The catalog comes first, then the client.
    pub(crate) fn on_recording_stopped(
        &mut self,
        recording: RecordingId,
        position: i64,
        failure: Option<Failure>,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        let Some(active) = self.recordings.get_mut(&recording) else { return };
        if active.end.is_some() {
            return;
        }
        active.end = Some((position, now.ns));
        let requester = active.requester;
        let has_written = self.write_end(recording, now, out);
        if let Some(failure) = failure {
            out.report(&failure.text);
            self.sessions.respond(requester, &Answer::Error(failure), now, out);
        }
        if has_written {
            self.release(recording, position, now, out);
        }
    }

    /// Tells the catalog where a recording ended. If it fails, the next attempt comes later.
    fn write_end(&mut self, recording: RecordingId, now: Clock, out: &mut dyn Outside) -> bool {
        let Some(active) = self.recordings.get_mut(&recording) else { return false };
        let Some((position, _)) = active.end else { return false };
        match self.catalog.set_stopped(recording, position, now.epoch_ms) {
            Ok(()) => true,
            Err(error) => {
                active.end = Some((position, now.ns.saturating_add(CATALOG_RETRY_NS)));
                out.report(&format!("recording {recording} stopped at {position}: {error}"));
                false
            }
        }
    }

    /// Tells the client that a recording has ended, and drops its reference to its subscription.
    fn release(
        &mut self,
        recording: RecordingId,
        position: i64,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        let Some(active) = self.recordings.remove(&recording) else { return };
        active.progress.release_slot();
        let replication =
            self.subscriptions.get_mut(active.subscription).and_then(|it| it.replication);
        if let Some(id) = replication {
            self.on_copy_stopped(id, active.subscription, position, now, out);
        }
        if active.has_started {
            if self.settings.recording_events_enabled {
                let message = RecordingStopped {
                    recording_id: recording.get(),
                    start_position: active.join_position,
                    stop_position: position,
                };
                publish_event(&message.to_vec(), out);
            }
            let signal = Signal::Stop;
            let subscription = active.subscription;
            let event = SignalEvent {
                recording: Some(recording),
                subscription: Some(subscription),
                position,
                signal,
            };
            self.sessions.signal(active.requester, &event, now, out);
        }
        let Some(source) = self.subscriptions.get_mut(active.subscription) else { return };
        source.recordings = source.recordings.saturating_sub(1);
        if source.auto_stop {
            self.close_subscription(active.subscription, out);
        } else {
            self.subscriptions.close_if_unused(active.subscription, out);
        }
    }

    /// Replaces the channel of a recording, unless the session lists recordings by their channels.
    pub(super) fn update_channel(
        &mut self,
        session: SessionId,
        recording: RecordingId,
        channel: &str,
        out: &mut dyn Outside,
    ) -> Result<Answer, Failure> {
        self.check_listing(session)?;
        if self.catalog.get(recording).is_none() {
            return Ok(Answer::RecordingUnknown(recording));
        }
        let stripped = Channel::parse(channel).and_then(|channel| channel.stripped());
        let stripped = stripped.map_err(|error| refused_channel(&error, out))?;
        let updated = self.catalog.update_channel(recording, &stripped, channel);
        updated.map_err(|error| catalog_failure(&error))?;
        Ok(Answer::Ok(0))
    }

    pub(super) fn check_recording(&self, recording: RecordingId) -> Result<(), Failure> {
        self.catalog
            .get(recording)
            .map(|_| ())
            .ok_or_else(|| unknown_recording(&self.catalog, recording))
    }

    /// Where a recording in progress is; −1 if it is not in progress.
    pub(super) fn recording_position(&self, recording: RecordingId) -> i64 {
        self.recordings.get(&recording).map_or(NULL_POSITION, ActiveRecording::position)
    }

    /// Publishes how far recordings have come, and asks the catalog again that could not take an end.
    pub(super) fn on_recordings_turn(&mut self, now: Clock, out: &mut dyn Outside) -> usize {
        let mut work = 0;
        let mut due = Vec::new();
        for (&recording, active) in &mut self.recordings {
            match active.end {
                Some((position, deadline_ns)) if now.ns >= deadline_ns => {
                    due.push((recording, position));
                }
                None if self.settings.recording_events_enabled && active.has_started => {
                    let position = active.position();
                    if position > active.announced_position {
                        let message = RecordingProgress {
                            recording_id: recording.get(),
                            start_position: active.join_position,
                            position,
                        };
                        if out.try_publish_event(&message.to_vec()) == Sending::Sent {
                            active.announced_position = position;
                            work += 1;
                        }
                    }
                }
                _ => {}
            }
        }
        for (recording, position) in due {
            if self.write_end(recording, now, out) {
                self.release(recording, position, now, out);
            }
            work += 1;
        }
        work
    }

    /// Ends all recordings, because the server ends.
    pub(super) fn abort_recordings(&mut self, out: &mut dyn Outside) {
        for (recording, active) in &mut self.recordings {
            active.abort(*recording, out);
        }
    }
}

fn publish_event(message: &[u8], out: &mut dyn Outside) {
    for _ in 0..EVENT_ATTEMPTS {
        if out.try_publish_event(message) != Sending::BackPressured {
            return;
        }
    }
}
