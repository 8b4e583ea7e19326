//! Mark files: a component shows tools its life, settings and errors in one, and by it a second
//! component of the same directory notices the first one.
//!
//! - **Owner.** The timestamp decides, by a compare-and-swap from an old time to "starting"
//!   ([`claim`]). Components of one process are also in a list ([`Reservation`]), because all
//!   processes of a Linux container have the id 1.
//! - **Full disks.** The whole file is written before it is mapped, because otherwise the first
//!   write to a page of the mapping can end the process by SIGBUS. On file systems that copy on
//!   write, it still can.
//! - **Errors** are written as in `cnc.dat`, with the length last. A full log passes further errors
//!   to the crate `log` only.
//!
//! Only making and taking over a file makes system calls. Signs of life and errors are stores to
//! the mapping.
//!
//! The components' own crates know the other fields of the header, and decide what may be taken
//! over.
//!
//! Corresponds to `org.agrona.MarkFile`.

mod error_log;
mod making;
mod mapped_file;
mod owner;

pub use error_log::{DistinctErrorLog, save_errors};
pub use making::{complete_header, is_unmade, open_new, overwrite, replace_link, write_whole};
pub use mapped_file::MappedFile;
pub use owner::{Former, Owner, Reservation, claim, is_old, replace};

use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use crate::cnc::epoch;
use crate::printable::Printable;

/// Length of the header in bytes. The error log follows.
pub const HEADER_LENGTH: usize = 8 * 1024;
/// The activity timestamp of a component that has ended.
pub const ENDED: i64 = -1;
/// The activity timestamp of a component that is starting.
pub const STARTING: i64 = i64::MAX;
/// The shortest and the longest error log, in bytes.
pub const ERROR_BUFFER_LENGTHS: RangeInclusive<usize> =
    1024 * 1024..=i32::MAX as usize - HEADER_LENGTH;
/// A component without a sign of life for this time is not alive.
pub const LIVENESS_TIMEOUT: Duration = Duration::from_secs(10);

/// Offset in the file of the layout's version, an `i32`. It is 0 before the first start.
pub const VERSION_OFFSET: usize = 8;
/// Offset in the file of the last sign of life, an `i64` in milliseconds since 1970.
pub const ACTIVITY_OFFSET: usize = 16;
/// Offset in the file of the time of the start, as above.
pub const START_OFFSET: usize = 24;
/// Offset in the file of the process id, an `i64`.
pub const PID_OFFSET: usize = 32;

/// Returns the time in milliseconds since 1970.
pub fn now() -> i64 {
    epoch::millis(SystemTime::now())
}

/// A mark file that this process owns, as its timestamp says. Dropping it marks the component as ended. The file
/// stays.
///
/// Methods neither block nor make system calls. Errors may be recorded from any thread.
#[derive(Debug)]
pub struct MarkFile {
    map: MappedFile,
    errors: Mutex<DistinctErrorLog>,
    reservation: Reservation,
}

impl MarkFile {
    /// Takes a whole file with these bytes of zeros for errors.
    pub fn new(map: MappedFile, error_log: Range<usize>, reservation: Reservation) -> Self {
        Self { map, errors: Mutex::new(DistinctErrorLog::new(error_log)), reservation }
    }

    /// Gives a sign of life. Call it once a second.
    pub fn tick(&self) {
        self.store_activity(now());
    }

    /// Stores a timestamp, with release.
    pub fn store_activity(&self, timestamp: i64) {
        self.map.i64_at(ACTIVITY_OFFSET).store(timestamp.to_le(), Ordering::Release);
    }

    /// Stores the version of the layout, with release. Programs that wait for a start look for it.
    pub fn store_version(&self, version: i32) {
        self.store(VERSION_OFFSET, version);
    }

    /// Stores a number of the header, with release.
    ///
    /// # Panics
    /// The number is not aligned, or lies outside. Callers know their offsets.
    pub fn store(&self, offset: usize, value: i32) {
        self.map.i32_at(offset).store(value.to_le(), Ordering::Release);
    }

    /// The number at an offset of the header that Aeron leaves zero, in the byte order of the file.
    ///
    /// # Panics
    /// As for [`store`](Self::store).
    pub fn number(&self, offset: usize) -> &AtomicI64 {
        self.map.i64_at(offset)
    }

    /// Records an error for tools. If the log is full, the error goes to the `log` crate only.
    pub fn record_error(&self, error: &str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if !errors.record(&self.map, now(), error) {
            log::error!("the error log of {} is full: {}", self.path().display(), Printable(error));
        }
    }

    /// Records an error that others cause, unless more than the first `share` bytes of the log
    /// would be used.
    pub fn record_error_within(&self, share: usize, error: &str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        _ = errors.record_within(share, &self.map, now(), error);
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        self.reservation.path()
    }
}

impl Drop for MarkFile {
    fn drop(&mut self) {
        self.store_activity(ENDED);
    }
}
