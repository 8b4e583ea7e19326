//! An agent on a thread of its own.
//!
//! A runner has one flag, its `ShutdownSignal`. Runners that share it end together, and each gives it when its
//! own agent ends, so a thread that waits for the signal also learns of a failed agent. An idle strategy's
//! sleep is not interrupted.
//!
//! The runner catches a panic at each step: work, close, drop. Each step runs whatever happened before it. A
//! composite catches panics of members in `on_start` and `on_close`, so that the other members are started and
//! closed, and lets the first panic continue. An invoker catches nothing in `invoke`, because the loop is the
//! caller's.
//!
//! A runner whose agent owns the runner would wait for itself. `drop` then gives the signal and does not wait.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use crate::agent::{Agent, AgentError, ErrorAction, RunnerError, ShutdownSignal};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi::{Process, callback};
use crate::idle::{Backoff, IdleStrategy};
use crate::panic;

/// Runs an agent on a thread of its own, until a [`ShutdownSignal`] or the agent's own end.
///
/// Made by [`AgentRunner::builder`]. Dropping the runner gives the signal, and waits until the
/// thread has closed and dropped the agent. On its own thread and in a callback of a conductor, the
/// drop only gives the signal: the agent may need this thread for its end.
///
/// The signal is noticed between two duty cycles. A sleep of the idle strategy is not interrupted:
/// with [`Backoff`]'s default, it lasts 1 ms at most.
///
/// ```
/// use rusteron_client::Yielding;
/// use rusteron_client::agent::{AgentRunner, ErrorAction, ShutdownSignal};
/// # use rusteron_client::agent::{Agent, AgentError};
/// # struct Quotes;
/// # impl Agent for Quotes {
/// #     fn do_work(&mut self) -> Result<usize, AgentError> {
/// #         Ok(0)
/// #     }
/// #     fn role_name(&self) -> &str {
/// #         "quotes"
/// #     }
/// # }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let shutdown = ShutdownSignal::new();
/// let runner = AgentRunner::builder(Quotes)
///     .idle_strategy(Yielding)
///     .shutdown_signal(shutdown.clone())
///     .on_error(|error| {
///         eprintln!("{error}");
///         ErrorAction::Continue
///     })
///     .start()?;
/// # shutdown.signal();
/// shutdown.wait(); // until Ctrl-C, or the end of the agent
/// runner.close()?;
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to Agrona's `AgentRunner`.
#[must_use = "the agent ends when this is dropped"]
pub struct AgentRunner {
    /// `None` once the thread has been joined.
    thread: Option<JoinHandle<Result<(), RunnerError>>>,
    role_name: String,
    shutdown: ShutdownSignal,
    error_count: Arc<AtomicU64>,
    process: Process,
}

type ErrorHandler = Box<dyn FnMut(&AgentError) -> ErrorAction + Send>;

/// The settings of an [`AgentRunner`].
#[must_use = "nothing runs before `start`"]
pub struct AgentRunnerBuilder<A, I = Backoff> {
    agent: A,
    idle: I,
    name: Option<String>,
    shutdown: ShutdownSignal,
    handler: Option<ErrorHandler>,
}

impl<A: Agent + Send + 'static, I: IdleStrategy + Send + 'static> AgentRunnerBuilder<A, I> {
    /// Sets the idle strategy between duty cycles, [`Backoff`] by default.
    pub fn idle_strategy<J: IdleStrategy>(self, idle: J) -> AgentRunnerBuilder<A, J> {
        let Self { agent, idle: _, name, shutdown, handler } = self;
        AgentRunnerBuilder { agent, idle, name, shutdown, handler }
    }

    /// Sets the name of the thread, the agent's role name by default. Linux shows the first 15
    /// bytes.
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the signal that ends the agent. By default, the runner has a signal of its own.
    ///
    /// All runners of a signal end together: the end of one runner, for whatever reason, gives the
    /// signal.
    pub fn shutdown_signal(mut self, shutdown: ShutdownSignal) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// Sets the handler of the agent's errors. The handler runs on the agent's thread.
    ///
    /// After an error of `do_work`, the handler decides whether the agent goes on. After an error of
    /// `on_start` or `on_close`, the agent ends in any case. Requests to end are no errors. Without
    /// a handler, errors are logged, and the first error ends the agent. A handler that panics ends
    /// the agent with the panic; the error is logged then.
    pub fn on_error(
        mut self,
        handler: impl FnMut(&AgentError) -> ErrorAction + Send + 'static,
    ) -> Self {
        self.handler = Some(Box::new(handler));
        self
    }

