//! A service container on its own thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusteron_client::ErrorKind;
use rusteron_client::agent::ShutdownSignal;
use rusteron_core::ffi::Process;
use rusteron_core::panic;

use crate::error::{ClusterError, ClusterErrorKind, Result};
use crate::service::agent::ServiceAgent;
use crate::service::clustered_service::ClusteredService;
use crate::service::context::ServiceContext;
use crate::service::error::TerminationCause;

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
///     context.set_aeron_dir("/dev/shm/aeron-node-0");
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

    /// Waits until the container has ended, and returns the cause. Stops the container when the signal is given, at the
    /// latest after 50 ms.
    pub fn join_or_stop(mut self, shutdown: &ShutdownSignal) -> TerminationCause {
        const INTERVAL: Duration = Duration::from_millis(50);
        while self.is_running() {
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
