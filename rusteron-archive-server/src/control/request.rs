//! Requests of clients, decoded.
//!
//! Requests that differ in a field that one of them lacks are one request here.

use std::borrow::Cow;

use rusteron_core::sbe::MessageHeader;

use crate::channel::Channel;
use crate::ids::{
    CorrelationId, NULL_ID, RecordingId, RegistrationId, ReplaySessionId, ReplicationId, SessionId,
    SourceRecordingId,
};
use crate::protocol::messages::{Message, SCHEMA_ID};

/// A message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    Connect(ConnectRequest<'a>),
    ChallengeResponse {
        session: SessionId,
        correlation_id: CorrelationId,
        credentials: &'a [u8],
    },
    Close {
        session: SessionId,
    },
    Command(SessionRequest<'a>),
    /// Not for an archive, or of a later version of the protocol.
    Unknown,
}

/// A request for a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConnectRequest<'a> {
    pub(crate) correlation_id: CorrelationId,
    pub(crate) response_stream_id: i32,
    /// The client's version of the protocol.
    pub(crate) version: i32,
    pub(crate) response_channel: Cow<'a, str>,
    pub(crate) credentials: &'a [u8],
    pub(crate) client_info: Cow<'a, str>,
}

/// A request of a session.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SessionRequest<'a> {
    pub(crate) session: SessionId,
    pub(crate) correlation_id: CorrelationId,
    /// What an authorisation decides about.
    pub(crate) template_id: u16,
    pub(crate) command: Command<'a>,
}

/// What a session requests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    KeepAlive,
    ArchiveId,
    StartRecording(Source<'a>),
    ExtendRecording(RecordingId, Source<'a>),
    StopRecording {
        stream_id: i32,
        channel: Cow<'a, str>,
    },
    StopRecordingSubscription(RegistrationId),
    StopRecordingByIdentity(RecordingId),
    Replay(Replay<'a>),
    StopReplay(ReplaySessionId),
    /// Stops the replays of one recording, or all replays.
    StopAllReplays(Option<RecordingId>),
    ReplayToken(RecordingId),
    ListRecordings {
        from: RecordingId,
        count: i32,
        filter: Option<RecordingFilter<'a>>,
    },
    ListRecording(RecordingId),
    FindLastMatching {
        min_recording: RecordingId,
        session_id: i32,
        filter: RecordingFilter<'a>,
    },
    ListSubscriptions(SubscriptionQuery<'a>),
    StartPosition(RecordingId),
    RecordingPosition(RecordingId),
    StopPosition(RecordingId),
    MaxRecordedPosition(RecordingId),
    UpdateChannel {
        recording: RecordingId,
        channel: Cow<'a, str>,
    },
    TruncateRecording {
        recording: RecordingId,
        position: i64,
    },
    PurgeRecording(RecordingId),
    DetachSegments {
        recording: RecordingId,
        /// The new one.
        start: i64,
    },
    PurgeSegments {
        recording: RecordingId,
        /// The new one.
        start: i64,
    },
    DeleteDetachedSegments(RecordingId),
    AttachSegments(RecordingId),
    MigrateSegments {
        source: RecordingId,
        destination: RecordingId,
    },
    Replicate(Replicate<'a>),
    StopReplication(ReplicationId),
}

/// A stream to record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source<'a> {
    pub(crate) stream_id: i32,
    /// 0 local, 1 remote.
    pub(crate) location: i32,
    pub(crate) auto_stop: bool,
    pub(crate) channel: Cow<'a, str>,
}

/// A recording to replay.
#[derive(Debug, PartialEq, Eq)]
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
    /// −1 for none.
    pub(crate) token: i64,
    pub(crate) channel: Cow<'a, str>,
}

impl Replay<'_> {
    /// Whether a token stands for the session, because the client reads the replay by a response
    /// channel, whose requests come on an image of its own.
    pub(crate) fn is_by_token(&self) -> bool {
        self.token != -1 && Channel::parse(&self.channel).is_ok_and(|it| it.is_response())
    }
}

/// A recording of another archive, the source, to copy. An empty text stands for none, as −1 does.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Replicate<'a> {
    pub(crate) source_recording: SourceRecordingId,
    /// `None` for a new one.
    pub(crate) recording: Option<RecordingId>,
    /// −1: the source's.
    pub(crate) stop_position: i64,
    pub(crate) channel_tag: i64,
    pub(crate) subscription_tag: i64,
    pub(crate) source_stream_id: i32,
    pub(crate) source_channel: Cow<'a, str>,
    /// Where the recorded stream is published.
    pub(crate) live_destination: Cow<'a, str>,
    /// Where the source sends its recording to: the setting's, if empty.
    pub(crate) channel: Cow<'a, str>,
    pub(crate) file_io_max_length: i32,
    /// Of the stream that the source sends.
    pub(crate) session_id: i32,
    pub(crate) credentials: &'a [u8],
    /// Where the source sends its answers to: the setting's, if empty.
    pub(crate) source_response_channel: Cow<'a, str>,
}

