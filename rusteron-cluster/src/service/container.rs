//! The loop of a service container, in the caller's thread or in one of its own.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rusteron_client::agent::{Agent, AgentError, ShutdownSignal};
use rusteron_client::{Aeron, CncFile, ErrorKind, IdleStrategy, Subscription, UncheckedChannel};
use rusteron_core::ffi::Process;
use rusteron_core::panic;

use crate::error::{ClusterError, ClusterErrorKind, Result};
use crate::service::aeron_network::AeronNetwork;
use crate::service::clustered_service::ClusteredService;
use crate::service::context::ServiceContext;
use crate::service::core::{Core, Settings};
use crate::service::counters;
use crate::service::error::TerminationCause;
use crate::service::log::Log;
use crate::service::mark_file::MarkFile;
use crate::service::snapshot_reader::SnapshotSource;
use crate::service::snapshot_writer::SnapshotError;
use crate::service::ticker::Ticker;

/// A replicated service that runs beside the consensus module of its node, on a thread of its own.
///
/// The container waits for the consensus module, recovers the service, and passes the log on until
/// the consensus module, the media driver or the service ends. A container that has ended cannot be
/// started again alone: the consensus module ends with it. Start both again.
///
/// Dropping a container stops it, and waits for its end.
///
/// ```no_run
/// use rusteron_cluster::{ClusteredService, ServiceContainer, ServiceContext};
///
/// fn run(service: impl ClusteredService + 'static) -> rusteron_cluster::Result<()> {
///     let mut context = ServiceContext::new();
///     context.set_aeron_dir("/dev/shm/aeron-node-0")?;
///     let container = ServiceContainer::launch(context, service)?;
///     println!("{}", container.join());
///     Ok(())
/// }
/// ```
///
/// Corresponds to `io.aeron.cluster.service.ClusteredServiceContainer`.
#[must_use = "dropping a container stops it"]
#[derive(Debug)]
pub struct ServiceContainer {
    thread: Option<JoinHandle<TerminationCause>>,
    stop: Arc<AtomicBool>,
    process: Process,
}

impl ServiceContainer {
    /// Starts a container. Waits for the node's media driver, but not for the consensus module.
    ///
    /// # Errors
    /// As for [`ServiceAgent::new`], and [`Client`](crate::ClusterErrorKind::Client) if the
    /// operating system has no thread.
    pub fn launch<S: ClusteredService + 'static>(
        context: ServiceContext,
        service: S,
    ) -> Result<Self> {
        let name = context.service_name().to_owned();
        let agent = ServiceAgent::new(context, service)?;
        let stop = agent.stop_flag();
        let thread = thread::Builder::new().name(name.clone()).spawn(move || agent.run());
        let thread = thread.map_err(|error| {
            let kind = ClusterErrorKind::Client(ErrorKind::Io(error.kind()));
            ClusterError::new(kind, format!("cannot start thread {name:?}: {error}"))
        })?;
        Ok(Self { thread: Some(thread), stop, process: Process::current() })
    }

    /// Asks the container to end. Does not wait. The node's consensus module ends, too; if it still
    /// waits for the service to start, it goes on waiting for another container.
    ///
    /// A callback of the service ends first, unless it waits in a call of
    /// [`Cluster`](crate::Cluster).
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Returns whether the container has not ended.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Waits until the container has ended, and returns the cause. Does not stop it. In a forked child,
    /// where there is no such container, the cause says so.
    pub fn join(mut self) -> TerminationCause {
        self.await_end()
    }

    /// Waits until the container has ended, which is noticed within 50 ms, and returns the cause. Stops the container as
    /// soon as the signal is given. In a forked child, as [`join`](Self::join).
    pub fn join_or_stop(mut self, shutdown: &ShutdownSignal) -> TerminationCause {
        const INTERVAL: Duration = Duration::from_millis(50);
        while self.process.is_current() && self.is_running() {
            if shutdown.wait_timeout(INTERVAL) {
                self.stop();
                break;
            }
        }
        self.await_end()
    }

    fn await_end(&mut self) -> TerminationCause {
        if !self.process.is_current() {
            std::mem::forget(self.thread.take()); // there is nothing to detach
            return TerminationCause::Failed(self.process.close_cause().to_string());
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(cause)) => cause,
            Some(Err(payload)) => {
                TerminationCause::Failed(format!("panic: {}", panic::into_text(payload)))
            }
            None => TerminationCause::Stopped,
        }
    }
}

impl Drop for ServiceContainer {
    fn drop(&mut self) {
        self.stop();
        self.await_end();
    }
}

