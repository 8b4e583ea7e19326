//! Segmentation offload: one system call for several UDP datagrams.

use std::env;
use std::ffi::{CStr, c_char, c_int};
use std::ptr::{self, NonNull};

use rusteron_core::Result;
use rusteron_core::ffi::{self, Fallible};
use rusteron_sys::driver as sys;

use crate::DriverContext;

const CAPACITY_VARIABLE: &str = "AERON_SENDER_IO_VECTOR_CAPACITY";
const MESSAGES_VARIABLE: &str = "AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND";

/// Aeron's default of both variables.
const AERON_VECTOR: u32 = 4;
/// The default while the offload is on.
const OFFLOAD_VECTOR: u32 = 16;

fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Bindings that C has pointers to, until the driver is closed.
pub(crate) struct RetainedOffload(NonNull<sys::rusteron_segmentation_offload_t>);

// SAFETY: plain memory, which the threads of a driver only read; no thread owns it.
unsafe impl Send for RetainedOffload {}
// SAFETY: a shared reference gives access to nothing.
unsafe impl Sync for RetainedOffload {}

impl Drop for RetainedOffload {
    fn drop(&mut self) {
        // SAFETY: C made the bindings for the context, and the context is closed, after its driver.
        unsafe { sys::rusteron_segmentation_offload_free(self.0.as_ptr()) };
    }
}

impl DriverContext {
    /// Sets whether the driver passes several UDP datagrams to Linux in one call, and reads several
    /// in one call. The default is `true`.
    ///
    /// A sender hands over up to 64 datagrams of equal length, and up to 65,507 bytes, as one buffer
    /// (`UDP_SEGMENT`). A receiver reads the datagrams of one sender as one buffer (`UDP_GRO`), and
    /// handles them one by one. The datagrams on the network are the same. A driver at the other end
    /// notices nothing.
    ///
    /// The number of datagrams in a buffer is at most
    /// [`network_publication_max_messages_per_send`](Self::network_publication_max_messages_per_send).
    /// On Linux, that setting and
    /// [`sender_io_vector_capacity`](Self::sender_io_vector_capacity) are 16 while this setting is
    /// on, and 4, Aeron's default, while it is off. A call that switches the setting changes each
    /// from one default to the other, unless the environment sets it. Other values stay. If only the
    /// capacity is lowered, a launch lowers the default of the other to it. The preset
    /// [`Throughput`](crate::Preset::Throughput) raises both to 46.
    ///
    /// If kernel, device or route refuses a buffer, that channel goes on with single datagrams.
    /// Nothing is lost, and the log gets one warning. A channel with timestamps of received media
    /// (`media-rcv-ts-offset`) reads single datagrams. Linux before 4.18 sends, and before 5.0 reads,
    /// single datagrams.
    ///
    /// Also skips a sender's socket for 5 µs after a read that found nothing, so that status messages
    /// and NAKs wait for as long at most.
    ///
    /// Two counters of the driver, "Sends of several datagrams" and "Reads of several datagrams",
    /// count the buffers.
    ///
    /// The setting has no effect on other systems than Linux, or with other transport bindings
    /// (`AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA`).
    ///
    /// # Errors
    /// None.
    ///
    /// Has no counterpart in Aeron; the environment variable is `RUSTERON_SEGMENTATION_OFFLOAD`, with
    /// the values `on` and `off`.
    pub fn set_segmentation_offload(&mut self, is_enabled: bool) -> Result<&mut Self> {
        if self.segmentation_offload != is_enabled {
            self.segmentation_offload = is_enabled;
            self.switch_vector_defaults()?;
        }
        Ok(self)
    }

    /// Returns whether the driver passes several UDP datagrams to Linux in one call.
    pub fn segmentation_offload(&self) -> bool {
        self.segmentation_offload
    }

    /// Replaces the defaults of the sender's vectors by those of the setting.
    fn switch_vector_defaults(&mut self) -> Result<()> {
        if !cfg!(target_os = "linux") {
            return Ok(());
        }
        let (from, to) = match self.segmentation_offload {
            true => (AERON_VECTOR, OFFLOAD_VECTOR),
            false => (OFFLOAD_VECTOR, AERON_VECTOR),
        };
        if self.sender_io_vector_capacity() == from && !is_set(CAPACITY_VARIABLE) {
            self.set_sender_io_vector_capacity(to)?;
        }
        if self.network_publication_max_messages_per_send() == from && !is_set(MESSAGES_VARIABLE) {
            self.set_network_publication_max_messages_per_send(to)?;
        }
        Ok(())
    }

    /// Returns how many datagrams of a publication a driver sends in a call: the setting, or if that
    /// is the default with the offload, at most the sender's capacity.
    pub(crate) fn datagrams_per_send(&self) -> u32 {
        let messages = self.network_publication_max_messages_per_send();
        if messages == OFFLOAD_VECTOR && !is_set(MESSAGES_VARIABLE) {
            return messages.min(self.sender_io_vector_capacity());
        }
        messages
    }

    /// Makes C use the bindings, if the setting says so.
    pub(crate) fn install_segmentation_offload(&mut self) -> Result<()> {
        if !self.segmentation_offload || self.retained.segmentation_offload.is_some() {
            return Ok(());
        }
        let mut offload = ptr::null_mut();
        let lock = ffi::lock_context_init();
        // SAFETY: the context is live and not yet used by a driver; the lock keeps others from making
        // contexts. C writes to `offload`.
        let installed = unsafe {
            sys::rusteron_segmentation_offload_install(
                &mut offload,
                self.as_ptr(),
                Some(on_refused),
            )
        };
        drop(lock);
        installed.into_result()?;
        self.retained.segmentation_offload = NonNull::new(offload).map(RetainedOffload);
        Ok(())
    }

    /// Adds the counters to the context's driver, which is initialised and not yet started.
    pub(crate) fn add_segmentation_offload_counters(&self) -> Result<()> {
        let Some(offload) = &self.retained.segmentation_offload else { return Ok(()) };
        // SAFETY: the bindings live as long as the context, whose driver has no threads yet.
        unsafe {
            sys::rusteron_segmentation_offload_add_counters(offload.0.as_ptr(), self.as_ptr())
        }
        .into_result()
        .map(drop)
    }
}

unsafe extern "C" fn on_refused(error_code: c_int, address: *const c_char) {
    // SAFETY: C passes a terminated string, for the duration of the call.
    let address = unsafe { CStr::from_ptr(address) }.to_string_lossy();
    ffi::callback::run("segmentation offload", || {
        let error = std::io::Error::from_raw_os_error(error_code);
        log::warn!(
            "segmentation offload to {address}: refused, the channel sends single datagrams: {error}"
        );
    });
}
