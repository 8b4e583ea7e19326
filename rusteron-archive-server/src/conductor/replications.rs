//! Replications: requested, stopped, ended.

use std::collections::BTreeMap;

use rusteron_client::AeronVersion;

use crate::channel::Channel;
use crate::conductor::deletions::Deletions;
use crate::conductor::effect::{Blame, Effect, Failure, RecordingId, RegistrationId};
use crate::conductor::recordings::{Ended, Recordings};
use crate::conductor::sessions::Requester;
use crate::conductor::subscriptions::Extension;
use crate::conductor::turn::Turn;
use crate::control::request::{Source, recording_or_none, text};
use crate::control::responses::{Answer, SignalEvent};
use crate::ids::{CorrelationId, ReplicationId, SourceRecordingId, Ticket};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::messages::ReplicateRequest2;
use crate::protocol::signal::Signal;
use crate::replication::{
    Action, ControlChannels, Copy, ReplayChannels, ReplicatedImage, Replication,
    ReplicationRequest, SourceRecording, SourceSession, SourceSettings,
};

/// −1 stands for no id and no position.
const NULL: i64 = -1;

#[derive(Debug)]
struct ActiveReplication {
    /// The client, with the replication's id in the place of a request's.
    requester: Requester,
    machine: Replication,
    source_stream_id: i32,
    /// The subscription that extends the copy, by its ticket.
    ticket: Option<Ticket>,
    /// Ends when the recording of the copy has ended.
    is_ending: bool,
}

impl ActiveReplication {
    /// Returns what there is of the copy that the replication makes.
    fn copy(&self, turn: &Turn<'_>, recordings: &Recordings) -> Copy {
        let Some(ticket) = self.ticket else { return Copy::default() };
        let subscription = recordings.subscriptions().by_ticket(ticket);
        let is_closed = subscription.is_none_or(|known| known.is_closing);
        let subscription = subscription.and_then(|known| known.id);
        let recording = self.machine.recording();
        let descriptor = recording.and_then(|recording| turn.catalog.get(recording));
        let active = recording.and_then(|recording| recordings.get(recording));
        let active = active.filter(|active| Some(active.subscription) == subscription);
        let image = active.map(|active| ReplicatedImage {
            session_id: active.session_id,
            position: active.position(),
            term_length: descriptor.map_or(0, |known| known.term_length),
        });
        let stop_position =
            descriptor.filter(|known| !known.is_active()).map(|known| known.stop_position);
        Copy { subscription, is_closed, image, stop_position }
    }
}

/// All replications, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Replications {
    by_id: BTreeMap<ReplicationId, ActiveReplication>,
}

impl Replications {
    #[cfg(any(test, fuzzing))]
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    fn get_mut(&mut self, id: ReplicationId) -> Option<&mut Replication> {
        self.by_id.get_mut(&id).map(|active| &mut active.machine)
    }

