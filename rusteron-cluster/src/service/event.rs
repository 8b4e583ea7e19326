//! The messages of the log and of the consensus module, decoded.

use crate::codec::{self, MessageHeader, SCHEMA_ID};
use crate::service::types::{AppVersion, ClusterTimeUnit, LeadershipTerm, Role};

/// Standby members take snapshots with this flag.
const STANDBY: i32 = 1;
/// The code of the only action that services take.
const SNAPSHOT: i32 = 2;

/// A message of the log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LogEvent<'a> {
    Message {
        session_id: i64,
        timestamp: i64,
        payload: &'a [u8],
    },
    Timer {
        correlation_id: i64,
        timestamp: i64,
    },
    SessionOpen(codec::SessionOpenEvent<'a>),
    SessionClose(codec::SessionCloseEvent),
    Snapshot {
        log_position: i64,
        leadership_term_id: i64,
        timestamp: i64,
        is_standby_only: bool,
    },
    /// An action without work for services.
    Action {
        log_position: i64,
        timestamp: i64,
    },
    NewTerm(LeadershipTerm),
    Ignored,
}

/// A message that cannot be decoded: the text says why.
pub(crate) type Malformed = String;

impl<'a> LogEvent<'a> {
    pub(crate) fn decode(message: &'a [u8]) -> Result<Self, Malformed> {
        let (header, body) = split(message)?;
        let truncated = || truncated(header);
        Ok(match header.template_id {
            codec::SessionMessageHeader::TEMPLATE_ID => {
                let session =
                    codec::SessionMessageHeader::decode(header, body).ok_or_else(truncated)?;
                Self::Message {
                    session_id: session.cluster_session_id,
                    timestamp: session.timestamp,
                    payload: &body[usize::from(header.block_length)..],
                }
            }
            codec::TimerEvent::TEMPLATE_ID => {
                let timer = codec::TimerEvent::decode(header, body).ok_or_else(truncated)?;
                Self::Timer { correlation_id: timer.correlation_id, timestamp: timer.timestamp }
            }
            codec::SessionOpenEvent::TEMPLATE_ID => Self::SessionOpen(
                codec::SessionOpenEvent::decode(header, body).ok_or_else(truncated)?,
            ),
            codec::SessionCloseEvent::TEMPLATE_ID => Self::SessionClose(
                codec::SessionCloseEvent::decode(header, body).ok_or_else(truncated)?,
            ),
            codec::ClusterActionRequest::TEMPLATE_ID => {
                let request =
                    codec::ClusterActionRequest::decode(header, body).ok_or_else(truncated)?;
                Self::action(&request)
            }
            codec::NewLeadershipTermEvent::TEMPLATE_ID => {
                let term =
                    codec::NewLeadershipTermEvent::decode(header, body).ok_or_else(truncated)?;
                Self::NewTerm(new_term(&term))
            }
            _ => Self::Ignored,
        })
    }

    fn action(request: &codec::ClusterActionRequest) -> Self {
        let &codec::ClusterActionRequest { log_position, leadership_term_id, timestamp, .. } =
            request;
        if request.action != SNAPSHOT {
            return Self::Action { log_position, timestamp };
        }
        // Senders before version 11 have no flags.
        let is_for_all = matches!(request.flags, 0 | i32::MIN);
        if !is_for_all && request.flags & STANDBY == 0 {
            return Self::Action { log_position, timestamp };
        }
        let is_standby_only = !is_for_all;
        Self::Snapshot { log_position, leadership_term_id, timestamp, is_standby_only }
    }
}

fn new_term(term: &codec::NewLeadershipTermEvent) -> LeadershipTerm {
    LeadershipTerm {
        leadership_term_id: term.leadership_term_id,
        log_position: term.log_position,
        timestamp: term.timestamp,
        term_base_log_position: term.term_base_log_position,
        leader_member_id: term.leader_member_id,
        log_session_id: term.log_session_id,
        time_unit: ClusterTimeUnit::from_code(term.time_unit),
        app_version: AppVersion::from_code(term.app_version),
    }
}

/// A message of the consensus module to its services.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ControlEvent {
    JoinLog(JoinLog),
    Terminate { log_position: i64, is_ack_required: bool },
    RequestAck { log_position: i64 },
    Ignored,
}

/// The log to read next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JoinLog {
    pub(crate) log_position: i64,
    pub(crate) max_log_position: i64,
    pub(crate) member_id: i32,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) is_startup: bool,
    pub(crate) role: Role,
    pub(crate) is_standby: bool,
    pub(crate) channel: String,
}

