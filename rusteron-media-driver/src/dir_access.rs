//! Access of users to a driver's directory.

use std::path::Path;
use std::ptr::NonNull;

use rusteron_core::dir_access;
pub use rusteron_core::dir_access::DirAccess;
use rusteron_core::{Error, ErrorKind, Result};
use rusteron_sys::driver as sys;

use crate::DriverContext;

/// Returns C's value.
fn raw(access: DirAccess) -> sys::rusteron_dir_access_t {
    match access {
        DirAccess::Private => sys::rusteron_dir_access_enum_RUSTERON_DIR_ACCESS_PRIVATE,
        DirAccess::Group => sys::rusteron_dir_access_enum_RUSTERON_DIR_ACCESS_GROUP,
        DirAccess::Umask => sys::rusteron_dir_access_enum_RUSTERON_DIR_ACCESS_UMASK,
    }
}

impl DriverContext {
    /// Sets who may use the driver's directory. The default is [`DirAccess::Private`].
    ///
    /// The driver sets the modes of the directory and of all files in it. The umask of the process is not altered,
    /// and matters for [`DirAccess::Umask`] only. Missing directories above the driver's get modes by that umask.
    ///
    /// On Linux, a thread with its own umask makes the files of a launch, so that other users can open them at no
    /// time. If the operating system has no umask for a thread, or forbids it, the launch sets the modes as soon as
    /// the files exist. A seccomp filter without `unshare` forbids it, as in many containers. Until then another user
    /// can open `cnc.dat` for reading, if the umask of the process permits; a umask of 077 prevents that. Other users
    /// can open log buffers at no time.
    ///
    /// On Windows this setting has no effect: files inherit the rights of the directory's parent.
    ///
    /// # Errors
    /// None with a valid context. The launch fails with [`ErrorKind::Io`] on a file system without modes; use
    /// [`DirAccess::Umask`] there.
    ///
    /// Has no counterpart in Aeron; the environment variable is `RUSTERON_DIR_ACCESS`.
    pub fn set_dir_access(&mut self, access: DirAccess) -> Result<&mut Self> {
        // SAFETY: the context is live and not yet used by a driver.
        unsafe { sys::rusteron_driver_context_set_dir_access(self.as_ptr(), raw(access)) };
        self.dir_access = access;
        Ok(self)
    }

    /// Returns who may use the driver's directory.
    pub fn dir_access(&self) -> DirAccess {
        self.dir_access
    }
}

/// Runs the function that creates a driver's files. If possible, only the driver's user can open
/// them.
#[cfg(target_os = "linux")]
pub(crate) fn make_files(
    access: DirAccess,
    dir: &Path,
    init: impl FnOnce() -> Result<NonNull<sys::aeron_driver_t>> + Send,
) -> Result<NonNull<sys::aeron_driver_t>> {
    use std::{fs, panic, thread};

    struct NewDriver(NonNull<sys::aeron_driver_t>);
    // SAFETY: a driver that has been initialised is tied to no thread.
    unsafe impl Send for NewDriver {}

    if access == DirAccess::Umask {
        return init();
    }
    if let Some(parent) = dir.parent() {
        // An error here comes again in the launch, and is reported there.
        let _ = fs::create_dir_all(parent);
    }
    let make = || {
        // The modes are set afterwards in any case.
        // SAFETY: the thread is this function's own.
        let _ = unsafe { sys::rusteron_thread_umask() };
        init().map(NewDriver)
    };
    thread::scope(|scope| {
        let making = thread::Builder::new().name("aeron-launch".into()).spawn_scoped(scope, make);
        let making = making.map_err(|error| {
            let text = format!("no thread to make the driver's files: {error}");
            Error::new(ErrorKind::Io(error.kind()), text)
        })?;
        let made = making.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?;
        Ok(made.0)
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn make_files(
    _access: DirAccess,
    _dir: &Path,
    init: impl FnOnce() -> Result<NonNull<sys::aeron_driver_t>> + Send,
) -> Result<NonNull<sys::aeron_driver_t>> {
    init()
}

/// Sets the modes of the files and directories that a driver has just made.
pub(crate) fn set_modes(access: DirAccess, dir: &Path) -> Result<()> {
    let Some((directory, file)) = access.modes().filter(|_| cfg!(unix)) else { return Ok(()) };
    // No other user gets access before everything has its mode: clients wait for a file that they
    // cannot see.
    set_mode(dir, 0o700)?;
    for name in ["publications", "images"] {
        set_mode(&dir.join(name), directory)?;
    }
    for name in ["cnc.dat", "loss-report.dat"] {
        set_mode(&dir.join(name), file)?;
    }
    set_mode(dir, directory)
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    dir_access::set_mode(path, mode).map_err(|error| {
        let text = format!("{}: mode {mode:04o} cannot be set: {error}", path.display());
        Error::new(ErrorKind::Io(error.kind()), text)
    })
}
