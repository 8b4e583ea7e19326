//! Requests of clients: who sends them, and the parts that several of them have.

use std::borrow::Cow;

use rusteron_core::sbe::{MessageHeader, Reader};

use crate::catalog::NULL_POSITION;
use crate::channel::Channel;
use crate::ids::{ControlSessionId, CorrelationId, NULL_ID, RecordingId, ReplayToken};
use crate::protocol::messages::{
    AuthConnectRequest, BoundedReplayRequest, ChallengeResponse, ExtendRecordingRequest2, Message,
    OF_SERVER, ReplayRequest, ReplicateRequest2, SCHEMA_ID, StartRecordingRequest2,
    TaggedReplicateRequest,
};

/// A message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    Connect(AuthConnectRequest<'a>),
    ChallengeResponse(ChallengeResponse<'a>),
    Close(ControlSessionId),
    Command(SessionRequest<'a>),
    /// Not for an archive, or of a later version of the protocol.
    Unknown,
}

/// A request of a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SessionRequest<'a> {
    pub(crate) session: ControlSessionId,
    pub(crate) correlation_id: CorrelationId,
    /// What an authorisation decides about.
    pub(crate) template_id: u16,
    /// In its latest form, if the protocol has several.
    pub(crate) command: Message<'a>,
}

/// A stream to record.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) stream_id: i32,
    /// 0 local, 1 remote.
    pub(crate) location: i32,
    pub(crate) auto_stop: bool,
    pub(crate) channel: Cow<'a, str>,
}

/// A recording to replay.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    pub(crate) recording: RecordingId,
    /// −1 for the start.
    pub(crate) position: i64,
    /// −1: all, and what is recorded meanwhile. −2: what there is.
    pub(crate) length: i64,
    pub(crate) limit_counter_id: Option<i32>,
    pub(crate) stream_id: i32,
    /// The server's if not positive.
    pub(crate) file_io_max_length: i32,
    pub(crate) token: Option<ReplayToken>,
    pub(crate) channel: Cow<'a, str>,
}

/// Which recordings are listed.
#[derive(Debug)]
pub(crate) struct RecordingFilter<'a> {
    pub(crate) stream_id: i32,
    /// Part of the original channel.
    pub(crate) channel_fragment: &'a [u8],
}

impl<'a> Source<'a> {
    pub(crate) fn new(stream_id: i32, location: i32, auto_stop: i32, channel: &'a [u8]) -> Self {
        Self { stream_id, location, auto_stop: auto_stop == 1, channel: text(channel) }
    }
}

impl<'a> From<&ReplayRequest<'a>> for Replay<'a> {
    fn from(request: &ReplayRequest<'a>) -> Self {
        Self {
            recording: RecordingId::new(request.recording_id),
            position: request.position,
            length: request.length,
            limit_counter_id: None,
            stream_id: request.replay_stream_id,
            file_io_max_length: request.file_io_max_length,
            token: ReplayToken::of(request.replay_token),
            channel: text(request.replay_channel),
        }
    }
}

impl<'a> From<&BoundedReplayRequest<'a>> for Replay<'a> {
    fn from(request: &BoundedReplayRequest<'a>) -> Self {
        Self {
            recording: RecordingId::new(request.recording_id),
            position: request.position,
            length: request.length,
            limit_counter_id: Some(request.limit_counter_id),
            stream_id: request.replay_stream_id,
            file_io_max_length: request.file_io_max_length,
            token: ReplayToken::of(request.replay_token),
            channel: text(request.replay_channel),
        }
    }
}

impl<'a> Replay<'a> {
    /// Returns the replay that a message asks for by a token, which stands for the session. The
    /// client reads such a replay on a response channel, and requests it on an image other than its
    /// session's.
    pub(crate) fn by_token(message: &Message<'a>) -> Option<(ReplayToken, Self)> {
        let replay = match message {
            Message::ReplayRequest(request) => Self::from(request),
            Message::BoundedReplayRequest(request) => Self::from(request),
            _ => return None,
        };
        let is_response = || Channel::parse(&replay.channel).is_ok_and(|it| it.is_response());
        let token = replay.token.filter(|_| is_response())?;
        Some((token, replay))
    }
}

/// Bytes that are not ASCII are kept if they are UTF-8, and become U+FFFD otherwise, as in Java.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// In some requests, −1 stands for a recording that is not there yet, or for all.
pub(crate) fn recording_or_none(id: i64) -> Option<RecordingId> {
    (id != NULL_ID).then_some(RecordingId::new(id))
}

