//! The directory of a driver that is running, as long as it is that driver's own.
//!
//! A name is not an identity: if a driver hangs, another one may replace its directory, and a user
//! or the operating system (`RemoveIPC` of systemd-logind) may remove it. A driver deletes only a
//! directory whose `cnc.dat` is the one that it has mapped.

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::path::Path;

use rusteron_core::ffi::{self, Fallible};
use rusteron_core::{Error, ErrorKind, Result};
use rusteron_sys::driver as sys;

use crate::DriverContext;

/// A descriptor of the directory. What another driver makes under the same name later is not
/// reached through it.
#[derive(Debug)]
pub(crate) struct OwnDir(c_int);

impl OwnDir {
    /// Opens the directory of a context whose driver has been initialised.
    pub(crate) fn open(context: &DriverContext) -> Result<Self> {
        let mut descriptor = -1;
        // SAFETY: the context is live and its `cnc.dat` is mapped: the driver was initialised.
        let found = unsafe { sys::rusteron_driver_home(context.as_ptr(), &mut descriptor) };
        let (kind, reason) = match found {
            sys::rusteron_driver_home_enum_RUSTERON_DRIVER_HOME_OWN => return Ok(Self(descriptor)),
            sys::rusteron_driver_home_enum_RUSTERON_DRIVER_HOME_GONE => (
                ErrorKind::Io(io::ErrorKind::NotFound),
                "its cnc.dat was removed while the driver ran".to_owned(),
            ),
            sys::rusteron_driver_home_enum_RUSTERON_DRIVER_HOME_REPLACED => {
                (ErrorKind::Other, "another driver has replaced it".to_owned())
            }
            _ => {
                let cause = io::Error::last_os_error();
                (ErrorKind::Io(cause.kind()), cause.to_string())
            }
        };
        let text = format!("{}: not deleted: {reason}", context.dir().display());
        Err(Error::new(kind, text))
    }

    /// Deletes the directory, whose name is `dir`, and its contents.
    pub(crate) fn delete(self, dir: &Path) -> Result<()> {
        let name = ffi::c_path("dir", dir)?;
        // SAFETY: a terminated string, and a descriptor of a directory, which the function closes.
        unsafe { sys::rusteron_delete_dir(name.as_ptr(), self.0) }.into_result().map(drop)
    }
}

/// Logs once if the directory of the context's driver is lost.
pub(crate) fn watch(context: &DriverContext) -> Result<()> {
    // SAFETY: the context is live, and `unwatch` is called before it is freed.
    unsafe { sys::rusteron_driver_watch_home(context.as_ptr(), Some(on_lost)) }
        .into_result()
        .map(drop)
}

/// Ends the watch. The driver's threads have ended.
pub(crate) fn unwatch(context: &DriverContext) {
    // SAFETY: the context is live.
    unsafe { sys::rusteron_driver_unwatch_home(context.as_ptr()) };
}

unsafe extern "C" fn on_lost(dir: *const c_char, home: sys::rusteron_driver_home_t) {
    // SAFETY: C passes a terminated string, for the duration of the call.
    let dir = unsafe { CStr::from_ptr(dir) }.to_string_lossy();
    ffi::callback::run("driver directory", || {
        let what = match home {
            sys::rusteron_driver_home_enum_RUSTERON_DRIVER_HOME_REPLACED => {
                "another driver has replaced this driver's directory"
            }
            _ => {
                "cnc.dat was removed while the driver runs (by systemd-logind, if the setting RemoveIPC=yes applies to \
                 the driver's user)"
            }
        };
        log::error!(
            "media driver in {dir}: {what}; its connected clients go on, new ones cannot find it: end process {} and \
             start the driver again",
            std::process::id()
        );
    });
}
