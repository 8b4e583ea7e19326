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

    /// Answers a request, or refuses it.
    ControlResponse<'a> = 1 {
        control_session_id: i64;
        correlation_id: i64;
        /// The result: an id, a position, or the code of an error.
        relevant_id: i64;
        /// The kind of answer: a `ResponseCode`.
        code: i32;
        /// The archive's version of the protocol.
        version: i32, null 0, since 4;
    } + {
        error_message: Ascii;
    }

    /// Closes a session. There is no answer.
    CloseSessionRequest = 3 {
        control_session_id: i64;
    }

    /// Starts to record a stream.
    StartRecordingRequest<'a> = 4 {
        control_session_id: i64;
        correlation_id: i64;
        stream_id: i32;
        /// Where the publisher is: 0 local, 1 remote.
        source_location: i32;
    } + {
        channel: Ascii;
    }

    /// Stops recording a stream.
    StopRecordingRequest<'a> = 5 {
        control_session_id: i64;
        correlation_id: i64;
        stream_id: i32;
    } + {
        channel: Ascii;
    }

    /// Starts to replay a recording.
    ReplayRequest<'a> = 6 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
        /// Where to begin; -1 for the start.
        position: i64;
        /// How much to replay in bytes; -1: all, and what is recorded meanwhile; -2: what there is.
        length: i64;
        replay_stream_id: i32;
        /// The most bytes of one read; the archive's own setting if it is -1.
        file_io_max_length: i32, null -1, since 7;
        /// The token that permits the replay on another image; -1 for none.
        replay_token: i64, null -1, since 10;
    } + {
        replay_channel: Ascii;
    }

    /// Stops a replay.
    StopReplayRequest = 7 {
        control_session_id: i64;
        correlation_id: i64;
        replay_session_id: i64;
    }

    /// Asks for descriptors of recordings.
    ListRecordingsRequest = 8 {
        control_session_id: i64;
        correlation_id: i64;
        from_recording_id: i64;
        record_count: i32;
    }

    /// Asks for descriptors of recordings of a stream and a part of a channel.
    ListRecordingsForUriRequest<'a> = 9 {
        control_session_id: i64;
        correlation_id: i64;
        from_recording_id: i64;
        record_count: i32;
        stream_id: i32;
    } + {
        /// A part of the channel.
        channel: Ascii;
    }

    /// Asks for the descriptor of a recording.
    ListRecordingRequest = 10 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
    }

    /// Starts to record behind the end of a recording.
    ExtendRecordingRequest<'a> = 11 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
        stream_id: i32;
        /// Where the publisher is: 0 local, 1 remote.
        source_location: i32;
    } + {
        channel: Ascii;
    }

    /// Asks for the position up to which an active recording is recorded.
    RecordingPositionRequest = 12 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
    }

    /// Removes the end of a recording.
    TruncateRecordingRequest = 13 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
        /// Where the recording ends then.
        position: i64;
    }

    /// Stops recording what a subscription receives.
    StopRecordingSubscriptionRequest = 14 {
        control_session_id: i64;
        correlation_id: i64;
        subscription_id: i64;
    }

    /// Asks for the position at which a recording has stopped.
    StopPositionRequest = 15 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
    }

    /// Asks for the last recording of a stream and a part of a channel.
    FindLastMatchingRecordingRequest<'a> = 16 {
        control_session_id: i64;
        correlation_id: i64;
        min_recording_id: i64;
        session_id: i32;
        stream_id: i32;
    } + {
        /// A part of the channel.
        channel: Ascii;
    }

    /// Asks for descriptors of the subscriptions that record.
    ListRecordingSubscriptionsRequest<'a> = 17 {
        control_session_id: i64;
        correlation_id: i64;
        /// How many subscriptions to skip.
        pseudo_index: i32;
        subscription_count: i32;
        /// 1 if the stream matters.
        apply_stream_id: i32;
        stream_id: i32;
    } + {
        /// A part of the channel.
        channel: Ascii;
    }

    /// Starts to replay a recording up to the position in a counter.
    BoundedReplayRequest<'a> = 18 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
        /// Where to begin; -1 for the start.
        position: i64;
        /// How much to replay in bytes; -1: all, and what is recorded meanwhile; -2: what there is.
        length: i64;
        /// The counter that bounds the replay.
        limit_counter_id: i32;
        replay_stream_id: i32;
        /// The most bytes of one read; the archive's own setting if it is -1.
        file_io_max_length: i32, null -1, since 7;
        /// The token that permits the replay on another image; -1 for none.
        replay_token: i64, null -1, since 10;
    } + {
        replay_channel: Ascii;
    }

    /// Stops the replays of a recording.
    StopAllReplaysRequest = 19 {
        control_session_id: i64;
        correlation_id: i64;
        /// The recording; -1 for all.
        recording_id: i64;
    }

    /// Describes a recording. The catalog has the same bytes, from the recording id on.
    RecordingDescriptor<'a> = 22 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
        /// The start, in milliseconds since 1970.
        start_timestamp: i64;
        /// The stop, in milliseconds since 1970; -1 while active.
        stop_timestamp: i64;
        /// The position at which the recording starts.
        start_position: i64;
        /// The position at which the recording stops; -1 while active.
        stop_position: i64;
        initial_term_id: i32;
        segment_file_length: i32;
        term_buffer_length: i32;
        mtu_length: i32;
        session_id: i32;
        stream_id: i32;
    } + {
        stripped_channel: Ascii;
        /// The channel as it was requested.
        original_channel: Ascii;
        source_identity: Ascii;
    }

    /// Describes a subscription that records.
    RecordingSubscriptionDescriptor<'a> = 23 {
        control_session_id: i64;
        correlation_id: i64;
        subscription_id: i64;
        stream_id: i32;
    } + {
        stripped_channel: Ascii;
    }

    /// Tells the session that caused it what has happened to a recording.
    RecordingSignalEvent = 24 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
        subscription_id: i64;
        /// The position at which it has happened.
        position: i64;
        /// What has happened: a `Signal`.
        signal: i32;
    }

    /// Copies a recording from another archive.
    ReplicateRequest<'a> = 50 {
        control_session_id: i64;
        correlation_id: i64;
        /// The recording to read.
        src_recording_id: i64;
        /// The recording to write; -1 for a recording of its own.
        dst_recording_id: i64;
        src_control_stream_id: i32;
    } + {
        src_control_channel: Ascii;
        /// The channel of the live stream to join; empty for none.
        live_destination: Ascii;
    }

    /// Stops a replication.
    StopReplicationRequest = 51 {
        control_session_id: i64;
        correlation_id: i64;
        replication_id: i64;
    }

    /// Asks for the position at which a recording starts.
    StartPositionRequest = 52 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
    }

    /// Removes segments from the start of a recording, but not their files.
    DetachSegmentsRequest = 53 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
        /// The position at which the recording starts then.
        new_start_position: i64;
    }

    /// Deletes the files of removed segments.
    DeleteDetachedSegmentsRequest = 54 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
    }

    /// Removes segments from the start of a recording, and deletes their files.
    PurgeSegmentsRequest = 55 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
        /// The position at which the recording starts then.
        new_start_position: i64;
    }

    /// Adds the files of removed segments to the start of a recording again.
    AttachSegmentsRequest = 56 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
    }

    /// Moves segments of a recording to the start or the end of another one.
    MigrateSegmentsRequest = 57 {
        control_session_id: i64;
        correlation_id: i64;
        /// The recording that loses the segments.
        src_recording_id: i64;
        /// The recording that gets the segments.
        dst_recording_id: i64;
    }

    /// Opens a session.
    AuthConnectRequest<'a> = 58 {
        correlation_id: i64;
        response_stream_id: i32;
        /// The client's version of the protocol.
        version: i32, null 0;
    } + {
        response_channel: Ascii;
        encoded_credentials: Bytes;
        /// What the client tells of itself.
        client_info: Ascii, since 12;
    }

    /// Asks a client for other credentials.
    Challenge<'a> = 59 {
        control_session_id: i64;
        correlation_id: i64;
        /// The archive's version of the protocol.
        version: i32, null 0;
    } + {
        encoded_challenge: Bytes;
    }

    /// Answers a challenge.
    ChallengeResponse<'a> = 60 {
        control_session_id: i64;
        correlation_id: i64;
    } + {
        encoded_credentials: Bytes;
    }

    /// Keeps a session open.
    KeepAliveRequest = 61 {
        control_session_id: i64;
        correlation_id: i64;
    }

    /// Copies a recording from another archive, by a subscription with tags.
    TaggedReplicateRequest<'a> = 62 {
        control_session_id: i64;
        correlation_id: i64;
        /// The recording to read.
        src_recording_id: i64;
        /// The recording to write; -1 for a recording of its own.
        dst_recording_id: i64;
        /// The tag of the channel; -1 for none.
        channel_tag_id: i64;
        /// The tag of the subscription; -1 for none.
        subscription_tag_id: i64;
        src_control_stream_id: i32;
    } + {
        src_control_channel: Ascii;
        /// The channel of the live stream to join; empty for none.
        live_destination: Ascii;
    }

    /// Starts to record a stream, until the first image ends if so wanted.
    StartRecordingRequest2<'a> = 63 {
        control_session_id: i64;
        correlation_id: i64;
        stream_id: i32;
        /// Where the publisher is: 0 local, 1 remote.
        source_location: i32;
        /// 1 to stop recording when the first image ends.
        auto_stop: i32;
    } + {
        channel: Ascii;
    }

    /// Starts to record behind the end of a recording, until the image ends if so wanted.
    ExtendRecordingRequest2<'a> = 64 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
        stream_id: i32;
        /// Where the publisher is: 0 local, 1 remote.
        source_location: i32;
        /// 1 to stop recording when the first image ends.
        auto_stop: i32;
    } + {
        channel: Ascii;
    }

    /// Stops an active recording.
    StopRecordingByIdentityRequest = 65 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
    }

    /// Copies a recording from another archive: all ways in one request.
    ReplicateRequest2<'a> = 66 {
        control_session_id: i64;
        correlation_id: i64;
        /// The recording to read.
        src_recording_id: i64;
        /// The recording to write; -1 for a recording of its own.
        dst_recording_id: i64;
        /// Where to stop; -1 for the end.
        stop_position: i64;
        /// The tag of the channel; -1 for none.
        channel_tag_id: i64;
        /// The tag of the subscription; -1 for none.
        subscription_tag_id: i64;
        src_control_stream_id: i32;
        /// The most bytes of one read; the archive's own setting if it is -1.
        file_io_max_length: i32, null -1, since 7;
        /// The session id of the replay; -1 for any.
        replication_session_id: i32, null -1, since 8;
    } + {
        src_control_channel: Ascii;
        /// The channel of the live stream to join; empty for none.
        live_destination: Ascii;
        /// The channel of the replay; empty for the setting of the archive.
        replication_channel: Ascii;
        encoded_credentials: Bytes, since 8;
        /// The channel of the other archive's answers; empty for the one of the setting.
        src_response_channel: Ascii, since 10;
    }

    /// Asks for the position up to which a recording is recorded, be it active or not.
    MaxRecordedPositionRequest = 67 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
    }

    /// Asks for the id of the archive.
    ArchiveIdRequest = 68 {
        control_session_id: i64;
        correlation_id: i64;
    }

    /// Publishes that a recording has started.
    RecordingStarted<'a> = 101 {
        recording_id: i64;
        /// The position at which the recording starts.
        start_position: i64;
        session_id: i32;
        stream_id: i32;
    } + {
        /// The channel as it was requested.
        channel: Ascii;
        source_identity: Ascii;
    }

    /// Publishes how far a recording has come.
    RecordingProgress = 102 {
        recording_id: i64;
        /// The position at which the recording starts.
        start_position: i64;
        /// The position up to which it is recorded.
        position: i64;
    }

    /// Publishes that a recording has stopped.
    RecordingStopped = 103 {
        recording_id: i64;
        /// The position at which the recording starts.
        start_position: i64;
        /// The position at which the recording has stopped.
        stop_position: i64;
    }

    /// Deletes a stopped recording.
    PurgeRecordingRequest = 104 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
    }

    /// Asks for a token by which a replay may be requested on another image.
    ReplayTokenRequest = 105 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
    }

    /// Tells a client that the archive is alive.
    Ping = 106 {
        control_session_id: i64;
    }

    /// Replaces the channel of a recording.
    UpdateChannelRequest<'a> = 107 {
        control_session_id: i64;
        correlation_id: i64;
        recording_id: i64;
    } + {
        /// The channel from then on.
        channel: Ascii;
    }
}

#[cfg(test)]
mod tests;
