//! Recordings: from an image to the catalog's stop position.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::catalog::{Descriptor, NULL_POSITION, NewRecording};
use crate::channel::Channel;
use crate::conductor::active_recording::ActiveRecording;
use crate::conductor::deletions::Deletions;
use crate::conductor::effect::{
    Blame, ControlSessionId, Effect, Failure, ImageDetails, Outside, Progress, RecordingId,
    RegistrationId, Sending, StartRecording,
};
use crate::conductor::sessions::Requester;
use crate::conductor::subscriptions::{Extension, Purpose, Subscriptions};
use crate::conductor::turn::Turn;
use crate::control::request::Source;
use crate::control::responses::{Answer, SignalEvent};
use crate::ids::{ReplicationId, Ticket};
use crate::mark_file::{MarkFile, PositionSlot};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::messages::{RecordingStarted, RecordingStopped};
use crate::protocol::signal::Signal;
use crate::segment::cut::clear_behind;

/// The pause before the catalog is asked again to take a stop position.
const CATALOG_RETRY_NS: i64 = 1_000_000_000;
/// Attempts to publish the beginning or the end of a recording. Progress is published with the next
/// position.
const EVENT_ATTEMPTS: usize = 3;

/// All recordings in progress, and the subscriptions whose images they are.
#[derive(Debug, Default)]
pub(crate) struct Recordings {
    subscriptions: Subscriptions,
    active: BTreeMap<RecordingId, ActiveRecording>,
    /// Keeps the positions of recordings.
    mark_file: Option<Arc<MarkFile>>,
}

/// A recording whose end the catalog has, and whose client is still to be told.
#[derive(Debug)]
#[must_use]
pub(crate) struct Ended {
    recording: RecordingId,
    active: ActiveRecording,
    pub(super) position: i64,
    pub(super) subscription: RegistrationId,
    /// The replication of which this is the copy.
    pub(super) replication: Option<ReplicationId>,
}

impl Recordings {
    /// Lets the mark file keep the positions of recordings, for a server that follows a killed one.
    pub(crate) fn keep_positions(&mut self, mark_file: Arc<MarkFile>) {
        self.mark_file = Some(mark_file);
    }

    pub(super) fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// Returns the replication that extends a recording by a subscription, or did before it ended.
    pub(super) fn replication_of(&self, subscription: RegistrationId) -> Option<ReplicationId> {
        self.subscriptions.get(subscription)?.replication
    }

    pub(super) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    pub(super) fn get(&self, recording: RecordingId) -> Option<&ActiveRecording> {
        self.active.get(&recording)
    }

    /// Where a recording in progress is; −1 if it is not in progress.
    pub(super) fn position(&self, recording: RecordingId) -> i64 {
        self.get(recording).map_or(NULL_POSITION, ActiveRecording::position)
    }

    pub(super) fn has_any_of(&self, subscription: RegistrationId) -> bool {
        self.active.values().any(|active| active.subscription == subscription)
    }

    /// Adds a subscription whose images become recordings. The answer comes when the driver has
    /// registered it.
    pub(super) fn start(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        source: &Source<'_>,
    ) -> Result<(), Failure> {
        self.check_limit(turn, self.subscriptions.registered_count())?;
        turn.check_storage_space()?;
        self.subscriptions.add(turn, requester, None, source).map(drop)
    }

    /// Adds a subscription whose image continues a recording. The answer comes when the driver has
    /// registered it. Returns the ticket until then.
    pub(super) fn extend(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        extension: Extension,
        source: &Source<'_>,
        deletions: &Deletions,
    ) -> Result<Ticket, Failure> {
        let recording = extension.recording;
        self.check_limit(turn, self.subscriptions.registered_count())?;
        let descriptor = turn.settled(recording)?;
        if descriptor.stream_id != source.stream_id {
            return Err(Failure::new(
                ErrorCode::UnknownRecording,
                format!(
                    "cannot extend recording {recording} with streamId={} for existing streamId={}",
                    source.stream_id, descriptor.stream_id
                ),
            ));
        }
        if self.active.contains_key(&recording) {
            return Err(Failure::new(
                ErrorCode::ActiveRecording,
                format!("cannot extend active recording {recording}"),
            ));
        }
        deletions.check_extension(&descriptor, "")?;
        turn.check_storage_space()?;
        self.subscriptions.add(turn, requester, Some(extension), source)
    }

