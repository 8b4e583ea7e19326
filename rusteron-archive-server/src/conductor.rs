//! Decides what the archive does. The only I/O here is that of
//! [`Storage`](crate::storage::Storage).
//!
//! | file | what it decides |
//! |---|---|
//! | `conductor.rs`, `sessions.rs` | who may request something, and gets an answer |
//! | `parts.rs` | which part carries out a request, or is told of an event |
//! | `recordings.rs`, `active_recording.rs`, `subscriptions.rs` | what is recorded |
//! | `replays.rs`, `tokens.rs` | what is replayed |
//! | `segments.rs`, `deletions.rs`, `migration.rs` | which segments are removed and moved |
//! | `replications.rs` | what is copied from other archives |
//! | `listings.rs` | which recordings match |
//! | `effect.rs`, `event.rs` | orders to the outside, and what has happened there |
//! | `turn.rs`, `settings.rs` | what the parts share |

mod active_recording;
mod deletions;
pub(crate) mod effect;
pub(crate) mod event;
mod listings;
mod migration;
mod parts;
mod recordings;
mod replays;
mod replications;
mod segments;
mod sessions;
mod settings;
mod subscriptions;
mod tokens;
mod turn;

#[cfg(any(test, fuzzing))]
pub(crate) mod tests;

pub(crate) use settings::{ConductorSettings, ReplicationSettings};

use std::sync::Arc;

use rusteron_core::impl_debug;
use rusteron_core::panic::catch;

use crate::catalog::Catalog;
use crate::channel::Channel;
use crate::conductor::effect::{Blame, Clock, ControlSessionId, Effect, ImageId, Outside};
use crate::conductor::event::Event;
use crate::conductor::parts::Parts;
use crate::conductor::sessions::{Requester, Sessions};
use crate::conductor::turn::Shared;
use crate::control::authentication::{Authenticator, Authorisation};
use crate::control::request::{self, Replay, Request, SessionRequest, text};
use crate::control::responses::{Answer, Failure};
use crate::control::session::{Connect, End};
use crate::control::strangers::Admission;
use crate::ids::CorrelationId;
use crate::mark_file::MarkFile;
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::messages::AuthConnectRequest;
use crate::storage::Storage;

/// Decides what the archive does. It owns the catalog and the states of sessions, recordings and
/// replays; what needs the driver, or time, is an [`Effect`].
pub(crate) struct Conductor {
    shared: Shared,
    parts: Parts,
    authenticator: Box<dyn Authenticator>,
    authorisation: Box<dyn Authorisation>,
}

impl_debug!(Conductor: parts);

impl Conductor {
    pub(crate) fn new(
        settings: ConductorSettings,
        catalog: Catalog,
        storage: Arc<dyn Storage>,
        authenticator: Box<dyn Authenticator>,
        authorisation: Box<dyn Authorisation>,
    ) -> Self {
        let sessions = Sessions::new(settings.first_session_id, settings.session);
        let parts = Parts::new(settings.session.connect_timeout_ns);
        let shared = Shared { settings, catalog, storage, sessions };
        Self { shared, parts, authenticator, authorisation }
    }

