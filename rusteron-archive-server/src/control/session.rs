//! The states of a control session.

use std::mem;

use rusteron_core::panic::catch;

use crate::control::authentication::{Authentication, Authenticator};
use crate::control::responses::{Answer, Failure, challenge, invalid_version, ping};
use crate::control::waiting::Waiting;
use crate::control::{Clock, Responder, Sending};
use crate::ids::{ControlSessionId, CorrelationId, ImageId};
use crate::protocol::error_code::ErrorCode;
use crate::protocol::messages::ChallengeResponse;

/// The pause between repetitions of an answer to a connect request.
const RESEND_INTERVAL_NS: i64 = 200_000_000;

/// The text of a rejection, which Java's clients know.
const REJECTED: &str = "authentication rejected";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The response publication is being added.
    Init,
    /// The client's subscription has not been seen.
    Connecting,
    /// The authenticator is asked.
    Connected,
    /// The client has been challenged.
    Challenged,
    /// The client may not know yet that it is connected.
    Authenticated,
    Active,
    /// The client may not know yet that it is rejected.
    Rejected,
    Done,
}

impl State {
    /// The state's name in Java's texts.
    fn name(self) -> &'static str {
        match self {
            Self::Init => "INIT",
            Self::Connecting => "CONNECTING",
            Self::Connected => "CONNECTED",
            Self::Challenged => "CHALLENGED",
            Self::Authenticated => "AUTHENTICATED",
            Self::Active => "ACTIVE",
            Self::Rejected => "REJECTED",
            Self::Done => "DONE",
        }
    }
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The client closed it.
    Closed,
    /// The client does not read its answers any more.
    NotConnected,
    /// The client does not send requests any more.
    RequestImageGone,
    /// The client may believe that it has a session: its request image is rejected with this reason.
    Failed(String),
}

/// What all sessions have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionSettings {
    /// How long a client may take to connect, and how long its answers may wait.
    pub(crate) connect_timeout_ns: i64,
    /// The time between pings.
    pub(crate) liveness_check_interval_ns: i64,
    /// How many sessions may wait for their authentication.
    pub(crate) max_unauthenticated: usize,
}

/// A connect request that could be understood.
#[derive(Debug)]
pub(crate) struct Connect {
    pub(crate) session: ControlSessionId,
    pub(crate) correlation_id: CorrelationId,
    pub(crate) request_image: ImageId,
    pub(crate) response_channel: String,
    pub(crate) response_stream_id: i32,
    /// The text for a client whose version of the protocol is another one.
    pub(crate) invalid_version: Option<String>,
}

/// A control session.
#[derive(Debug)]
pub(crate) struct ControlSession {
    connect: Connect,
    settings: SessionSettings,
    state: State,
    end: Option<End>,
    /// What the authenticator has decided, and the client could not be told yet.
    decision: Authentication,
    encoded_principal: Vec<u8>,
    /// The client is authenticated, or was before the session ended.
    is_known: bool,
    resend_deadline_ns: i64,
    /// When the session ends unless a message can be sent before.
    activity_deadline_ns: Option<i64>,
    ping_deadline_ns: i64,
    /// Messages that wait for the client, in order.
    waiting: Waiting,
    /// A request waits for the driver. Those behind it wait, too, so that answers come in order.
    pub(crate) is_deferring: bool,
    deferred: Waiting,
}

impl ControlSession {
    pub(crate) fn new(connect: Connect, settings: SessionSettings, now: Clock) -> Self {
        Self {
            connect,
            settings,
            state: State::Init,
            end: None,
            decision: Authentication::Pending,
            encoded_principal: Vec::new(),
            is_known: false,
            resend_deadline_ns: now.ns,
            activity_deadline_ns: Some(now.ns.saturating_add(settings.connect_timeout_ns)),
            ping_deadline_ns: now.ns.saturating_add(settings.liveness_check_interval_ns),
            waiting: Waiting::default(),
            is_deferring: false,
            deferred: Waiting::default(),
        }
    }

    pub(crate) fn request_image(&self) -> ImageId {
        self.connect.request_image
    }

    pub(crate) fn encoded_principal(&self) -> &[u8] {
        &self.encoded_principal
    }

