//! A media driver that runs in the application's idle loop.

use std::path::Path;
use std::time::Duration;

use rusteron_core::Result;
use rusteron_core::agent::{Agent, AgentError};
use rusteron_core::cnc::CncFile;
use rusteron_core::ffi::Fallible;
use rusteron_sys::driver as sys;

use crate::context::DriverContext;
use crate::launch::Running;

/// A media driver whose main agent the application invokes in a loop of its own, until it is dropped.
///
/// With [`ThreadingMode::Invoker`](crate::ThreadingMode::Invoker) or `Shared`, the main agent is
/// the whole driver, and there is no thread but the caller's. With the other modes the main agent
/// is the conductor; sender and receiver have their own threads.
///
/// Between two invocations the agent does nothing: no message is sent or received, and no client is
/// answered. After the [driver timeout](DriverContext::driver_timeout), clients consider the driver dead.
/// A loop with other work must come around much sooner. A blocking call of a client on the same
/// thread waits for the driver, which waits for the call to end. Clients without a conductor thread
/// (`set_use_conductor_agent_invoker`) and polled registrations work in such a loop.
///
/// A `DriverInvoker` can be moved between threads. One thread uses it at a time. It is an
/// [`Agent`]: a [`CompositeAgent`](rusteron_core::agent::CompositeAgent) runs driver, conductor
/// and application on one thread.
///
/// ```
/// use std::time::Duration;
/// use rusteron_client::{Aeron, Context};
/// use rusteron_media_driver::{DriverContext, DriverInvoker, ThreadingMode};
///
/// # fn main() -> Result<(), rusteron_media_driver::Error> {
/// let mut context = DriverContext::new()?;
/// context.set_threading_mode(ThreadingMode::Invoker)?;
/// let mut driver = DriverInvoker::launch_embedded(context)?;
/// driver.do_work()?;
///
/// let mut context = Context::new()?;
/// context.set_dir(driver.aeron_dir())?.set_use_conductor_agent_invoker(true)?;
/// let aeron = Aeron::connect(context)?;
/// let mut adding = aeron.async_add_publication("aeron:ipc", 1001)?;
/// let publication = loop {
///     driver.do_work()?;
///     aeron.do_work()?;
///     if let Some(publication) = adding.poll()? {
///         break publication;
///     }
/// };
/// assert_eq!(publication.stream_id(), 1001);
/// # Ok(())
/// # }
/// ```
#[doc(alias("sharedAgentInvoker", "AgentInvoker"))]
#[must_use = "the driver ends when this is dropped"]
pub struct DriverInvoker {
    running: Running,
    /// The earliest time of the conductor's next duty cycle, in nanoseconds of the driver's clock.
    conductor_due_ns: i64,
}

impl DriverInvoker {
    /// Launches a driver with the context's settings, in the context's directory. CPU affinity and
    /// [`set_agent_on_start`](DriverContext::set_agent_on_start) apply to this thread as the thread of
    /// the main agent.
    ///
    /// # Errors
    /// As for [`MediaDriver::launch`](crate::MediaDriver::launch), which also describes the fate of
    /// the directory. Every threading mode is valid.
    ///
    /// Corresponds to `aeron_driver_init` and `aeron_driver_start` with a manual main loop.
    #[doc(alias("aeron_driver_init", "aeron_driver_start"))]
    pub fn launch(context: DriverContext) -> Result<Self> {
        launch(context, false)
    }

    /// Launches a driver with the context's settings in a directory of its own. The directory is
    /// deleted when the driver is dropped or the launch fails.
    ///
    /// # Errors
    /// As for [`launch`](Self::launch).
    pub fn launch_embedded(context: DriverContext) -> Result<Self> {
        launch(context, true)
    }

    /// Runs the main agent's work once. Returns the amount of work, 0 for none.
    ///
    /// If the main agent is the whole driver, sends first and receives last, so that messages of the
    /// application's loop wait least. After a duty cycle in which the conductor had no work, skips
    /// it for 2 µs. Poll subscriptions right after this call. Call
    /// `Aeron::do_work` of the client when the polls found nothing, and at
    /// least every few milliseconds: a client without duty cycles times out.
    ///
    /// # Errors
    /// [`ErrorKind::Other`](crate::ErrorKind::Other) and others if the invocation has failed. The
    /// driver goes on, and can be invoked again. Errors in the agents' work, such as a datagram
    /// that cannot be sent, are no such failure; the agents write them to the driver's error log.
    ///
    /// Corresponds to `aeron_driver_main_do_work`.
    #[doc(alias = "aeron_driver_main_do_work")]
    pub fn do_work(&mut self) -> Result<usize> {
        self.running.check_process()?;
        // SAFETY: the driver is live and started with a manual main loop, and by the exclusive
        // borrow this is the only invocation.
        let work = unsafe {
            sys::rusteron_driver_main_do_work(self.running.as_ptr(), &mut self.conductor_due_ns)
        };
        Ok(usize::try_from(work.into_result()?).unwrap_or(0))
    }

    /// Idles with the context's strategy for the main agent. Takes the work count of an invocation.
    ///
    /// Corresponds to `aeron_driver_main_idle_strategy`.
    #[doc(alias = "aeron_driver_main_idle_strategy")]
    pub fn idle(&mut self, work_count: usize) {
        let work_count = i32::try_from(work_count).unwrap_or(i32::MAX);
        // SAFETY: the driver is live, and the exclusive borrow makes this the only use of the main agent's strategy.
        unsafe { sys::aeron_driver_main_idle_strategy(self.running.as_ptr(), work_count) };
    }

    /// Ends the driver as dropping it does, and returns the error; a drop logs the error. Waits for
    /// the threads of the other agents, if there are any.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) or [`Other`](crate::ErrorKind::Other) if the
    /// directory is to be deleted ([`dir_delete_on_shutdown`](DriverContext::dir_delete_on_shutdown)) and
    /// cannot be deleted. Others if a thread cannot be joined; the driver's memory is then leaked
    /// to the thread.
    ///
    /// Corresponds to `aeron_driver_close` and `aeron_driver_context_close`.
    #[doc(alias("aeron_driver_close", "aeron_driver_context_close"))]
    pub fn close(self) -> Result<()> {
        self.running.close()
    }

    /// Returns the directory with which clients find this driver: an absolute path.
    pub fn aeron_dir(&self) -> &Path {
        self.running.aeron_dir()
    }

    /// Returns the driver's own records: its counters, its errors, the losses of its streams.
    ///
    /// # Errors
    /// [`ErrorKind::DriverTimeout`](crate::ErrorKind::DriverTimeout) and others if the driver's
    /// files have been deleted.
    pub fn cnc_file(&self) -> Result<CncFile> {
        CncFile::open(self.aeron_dir(), Duration::ZERO)
    }
}

/// The main agent, for a loop that runs other agents as well. Dropping the agent ends the driver.
impl Agent for DriverInvoker {
    fn do_work(&mut self) -> std::result::Result<usize, AgentError> {
        Ok(Self::do_work(self)?)
    }

    fn role_name(&self) -> &str {
        "media-driver"
    }
}

fn launch(context: DriverContext, is_embedded: bool) -> Result<DriverInvoker> {
    Ok(DriverInvoker { running: Running::launch(context, is_embedded, true)?, conductor_due_ns: 0 })
}

rusteron_core::impl_debug!(DriverInvoker: aeron_dir());
