//! Decides what the archive does. The only I/O here is that of
//! [`Storage`](crate::storage::Storage).
//!
//! | file | what it decides |
//! |---|---|
//! | `conductor.rs` | what comes when: requests, events, turns |
//! | `sessions.rs` | who gets an answer |
//! | `recordings.rs`, `subscriptions.rs` | what is recorded |
//! | `replays.rs`, `tokens.rs` | what is replayed |
//! | `segments.rs`, `deletion.rs`, `migration.rs` | which segments are removed, deleted and moved |
//! | `replications.rs` | what is copied from other archives |
//! | `listing.rs` | which recordings match |
//! | `effect.rs` | the orders to the outside |

mod deletion;
pub(crate) mod effect;
mod listing;
mod migration;
mod recordings;
mod replays;
mod replications;
mod segments;
mod sessions;
mod subscriptions;
mod tokens;

#[cfg(any(test, fuzzing))]
pub(crate) mod tests;

pub(crate) use replications::ReplicationSettings;

use std::sync::Arc;

use rusteron_core::impl_debug;
use rusteron_core::panic::catch;

use crate::catalog::Catalog;
use crate::channel::{Channel, ResponseDefaults};
use crate::conductor::deletion::Deletions;
use crate::conductor::effect::{Clock, Effect, ImageId, Outside, SessionId};
use crate::conductor::listing::Listings;
use crate::conductor::recordings::{ActiveRecordings, unknown_recording};
use crate::conductor::replays::Replays;
use crate::conductor::replications::Replications;
use crate::conductor::sessions::{Requester, Sessions};
use crate::conductor::subscriptions::{Extension, Subscriptions};
use crate::conductor::tokens::Tokens;
use crate::control::authentication::{Authenticator, Authorisation};
use crate::control::request::{self, Command, Request, SessionRequest};
use crate::control::responses::{Answer, Failure};
use crate::control::session::{Connect, End, SessionSettings};
use crate::control::strangers::Admission;
use crate::ids::RecordingId;
use crate::mark_file::MarkFile;
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::error_code::ErrorCode;
use crate::storage::Storage;

/// What the conductor is told once. Lengths are in bytes.
#[derive(Debug, Clone)]
pub(crate) struct ConductorSettings {
    pub(crate) archive_id: i64,
    pub(crate) session: SessionSettings,
    /// The id of the first control session. Ids of an earlier archive should not come again soon.
    pub(crate) first_session_id: SessionId,
    pub(crate) response: ResponseDefaults,
    pub(crate) max_concurrent_recordings: usize,
    pub(crate) max_concurrent_replays: usize,
    pub(crate) segment_length: i32,
    pub(crate) file_io_max_length: i32,
    /// With this space left, or less, no recording begins.
    pub(crate) low_storage_space_threshold: u64,
    pub(crate) replay_linger_ns: i64,
    pub(crate) recording_events_enabled: bool,
    pub(crate) replication: ReplicationSettings,
}

/// Decides what the archive does. It owns the catalog and the states of sessions, recordings and replays; what needs
/// the driver, or time, is an [`Effect`].
pub(crate) struct Conductor {
    settings: ConductorSettings,
    catalog: Catalog,
    storage: Arc<dyn Storage>,
    authenticator: Box<dyn Authenticator>,
    authorisation: Box<dyn Authorisation>,
    sessions: Sessions,
    subscriptions: Subscriptions,
    recordings: ActiveRecordings,
    replays: Replays,
    replications: Replications,
    tokens: Tokens,
    deletions: Deletions,
    listings: Listings,
    /// Keeps the positions of recordings.
    mark_file: Option<Arc<MarkFile>>,
}

impl_debug!(Conductor: settings, sessions, subscriptions, recordings, replays, replications);

impl Conductor {
    pub(crate) fn new(
        settings: ConductorSettings,
        catalog: Catalog,
        storage: Arc<dyn Storage>,
        authenticator: Box<dyn Authenticator>,
        authorisation: Box<dyn Authorisation>,
    ) -> Self {
        Self {
            catalog,
            storage,
            authenticator,
            authorisation,
            sessions: Sessions::new(settings.first_session_id, settings.session),
            subscriptions: Subscriptions::default(),
            recordings: ActiveRecordings::new(),
            replays: Replays::default(),
            replications: Replications::default(),
            tokens: Tokens::new(settings.session.connect_timeout_ns),
            deletions: Deletions::new(),
            listings: Listings::new(),
            mark_file: None,
            settings,
        }
    }

