//! Errors of services, and the causes of a container's end.

use std::error::Error;
use std::fmt;

use rusteron_client::{CloseCause, OfferError};
use rusteron_core::panic;

use crate::service::types::AppVersion;

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

rusteron_core::debug_as_display!(ServiceError);

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Terminate => f.write_str("the container ends"),
        }
    }
}

/// The reaction of a container to an error or panic in a callback of its service.
///
/// A failed [`on_take_snapshot`](crate::ClusteredService::on_take_snapshot) leaves the service
/// running under both policies.
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
    /// The snapshot or a new term of the log is of a version of the application that
    /// [the validator](crate::ServiceContext::set_app_version_validator) refuses.
    IncompatibleVersion {
        /// The version of this service.
        own: AppVersion,
        /// The version of the snapshot or of the log.
        found: AppVersion,
        /// True for the snapshot, false for the log.
        is_snapshot: bool,
    },
    /// A callback of the service failed or panicked, with [`ErrorPolicy::Terminate`].
    ServiceFailed {
        /// The name of the callback.
        callback: &'static str,
        /// The text of the error or of the panic.
        error: String,
    },
    /// The container cannot go on: the log is not contiguous, or has an unknown format; the
    /// consensus module does not take messages.
    Failed(
        /// The reason.
        String,
    ),
}

impl TerminationCause {
    /// Returns whether the end of the container is a failure. It is none if the program, the service or the consensus
    /// module has asked for the end.
    pub fn is_failure(&self) -> bool {
        !matches!(
            self,
            Self::Stopped
                | Self::ServiceTerminated
                | Self::ConsensusModuleTerminated { is_expected: true, .. }
        )
    }
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
            Self::IncompatibleVersion { own, found, is_snapshot } => {
                let origin = if *is_snapshot { "the snapshot" } else { "the log" };
                write!(f, "application version {own}: {origin} has incompatible version {found}")
            }
            Self::ServiceFailed { callback, error } => write!(f, "{callback} failed: {error}"),
            Self::Failed(error) => f.write_str(error),
        }
    }
}

impl Error for TerminationCause {}

/// The reason why a message of a service was not sent.
///
/// An expected outcome: a client reads too slowly or has gone, or the message is too long. So this
/// type is no [`std::error::Error`], and `?` does not make a [`ServiceError`] of it, which would end
/// the node:
///
/// ```compile_fail,E0277
/// use rusteron_cluster::{Cluster, ClusterSessionId, ServiceResult};
///
/// fn answer(cluster: &mut Cluster<'_>, session_id: ClusterSessionId) -> ServiceResult {
///     let Some(mut session) = cluster.session(session_id) else { return Ok(()) };
///     session.offer(b"answer")?;
///     Ok(())
/// }
/// ```
///
/// [`ClientSession::offer_or_close`](crate::ClientSession::offer_or_close) answers a client in one
/// line:
///
/// ```
/// use std::time::Duration;
///
/// use rusteron_cluster::{Cluster, ClusterSessionId, ServiceResult};
///
/// fn answer(cluster: &mut Cluster<'_>, session_id: ClusterSessionId) -> ServiceResult {
///     let Some(mut session) = cluster.session(session_id) else { return Ok(()) };
///     session.offer_or_close(b"answer", Duration::from_secs(1))
/// }
/// ```
///
/// Messages to the cluster do not convert either:
///
/// ```compile_fail,E0277
/// use rusteron_cluster::{Cluster, ServiceResult};
///
/// fn forward(cluster: &mut Cluster<'_>, message: &[u8]) -> ServiceResult {
///     cluster.offer(message)??;
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NotSent(OfferError);

impl NotSent {
    /// Returns the reason.
    pub fn reason(self) -> OfferError {
        self.0
    }

    /// Returns whether the same call may succeed if it is repeated.
    pub fn is_retryable(self) -> bool {
        self.0.is_retryable()
    }

    pub(crate) fn too_long(length: usize, max_message_length: usize) -> Self {
        Self(OfferError::MessageTooLong { length, max_message_length })
    }
}

impl From<OfferError> for NotSent {
    fn from(reason: OfferError) -> Self {
        Self(reason)
    }
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Runs a callback. A panic becomes its text.
pub(crate) fn caught(callback: impl FnOnce() -> ServiceResult) -> Result<ServiceResult, String> {
    panic::catch(callback).map_err(|text| format!("panic: {text}"))
}
