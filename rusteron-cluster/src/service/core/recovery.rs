//! The start of a container: the recovery of its service.

use crate::service::ack_ledger::Ack;
use crate::service::cluster::Lifecycle;
use crate::service::clustered_service::ClusteredService;
use crate::service::core::Core;
use crate::service::error::{ServiceError, TerminationCause};
use crate::service::network::Network;
use crate::service::panic::caught;
use crate::service::snapshot_reader::{SnapshotReader, SnapshotSource, read_head};
use crate::service::snapshot_writer::SnapshotError;

/// The position from which a service recovers, as the consensus module's counter tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recovery {
    pub(crate) leadership_term_id: i64,
    pub(crate) log_position: i64,
    pub(crate) timestamp: i64,
    /// The recording of the snapshot. `None` without a snapshot.
    pub(crate) snapshot_recording_id: Option<i64>,
}

impl<S: ClusteredService> Core<S> {
    /// Starts the service, with the snapshot if there is one, and acknowledges the outcome.
    pub(crate) fn recover(
        &mut self,
        network: &mut dyn Network,
        recovery: &Recovery,
        snapshot: Result<Option<&mut dyn SnapshotSource>, SnapshotError>,
    ) -> Result<(), TerminationCause> {
        self.state.log_position = recovery.log_position;
        self.state.time = recovery.timestamp;
        self.state.leadership_term_id = recovery.leadership_term_id;
        let started = snapshot.and_then(|snapshot| match snapshot {
            Some(source) => self.load(network, source),
            None => self.start(network, None),
        });
        let ack = match &started {
            Ok(()) => Ack::Recovered { client_id: network.client_id() },
            // The consensus module is gone, or cannot be reached.
            Err(SnapshotError::End(
                cause @ (TerminationCause::ClientClosed(_) | TerminationCause::ConsensusModuleGone),
            )) => return Err(cause.clone()),
            Err(error) => {
                network.record_error(error);
                Ack::StartFailed
            }
        };
        let sent = self.acknowledge(network, ack);
        started.map_err(|error| match error {
            SnapshotError::End(cause) => cause,
            error => TerminationCause::StartFailed(error.to_string()),
        })?;
        sent?;
        self.is_active = true;
        Ok(())
    }

    fn load(
        &mut self,
        network: &mut dyn Network,
        source: &mut dyn SnapshotSource,
    ) -> Result<(), SnapshotError> {
        let head = read_head(source)?;
        self.check_app_version(head.app_version, true)?;
        self.state.sessions = head.sessions;
        self.state.time_unit = head.time_unit;
        let mut reader = SnapshotReader::new(source);
        let started = self.start(network, Some(&mut reader));
        // A snapshot that was read half way is a failure, even if the service says otherwise.
        match (reader.finish(), started) {
            (Err(SnapshotError::End(cause)), _) => Err(SnapshotError::End(cause)),
            (_, Err(error)) | (Err(error), Ok(())) => Err(error),
            (Ok(()), Ok(())) => Ok(()),
        }
    }

    fn start(
        &mut self,
        network: &mut dyn Network,
        snapshot: Option<&mut SnapshotReader<'_>>,
    ) -> Result<(), SnapshotError> {
        let Self { service, state, .. } = self;
        let outcome = caught(|| service.on_start(&mut Lifecycle::new(state, network), snapshot));
        if let Some(cause) = self.state.end.take() {
            return Err(SnapshotError::End(cause));
        }
        match outcome {
            Ok(Ok(())) => Ok(()),
            Ok(Err(ServiceError::Terminate)) => Err(TerminationCause::ServiceTerminated.into()),
            Ok(Err(error)) => Err(SnapshotError::from_service(&error)),
            Err(text) => Err(SnapshotError::Failed(text)),
        }
    }
}
