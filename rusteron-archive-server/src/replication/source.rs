//! The session with the source: connecting, requests and their answers.

use std::sync::Arc;

use rusteron_core::sbe::MessageHeader;

use crate::control::responses::Failure;
use crate::control::{Clock, Sending};
use crate::ids::{CorrelationId, NULL_ID, RegistrationId, ReplicationId, SourceSessionId};
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::messages::{
    ArchiveIdRequest, AuthConnectRequest, ChallengeResponse, CloseSessionRequest, ControlResponse,
    KeepAliveRequest, Message, SCHEMA_ID,
};
use crate::protocol::response_code::ResponseCode;
use crate::replication::SourceRecording;

/// The first version of the protocol, 1.11.0, in which an archive tells its id.
const VERSION_WITH_ARCHIVE_ID: i32 = 1 << 16 | 11 << 8;

/// A stream of requests to the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestStream {
    /// That of the session.
    Control,
    /// That of a replay whose stream comes by a response channel.
    Replay,
}

/// The streams to and from the sources. No call blocks.
pub(crate) trait SourceLink {
    /// Attempts to send a request to the source of a replication.
    fn try_request(
        &mut self,
        replication: ReplicationId,
        stream: RequestStream,
        message: &[u8],
    ) -> Sending;

    /// Tells whether the source sends answers.
    fn is_source_connected(&self, replication: ReplicationId) -> bool;

    /// Returns the address on which a subscription receives, once it has a socket.
    fn local_address(&self, subscription: RegistrationId) -> Option<String>;
}

/// Settings of a session with the source.
#[derive(Debug, Clone)]
pub(crate) struct SourceSettings {
    pub(crate) replication: ReplicationId,
    pub(crate) request_channel: String,
    pub(crate) response_stream_id: i32,
    pub(crate) credentials: Vec<u8>,
    pub(crate) client_info: String,
    /// For the connection, and for each answer.
    pub(crate) timeout_ns: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Both streams are being added, and the source's subscription has not been seen.
    Adding,
    /// The source is asked for a session.
    Connecting {
        response_channel: Arc<str>,
    },
    Challenged,
    /// The source is asked for its id.
    ArchiveId,
    /// The source is told that it has been heard.
    Accepted,
    Connected,
}

impl State {
    /// The state's name in Java's texts.
    fn name(&self) -> &'static str {
        match self {
            Self::Adding => "AWAIT_PUBLICATION_CONNECTED",
            Self::Connecting { .. } => "AWAIT_CONNECT_RESPONSE",
            Self::Challenged => "AWAIT_CHALLENGE_RESPONSE",
            Self::ArchiveId => "AWAIT_ARCHIVE_ID_RESPONSE",
            Self::Accepted => "SEND_KEEP_ALIVE",
            Self::Connected => "DONE",
        }
    }
}

/// An answer of the source that is not a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SourceAnswer {
    Ok { relevant_id: i64, session: SourceSessionId, version: i32 },
    RecordingUnknown,
    Recording(Box<SourceRecording>),
    Challenge { session: SourceSessionId },
}

/// How a request is sent, and what is wrong if it is not answered.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    pub(super) stream: RequestStream,
    pub(super) attempts: u32,
    pub(super) not_sent: &'a str,
    pub(super) not_answered: &'a str,
}

impl<'a> Asking<'a> {
    /// Asks once, on the stream of the session.
    pub(super) fn once(not_sent: &'a str, not_answered: &'a str) -> Self {
        Self { stream: RequestStream::Control, attempts: 1, not_sent, not_answered }
    }
}

/// A session with the source. One request at a time is awaited.
#[derive(Debug)]
pub(crate) struct SourceSession {
    settings: Arc<SourceSettings>,
    state: State,
    /// `None` before the source has given one, and after the end.
    session: Option<SourceSessionId>,
    last_correlation_id: CorrelationId,
    /// The request that is awaited.
    awaited: Option<CorrelationId>,
    answer: Option<SourceAnswer>,
    /// The text of the source's refusal.
    refusal: Option<String>,
    /// Of the request that is being sent, or awaited.
    deadline_ns: Option<i64>,
    connect_deadline_ns: i64,
    attempts: u32,
}

impl SourceSession {
    pub(crate) fn new(settings: SourceSettings, now: Clock) -> Self {
        let connect_deadline_ns = now.ns.saturating_add(settings.timeout_ns);
        Self {
            settings: Arc::new(settings),
            state: State::Adding,
            session: None,
            last_correlation_id: CorrelationId::new(0),
            awaited: None,
            answer: None,
            refusal: None,
            deadline_ns: None,
            connect_deadline_ns,
            attempts: 0,
        }
    }