    fn check_limit(&self, turn: &Turn<'_>, subscriptions: usize) -> Result<(), Failure> {
        let max = turn.settings.max_concurrent_recordings;
        if subscriptions >= max || self.active.len() >= max {
            let text = format!("max concurrent recordings reached at {max}");
            return Err(Failure::new(ErrorCode::MaxRecordings, text));
        }
        Ok(())
    }

    /// The driver has registered a subscription, or refused it. Returns the session whose next
    /// requests have waited for that.
    pub(super) fn on_subscription(
        &mut self,
        turn: &mut Turn<'_>,
        ticket: Ticket,
        outcome: Result<RegistrationId, String>,
    ) -> Option<ControlSessionId> {
        let (requester, replication) = match outcome {
            Ok(id) => {
                let subscription = self.subscriptions.by_ticket_mut(ticket)?;
                subscription.id = Some(id);
                let (requester, replication) = (subscription.requester, subscription.replication);
                if subscription.is_closing {
                    // Its replication has ended meanwhile.
                    self.subscriptions.close_if_unused(id, turn.out);
                    return None;
                }
                turn.respond(requester, &Answer::Ok(id.get()));
                (requester, replication)
            }
            Err(text) => {
                let subscription = self.subscriptions.remove_ticket(ticket)?;
                if subscription.is_closing {
                    return None;
                }
                turn.refuse(subscription.requester, Failure::mistake(text));
                (subscription.requester, subscription.replication)
            }
        };
        replication.is_none().then_some(requester.session)
    }

    /// Ends a subscription and all recordings of its images, or lets it end when the driver has
    /// registered it. Returns its id, if it has one.
    pub(super) fn close_by_ticket(
        &mut self,
        turn: &mut Turn<'_>,
        ticket: Ticket,
    ) -> Option<RegistrationId> {
        let subscription = self.subscriptions.by_ticket_mut(ticket)?;
        subscription.is_registered = false;
        subscription.is_closing = true;
        let id = subscription.id?;
        self.close_subscription(turn, id);
        Some(id)
    }

    /// Ends a subscription and all recordings of its images.
    fn close_subscription(&mut self, turn: &mut Turn<'_>, id: RegistrationId) {
        if let Some(subscription) = self.subscriptions.get_mut(id) {
            subscription.is_registered = false;
            subscription.is_closing = true;
        }
        for (recording, active) in &mut self.active {
            if active.subscription == id {
                active.abort(*recording, turn.out);
            }
        }
        self.subscriptions.close_if_unused(id, turn.out);
    }

    pub(super) fn stop(
        &mut self,
        turn: &mut Turn<'_>,
        stream_id: i32,
        channel: &str,
    ) -> Result<Answer, Failure> {
        let uri = Channel::parse(channel)?;
        let key = uri.recording_key(stream_id);
        let found = self.subscriptions.registered().find(|(_, known)| known.key == key);
        let Some((id, _)) = found else {
            return Err(Failure::new(
                ErrorCode::UnknownSubscription,
                format!("no recording found for streamId={stream_id} channel={channel}"),
            ));
        };
        self.close_subscription(turn, id);
        Ok(Answer::Ok(0))
    }

    pub(super) fn stop_subscription(
        &mut self,
        turn: &mut Turn<'_>,
        id: RegistrationId,
    ) -> Result<Answer, Failure> {
        if !self.subscriptions.registered().any(|(known, _)| known == id) {
            return Err(Failure::new(
                ErrorCode::UnknownSubscription,
                format!("no recording subscription found for subscriptionId={id}"),
            ));
        }
        self.close_subscription(turn, id);
        Ok(Answer::Ok(0))
    }

    /// Ends one recording. Others of the same subscription go on, and close it by their end.
    pub(super) fn stop_by_identity(
        &mut self,
        turn: &mut Turn<'_>,
        recording: RecordingId,
    ) -> Result<Answer, Failure> {
        turn.recording(recording)?;
        let Some(active) = self.active.get_mut(&recording) else { return Ok(Answer::Ok(0)) };
        let id = active.subscription;
        active.abort(recording, turn.out);
        let Some(subscription) = self.subscriptions.get_mut(id) else { return Ok(Answer::Ok(0)) };
        let was_registered = std::mem::replace(&mut subscription.is_registered, false);
        self.subscriptions.close_if_unused(id, turn.out);
        Ok(Answer::Ok(i64::from(was_registered)))
    }