    /// Returns whether the client is authenticated, or was before the session ended.
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Why the session has ended, if it has.
    pub(crate) fn ended(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The line for the error log, if the session ended by a failure.
    pub(crate) fn failure(&self) -> Option<String> {
        let Some(End::Failed(reason)) = &self.end else { return None };
        let Connect { session, response_stream_id, response_channel, .. } = &self.connect;
        Some(format!(
            "controlSessionId={session} (controlResponseStreamId={response_stream_id} \
             controlResponseChannel={response_channel}) terminated: {reason}"
        ))
    }

    /// The first reason stays.
    pub(crate) fn end(&mut self, reason: End) {
        if self.end.is_none() {
            self.end = Some(reason);
            self.state = State::Done;
        }
    }

    /// Ends the session with the server, which may have lost the media driver before.
    pub(crate) fn end_with_server(&mut self) {
        self.end = Some(End::Closed);
        self.state = State::Done;
    }

    /// Makes an authenticated session active, and tells whether requests count.
    pub(crate) fn activate(&mut self) -> bool {
        if self.state == State::Authenticated {
            self.state = State::Active;
        }
        self.state == State::Active
    }

    /// Ends the session, as the client wants it, once the requests before are carried out.
    pub(crate) fn close(&mut self, request: &[u8]) {
        if self.is_deferring { self.defer(request.to_vec()) } else { self.end(End::Closed) }
    }

    /// Keeps a request until the one before it is answered.
    pub(crate) fn defer(&mut self, request: Vec<u8>) {
        if !self.deferred.push(request) {
            self.end(End::Failed("too many requests wait for the driver".to_owned()));
        }
    }

    /// Returns the next request that has waited. The requests of a client that has gone are carried
    /// out, too: one of them may stop a recording that another has started.
    pub(crate) fn next_deferred(&mut self) -> Option<Vec<u8>> {
        if self.is_closed() { None } else { self.deferred.remove_first() }
    }

    /// Returns whether nothing is left to do for the session.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed() || self.end.is_some() && !self.is_deferring
    }

    /// Returns whether the client has closed the session, or the server has ended it.
    fn is_closed(&self) -> bool {
        matches!(self.end, Some(End::Closed | End::Failed(_)))
    }

    /// The response publication is there, or cannot be added.
    pub(crate) fn on_publication(&mut self, added: Result<(), String>, now: Clock) {
        if self.state != State::Init {
            return;
        }
        match added {
            Ok(()) => {
                self.state = State::Connecting;
                let deadline = now.ns.saturating_add(self.settings.connect_timeout_ns);
                self.activity_deadline_ns = Some(deadline);
            }
            Err(text) => self.end(End::Failed(format!("failed with exception: {text}"))),
        }
    }

    pub(crate) fn on_challenge_response(
        &mut self,
        response: ChallengeResponse<'_>,
        authenticator: &mut dyn Authenticator,
        now: Clock,
    ) {
        if self.state == State::Challenged {
            self.connect.correlation_id = CorrelationId::new(response.correlation_id);
            let (session, credentials) = (self.connect.session, response.encoded_credentials);
            let outcome =
                catch(|| authenticator.on_challenge_response(session, credentials, now.epoch_ms));
            self.fail_by_panic(outcome);
        }
    }

    fn fail_by_panic<T>(&mut self, outcome: Result<T, String>) -> Option<T> {
        outcome.map_err(|text| self.end(End::Failed(format!("failed with exception: {text}")))).ok()
    }

    /// Sends a message, or keeps it until it can be sent. Drops it if the session is not active.
    pub(crate) fn send<R: Responder + ?Sized>(
        &mut self,
        message: Vec<u8>,
        now: Clock,
        responder: &mut R,
    ) {
        let outcome = self.try_send(&message, now, responder);
        if outcome == Sending::BackPressured && !self.waiting.push(message) {
            let text = "too many responses wait for a client that does not read them";
            self.end(End::Failed(text.to_owned()));
        }
    }

    /// Attempts to send a message behind those that wait.
    pub(crate) fn try_send<R: Responder + ?Sized>(
        &mut self,
        message: &[u8],
        now: Clock,
        responder: &mut R,
    ) -> Sending {
        if self.state != State::Active {
            Sending::Closed
        } else if self.waiting.is_empty() {
            self.attempt(message, now, responder)
        } else {
            Sending::BackPressured
        }
    }

    fn attempt<R: Responder + ?Sized>(
        &mut self,
        message: &[u8],
        now: Clock,
        responder: &mut R,
    ) -> Sending {
        let outcome = self.publish(message, responder);
        match outcome {
            Sending::Sent => self.activity_deadline_ns = None,
            Sending::BackPressured => {
                let deadline = now.ns.saturating_add(self.settings.connect_timeout_ns);
                self.activity_deadline_ns.get_or_insert(deadline);
            }
            _ => {}
        }
        outcome
    }

    /// Ends the session if no message can be sent any more.
    fn publish<R: Responder + ?Sized>(&mut self, message: &[u8], responder: &mut R) -> Sending {
        let outcome = responder.try_send(self.connect.session, message);
        let failed = |text: &str| End::Failed(format!("control response publication is {text}"));
        match outcome {
            Sending::Sent | Sending::BackPressured | Sending::TooLong => {}
            Sending::NotConnected => self.end(End::NotConnected),
            Sending::Closed => self.end(failed("closed")),
            Sending::MaxPosition => self.end(failed("at max position")),
        }
        outcome
    }