/// Which recordings are listed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RecordingFilter<'a> {
    pub(crate) stream_id: i32,
    /// Part of the original channel.
    pub(crate) channel_fragment: &'a [u8],
}

/// Which recording subscriptions are listed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SubscriptionQuery<'a> {
    /// An index among all of them.
    pub(crate) first: i32,
    pub(crate) count: i32,
    /// All streams without.
    pub(crate) stream_id: Option<i32>,
    /// Part of the channel that the driver knows.
    pub(crate) channel_fragment: Cow<'a, str>,
}

/// Bytes that are not ASCII are kept if they are UTF-8, and become U+FFFD otherwise, as in Java.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn recording_or_none(id: i64) -> Option<RecordingId> {
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
    let message = Message::decode(header, body)
        .ok_or_else(|| format!("control message with templateId={template_id} is truncated"))?;

    let id = RecordingId::new;
    // The fields that nearly all requests share.
    macro_rules! command {
        ($message:ident, $command:expr) => {
            Request::Command(SessionRequest {
                session: SessionId::new($message.control_session_id),
                correlation_id: CorrelationId::new($message.correlation_id),
                template_id,
                command: $command,
            })
        };
    }
    macro_rules! source {
        ($message:ident, $auto_stop:expr) => {
            Source {
                stream_id: $message.stream_id,
                location: $message.source_location,
                auto_stop: $auto_stop,
                channel: text($message.channel),
            }
        };
    }
    macro_rules! filter {
        ($message:ident) => {
            RecordingFilter { stream_id: $message.stream_id, channel_fragment: $message.channel }
        };
    }
    macro_rules! replay {
        ($message:ident, $limit_counter_id:expr) => {
            Replay {
                recording: id($message.recording_id),
                position: $message.position,
                length: $message.length,
                limit_counter_id: $limit_counter_id,
                stream_id: $message.replay_stream_id,
                file_io_max_length: $message.file_io_max_length,
                token: $message.replay_token,
                channel: text($message.replay_channel),
            }
        };
    }

    // The fields of all three requests for a replication.
    macro_rules! replicate {
        ($message:ident, $($other:ident: $value:expr),*) => {
            Replicate {
                $($other: $value,)*
                ..Replicate {
                    source_recording: SourceRecordingId::new($message.src_recording_id),
                    recording: recording_or_none($message.dst_recording_id),
                    stop_position: -1,
                    channel_tag: -1,
                    subscription_tag: -1,
                    source_stream_id: $message.src_control_stream_id,
                    source_channel: text($message.src_control_channel),
                    live_destination: text($message.live_destination),
                    channel: Cow::Borrowed(""),
                    file_io_max_length: -1,
                    session_id: -1,
                    credentials: b"",
                    source_response_channel: Cow::Borrowed(""),
                }
            }
        };
    }

    Ok(match message {
        Message::AuthConnectRequest(m) => Request::Connect(ConnectRequest {
            correlation_id: CorrelationId::new(m.correlation_id),
            response_stream_id: m.response_stream_id,
            version: m.version,
            response_channel: text(m.response_channel),
            credentials: m.encoded_credentials,
            client_info: text(m.client_info),
        }),
        Message::ChallengeResponse(m) => Request::ChallengeResponse {
            session: SessionId::new(m.control_session_id),
            correlation_id: CorrelationId::new(m.correlation_id),
            credentials: m.encoded_credentials,
        },
        Message::CloseSessionRequest(m) => {
            Request::Close { session: SessionId::new(m.control_session_id) }
        }
        Message::KeepAliveRequest(m) => command!(m, Command::KeepAlive),
        Message::ArchiveIdRequest(m) => command!(m, Command::ArchiveId),
        Message::StartRecordingRequest(m) => {
            command!(m, Command::StartRecording(source!(m, false)))
        }
        Message::StartRecordingRequest2(m) => {
            command!(m, Command::StartRecording(source!(m, m.auto_stop == 1)))
        }
        Message::ExtendRecordingRequest(m) => {
            command!(m, Command::ExtendRecording(id(m.recording_id), source!(m, false)))
        }
        Message::ExtendRecordingRequest2(m) => {
            command!(m, Command::ExtendRecording(id(m.recording_id), source!(m, m.auto_stop == 1)))
        }
        Message::StopRecordingRequest(m) => {
            let command =
                Command::StopRecording { stream_id: m.stream_id, channel: text(m.channel) };
            command!(m, command)
        }
        Message::StopRecordingSubscriptionRequest(m) => {
            command!(m, Command::StopRecordingSubscription(RegistrationId::new(m.subscription_id)))
        }
        Message::StopRecordingByIdentityRequest(m) => {
            command!(m, Command::StopRecordingByIdentity(id(m.recording_id)))
        }
        Message::ReplayRequest(m) => command!(m, Command::Replay(replay!(m, None))),
        Message::BoundedReplayRequest(m) => {
            command!(m, Command::Replay(replay!(m, Some(m.limit_counter_id))))
        }
        Message::StopReplayRequest(m) => {
            command!(m, Command::StopReplay(ReplaySessionId::new(m.replay_session_id)))
        }
        Message::StopAllReplaysRequest(m) => {
            command!(m, Command::StopAllReplays(recording_or_none(m.recording_id)))
        }
        Message::ReplayTokenRequest(m) => {
            command!(m, Command::ReplayToken(id(m.recording_id)))
        }
        Message::ListRecordingsRequest(m) => {
            let (from, count) = (id(m.from_recording_id), m.record_count);
            command!(m, Command::ListRecordings { from, count, filter: None })
        }
        Message::ListRecordingsForUriRequest(m) => {
            let (from, count) = (id(m.from_recording_id), m.record_count);
            command!(m, Command::ListRecordings { from, count, filter: Some(filter!(m)) })
        }
        Message::ListRecordingRequest(m) => {
            command!(m, Command::ListRecording(id(m.recording_id)))
        }
        Message::FindLastMatchingRecordingRequest(m) => {
            let command = Command::FindLastMatching {
                min_recording: id(m.min_recording_id),
                session_id: m.session_id,
                filter: filter!(m),
            };
            command!(m, command)
        }
        Message::ListRecordingSubscriptionsRequest(m) => {
            let query = SubscriptionQuery {
                first: m.pseudo_index,
                count: m.subscription_count,
                stream_id: (m.apply_stream_id == 1).then_some(m.stream_id),
                channel_fragment: text(m.channel),
            };
            command!(m, Command::ListSubscriptions(query))
        }
        Message::StartPositionRequest(m) => {
            command!(m, Command::StartPosition(id(m.recording_id)))
        }
        Message::RecordingPositionRequest(m) => {
            command!(m, Command::RecordingPosition(id(m.recording_id)))
        }
        Message::StopPositionRequest(m) => {
            command!(m, Command::StopPosition(id(m.recording_id)))
        }
        Message::MaxRecordedPositionRequest(m) => {
            command!(m, Command::MaxRecordedPosition(id(m.recording_id)))
        }
        Message::TruncateRecordingRequest(m) => {
            let (recording, position) = (id(m.recording_id), m.position);
            command!(m, Command::TruncateRecording { recording, position })
        }
        Message::PurgeRecordingRequest(m) => {
            command!(m, Command::PurgeRecording(id(m.recording_id)))
        }
        Message::DetachSegmentsRequest(m) => {
            let (recording, start) = (id(m.recording_id), m.new_start_position);
            command!(m, Command::DetachSegments { recording, start })
        }
        Message::PurgeSegmentsRequest(m) => {
            let (recording, start) = (id(m.recording_id), m.new_start_position);
            command!(m, Command::PurgeSegments { recording, start })
        }
        Message::DeleteDetachedSegmentsRequest(m) => {
            command!(m, Command::DeleteDetachedSegments(id(m.recording_id)))
        }
        Message::AttachSegmentsRequest(m) => {
            command!(m, Command::AttachSegments(id(m.recording_id)))
        }
        Message::MigrateSegmentsRequest(m) => {
            let (source, destination) = (id(m.src_recording_id), id(m.dst_recording_id));
            command!(m, Command::MigrateSegments { source, destination })
        }
        Message::ReplicateRequest(m) => command!(m, Command::Replicate(replicate!(m,))),
        Message::TaggedReplicateRequest(m) => {
            let command = replicate!(m,
                channel_tag: m.channel_tag_id, subscription_tag: m.subscription_tag_id);
            command!(m, Command::Replicate(command))
        }
        Message::ReplicateRequest2(m) => {
            let command = replicate!(m,
                stop_position: m.stop_position,
                channel_tag: m.channel_tag_id,
                subscription_tag: m.subscription_tag_id,
                channel: text(m.replication_channel),
                file_io_max_length: m.file_io_max_length,
                session_id: m.replication_session_id,
                credentials: m.encoded_credentials,
                source_response_channel: text(m.src_response_channel));
            command!(m, Command::Replicate(command))
        }
        Message::StopReplicationRequest(m) => {
            command!(m, Command::StopReplication(ReplicationId::new(m.replication_id)))
        }
        Message::UpdateChannelRequest(m) => {
            let command =
                Command::UpdateChannel { recording: id(m.recording_id), channel: text(m.channel) };
            command!(m, command)
        }
        // Of a server.
        _ => Request::Unknown,
    })
}