    /// Begins to copy a recording of another archive.
    pub(super) fn start(
        &mut self,
        turn: &mut Turn<'_>,
        requester: Requester,
        request: &ReplicateRequest2<'_>,
        recordings: &Recordings,
    ) -> Result<Answer, Failure> {
        let settings = &turn.settings.replication;
        let max = settings.max_concurrent;
        if self.by_id.len() >= max {
            let text = format!("max concurrent replications reached at {max}");
            return Err(Failure::generic(text));
        }
        let is_tagged = request.channel_tag_id != NULL || request.subscription_tag_id != NULL;
        let has_live = !request.live_destination.is_empty();
        let or_setting = |channel: &[u8], setting: &str, name: &str| match (channel, setting) {
            (b"", "") => Err(Failure::generic(format!("{name} is not set"))),
            (b"", setting) => Ok(setting.to_owned()),
            (channel, _) => Ok(text(channel).into_owned()),
        };
        let name = "replication_channel (AERON_ARCHIVE_REPLICATION_CHANNEL)";
        let channel = or_setting(request.replication_channel, &settings.channel, name)?;
        let is_response = Channel::parse(&channel)?.is_response();
        let unusable =
            |use_| Failure::generic(format!("response channels can't be used with {use_}"));
        if is_response && has_live {
            return Err(unusable("live destinations"));
        }
        if is_response && is_tagged {
            return Err(unusable("tagged replication"));
        }
        let recording = recording_or_none(request.dst_recording_id);
        let existing = recording.map(|recording| existing(turn, recording, recordings));
        let existing = existing.transpose()?;
        let name = "control_response_channel (AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL)";
        let response_channel =
            or_setting(request.src_response_channel, &settings.response_channel, name)?;
        let control = ControlChannels::new(
            (&text(request.src_control_channel), request.src_control_stream_id),
            (&response_channel, settings.response_stream_id),
            turn.settings.response,
        )?;

        // Sessions and replications take their ids from one sequence, as in Java's archive.
        let id = ReplicationId::new(turn.sessions.next_id().get());
        let or_id = |tag| if tag == NULL { id.get() } else { tag };
        let tags = (is_tagged || has_live)
            .then(|| (or_id(request.channel_tag_id), or_id(request.subscription_tag_id)));
        let AeronVersion { text: version, commit, .. } = AeronVersion::linked();
        let client_info = format!(
            "name=archive archiveId={} replicationSessionId={id} version={version} commit={commit}",
            turn.settings.archive_id
        );
        let source = SourceSettings {
            replication: id,
            request_channel: control.requests.clone(),
            response_stream_id: settings.response_stream_id,
            credentials: request.encoded_credentials.to_vec(),
            client_info,
            timeout_ns: settings.message_timeout_ns,
        };
        let copied = ReplicationRequest {
            source_recording: SourceRecordingId::new(request.src_recording_id),
            recording,
            existing,
            stop_position: request.stop_position,
            live_destination: has_live.then(|| text(request.live_destination).into_owned()),
            file_io_max_length: request.file_io_max_length,
            session_id: request.replication_session_id,
            replay: ReplayChannels::new(&channel, tags)?,
            control: control.clone(),
        };
        let source = SourceSession::new(source, turn.now);
        let active = ActiveReplication {
            requester: Requester {
                session: requester.session,
                correlation_id: CorrelationId::new(id.get()),
            },
            machine: Replication::new(copied, source, settings.message_timeout_ns),
            source_stream_id: request.src_control_stream_id,
            ticket: None,
            is_ending: false,
        };
        self.by_id.insert(id, active);
        log::debug!(
            "replication {id}: recording {} of {} to recording {}",
            request.src_recording_id,
            text(request.src_control_channel),
            recording.map_or(NULL, RecordingId::get)
        );
        turn.out.order(Effect::ConnectSource { replication: id, channels: control });
        Ok(Answer::Ok(id.get()))
    }

    /// Ends a replication in its next turn, after the answer.
    pub(super) fn stop(&mut self, id: ReplicationId) -> Result<Answer, Failure> {
        match self.get_mut(id).filter(|machine| !machine.is_done()) {
            Some(machine) => {
                machine.stop();
                Ok(Answer::Ok(0))
            }
            None => {
                let text = format!("unknown replication id {id}");
                Err(Failure::new(ErrorCode::UnknownReplication, text))
            }
        }
    }

    /// The source reads requests, and its answers can come on this channel.
    pub(super) fn on_source_added(&mut self, replication: ReplicationId, response_channel: String) {
        if let Some(machine) = self.get_mut(replication) {
            machine.on_source_added(response_channel);
        }
    }

    /// A stream to or from the source has failed.
    pub(super) fn on_source_failed(&mut self, replication: ReplicationId, text: &str) {
        if let Some(machine) = self.get_mut(replication) {
            machine.on_source_failed(text);
        }
    }

    pub(super) fn on_source_message(&mut self, replication: ReplicationId, message: &[u8]) {
        if let Some(machine) = self.get_mut(replication) {
            machine.on_source_message(message);
        }
    }