    /// Lets the mark file keep the positions of recordings, for a server that follows a killed one.
    pub(crate) fn keep_positions(&mut self, mark_file: Arc<MarkFile>) {
        self.parts.recordings.keep_positions(mark_file);
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
            Ok(Request::Connect(request)) => {
                return self.connect(image, source_identity, request, now, out);
            }
            Ok(Request::ChallengeResponse(response)) => {
                let session = ControlSessionId::new(response.control_session_id);
                if let Some(control) = self.shared.sessions.get_on_image(session, image) {
                    let authenticator = &mut *self.authenticator;
                    control.on_challenge_response(response, authenticator, now);
                }
            }
            Ok(Request::Close(session)) => {
                if let Some(control) = self.shared.sessions.get_on_image(session, image) {
                    control.close(message);
                }
            }
            Ok(Request::Command(request)) => {
                self.on_command(&request, message, image, source_identity, now, out);
            }
            Ok(Request::Unknown) => {}
            Err(text) => out.report(Blame::Stranger, &text),
        }
        true
    }

    /// Begins a session. Returns false if there is no place for it.
    fn connect(
        &mut self,
        image: ImageId,
        source_identity: &str,
        request: AuthConnectRequest<'_>,
        now: Clock,
        out: &mut dyn Outside,
    ) -> bool {
        let Shared { sessions, settings, .. } = &mut self.shared;
        let response_channel = text(request.response_channel);
        let admission = sessions.admission(image, source_identity, now);
        if admission == Admission::None {
            return false;
        }
        let channel = Channel::parse(&response_channel)
            .and_then(|channel| channel.response(settings.response, image));
        let channel = match channel {
            Ok(channel) => channel,
            Err(error) => {
                out.report(
                    Blame::Stranger,
                    &format!("connect request with responseChannel={response_channel}: {error}"),
                );
                return true;
            }
        };
        let session = sessions.next_id();
        out.order(Effect::AddResponsePublication {
            session,
            channel: channel.clone(),
            stream_id: request.response_stream_id,
            request_image: image,
            client_info: text(request.client_info).into_owned(),
        });
        let connect = Connect {
            session,
            correlation_id: CorrelationId::new(request.correlation_id),
            request_image: image,
            response_channel: channel,
            response_stream_id: request.response_stream_id,
            invalid_version: invalid_version(request.version),
        };
        let authenticator = &mut *self.authenticator;
        let credentials = request.encoded_credentials;
        let told = catch(|| authenticator.on_connect_request(session, credentials, now.epoch_ms));
        let control = sessions.add(connect, admission, source_identity, now);
        if let Err(text) = told {
            control.end(End::Failed(format!("failed with exception: {text}")));
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
        let SessionRequest { session, correlation_id, template_id, ref command } = *request;
        let turn = &mut self.shared.turn(now, out);
        if let Some((token, replay)) = Replay::by_token(command) {
            return self.parts.replay_by_token(turn, image, correlation_id, token, &replay);
        }
        let Some(control) = turn.sessions.get_mut(session) else {
            return turn.out.report(
                Blame::LateRequest,
                &format!(
                    "control request for unknown session: controlSessionId={session} \
                 templateId={template_id}"
                ),
            );
        };
        let unauthorised = || {
            format!(
                "unauthorised archive action={template_id} controlSessionId={session} \
                 source={source_identity}"
            )
        };
        if control.request_image() != image {
            return turn.out.report(Blame::Stranger, &unauthorised());
        }
        if !control.activate() {
            return;
        }
        let requester = Requester { session, correlation_id };
        let authorisation = &mut *self.authorisation;
        let principal = control.encoded_principal();
        let is_authorised = catch(|| authorisation.is_authorised(template_id, principal));
        if is_authorised != Ok(true) {
            turn.out.report(Blame::Client, &unauthorised());
            let failure = Failure::new(ErrorCode::UnauthorisedAction, "unauthorised action");
            turn.respond(requester, &Answer::Error(failure));
        } else if control.is_deferring {
            control.defer(message.to_vec());
        } else {
            self.parts.execute(turn, requester, command);
        }
    }

    pub(crate) fn on_event(&mut self, event: Event, now: Clock, out: &mut dyn Outside) {
        self.parts.on_event(&mut self.shared.turn(now, out), event);
    }

    /// Does what is due. Returns how much that was.
    pub(crate) fn on_tick(&mut self, now: Clock, out: &mut dyn Outside) -> usize {
        let mut work = 0;
        for session in self.shared.sessions.iter_mut() {
            work += session.on_turn(now, &mut *self.authenticator, out);
        }
        work += self.parts.on_turn(&mut self.shared.turn(now, out));
        work += self.close_ended_sessions(out);
        self.shared.sessions.update_strangers(now);
        work
    }

    fn close_ended_sessions(&mut self, out: &mut dyn Outside) -> usize {
        let ended = self.shared.sessions.remove_ended();
        let count = ended.len();
        for (session, control) in ended {
            self.parts.remove_session(session);
            let authenticator = &mut *self.authenticator;
            if let Err(text) = catch(|| authenticator.on_session_closed(session)) {
                out.report(Blame::Server, &text);
            }
            if let Some(failure) = control.failure() {
                let blame = if control.is_known() { Blame::Server } else { Blame::Stranger };
                out.report(blame, &failure);
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

    /// Begins to end everything: replications, recordings and replays are aborted. Sessions stay,
    /// to be told of it.
    pub(crate) fn begin_close(&mut self, now: Clock, out: &mut dyn Outside) {
        self.parts.begin_close(&mut self.shared.turn(now, out));
    }

    /// Finishes deletions, of which clients are told, then ends all sessions.
    pub(crate) fn finish_close(&mut self, now: Clock, out: &mut dyn Outside) {
        self.parts.finish_close(&mut self.shared.turn(now, out));
        for session in self.shared.sessions.iter_mut() {
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
