//! A running media driver.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use rusteron_client::ffi::Fallible;
use rusteron_client::{Error, ErrorKind, IdleStrategyKind, Result};
use rusteron_sys::driver as sys;

use crate::context::Context;
use crate::{ThreadingMode, embedded_dir};

/// A media driver that runs on its own threads in this process, until it is dropped.
///
/// Several can run in one process, each in a directory of its own. Clients that are still connected
/// when a driver is dropped find their publications and subscriptions closed.
pub struct MediaDriver {
    raw: NonNull<sys::aeron_driver_t>,
    /// `None` only while dropping.
    context: Option<Context>,
    /// Absolute, so that it stays the same when the process changes its working directory.
    dir: PathBuf,
    /// Whether nobody else can have a directory of this name.
    is_embedded: bool,
}

// SAFETY: the C structure is shared with the driver's threads by design, and can be closed from any
// thread; this handle offers nothing else.
unsafe impl Send for MediaDriver {}
// SAFETY: through a shared reference only the directory's name is read.
unsafe impl Sync for MediaDriver {}

impl MediaDriver {
    /// Launches a driver with the context's settings, in the context's directory.
    ///
    /// A relative directory is resolved now; changing the working directory later changes nothing.
    /// A directory left behind by a driver that died is replaced. A directory with anything else in
    /// it is refused, unless [`dir_delete_on_start`](Context::dir_delete_on_start) is set, which
    /// deletes whatever is there, be it the directory of a driver that is running.
    ///
    /// If the launch fails, nothing is deleted, because another driver may have come to the directory
    /// in the meantime. Most settings are checked before the directory is touched. Whatever a launch
    /// that fails later leaves behind, the next one replaces.
    ///
    /// # Errors
    /// - [`ErrorKind::Io`](crate::ErrorKind::Io) with
    ///   [`ResourceBusy`](io::ErrorKind::ResourceBusy): another driver is running in the directory;
    /// - [`ErrorKind::Io`](crate::ErrorKind::Io) with
    ///   [`DirectoryNotEmpty`](io::ErrorKind::DirectoryNotEmpty): there are files in the directory,
    ///   and they are not a driver's;
    /// - [`ErrorKind::StorageSpace`](crate::ErrorKind::StorageSpace): the file system is full;
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): a setting is out of its
    ///   range, an idle strategy is unset because its setter failed, or the threading mode is
    ///   [`Invoker`](crate::ThreadingMode::Invoker), for which there are no threads to start;
    /// - [`ErrorKind::Io`](crate::ErrorKind::Io): the directory cannot be made.
    ///
    /// Corresponds to `aeron_driver_init` and `aeron_driver_start`.
    pub fn launch(context: Context) -> Result<Self> {
        start(context, false)
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
    /// deleted when the driver is dropped or the launch fails.
    ///
    /// # Errors
    /// As for [`launch`](Self::launch).
    pub fn launch_embedded_with(mut context: Context) -> Result<Self> {
        let dir = embedded_dir::unique();
        context.set_dir(&dir)?.set_dir_warn_if_exists(false)?.set_dir_delete_on_shutdown(true)?;
        start(context, true).inspect_err(|_| remove(&dir))
    }

    /// The directory by which clients find this driver: an absolute path.
    pub fn aeron_dir(&self) -> &Path {
        &self.dir
    }
}

fn start(mut context: Context, is_embedded: bool) -> Result<MediaDriver> {
    let dir = std::path::absolute(context.dir())
        .map_err(|error| Error::new(ErrorKind::Io(error.kind()), format!("dir: {error}")))?;
    context.set_dir(&dir)?;
    check(&context)?;
    if !context.dir_delete_on_start() {
        check_replaceable(&dir)?;
    }
    let raw = init(&context)?;
    let driver = MediaDriver { raw, context: Some(context), dir, is_embedded };
    // SAFETY: the driver is initialised and not started; if it cannot be started, dropping it stops
    // the threads that have been.
    unsafe { sys::aeron_driver_start(raw.as_ptr(), false) }.into_result()?;
    Ok(driver)
}

/// Refuses what C would notice only after it has made the directory.
fn check(context: &Context) -> Result<()> {
    if let Some(agent) = context.unset_idle_strategy() {
        let message = format!("{agent}_idle_strategy: unset, because its setter failed");
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    if context.threading_mode() == ThreadingMode::Invoker {
        let message = "threading_mode: Invoker has no threads to launch";
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    Ok(())
}

/// Refuses a directory with anything in it that no driver has put there, because C deletes it.
fn check_replaceable(dir: &Path) -> Result<()> {
    // What cannot be read, C cannot delete either: the error is left to it.
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    if fs::symlink_metadata(dir.join("cnc.dat")).is_ok() {
        return Ok(());
    }
    if entries.flatten().all(|entry| is_leftover(&entry)) {
        return Ok(());
    }
    let message = format!(
        "{}: has files in it, but no cnc.dat, so it is not a driver's; dir_delete_on_start would \
         delete them",
        dir.display()
    );
    Err(Error::new(ErrorKind::Io(io::ErrorKind::DirectoryNotEmpty), message))
}

/// Whether this is one of the empty directories that a driver makes before `cnc.dat`, and leaves
/// behind if there is no space for that.
fn is_leftover(entry: &fs::DirEntry) -> bool {
    let name = entry.file_name();
    (name == "publications" || name == "images")
        && entry.file_type().is_ok_and(|kind| kind.is_dir())
        && fs::read_dir(entry.path()).is_ok_and(|mut entries| entries.next().is_none())
}

fn init(context: &Context) -> Result<NonNull<sys::aeron_driver_t>> {
    // Drivers share the state of a random number generator, which the first one initialises.
    static INITIALISING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = INITIALISING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut raw = ptr::null_mut();
    // SAFETY: the context is live and no other driver's: the caller owns it.
    unsafe { sys::aeron_driver_init(&mut raw, context.as_ptr()) }.into_result()?;
    NonNull::new(raw).ok_or_else(Error::last)
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
        // This deletes the directory, if it is to be deleted.
        if let Err(error) = context.close() {
            log::warn!("media driver in {}: {error}", self.dir.display());
        }
        // Under any other name, this could be a successor's by now.
        if self.is_embedded {
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
