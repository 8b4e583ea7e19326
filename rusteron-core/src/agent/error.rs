//! Errors of agents and of their runners.

use std::error::Error;
use std::fmt;

type Cause = Box<dyn Error + Send + Sync>;

/// An agent's error, or its request to end.
///
/// `?` makes an `AgentError` of every [`std::error::Error`], as in an agent's
/// [`do_work`](crate::agent::Agent::do_work). For that reason `AgentError` is no
/// [`std::error::Error`] itself. `?` converts it to a `Box<dyn Error>`, though.
///
/// An `AgentError` is one machine word. Making one allocates.
pub struct AgentError(Box<Content>);

struct Content {
    /// The agent that failed; known once a composite or a runner has seen the error.
    role: Option<Box<str>>,
    /// `None` for a request to end.
    cause: Option<Cause>,
    suppressed: Vec<AgentError>,
}

impl AgentError {
    /// Makes an error of a cause, which may be a text.
    ///
    /// ```
    /// use rusteron_client::agent::AgentError;
    ///
    /// let error = AgentError::new("no quote for 10 s");
    /// assert_eq!(error.to_string(), "no quote for 10 s");
    /// ```
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::with_cause(Some(cause.into()))
    }

    /// Makes an agent's request to end. The request is no failure: it is neither counted nor
    /// reported.
    ///
    /// Corresponds to Agrona's `AgentTerminationException`.
    #[doc(alias = "AgentTerminationException")]
    pub fn terminate() -> Self {
        Self::with_cause(None)
    }

    fn with_cause(cause: Option<Cause>) -> Self {
        Self(Box::new(Content { role: None, cause, suppressed: Vec::new() }))
    }

    /// Returns whether this is a request to end.
    pub fn is_termination(&self) -> bool {
        self.0.cause.is_none()
    }

    /// Returns the role of the agent that failed: in a composite, the role of the member. `None` if
    /// neither a composite nor a runner has seen the error.
    pub fn role(&self) -> Option<&str> {
        self.0.role.as_deref()
    }

    /// Returns the cause. `None` for a request to end.
    pub fn cause(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.0.cause.as_deref()
    }

    /// Returns the cause if it is of type `E`, such as [`OfferError`](crate::error::OfferError).
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.cause()?.downcast_ref()
    }

    /// Returns further errors of the same step. Example: several members of a composite fail to
    /// close.
    pub fn suppressed(&self) -> &[AgentError] {
        &self.0.suppressed
    }

    /// Names the agent that failed, unless a member of that agent has been named already.
    #[cold]
    pub(crate) fn in_role(mut self, role: &str) -> Self {
        self.0.role.get_or_insert_with(|| role.into());
        self
    }

    /// Adds an error of the same step. A request to end gives way to a failure.
    pub(crate) fn and(mut self, other: Self) -> Self {
        match (self.is_termination(), other.is_termination()) {
            (true, _) => other,
            (false, true) => self,
            (false, false) => {
                self.0.suppressed.push(other);
                self
            }
        }
    }

    /// Returns the number of failures: this error and all suppressed errors.
    pub(crate) fn failures(&self) -> u64 {
        let suppressed: u64 = self.suppressed().iter().map(Self::failures).sum();
        suppressed + u64::from(!self.is_termination())
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for AgentError {
    fn from(cause: E) -> Self {
        Self::new(cause)
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(role) = self.role() {
            write!(f, "agent {role}: ")?;
        }
        match self.cause() {
            Some(cause) => write!(f, "{cause}")?,
            None => f.write_str("asks to end")?,
        }
        self.suppressed().iter().try_for_each(|other| write!(f, "; also {other}"))
    }
}

crate::debug_as_display!(AgentError, Boxed, RunnerError);

/// An [`AgentError`] as a [`std::error::Error`].
struct Boxed(AgentError);

impl fmt::Display for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Boxed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.cause().map(|cause| cause as _)
    }
}

impl From<AgentError> for Box<dyn Error + Send + Sync> {
    fn from(error: AgentError) -> Self {
        Box::new(Boxed(error))
    }
}

