//! The table of messages, and the structures, encoders, decoders and layouts that come from it.

#[cfg(any(feature = "service", test))]
use rusteron_core::sbe::MessageHeader;

rusteron_core::sbe_messages! {
    pub schema 111, version 17;

    /// Stands before the payload of every application message, in both directions.
    SessionMessageHeader = 1 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The session.
        cluster_session_id: i64;
        /// Time of the cluster, in its unit; 0 from clients.
        timestamp: i64;
    }

    /// Answers a connect request, or ends a session.
    SessionEvent<'a> = 2 {
        /// The session.
        cluster_session_id: i64;
        /// The request that the event answers.
        correlation_id: i64;
        /// The leader's term.
        leadership_term_id: i64;
        /// The leader.
        leader_member_id: i32;
        /// The event: an `EventCode`.
        code: i32;
        /// The cluster's version of the protocol.
        version: i32, null 0, since 6;
        /// The leader's heartbeat timeout in nanoseconds.
        leader_heartbeat_timeout_ns: i64, since 13;
    } + {
        /// A reason, or the endpoints of all members.
        detail: Ascii;
    }

    /// Asks for a session.
    SessionConnectRequest<'a> = 3 {
        /// The id that the answer repeats.
        correlation_id: i64;
        /// The stream id of the egress.
        response_stream_id: i32;
        /// The client's version of the protocol.
        version: i32, null 0, since 2;
    } + {
        /// The channel of the egress.
        response_channel: Ascii;
        /// Credentials for the cluster's authenticator.
        encoded_credentials: Bytes;
        /// The client's name and version.
        client_info: Ascii, since 14;
    }

    /// Ends a session.
    SessionCloseRequest = 4 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The session.
        cluster_session_id: i64;
    }

    /// Keeps a session open.
    SessionKeepAlive = 5 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The session.
        cluster_session_id: i64;
    }

    /// Tells a session of a new leader.
    NewLeaderEvent<'a> = 6 {
        /// The new leader's term.
        leadership_term_id: i64;
        /// The session.
        cluster_session_id: i64;
        /// The new leader.
        leader_member_id: i32;
    } + {
        /// The endpoints of all members.
        ingress_endpoints: Ascii;
    }

    /// Asks a client for other credentials.
    Challenge<'a> = 7 {
        /// The request that is challenged.
        correlation_id: i64;
        /// The future session.
        cluster_session_id: i64;
    } + {
        /// Bytes of the cluster's authenticator.
        encoded_challenge: Bytes;
    }

    /// Answers a challenge.
    ChallengeResponse<'a> = 8 {
        /// The id that the next answer repeats.
        correlation_id: i64;
        /// The future session.
        cluster_session_id: i64;
    } + {
        /// Credentials for the cluster's authenticator.
        encoded_credentials: Bytes;
    }

    /// Asks for an administrative action.
    AdminRequest<'a> = 26 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The session.
        cluster_session_id: i64;
        /// The id that the answer repeats.
        correlation_id: i64;
        /// The action: an `AdminRequestType`.
        request_type: i32;
    } + {
        /// Bytes of the request.
        payload: Bytes;
    }

    /// Answers an administrative request.
    AdminResponse<'a> = 27 {
        /// The session.
        cluster_session_id: i64;
        /// The request that is answered.
        correlation_id: i64;
        /// The action: an `AdminRequestType`.
        request_type: i32;
        /// The result: an `AdminResponseCode`.
        response_code: i32;
    } + {
        /// A reason.
        message: Ascii;
        /// Bytes of the answer.
        payload: Bytes;
    }

    /// A timer of the log.
    TimerEvent = 20 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The timer.
        correlation_id: i64;
        /// Time of the cluster, in its unit.
        timestamp: i64;
    }

    /// Opens a session, in the log.
    SessionOpenEvent<'a> = 21 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The client's request.
        correlation_id: i64;
        /// The session.
        cluster_session_id: i64;
        /// Time of the cluster, in its unit.
        timestamp: i64;
        /// The stream id of the egress.
        response_stream_id: i32;
    } + {
        /// The channel of the egress.
        response_channel: Ascii;
        /// The client's identity, as the authenticator encoded it.
        encoded_principal: Bytes;
    }

    /// Closes a session, in the log.
    SessionCloseEvent = 22 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The session.
        cluster_session_id: i64;
        /// Time of the cluster, in its unit.
        timestamp: i64;
        /// The reason: a `CloseReason`.
        close_reason: i32;
    }

    /// Requests an action of all services, in the log.
    ClusterActionRequest = 23 {
        /// The leader's term.
        leadership_term_id: i64;
        /// The position of the request.
        log_position: i64;
        /// Time of the cluster, in its unit.
        timestamp: i64;
        /// The action: 0 to suspend, 1 to resume, 2 to take a snapshot.
        action: i32;
        /// 0 for all members, 1 for standby members.
        flags: i32, since 11;
    }

    /// Begins a leader's term, in the log.
    NewLeadershipTermEvent = 24 {
        /// The new term.
        leadership_term_id: i64;
        /// The position of the event.
        log_position: i64;
        /// Time of the cluster, in its unit.
        timestamp: i64;
        /// The position at which the term begins.
        term_base_log_position: i64;
        /// The leader.
        leader_member_id: i32;
        /// The Aeron session of the leader's log.
        log_session_id: i32;
        /// The unit of timestamps: a `ClusterTimeUnit`.
        time_unit: i32, since 4;
        /// The version of the application.
        app_version: i32, null 0, since 4;
    }

    /// A service closes a session.
    CloseSession = 30 {
        /// The session.
        cluster_session_id: i64;
    }

    /// A service sets a timer.
    ScheduleTimer = 31 {
        /// The timer.
        correlation_id: i64;
        /// The deadline, in the unit of timestamps.
        deadline: i64;
    }

    /// A service cancels a timer.
    CancelTimer = 32 {
        /// The timer.
        correlation_id: i64;
    }

    /// A service acknowledges a position or an action.
    ServiceAck = 33 {
        /// The position of the log.
        log_position: i64;
        /// Time of the cluster, in its unit.
        timestamp: i64;
        /// The number of the acknowledgement, from 0 without a gap.
        ack_id: i64;
        /// The id of the Aeron client, of a recording, or -1.
        relevant_id: i64;
        /// The service.
        service_id: i32;
    }

    /// Tells the services of a node which log to read.
    JoinLog<'a> = 40 {
        /// The position at which the log begins.
        log_position: i64;
        /// The position at which the log ends.
        max_log_position: i64;
        /// The node's member id.
        member_id: i32;
        /// The Aeron session of the log.
        log_session_id: i32;
        /// The stream id of the log.
        log_stream_id: i32;
        /// 1 for a term that only replays.
        is_startup: i32;
        /// 0 follower, 1 candidate, 2 leader.
        role: i32;
        /// 1 for a standby member.
        is_standby: i32, since 16;
    } + {
        /// The channel of the log.
        log_channel: Ascii;
    }

    /// Tells the services of a node where to end.
    ServiceTerminationPosition = 42 {
        /// The position of the log.
        log_position: i64;
        /// 0 if no acknowledgement is wanted.
        ack_required: i32, since 17;
    }

    /// Begins or ends a snapshot.
    SnapshotMarker = 100 {
        /// The kind of snapshot: 2 for a service.
        type_id: i64;
        /// The position of the log.
        log_position: i64;
        /// The leader's term.
        leadership_term_id: i64;
        /// The number of a section.
        index: i32;
        /// 0 begin, 1 section, 2 end.
        mark: i32;
        /// The unit of timestamps: a `ClusterTimeUnit`.
        time_unit: i32, since 4;
        /// The version of the application.
        app_version: i32, null 0, since 4;
    }

    /// A session in a snapshot.
    ClientSession<'a> = 102 {
        /// The session.
        cluster_session_id: i64;
        /// The stream id of the egress.
        response_stream_id: i32;
    } + {
        /// The channel of the egress.
        response_channel: Ascii;
        /// The client's identity, as the authenticator encoded it.
        encoded_principal: Bytes;
    }

    /// Requests an acknowledgement of all services of a node.
    RequestServiceAck = 108 {
        /// The position of the log.
        log_position: i64;
    }
}

