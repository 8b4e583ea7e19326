//! Replications: requested, stopped, ended.

use std::collections::BTreeMap;

use rusteron_client::AeronVersion;

use crate::channel::Channel;
use crate::conductor::Conductor;
use crate::conductor::effect::{Clock, Effect, Failure, Outside, RecordingId, RegistrationId};
use crate::conductor::recordings::{catalog_failure, unknown};
use crate::conductor::sessions::Requester;
use crate::conductor::subscriptions::{Extension, refused_channel};
use crate::control::request::{Replicate, Source};
use crate::control::responses::{Answer, SignalEvent};
use crate::ids::{CorrelationId, ReplicationId, Ticket};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::signal::Signal;
use crate::replication::{
    Action, ControlChannels, Copy, ReplayChannels, ReplicatedImage, Replication,
    ReplicationRequest, SourceRecording, SourceSession, SourceSettings,
};

/// −1 stands for no id and no position.
const NULL: i64 = -1;

/// Settings that all replications share.
#[derive(Debug, Clone)]
pub(crate) struct ReplicationSettings {
    /// Where sources send their recordings to, unless a request says so. May be empty.
    pub(crate) channel: String,
    /// Where sources send their answers to, unless a request says so. May be empty.
    pub(crate) response_channel: String,
    pub(crate) response_stream_id: i32,
    /// For a connection, and for each answer.
    pub(crate) message_timeout_ns: i64,
    pub(crate) max_concurrent: usize,
}

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
}

impl Conductor {
    /// Begins to copy a recording of another archive.
    pub(super) fn replicate(
        &mut self,
        requester: Requester,
        request: &Replicate<'_>,
        now: Clock,
        out: &mut dyn Outside,
    ) -> Result<Answer, Failure> {
        let settings = self.settings.replication.clone();
        let max = settings.max_concurrent;
        if self.replications.by_id.len() >= max {
            let text = format!("max concurrent replications reached at {max}");
            return Err(Failure::generic(text));
        }
        let is_tagged = request.channel_tag != NULL || request.subscription_tag != NULL;
        let has_live = !request.live_destination.is_empty();
        let or_setting = |text: &str, setting: &str, name: &str| match (text, setting) {
            ("", "") => Err(Failure::generic(format!("{name} is not set"))),
            ("", setting) => Ok(setting.to_owned()),
            (text, _) => Ok(text.to_owned()),
        };
        let name = "replication_channel (AERON_ARCHIVE_REPLICATION_CHANNEL)";
        let channel = or_setting(&request.channel, &settings.channel, name)?;
        let is_response =
            Channel::parse(&channel).map_err(|error| refused_channel(&error, out))?.is_response();
        let unusable =
            |use_| Failure::generic(format!("response channels can't be used with {use_}"));
        if is_response && has_live {
            return Err(unusable("live destinations"));
        }
        if is_response && is_tagged {
            return Err(unusable("tagged replication"));
        }
        let recording = request.recording;
        let existing = match recording.map(|recording| (recording, self.catalog.get(recording))) {
            None => None,
            Some((recording, None)) => {
                let text = format!("unknown destination recording id {recording}");
                return Err(unknown(&self.catalog, recording, text));
            }
            Some((recording, Some(known)))
                if known.is_active() || self.recordings.contains_key(&recording) =>
            {
                let text = format!("cannot replicate to active recording {recording}");
                return Err(Failure::new(ErrorCode::ActiveRecording, text));
            }
            Some((_, Some(known))) => {
                Some((known.stop_position, known.start_position == known.stop_position))
            }
        };
        let name = "control_response_channel (AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL)";
        let response_channel =
            or_setting(&request.source_response_channel, &settings.response_channel, name)?;
        let control = ControlChannels::new(
            (&request.source_channel, request.source_stream_id),
            (&response_channel, settings.response_stream_id),
            self.settings.response,
        )
        .map_err(|error| refused_channel(&error, out))?;

        let id = ReplicationId::new(self.sessions.next_id().get());
        let or_id = |tag| if tag == NULL { id.get() } else { tag };
        let tags = (is_tagged || has_live)
            .then(|| (or_id(request.channel_tag), or_id(request.subscription_tag)));
        let AeronVersion { text: version, commit, .. } = AeronVersion::linked();
        let client_info = format!(
            "name=archive archiveId={} replicationSessionId={id} version={version} commit={commit}",
            self.settings.archive_id
        );
        let source = SourceSettings {
            replication: id,
            request_channel: control.requests.clone(),
            response_stream_id: settings.response_stream_id,
            credentials: request.credentials.to_vec(),
            client_info,
            timeout_ns: settings.message_timeout_ns,
        };
        let copied = ReplicationRequest {
            source_recording: request.source_recording,
            recording,
            existing,
            stop_position: request.stop_position,
            live_destination: has_live.then(|| request.live_destination.clone().into_owned()),
            file_io_max_length: request.file_io_max_length,
            session_id: request.session_id,
            replay: ReplayChannels::new(&channel, tags)
                .map_err(|error| refused_channel(&error, out))?,
            control: control.clone(),
        };
        let source = SourceSession::new(source, now);
        let active = ActiveReplication {
            requester: Requester {
                session: requester.session,
                correlation_id: CorrelationId::new(id.get()),
            },
            machine: Replication::new(copied, source, settings.message_timeout_ns),
            source_stream_id: request.source_stream_id,
            ticket: None,
            is_ending: false,
        };
        self.replications.by_id.insert(id, active);
        log::debug!(
            "replication {id}: recording {} of {} to recording {}",
            request.source_recording,
            request.source_channel,
            recording.map_or(NULL, RecordingId::get)
        );
        out.order(Effect::ConnectSource { replication: id, channels: control });
        Ok(Answer::Ok(id.get()))
    }