    /// Starts the thread, which starts the agent. Does not wait for the agent's `on_start`.
    ///
    /// # Errors
    /// The agent is dropped without being started:
    /// - [`ErrorKind::InvalidArgument`]: a NUL byte in the name of the thread;
    /// - [`ErrorKind::Io`]: the operating system refuses another thread.
    pub fn start(self) -> Result<AgentRunner> {
        let Self { agent, idle, name, shutdown, handler } = self;
        let role_name = agent.role_name().to_owned();
        let name = name.unwrap_or_else(|| role_name.clone());
        if name.contains('\0') {
            let message = format!("{name:?}: the name of a thread cannot contain a NUL byte");
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let error_count = Arc::new(AtomicU64::new(0));
        let cycle = DutyCycle {
            agent,
            idle,
            role_name: role_name.clone(),
            shutdown: shutdown.clone(),
            handler,
            error_count: Arc::clone(&error_count),
        };
        let thread = thread::Builder::new().name(name.clone()).spawn(|| cycle.run());
        let thread = thread.map_err(|error| {
            let message = format!("cannot start thread {name:?}: {error}");
            Error::new(ErrorKind::Io(error.kind()), message)
        })?;
        let process = Process::current();
        Ok(AgentRunner { thread: Some(thread), role_name, shutdown, error_count, process })
    }
}

impl AgentRunner {
    /// Returns the settings of a runner for `agent`.
    pub fn builder<A: Agent + Send + 'static>(agent: A) -> AgentRunnerBuilder<A> {
        let (idle, shutdown) = (Backoff::default(), ShutdownSignal::new());
        AgentRunnerBuilder { agent, idle, name: None, shutdown, handler: None }
    }

    /// Ends the agent, and waits until its thread has closed and dropped it. Blocks at least until
    /// the end of the current duty cycle and idle.
    ///
    /// # Errors
    /// - the [`RunnerError`] with which the agent ended, now or before;
    /// - [`RunnerError::JoinedByItself`] and [`RunnerError::CalledFromConductor`] without waiting,
    ///   on a thread that cannot wait for the agent.
    pub fn close(mut self) -> Result<(), RunnerError> {
        self.signal();
        self.join_thread()
    }

    /// Waits until the agent has ended by itself, by an error or by its [`ShutdownSignal`], and its
    /// thread has closed and dropped it.
    ///
    /// # Errors
    /// - the [`RunnerError`] with which the agent ended;
    /// - [`RunnerError::JoinedByItself`] and [`RunnerError::CalledFromConductor`] without waiting,
    ///   on a thread that cannot wait for the agent. These tell the agent to end, too.
    pub fn join(mut self) -> Result<(), RunnerError> {
        self.join_thread()
    }

    /// Tells the agent to end. In a forked child, the signal would end what the parent's runners of
    /// the same signal have nothing to do with.
    fn signal(&self) {
        if self.process.is_current() {
            self.shutdown.signal();
        }
    }

    fn join_thread(&mut self) -> Result<(), RunnerError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        if !self.process.is_current() {
            std::mem::forget(thread); // there is nothing to detach
            return Err(RunnerError::Forked { role: self.role_name.clone() });
        }
        if thread.thread().id() == thread::current().id() {
            self.shutdown.signal();
            return Err(RunnerError::JoinedByItself { role: self.role_name.clone() });
        }
        // The agent may wait for this conductor: in a request, or as it closes the last handle.
        if callback::is_running() {
            self.shutdown.signal();
            return Err(RunnerError::CalledFromConductor { role: self.role_name.clone() });
        }
        thread.join().unwrap_or_else(|payload| {
            let message = panic::into_text(payload);
            Err(RunnerError::Panicked { role: self.role_name.clone(), message })
        })
    }

    /// Returns whether the agent's thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Returns the signal that ends the agent.
    pub fn shutdown_signal(&self) -> &ShutdownSignal {
        &self.shutdown
    }

    /// Returns the number of the agent's errors and panics so far.
    pub fn error_count(&self) -> u64 {
        self.error_count.load(Ordering::Relaxed)
    }

    /// Returns the agent's role name.
    pub fn role_name(&self) -> &str {
        &self.role_name
    }
}

