//! Proof that the process of a media driver has ended.
//!
//! The age of a heartbeat cannot tell a dead driver from a paused one, and a process id means nothing
//! in another container. The kernel knows: a driver maps its loss report for writing from its start
//! to its end, and no other process does. See `rusteron_driver_watch` in the shim.
//!
//! A driver, also Aeron's own, maps `loss-report.dat` for writing before it writes the version into `cnc.dat`.
//! The kernel grants a read lease (`F_SETLEASE`) only while no process has the file open or mapped for writing,
//! in any namespace. So "`cnc.dat` has its version, and its `loss-report.dat` has no writer" proves that the
//! process has ended. A stopped driver keeps its mapping, and a forked child of this project's drivers drops
//! it. The two files belong together if `cnc.dat` is still the same file after the loss report was opened,
//! because a driver deletes both before it makes either.
//!
//! Everything else is unknown, and Aeron's timeouts decide: another operating system, a file of another user
//! without `CAP_LEASE`, a file system other than tmpfs, ext4, XFS and Btrfs. While one of Aeron's C tools has
//! the loss report open for writing, the driver counts as alive.

use std::ffi::{CStr, c_int};

use rusteron_sys as sys;

/// A watch of the driver that was running in a directory. A later driver there does not change it.
#[derive(Debug)]
pub struct DriverWatch {
    descriptor: c_int,
    pid: i64,
}

impl DriverWatch {
    /// Watches the driver that a client has mapped. `None` if the operating system cannot tell, or
    /// if another driver has replaced it.
    ///
    /// # Safety
    /// The client is live.
    pub unsafe fn of_client(client: *mut sys::aeron_t) -> Option<Self> {
        let mut pid = 0;
        // SAFETY: the client is live by the contract; the function reads its files.
        let descriptor = unsafe { sys::rusteron_client_watch(client, &mut pid) };
        (descriptor >= 0).then(|| Self { descriptor, pid })
    }

    /// Returns whether the driver's process has ended. Does not block.
    pub fn is_gone(&self) -> bool {
        // SAFETY: the descriptor is open until this value is dropped.
        unsafe { sys::rusteron_driver_is_gone(self.descriptor) }
    }

    /// Returns the driver's process id.
    pub fn pid(&self) -> u32 {
        u32::try_from(self.pid).unwrap_or(0)
    }
}

impl Drop for DriverWatch {
    fn drop(&mut self) {
        // SAFETY: opened by the shim, and closed once.
        unsafe { sys::rusteron_driver_unwatch(self.descriptor) }
    }
}

/// Returns start and process id of the driver whose files are in a directory, if its process has
/// provably ended.
pub fn gone_driver(dir: &CStr) -> Option<(i64, i64)> {
    let (mut start, mut pid) = (0, 0);
    // SAFETY: a terminated string; the function writes two numbers.
    let descriptor = unsafe { sys::rusteron_driver_watch(dir.as_ptr(), &mut start, &mut pid) };
    let watch = (descriptor >= 0).then(|| DriverWatch { descriptor, pid })?;
    watch.is_gone().then_some((start, pid))
}