impl From<AgentError> for Box<dyn Error> {
    fn from(error: AgentError) -> Self {
        Box::new(Boxed(error))
    }
}

/// The decision of an [error handler](crate::agent::AgentRunnerBuilder::on_error).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorAction {
    /// The agent goes on with its next duty cycle, after the idle strategy has idled.
    Continue,
    /// The agent ends, and its runner returns the error.
    Stop,
}

/// The reason why an [`AgentRunner`](crate::agent::AgentRunner) did not end well.
#[non_exhaustive]
pub enum RunnerError {
    /// An error ended the agent, or the agent failed to close.
    Failed(AgentError),
    /// The agent, its idle strategy or its error handler panicked.
    Panicked {
        /// The role of the runner's agent.
        role: String,
        /// The text of the panic.
        message: String,
    },
    /// The runner was joined on its own thread, which cannot wait for itself. The agent has been
    /// told to end.
    JoinedByItself {
        /// The role of the runner's agent.
        role: String,
    },
    /// The runner was joined or closed in a callback of a conductor, which must not wait. The agent
    /// has been told to end, and its thread ends by itself.
    CalledFromConductor {
        /// The role of the runner's agent.
        role: String,
    },
    /// The runner belongs to another process, of which this is a fork. The agent goes on there.
    Forked {
        /// The role of the runner's agent.
        role: String,
    },
}

impl fmt::Display for RunnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => fmt::Display::fmt(error, f),
            Self::Panicked { role, message } => write!(f, "agent {role} panicked: {message}"),
            Self::JoinedByItself { role } => {
                write!(f, "agent {role} joined its own runner; another thread has to do that")
            }
            Self::CalledFromConductor { role } => {
                write!(
                    f,
                    "waiting for agent {role} in a callback of the conductor; another thread has to \
                     wait"
                )
            }
            Self::Forked { role } => {
                write!(f, "agent {role} runs in another process, of which this is a fork")
            }
        }
    }
}

impl Error for RunnerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed(error) => error.cause().map(|cause| cause as _),
            Self::Panicked { .. }
            | Self::JoinedByItself { .. }
            | Self::CalledFromConductor { .. }
            | Self::Forked { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{CloseCause, ErrorKind, OfferError};

    #[test]
    fn an_agent_error_is_one_machine_word() {
        assert_eq!(size_of::<AgentError>(), size_of::<usize>());
        assert_eq!(size_of::<Result<(), AgentError>>(), size_of::<usize>());
    }

    #[test]
    fn causes_are_found_by_their_type() {
        let error = AgentError::from(OfferError::Closed(CloseCause::Handle))
            .in_role("inner")
            .in_role("outer");
        assert_eq!(error.downcast_ref(), Some(&OfferError::Closed(CloseCause::Handle)));
        assert_eq!(error.role(), Some("inner"));
        assert!(error.downcast_ref::<crate::error::Error>().is_none());

        let boxed: Box<dyn Error> = error.into();
        assert!(boxed.to_string().starts_with("agent inner: "), "{boxed}");
        let source = boxed.source().and_then(|source| source.downcast_ref());
        assert_eq!(source, Some(&OfferError::Closed(CloseCause::Handle)));
    }

    #[test]
    fn failures_outlast_requests_to_end() {
        let failed = || AgentError::new("failed");
        let both = AgentError::terminate().and(failed()).and(AgentError::terminate());
        assert_eq!((both.is_termination(), both.failures()), (false, 1));
        let three = both.and(failed().and(failed()));
        assert_eq!(three.failures(), 3);
        assert_eq!(three.to_string(), "failed; also failed; also failed");
        let end = AgentError::terminate().and(AgentError::terminate());
        assert_eq!((end.is_termination(), end.failures()), (true, 0));
    }

    #[test]
    fn client_errors_keep_their_kind() {
        let error = AgentError::from(crate::error::Error::new(ErrorKind::ClientClosed, "closed"));
        let cause: Option<&crate::error::Error> = error.downcast_ref();
        assert_eq!(cause.map(crate::error::Error::kind), Some(ErrorKind::ClientClosed));
    }
}
