//! The echo service in Rust, as a process of its own.

use std::io::{self, Read};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusteron_client::IdleStrategyKind;
use rusteron_cluster::{
    Cluster, ClusteredService, Lifecycle, MessageSource, ServiceContainer, ServiceContext,
    ServiceResult, SessionMessage, SnapshotReader, SnapshotWriter,
};
use rusteron_core::program::Failure;

/// A new leader waits so long for a client's subscription, as the service in Java does.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Answers each message with its bytes, as `lab/java/cluster/EchoService.java` does.
#[derive(Debug)]
struct EchoService;

impl ClusteredService for EchoService {
    fn on_start(
        &mut self,
        _: &mut Lifecycle<'_>,
        _: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        Ok(())
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        message: &SessionMessage<'_>,
    ) -> ServiceResult {
        let MessageSource::Client { session_id } = message.source else { return Ok(()) };
        let Some(mut session) = cluster.session(session_id) else { return Ok(()) };
        session.offer_or_close(message.payload, CONNECT_TIMEOUT)
    }

    fn on_take_snapshot(&self, _: &mut SnapshotWriter<'_>) -> ServiceResult {
        Ok(())
    }
}

/// Runs the service of a member until the member ends. The end of standard input ends this process
/// at once.
///
/// # Errors
/// [`Failure::Run`] if there is no member, or with the cause of the end.
pub fn serve(aeron_dir: &Path, cluster_dir: &Path, idle: IdleStrategyKind) -> Result<(), Failure> {
    thread::spawn(|| {
        // A failed read counts as the end.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let mut context = ServiceContext::new();
    context.set_aeron_dir(aeron_dir)?.set_cluster_dir(cluster_dir)?.set_idle_strategy(idle)?;
    let container = ServiceContainer::launch(context, EchoService)
        .map_err(|error| Failure::run("service", error))?;
    Err(Failure::run("service", container.join()))
}
