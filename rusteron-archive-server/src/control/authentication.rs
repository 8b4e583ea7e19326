//! Who may connect, and who may do what.

use crate::ids::ControlSessionId;

/// An authenticator's decision about a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authentication {
    /// Not decided yet: the authenticator is asked again.
    Pending,
    /// The client has to answer this challenge.
    Challenge(Vec<u8>),
    /// The client may use the archive, with this identity, which an [`Authorisation`] sees. It may be empty.
    Accept(Vec<u8>),
    /// The client is told of it, and its session ends.
    Reject,
}

/// Decides who may connect to an archive.
///
/// The archive's conductor calls it, so no method may block. A session that panics an authenticator ends; the others go
/// on. A session that is not decided when the connect timeout has passed ends, too.
///
/// A session id is unique in a server. Credentials are bytes of the network, as long as the client likes within a message of
/// its control stream. `now_ms` is the time in milliseconds since 1970.
///
/// By default everybody may connect: [`AcceptAll`].
pub trait Authenticator: Send {
    /// A client asks for a session, with credentials that may be empty.
    fn on_connect_request(
        &mut self,
        session_id: ControlSessionId,
        encoded_credentials: &[u8],
        now_ms: i64,
    );

    /// A challenged client answers, with credentials that may be empty.
    fn on_challenge_response(
        &mut self,
        session_id: ControlSessionId,
        encoded_credentials: &[u8],
        now_ms: i64,
    );

    /// Decides about a session whose client can be answered. Called every 200 ms while
    /// [`Pending`](Authentication::Pending).
    fn on_connected_session(&mut self, session_id: ControlSessionId, now_ms: i64)
    -> Authentication;

    /// Decides about a challenged session, whose client may not have answered yet. Called in every duty cycle while
    /// [`Pending`](Authentication::Pending).
    fn on_challenged_session(
        &mut self,
        session_id: ControlSessionId,
        now_ms: i64,
    ) -> Authentication;

    /// A session has ended, decided or not.
    fn on_session_closed(&mut self, _session_id: ControlSessionId) {}
}

/// Lets every client connect, with an empty identity.
#[derive(Debug, Clone, Copy, Default)]
pub struct AcceptAll;

impl Authenticator for AcceptAll {
    fn on_connect_request(&mut self, _: ControlSessionId, _: &[u8], _: i64) {}

    fn on_challenge_response(&mut self, _: ControlSessionId, _: &[u8], _: i64) {}

    fn on_connected_session(&mut self, _: ControlSessionId, _: i64) -> Authentication {
        Authentication::Accept(Vec::new())
    }

    fn on_challenged_session(&mut self, _: ControlSessionId, _: i64) -> Authentication {
        Authentication::Accept(Vec::new())
    }
}

/// Decides which requests a client may send.
///
/// The archive's conductor calls it for each request, so it may not block. A panic counts as a refusal.
///
/// By default every request is allowed: [`AllowAll`].
pub trait Authorisation: Send {
    /// Tells whether a client may send a request: `template_id` is its message's id in Aeron's archive schema (id 101),
    /// `encoded_principal` the identity that the [`Authenticator`] gave, which is empty before.
    fn is_authorised(&mut self, template_id: u16, encoded_principal: &[u8]) -> bool;
}

/// Allows every request.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllowAll;

impl Authorisation for AllowAll {
    fn is_authorised(&mut self, _template_id: u16, _encoded_principal: &[u8]) -> bool {
        true
    }
}