    /// Lets the mark file keep the positions of recordings, for a server that follows a killed one.
    pub(crate) fn keep_positions(&mut self, mark_file: Arc<MarkFile>) {
        self.mark_file = Some(mark_file);
    }

    /// Carries out a request, which came on an image. Returns whether it was accepted: if not, it
    /// has to come again, because the client is not known, and others that are not known have all
    /// places.
    #[must_use]
    pub(crate) fn on_request(
        &mut self,
        image: ImageId,
        source_identity: &str,
        message: &[u8],
        now: Clock,
        out: &mut dyn Outside,
    ) -> bool {
        match request::decode(message) {
            Ok(Request::Connect {
                correlation_id,
                response_stream_id,
                version,
                response_channel,
                credentials,
                client_info,
            }) => {
                let admission = self.sessions.admission(image, source_identity, now);
                if admission == Admission::None {
                    return false;
                }
                let channel = Channel::parse(&response_channel)
                    .and_then(|channel| channel.response(self.settings.response, image));
                let channel = match channel {
                    Ok(channel) => channel,
                    Err(error) => {
                        out.report_stranger(&format!(
                            "connect request with responseChannel={response_channel}: {error}"
                        ));
                        return true;
                    }
                };
                let connect = Connect {
                    session: self.sessions.next_id(),
                    correlation_id,
                    request_image: image,
                    response_channel: channel,
                    response_stream_id,
                    invalid_version: invalid_version(version),
                };
                let session = connect.session;
                out.order(Effect::AddResponsePublication {
                    session,
                    channel: connect.response_channel.clone(),
                    stream_id: connect.response_stream_id,
                    request_image: connect.request_image,
                    client_info: client_info.into_owned(),
                });
                let authenticator = &mut *self.authenticator;
                let told = catch(|| {
                    authenticator.on_connect_request(session.get(), credentials, now.epoch_ms)
                });
                let control = self.sessions.add(connect, admission, source_identity, now);
                if let Err(text) = told {
                    control.end(End::Failed(format!("failed with exception: {text}")));
                }
            }
            Ok(Request::ChallengeResponse { session, correlation_id, credentials }) => {
                let authenticator = &mut *self.authenticator;
                if let Some(control) = self.sessions.get_mut(session) {
                    if control.request_image() == image {
                        control.on_challenge_response(
                            correlation_id,
                            credentials,
                            authenticator,
                            now,
                        );
                    }
                }
            }
            Ok(Request::Close { session }) => {
                if let Some(control) = self.sessions.get_mut(session) {
                    if control.request_image() == image {
                        control.close(message);
                    }
                }
            }
            Ok(Request::Command(request)) => {
                self.on_command(&request, message, image, source_identity, now, out);
            }
            Ok(Request::Unknown) => {}
            Err(text) => out.report_stranger(&text),
        }
        true
    }

    /// Carries out a request of a session, if it may make it.
    fn on_command(
        &mut self,
        request: &SessionRequest<'_>,
        message: &[u8],
        image: ImageId,
        source_identity: &str,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        let SessionRequest { session, correlation_id, template_id, command } = request;
        if let Command::Replay(replay) = command {
            let is_response = Channel::parse(&replay.channel).is_ok_and(|it| it.is_response());
            if replay.token != -1 && is_response {
                let token = replay.token;
                let Some(session) = self.tokens.session(token, replay.recording, now) else {
                    return out.report_stranger(&format!(
                        "Unknown session or token timeout for replayToken={token}"
                    ));
                };
                let is_active =
                    self.sessions.get_mut(session).is_some_and(|control| control.activate());
                if is_active {
                    let requester = Requester { session, correlation_id: *correlation_id };
                    let outcome = self.start_replay(requester, replay, Some(image), out);
                    self.answer(requester, outcome.map(|()| None), now, out);
                }
                return;
            }
        }

        let session = *session;
        let Some(control) = self.sessions.get_mut(session) else {
            return out.record_late_request(&format!(
                "control request for unknown session: controlSessionId={session} \
                 templateId={template_id}"
            ));
        };
        let unauthorised = || {
            format!(
                "unauthorised archive action={template_id} controlSessionId={session} \
                 source={source_identity}"
            )
        };
        if control.request_image() != image {
            return out.report_stranger(&unauthorised());
        }
        if !control.activate() {
            return;
        }
        let authorisation = &mut *self.authorisation;
        let principal = control.encoded_principal();
        let is_authorised = catch(|| authorisation.is_authorised(*template_id, principal));
        if is_authorised != Ok(true) {
            out.record_mistake(&unauthorised());
            let failure = Failure::new(ErrorCode::UnauthorisedAction, "unauthorised action");
            let message = Answer::Error(failure).encode(session, *correlation_id);
            control.send(message, now, out);
        } else if control.is_deferring {
            control.defer(message.to_vec());
        } else {
            let requester = Requester { session, correlation_id: *correlation_id };
            self.execute(requester, command, now, out);
        }
    }