impl ControlEvent {
    pub(crate) fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let (header, body) = split(message)?;
        let truncated = || truncated(header);
        Ok(match header.template_id {
            codec::JoinLog::TEMPLATE_ID => {
                let join = codec::JoinLog::decode(header, body).ok_or_else(truncated)?;
                let role = Role::from_code(join.role)
                    .ok_or_else(|| format!("role {} in a request to join a log", join.role))?;
                Self::JoinLog(JoinLog {
                    log_position: join.log_position,
                    max_log_position: join.max_log_position,
                    member_id: join.member_id,
                    session_id: join.log_session_id,
                    stream_id: join.log_stream_id,
                    is_startup: join.is_startup == 1,
                    role,
                    is_standby: join.is_standby == 1,
                    channel: String::from_utf8_lossy(join.log_channel).into_owned(),
                })
            }
            codec::ServiceTerminationPosition::TEMPLATE_ID => {
                let end = codec::ServiceTerminationPosition::decode(header, body)
                    .ok_or_else(truncated)?;
                // Senders before version 17 have no such field, and wait for the acknowledgement.
                let is_ack_required = end.ack_required != 0;
                Self::Terminate { log_position: end.log_position, is_ack_required }
            }
            codec::RequestServiceAck::TEMPLATE_ID => {
                let request =
                    codec::RequestServiceAck::decode(header, body).ok_or_else(truncated)?;
                Self::RequestAck { log_position: request.log_position }
            }
            // Answers to tools arrive on the same stream.
            _ => Self::Ignored,
        })
    }
}

fn split(message: &[u8]) -> Result<(MessageHeader, &[u8]), Malformed> {
    let (header, body) = MessageHeader::split(message)
        .ok_or_else(|| format!("a message of {} bytes, without a header", message.len()))?;
    if header.schema_id != SCHEMA_ID {
        return Err(format!("schema {}: expected {SCHEMA_ID}", header.schema_id));
    }
    Ok((header, body))
}

fn truncated(header: MessageHeader) -> Malformed {
    format!("message {} is truncated", header.template_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_ack_required_is_true() {
        let message = |version: u16, block: &[u8]| {
            let block_length = block.len() as u16;
            let header =
                MessageHeader { block_length, template_id: 42, schema_id: SCHEMA_ID, version };
            ControlEvent::decode(&[&header.to_bytes()[..], block].concat())
        };
        let position = 4096_i64.to_le_bytes();
        let with = |flag: i32| [&position[..], &flag.to_le_bytes()].concat();
        let event =
            |is_ack_required| Ok(ControlEvent::Terminate { log_position: 4096, is_ack_required });
        assert_eq!(message(16, &position), event(true));
        assert_eq!(message(17, &with(1)), event(true));
        assert_eq!(message(17, &with(0)), event(false));
    }

    #[test]
    fn actions_by_code_and_flags() {
        let event = |action, flags| {
            let request = codec::ClusterActionRequest {
                leadership_term_id: 1,
                log_position: 64,
                timestamp: 9,
                action,
                flags,
            };
            match LogEvent::action(&request) {
                LogEvent::Snapshot { log_position: 64, is_standby_only, .. } => {
                    Some(is_standby_only)
                }
                LogEvent::Action { log_position: 64, timestamp: 9 } => None,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!((event(0, 0), event(1, 0)), (None, None));
        assert_eq!((event(2, 0), event(2, i32::MIN)), (Some(false), Some(false)));
        assert_eq!((event(2, 1), event(2, 2)), (Some(true), None));
    }

    #[test]
    fn payload_begins_behind_the_senders_block() {
        let header =
            MessageHeader { block_length: 32, template_id: 1, schema_id: SCHEMA_ID, version: 18 };
        let mut message = header.to_bytes().to_vec();
        message.extend([1_i64, 7, 99, -1].iter().flat_map(|x| x.to_le_bytes()));
        message.extend(b"payload");
        let expected = LogEvent::Message { session_id: 7, timestamp: 99, payload: b"payload" };
        assert_eq!(LogEvent::decode(&message), Ok(expected));
        assert!(LogEvent::decode(&message[..39]).is_err());
    }

    #[test]
    fn foreign_and_unknown_messages() {
        let mut header =
            MessageHeader { block_length: 0, template_id: 43, schema_id: SCHEMA_ID, version: 17 };
        assert_eq!(ControlEvent::decode(&header.to_bytes()), Ok(ControlEvent::Ignored));
        assert_eq!(LogEvent::decode(&header.to_bytes()), Ok(LogEvent::Ignored));
        header.schema_id = 101;
        assert!(ControlEvent::decode(&header.to_bytes()).is_err());
        assert!(LogEvent::decode(&header.to_bytes()).is_err());
        assert!(LogEvent::decode(&[1, 2, 3]).is_err());
    }
}