    /// Both streams are there, and the source reads requests.
    pub(crate) fn on_added(&mut self, response_channel: String) {
        if self.state == State::Adding {
            self.state = State::Connecting { response_channel: response_channel.into() };
        }
    }

    /// Takes a message of the source, whatever it is.
    pub(crate) fn on_message(&mut self, message: &[u8]) {
        let Some((header, body)) = MessageHeader::split(message) else { return };
        if header.schema_id != SCHEMA_ID {
            let text = format!("expected schemaId={SCHEMA_ID}, actual={}", header.schema_id);
            self.refusal.get_or_insert(text);
            return;
        }
        let is_ours = |session, correlation_id| {
            let is_connecting = matches!(self.state, State::Connecting { .. } | State::Challenged);
            (is_connecting || Some(SourceSessionId::new(session)) == self.session)
                && Some(CorrelationId::new(correlation_id)) == self.awaited
        };
        match Message::decode(header, body) {
            Some(Message::ControlResponse(m)) => self.on_response(&m),
            Some(Message::RecordingDescriptor(m))
                if is_ours(m.control_session_id, m.correlation_id) =>
            {
                let recording = SourceRecording::new(&m);
                self.answer = Some(SourceAnswer::Recording(Box::new(recording)));
            }
            Some(Message::Challenge(m)) if is_ours(m.control_session_id, m.correlation_id) => {
                let session = SourceSessionId::new(m.control_session_id);
                self.answer = Some(SourceAnswer::Challenge { session });
            }
            // Signals of the source's recording, and signs of life.
            _ => {}
        }
    }

    fn on_response(&mut self, response: &ControlResponse<'_>) {
        let session = SourceSessionId::new(response.control_session_id);
        let is_awaited = Some(CorrelationId::new(response.correlation_id)) == self.awaited;
        let is_connecting = matches!(self.state, State::Connecting { .. } | State::Challenged);
        if is_connecting && !is_awaited || !is_connecting && Some(session) != self.session {
            return;
        }
        if response.code == ResponseCode::Error as i32 {
            let text = String::from_utf8_lossy(response.error_message).into_owned();
            self.refusal.get_or_insert(text);
        } else if is_awaited && response.code == ResponseCode::Ok as i32 {
            self.answer = Some(SourceAnswer::Ok {
                relevant_id: response.relevant_id,
                session,
                version: response.version,
            });
        } else if is_awaited {
            self.answer = Some(SourceAnswer::RecordingUnknown);
        }
    }

    /// Goes on connecting. Returns whether the session is there.
    ///
    /// # Errors
    /// Why there is none. The code is that of a failed connection.
    pub(crate) fn connect<L: SourceLink + ?Sized>(
        &mut self,
        now: Clock,
        link: &mut L,
    ) -> Result<bool, Failure> {
        if now.ns >= self.connect_deadline_ns && self.state != State::Connected {
            let (step, channel) = (self.state.name(), &self.settings.request_channel);
            let text = format!("Archive connect timeout: step={step} publication={channel}");
            return Err(connection_failure(&text));
        }
        let asking =
            Asking::once("failed to send connect request", "failed to get connect response");
        let settings = Arc::clone(&self.settings);
        let answer = match self.state.clone() {
            State::Adding => Ok(None),
            State::Connected => return Ok(true),
            State::Connecting { response_channel } => {
                self.ask(&asking, now, link, |_, correlation_id| {
                    AuthConnectRequest {
                        correlation_id,
                        response_stream_id: settings.response_stream_id,
                        version: PROTOCOL_VERSION,
                        response_channel: response_channel.as_bytes(),
                        encoded_credentials: &settings.credentials,
                        client_info: settings.client_info.as_bytes(),
                    }
                    .to_vec()
                })
            }
            // Like Java's, a replication has no other credentials than those of its request.
            State::Challenged if !settings.credentials.is_empty() => {
                let text = "Replication does not support challenge/response authentication";
                return Err(connection_failure(text));
            }
            State::Challenged => {
                self.ask(&asking, now, link, |control_session_id, correlation_id| {
                    let encoded_credentials = b"";
                    ChallengeResponse { control_session_id, correlation_id, encoded_credentials }
                        .to_vec()
                })
            }
            State::ArchiveId => {
                self.ask(&asking, now, link, |control_session_id, correlation_id| {
                    ArchiveIdRequest { control_session_id, correlation_id }.to_vec()
                })
            }
            State::Accepted => {
                let control_session_id = self.session.map_or(NULL_ID, SourceSessionId::get);
                let message = KeepAliveRequest { control_session_id, correlation_id: NULL_ID };
                if self.send(link, RequestStream::Control, &message.to_vec()) == Sending::Sent {
                    self.state = State::Connected;
                }
                return Ok(self.state == State::Connected);
            }
        };
        let answer = answer.map_err(|failure| connection_failure(&failure.text))?;
        match (&self.state, answer) {
            (_, None) => {}
            (State::ArchiveId, Some(_)) => self.state = State::Accepted,
            (_, Some(SourceAnswer::Challenge { session })) => {
                self.session = Some(session);
                self.state = State::Challenged;
            }
            (_, Some(SourceAnswer::Ok { session, version, .. })) => {
                self.session = Some(session);
                let has_id = version >= VERSION_WITH_ARCHIVE_ID;
                self.state = if has_id { State::ArchiveId } else { State::Accepted };
            }
            (_, Some(_)) => return Err(connection_failure("unexpected response")),
        }
        Ok(false)
    }