/// Decodes a message. The text of an error says what is wrong with it.
pub(crate) fn decode(message: &[u8]) -> Result<Request<'_>, String> {
    let (header, body) = MessageHeader::split(message)
        .ok_or_else(|| format!("a control message of {} bytes has no header", message.len()))?;
    if header.schema_id != SCHEMA_ID {
        return Err(format!("expected schemaId={SCHEMA_ID}, actual={}", header.schema_id));
    }
    let template_id = header.template_id;
    let truncated = || format!("control message with templateId={template_id} is truncated");
    let message = Message::decode(header, body).ok_or_else(truncated)?;
    Ok(match message {
        Message::AuthConnectRequest(request) => Request::Connect(request),
        Message::ChallengeResponse(response) => Request::ChallengeResponse(response),
        Message::CloseSessionRequest(request) => {
            Request::Close(ControlSessionId::new(request.control_session_id))
        }
        Message::Unknown => Request::Unknown,
        _ if OF_SERVER.contains(&template_id) => Request::Unknown,
        message => {
            // All others begin with these two ids.
            let mut ids = Reader::new(header, body).ok_or_else(truncated)?;
            Request::Command(SessionRequest {
                session: ControlSessionId::new(ids.i64(i64::MIN, 0)),
                correlation_id: CorrelationId::new(ids.i64(i64::MIN, 0)),
                template_id,
                command: latest(message),
            })
        }
    })
}

/// Returns what a client of today would send.
fn latest(message: Message<'_>) -> Message<'_> {
    match message {
        Message::StartRecordingRequest(m) => {
            Message::StartRecordingRequest2(StartRecordingRequest2 {
                control_session_id: m.control_session_id,
                correlation_id: m.correlation_id,
                stream_id: m.stream_id,
                source_location: m.source_location,
                auto_stop: 0,
                channel: m.channel,
            })
        }
        Message::ExtendRecordingRequest(m) => {
            Message::ExtendRecordingRequest2(ExtendRecordingRequest2 {
                control_session_id: m.control_session_id,
                correlation_id: m.correlation_id,
                recording_id: m.recording_id,
                stream_id: m.stream_id,
                source_location: m.source_location,
                auto_stop: 0,
                channel: m.channel,
            })
        }
        Message::ReplicateRequest(m) => {
            latest(Message::TaggedReplicateRequest(TaggedReplicateRequest {
                control_session_id: m.control_session_id,
                correlation_id: m.correlation_id,
                src_recording_id: m.src_recording_id,
                dst_recording_id: m.dst_recording_id,
                channel_tag_id: NULL_ID,
                subscription_tag_id: NULL_ID,
                src_control_stream_id: m.src_control_stream_id,
                src_control_channel: m.src_control_channel,
                live_destination: m.live_destination,
            }))
        }
        Message::TaggedReplicateRequest(m) => Message::ReplicateRequest2(ReplicateRequest2 {
            control_session_id: m.control_session_id,
            correlation_id: m.correlation_id,
            src_recording_id: m.src_recording_id,
            dst_recording_id: m.dst_recording_id,
            stop_position: NULL_POSITION,
            channel_tag_id: m.channel_tag_id,
            subscription_tag_id: m.subscription_tag_id,
            src_control_stream_id: m.src_control_stream_id,
            file_io_max_length: -1,
            replication_session_id: -1,
            src_control_channel: m.src_control_channel,
            live_destination: m.live_destination,
            replication_channel: b"",
            encoded_credentials: b"",
            src_response_channel: b"",
        }),
        message => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::messages::{
        ExtendRecordingRequest, ReplicateRequest, StartRecordingRequest, encode_values,
    };

    const TEXTS: [&[u8]; 5] = [b"aeron:ipc", b"live", b"", b"", b""];

    /// Decodes a request with these fields, and as many of the texts as it has.
    fn command(template_id: u16, fields: &[i64]) -> String {
        let texts = (1..=TEXTS.len()).map(|count| &TEXTS[..count]);
        let mut encoded = texts.filter_map(|texts| encode_values(template_id, fields, texts));
        let message = encoded.next().expect("a request");
        match decode(&message) {
            Ok(Request::Command(request)) => {
                assert_eq!(request.template_id, template_id);
                format!("{:?}", request.command)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn older_forms_become_the_latest_one() {
        assert_eq!(
            command(StartRecordingRequest::TEMPLATE_ID, &[1, 2, 3, 4]),
            command(StartRecordingRequest2::TEMPLATE_ID, &[1, 2, 3, 4, 0])
        );
        assert_eq!(
            command(ExtendRecordingRequest::TEMPLATE_ID, &[1, 2, 3, 4, 5]),
            command(ExtendRecordingRequest2::TEMPLATE_ID, &[1, 2, 3, 4, 5, 0])
        );
        assert_eq!(
            command(ReplicateRequest::TEMPLATE_ID, &[1, 2, 3, 4, 5]),
            command(ReplicateRequest2::TEMPLATE_ID, &[1, 2, 3, 4, -1, -1, -1, 5, -1, -1])
        );
        assert_eq!(
            command(TaggedReplicateRequest::TEMPLATE_ID, &[1, 2, 3, 4, 5, 6, 7]),
            command(ReplicateRequest2::TEMPLATE_ID, &[1, 2, 3, 4, -1, 5, 6, 7, -1, -1])
        );
    }
}
