//! The parts of the conductor, and which of them carries out a request or is told of an event.

use crate::conductor::effect::{Blame, ControlSessionId, ImageId};
use crate::conductor::event::Event;
use crate::conductor::listings::{Listings, find_last_matching};
use crate::conductor::recordings::{Ended, Recordings};
use crate::conductor::replays::Replays;
use crate::conductor::replications::Replications;
use crate::conductor::segments::Segments;
use crate::conductor::sessions::Requester;
use crate::conductor::subscriptions::Extension;
use crate::conductor::tokens::Tokens;
use crate::conductor::turn::Turn;
use crate::control::request::{
    self, RecordingFilter, Replay, Request, Source, recording_or_none, text,
};
use crate::control::responses::{Answer, Failure};
use crate::control::session::End;
use crate::ids::{
    CorrelationId, RecordingId, RegistrationId, ReplaySessionId, ReplayToken, ReplicationId,
};
use crate::protocol::messages::Message;

/// Each part owns its state. A part that needs another one gets it as an argument.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) recordings: Recordings,
    pub(crate) replays: Replays,
    pub(crate) replications: Replications,
    pub(crate) listings: Listings,
    segments: Segments,
    tokens: Tokens,
}

impl Parts {
    pub(super) fn new(token_timeout_ns: i64) -> Self {
        Self {
            recordings: Recordings::default(),
            replays: Replays::default(),
            replications: Replications::default(),
            listings: Listings::default(),
            segments: Segments::default(),
            tokens: Tokens::new(token_timeout_ns),
        }
    }

    /// Carries out a request, and answers it now or later.
    pub(super) fn execute(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        command: &Message<'_>,
    ) {
        match self.outcome(turn, requester, command) {
            Ok(Some(answer)) => turn.respond(requester, &answer),
            Ok(None) => {}
            Err(failure) => turn.refuse(requester, failure),
        }
    }

