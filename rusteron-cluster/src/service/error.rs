//! Errors of services, and the causes of a container's end.

use std::error::Error;
use std::fmt;

use rusteron_client::CloseCause;

/// The result of a callback of a [`ClusteredService`](crate::ClusteredService).
pub type ServiceResult<T = ()> = Result<T, ServiceError>;

/// The reason why a callback of a service could not do its work.
///
/// `?` converts every [`std::error::Error`] into [`Failed`](Self::Failed).
///
/// ```
/// use rusteron_cluster::{ServiceError, ServiceResult};
///
/// fn parse(payload: &[u8]) -> ServiceResult<u64> {
///     Ok(std::str::from_utf8(payload)?.parse()?)
/// }
///
/// assert!(matches!(parse(b"7"), Ok(7)));
/// assert!(matches!(parse(b"x"), Err(ServiceError::Failed(_))));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ServiceError {
    /// The service failed. [`ErrorPolicy`] decides about the container.
    Failed(Box<dyn Error + Send + Sync>),
    /// The container ends, whatever its error policy is. Blocking calls of
    /// [`Cluster`](crate::Cluster) return this error if the container ends meanwhile. A service
    /// returns this error to end the container.
    Terminate,
}

impl ServiceError {
    /// Creates a failure with a text.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into().into())
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ServiceError {
    fn from(error: E) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Terminate => f.write_str("the container ends"),
        }
    }
}

/// The reaction of a container to an error or panic in a callback of its service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorPolicy {
    /// Ends the container. The consensus module of the node then ends, too. The default: a service
    /// that has failed half way through a message differs from the services of other members.
    #[default]
    Terminate,
    /// Records the error, and continues with the next message, as Java's container does. The
    /// service must leave the same state on all members when a callback fails.
    ///
    /// A failed start ends the container all the same.
    RecordAndContinue,
}

/// The reason why a service container has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TerminationCause {
    /// The consensus module has ended its services.
    ConsensusModuleTerminated {
        /// The position of the log that the service had reached.
        log_position: i64,
        /// True at the position at which the consensus module wanted the services to end.
        is_expected: bool,
    },
    /// The consensus module's commit position counter has gone: the consensus module has ended
    /// without a word, or was killed.
    ConsensusModuleGone,
    /// The Aeron client has closed: the media driver has ended, or has timed out.
    ClientClosed(
        /// The reason why the client is closed.
        CloseCause,
    ),
    /// [`ServiceContainer::stop`](crate::ServiceContainer::stop) was called, or the agent was
    /// dropped.
    Stopped,
    /// A callback returned [`ServiceError::Terminate`].
    ServiceTerminated,
    /// The service could not start: its snapshot could not be loaded, or `on_start` failed.
    StartFailed(
        /// The reason.
        String,
    ),
    /// A callback of the service failed or panicked, with [`ErrorPolicy::Terminate`].
    ServiceFailed {
        /// The name of the callback.
        callback: &'static str,
        /// The text of the error or of the panic.
        error: String,
    },
    /// The container cannot go on: the log is not contiguous, has an unknown format, or belongs to
    /// another version of the application; the archive has no space left; the consensus module
    /// does not take messages.
    Failed(
        /// The reason.
        String,
    ),
}

impl fmt::Display for TerminationCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ConsensusModuleTerminated { log_position, is_expected: true } => {
                write!(f, "ended by the consensus module at position {log_position}")
            }
            Self::ConsensusModuleTerminated { log_position, is_expected: false } => {
                write!(f, "ended by the consensus module after its position, at {log_position}")
            }
            Self::ConsensusModuleGone => f.write_str("the commit position counter has gone"),
            Self::ClientClosed(cause) => write!(f, "the Aeron client has closed: {cause}"),
            Self::Stopped => f.write_str("stopped"),
            Self::ServiceTerminated => f.write_str("ended by the service"),
            Self::StartFailed(error) => write!(f, "the service did not start: {error}"),
            Self::ServiceFailed { callback, error } => write!(f, "{callback} failed: {error}"),
            Self::Failed(error) => f.write_str(error),
        }
    }
}

impl Error for TerminationCause {}

/// The session that was asked for is not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownSession(
    /// The id of the session.
    pub i64,
);

impl fmt::Display for UnknownSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {} is not open", self.0)
    }
}

impl Error for UnknownSession {}
