//! The configuration of a media driver.

use std::env;
use std::ffi::{CString, OsString, c_char};
use std::mem::{self, ManuallyDrop};
use std::ptr::{self, NonNull};

use rusteron_core::ffi::{self, Fallible, last_error};
use rusteron_core::settings::{Source, read_variables, warn_of_missing_units};
use rusteron_core::{Error, ErrorKind, Result};
use rusteron_sys::driver as sys;

use crate::callbacks::{AgentOnStart, Callbacks};
use crate::dir_access::DirAccess;
use crate::environment;
use crate::loss::RetainedLoss;
use crate::segmentation_offload::RetainedOffload;
use crate::settings::{Setting, idle_strategy};
use crate::term_cleaning::TermCleaning;

/// The configuration of a media driver: its directory, threads, buffers, timeouts.
///
/// A new context holds Aeron's defaults, changed by the `AERON_*` environment variables. Aeron
/// clamps values of variables to the limits that each setting names. Setters mostly accept any
/// number. [`MediaDriver::launch`](crate::MediaDriver::launch) takes the context, and refuses
/// invalid values.
///
/// ```
/// use rusteron_media_driver::{DriverContext, ThreadingMode};
///
/// # fn main() -> Result<(), rusteron_media_driver::Error> {
/// let mut context = DriverContext::new()?;
/// context.set_threading_mode(ThreadingMode::Shared)?.set_ipc_term_buffer_length(1 << 20)?;
/// assert_eq!(context.ipc_term_buffer_length(), 1 << 20);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "aeron_driver_context_t")]
pub struct DriverContext {
    raw: NonNull<sys::aeron_driver_context_t>,
    pub(crate) retained: RetainedState,
    /// Set until the launch, which makes one function of this hook and the CPU affinity.
    pub(crate) agent_on_start: Option<Box<AgentOnStart>>,
    pub(crate) dir_access: DirAccess,
    pub(crate) segmentation_offload: bool,
    pub(crate) storage_checks_count_sparse: bool,
    pub(crate) term_cleaning: TermCleaning,
}

/// State that C has pointers to, until the context is closed.
#[derive(Default)]
pub(crate) struct RetainedState {
    /// Replaced strings stay as well: C may have copied the pointer.
    strings: Vec<CString>,
    pub(crate) callbacks: Callbacks,
    pub(crate) losses: Vec<RetainedLoss>,
    pub(crate) segmentation_offload: Option<RetainedOffload>,
}

// SAFETY: the C structure is plain memory without ties to a thread, and the handlers, to which it
// has pointers, are `Send`.
unsafe impl Send for DriverContext {}
// SAFETY: through a shared reference the structure is only read, by the getters, and the handlers
// are not reached at all.
unsafe impl Sync for DriverContext {}

impl DriverContext {
    /// Creates a context with Aeron's defaults and the values of the `AERON_*` environment
    /// variables.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) and others for an
    /// environment variable with a value that cannot be used.
    ///
    /// Corresponds to `aeron_driver_context_init`.
    #[doc(alias = "aeron_driver_context_init")]
    pub fn new() -> Result<Self> {
        environment::check()?;
        let mut raw = ptr::null_mut();
        let lock = ffi::lock_context_init();
        // SAFETY: C writes the new structure's address to `raw`, or fails; the lock keeps others
        // from the static variables that it uses.
        unsafe { sys::aeron_driver_context_init(&mut raw) }.into_result()?;
        drop(lock);
        warn_of_missing_units(Self::settings());
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        let mut context = Self {
            raw,
            retained: RetainedState::default(),
            agent_on_start: None,
            dir_access: DirAccess::default(),
            segmentation_offload: false,
            storage_checks_count_sparse: false,
            term_cleaning: TermCleaning::default(),
        };
        context.set_dir_access(DirAccess::default())?.set_segmentation_offload(true)?;
        context.read_variables()?;
        Ok(context)
    }

    /// Reads the variables that C does not know. Sets the idle strategies of the environment once
    /// more: C has loaded them, but remembers the names of its defaults.
    fn read_variables(&mut self) -> Result<()> {
        let variable = |name: &str| {
            let is_known = |value: &OsString| {
                name.starts_with("RUSTERON_") || value.to_str().and_then(idle_strategy).is_some()
            };
            env::var_os(name).filter(is_known)
        };
        let is_read = |setting: &&Setting| {
            setting.variable.starts_with("RUSTERON_") || is_idle_strategy(setting)
        };
        read_variables(Self::settings().filter(is_read), self, variable)
            .map_err(|problem| Error::new(ErrorKind::InvalidArgument, problem))
    }

    /// The C structure, which lives as long as `self`.
    pub(crate) fn as_ptr(&self) -> *mut sys::aeron_driver_context_t {
        self.raw.as_ptr()
    }

    /// Retains a string for as long as C may read it: until the context is closed.
    pub(crate) fn retain(&mut self, value: CString) -> *const c_char {
        // The bytes are on the heap and do not move with the `CString`.
        let pointer = value.as_ptr();
        self.retained.strings.push(value);
        pointer
    }

    /// Returns the idle strategy that a failed setter left unset. C cannot run an agent without a
    /// strategy.
    pub(crate) fn unset_idle_strategy(&self) -> Option<&'static str> {
        let is_unset = |setting: &&Setting| match setting.source {
            Source::Variable(name) => is_idle_strategy(setting) && name(self).is_none(),
            _ => false,
        };
        Self::settings().find(is_unset).map(|setting| setting.name)
    }

    /// Returns whether the directory is to be deleted, and the operating system needs care not to
    /// delete another driver's: Windows keeps the names of files that are mapped.
    pub(crate) fn deletes_dir_by_descriptor(&self) -> bool {
        cfg!(unix) && self.dir_delete_on_shutdown()
    }

    /// Frees the configuration of a driver that ran and is closed now. On Windows, C deletes its
    /// directory if [`dir_delete_on_shutdown`](Self::dir_delete_on_shutdown) is set.
    pub(crate) fn close(self) -> Result<()> {
        let mut context = ManuallyDrop::new(self);
        if cfg!(unix) {
            // C would delete whatever has the directory's name.
            // SAFETY: the structure is live.
            unsafe {
                sys::aeron_driver_context_set_dir_delete_on_shutdown(context.as_ptr(), false)
            };
        }
        // SAFETY: the structure is live, and by the `ManuallyDrop` nothing uses it again.
        let closed = unsafe { sys::aeron_driver_context_close(context.as_ptr()) }.into_result();
        drop(mem::take(&mut context.retained));
        drop(context.agent_on_start.take());
        closed.map(|_| ())
    }
}

fn is_idle_strategy(setting: &Setting) -> bool {
    setting.name.ends_with("_idle_strategy")
}

impl Drop for DriverContext {
    /// Reached only if no driver ran. Then the directory belongs to another driver, and C would
    /// delete it here.
    fn drop(&mut self) {
        // SAFETY: the structure is live.
        unsafe { sys::aeron_driver_context_set_dir_delete_on_shutdown(self.as_ptr(), false) };
        // SAFETY: the structure is live and not used again.
        unsafe { sys::aeron_driver_context_close(self.as_ptr()) };
    }
}

rusteron_core::impl_debug!(DriverContext: dir(), threading_mode());
