//! Small types of the log, and the requests of the consensus module.

use rusteron_core::RecordingId;

use crate::codec;
use crate::ids::{ClusterSessionId, LeadershipTermId, MemberId, ServiceId};

/// The role of a member in its cluster.
///
/// Corresponds to `io.aeron.cluster.service.Cluster.Role`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Follows a leader. The answers of its services are dropped.
    Follower = 0,
    /// Stands for election.
    Candidate = 1,
    /// Leads: appends to the log, and its services answer clients.
    Leader = 2,
}

impl Role {
    pub(crate) fn from_code(code: i32) -> Option<Self> {
        [Self::Follower, Self::Candidate, Self::Leader]
            .into_iter()
            .find(|role| *role as i32 == code)
    }
}

/// The reason why a session was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The client closed the session.
    ClientAction,
    /// A service closed the session.
    ServiceAction,
    /// The cluster has not heard of the client for the session timeout.
    Timeout,
    /// A reason that this version does not know.
    Unknown(i32),
}

impl CloseReason {
    pub(crate) fn from_code(code: i32) -> Self {
        match code {
            0 => Self::ClientAction,
            1 => Self::ServiceAction,
            2 => Self::Timeout,
            _ => Self::Unknown(code),
        }
    }
}

/// The unit of the cluster's timestamps and of timer deadlines. The consensus module's clock
/// decides about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ClusterTimeUnit {
    /// Milliseconds, the default.
    #[default]
    Millis = 0,
    /// Microseconds.
    Micros = 1,
    /// Nanoseconds.
    Nanos = 2,
}

impl ClusterTimeUnit {
    /// Logs of old versions have no unit: milliseconds.
    pub(crate) fn from_code(code: i32) -> Self {
        match code {
            1 => Self::Micros,
            2 => Self::Nanos,
            _ => Self::Millis,
        }
    }

    pub(crate) fn code(self) -> i32 {
        self as i32
    }
}

/// The sender of a message in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageSource {
    /// A client, with the id of its session.
    Client {
        /// The id of the session.
        session_id: ClusterSessionId,
    },
    /// A service of the cluster, by [`Cluster::offer`](crate::Cluster::offer).
    Service {
        /// The id of the service.
        service_id: ServiceId,
    },
}

impl MessageSource {
    /// Messages of services have negative ids: the service id is in the upper bits.
    pub(crate) fn from_session_id(id: i64) -> Self {
        match id {
            0.. => Self::Client { session_id: ClusterSessionId::new(id) },
            _ => Self::Service { service_id: ServiceId::new((id >> 56) as i32 & 0x7f) },
        }
    }
}

/// A message to the service.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SessionMessage<'a> {
    /// The sender.
    pub source: MessageSource,
    /// Time of the cluster when the leader appended the message, in its unit.
    pub timestamp: i64,
    /// The bytes that the sender offered.
    pub payload: &'a [u8],
}

/// The beginning of a leader's term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeadershipTerm {
    /// The term.
    pub leadership_term_id: LeadershipTermId,
    /// The position of the log behind this event.
    pub log_position: i64,
    /// Time of the cluster, in its unit.
    pub timestamp: i64,
    /// The position of the log at which the term begins.
    pub term_base_log_position: i64,
    /// The leader's member id.
    pub leader_member_id: MemberId,
    /// The Aeron session of the leader's log.
    pub log_session_id: i32,
    /// The unit of the cluster's timestamps.
    pub time_unit: ClusterTimeUnit,
    /// The version of the application with which the leader runs; see
    /// [`app_version`](crate::ServiceContext::set_app_version).
    pub app_version: AppVersion,
}

impl LeadershipTerm {
    pub(crate) fn new(event: &codec::NewLeadershipTermEvent) -> Self {
        Self {
            leadership_term_id: LeadershipTermId::new(event.leadership_term_id),
            log_position: event.log_position,
            timestamp: event.timestamp,
            term_base_log_position: event.term_base_log_position,
            leader_member_id: MemberId::new(event.leader_member_id),
            log_session_id: event.log_session_id,
            time_unit: ClusterTimeUnit::from_code(event.time_unit),
            app_version: AppVersion::from_code(event.app_version),
        }
    }
}

/// A version of an application: a semantic version.
///
/// Members whose services have other major versions do not run on the same log, unless a
/// [validator](crate::ServiceContext::set_app_version_validator) allows it.
///
/// Corresponds to Agrona's `SemanticVersion`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppVersion {
    /// The major version.
    pub major: u8,
    /// The minor version.
    pub minor: u8,
    /// The patch.
    pub patch: u8,
}

impl AppVersion {
    /// Creates a version.
    pub const fn new(major: u8, minor: u8, patch: u8) -> Self {
        Self { major, minor, patch }
    }

    /// Returns whether both versions have the same major version. The default of
    /// [`set_app_version_validator`](crate::ServiceContext::set_app_version_validator).
    #[must_use]
    pub fn is_compatible(self, other: Self) -> bool {
        self.major == other.major
    }

    pub(crate) fn from_code(code: i32) -> Self {
        let [_, major, minor, patch] = code.to_be_bytes();
        Self { major, minor, patch }
    }

    pub(crate) fn code(self) -> i32 {
        i32::from_be_bytes([0, self.major, self.minor, self.patch])
    }
}

impl std::fmt::Display for AppVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A request to join a log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JoinLog {
    pub(crate) log_position: i64,
    pub(crate) max_log_position: i64,
    pub(crate) member_id: MemberId,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) is_startup: bool,
    pub(crate) role: Role,
    pub(crate) is_standby: bool,
    pub(crate) channel: String,
}

impl JoinLog {
    /// The text of an error says why the request is malformed.
    pub(crate) fn new(join: &codec::JoinLog<'_>) -> Result<Self, String> {
        let role = Role::from_code(join.role)
            .ok_or_else(|| format!("role {} in a request to join a log", join.role))?;
        Ok(Self {
            log_position: join.log_position,
            max_log_position: join.max_log_position,
            member_id: MemberId::new(join.member_id),
            session_id: join.log_session_id,
            stream_id: join.log_stream_id,
            is_startup: join.is_startup == 1,
            role,
            is_standby: join.is_standby == 1,
            channel: String::from_utf8_lossy(join.log_channel).into_owned(),
        })
    }
}

/// The position from which a service recovers, as the consensus module's counter tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// The term of the log. `None` for a log without a beginning.
    pub(crate) leadership_term_id: Option<LeadershipTermId>,
    pub(crate) log_position: i64,
    pub(crate) timestamp: i64,
    /// The recording of the snapshot. `None` without a snapshot.
    pub(crate) snapshot_recording_id: Option<RecordingId>,
}
