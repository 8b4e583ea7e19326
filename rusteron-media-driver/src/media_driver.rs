//! A running media driver, and whether one runs in a directory.

use std::path::Path;
use std::time::Duration;

use rusteron_core::cnc::CncFile;
use rusteron_core::idle::IdleStrategyKind;
use rusteron_core::{Error, ErrorKind, Result};

use crate::ThreadingMode;
use crate::context::DriverContext;
use crate::launch::Running;

/// A media driver that runs on its own threads in this process, until it is dropped.
///
/// Several drivers can run in one process, each in a directory of its own. If clients are still
/// connected when a driver is dropped, their publications and subscriptions are closed.
///
/// ```
/// use rusteron_media_driver::MediaDriver;
///
/// # fn main() -> Result<(), rusteron_media_driver::Error> {
/// let driver = MediaDriver::launch_embedded()?;
/// println!("clients connect with the directory {}", driver.aeron_dir().display());
/// # Ok(())
/// # }
/// ```
#[doc(alias("aeron_driver_t", "aeronmd"))]
#[must_use = "the driver ends when this is dropped"]
pub struct MediaDriver {
    running: Running,
}

impl MediaDriver {
    /// Launches a driver with the context's settings, in the context's directory.
    ///
    /// A relative directory is resolved now; changing the working directory later has no effect.
    /// The directory of a driver that died is replaced. A directory with other files is refused,
    /// unless [`dir_delete_on_start`](DriverContext::dir_delete_on_start) is set. That setting deletes
    /// any content, even the directory of a running driver.
    ///
    /// If the launch fails, nothing is deleted, because another driver may have started in the
    /// directory meanwhile. Most settings are checked before the directory is touched. A launch
    /// that fails later leaves files behind, and the next launch replaces them.
    ///
    /// # Errors
    /// - [`ErrorKind::ActiveDriver`]: another driver is running in the directory; the text has its
    ///   process;
    /// - [`ErrorKind::StaleDirectory`]: the driver in the directory has died, as far as this
    ///   machine knows, but so recently that it still counts as running. The text says for how
    ///   long. Try again, or set `dir_delete_on_start`;
    /// - [`ErrorKind::IncompatibleDriver`]: the files in the directory are damaged, or belong to a
    ///   driver with another version of the protocol;
    /// - [`ErrorKind::Io`] with [`DirectoryNotEmpty`](std::io::ErrorKind::DirectoryNotEmpty): the
    ///   directory has files that are not a driver's;
    /// - [`ErrorKind::Io`] with [`PermissionDenied`](std::io::ErrorKind::PermissionDenied) or
    ///   another kind: the directory cannot be made, or the existing one cannot be deleted;
    /// - [`ErrorKind::StorageSpace`]: the file system, usually shared memory, is full;
    /// - [`ErrorKind::InvalidArgument`]: a setting is out of its range, an idle strategy is unset
    ///   because its setter failed, or the threading mode is [`Invoker`](ThreadingMode::Invoker), for
    ///   which there are no threads to start: see [`DriverInvoker`](crate::DriverInvoker).
    ///
    /// Corresponds to `aeron_driver_init` and `aeron_driver_start`.
    #[doc(alias("aeron_driver_init", "aeron_driver_start"))]
    pub fn launch(context: DriverContext) -> Result<Self> {
        launch(context, false)
    }

    /// Launches a driver with Aeron's default settings in a directory of its own, which is deleted
    /// when the driver is dropped.
    ///
    /// The directory lies in `/dev/shm`, or, where there is none, among the temporary files.
    /// Clients find it by [`aeron_dir`](Self::aeron_dir). The driver runs on one thread, which
    /// sleeps up to 1 ms when idle: [`launch_embedded_with`](Self::launch_embedded_with) takes
    /// other settings. A process that ends without dropping the driver leaves the directory behind,
    /// see the [crate's documentation](crate#shared-memory).
    ///
    /// # Errors
    /// As for [`launch`](Self::launch).
    pub fn launch_embedded() -> Result<Self> {
        let mut context = DriverContext::new()?;
        context
            .set_threading_mode(ThreadingMode::Shared)?
            .set_shared_idle_strategy(IdleStrategyKind::Backoff)?;
        Self::launch_embedded_with(context)
    }

