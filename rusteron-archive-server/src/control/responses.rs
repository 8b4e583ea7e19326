//! Messages to a client.

use crate::catalog::CatalogError;
use crate::channel::ChannelError;
use crate::ids::{ControlSessionId, CorrelationId, NULL_ID, RecordingId, RegistrationId};
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::error_code::ErrorCode;
use crate::protocol::messages::{
    Challenge, ControlResponse, Ping, RecordingDescriptor, RecordingSignalEvent,
    RecordingSubscriptionDescriptor,
};
use crate::protocol::response_code::ResponseCode;
use crate::protocol::signal::Signal;

/// The greatest length of a text in bytes. The shortest terms of a response channel, 64 KiB, carry messages of 8 KiB.
const MAX_TEXT_LENGTH: usize = 8000;

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Done, with the id or the position that was asked for.
    Ok(i64),
    Error(Failure),
    /// No recording has this id, or there are no more.
    RecordingUnknown(RecordingId),
    /// There are no more subscriptions.
    SubscriptionUnknown,
}

/// Why a request is refused, or why what it began has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: ErrorCode,
    /// The text that the client gets.
    pub(crate) text: String,
    /// The client has asked for what cannot be. Otherwise, server, driver or files are at fault.
    pub(crate) is_mistake: bool,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        let is_mistake = !matches!(code, ErrorCode::Generic | ErrorCode::StorageSpace);
        Self { code, text: text.into(), is_mistake }
    }

    /// A failure without a code of its own.
    pub(crate) fn generic(text: impl Into<String>) -> Self {
        Self::new(ErrorCode::Generic, text)
    }

    /// A mistake of the client without a code of its own.
    pub(crate) fn mistake(text: impl Into<String>) -> Self {
        Self { is_mistake: true, ..Self::generic(text) }
    }
}

impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Self {
        let is_full = error.is_storage_full();
        let code = if is_full { ErrorCode::StorageSpace } else { ErrorCode::Generic };
        Self::new(code, error.to_string())
    }
}

/// A channel that cannot be used is the client's mistake.
impl From<ChannelError> for Failure {
    fn from(error: ChannelError) -> Self {
        Self::mistake(error.to_string())
    }
}

impl Answer {
    /// Encodes the answer to the request with this correlation id.
    pub(crate) fn encode(
        &self,
        session: ControlSessionId,
        correlation_id: CorrelationId,
    ) -> Vec<u8> {
        let (code, relevant_id, text) = match self {
            Self::Ok(id) => (ResponseCode::Ok, *id, ""),
            Self::Error(failure) => {
                (ResponseCode::Error, failure.code.code(), failure.text.as_str())
            }
            Self::RecordingUnknown(id) => (ResponseCode::RecordingUnknown, id.get(), ""),
            Self::SubscriptionUnknown => (ResponseCode::SubscriptionUnknown, 0, ""),
        };
        response(session, correlation_id, relevant_id, code, text)
    }
}

/// Encodes the answer to a client whose version of the protocol is another one. Its relevant id is the session's.
pub(crate) fn invalid_version(
    session: ControlSessionId,
    correlation_id: CorrelationId,
    text: &str,
) -> Vec<u8> {
    response(session, correlation_id, session.get(), ResponseCode::Error, text)
}

fn response(
    session: ControlSessionId,
    correlation_id: CorrelationId,
    relevant_id: i64,
    code: ResponseCode,
    text: &str,
) -> Vec<u8> {
    let text = text.as_bytes();
    ControlResponse {
        control_session_id: session.get(),
        correlation_id: correlation_id.get(),
        relevant_id,
        code: code as i32,
        version: PROTOCOL_VERSION,
        error_message: text.get(..MAX_TEXT_LENGTH).unwrap_or(text),
    }
    .to_vec()
}

pub(crate) fn challenge(
    session: ControlSessionId,
    correlation_id: CorrelationId,
    challenge: &[u8],
) -> Vec<u8> {
    Challenge {
        control_session_id: session.get(),
        correlation_id: correlation_id.get(),
        version: PROTOCOL_VERSION,
        encoded_challenge: challenge,
    }
    .to_vec()
}

pub(crate) fn ping(session: ControlSessionId) -> Vec<u8> {
    Ping { control_session_id: session.get() }.to_vec()
}

/// What has happened to a recording.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SignalEvent {
    /// `None` before there is a copy.
    pub(crate) recording: Option<RecordingId>,
    pub(crate) subscription: Option<RegistrationId>,
    pub(crate) position: i64,
    pub(crate) signal: Signal,
}

impl SignalEvent {
    pub(crate) fn encode(
        &self,
        session: ControlSessionId,
        correlation_id: CorrelationId,
    ) -> Vec<u8> {
        RecordingSignalEvent {
            control_session_id: session.get(),
            correlation_id: correlation_id.get(),
            recording_id: self.recording.map_or(NULL_ID, RecordingId::get),
            subscription_id: self.subscription.map_or(NULL_ID, RegistrationId::get),
            position: self.position,
            signal: self.signal as i32,
        }
        .to_vec()
    }
}

/// Encodes a recording's descriptor from the catalog's bytes, which begin with the recording id.
pub(crate) fn descriptor(
    session: ControlSessionId,
    correlation_id: CorrelationId,
    entry: &[u8],
) -> Vec<u8> {
    let mut message = Vec::with_capacity(24 + entry.len());
    message.extend(RecordingDescriptor::HEADER.to_bytes());
    message.extend(session.get().to_le_bytes());
    message.extend(correlation_id.get().to_le_bytes());
    message.extend(entry);
    message
}

pub(crate) fn subscription_descriptor(
    session: ControlSessionId,
    correlation_id: CorrelationId,
    subscription: RegistrationId,
    stream_id: i32,
    channel: &str,
) -> Vec<u8> {
    RecordingSubscriptionDescriptor {
        control_session_id: session.get(),
        correlation_id: correlation_id.get(),
        subscription_id: subscription.get(),
        stream_id,
        stripped_channel: channel.as_bytes(),
    }
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut() {
        let failure = Failure::generic("x".repeat(100_000));
        let message = Answer::Error(failure).encode(1.into(), 2.into());
        assert_eq!(message.len(), 8 + 32 + 4 + MAX_TEXT_LENGTH);
        assert!(message.len() <= 8 * 1024);
    }

    #[test]
    fn descriptor_begins_with_ids() {
        let message = descriptor(7.into(), 9.into(), &[1, 2, 3]);
        assert_eq!(message[..8], [80, 0, 22, 0, 101, 0, 14, 0]);
        assert_eq!(message[8..16], 7_i64.to_le_bytes());
        assert_eq!(message[16..24], 9_i64.to_le_bytes());
        assert_eq!(message[24..], [1, 2, 3]);
    }
}
