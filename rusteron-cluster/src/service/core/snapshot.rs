//! Recovery from a snapshot, and taking one.

use std::time::Instant;

use crate::codec;
use crate::ids::LeadershipTermId;
use crate::service::ack_ledger::Ack;
use crate::service::cluster::Lifecycle;
use crate::service::clustered_service::ClusteredService;
use crate::service::core::{Background, Core};
use crate::service::error::{ServiceError, TerminationCause, caught};
use crate::service::network::{Network, SnapshotContent};
use crate::service::snapshot_reader::{
    BEGIN, END, SERVICE_SNAPSHOT, SnapshotReader, SnapshotSource, read_head,
};
use crate::service::snapshot_writer::{SnapshotError, SnapshotSink, SnapshotWriter, offer_all};
use crate::service::types::{AppVersion, Recovery};

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
            Ok(Err(error)) => Err(SnapshotError::Failed(error.to_string())),
            Err(text) => Err(SnapshotError::Failed(text)),
        }
    }

    /// Takes a snapshot, and acknowledges it or its failure.
    pub(crate) fn take_snapshot(
        &mut self,
        network: &mut dyn Network,
        leadership_term_id: Option<LeadershipTermId>,
    ) -> Result<(), TerminationCause> {
        let app_version = self.settings.app_version;
        let background = self.background();
        let mut content = Content { background, leadership_term_id, app_version };
        let outcome = network.record_snapshot(&mut content);
        let ack = match outcome {
            Ok(recording_id) => Ack::Snapshot { recording_id },
            Err(_) => Ack::SnapshotFailed,
        };
        let sent = self.acknowledge(network, ack);
        match outcome {
            Ok(_) => sent,
            Err(SnapshotError::End(cause)) => Err(cause),
            // The consensus module goes on without this snapshot. So does the service, which a
            // snapshot cannot change.
            Err(SnapshotError::Failed(error)) => {
                let position = self.state.log_position;
                network.record_error(&format_args!("no snapshot at position {position}: {error}"));
                sent
            }
        }
    }
}

struct Content<'a, S> {
    background: Background<'a, S>,
    leadership_term_id: Option<LeadershipTermId>,
    app_version: AppVersion,
}

impl<S: ClusteredService> SnapshotContent for Content<'_, S> {
    fn write(&mut self, sink: &mut dyn SnapshotSink) -> Result<(), SnapshotError> {
        let Background { service, state, .. } = &mut self.background;
        let marker = |mark| codec::SnapshotMarker {
            type_id: SERVICE_SNAPSHOT,
            log_position: state.log_position,
            leadership_term_id: LeadershipTermId::number_of(self.leadership_term_id),
            index: 0,
            mark,
            time_unit: state.time_unit.code(),
            app_version: self.app_version.code(),
        };
        offer_all(sink, &marker(BEGIN).to_vec())?;
        for session in state.sessions.values() {
            let session = codec::ClientSession {
                cluster_session_id: session.id().get(),
                response_stream_id: session.response_stream_id(),
                response_channel: session.response_channel().as_bytes(),
                encoded_principal: session.encoded_principal(),
            };
            offer_all(sink, &session.to_vec())?;
        }
        offer_all(sink, &marker(END).to_vec())?;
        let mut writer = SnapshotWriter::new(sink);
        let taken = caught(|| service.on_take_snapshot(&mut writer));
        let finished = writer.finish();
        match (taken, finished) {
            (Err(text), _) => Err(SnapshotError::Failed(text)),
            (_, Err(error @ SnapshotError::End(_))) => Err(error),
            (Ok(Err(ServiceError::Terminate)), _) => {
                Err(TerminationCause::ServiceTerminated.into())
            }
            // The service's error is mostly that of the writer.
            (Ok(_), Err(error)) => Err(error),
            (Ok(Err(error)), Ok(())) => Err(SnapshotError::Failed(error.to_string())),
            (Ok(Ok(())), Ok(())) => Ok(()),
        }
    }

    fn on_idle(&mut self, network: &mut dyn Network) -> Result<(), TerminationCause> {
        self.background.work(network, Instant::now()).map(drop)
    }
}