    /// `None`: the answer comes later, or the part has sent it.
    fn outcome(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        command: &Message<'_>,
    ) -> Result<Option<Answer>, Failure> {
        let Self { recordings, replays, replications, listings, segments, tokens } = self;
        let id = RecordingId::new;
        let ok = |value| Ok(Some(Answer::Ok(value)));
        match command {
            Message::KeepAliveRequest(_) => Ok(None),
            Message::ArchiveIdRequest(_) => ok(turn.settings.archive_id.get()),
            Message::StartRecordingRequest2(m) => {
                let source = Source::new(m.stream_id, m.source_location, m.auto_stop, m.channel);
                recordings.start(turn, requester, &source)?;
                defer_others(turn, requester.session);
                Ok(None)
            }
            Message::ExtendRecordingRequest2(m) => {
                let recording = id(m.recording_id);
                let extension = Extension { recording, replication: None, destination: None };
                let source = Source::new(m.stream_id, m.source_location, m.auto_stop, m.channel);
                recordings.extend(turn, requester, extension, &source, &segments.deletions)?;
                defer_others(turn, requester.session);
                Ok(None)
            }
            Message::StopRecordingRequest(m) => {
                recordings.stop(turn, m.stream_id, &text(m.channel)).map(Some)
            }
            Message::StopRecordingSubscriptionRequest(m) => {
                let subscription = RegistrationId::new(m.subscription_id);
                recordings.stop_subscription(turn, subscription).map(Some)
            }
            Message::StopRecordingByIdentityRequest(m) => {
                recordings.stop_by_identity(turn, id(m.recording_id)).map(Some)
            }
            Message::ReplayRequest(m) => {
                let deletions = &segments.deletions;
                replays.start(turn, requester, &m.into(), None, recordings, deletions)?;
                Ok(None)
            }
            Message::BoundedReplayRequest(m) => {
                let deletions = &segments.deletions;
                replays.start(turn, requester, &m.into(), None, recordings, deletions)?;
                Ok(None)
            }
            Message::StopReplayRequest(m) => {
                replays.stop(turn, ReplaySessionId::new(m.replay_session_id));
                ok(0)
            }
            Message::StopAllReplaysRequest(m) => {
                replays.stop_all(turn, recording_or_none(m.recording_id));
                ok(0)
            }
            Message::ReplayTokenRequest(m) => {
                let token = tokens.draw(requester.session, id(m.recording_id), turn.now);
                ok(token.ok_or_else(|| Failure::generic("too many replay tokens"))?.get())
            }
            Message::ListRecordingsRequest(m) => {
                let from = id(m.from_recording_id);
                listings.list_recordings(requester, from, m.record_count, None)
            }
            Message::ListRecordingsForUriRequest(m) => {
                let from = id(m.from_recording_id);
                let filter =
                    RecordingFilter { stream_id: m.stream_id, channel_fragment: m.channel };
                listings.list_recordings(requester, from, m.record_count, Some(&filter))
            }
            Message::ListRecordingRequest(m) => {
                listings.list_recording(turn, requester, id(m.recording_id))
            }
            Message::FindLastMatchingRecordingRequest(m) => {
                let min = id(m.min_recording_id);
                let filter =
                    RecordingFilter { stream_id: m.stream_id, channel_fragment: m.channel };
                find_last_matching(turn.catalog, min, m.session_id, &filter).map(Some)
            }
            Message::ListRecordingSubscriptionsRequest(m) => {
                listings.list_subscriptions(turn, requester, m, recordings.subscriptions())
            }
            Message::StartPositionRequest(m) => {
                ok(turn.recording(id(m.recording_id))?.start_position)
            }
            Message::StopPositionRequest(m) => {
                ok(turn.recording(id(m.recording_id))?.stop_position)
            }
            Message::RecordingPositionRequest(m) => {
                let recording = id(m.recording_id);
                turn.recording(recording)?;
                ok(recordings.position(recording))
            }
            Message::MaxRecordedPositionRequest(m) => {
                let recording = id(m.recording_id);
                let known = turn.recording(recording)?;
                match known.is_active() {
                    true => ok(recordings.position(recording)),
                    false => ok(known.stop_position),
                }
            }
            Message::UpdateChannelRequest(m) => {
                listings.check_none(requester.session)?;
                turn.update_channel(id(m.recording_id), &text(m.channel)).map(Some)
            }
            Message::TruncateRecordingRequest(m) => {
                let recording = id(m.recording_id);
                segments.truncate_recording(turn, requester, recording, m.position, replays)
            }
            Message::PurgeRecordingRequest(m) => {
                segments.purge_recording(turn, requester, id(m.recording_id), replays)
            }
            Message::DetachSegmentsRequest(m) => {
                let (recording, start) = (id(m.recording_id), m.new_start_position);
                Segments::detach_segments(turn, recording, start, recordings, replays)
            }
            Message::PurgeSegmentsRequest(m) => {
                let (recording, start) = (id(m.recording_id), m.new_start_position);
                segments.purge_segments(turn, requester, recording, start, recordings, replays)
            }
            Message::DeleteDetachedSegmentsRequest(m) => {
                segments.delete_detached(turn, requester, id(m.recording_id))
            }
            Message::AttachSegmentsRequest(m) => segments.attach(turn, id(m.recording_id)),
            Message::MigrateSegmentsRequest(m) => {
                let (source, destination) = (id(m.src_recording_id), id(m.dst_recording_id));
                segments.migrate(turn, requester, source, destination, replays)
            }
            Message::ReplicateRequest2(m) => {
                replications.start(turn, requester, m, recordings).map(Some)
            }
            Message::StopReplicationRequest(m) => {
                replications.stop(ReplicationId::new(m.replication_id)).map(Some)
            }
            // A test sends all that `request::decode` makes a command.
            _ => Err(Failure::generic("no part of the archive carries out this request")),
        }
    }

    /// Begins a replay that a token allows, whose request came on another image than the session's.
    pub(super) fn replay_by_token(
        &mut self,
        turn: &mut Turn<'_>,
        image: ImageId,
        correlation_id: CorrelationId,
        token: ReplayToken,
        replay: &Replay<'_>,
    ) {
        let Some(session) = self.tokens.session(token, replay.recording, turn.now) else {
            return turn.out.report(
                Blame::Stranger,
                &format!("Unknown session or token timeout for replayToken={}", token.get()),
            );
        };
        if turn.sessions.get_mut(session).is_some_and(|control| control.activate()) {
            let Self { replays, recordings, segments, .. } = self;
            let requester = Requester { session, correlation_id };
            let (image, deletions) = (Some(image), &segments.deletions);
            let started = replays.start(turn, requester, replay, image, recordings, deletions);
            if let Err(failure) = started {
                turn.refuse(requester, failure);
            }
        }
    }

