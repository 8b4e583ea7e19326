//! Agents: duty cycles that run on a thread of their own, or in the caller's loop.
//!
//! An [`Agent`] does a little work each time it is called, and never waits. An [`AgentRunner`] calls
//! one agent on its own thread. An [`AgentInvoker`] calls one agent in the caller's loop. A
//! [`CompositeAgent`] makes several agents one agent, so that they share a thread. A
//! [`ShutdownSignal`] ends the runners that share it.
//!
//! `ConductorAgent` is a client's conductor as an agent. The media driver's
//! `DriverInvoker` is an agent, too.
//!
//! # Life of an agent
//! 1. [`on_start`](Agent::on_start), once;
//! 2. [`do_work`](Agent::do_work), until the end: a [`ShutdownSignal`], an error, a panic, or
//!    [`AgentError::terminate`];
//! 3. [`on_close`](Agent::on_close), once, whatever the reason of the end was;
//! 4. the agent is dropped, on the same thread.
//!
//! # Errors
//! An error is counted, and goes to the [handler](AgentRunnerBuilder::on_error), which decides
//! whether the agent goes on. Without a handler, the error is logged, and the agent ends.
//! [`AgentRunner::join`] and [`close`](AgentRunner::close) return the error that ended the agent.
//!
//! # Threads, allocation, blocking
//! A duty cycle that succeeds does not allocate outside of the agent. Errors allocate. Only
//! [`AgentRunner`]'s `join`, `close` and drop wait for another thread, and so does
//! [`ShutdownSignal::wait`]. In a callback of a conductor, `join` and `close` fail, and the drop does
//! not wait.
//!
//! ```
//! use rusteron_client::agent::{Agent, AgentError, AgentRunner};
//!
//! /// Counts down, and asks to end.
//! struct Countdown(u32);
//!
//! impl Agent for Countdown {
//!     fn do_work(&mut self) -> Result<usize, AgentError> {
//!         self.0 = self.0.checked_sub(1).ok_or_else(AgentError::terminate)?;
//!         Ok(1)
//!     }
//!
//!     fn role_name(&self) -> &str {
//!         "countdown"
//!     }
//! }
//!
//! let runner = AgentRunner::builder(Countdown(10)).start()?;
//! runner.join()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod composite_agent;
mod error;
mod interrupt;
mod invoker;
mod runner;
mod shutdown_signal;

use crate::panic;

pub use composite_agent::{CompositeAgent, Members};
pub use error::{AgentError, ErrorAction, RunnerError};
pub use invoker::AgentInvoker;
pub use runner::{AgentRunner, AgentRunnerBuilder};
pub use shutdown_signal::ShutdownSignal;

/// A duty cycle: a unit of work that is called again and again, by one thread.
///
/// An agent never waits. If there is nothing to do, it returns 0, and the caller idles. The
/// [module's documentation](crate::agent) has the order of the calls.
///
/// ```
/// use rusteron_client::agent::{Agent, AgentError};
/// use rusteron_client::{Header, Subscription};
///
/// struct Printer {
///     subscription: Subscription,
/// }
///
/// impl Agent for Printer {
///     fn do_work(&mut self) -> Result<usize, AgentError> {
///         let handler = |message: &[u8], _: &Header<'_>| println!("{} bytes", message.len());
///         Ok(self.subscription.poll(handler, 10)?)
///     }
///
///     fn role_name(&self) -> &str {
///         "printer"
///     }
/// }
/// ```
///
/// Corresponds to Agrona's `Agent`.
#[doc(alias = "org.agrona.concurrent.Agent")]
pub trait Agent {
    /// Called once, before the first duty cycle, on the thread that runs the agent.
    ///
    /// # Errors
    /// Any error ends the agent before its first duty cycle; [`on_close`](Self::on_close) follows.
    #[doc(alias = "onStart")]
    fn on_start(&mut self) -> Result<(), AgentError> {
        Ok(())
    }

    /// Does a little work, and returns its amount. 0 stands for none: the caller then idles.
    ///
    /// # Errors
    /// - [`AgentError::terminate`] ends the agent. This is no failure;
    /// - any other error is for the caller's error policy, which may call again. `?` converts
    ///   every [`std::error::Error`].
    #[doc(alias = "doWork")]
    fn do_work(&mut self) -> Result<usize, AgentError>;

    /// Called once, after the last duty cycle. Also called after an error or a panic of the other
    /// functions. The agent is dropped afterwards.
    ///
    /// # Errors
    /// Any error is reported; nothing is called again.
    #[doc(alias = "onClose")]
    fn on_close(&mut self) -> Result<(), AgentError> {
        Ok(())
    }

    /// Returns the name of the agent's role: for errors, and for the name of its thread.
    #[doc(alias = "roleName")]
    fn role_name(&self) -> &str;
}

macro_rules! forward {
    ($($pointer:ty),+) => {$(
        impl<A: Agent + ?Sized> Agent for $pointer {
            fn on_start(&mut self) -> Result<(), AgentError> {
                (**self).on_start()
            }

            #[inline]
            fn do_work(&mut self) -> Result<usize, AgentError> {
                (**self).do_work()
            }

            fn on_close(&mut self) -> Result<(), AgentError> {
                (**self).on_close()
            }

            fn role_name(&self) -> &str {
                (**self).role_name()
            }
        }
    )+};
}

forward!(Box<A>, &mut A);

/// Returns an agent's role name for an error. A panic ends here.
pub(crate) fn role_name(agent: &(impl Agent + ?Sized)) -> String {
    panic::catch(|| agent.role_name().to_owned()).unwrap_or_else(|_| "(no name)".to_owned())
}