/// A service container whose duty cycle the caller's loop runs.
///
/// [`ServiceContainer`](crate::ServiceContainer) runs an agent on a thread of its own. The agent is
/// also an [`Agent`] of `rusteron-client`, for its runners and composites.
///
/// The service's callbacks run in [`do_work`](Self::do_work). Dropping the agent ends the service
/// in order.
///
/// ```no_run
/// use rusteron_cluster::{ClusteredService, ServiceAgent, ServiceContext, TerminationCause};
///
/// fn run(service: impl ClusteredService) -> rusteron_cluster::Result<TerminationCause> {
///     let mut agent = ServiceAgent::new(ServiceContext::from_env()?, service)?;
///     loop {
///         match agent.do_work() {
///             Ok(0) => std::thread::yield_now(),
///             Ok(_) => {}
///             Err(cause) => return Ok(cause),
///         }
///     }
/// }
/// ```
///
/// Corresponds to `io.aeron.cluster.service.ClusteredServiceAgent`.
#[must_use]
pub struct ServiceAgent<S: ClusteredService> {
    /// `None` after the end.
    io: Option<Io>,
    core: Core<S>,
    context: Arc<ServiceContext>,
    cause: TerminationCause,
    stop: Arc<AtomicBool>,
}

/// The streams that an agent reads and writes.
struct Io {
    log: Log,
    control: Subscription,
    network: AeronNetwork,
    is_running: bool,
    last_cycle: Option<Instant>,
    /// Last, so that the mark file tells of the end when the streams are closed.
    mark_file: Option<Arc<MarkFile>>,
}

impl<S: ClusteredService> ServiceAgent<S> {
    /// Connects to the node's media driver, and adds the streams to and from the consensus module.
    /// Does not wait for the consensus module.
    ///
    /// # Errors
    /// - [`InvalidArgument`](crate::ClusterErrorKind::InvalidArgument): a setting is out of range;
    /// - [`Client`](crate::ClusterErrorKind::Client): there is no media driver, or a channel is not
    ///   valid;
    /// - [`ActiveMarkFile`](crate::ClusterErrorKind::ActiveMarkFile),
    ///   [`InvalidMarkFile`](crate::ClusterErrorKind::InvalidMarkFile) or
    ///   [`Io`](crate::ClusterErrorKind::Io): the mark file belongs to another container, or cannot
    ///   be made.
    pub fn new(context: ServiceContext, service: S) -> Result<Self> {
        context.new_archive_context()?;
        let context = Arc::new(context);
        let stop = Arc::new(AtomicBool::new(false));
        let aeron = context.connect()?;
        let mark_file = match context.has_mark_file() {
            true => {
                let aeron_dir = aeron.context().dir();
                let cnc = CncFile::open(aeron_dir, Duration::ZERO)?;
                // 0 is refused.
                let page_size = usize::try_from(cnc.constants().file_page_size).unwrap_or(0);
                Some(Arc::new(MarkFile::activate(&context, aeron_dir, page_size)?))
            }
            false => None,
        };
        let io = Io::open(&context, aeron, Arc::clone(&stop), mark_file.clone());
        if let Some(mark_file) = mark_file {
            match &io {
                Ok(_) => mark_file.ready(),
                Err(_) => mark_file.failed(),
            }
        }
        let io = io?;
        let settings = Settings {
            service_id: context.service_id(),
            app_version: context.app_version(),
            app_version_validator: Arc::clone(&context.app_version_validator),
            is_responding: context.is_responding_service(),
            error_policy: context.error_policy(),
        };
        Ok(Self {
            io: Some(io),
            core: Core::new(service, settings),
            context,
            cause: TerminationCause::Stopped,
            stop,
        })
    }

    /// Does one duty cycle, and returns the amount of work: with 0, the caller idles.
    ///
    /// Waits in some cycles: loading a snapshot, taking a snapshot, acknowledging, and adding the
    /// publication to a client.
    ///
    /// # Errors
    /// The cause of the container's end. The service was told to terminate, and the client is
    /// closed. Further calls return the same cause.
    pub fn do_work(&mut self) -> Result<usize, TerminationCause> {
        let Some(io) = &mut self.io else { return Err(self.cause.clone()) };
        io.cycle(&mut self.core, &self.context).inspect_err(|cause| self.end(cause.clone()))
    }

    /// Makes the next duty cycle end the container, when set.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Runs duty cycles until the end.
    pub(crate) fn run(mut self) -> TerminationCause {
        let mut idle = self.context.idle_strategy().new_strategy();
        loop {
            match self.do_work() {
                Ok(work_count) => idle.idle(work_count),
                Err(cause) => return cause,
            }
        }
    }

    fn end(&mut self, cause: TerminationCause) {
        let Some(mut io) = self.io.take() else { return };
        ::log::info!("service {} ends: {cause}", self.context.service_id());
        self.core.terminate(&mut io.network);
        // Publications and the log first, then the client, whose end the consensus module sees.
        self.core.close();
        drop(io);
        self.cause = cause;
    }
}

