//! Access of users to a driver's directory.

use std::path::Path;
use std::ptr::NonNull;

use rusteron_core::{Error, ErrorKind, Result};
use rusteron_sys::driver as sys;

use crate::enumerations::named;
use crate::{DriverContext, environment};

named! {
    /// Access of users to a driver's directory, for [`DriverContext::set_dir_access`] and for the option
    /// `--dir-access` of the program `media_driver`.
    ///
    /// A process that may use the directory can read and forge all messages of the driver's streams, and can end the
    /// driver. A client needs to write to the driver's files, even if the client only subscribes.
    #[derive(Default)]
    DirAccess = rusteron_dir_access_t, "an access";
    /// The user that the driver runs as, and the superuser. Directories have the mode 0700, files 0600.
    #[default]
    Private = "private", rusteron_dir_access_enum_RUSTERON_DIR_ACCESS_PRIVATE;
    /// The user, and the group of the directory. Directories have the mode 0750, files 0660.
    ///
    /// The group is that of the driver's process. If the directory's parent has the set-group-ID bit (`chmod g+s`, on
    /// Linux), the group is the parent's; the driver's user has to be a member. Clients of the group can use the
    /// driver, but cannot add or delete files.
    Group = "group", rusteron_dir_access_enum_RUSTERON_DIR_ACCESS_GROUP;
    /// As with Aeron's own drivers, the users that the umask of the process lets in. With the usual umask of 022,
    /// all users of the machine can read all messages.
    Umask = "umask", rusteron_dir_access_enum_RUSTERON_DIR_ACCESS_UMASK;
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
        unsafe { sys::rusteron_driver_context_set_dir_access(self.as_ptr(), access.to_raw()) };
        self.dir_access = access;
        Ok(self)
    }

    /// Returns who may use the driver's directory.
    pub fn dir_access(&self) -> DirAccess {
        self.dir_access
    }

    /// Takes the access from the environment, or the default.
    pub(crate) fn init_dir_access(&mut self) -> Result<()> {
        let name = environment::own("RUSTERON_DIR_ACCESS")?;
        let access = name.map_or(Ok(DirAccess::default()), |name| name.parse())?;
        self.set_dir_access(access).map(drop)
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
#[cfg(unix)]
pub(crate) fn set_modes(access: DirAccess, dir: &Path) -> Result<()> {
    let (directory, file) = match access {
        DirAccess::Private => (0o700, 0o600),
        DirAccess::Group => (0o750, 0o660),
        DirAccess::Umask => return Ok(()),
    };
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

#[cfg(not(unix))]
pub(crate) fn set_modes(_access: DirAccess, _dir: &Path) -> Result<()> {
    Ok(())
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    /// Passes the group of a directory on to its files.
    const SET_GROUP_ID: u32 = 0o2000;

    fs::metadata(path)
        .and_then(|metadata| {
            let set_group_id = metadata.permissions().mode() & SET_GROUP_ID;
            fs::set_permissions(path, Permissions::from_mode(mode | set_group_id))
        })
        .map_err(|error| {
            let text = format!("{}: mode {mode:04o} cannot be set: {error}", path.display());
            Error::new(ErrorKind::Io(error.kind()), text)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_round_trip() {
        for access in DirAccess::ALL {
            assert_eq!(access.to_string().parse::<DirAccess>().expect("a name"), *access);
        }
        let error = "0700".parse::<DirAccess>().expect_err("no such access");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("private, group, umask"), "{error}");
    }
}
