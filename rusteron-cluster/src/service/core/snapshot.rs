//! The snapshot that a container takes.

use std::time::Instant;

use crate::codec;
use crate::service::ack_ledger::Ack;
use crate::service::clustered_service::ClusteredService;
use crate::service::core::Core;
use crate::service::core::background::Background;
use crate::service::error::{ServiceError, TerminationCause};
use crate::service::network::{Network, SnapshotContent};
use crate::service::panic::caught;
use crate::service::snapshot_reader::{BEGIN, END, SERVICE_SNAPSHOT};
use crate::service::snapshot_writer::{SnapshotError, SnapshotSink, SnapshotWriter, offer_all};
use crate::service::types::AppVersion;

impl<S: ClusteredService> Core<S> {
    /// Takes a snapshot, and acknowledges it or its failure.
    pub(crate) fn take_snapshot(
        &mut self,
        network: &mut dyn Network,
        leadership_term_id: i64,
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
    leadership_term_id: i64,
    app_version: AppVersion,
}

impl<S: ClusteredService> SnapshotContent for Content<'_, S> {
    fn write(&mut self, sink: &mut dyn SnapshotSink) -> Result<(), SnapshotError> {
        let Background { service, state, .. } = &mut self.background;
        let marker = |mark| codec::SnapshotMarker {
            type_id: SERVICE_SNAPSHOT,
            log_position: state.log_position,
            leadership_term_id: self.leadership_term_id,
            index: 0,
            mark,
            time_unit: state.time_unit.code(),
            app_version: self.app_version.code(),
        };
        offer_all(sink, &marker(BEGIN).to_vec())?;
        for session in state.sessions.values() {
            let session = codec::ClientSession {
                cluster_session_id: session.id(),
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
            (Ok(Err(error)), Ok(())) => Err(SnapshotError::from_service(&error)),
            (Ok(Ok(())), Ok(())) => Ok(()),
        }
    }

    fn on_idle(&mut self, network: &mut dyn Network) -> Result<(), TerminationCause> {
        self.background.work(network, Instant::now()).map(drop)
    }
}
