//! The table of control messages: SBE, schema 101, written as version 14.
//!
//! Nearly all requests begin with the session's id and the id that the answer repeats. A field that the sender's
//! version of the schema does not have is -1, or an empty text, as Java's archive takes it, and not the null value of
//! SBE. Template 2, a connect request without credentials, is gone from the schema, so it is unknown.

#![allow(
    dead_code,
    reason = "the table has the whole protocol, with what only clients read or write"
)]

rusteron_core::sbe_messages! {
    pub(crate) schema 101, version 14;

    /// Answers a request, or refuses it. The code is a `ResponseCode`; the relevant id is an id, a position, or an
    /// error's code.
    ControlResponse<'a> = 1 {
        control_session_id: i64; correlation_id: i64; relevant_id: i64; code: i32; version: i32, null 0, since 4;
    } + { error_message: Ascii; }
    /// Closes a session. There is no answer.
    CloseSessionRequest = 3 { control_session_id: i64; }
    /// Starts to record a stream: see `Source`.
    StartRecordingRequest<'a> = 4 {
        control_session_id: i64; correlation_id: i64; stream_id: i32; source_location: i32;
    } + { channel: Ascii; }
    /// Stops recording a stream.
    StopRecordingRequest<'a> = 5 { control_session_id: i64; correlation_id: i64; stream_id: i32; } + { channel: Ascii; }
    /// Starts to replay a recording: see `Replay`.
    ReplayRequest<'a> = 6 {
        control_session_id: i64; correlation_id: i64; recording_id: i64; position: i64; length: i64;
        replay_stream_id: i32; file_io_max_length: i32, null -1, since 7; replay_token: i64, null -1, since 10;
    } + { replay_channel: Ascii; }
    /// Stops a replay.
    StopReplayRequest = 7 { control_session_id: i64; correlation_id: i64; replay_session_id: i64; }
    /// Asks for descriptors of recordings.
    ListRecordingsRequest = 8 {
        control_session_id: i64; correlation_id: i64; from_recording_id: i64; record_count: i32;
    }
    /// Asks for descriptors of recordings of a stream, with a part of their channel.
    ListRecordingsForUriRequest<'a> = 9 {
        control_session_id: i64; correlation_id: i64; from_recording_id: i64; record_count: i32; stream_id: i32;
    } + { channel: Ascii; }
    /// Asks for the descriptor of a recording.
    ListRecordingRequest = 10 { control_session_id: i64; correlation_id: i64; recording_id: i64; }
    /// Starts to record behind the end of a recording.
    ExtendRecordingRequest<'a> = 11 {
        control_session_id: i64; correlation_id: i64; recording_id: i64; stream_id: i32; source_location: i32;
    } + { channel: Ascii; }
    /// Asks for the position up to which an active recording is recorded.
    RecordingPositionRequest = 12 { control_session_id: i64; correlation_id: i64; recording_id: i64; }
    /// Removes the end of a recording, from a position on.
    TruncateRecordingRequest = 13 { control_session_id: i64; correlation_id: i64; recording_id: i64; position: i64; }
    /// Stops recording what a subscription receives.
    StopRecordingSubscriptionRequest = 14 { control_session_id: i64; correlation_id: i64; subscription_id: i64; }
    /// Asks for the position at which a recording has stopped.
    StopPositionRequest = 15 { control_session_id: i64; correlation_id: i64; recording_id: i64; }
    /// Asks for the last recording of a stream, with a part of its channel.
    FindLastMatchingRecordingRequest<'a> = 16 {
        control_session_id: i64; correlation_id: i64; min_recording_id: i64; session_id: i32; stream_id: i32;
    } + { channel: Ascii; }
    /// Asks for descriptors of the subscriptions that record, and skips the first ones. The stream matters if
    /// `apply_stream_id` is 1.
    ListRecordingSubscriptionsRequest<'a> = 17 {
        control_session_id: i64; correlation_id: i64; pseudo_index: i32; subscription_count: i32; apply_stream_id: i32;
        stream_id: i32;
    } + { channel: Ascii; }
    /// Starts to replay a recording up to the position in a counter.
    BoundedReplayRequest<'a> = 18 {
        control_session_id: i64; correlation_id: i64; recording_id: i64; position: i64; length: i64;
        limit_counter_id: i32; replay_stream_id: i32; file_io_max_length: i32, null -1, since 7;
        replay_token: i64, null -1, since 10;
    } + { replay_channel: Ascii; }
    /// Stops the replays of a recording.
    StopAllReplaysRequest = 19 { control_session_id: i64; correlation_id: i64; recording_id: i64; }
    /// Describes a recording. The catalog has the same bytes, from the recording id on. Times are in milliseconds since
    /// 1970.
    RecordingDescriptor<'a> = 22 {
        control_session_id: i64; correlation_id: i64; recording_id: i64; start_timestamp: i64; stop_timestamp: i64;
        start_position: i64; stop_position: i64; initial_term_id: i32; segment_file_length: i32;
        term_buffer_length: i32; mtu_length: i32; session_id: i32; stream_id: i32;
    } + { stripped_channel: Ascii; original_channel: Ascii; source_identity: Ascii; }
    /// Describes a subscription that records.
    RecordingSubscriptionDescriptor<'a> = 23 {
        control_session_id: i64; correlation_id: i64; subscription_id: i64; stream_id: i32;
    } + { stripped_channel: Ascii; }
    /// Tells the session that caused it what has happened to a recording: a `Signal`, and the position.
    RecordingSignalEvent = 24 {
        control_session_id: i64; correlation_id: i64; recording_id: i64; subscription_id: i64; position: i64;
        signal: i32;
    }
    /// Copies a recording from another archive: to one of its own if the destination is -1, without a live stream if
    /// that is empty.
    ReplicateRequest<'a> = 50 {
        control_session_id: i64; correlation_id: i64; src_recording_id: i64; dst_recording_id: i64;
        src_control_stream_id: i32;
    } + { src_control_channel: Ascii; live_destination: Ascii; }
    /// Stops a replication.
    StopReplicationRequest = 51 { control_session_id: i64; correlation_id: i64; replication_id: i64; }
    /// Asks for the position at which a recording starts.
    StartPositionRequest = 52 { control_session_id: i64; correlation_id: i64; recording_id: i64; }
    /// Removes segments before a new start from a recording, but not their files.
    DetachSegmentsRequest = 53 {
        control_session_id: i64; correlation_id: i64; recording_id: i64; new_start_position: i64;
    }
    /// Deletes the files of removed segments.
    DeleteDetachedSegmentsRequest = 54 { control_session_id: i64; correlation_id: i64; recording_id: i64; }
    /// Removes segments before a new start from a recording, and deletes their files.
    PurgeSegmentsRequest = 55 {
        control_session_id: i64; correlation_id: i64; recording_id: i64; new_start_position: i64;
    }
    /// Adds the files of removed segments to the start of a recording again.
    AttachSegmentsRequest = 56 { control_session_id: i64; correlation_id: i64; recording_id: i64; }
    /// Moves segments of a recording (`src`) to the start or the end of another one (`dst`).
    MigrateSegmentsRequest = 57 {
        control_session_id: i64; correlation_id: i64; src_recording_id: i64; dst_recording_id: i64;
    }
    /// Opens a session. The version is the client's version of the protocol, and the info what the client tells of
    /// itself.
    AuthConnectRequest<'a> = 58 {
        correlation_id: i64; response_stream_id: i32; version: i32, null 0;
    } + { response_channel: Ascii; encoded_credentials: Bytes; client_info: Ascii, since 12; }
    /// Asks a client for other credentials.
    Challenge<'a> = 59 {
        control_session_id: i64; correlation_id: i64; version: i32, null 0;
    } + { encoded_challenge: Bytes; }
    /// Answers a challenge.
    ChallengeResponse<'a> = 60 { control_session_id: i64; correlation_id: i64; } + { encoded_credentials: Bytes; }
    /// Keeps a session open.
    KeepAliveRequest = 61 { control_session_id: i64; correlation_id: i64; }
    /// Copies a recording from another archive, by a subscription with tags, of which -1 is none.
    TaggedReplicateRequest<'a> = 62 {
        control_session_id: i64; correlation_id: i64; src_recording_id: i64; dst_recording_id: i64; channel_tag_id: i64;
        subscription_tag_id: i64; src_control_stream_id: i32;
    } + { src_control_channel: Ascii; live_destination: Ascii; }
    /// Starts to record a stream, until the first image ends if so wanted.
    StartRecordingRequest2<'a> = 63 {
        control_session_id: i64; correlation_id: i64; stream_id: i32; source_location: i32; auto_stop: i32;
    } + { channel: Ascii; }
    /// Starts to record behind the end of a recording, until the image ends if so wanted.
    ExtendRecordingRequest2<'a> = 64 {
        control_session_id: i64; correlation_id: i64; recording_id: i64; stream_id: i32; source_location: i32;
        auto_stop: i32;
    } + { channel: Ascii; }
    /// Stops an active recording.
    StopRecordingByIdentityRequest = 65 { control_session_id: i64; correlation_id: i64; recording_id: i64; }
    /// Copies a recording from another archive: all ways in one request. -1 and empty texts stand for the archive's own
    /// choice.
    ReplicateRequest2<'a> = 66 {
        control_session_id: i64; correlation_id: i64; src_recording_id: i64; dst_recording_id: i64; stop_position: i64;
        channel_tag_id: i64; subscription_tag_id: i64; src_control_stream_id: i32;
        file_io_max_length: i32, null -1, since 7; replication_session_id: i32, null -1, since 8;
    } + {
        src_control_channel: Ascii; live_destination: Ascii; replication_channel: Ascii;
        encoded_credentials: Bytes, since 8; src_response_channel: Ascii, since 10;
    }
    /// Asks for the position up to which a recording is recorded, be it active or not.
    MaxRecordedPositionRequest = 67 { control_session_id: i64; correlation_id: i64; recording_id: i64; }
    /// Asks for the id of the archive.
    ArchiveIdRequest = 68 { control_session_id: i64; correlation_id: i64; }
    /// Publishes that a recording has started.
    RecordingStarted<'a> = 101 {
        recording_id: i64; start_position: i64; session_id: i32; stream_id: i32;
    } + { channel: Ascii; source_identity: Ascii; }
    /// Publishes how far a recording has come.
    RecordingProgress = 102 { recording_id: i64; start_position: i64; position: i64; }
    /// Publishes that a recording has stopped.
    RecordingStopped = 103 { recording_id: i64; start_position: i64; stop_position: i64; }
    /// Deletes a stopped recording.
    PurgeRecordingRequest = 104 { control_session_id: i64; correlation_id: i64; recording_id: i64; }
    /// Asks for a token by which a replay may be requested on another image.
    ReplayTokenRequest = 105 { control_session_id: i64; correlation_id: i64; recording_id: i64; }
    /// Tells a client that the archive is alive.
    Ping = 106 { control_session_id: i64; }
    /// Replaces the channel of a recording.
    UpdateChannelRequest<'a> = 107 {
        control_session_id: i64; correlation_id: i64; recording_id: i64;
    } + { channel: Ascii; }
}

/// The templates of messages that only a server sends.
pub(crate) const OF_SERVER: [u16; 9] = [
    ControlResponse::TEMPLATE_ID,
    RecordingDescriptor::TEMPLATE_ID,
    RecordingSubscriptionDescriptor::TEMPLATE_ID,
    RecordingSignalEvent::TEMPLATE_ID,
    Challenge::TEMPLATE_ID,
    RecordingStarted::TEMPLATE_ID,
    RecordingProgress::TEMPLATE_ID,
    RecordingStopped::TEMPLATE_ID,
    Ping::TEMPLATE_ID,
];

#[cfg(test)]
mod tests;
