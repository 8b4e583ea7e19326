//! The part of a container's state that its service sees.

use crate::ids::{LeadershipTermId, MemberId, ServiceId};
use crate::service::error::TerminationCause;
use crate::service::session::Sessions;
use crate::service::types::{ClusterTimeUnit, Role};

/// The part of a container's state that its service sees.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) service_id: ServiceId,
    /// `None` before the first log.
    pub(crate) member_id: Option<MemberId>,
    pub(crate) role: Role,
    pub(crate) log_position: i64,
    pub(crate) time: i64,
    pub(crate) time_unit: ClusterTimeUnit,
    /// The term of the last snapshot or leader. `None` before both.
    pub(crate) leadership_term_id: Option<LeadershipTermId>,
    pub(crate) sessions: Sessions,
    /// Memory for the claims of followers, which go nowhere.
    pub(crate) scratch: Vec<u8>,
    /// The cause that ended a blocking call of the service.
    pub(crate) end: Option<TerminationCause>,
}

impl State {
    pub(crate) fn new(service_id: ServiceId) -> Self {
        Self {
            service_id,
            member_id: None,
            role: Role::Follower,
            log_position: -1,
            time: 0,
            time_unit: ClusterTimeUnit::default(),
            leadership_term_id: None,
            sessions: Sessions::new(),
            scratch: Vec::new(),
            end: None,
        }
    }
}