    /// A destination of a subscription could not be added or removed.
    pub(super) fn on_destination_failed(
        &mut self,
        turn: &mut Turn<'_>,
        subscription: RegistrationId,
        text: String,
        recordings: &Recordings,
    ) {
        let replication = recordings.replication_of(subscription);
        match replication.and_then(|id| self.get_mut(id)) {
            Some(machine) => machine.fail(Failure::generic(text)),
            None => turn.out.report(Blame::Server, &text),
        }
    }

    /// So many streams feed the image of a recording.
    pub(super) fn on_transports(&mut self, recording: RecordingId, count: usize) {
        let machines = self.by_id.values_mut().map(|active| &mut active.machine);
        for machine in machines.filter(|machine| machine.recording() == Some(recording)) {
            machine.on_transports(count);
        }
    }

    /// Lets replications do what is due. Returns how much that was.
    pub(super) fn on_turn(
        &mut self,
        turn: &mut Turn<'_>,
        recordings: &mut Recordings,
        deletions: &Deletions,
    ) -> usize {
        let mut work = 0;
        let ids: Vec<_> = self.by_id.keys().copied().collect();
        for id in ids {
            while let Some(active) = self.by_id.get_mut(&id).filter(|active| !active.is_ending) {
                let copy = active.copy(turn, recordings);
                let Some(action) = active.machine.turn(turn.now, &copy, turn.out) else { break };
                self.act(turn, id, action, copy.subscription, recordings, deletions);
                work += 1;
            }
        }
        work
    }

    fn act(
        &mut self,
        turn: &mut Turn<'_>,
        id: ReplicationId,
        action: Action,
        subscription: Option<RegistrationId>,
        recordings: &mut Recordings,
        deletions: &Deletions,
    ) {
        let Some(active) = self.by_id.get_mut(&id) else { return };
        let requester = active.requester;
        match action {
            Action::Describe { recording, source } => match describe(turn, recording, &source) {
                Ok(copy) => {
                    let is_new = recording.is_none();
                    if let Some(machine) = self.get_mut(id) {
                        machine.on_described(copy);
                    }
                    if is_new {
                        let position = source.start_position;
                        self.signal(turn, id, None, Signal::Replicate, position);
                    }
                }
                Err(failure) => self.end(turn, id, Some(failure), recordings),
            },
            Action::Extend { recording, channel, stream_id, destination } => {
                let source =
                    Source { stream_id, location: 1, auto_stop: true, channel: channel.into() };
                let extension = Extension { recording, replication: Some(id), destination };
                match recordings.extend(turn, requester, extension, &source, deletions) {
                    Ok(ticket) => {
                        if let Some(active) = self.by_id.get_mut(&id) {
                            active.ticket = Some(ticket);
                        }
                    }
                    Err(failure) => self.end(turn, id, Some(failure), recordings),
                }
            }
            Action::AddReplayRequests { channel } => {
                let stream_id = active.source_stream_id;
                turn.out.order(Effect::AddReplayRequests { replication: id, channel, stream_id });
            }
            Action::AddDestination(channel) => {
                let Some(subscription) = subscription else { return };
                turn.out.order(Effect::AddDestination { subscription, channel });
            }
            Action::CountTransports => {
                let Some(recording) = active.machine.recording() else { return };
                turn.out.order(Effect::CountTransports { recording });
            }
            Action::Merge { destination, position } => {
                // The subscription goes on without the replication.
                active.ticket = None;
                let Some(subscription) = subscription else { return };
                turn.out.order(Effect::RemoveDestination { subscription, channel: destination });
                self.signal(turn, id, None, Signal::Merge, position);
            }
            Action::Signal { signal, position } => {
                self.signal(turn, id, subscription, signal, position);
            }
            Action::End(failure) => self.end(turn, id, failure, recordings),
        }
    }

    /// Signals what has become of the copy.
    fn signal(
        &self,
        turn: &mut Turn<'_>,
        id: ReplicationId,
        subscription: Option<RegistrationId>,
        signal: Signal,
        position: i64,
    ) {
        let Some(active) = self.by_id.get(&id) else { return };
        let event =
            SignalEvent { recording: active.machine.recording(), subscription, position, signal };
        turn.signal(active.requester, &event);
    }

