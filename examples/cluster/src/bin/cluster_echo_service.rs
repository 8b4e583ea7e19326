//! A replicated service that answers each message with its bytes.
//!
//! Shows the smallest service: callbacks, answers with an end to patience, and the container's life. The consensus
//! module of its node runs in Java. The service has no state, so its snapshots are empty.
//!
//! `just run-cluster-rust` starts nodes with this service. `cluster_echo` is a client. A node that runs already has a
//! directory of its media driver, and one of its cluster:
//!
//! ```text
//! cluster_echo_service --aeron-dir DIR/driver --cluster-dir DIR/cluster
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rusteron_client::agent::ShutdownSignal;
use rusteron_cluster::{
    CloseReason, Cluster, ClusteredService, Lifecycle, MessageSource, Role, ServiceContainer,
    ServiceContext, ServiceResult, SessionInfo, SessionMessage, SnapshotReader, SnapshotWriter,
    TerminationCause,
};

/// A replicated service that answers each message with its bytes
#[derive(Debug, Parser)]
#[command(name = "cluster_echo_service", version)]
struct Options {
    /// Directory of the node's media driver
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: PathBuf,

    /// Directory of the node's consensus module, for the mark file that tools read
    #[arg(long, value_name = "DIR", env = "AERON_CLUSTER_DIR")]
    cluster_dir: PathBuf,
}

/// A client that takes no answer for so long loses its session. The whole cluster waits meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

struct EchoService;

impl ClusteredService for EchoService {
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
        // The other source is a service, by `Cluster::offer`.
        if let MessageSource::Client { session_id } = message.source {
            answer(cluster, session_id, message.payload)?;
        }
        Ok(())
    }

    fn on_session_open(&mut self, _: &mut Cluster<'_>, session_id: i64, _: i64) -> ServiceResult {
        println!("Session {session_id} opened");
        Ok(())
    }

    fn on_session_close(
        &mut self,
        _: &mut Cluster<'_>,
        session: &SessionInfo,
        _: i64,
        reason: CloseReason,
    ) -> ServiceResult {
        println!("Session {} closed: {reason:?}", session.id());
        Ok(())
    }

    fn on_take_snapshot(&self, _: &mut SnapshotWriter<'_>) -> ServiceResult {
        Ok(())
    }

    fn on_role_change(&mut self, cluster: &mut Lifecycle<'_>, role: Role) {
        println!("Member {} is {role:?}", cluster.member_id().unwrap_or(-1));
    }
}

/// Sends an answer, and closes the session of a client that does not take it. Members that do not lead
/// send nothing.
fn answer(cluster: &mut Cluster<'_>, session_id: i64, payload: &[u8]) -> ServiceResult {
    // A service may have closed the session.
    let Some(mut session) = cluster.session(session_id) else { return Ok(()) };
    session.offer_or_close(payload, ANSWER_TIMEOUT)
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the service until its node ends. The supervisor of the node then starts all parts of the node again.
fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let shutdown = ShutdownSignal::new();
    let signal = shutdown.clone();
    ctrlc::set_handler(move || signal.signal())?;

    let mut context = ServiceContext::from_env()?;
    context.set_aeron_dir(&options.aeron_dir).set_cluster_dir(&options.cluster_dir);
    let container = ServiceContainer::launch(context, EchoService)?;
    while container.is_running() {
        if shutdown.wait_timeout(Duration::from_millis(100)) {
            container.stop();
            break;
        }
    }
    match container.join() {
        cause @ (TerminationCause::Stopped
        | TerminationCause::ConsensusModuleTerminated { is_expected: true, .. }) => {
            println!("End: {cause}");
            Ok(())
        }
        cause => Err(cause.into()),
    }
}