impl Drop for AgentRunner {
    /// The agent's errors have been reported when they occurred.
    fn drop(&mut self) {
        self.signal();
        let _ = self.join_thread();
    }
}

crate::impl_debug!(AgentRunner: role_name, is_finished(), error_count());

impl<A: Agent, I> fmt::Debug for AgentRunnerBuilder<A, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentRunnerBuilder")
            .field("role_name", &self.agent.role_name())
            .field("thread_name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The work of a runner's thread.
struct DutyCycle<A, I> {
    agent: A,
    idle: I,
    role_name: String,
    shutdown: ShutdownSignal,
    handler: Option<ErrorHandler>,
    error_count: Arc<AtomicU64>,
}

impl<A: Agent, I: IdleStrategy> DutyCycle<A, I> {
    fn run(mut self) -> Result<(), RunnerError> {
        let worked = self.step(Self::start_and_work);
        // Before the close, so that the other runners of the signal close at the same time.
        self.shutdown.signal();
        let closed = self.step(Self::close);

        let role_name = self.role_name.clone();
        let error_count = Arc::clone(&self.error_count);
        let dropped = panic::catch(|| drop(self))
            .map_err(|message| panicked(&role_name, &error_count, message));
        worked.and(closed).and(dropped)
    }

    /// Runs a step of the agent's life, after which the next step follows in any case.
    fn step(&mut self, step: fn(&mut Self) -> Result<(), AgentError>) -> Result<(), RunnerError> {
        match panic::catch(|| step(self)) {
            Ok(outcome) => outcome.map_err(RunnerError::Failed),
            Err(message) => Err(panicked(&self.role_name, &self.error_count, message)),
        }
    }

    fn start_and_work(&mut self) -> Result<(), AgentError> {
        if let Err(error) = self.agent.on_start() {
            return self.end_by(error);
        }
        while !self.shutdown.is_signalled() {
            match self.agent.do_work() {
                Ok(work_count) => self.idle.idle(work_count),
                Err(error) if error.is_termination() => return Ok(()),
                Err(error) => {
                    let error = error.in_role(&self.role_name);
                    if self.report(&error) == ErrorAction::Stop {
                        return Err(error);
                    }
                    self.idle.idle(0);
                }
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), AgentError> {
        self.agent.on_close().or_else(|error| self.end_by(error))
    }

    /// Ends the step with an error, unless it is a request to end.
    fn end_by(&mut self, error: AgentError) -> Result<(), AgentError> {
        if error.is_termination() {
            return Ok(());
        }
        let error = error.in_role(&self.role_name);
        self.report(&error);
        Err(error)
    }

    fn report(&mut self, error: &AgentError) -> ErrorAction {
        self.error_count.fetch_add(error.failures(), Ordering::Relaxed);
        // A panic of the logger must not hide the error.
        let log = || panic::catch(|| log::error!("{error}"));
        let Some(handler) = &mut self.handler else {
            let _ = log();
            return ErrorAction::Stop;
        };
        catch_unwind(AssertUnwindSafe(|| handler(error))).unwrap_or_else(|payload| {
            // The runner returns the panic, so nobody else learns of the error.
            let _ = log();
            resume_unwind(payload)
        })
    }
}

/// Counts and logs a panic. A panic of the logger ends here, so that the agent's next step follows.
fn panicked(role_name: &str, error_count: &AtomicU64, message: String) -> RunnerError {
    error_count.fetch_add(1, Ordering::Relaxed);
    let error = RunnerError::Panicked { role: role_name.to_owned(), message };
    let _ = panic::catch(|| log::error!("{error}"));
    error
}