    /// Ends a replication. The client is told when the catalog has the end of the copy.
    fn end(
        &mut self,
        turn: &mut Turn<'_>,
        id: ReplicationId,
        failure: Option<Failure>,
        recordings: &mut Recordings,
    ) {
        let Some(active) = self.by_id.get_mut(&id) else { return };
        active.machine.close(turn.out);
        active.is_ending = true;
        let (requester, ticket) = (active.requester, active.ticket.take());
        turn.out.order(Effect::CloseSource { replication: id });
        if let Some(failure) = failure {
            // As in Java, operators are told of no more than mistakes in channels.
            turn.refuse(requester, failure);
        }
        let subscription = ticket.and_then(|ticket| recordings.close_by_ticket(turn, ticket));
        if !subscription.is_some_and(|id| recordings.has_any_of(id)) {
            self.remove(turn, id);
        }
    }

    fn remove(&mut self, turn: &mut Turn<'_>, id: ReplicationId) {
        self.signal(turn, id, None, Signal::ReplicateEnd, NULL);
        if let Some(active) = self.by_id.remove(&id) {
            let source = active.machine.source_recording();
            log::debug!("replication {id}: recording {source} of the source: ended");
        }
    }

    /// The catalog has the end of a recording, perhaps of a copy, and its client is going to be
    /// told. A client that has been told of a replication's end finds the stop position of the
    /// copy, which Java's clients are signalled after it.
    pub(super) fn on_recording_ended(
        &mut self,
        turn: &mut Turn<'_>,
        ended: &Ended,
        recordings: &mut Recordings,
    ) {
        let Some(id) = ended.replication else { return };
        let Some(active) = self.by_id.get_mut(&id) else { return };
        if active.is_ending {
            self.remove(turn, id);
        } else if active.machine.is_synced(ended.position) {
            // Its stream ended before the replication noticed.
            self.signal(turn, id, Some(ended.subscription), Signal::Sync, ended.position);
            self.end(turn, id, None, recordings);
        }
    }

    /// Ends all replications, because the server ends.
    pub(super) fn end_all(&mut self, turn: &mut Turn<'_>, recordings: &mut Recordings) {
        let is_active = |(_, active): &(_, &ActiveReplication)| !active.is_ending;
        let ids: Vec<_> = self.by_id.iter().filter(is_active).map(|(id, _)| *id).collect();
        for id in ids {
            self.end(turn, id, None, recordings);
        }
    }
}

/// Returns where an existing recording ends, and whether it is empty.
fn existing(
    turn: &Turn<'_>,
    recording: RecordingId,
    recordings: &Recordings,
) -> Result<(i64, bool), Failure> {
    let Some(known) = turn.catalog.get(recording) else {
        let text = format!("unknown destination recording id {recording}");
        return Err(turn.unknown(recording, text));
    };
    if known.is_active() || recordings.get(recording).is_some() {
        return Err(active_copy(recording));
    }
    Ok((known.stop_position, known.start_position == known.stop_position))
}

fn active_copy(recording: RecordingId) -> Failure {
    let text = format!("cannot replicate to active recording {recording}");
    Failure::new(ErrorCode::ActiveRecording, text)
}

/// Puts the source's recording into the catalog, and returns its id here.
fn describe(
    turn: &mut Turn<'_>,
    recording: Option<RecordingId>,
    source: &SourceRecording,
) -> Result<RecordingId, Failure> {
    let (new, start_ms) = (source.as_new(), source.start_timestamp);
    new.check().map_err(|wrong| {
        Failure::generic(format!("the recording of the source is not valid: {wrong}"))
    })?;
    let Some(recording) = recording else {
        return Ok(turn.catalog.add_copy(new, start_ms)?);
    };
    let known = turn.settled(recording)?;
    if known.is_active() || known.start_position != known.stop_position {
        return Err(active_copy(recording));
    }
    turn.catalog.replace_by_copy(recording, new, start_ms)?;
    Ok(recording)
}
