//! Control sessions: what a client may send, and what it is answered, without I/O.

pub(crate) mod authentication;
pub(crate) mod request;
pub(crate) mod responses;
pub(crate) mod session;
pub(crate) mod strangers;
mod waiting;

use crate::ids::ControlSessionId;

/// The time of a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    /// Nanoseconds of a clock that never goes back. Deadlines use it.
    pub(crate) ns: i64,
    /// Milliseconds since 1970, for the catalog and for authenticators.
    pub(crate) epoch_ms: i64,
}

/// The outcome of an attempt to send a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    /// The message is in the publication.
    Sent,
    /// A later attempt may succeed.
    BackPressured,
    /// No subscriber reads the publication.
    NotConnected,
    /// The publication is closed.
    Closed,
    /// The publication is at its greatest position.
    MaxPosition,
    /// The message is longer than the publication can carry.
    TooLong,
}

/// The response publications of the control sessions. No call blocks.
pub(crate) trait Responder {
    /// Attempts to send a message to the client of a session.
    fn try_send(&mut self, session: ControlSessionId, message: &[u8]) -> Sending;

    /// Tells whether a subscriber reads the response publication of a session.
    fn is_connected(&self, session: ControlSessionId) -> bool;
}