    /// Ends a replication in its next turn, behind the answer.
    pub(super) fn stop_replication(&mut self, id: ReplicationId) -> Result<Answer, Failure> {
        match self.replications.get_mut(id).filter(|machine| !machine.is_done()) {
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
    pub(crate) fn on_source_added(&mut self, replication: ReplicationId, response_channel: String) {
        if let Some(machine) = self.replications.get_mut(replication) {
            machine.on_source_added(response_channel);
        }
    }

    /// A stream to or from the source has failed.
    pub(crate) fn on_source_failed(&mut self, replication: ReplicationId, text: &str) {
        if let Some(machine) = self.replications.get_mut(replication) {
            machine.on_source_failed(text);
        }
    }

    pub(crate) fn on_source_message(&mut self, replication: ReplicationId, message: &[u8]) {
        if let Some(machine) = self.replications.get_mut(replication) {
            machine.on_source_message(message);
        }
    }

    /// A destination of a subscription could not be added or removed.
    pub(crate) fn on_destination_failed(
        &mut self,
        subscription: RegistrationId,
        text: String,
        out: &mut dyn Outside,
    ) {
        let replication = self.subscriptions.get_mut(subscription).and_then(|it| it.replication);
        match replication.and_then(|id| self.replications.get_mut(id)) {
            Some(machine) => machine.fail(Failure::generic(text)),
            None => out.report(&text),
        }
    }

    /// So many streams feed the image of a recording.
    pub(crate) fn on_transports(&mut self, recording: RecordingId, count: usize) {
        let machines = self.replications.by_id.values_mut().map(|active| &mut active.machine);
        for machine in machines.filter(|machine| machine.recording() == Some(recording)) {
            machine.on_transports(count);
        }
    }

    /// Lets replications do what is due. Returns how much that was.
    pub(super) fn on_replications_turn(&mut self, now: Clock, out: &mut dyn Outside) -> usize {
        let mut work = 0;
        let ids: Vec<_> = self.replications.by_id.keys().copied().collect();
        for id in ids {
            loop {
                let copy = self.copy(id);
                let Some(active) = self.replications.by_id.get_mut(&id) else { break };
                if active.is_ending {
                    break;
                }
                let Some(action) = active.machine.turn(now, &copy, out) else { break };
                self.act(id, action, now, out);
                work += 1;
            }
        }
        work
    }

    /// Returns what there is of the copy that a replication makes.
    fn copy(&mut self, id: ReplicationId) -> Copy {
        let Some(active) = self.replications.by_id.get(&id) else { return Copy::default() };
        let Some(ticket) = active.ticket else { return Copy::default() };
        let recording = active.machine.recording();
        let subscription = self.subscriptions.by_ticket(ticket);
        let is_closed = subscription.as_ref().is_none_or(|known| known.is_closing);
        let subscription = subscription.and_then(|known| known.id);
        let descriptor = recording.and_then(|recording| self.catalog.get(recording));
        let active = recording.and_then(|recording| self.recordings.get(&recording));
        let active = active.filter(|active| Some(active.subscription) == subscription);
        let image = active.map(|active| ReplicatedImage {
            session_id: active.session_id(),
            position: active.position(),
            term_length: descriptor.map_or(0, |known| known.term_length),
        });
        let stop_position =
            descriptor.filter(|known| !known.is_active()).map(|known| known.stop_position);
        Copy { subscription, is_closed, image, stop_position }
    }

    fn act(&mut self, id: ReplicationId, action: Action, now: Clock, out: &mut dyn Outside) {
        let subscription = self.copy(id).subscription;
        let Some(active) = self.replications.by_id.get_mut(&id) else { return };
        let requester = active.requester;
        match action {
            Action::Describe { recording, source } => match self.describe(recording, &source) {
                Ok(copy) => {
                    let is_new = recording.is_none();
                    if let Some(machine) = self.replications.get_mut(id) {
                        machine.on_described(copy);
                    }
                    if is_new {
                        let position = source.start_position;
                        self.signal(id, None, Signal::Replicate, position, now, out);
                    }
                }
                Err(failure) => self.end(id, Some(failure), now, out),
            },
            Action::Extend { recording, channel, stream_id, destination } => {
                let source =
                    Source { stream_id, location: 1, auto_stop: true, channel: channel.into() };
                let extension = Extension { recording, replication: Some(id), destination };
                match self.extend_recording(requester, extension, &source, out) {
                    Ok(ticket) => {
                        if let Some(active) = self.replications.by_id.get_mut(&id) {
                            active.ticket = Some(ticket);
                        }
                    }
                    Err(failure) => self.end(id, Some(failure), now, out),
                }
            }
            Action::AddReplayRequests { channel } => {
                let stream_id = active.source_stream_id;
                out.order(Effect::AddReplayRequests { replication: id, channel, stream_id });
            }
            Action::AddDestination(channel) => {
                let Some(subscription) = subscription else { return };
                out.order(Effect::AddDestination { subscription, channel });
            }
            Action::CountTransports => {
                let Some(recording) = active.machine.recording() else { return };
                out.order(Effect::CountTransports { recording });
            }
            Action::Merge { destination, position } => {
                // The subscription goes on without the replication.
                active.ticket = None;
                let Some(subscription) = subscription else { return };
                if let Some(known) = self.subscriptions.get_mut(subscription) {
                    known.replication = None;
                }
                out.order(Effect::RemoveDestination { subscription, channel: destination });
                self.signal(id, None, Signal::Merge, position, now, out);
            }
            Action::Signal { signal, position } => {
                self.signal(id, subscription, signal, position, now, out);
            }
            Action::End(failure) => self.end(id, failure, now, out),
        }
    }

    /// Puts the source's recording into the catalog, and returns its id here.
    fn describe(
        &mut self,
        recording: Option<RecordingId>,
        source: &SourceRecording,
    ) -> Result<RecordingId, Failure> {
        let (new, start_ms) = (source.as_new(), source.start_timestamp);
        new.check().map_err(|wrong| {
            Failure::generic(format!("the recording of the source is not valid: {wrong}"))
        })?;
        let Some(recording) = recording else {
            let added = self.catalog.add_copy(new, start_ms);
            return added.map_err(|error| catalog_failure(&error));
        };
        let known = self.settled(recording)?;
        if known.is_active() || known.start_position != known.stop_position {
            let text = format!("cannot replicate to active recording {recording}");
            return Err(Failure::new(ErrorCode::ActiveRecording, text));
        }
        let replaced = self.catalog.replace_by_copy(recording, new, start_ms);
        replaced.map(|()| recording).map_err(|error| catalog_failure(&error))
    }

    /// Signals what has become of the copy.
    fn signal(
        &mut self,
        id: ReplicationId,
        subscription: Option<RegistrationId>,
        signal: Signal,
        position: i64,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        let Some(active) = self.replications.by_id.get(&id) else { return };
        let event =
            SignalEvent { recording: active.machine.recording(), subscription, position, signal };
        self.sessions.signal(active.requester, &event, now, out);
    }

    /// Ends a replication. The client is told when the catalog has the end of the copy.
    fn end(
        &mut self,
        id: ReplicationId,
        failure: Option<Failure>,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        let Some(active) = self.replications.by_id.get_mut(&id) else { return };
        active.machine.close(out);
        active.is_ending = true;
        let (requester, ticket) = (active.requester, active.ticket.take());
        out.order(Effect::CloseSource { replication: id });
        if let Some(failure) = failure {
            // As in Java, the client is told, and nobody else.
            self.sessions.respond(requester, &Answer::Error(failure), now, out);
        }
        let subscription = ticket.and_then(|ticket| self.close_by_ticket(ticket, out));
        let is_recording = |id| self.recordings.values().any(|active| active.subscription == id);
        if !subscription.is_some_and(is_recording) {
            self.remove(id, now, out);
        }
    }

    fn remove(&mut self, id: ReplicationId, now: Clock, out: &mut dyn Outside) {
        self.signal(id, None, Signal::ReplicateEnd, NULL, now, out);
        if let Some(active) = self.replications.by_id.remove(&id) {
            let source = active.machine.source_recording();
            log::debug!("replication {id}: recording {source} of the source: ended");
        }
    }

    /// The catalog has the end of a copy, and its client is going to be told. A client that has been told of a
    /// replication's end finds the stop position of the copy, which Java's clients are signalled behind it.
    pub(super) fn on_copy_stopped(
        &mut self,
        id: ReplicationId,
        subscription: RegistrationId,
        position: i64,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        let Some(active) = self.replications.by_id.get_mut(&id) else { return };
        if active.is_ending {
            self.remove(id, now, out);
        } else if active.machine.is_synced(position) {
            // Its stream ended before the replication noticed.
            self.signal(id, Some(subscription), Signal::Sync, position, now, out);
            self.end(id, None, now, out);
        }
    }

    /// Ends all replications, because the server ends.
    pub(super) fn end_replications(&mut self, now: Clock, out: &mut dyn Outside) {
        let ids: Vec<_> = self.replications.by_id.keys().copied().collect();
        for id in ids {
            if self.replications.by_id.get(&id).is_some_and(|active| !active.is_ending) {
                self.end(id, None, now, out);
            }
        }
    }
}