    /// Does what is due. Returns how much that was.
    pub(crate) fn on_turn<R: Responder + ?Sized>(
        &mut self,
        now: Clock,
        authenticator: &mut dyn Authenticator,
        responder: &mut R,
    ) -> usize {
        if self.activity_deadline_ns.is_some_and(|deadline| now.ns > deadline) {
            self.end(End::Failed(if self.state == State::Active {
                let timeout_ms = self.settings.connect_timeout_ns / 1_000_000;
                format!("failed to send response for more than connectTimeoutMs={timeout_ms}")
            } else {
                format!("failed to establish initial connection: state={}", self.state.name())
            }));
            return 1;
        }
        match self.state {
            State::Init | State::Done => 0,
            State::Connecting => {
                let is_connected = responder.is_connected(self.connect.session);
                if is_connected {
                    self.state = State::Connected;
                }
                usize::from(is_connected)
            }
            State::Connected => self.answer_connect(now, authenticator, responder),
            State::Challenged => {
                self.decide(now, authenticator, responder);
                1
            }
            State::Authenticated => {
                let work = usize::from(self.is_resend_due(now));
                if work > 0 {
                    self.publish(&self.accepted(), responder);
                }
                work
            }
            State::Active => self.serve(now, responder),
            State::Rejected => {
                let work = usize::from(self.is_resend_due(now));
                if work > 0 {
                    let failure = Failure::new(ErrorCode::AuthenticationRejected, REJECTED);
                    let Connect { session, correlation_id, .. } = self.connect;
                    let message = Answer::Error(failure).encode(session, correlation_id);
                    self.publish(&message, responder);
                }
                work
            }
        }
    }

    fn is_resend_due(&mut self, now: Clock) -> bool {
        let is_due = now.ns >= self.resend_deadline_ns;
        if is_due {
            self.resend_deadline_ns = now.ns.saturating_add(RESEND_INTERVAL_NS);
        }
        is_due
    }

    fn accepted(&self) -> Vec<u8> {
        let Connect { session, correlation_id, .. } = self.connect;
        Answer::Ok(session.get()).encode(session, correlation_id)
    }

    fn answer_connect<R: Responder + ?Sized>(
        &mut self,
        now: Clock,
        authenticator: &mut dyn Authenticator,
        responder: &mut R,
    ) -> usize {
        if !self.is_resend_due(now) {
            return 0;
        }
        let Connect { session, correlation_id, invalid_version: text, .. } = &self.connect;
        if let Some(text) = text {
            self.publish(&invalid_version(*session, *correlation_id, text), responder);
        } else {
            self.decide(now, authenticator, responder);
        }
        1
    }

    /// Asks the authenticator, and tells the client.
    fn decide<R: Responder + ?Sized>(
        &mut self,
        now: Clock,
        authenticator: &mut dyn Authenticator,
        responder: &mut R,
    ) {
        let Connect { session, correlation_id, .. } = self.connect;
        let mut decision = mem::replace(&mut self.decision, Authentication::Pending);
        if decision == Authentication::Pending {
            let is_challenged = self.state == State::Challenged;
            let outcome = catch(|| {
                if is_challenged {
                    authenticator.on_challenged_session(session, now.epoch_ms)
                } else {
                    authenticator.on_connected_session(session, now.epoch_ms)
                }
            });
            match self.fail_by_panic(outcome) {
                Some(decided) => decision = decided,
                None => return,
            }
        }
        match decision {
            Authentication::Pending => {}
            Authentication::Challenge(bytes) => {
                let message = challenge(session, correlation_id, &bytes);
                match self.publish(&message, responder) {
                    Sending::Sent => self.state = State::Challenged,
                    Sending::TooLong => {
                        let text = "the authenticator's challenge is too long to be sent";
                        self.end(End::Failed(text.to_owned()));
                    }
                    _ => self.decision = Authentication::Challenge(bytes),
                }
            }
            Authentication::Accept(principal) => {
                if self.publish(&self.accepted(), responder) == Sending::Sent {
                    self.encoded_principal = principal;
                    self.is_known = true;
                    self.activity_deadline_ns = None;
                    self.state = State::Authenticated;
                    self.resend_deadline_ns = now.ns.saturating_add(RESEND_INTERVAL_NS);
                } else {
                    self.decision = Authentication::Accept(principal);
                }
            }
            Authentication::Reject => self.state = State::Rejected,
        }
    }

    /// Pings the client, and sends what waits for it.
    fn serve<R: Responder + ?Sized>(&mut self, now: Clock, responder: &mut R) -> usize {
        let mut work = 0;
        if now.ns >= self.ping_deadline_ns {
            self.ping_deadline_ns = now.ns.saturating_add(self.settings.liveness_check_interval_ns);
            self.attempt(&ping(self.connect.session), now, responder);
            work += 1;
        }
        if !responder.is_connected(self.connect.session) {
            self.end(End::NotConnected);
        }
        let mut waiting = mem::take(&mut self.waiting);
        while self.state == State::Active {
            let Some(message) = waiting.first() else { break };
            match self.attempt(message, now, responder) {
                // A message that is too long for this client's terms would wait for ever.
                Sending::Sent | Sending::TooLong => drop(waiting.remove_first()),
                _ => break,
            }
            work += 1;
        }
        self.waiting = waiting;
        work
    }
}
