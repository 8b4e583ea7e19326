//! A replicated service that answers each message with its bytes: the smallest service.
//!
//! It runs beside the consensus module of its node, which is Aeron's, in Java. `just run-cluster --rust` starts nodes with
//! this service, and `cluster_echo` is a client. The environment variables `AERON_DIR` and `AERON_CLUSTER_DIR` name the
//! directories of the node's media driver and consensus module.

use std::error::Error;
use std::time::Duration;

use rusteron_client::agent::ShutdownSignal;
use rusteron_cluster::{Cluster, ClusteredService, Lifecycle, MessageSource, Role};
use rusteron_cluster::{ServiceContainer, ServiceContext, ServiceResult, SessionMessage};
use rusteron_cluster::{SnapshotReader, SnapshotWriter};

/// A client that takes no answer for so long loses its session. The whole cluster waits meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let shutdown = ShutdownSignal::on_interrupt()?;
    let container = ServiceContainer::launch(ServiceContext::from_env()?, EchoService)?;
    // The service and its node end together. A supervisor starts them again together.
    let cause = container.join_or_stop(&shutdown);
    println!("End: {cause}");
    if cause.is_failure() { Err(cause.into()) } else { Ok(()) }
}

struct EchoService;

impl ClusteredService for EchoService {
    // Messages and timers come with a `Cluster`, by which a service may send. Other events come with a `Lifecycle`.
    fn on_start(
        &mut self,
        cluster: &mut Lifecycle<'_>,
        _snapshot: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        println!("Start at position {}", cluster.log_position());
        Ok(())
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        message: &SessionMessage<'_>,
    ) -> ServiceResult {
        // The other source is a service of this cluster.
        let MessageSource::Client { session_id } = message.source else { return Ok(()) };
        // A service may have closed the session.
        let Some(mut session) = cluster.session(session_id) else { return Ok(()) };
        // Members that do not lead send nothing.
        session.offer_or_close(message.payload, ANSWER_TIMEOUT)
    }

    fn on_take_snapshot(&self, _snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
        Ok(()) // There is no state.
    }

    fn on_role_change(&mut self, cluster: &mut Lifecycle<'_>, role: Role) {
        if let Some(member_id) = cluster.member_id() {
            println!("Member {member_id} is {role:?}");
        }
    }
}