    /// Tells that a session that was there has ended, or that the source has refused something.
    pub(super) fn check<L: SourceLink + ?Sized>(&mut self, link: &L) -> Result<(), Failure> {
        if let Some(text) = self.refusal.take() {
            return Err(exception(&text));
        }
        if self.state == State::Connected && !link.is_source_connected(self.settings.replication) {
            return Err(exception("not connected"));
        }
        Ok(())
    }

    /// Sends a request, or awaits its answer. `encode` gets the session and the correlation id.
    pub(super) fn ask<L: SourceLink + ?Sized>(
        &mut self,
        asking: &Asking<'_>,
        now: Clock,
        link: &mut L,
        encode: impl FnOnce(i64, i64) -> Vec<u8>,
    ) -> Result<Option<SourceAnswer>, Failure> {
        if let Some(text) = self.refusal.take() {
            return Err(exception(&text));
        }
        let timeout_ns = self.settings.timeout_ns;
        let deadline = *self.deadline_ns.get_or_insert(now.ns.saturating_add(timeout_ns));
        if self.awaited.is_some() {
            if let Some(answer) = self.answer.take() {
                self.forget();
                return Ok(Some(answer));
            }
            if now.ns < deadline {
                return Ok(None);
            }
            self.attempts += 1;
            if self.attempts >= asking.attempts {
                return Err(exception(asking.not_answered));
            }
            self.awaited = None;
        }
        let correlation_id = CorrelationId::new(self.last_correlation_id.get() + 1);
        let session = self.session.map_or(NULL_ID, SourceSessionId::get);
        let message = encode(session, correlation_id.get());
        match self.send(link, asking.stream, &message) {
            Sending::Sent => {
                self.last_correlation_id = correlation_id;
                self.awaited = Some(correlation_id);
                self.deadline_ns = Some(now.ns.saturating_add(timeout_ns));
                Ok(None)
            }
            Sending::TooLong => {
                let text = format!("{}: the message is too long", asking.not_sent);
                Err(exception(&text))
            }
            _ if now.ns >= deadline => Err(exception(asking.not_sent)),
            _ => Ok(None),
        }
    }

    fn forget(&mut self) {
        self.awaited = None;
        self.deadline_ns = None;
        self.attempts = 0;
    }

    fn send<L: SourceLink + ?Sized>(
        &self,
        link: &mut L,
        stream: RequestStream,
        message: &[u8],
    ) -> Sending {
        link.try_request(self.settings.replication, stream, message)
    }

    /// Ends the session, if there is one. `last` is a request for which no answer is awaited.
    pub(super) fn close<L: SourceLink + ?Sized>(
        &mut self,
        link: &mut L,
        last: Option<impl FnOnce(i64, i64) -> Vec<u8>>,
    ) {
        let Some(session) = self.session.take() else { return };
        let control_session_id = session.get();
        let last = last.map(|last| last(control_session_id, self.last_correlation_id.get() + 1));
        let close = CloseSessionRequest { control_session_id }.to_vec();
        for message in last.into_iter().chain([close]) {
            // The source notices the end of the session in any case.
            let _ = self.send(link, RequestStream::Control, &message);
        }
    }
}

/// A failure with the text of an exception of Java.
pub(super) fn exception(text: &str) -> Failure {
    Failure::generic(format!("ERROR - {text}"))
}

fn connection_failure(text: &str) -> Failure {
    let text = text.strip_prefix("ERROR - ").unwrap_or(text);
    let text = format!("Replication connection failed=ERROR - {text}");
    Failure::new(ErrorCode::ReplicationConnectionFailure, text)
}
