//! A media driver that the application gives its turns.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use rusteron_client::__private::Fallible;
use rusteron_client::{CncFile, Result};
use rusteron_sys::driver as sys;

use crate::context::Context;
use crate::embedded_dir;
use crate::launch::Running;

/// A media driver whose main agent the application invokes in a loop of its own, until it is dropped.
///
/// With [`ThreadingMode::Invoker`](crate::ThreadingMode::Invoker) or `Shared`, that is all of the
/// driver, and there is no thread but the caller's. With the other modes it is the conductor; sender
/// and receiver have their threads.
///
/// Between two turns a driver does nothing: no message is sent or received, no client is answered,
/// and after the [driver timeout](Context::driver_timeout) clients take it for dead. Loops that do
/// other things as well must come around much sooner. A blocking call of a client on the same thread
/// waits for a driver that waits for the call to end; clients without a conductor thread
/// (`set_use_conductor_agent_invoker`) and registrations that are polled fit in such a loop.
///
/// It can be moved between threads, and be given its turns by one at a time.
///
/// ```
/// use std::time::Duration;
/// use rusteron_client::{Aeron, Context as ClientContext};
/// use rusteron_media_driver::{Context, DriverInvoker, ThreadingMode};
///
/// # fn main() -> Result<(), rusteron_media_driver::Error> {
/// let mut context = Context::new()?;
/// context.set_threading_mode(ThreadingMode::Invoker)?;
/// let mut driver = DriverInvoker::launch_embedded(context)?;
/// driver.do_work()?;
///
/// let mut context = ClientContext::new()?;
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
pub struct DriverInvoker {
    running: Running,
}

impl DriverInvoker {
    /// Launches a driver with the context's settings, in the context's directory. This thread becomes
    /// the one of the main agent as far as CPU affinity and
    /// [`set_agent_on_start`](Context::set_agent_on_start) go.
    ///
    /// # Errors
    /// As for [`MediaDriver::launch`](crate::MediaDriver::launch), which also says what becomes of the
    /// directory. Every threading mode is good.
    ///
    /// Corresponds to `aeron_driver_init` and `aeron_driver_start` with a manual main loop.
    pub fn launch(context: Context) -> Result<Self> {
        launch(context, false)
    }

    /// Launches a driver with the context's settings, except that its directory is its own and is
    /// deleted when the driver is dropped or the launch fails.
    ///
    /// # Errors
    /// As for [`launch`](Self::launch).
    pub fn launch_embedded(mut context: Context) -> Result<Self> {
        let dir = embedded_dir::choose(&mut context)?;
        launch(context, true).inspect_err(|_| embedded_dir::remove(&dir))
    }

    /// One turn of the main agent's work. Returns how much there was to do, 0 for nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Other`](crate::ErrorKind::Other) and others if the turn has failed, which does not
    /// end the driver: the next one can follow. What goes wrong with its agents' work, such as a
    /// datagram that cannot be sent, is no such failure; the agents write it to the driver's error log.
    ///
    /// Corresponds to `aeron_driver_main_do_work`.
    pub fn do_work(&mut self) -> Result<usize> {
        // SAFETY: the driver is live and started with a manual main loop, and by the exclusive
        // borrow this is the only turn.
        let work = unsafe { sys::aeron_driver_main_do_work(self.running.as_ptr()) };
        Ok(usize::try_from(work.into_result()?).unwrap_or(0))
    }

    /// Idles as the context's strategy for the main agent says, given what a turn returned.
    ///
    /// Corresponds to `aeron_driver_main_idle_strategy`.
    pub fn idle(&mut self, work_count: usize) {
        let work_count = i32::try_from(work_count).unwrap_or(i32::MAX);
        // SAFETY: as in `do_work`; the strategy's state is the main agent's alone.
        unsafe { sys::aeron_driver_main_idle_strategy(self.running.as_ptr(), work_count) };
    }

    /// Ends the driver, as dropping it does, and says whether that went well; a drop logs what went
    /// wrong. Waits for the threads of the other agents, if there are any.
    ///
    /// # Errors
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) or [`Other`](crate::ErrorKind::Other) if the directory
    /// is to be deleted ([`dir_delete_on_shutdown`](Context::dir_delete_on_shutdown)) and cannot be;
    /// others if a thread cannot be joined, which leaves the driver's memory to it.
    ///
    /// Corresponds to `aeron_driver_close` and `aeron_driver_context_close`.
    pub fn close(self) -> Result<()> {
        self.running.close()
    }

    /// The directory by which clients find this driver: an absolute path.
    pub fn aeron_dir(&self) -> &Path {
        self.running.aeron_dir()
    }

    /// What this driver says of itself: its counters, its errors, the losses of its streams.
    ///
    /// # Errors
    /// [`ErrorKind::DriverTimeout`](crate::ErrorKind::DriverTimeout) and others if somebody has deleted the driver's files.
    pub fn cnc_file(&self) -> Result<CncFile> {
        CncFile::open(self.aeron_dir(), Duration::ZERO)
    }
}

fn launch(context: Context, is_embedded: bool) -> Result<DriverInvoker> {
    let running = Running::init(context, is_embedded)?;
    running.start(true)?;
    Ok(DriverInvoker { running })
}

impl fmt::Debug for DriverInvoker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverInvoker")
            .field("aeron_dir", &self.aeron_dir())
            .finish_non_exhaustive()
    }
}
