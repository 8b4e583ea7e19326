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

mod agent;
mod composite_agent;
mod error;
mod interrupt;
mod invoker;
mod runner;
mod shutdown_signal;

pub use agent::Agent;
pub use composite_agent::{CompositeAgent, Members};
pub use error::{AgentError, ErrorAction, RunnerError};
pub use invoker::AgentInvoker;
pub use runner::{AgentRunner, AgentRunnerBuilder};
pub use shutdown_signal::ShutdownSignal;