    /// Launches a driver with the context's settings in a directory of its own. The directory is
    /// deleted when the driver is dropped or the launch fails.
    ///
    /// # Errors
    /// As for [`launch`](Self::launch).
    pub fn launch_embedded_with(context: DriverContext) -> Result<Self> {
        launch(context, true)
    }

    /// Ends the driver as dropping it does, and returns the error; a drop logs the error. Waits for
    /// the driver's threads.
    ///
    /// In a callback of a driver or client, another thread ends the driver, and this returns
    /// [`ErrorKind::CalledFromConductor`] at once.
    ///
    /// # Errors
    /// As for [`DriverInvoker::close`](crate::DriverInvoker::close), and as above.
    ///
    /// ```
    /// use rusteron_media_driver::MediaDriver;
    ///
    /// # fn main() -> Result<(), rusteron_media_driver::Error> {
    /// let driver = MediaDriver::launch_embedded()?;
    /// let dir = driver.aeron_dir().to_owned();
    /// driver.close()?;
    /// assert!(!dir.exists());
    /// # Ok(())
    /// # }
    /// ```
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
    /// [`ErrorKind::DriverTimeout`] and others if the driver's files have been deleted.
    ///
    /// ```
    /// use rusteron_client::SystemCounter;
    /// use rusteron_media_driver::MediaDriver;
    ///
    /// # fn main() -> Result<(), rusteron_media_driver::Error> {
    /// let driver = MediaDriver::launch_embedded()?;
    /// let cnc = driver.cnc_file()?;
    /// assert_eq!(SystemCounter::Errors.read(&cnc.counters()), Some(0));
    /// assert!(cnc.errors().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn cnc_file(&self) -> Result<CncFile> {
        CncFile::open(self.aeron_dir(), Duration::ZERO)
    }
}

/// Returns whether a media driver is using a directory: its files are there, and its last heartbeat
/// is within the timeout. The timeout is usually the [driver
/// timeout](crate::DriverContext::driver_timeout), 10 s.
///
/// A driver that was closed is not active. A driver that was killed stays active until the timeout
/// is over, unless its process has [provably ended](rusteron_core::cnc::CncFile::has_died). Files of
/// another program, or of another version of the protocol, do not count.
///
/// If a driver is creating its files, waits for it up to the timeout.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a path that is empty or too
/// long.
///
/// ```
/// use std::time::Duration;
/// use rusteron_media_driver::{MediaDriver, is_driver_active};
///
/// # fn main() -> Result<(), rusteron_media_driver::Error> {
/// let driver = MediaDriver::launch_embedded()?;
/// let dir = driver.aeron_dir().to_owned();
/// assert!(is_driver_active(&dir, Duration::from_secs(10))?);
///
/// drop(driver);
/// assert!(!is_driver_active(&dir, Duration::from_secs(10))?);
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `aeron_is_driver_active`, which believes the lengths that it finds in the file.
#[doc(alias = "aeron_is_driver_active")]
pub fn is_driver_active(dir: impl AsRef<Path>, timeout: Duration) -> Result<bool> {
    let dir = dir.as_ref();
    let is_there = dir.join("cnc.dat").is_file();
    match CncFile::open(dir, if is_there { timeout } else { Duration::ZERO }) {
        Ok(cnc) => Ok(cnc.is_active(timeout)),
        Err(error) if error.kind() == ErrorKind::InvalidArgument => Err(error),
        Err(_) => Ok(false),
    }
}

fn launch(context: DriverContext, is_embedded: bool) -> Result<MediaDriver> {
    if context.threading_mode() == ThreadingMode::Invoker {
        let message = "threading_mode: Invoker has no threads to launch; see DriverInvoker";
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    }
    Ok(MediaDriver { running: Running::launch(context, is_embedded, false)? })
}

rusteron_core::impl_debug!(MediaDriver: aeron_dir());
