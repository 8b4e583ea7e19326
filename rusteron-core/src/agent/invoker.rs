//! An agent in the caller's loop.

use std::fmt;

use crate::agent::{Agent, AgentError, role_name};
use crate::panic;

/// Calls an agent in the caller's loop, on the caller's thread.
///
/// The caller has the error policy: [`invoke`](Self::invoke) returns the agent's error, and may be
/// called again. A panic of the agent goes through to the caller. Dropping the invoker closes the
/// agent, also when a panic unwinds.
///
/// ```
/// use rusteron_client::agent::{Agent, AgentError, AgentInvoker};
/// use rusteron_client::{Backoff, IdleStrategy};
/// # struct Countdown(u32);
/// # impl Agent for Countdown {
/// #     fn do_work(&mut self) -> Result<usize, AgentError> {
/// #         self.0 = self.0.checked_sub(1).ok_or_else(AgentError::terminate)?;
/// #         Ok(1)
/// #     }
/// #     fn role_name(&self) -> &str {
/// #         "countdown"
/// #     }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut invoker = AgentInvoker::start(Countdown(10))?;
/// let mut idle = Backoff::default();
/// loop {
///     match invoker.invoke() {
///         Ok(work_count) => idle.idle(work_count),
///         Err(error) if error.is_termination() => break,
///         Err(error) => return Err(error.into()),
///     }
/// }
/// invoker.close()?;
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to Agrona's `AgentInvoker`.
#[must_use = "the agent is closed when this is dropped"]
pub struct AgentInvoker<A: Agent> {
    agent: A,
    is_closed: bool,
}

impl<A: Agent> AgentInvoker<A> {
    /// Starts an agent on this thread.
    ///
    /// # Errors
    /// The error of the agent's `on_start`. The agent was closed and dropped then. An error of
    /// its `on_close` is [suppressed](AgentError::suppressed).
    pub fn start(agent: A) -> Result<Self, AgentError> {
        // Closes the agent if `on_start` panics.
        let mut invoker = Self { agent, is_closed: false };
        match invoker.agent.on_start() {
            Ok(()) => Ok(invoker),
            Err(error) => {
                let error = error.in_role(invoker.agent.role_name());
                Err(match invoker.close() {
                    Ok(()) => error,
                    Err(other) => error.and(other),
                })
            }
        }
    }

    /// Runs one duty cycle of the agent, and returns the amount of work.
    ///
    /// # Errors
    /// The agent's error. [`is_termination`](AgentError::is_termination) tells the agent's request
    /// to end, after which the caller closes the invoker.
    #[inline]
    pub fn invoke(&mut self) -> Result<usize, AgentError> {
        self.agent.do_work().map_err(|error| error.in_role(self.agent.role_name()))
    }

    /// Returns the agent.
    pub fn agent(&self) -> &A {
        &self.agent
    }

    /// Returns the agent.
    pub fn agent_mut(&mut self) -> &mut A {
        &mut self.agent
    }

    /// Closes the agent and drops it, as dropping the invoker does, and returns the error; a drop
    /// logs the error.
    ///
    /// # Errors
    /// The error of the agent's `on_close`.
    pub fn close(mut self) -> Result<(), AgentError> {
        self.is_closed = true;
        self.agent.on_close().map_err(|error| error.in_role(self.agent.role_name()))
    }
}

impl<A: Agent> Drop for AgentInvoker<A> {
    fn drop(&mut self) {
        if self.is_closed {
            return;
        }
        // Caught: the drop can be part of the unwinding of another panic. The role name, the logger
        // and the error's text can panic, too.
        let closed = panic::catch(|| self.agent.on_close());
        let _ = panic::catch(|| {
            let role = || role_name(&self.agent);
            match closed {
                Ok(Ok(())) => {}
                Ok(Err(error)) => log::error!("{}", error.in_role(&role())),
                Err(message) => log::error!("agent {} panicked on close: {message}", role()),
            }
        });
    }
}

impl<A: Agent> fmt::Debug for AgentInvoker<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentInvoker")
            .field("role_name", &self.agent.role_name())
            .finish_non_exhaustive()
    }
}
