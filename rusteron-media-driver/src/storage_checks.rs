//! What the storage checks of a driver count as free.

use rusteron_core::Result;
use rusteron_sys::driver as sys;

use crate::DriverContext;

impl DriverContext {
    /// Sets whether the [storage checks](Self::perform_storage_checks) count what earlier sparse
    /// log buffers have yet to take. The default is `false`, as in Aeron.
    ///
    /// A [sparse](Self::set_term_buffer_sparse_file) log buffer takes its space page by page. If
    /// the file system is full by then, the process that touches the next page ends by SIGBUS. With
    /// this setting, a log buffer is refused unless the file system can hold all of it beside all
    /// of the others: the add of a publication fails with
    /// [`ErrorKind::StorageSpace`](crate::ErrorKind::StorageSpace). An image that is refused is an
    /// entry of the driver's error log, and the subscription has no image of that source until it
    /// is added again. The warning below
    /// [`low_file_store_warning_threshold`](Self::low_file_store_warning_threshold) goes by the
    /// same figure.
    ///
    /// The log buffers of all drivers of this process on that file system count, those of
    /// publications and of images. What other processes write there does not: leave them room, or
    /// give the directory a file system of its own. A check takes a system call for each sparse log
    /// buffer. On Windows the setting has no effect.
    ///
    /// # Errors
    /// None.
    ///
    /// Has no counterpart in Aeron; the environment variable is
    /// `RUSTERON_STORAGE_CHECKS_COUNT_SPARSE`.
    pub fn set_storage_checks_count_sparse(&mut self, are_counted: bool) -> Result<&mut Self> {
        self.storage_checks_count_sparse = are_counted;
        Ok(self)
    }

    /// Returns whether the storage checks count what earlier sparse log buffers have yet to take.
    pub fn storage_checks_count_sparse(&self) -> bool {
        self.storage_checks_count_sparse
    }

    /// Makes C use the setting.
    pub(crate) fn apply_storage_checks(&self) {
        // SAFETY: the context is live and not yet used by a driver.
        unsafe {
            sys::rusteron_driver_context_apply_storage_checks(
                self.as_ptr(),
                self.storage_checks_count_sparse,
            );
        }
    }
}
