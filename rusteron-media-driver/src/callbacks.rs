//! Callbacks of a driver.

use std::ffi::{CStr, c_char, c_void};

use rusteron_core::Result;
use rusteron_core::ffi::{self, Fallible, Retained};
use rusteron_sys::driver as sys;

use crate::DriverContext;

pub(crate) type TerminationHook = dyn FnMut() + Send;
pub(crate) type TerminationValidator = dyn FnMut(&[u8]) -> bool + Send;
pub(crate) type AgentOnStart = dyn Fn(&str) + Send + Sync;
type AgentStart = dyn Fn(&CStr) + Send + Sync;

/// Handlers that C has pointers to, until the context is closed. Replaced handlers stay as well:
/// that is simplest, and replacing a handler is rare.
#[derive(Default)]
pub(crate) struct Callbacks {
    termination_hooks: Vec<Retained<TerminationHook>>,
    termination_validators: Vec<Retained<TerminationValidator>>,
    agent_start: Option<Retained<AgentStart>>,
}

impl DriverContext {
    /// Sets the hook for requests to end the driver. It is called if the
    /// [validator](Self::set_termination_validator) accepts the request.
    ///
    /// The driver goes on: ending the driver is up to the application. Usually the hook wakes the
    /// thread that owns the [`MediaDriver`](crate::MediaDriver), and that thread drops it. If the
    /// hook itself drops it, another thread ends the driver, because a thread cannot join itself.
    ///
    /// The hook runs on the conductor's thread, once for each request, and the driver waits for it.
    /// The hook must not wait for the driver: in the hook, the blocking functions of a client fail.
    /// A panic in the hook is caught and logged.
    ///
    /// # Errors
    /// None with a valid context.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use rusteron_media_driver::{DriverContext, MediaDriver, request_driver_termination};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (stop, stopped) = mpsc::channel();
    /// let mut context = DriverContext::new()?;
    /// context
    ///     .set_termination_validator(|token| token == b"secret")?
    ///     .set_termination_hook(move || stop.send(()).unwrap_or(()))?;
    /// let driver = MediaDriver::launch_embedded_with(context)?;
    ///
    /// request_driver_termination(driver.aeron_dir(), b"secret")?;
    /// stopped.recv()?;
    /// drop(driver);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Corresponds to `aeron_driver_context_set_driver_termination_hook`.
    #[doc(alias = "aeron_driver_context_set_driver_termination_hook")]
    pub fn set_termination_hook(
        &mut self,
        hook: impl FnMut() + Send + 'static,
    ) -> Result<&mut Self> {
        let hook: Retained<TerminationHook> = Retained::new(Box::new(hook));
        // SAFETY: the context is live and not yet used by a driver, and it keeps the hook for longer
        // than C can call it.
        unsafe {
            sys::aeron_driver_context_set_driver_termination_hook(
                self.as_ptr(),
                Some(termination_hook),
                hook.clientd(),
            )
        }
        .into_result()?;
        self.retained.callbacks.termination_hooks.push(hook);
        Ok(self)
    }

    /// Sets the validator of requests to end the driver. The validator gets the token of a
    /// [request](crate::request_driver_termination), and returns whether the
    /// [hook](Self::set_termination_hook) is to be called.
    ///
    /// By default every request is refused, unless the environment variable
    /// `AERON_DRIVER_TERMINATION_VALIDATOR` is `allow`.
    ///
    /// The validator runs on the conductor's thread, as the hook does. A panic in the validator is
    /// caught and logged, and refuses the request.
    ///
    /// # Errors
    /// None with a valid context.
    ///
    /// Corresponds to `aeron_driver_context_set_driver_termination_validator`.
    #[doc(alias = "aeron_driver_context_set_driver_termination_validator")]
    pub fn set_termination_validator(
        &mut self,
        validator: impl FnMut(&[u8]) -> bool + Send + 'static,
    ) -> Result<&mut Self> {
        let validator: Retained<TerminationValidator> = Retained::new(Box::new(validator));
        // SAFETY: the context is live and not yet used by a driver, and it keeps the closure for longer than C can call
        // it.
        unsafe {
            sys::aeron_driver_context_set_driver_termination_validator(
                self.as_ptr(),
                Some(termination_validator),
                validator.clientd(),
            )
        }
        .into_result()?;
        self.retained.callbacks.termination_validators.push(validator);
        Ok(self)
    }

