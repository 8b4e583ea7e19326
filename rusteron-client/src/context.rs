//! The settings of a client, and the handlers that it is given before it connects.

pub(crate) mod close_state;
mod events;

pub use events::{NewResource, PublicationError};

use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

use rusteron_core::error::Result;
use rusteron_core::ffi::handlers::{Handler, Handlers};
use rusteron_core::ffi::{self, Fallible, last_error};
use rusteron_core::idle::IdleStrategyKind;
use rusteron_core::settings::warn_of_missing_units;
use rusteron_sys as sys;

use crate::context::close_state::CloseState;
use crate::context::events::{ContextHandlers, OnClose, OnCounter, OnPublicationError};

/// The configuration of a client: the directory of the media driver, timeouts, handlers.
///
/// A new context holds Aeron's defaults, changed by the `AERON_*` environment variables. Setters
/// change it. Then [`Aeron::connect`](crate::Aeron::connect) takes the context, and nothing can
/// change any more. `println!("{context:#?}")` prints all settings.
///
/// ```
/// use std::time::Duration;
/// use rusteron_client::Context;
///
/// # fn main() -> Result<(), rusteron_client::Error> {
/// let mut context = Context::new()?;
/// context.set_dir("/dev/shm/my-driver")?.set_driver_timeout(Duration::from_secs(2))?;
/// assert_eq!(context.driver_timeout(), Duration::from_secs(2));
/// # Ok(())
/// # }
/// ```
#[doc(alias("CommonContext", "aeron_context_t"))]
pub struct Context {
    raw: NonNull<sys::aeron_context_t>,
    /// Handlers that C holds pointers to.
    pub(crate) handlers: ContextHandlers,
    /// More handlers that C holds pointers to. They are not in a `Box`, which would claim to be the
    /// only way to its content.
    pub(crate) available_counter_handlers: Arc<Handlers<OnCounter>>,
    pub(crate) unavailable_counter_handlers: Arc<Handlers<OnCounter>>,
    pub(crate) close_handlers: Arc<Handlers<OnClose>>,
    pub(crate) publication_error_handlers: Arc<Handlers<OnPublicationError>>,
    pub(crate) close_state: Arc<CloseState>,
    pub(crate) on_available_counter: Option<Handler>,
    pub(crate) on_unavailable_counter: Option<Handler>,
    pub(crate) on_close: Option<Handler>,
    pub(crate) on_publication_error: Option<Handler>,
}

// SAFETY: the C structure is plain memory without ties to a thread, and the handlers, to which it
// has pointers, are `Send`.
unsafe impl Send for Context {}
// SAFETY: through a shared reference the structure is only read, by the getters; the handlers of
// counters and of the close have locks, and the others are not reached at all.
unsafe impl Sync for Context {}

impl Context {
    /// Makes a context with Aeron's defaults, changed by the `AERON_*` environment variables.
    ///
    /// Errors that happen in the background are logged with the crate `log`, until
    /// [`set_error_handler`](Self::set_error_handler) is called.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an environment variable
    /// that cannot be parsed; the text names it.
    ///
    /// Corresponds to `aeron_context_init`.
    #[doc(alias = "aeron_context_init")]
    pub fn new() -> Result<Self> {
        let mut raw = ptr::null_mut();
        let lock = ffi::lock_context_init();
        // SAFETY: C writes the new structure's address to `raw`, or fails; the lock keeps others
        // from the buffer that it uses.
        unsafe { sys::aeron_context_init(&mut raw) }.into_result()?;
        drop(lock);
        warn_of_missing_units(Self::settings());
        let raw = NonNull::new(raw).ok_or_else(last_error)?;
        let mut context = Self {
            raw,
            handlers: ContextHandlers::default(),
            available_counter_handlers: Arc::new(Handlers::new("available counter handler")),
            unavailable_counter_handlers: Arc::new(Handlers::new("unavailable counter handler")),
            close_handlers: Arc::new(Handlers::new("close handler")),
            publication_error_handlers: Arc::new(Handlers::new("handler of publication errors")),
            close_state: Arc::default(),
            on_available_counter: None,
            on_unavailable_counter: None,
            on_close: None,
            on_publication_error: None,
        };
        // C's own default handler ends the process.
        context.set_error_handler(events::log_error)?;
        context.install_handlers()?;
        Ok(context)
    }

    /// Sets what the conductor's thread does when it finds no work: sleep, yield or spin. The default
    /// is to sleep for 16 ms, which suits nearly all programs.
    ///
    /// The conductor adds publications and subscriptions and calls handlers of events. Messages do
    /// not pass through it, so this setting does not change their latency. A loop that polls or
    /// offers has an [`IdleStrategy`](crate::IdleStrategy) of its own.
    ///
    /// A sleeping conductor notices events that the driver reports by itself after one sleep at
    /// most. Example: the image of a later publisher. Shorter sleeps, yielding and spinning notice
    /// such events sooner, and take more processor time. Spinning takes a whole CPU.
    ///
    /// ```
    /// use rusteron_client::{Context, IdleStrategyKind};
    ///
    /// # fn main() -> Result<(), rusteron_client::Error> {
    /// let mut context = Context::new()?;
    /// context.set_idle_strategy_init_args("1ms")?.set_idle_strategy(IdleStrategyKind::Sleeping)?;
    /// assert_eq!(context.idle_strategy(), Some(IdleStrategyKind::Sleeping));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If [`set_idle_strategy_init_args`](Self::set_idle_strategy_init_args) was called before, the
    /// strategy has those parameters. Otherwise, it has Aeron's defaults.
    ///
    /// A command of this client, such as adding a publication, ends a sleep. In C nothing ends a
    /// sleep. The next sleeps are short, so that the driver's answer is noticed soon. Each lasts a
    /// quarter of the time since that command, but at least 50 µs, unless the strategy's sleep is
    /// shorter. It also lasts at least the resolution of the operating system's clock.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for parameters that the
    /// strategy does not accept. The strategy is then the previous one, with Aeron's defaults.
    ///
    /// Corresponds to `aeron_context_set_idle_strategy`.
    #[doc(alias = "aeron_context_set_idle_strategy")]
    pub fn set_idle_strategy(&mut self, value: IdleStrategyKind) -> Result<&mut Self> {
        let previous = self.idle_strategy().unwrap_or(IdleStrategyKind::Sleeping);
        // A new context has a number there that is meaningful to one strategy only.
        let untouched = self.idle_sleep_duration().as_nanos().to_string();
        if value != IdleStrategyKind::Sleeping && self.idle_strategy_init_args() == untouched {
            self.clear_idle_strategy_init_args()?;
        }
        self.load_idle_strategy(value).or_else(|error| {
            // C is left without any strategy. No client starts without a strategy.
            self.clear_idle_strategy_init_args()?;
            self.load_idle_strategy(previous)?;
            Err(error)
        })?;
        Ok(self)
    }