    fn execute(
        &mut self,
        requester: Requester,
        command: &Command<'_>,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        let outcome = match command {
            Command::KeepAlive => Ok(None),
            Command::ArchiveId => Ok(Some(Answer::Ok(self.settings.archive_id))),
            Command::StartRecording(source) => {
                let outcome = self.start_recording(requester, source, out);
                self.defer_others(requester.session, outcome)
            }
            Command::ExtendRecording(recording, source) => {
                let extension =
                    Extension { recording: *recording, replication: None, destination: None };
                let outcome = self.extend_recording(requester, extension, source, out);
                self.defer_others(requester.session, outcome.map(drop))
            }
            Command::StopRecording { stream_id, channel } => {
                self.stop_recording(*stream_id, channel, out).map(Some)
            }
            Command::StopRecordingSubscription(id) => {
                self.stop_recording_subscription(*id, out).map(Some)
            }
            Command::StopRecordingByIdentity(recording) => {
                self.stop_recording_by_identity(*recording, out).map(Some)
            }
            Command::Replay(replay) => {
                self.start_replay(requester, replay, None, out).map(|()| None)
            }
            Command::StopReplay(session_id) => Ok(Some(self.stop_replay(*session_id, out))),
            Command::StopAllReplays(recording) => Ok(Some(self.stop_all_replays(*recording, out))),
            Command::ReplayToken(recording) => {
                let token = self.tokens.draw(requester.session, *recording, now);
                let token = token.ok_or_else(|| Failure::generic("too many replay tokens"));
                token.map(|token| Some(Answer::Ok(token)))
            }
            Command::ListRecordings { from, count, filter } => {
                self.list_recordings(requester, *from, *count, filter.as_ref())
            }
            Command::ListRecording(recording) => self.list_recording(requester, *recording),
            Command::FindLastMatching { min_recording, session_id, filter } => {
                self.find_last_matching(*min_recording, *session_id, filter).map(Some)
            }
            Command::ListSubscriptions(query) => {
                self.list_subscriptions(requester, query, now, out)
            }
            Command::StartPosition(recording)
            | Command::RecordingPosition(recording)
            | Command::StopPosition(recording)
            | Command::MaxRecordedPosition(recording) => {
                self.position(*recording, command).map(|position| Some(Answer::Ok(position)))
            }
            Command::UpdateChannel { recording, channel } => {
                self.update_channel(requester.session, *recording, channel, out).map(Some)
            }
            Command::TruncateRecording { recording, position } => {
                self.truncate_recording(requester, *recording, *position, now, out)
            }
            Command::PurgeRecording(recording) => {
                self.purge_recording(requester, *recording, now, out)
            }
            Command::DetachSegments { recording, start } => {
                self.detach_segments(*recording, *start)
            }
            Command::PurgeSegments { recording, start } => {
                self.purge_segments(requester, *recording, *start, now, out)
            }
            Command::DeleteDetachedSegments(recording) => {
                self.delete_detached_segments(requester, *recording, now, out)
            }
            Command::AttachSegments(recording) => self.attach_segments(*recording),
            Command::MigrateSegments { source, destination } => {
                self.migrate_segments(requester, *source, *destination, now, out)
            }
            Command::Replicate(request) => self.replicate(requester, request, now, out).map(Some),
            Command::StopReplication(id) => self.stop_replication(*id).map(Some),
        };
        self.answer(requester, outcome, now, out);
    }

    fn position(&self, recording: RecordingId, command: &Command<'_>) -> Result<i64, Failure> {
        let descriptor = self
            .catalog
            .get(recording)
            .ok_or_else(|| unknown_recording(&self.catalog, recording))?;
        let in_progress = || self.recording_position(recording);
        Ok(match command {
            Command::StartPosition(_) => descriptor.start_position,
            Command::RecordingPosition(_) => in_progress(),
            Command::MaxRecordedPosition(_) if descriptor.is_active() => in_progress(),
            _ => descriptor.stop_position,
        })
    }

    /// Lets the requests of a session wait until the driver has registered a subscription.
    fn defer_others(
        &mut self,
        session: SessionId,
        outcome: Result<(), Failure>,
    ) -> Result<Option<Answer>, Failure> {
        if outcome.is_ok() {
            if let Some(control) = self.sessions.get_mut(session) {
                control.is_deferring = true;
            }
        }
        outcome.map(|()| None)
    }

    /// Carries out the requests that have waited.
    fn execute_deferred(&mut self, session: SessionId, now: Clock, out: &mut dyn Outside) {
        if let Some(control) = self.sessions.get_mut(session) {
            control.is_deferring = false;
        }
        loop {
            let control = self.sessions.get_mut(session);
            let Some(control) = control.filter(|control| !control.is_deferring) else { return };
            let Some(message) = control.next_deferred() else { return };
            match request::decode(&message) {
                Ok(Request::Command(request)) => {
                    let requester = Requester { session, correlation_id: request.correlation_id };
                    self.execute(requester, &request.command, now, out);
                }
                // The client has closed its session, and has not waited for the answers.
                _ => control.end(End::Closed),
            }
        }
    }

    fn answer(
        &mut self,
        requester: Requester,
        outcome: Result<Option<Answer>, Failure>,
        now: Clock,
        out: &mut dyn Outside,
    ) {
        if let Some(answer) = outcome.unwrap_or_else(|failure| Some(Answer::Error(failure))) {
            self.sessions.respond(requester, &answer, now, out);
        }
    }

    /// The requests of a client can come no more.
    pub(crate) fn on_request_image_unavailable(&mut self, image: ImageId) {
        for session in self.sessions.on_image(image) {
            session.end(End::RequestImageGone);
        }
    }

    /// A session can be answered, or not.
    pub(crate) fn on_response_publication(
        &mut self,
        session: SessionId,
        outcome: Result<(), String>,
        now: Clock,
    ) {
        if let Some(control) = self.sessions.get_mut(session) {
            control.on_publication(outcome, now);
        }
    }

    /// Does what is due. Returns how much that was.
    pub(crate) fn on_tick(&mut self, now: Clock, out: &mut dyn Outside) -> usize {
        let mut work = 0;
        for session in self.sessions.iter_mut() {
            work += session.on_turn(now, &mut *self.authenticator, out);
        }
        self.tokens.remove_expired(now);
        work += self.on_listings_turn(now, out);
        work += self.on_recordings_turn(now, out);
        work += self.on_deletions_turn(now, out);
        work += self.on_replications_turn(now, out);
        work += self.close_ended_sessions(out);
        self.sessions.update_strangers(now);
        work
    }

    fn close_ended_sessions(&mut self, out: &mut dyn Outside) -> usize {
        let ended = self.sessions.remove_ended();
        let count = ended.len();
        for (session, control) in ended {
            self.tokens.remove_session(session);
            self.listings.remove(&session);
            let authenticator = &mut *self.authenticator;
            if let Err(text) = catch(|| authenticator.on_session_closed(session.get())) {
                out.report(&text);
            }
            if let Some(failure) = control.failure() {
                if control.is_known() {
                    out.report(&failure);
                } else {
                    out.report_stranger(&failure);
                }
            }
            let reject = match control.ended() {
                Some(End::Failed(reason)) => Some(reason.clone()),
                _ => None,
            };
            let request_image = control.request_image();
            out.order(Effect::CloseSession { session, request_image, reject });
        }
        count
    }

    /// Begins to end everything: replications, recordings and replays are aborted. Sessions stay, to be told of it.
    pub(crate) fn begin_close(&mut self, now: Clock, out: &mut dyn Outside) {
        self.end_replications(now, out);
        self.abort_recordings(out);
        self.stop_all_replays(None, out);
    }

    /// Tells whether all recordings have ended, with their positions in the catalog.
    pub(crate) fn has_ended_recordings(&self) -> bool {
        self.recordings.is_empty()
    }

    /// Ends all sessions, at last.
    pub(crate) fn close_sessions(&mut self, out: &mut dyn Outside) {
        for session in self.sessions.iter_mut() {
            session.end_with_server();
        }
        self.close_ended_sessions(out);
    }
}

/// Returns the text for a client whose major version is another one.
fn invalid_version(version: i32) -> Option<String> {
    let text = |version: i32| {
        let [patch, minor, major, _] = version.to_le_bytes();
        format!("{major}.{minor}.{patch}")
    };
    let major = |version: i32| version.to_le_bytes()[2];
    (major(version) != major(PROTOCOL_VERSION)).then(|| {
        let (client, archive) = (text(version), text(PROTOCOL_VERSION));
        format!("invalid client version {client}, archive is {archive}")
    })
}