    /// Sets the hook that each of the driver's threads runs first. The hook gets the role of the
    /// thread's agent, such as `conductor`, `sender` or `[conductor, sender, receiver]`.
    ///
    /// The hook runs on several threads, possibly at once, after the thread's CPU affinity is set.
    /// With a [`DriverInvoker`](crate::DriverInvoker), it also runs on the launching thread. A
    /// panic in the hook is caught and logged.
    ///
    /// # Errors
    /// None with a valid context.
    ///
    /// Corresponds to `aeron_driver_context_set_agent_on_start_function`.
    #[doc(alias = "aeron_driver_context_set_agent_on_start_function")]
    pub fn set_agent_on_start(
        &mut self,
        hook: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<&mut Self> {
        self.agent_on_start = Some(Box::new(hook));
        Ok(self)
    }

    /// Gives C the single function that threads call when they start, if it has anything to do. The
    /// function applies the affinity, then the hook of the environment, then this hook.
    pub(crate) fn install_agent_on_start(&mut self) -> Result<()> {
        let hook = self.agent_on_start.take();
        let has_affinity = self.has_cpu_affinity();
        // SAFETY: the context is live.
        let inherited =
            unsafe { sys::aeron_driver_context_get_agent_on_start_function(self.as_ptr()) };
        if hook.is_none() && !has_affinity && inherited.is_none() {
            return Ok(());
        }
        let context = Shared(self.as_ptr());
        let start: Retained<AgentStart> = Retained::new(Box::new(move |role: &CStr| {
            let state: *mut c_void = context.get().cast();
            if has_affinity {
                // SAFETY: the context outlives the driver's threads, which only read the affinities;
                // the role is a terminated string.
                unsafe { sys::aeron_set_thread_affinity_on_start(state, role.as_ptr()) };
            }
            if let Some(inherited) = inherited {
                // SAFETY: the user who set the environment vouches for the function; it gets the
                // arguments that Aeron's own program gives it.
                unsafe { inherited(state, role.as_ptr()) };
            }
            if let Some(hook) = &hook {
                hook(&role.to_string_lossy());
            }
        }));
        // SAFETY: the context is live and not yet used by a driver, and it keeps the closure for longer than C can call
        // it.
        unsafe {
            sys::aeron_driver_context_set_agent_on_start_function(
                self.as_ptr(),
                Some(agent_on_start),
                start.clientd(),
            )
        }
        .into_result()?;
        self.retained.callbacks.agent_start = Some(start);
        Ok(())
    }
}

/// A context that several threads read.
struct Shared(*mut sys::aeron_driver_context_t);

// SAFETY: the pointer alone gives access to nothing; each use of it has its own argument.
unsafe impl Send for Shared {}
// SAFETY: a shared reference gives the pointer only, whose uses have arguments of their own.
unsafe impl Sync for Shared {}

impl Shared {
    /// A method, so that closures capture the wrapper and not the pointer in it.
    fn get(&self) -> *mut sys::aeron_driver_context_t {
        self.0
    }
}

unsafe extern "C" fn termination_hook(clientd: *mut c_void) {
    // SAFETY: C passes the pointer that it was given, while the context lives. Only the one
    // conductor calls this.
    let hook = unsafe { Retained::<TerminationHook>::exclusive(clientd) };
    ffi::callback::run("termination hook", hook);
}

unsafe extern "C" fn termination_validator(
    clientd: *mut c_void,
    token: *mut u8,
    length: i32,
) -> bool {
    // SAFETY: C passes the pointer that it was given, while the context lives. Only the one
    // conductor calls this.
    let validator = unsafe { Retained::<TerminationValidator>::exclusive(clientd) };
    let token = match usize::try_from(length) {
        // The client writes the length, and C does not compare it with the message's.
        Ok(length @ 1..=MAX_TOKEN_LENGTH) => {
            // SAFETY: the message lies in the ring buffer, which is followed by other buffers of the
            // same mapping that are longer than a token can be. No other code changes the copy.
            unsafe { std::slice::from_raw_parts(token, length) }.to_vec()
        }
        Ok(0) => Vec::new(),
        _ => return false,
    };
    let mut agrees = false;
    ffi::callback::run("termination validator", || agrees = validator(&token));
    agrees
}

/// The longest token that Aeron's clients can send.
const MAX_TOKEN_LENGTH: usize = 4096;

unsafe extern "C" fn agent_on_start(clientd: *mut c_void, role: *const c_char) {
    // SAFETY: C passes the pointer that it was given, while the context lives.
    let start = unsafe { Retained::<AgentStart>::shared(clientd) };
    // SAFETY: the role is a terminated string, for the duration of the call.
    let role = unsafe { CStr::from_ptr(role) };
    ffi::callback::run("agent start hook", || start(role));
}
