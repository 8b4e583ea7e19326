//! A mark file that this process owns.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::mark_file::{
    ACTIVITY_OFFSET, DistinctErrorLog, ENDED, MappedFile, Reservation, VERSION_OFFSET, now,
};
use crate::printable::Printable;

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