    /// Returns the idle strategy of the conductor's thread. `None` when Aeron has none of the
    /// choices, as after a setter that failed.
    #[doc(alias = "aeron_context_get_idle_strategy")]
    pub fn idle_strategy(&self) -> Option<IdleStrategyKind> {
        // SAFETY: the context is live, and C only reads it here.
        let name = unsafe { sys::aeron_context_get_idle_strategy(self.as_ptr()) };
        if name.is_null() {
            return None;
        }
        // SAFETY: C's string stays as it is until a setter, which needs `&mut self`.
        IdleStrategyKind::from_c_str(unsafe { CStr::from_ptr(name) })
    }

    fn load_idle_strategy(&self, kind: IdleStrategyKind) -> Result<()> {
        // SAFETY: the context is live and not yet used by a client; C copies the name, which is one
        // of its own.
        unsafe { sys::aeron_context_set_idle_strategy(self.as_ptr(), kind.as_c_str().as_ptr()) }
            .into_result()
            .map(drop)
    }

    fn clear_idle_strategy_init_args(&self) -> Result<()> {
        // SAFETY: as above; C takes no text for its defaults.
        unsafe { sys::aeron_context_set_idle_strategy_init_args(self.as_ptr(), ptr::null()) }
            .into_result()
            .map(drop)
    }

    /// Returns the directory that a driver and its clients use by default, such as
    /// `/dev/shm/aeron-<user>`.
    ///
    /// Corresponds to `aeron_default_path`.
    #[doc(alias = "aeron_default_path")]
    pub fn default_dir() -> PathBuf {
        let mut buffer = [0; sys::AERON_MAX_PATH as usize];
        let _lock = ffi::lock_context_init();
        // SAFETY: the buffer is writable for its length, and C terminates what it writes into it; the
        // lock keeps others from the static one that it uses as well.
        unsafe {
            sys::aeron_default_path(buffer.as_mut_ptr(), buffer.len());
            ffi::path(buffer.as_ptr()).to_owned()
        }
    }

    /// Returns the C structure, which lives as long as `self`.
    pub(crate) fn as_ptr(&self) -> *mut sys::aeron_context_t {
        self.raw.as_ptr()
    }
}

// The settings of the table `settings.txt`.
include!(concat!(env!("OUT_DIR"), "/settings.rs"));

macro_rules! debug {
    (($self:ident $f:ident) $(($language:ident $kind:ident $getter:ident $setter:ident))*) => {
        $f.debug_struct("Context")
            $(.field(stringify!($getter), &$self.$getter()))*
            .finish_non_exhaustive()
    };
}

/// All settings: with `{:#?}`, a line for each.
impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for_each_setting!(debug!(self f))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the structure is live and nobody else's: a client that uses it owns this context
        // and has been closed before. C frees it whatever it returns.
        unsafe { sys::aeron_context_close(self.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_printed() {
        let mut context = Context::new().expect("a context");
        context.set_dir("/somewhere").expect("a directory");
        let text = format!("{context:#?}");
        let names: Vec<_> = text.lines().filter_map(|line| line.split_once(':')).collect();
        assert!(names.contains(&("    dir", " \"/somewhere\",")), "{text}");
        assert!(names.iter().any(|(name, _)| *name == "    keepalive_interval"), "{text}");
        // The number of getters of values in C.
        assert_eq!(names.len(), 10, "{text}");
    }

    #[test]
    fn refused_idle_strategy_changes_nothing() {
        for kind in IdleStrategyKind::ALL {
            let mut context = Context::new().expect("a context");
            context.set_idle_strategy(kind).expect("a strategy");
            assert_eq!(context.idle_strategy(), Some(kind));
        }
        let mut context = Context::new().expect("a context");
        context
            .set_idle_strategy(IdleStrategyKind::Yielding)
            .and_then(|context| context.set_idle_strategy_init_args("nonsense"))
            .expect("settings");
        context.set_idle_strategy(IdleStrategyKind::Backoff).expect_err("nonsense");
        assert_eq!(context.idle_strategy(), Some(IdleStrategyKind::Yielding));
        context.set_idle_strategy(IdleStrategyKind::Backoff).expect("Aeron's defaults");
    }

    #[test]
    fn a_new_context_has_the_default_directory() {
        if std::env::var_os("AERON_DIR").is_none() {
            assert_eq!(Context::new().expect("a context").dir(), Context::default_dir());
        }
        assert!(Context::default_dir().is_absolute());
    }
}