    /// A subscription has an image: a recording begins, or goes on.
    pub(super) fn on_image(
        &mut self,
        turn: &mut Turn<'_>,
        subscription: RegistrationId,
        image: &ImageDetails,
        deletions: &Deletions,
    ) {
        let Some(source) = self.subscriptions.get_mut(subscription) else { return };
        if source.is_closing {
            return;
        }
        let (requester, purpose, auto_stop) = (source.requester, source.purpose, source.auto_stop);
        let outcome = match purpose {
            Purpose::Start => self.record_image(turn, subscription, image),
            Purpose::Extend(recording) => {
                self.extend_by_image(turn, subscription, recording, image, deletions)
            }
        };
        if let Err(failure) = outcome {
            turn.fail(requester, failure);
            if auto_stop && purpose != Purpose::Start {
                self.close_subscription(turn, subscription);
            }
        }
    }

    fn record_image(
        &mut self,
        turn: &mut Turn<'_>,
        subscription: RegistrationId,
        image: &ImageDetails,
    ) -> Result<(), Failure> {
        self.check_limit(turn, 0)?;
        turn.check_storage_space()?;
        let Some(source) = self.subscriptions.get_mut(subscription) else { return Ok(()) };
        let new = NewRecording {
            start_position: image.join_position,
            initial_term_id: image.initial_term_id,
            segment_length: turn.settings.segment_length.max(image.term_length),
            term_length: image.term_length,
            mtu: image.mtu,
            session_id: image.session_id,
            stream_id: source.stream_id,
            stripped_channel: &source.stripped_channel,
            original_channel: &source.original_channel,
            source_identity: &image.source_identity,
        };
        let recording = turn.catalog.add(new, turn.now.epoch_ms)?;
        let slot = self.claim_slot(recording, image.join_position);
        let progress = Progress::new(image.join_position, slot);
        self.begin(turn, recording, subscription, image, progress);
        Ok(())
    }

