//! A running media driver.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use rusteron_client::ffi::Fallible;
use rusteron_client::{Error, IdleStrategyKind, Result};
use rusteron_sys::driver as sys;

use crate::context::Context;
use crate::embedded_dir;

/// A media driver that runs on its own threads in this process, until it is dropped.
///
/// Several can run in one process, each in a directory of its own. Clients that are still connected
/// when a driver is dropped find their publications and subscriptions closed.
pub struct MediaDriver {
    raw: NonNull<sys::aeron_driver_t>,
    /// `None` only while dropping.
    context: Option<Context>,
    dir: PathBuf,
}

// SAFETY: the C structure is shared with the driver's threads by design, and can be closed from any
// thread; this handle offers nothing else.
unsafe impl Send for MediaDriver {}
// SAFETY: through a shared reference only the directory's name is read.
unsafe impl Sync for MediaDriver {}

impl MediaDriver {
    /// Launches a driver with the context's settings, in the context's directory.
    ///
    /// A directory left behind by a driver that died is replaced. If the launch fails, a directory
    /// that did not exist before does not exist after.
    ///
    /// # Errors
    /// - [`ErrorKind::Io`](crate::ErrorKind::Io) with
    ///   [`ResourceBusy`](io::ErrorKind::ResourceBusy): another driver is running in the directory;
    /// - [`ErrorKind::StorageSpace`](crate::ErrorKind::StorageSpace): the file system is full;
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): a setting is out of its
    ///   range, or the threading mode is [`Invoker`](crate::ThreadingMode::Invoker), for which there
    ///   are no threads to start;
    /// - [`ErrorKind::Io`](crate::ErrorKind::Io): the directory cannot be made.
    ///
    /// Corresponds to `aeron_driver_init` and `aeron_driver_start`.
    pub fn launch(context: Context) -> Result<Self> {
        let dir = context.dir().to_owned();
        let existed = dir.exists();
        start(context, &dir).inspect_err(|_| {
            if !existed {
                remove(&dir);
            }
        })
    }

    /// Launches a driver with Aeron's default settings in a directory of its own, which is deleted
    /// when the driver is dropped.
    ///
    /// The directory lies in `/dev/shm` where there is one, among the temporary files elsewhere;
    /// clients find it by [`aeron_dir`](Self::aeron_dir). The driver runs on one thread, which sleeps
    /// up to 1 ms when there is nothing to do: [`launch_embedded_with`](Self::launch_embedded_with)
    /// takes other settings.
    ///
    /// # Errors
    /// As for [`launch`](Self::launch).
    pub fn launch_embedded() -> Result<Self> {
        let mut context = Context::new()?;
        context
            .set_threading_mode(crate::ThreadingMode::Shared)?
            .set_shared_idle_strategy(IdleStrategyKind::Backoff)?;
        Self::launch_embedded_with(context)
    }

    /// Launches a driver with the context's settings, except that its directory is its own and is
    /// deleted when the driver is dropped.
    ///
    /// # Errors
    /// As for [`launch`](Self::launch).
    pub fn launch_embedded_with(mut context: Context) -> Result<Self> {
        context
            .set_dir(embedded_dir::unique())?
            .set_dir_warn_if_exists(false)?
            .set_dir_delete_on_shutdown(true)?;
        Self::launch(context)
    }

    /// The directory by which clients find this driver.
    pub fn aeron_dir(&self) -> &Path {
        &self.dir
    }
}

fn start(context: Context, dir: &Path) -> Result<MediaDriver> {
    let mut raw = ptr::null_mut();
    // The first initialisation seeds a generator of random numbers that all drivers share, without
    // regard for others (`aeron_loss_detector.c`, `aeron_feedback_delay_state_init`).
    static INIT: Mutex<()> = Mutex::new(());
    let lock = INIT.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the context is live and, being owned here, no other driver's; the lock keeps others
    // from the static variables that C uses.
    unsafe { sys::aeron_driver_init(&mut raw, context.as_ptr()) }.into_result()?;
    drop(lock);
    let raw = NonNull::new(raw).ok_or_else(Error::last)?;
    let driver = MediaDriver { raw, context: Some(context), dir: dir.to_owned() };
    // SAFETY: the driver is initialised and not started; if it cannot be started, dropping it stops
    // the threads that have been.
    unsafe { sys::aeron_driver_start(raw.as_ptr(), false) }.into_result()?;
    Ok(driver)
}

impl Drop for MediaDriver {
    fn drop(&mut self) {
        // SAFETY: the driver is live and not used again; its threads are joined before it is freed.
        let stopped = unsafe { sys::aeron_driver_close(self.raw.as_ptr()) }.into_result();
        let Some(context) = self.context.take() else { return };
        if let Err(error) = stopped {
            // A thread that cannot be joined may still use the context.
            log::error!("media driver in {}: not stopped: {error}", self.dir.display());
            std::mem::forget(context);
            return;
        }
        let deletes = context.dir_delete_on_shutdown();
        if let Err(error) = context.close() {
            log::warn!("media driver in {}: {error}", self.dir.display());
        }
        if deletes {
            remove(&self.dir);
        }
    }
}

/// Deletes what is left of a directory, if anything.
fn remove(dir: &Path) {
    match fs::remove_dir_all(dir) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => log::warn!("{}: not deleted: {error}", dir.display()),
    }
}

impl fmt::Debug for MediaDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MediaDriver").field("aeron_dir", &self.dir).finish_non_exhaustive()
    }
}