    pub(super) fn on_event(&mut self, turn: &mut Turn<'_>, event: Event) {
        let Self { recordings, replays, replications, segments, .. } = self;
        match event {
            Event::RequestImageUnavailable(image) => {
                for session in turn.sessions.on_image(image) {
                    session.end(End::RequestImageGone);
                }
            }
            Event::ResponsePublication(session, outcome) => {
                if let Some(control) = turn.sessions.get_mut(session) {
                    control.on_publication(outcome, turn.now);
                }
            }
            Event::RecordingSubscription(ticket, outcome) => {
                if let Some(session) = recordings.on_subscription(turn, ticket, outcome) {
                    self.execute_deferred(turn, session);
                }
            }
            Event::RecordingImage(subscription, image) => {
                recordings.on_image(turn, subscription, &image, &segments.deletions);
            }
            Event::RecordingStarted(recording, outcome) => {
                let ended = recordings.on_started(turn, recording, outcome);
                self.finish(turn, ended);
            }
            Event::RecordingStopped(recording, position, failure) => {
                let ended = recordings.on_stopped(turn, recording, position, failure);
                self.finish(turn, ended);
            }
            Event::ReplayStarted(replay, outcome) => replays.on_started(turn, replay, outcome),
            Event::ReplayEnded(replay, failure) => replays.on_ended(turn, replay, failure),
            Event::SourceAdded(id, channel) => replications.on_source_added(id, channel),
            Event::SourceFailed(id, text) => replications.on_source_failed(id, &text),
            Event::SourceMessage(id, message) => replications.on_source_message(id, &message),
            Event::DestinationFailed(subscription, text) => {
                replications.on_destination_failed(turn, subscription, text, recordings);
            }
            Event::Transports(recording, count) => replications.on_transports(recording, count),
        }
    }

    /// Tells the replication and the client of a recording that it has ended.
    fn finish(&mut self, turn: &mut Turn<'_>, ended: impl IntoIterator<Item = Ended>) {
        for ended in ended {
            self.replications.on_recording_ended(turn, &ended, &mut self.recordings);
            self.recordings.finish(turn, ended);
        }
    }

    /// Carries out the requests of a session that have waited.
    fn execute_deferred(&mut self, turn: &mut Turn<'_>, session: ControlSessionId) {
        if let Some(control) = turn.sessions.get_mut(session) {
            control.is_deferring = false;
        }
        loop {
            let control = turn.sessions.get_mut(session);
            let Some(control) = control.filter(|control| !control.is_deferring) else { return };
            let Some(message) = control.next_deferred() else { return };
            match request::decode(&message) {
                Ok(Request::Command(request)) => {
                    let requester = Requester { session, correlation_id: request.correlation_id };
                    self.execute(turn, requester, &request.command);
                }
                // The client has closed its session, and has not waited for the answers.
                _ => control.end(End::Closed),
            }
        }
    }

    /// Does what is due. Returns how much that was.
    pub(super) fn on_turn(&mut self, turn: &mut Turn<'_>) -> usize {
        self.tokens.remove_expired(turn.now);
        let mut work = self.listings.on_turn(turn);
        let (count, ended) = self.recordings.on_turn(turn);
        self.finish(turn, ended);
        let Self { recordings, replays, replications, segments, .. } = self;
        work += count;
        work += segments.deletions.on_turn(turn, |replay| replays.contains(replay));
        work + replications.on_turn(turn, recordings, &segments.deletions)
    }

    pub(super) fn remove_session(&mut self, session: ControlSessionId) {
        self.tokens.remove_session(session);
        self.listings.remove(session);
    }

    pub(super) fn begin_close(&mut self, turn: &mut Turn<'_>) {
        self.replications.end_all(turn, &mut self.recordings);
        self.recordings.abort_all(turn);
        self.replays.stop_all(turn, None);
    }

    /// Deletes what is still to be deleted, and reports recordings without an end. Replays have
    /// ended.
    pub(super) fn finish_close(&mut self, turn: &mut Turn<'_>) {
        self.segments.deletions.finish(turn);
        if !self.recordings.is_empty() {
            // The next start finds it in the frames.
            turn.out.report(Blame::Server, "a recording has no stop position in the catalog");
        }
    }
}

/// Lets the requests of a session wait until the driver has registered a subscription.
fn defer_others(turn: &mut Turn<'_>, session: ControlSessionId) {
    if let Some(control) = turn.sessions.get_mut(session) {
        control.is_deferring = true;
    }
}
