//! The work of a service between its callbacks.

use std::time::Instant;

use crate::service::ack_ledger::Ack;
use crate::service::cluster::Lifecycle;
use crate::service::clustered_service::ClusteredService;
use crate::service::core::{Core, record_failure};
use crate::service::error::{ErrorPolicy, TerminationCause};
use crate::service::network::Network;
use crate::service::panic::caught;
use crate::service::state::State;

/// The part of a container that does background work, also while the rest waits for an
/// acknowledgement or for the archive.
pub(super) struct Background<'a, S> {
    pub(super) service: &'a mut S,
    pub(super) state: &'a mut State,
    pub(super) is_active: &'a mut bool,
    pub(super) error_policy: ErrorPolicy,
}

impl<S: ClusteredService> Background<'_, S> {
    pub(super) fn work(
        &mut self,
        network: &mut dyn Network,
        now: Instant,
    ) -> Result<usize, TerminationCause> {
        if !*self.is_active {
            return Ok(0);
        }
        let Self { service, state, .. } = self;
        let mut work_count = 0;
        let outcome = caught(|| {
            work_count = service.do_background_work(&mut Lifecycle::new(state, network), now);
            Ok(())
        });
        match (outcome, self.state.end.take()) {
            (_, Some(cause)) => Err(cause),
            (Ok(_), None) => Ok(work_count),
            (Err(panic), None) => {
                let (callback, policy) = ("do_background_work", self.error_policy);
                let failed = record_failure(network, self.state, policy, callback, panic);
                *self.is_active = failed.is_ok();
                failed.map(|()| 0)
            }
        }
    }
}

impl<S: ClusteredService> Core<S> {
    pub(super) fn background(&mut self) -> Background<'_, S> {
        let Self { service, state, is_active, settings, .. } = self;
        Background { service, state, is_active, error_policy: settings.error_policy }
    }

    /// Lets the service do its background work.
    pub(crate) fn do_background_work(
        &mut self,
        network: &mut dyn Network,
        now: Instant,
    ) -> Result<usize, TerminationCause> {
        self.background().work(network, now)
    }

    /// Acknowledges at the present position. The service does its background work meanwhile.
    pub(super) fn acknowledge(
        &mut self,
        network: &mut dyn Network,
        ack: Ack,
    ) -> Result<(), TerminationCause> {
        let Self { service, state, is_active, settings, ledger, .. } = self;
        let (log_position, time) = (state.log_position, state.time);
        let error_policy = settings.error_policy;
        let mut background = Background { service, state, is_active, error_policy };
        ledger.send(network, ack, log_position, time, &mut |network| {
            background.work(network, Instant::now()).map(drop)
        })
    }
}