/// Decodes an application message, and returns its payload. `None` for other messages.
#[cfg(feature = "service")]
#[inline]
pub(crate) fn parse_session_message(message: &[u8]) -> Option<(SessionMessageHeader, &[u8])> {
    let (header, body) = MessageHeader::split(message)?;
    let ids = (header.schema_id, header.template_id);
    if ids != (SCHEMA_ID, SessionMessageHeader::TEMPLATE_ID) {
        return None;
    }
    let session = SessionMessageHeader::decode(header, body)?;
    Some((session, body.get(usize::from(header.block_length)..)?))
}

/// Decodes a whole message. Returns it with the bytes behind the sender's block: the payload of a
/// [`SessionMessageHeader`]. The text of an error says why there is no message.
#[cfg(feature = "service")]
pub(crate) fn parse(message: &[u8]) -> Result<(Message<'_>, &[u8]), String> {
    let (header, body) = MessageHeader::split(message)
        .ok_or_else(|| format!("a message of {} bytes, without a header", message.len()))?;
    if header.schema_id != SCHEMA_ID {
        return Err(format!("schema {}: expected {SCHEMA_ID}", header.schema_id));
    }
    let message = Message::decode(header, body)
        .ok_or_else(|| format!("message {} is truncated", header.template_id))?;
    Ok((message, body.get(usize::from(header.block_length)..).unwrap_or_default()))
}

#[cfg(test)]
mod tests;
