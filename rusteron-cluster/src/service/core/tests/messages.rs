//! Messages of a consensus module.

use crate::codec;
use crate::service::types::AppVersion;

pub(super) fn message(session_id: i64, timestamp: i64, payload: &[u8]) -> Vec<u8> {
    let header = codec::SessionMessageHeader {
        leadership_term_id: 0,
        cluster_session_id: session_id,
        timestamp,
    };
    [header.to_vec(), payload.to_vec()].concat()
}

pub(super) fn open(session_id: i64) -> Vec<u8> {
    codec::SessionOpenEvent {
        leadership_term_id: 0,
        correlation_id: 1,
        cluster_session_id: session_id,
        timestamp: 11,
        response_stream_id: 102,
        response_channel: b"aeron:udp?endpoint=client:1",
        encoded_principal: b"principal",
    }
    .to_vec()
}

pub(super) fn close(session_id: i64) -> Vec<u8> {
    codec::SessionCloseEvent {
        leadership_term_id: 0,
        cluster_session_id: session_id,
        timestamp: 12,
        close_reason: 2,
    }
    .to_vec()
}

pub(super) fn action(log_position: i64, action: i32, flags: i32) -> Vec<u8> {
    codec::ClusterActionRequest {
        leadership_term_id: 4,
        log_position,
        timestamp: 13,
        action,
        flags,
    }
    .to_vec()
}

pub(super) fn term(leadership_term_id: i64, log_position: i64, app_version: AppVersion) -> Vec<u8> {
    codec::NewLeadershipTermEvent {
        leadership_term_id,
        log_position,
        timestamp: 14,
        term_base_log_position: 0,
        leader_member_id: 1,
        log_session_id: 2,
        time_unit: 1,
        app_version: app_version.code(),
    }
    .to_vec()
}

pub(super) fn join(role: i32, log_position: i64, is_startup: i32) -> Vec<u8> {
    codec::JoinLog {
        log_position,
        max_log_position: 1 << 40,
        member_id: 2,
        log_session_id: 9,
        log_stream_id: 100,
        is_startup,
        role,
        is_standby: 0,
        log_channel: b"aeron:ipc",
    }
    .to_vec()
}

pub(super) fn termination(log_position: i64, ack_required: i32) -> Vec<u8> {
    codec::ServiceTerminationPosition { log_position, ack_required }.to_vec()
}