impl Io {
    /// Adds the streams to and from the consensus module.
    fn open(
        context: &Arc<ServiceContext>,
        aeron: Aeron,
        stop: Arc<AtomicBool>,
        mark_file: Option<Arc<MarkFile>>,
    ) -> Result<Self> {
        let idle_strategy = context.idle_strategy().new_strategy();
        let ticker = Ticker::new(&aeron, stop, idle_strategy, mark_file.clone());
        let control = aeron.add_subscription(
            UncheckedChannel(context.control_channel()),
            context.service_stream_id(),
        )?;
        let context = Arc::clone(context);
        let network = AeronNetwork::new(aeron, ticker, context, mark_file.clone())?;
        let log = Log::Closed;
        Ok(Self { log, control, network, is_running: false, last_cycle: None, mark_file })
    }

    fn cycle<S: ClusteredService>(
        &mut self,
        core: &mut Core<S>,
        context: &ServiceContext,
    ) -> Result<usize, TerminationCause> {
        let now = Instant::now();
        if let Some(last) = self.last_cycle.replace(now) {
            self.network.monitor().record_cycle(now.duration_since(last));
        }
        let mut work_count = 0;
        if self.network.ticker.tick(now)? {
            if !self.is_running {
                return self.start(core, context);
            }
            work_count += self.poll_control(core, context)?;
            core.check_positions(&mut self.network)?;
        }
        if !self.is_running {
            return Ok(0);
        }
        if self.log.is_open() {
            // Without the counter, the next tick ends the container.
            if let Some(limit) = self.network.ticker.commit_position() {
                let fragment_limit = context.log_fragment_limit();
                work_count += self.log.poll(core, &mut self.network, limit, fragment_limit)?;
            }
        }
        Ok(work_count + core.do_background_work(&mut self.network, now)?)
    }

    /// Recovers the service, if the consensus module waits for it.
    fn start<S: ClusteredService>(
        &mut self,
        core: &mut Core<S>,
        context: &ServiceContext,
    ) -> Result<usize, TerminationCause> {
        let counters = self.network.aeron().counters_reader();
        let found = counters::find(&counters, context.cluster_id(), context.service_id());
        let Some((commit_position, recovery)) = found else { return Ok(0) };
        // Not acknowledged: old consensus modules fail for an unknown service id.
        let recovery = recovery.map_err(TerminationCause::StartFailed)?;
        self.network.ticker.set_commit_position(Some(commit_position));
        let mut replay = recovery
            .snapshot_recording_id
            .map(|recording_id| self.network.replay_snapshot(recording_id))
            .transpose();
        if let Err(SnapshotError::End(TerminationCause::ConsensusModuleGone)) = replay {
            // It was an old consensus module. The service has not started, so look again.
            self.network.ticker.set_commit_position(None);
            return Ok(0);
        }
        let snapshot: Result<Option<&mut dyn SnapshotSource>, SnapshotError> = match &mut replay {
            Ok(None) => Ok(None),
            Ok(Some(replay)) => Ok(Some(replay)),
            Err(error) => Err(error.clone()),
        };
        core.recover(&mut self.network, &recovery, snapshot)?;
        self.is_running = true;
        self.last_cycle = None;
        Ok(1)
    }

    /// Handles one message of the consensus module, and joins its log.
    fn poll_control<S: ClusteredService>(
        &mut self,
        core: &mut Core<S>,
        context: &ServiceContext,
    ) -> Result<usize, TerminationCause> {
        let Self { log, control, network, mark_file, .. } = self;
        let mut end = Ok(());
        let on_message = |message: &[u8], _: &rusteron_client::Header<'_>| {
            if end.is_ok() {
                end = core.on_control_message(network, message);
            }
        };
        let polled = control.poll(on_message, 1);
        end?;
        // A closed subscription means a closed client, which the next tick notices.
        let mut work_count = polled.unwrap_or(0);
        if !log.is_open() {
            // A later request replaces a log that has not come.
            if let Some(join) = core.take_next_log() {
                core.on_joining(&join);
                if let Some(mark_file) = mark_file {
                    mark_file.set_member_id(join.member_id);
                }
                *log = Log::join(join, context.service_id());
            }
            let aeron = network.aeron().clone();
            work_count += log.advance(core, network, &aeron)?;
        }
        Ok(work_count)
    }
}

impl<S: ClusteredService> Agent for ServiceAgent<S> {
    /// Does one duty cycle. The end in order, by the consensus module, is no error.
    fn do_work(&mut self) -> Result<usize, AgentError> {
        Self::do_work(self).map_err(|cause| match cause.is_failure() {
            true => AgentError::from(cause),
            false => AgentError::terminate(),
        })
    }

    fn role_name(&self) -> &str {
        self.context.service_name()
    }
}

impl<S: ClusteredService> Drop for ServiceAgent<S> {
    fn drop(&mut self) {
        self.end(TerminationCause::Stopped);
    }
}

impl<S: ClusteredService> fmt::Debug for ServiceAgent<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceAgent")
            .field("context", &self.context)
            .field("state", self.core.state())
            .field("has_ended", &self.io.is_none())
            .finish_non_exhaustive()
    }
}
