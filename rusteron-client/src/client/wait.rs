//! Waiting for a stream, with a deadline.

use std::fmt;
use std::time::{Duration, Instant};

use rusteron_core::channel::ChannelStatus;
use rusteron_core::error::{CloseCause, Error, ErrorKind, OfferError};
use rusteron_core::ffi::callback;
use rusteron_core::idle::IdleStrategy;

use crate::client::Client;

/// The reason why a wait with a deadline ended without its result.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError {
    /// The deadline has passed. The same call, with a later deadline, may succeed.
    TimedOut {
        /// The duration of the call.
        waited: Duration,
        /// The state of the stream at the last attempt.
        state: WaitState,
        /// The channel of the stream.
        channel: String,
        /// The stream id.
        stream_id: i32,
    },
    /// The message is rejected, however often it is offered. Never a
    /// [retryable](OfferError::is_retryable) error, and never [`OfferError::Closed`].
    Rejected(OfferError),
    /// The publication or subscription is closed, or its client is closed.
    Closed(CloseCause),
    /// The call was made in a callback of a conductor, which must not wait.
    CalledFromConductor,
}

/// The state of a stream that was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitState {
    /// No peer is connected: no subscriber of a publication, or no publisher of a subscription.
    NotConnected {
        /// The state of the channel's sockets. [`ChannelStatus::Errored`] says that no peer can be
        /// expected.
        channel_status: ChannelStatus,
    },
    /// The subscribers are not ready for more messages.
    BackPressured,
    /// The log buffer is being rotated.
    AdminAction,
    /// The media driver has unblocked the message's range.
    Unblocked,
}

impl WaitError {
    /// Returns whether the same call, with a later deadline, may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::TimedOut { .. })
    }
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut { waited, state, channel, stream_id } => {
                write!(f, "timed out after {waited:.1?}: {channel} stream {stream_id} {state}")
            }
            Self::Rejected(error) => error.fmt(f),
            Self::Closed(cause) => write!(f, "the stream is closed: {}", cause.with_advice()),
            Self::CalledFromConductor => {
                f.write_str("waiting in a callback of the conductor; another thread has to wait")
            }
        }
    }
}

impl fmt::Display for WaitState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected { channel_status: ChannelStatus::Active } => {
                f.write_str("is not connected: no peer has joined, or the last one has left")
            }
            Self::NotConnected { channel_status } => {
                write!(f, "is not connected; channel status {channel_status:?}")
            }
            Self::BackPressured => f.write_str("is back-pressured by the subscribers"),
            Self::AdminAction => f.write_str("rotates its log buffer"),
            Self::Unblocked => f.write_str("was unblocked by the media driver"),
        }
    }
}

rusteron_core::debug_as_display!(WaitError);

impl std::error::Error for WaitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Rejected(error) => Some(error),
            _ => None,
        }
    }
}

impl From<WaitError> for Error {
    fn from(error: WaitError) -> Self {
        let kind = match &error {
            WaitError::TimedOut { state, .. } => match state {
                WaitState::NotConnected { .. } => ErrorKind::NotConnected,
                WaitState::BackPressured => ErrorKind::BackPressured,
                WaitState::AdminAction => ErrorKind::AdminAction,
                WaitState::Unblocked => ErrorKind::Unblocked,
            },
            WaitError::Rejected(error) => return Self::from(*error),
            WaitError::Closed(cause) => return Self::closed(*cause, error.to_string()),
            WaitError::CalledFromConductor => ErrorKind::CalledFromConductor,
        };
        Self::new(kind, error.to_string())
    }
}

/// The end of a wait without its result. The caller adds what it knows of the stream.
pub(crate) enum Refusal {
    TimedOut { waited: Duration, last: OfferError },
    Rejected(OfferError),
    CalledFromConductor,
}

impl Refusal {
    pub(crate) fn of_stream(
        self,
        channel_status: impl FnOnce() -> ChannelStatus,
        channel: &str,
        stream_id: i32,
    ) -> WaitError {
        match self {
            Self::TimedOut { waited, last } => WaitError::TimedOut {
                waited,
                state: match last {
                    OfferError::BackPressured => WaitState::BackPressured,
                    OfferError::AdminAction => WaitState::AdminAction,
                    OfferError::Unblocked => WaitState::Unblocked,
                    _ => WaitState::NotConnected { channel_status: channel_status() },
                },
                channel: channel.to_owned(),
                stream_id,
            },
            Self::Rejected(OfferError::Closed(cause)) => WaitError::Closed(cause),
            Self::Rejected(error) => WaitError::Rejected(error),
            Self::CalledFromConductor => WaitError::CalledFromConductor,
        }
    }
}

/// Repeats an attempt until it succeeds, or fails for good, or the deadline has passed. For a client
/// without a conductor thread, does the conductor's work between two attempts.
pub(crate) fn until<T>(
    client: &Client,
    deadline: Instant,
    idle: &mut (impl IdleStrategy + ?Sized),
    mut attempt: impl FnMut() -> Result<T, OfferError>,
) -> Result<T, Refusal> {
    if callback::is_running() {
        return Err(Refusal::CalledFromConductor);
    }
    let start = Instant::now();
    idle.reset();
    loop {
        let last = match attempt() {
            Ok(outcome) => return Ok(outcome),
            Err(error) if error.is_retryable() => error,
            Err(error) => return Err(Refusal::Rejected(error)),
        };
        let now = Instant::now();
        if now >= deadline {
            return Err(Refusal::TimedOut { waited: now - start, last });
        }
        if client.has_invoker() {
            // A fatal error closes the client, which the next attempt reports.
            let _ = client.do_work();
        }
        idle.idle(0);
    }
}

/// Repeats looks for a peer, as [`until`] repeats attempts.
pub(crate) fn connected(
    client: &Client,
    deadline: Instant,
    idle: &mut impl IdleStrategy,
    is_connected: impl Fn() -> bool,
    is_closed: impl Fn() -> bool,
) -> Result<(), Refusal> {
    until(client, deadline, idle, || match is_connected() {
        true => Ok(()),
        false if is_closed() => Err(OfferError::Closed(client.handle_close_cause())),
        false => Err(OfferError::NotConnected),
    })
}