    fn extend_by_image(
        &mut self,
        turn: &mut Turn<'_>,
        subscription: RegistrationId,
        recording: RecordingId,
        image: &ImageDetails,
        deletions: &Deletions,
    ) -> Result<(), Failure> {
        let Some(source) = self.subscriptions.get_mut(subscription) else { return Ok(()) };
        if self.active.contains_key(&recording) {
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
        self.check_limit(turn, 0)?;
        turn.check_storage_space()?;
        let descriptor = turn.settled(recording)?;
        deletions.check_extension(&descriptor, &place)?;
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
        let level = turn.catalog.sync_level();
        let kept = clear_behind(turn.storage, &geometry, descriptor.stop_position, level)
            .map_err(|error| invalid(format!("behind its end: {error}")))?;
        if !kept.is_empty() {
            turn.out.report(Blame::Server, &format!(
                "recording {recording} is extended at {}, the end that the catalog has, and what its segments had behind \
                 that is in {} now: if the catalog is an older copy, it was recorded since",
                descriptor.stop_position,
                kept.join(", ")
            ));
        }
        // Before the catalog forgets the end.
        let slot = self.claim_slot(recording, image.join_position);
        let progress = Progress::new(image.join_position, slot);
        // Before the first byte is written: after a crash, recovery looks at active recordings
        // only.
        turn.catalog
            .set_extended(recording, requester.session, requester.correlation_id, image.session_id)
            .inspect_err(|_| progress.release_slot())?;
        self.begin(turn, recording, subscription, image, progress);
        Ok(())
    }

    fn begin(
        &mut self,
        turn: &mut Turn<'_>,
        recording: RecordingId,
        subscription: RegistrationId,
        image: &ImageDetails,
        progress: Arc<Progress>,
    ) {
        let Some(geometry) = turn.catalog.get(recording).map(Descriptor::geometry) else { return };
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
        self.active.insert(recording, active);
        turn.out.order(Effect::StartRecording(StartRecording {
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
    pub(super) fn on_started(
        &mut self,
        turn: &mut Turn<'_>,
        recording: RecordingId,
        outcome: Result<(), String>,
    ) -> Option<Ended> {
        let active = self.active.get_mut(&recording)?;
        if let Err(text) = outcome {
            let position = active.join_position;
            active.progress.has_ended.store(true, Ordering::Release);
            let failure = Failure::generic(text);
            return self.on_stopped(turn, recording, position, Some(failure));
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
        turn.signal(active.requester, &event);
        if turn.settings.recording_events_enabled {
            let message = RecordingStarted {
                recording_id: recording.get(),
                start_position: active.join_position,
                session_id: active.session_id,
                stream_id: active.stream_id,
                channel: active.original_channel.as_bytes(),
                source_identity: active.source_identity.as_bytes(),
            };
            publish_event(&message.to_vec(), turn.out);
        }
        if active.is_aborted {
            turn.out.order(Effect::AbortRecording { recording });
        }
        None
    }

    /// A recording has ended. The catalog is told first, then the client.
    pub(super) fn on_stopped(
        &mut self,
        turn: &mut Turn<'_>,
        recording: RecordingId,
        position: i64,
        failure: Option<Failure>,
    ) -> Option<Ended> {
        let active = self.active.get_mut(&recording).filter(|active| active.end.is_none())?;
        active.end = Some((position, turn.now.ns));
        let requester = active.requester;
        let ended = self.write_end(turn, recording);
        if let Some(failure) = failure {
            turn.out.report(Blame::Server, &failure.text);
            turn.respond(requester, &Answer::Error(failure));
        }
        ended
    }

    /// Tells the catalog where a recording ended. If it fails, the next attempt comes later.
    fn write_end(&mut self, turn: &mut Turn<'_>, recording: RecordingId) -> Option<Ended> {
        let active = self.active.get_mut(&recording)?;
        let (position, _) = active.end?;
        if let Err(error) = turn.catalog.set_stopped(recording, position, turn.now.epoch_ms) {
            active.end = Some((position, turn.now.ns.saturating_add(CATALOG_RETRY_NS)));
            turn.out.report(
                Blame::Server,
                &format!("recording {recording} stopped at {position}: {error}"),
            );
            return None;
        }
        let active = self.active.remove(&recording)?;
        active.progress.release_slot();
        let subscription = active.subscription;
        let replication = self.replication_of(subscription);
        Some(Ended { recording, active, position, subscription, replication })
    }

    /// Tells the client that a recording has ended, and drops its reference to its subscription.
    pub(super) fn finish(&mut self, turn: &mut Turn<'_>, ended: Ended) {
        let Ended { recording, active, position, subscription, .. } = ended;
        if active.has_started {
            if turn.settings.recording_events_enabled {
                let message = RecordingStopped {
                    recording_id: recording.get(),
                    start_position: active.join_position,
                    stop_position: position,
                };
                publish_event(&message.to_vec(), turn.out);
            }
            let event = SignalEvent {
                recording: Some(recording),
                subscription: Some(subscription),
                position,
                signal: Signal::Stop,
            };
            turn.signal(active.requester, &event);
        }
        let Some(source) = self.subscriptions.get_mut(subscription) else { return };
        source.recordings = source.recordings.saturating_sub(1);
        if source.auto_stop {
            self.close_subscription(turn, subscription);
        } else {
            self.subscriptions.close_if_unused(subscription, turn.out);
        }
    }

    /// Publishes progress, and retries ends that the catalog could not take. Returns how much that
    /// was, and the recordings that have ended.
    pub(super) fn on_turn(&mut self, turn: &mut Turn<'_>) -> (usize, Vec<Ended>) {
        let mut work = 0;
        let mut due = Vec::new();
        for (&recording, active) in &mut self.active {
            match active.end {
                Some((_, deadline_ns)) if turn.now.ns >= deadline_ns => due.push(recording),
                None if turn.settings.recording_events_enabled => {
                    work += usize::from(active.publish_progress(recording, turn.out));
                }
                _ => {}
            }
        }
        work += due.len();
        let ended = due.into_iter().filter_map(|recording| self.write_end(turn, recording));
        let ended = ended.collect();
        (work, ended)
    }

    /// Ends all recordings, because the server ends.
    pub(super) fn abort_all(&mut self, turn: &mut Turn<'_>) {
        for (recording, active) in &mut self.active {
            active.abort(*recording, turn.out);
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
