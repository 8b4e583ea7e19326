//! Errors of a cluster client.

use std::fmt;

use rusteron_client::{ChannelUriError, Error, ErrorKind, OfferError};
use rusteron_core::printable::Printable;

/// The result of every operation outside the message path.
pub type Result<T, E = ClusterError> = std::result::Result<T, E>;

/// A failed operation of a cluster client: its kind, and the text of the cluster or the client.
///
/// It is one machine word, so that a `Result` of a handle stays small.
///
/// ```
/// use rusteron_client::Aeron;
/// use rusteron_cluster::{ClusterClient, ClusterContext, ClusterErrorKind, Result};
///
/// /// Connects, and returns `None` if no cluster answers.
/// fn connect(aeron: &Aeron, context: ClusterContext) -> Result<Option<ClusterClient>> {
///     match ClusterClient::connect(aeron, context) {
///         Ok(cluster) => Ok(Some(cluster)),
///         Err(error) if error.kind() == ClusterErrorKind::Timeout => Ok(None),
///         Err(error) => Err(error),
///     }
/// }
/// ```
#[doc(alias("ClusterException", "AuthenticationException", "TimeoutException"))]
#[derive(Clone)]
pub struct ClusterError(Box<Content>);

#[derive(Clone)]
struct Content {
    kind: ClusterErrorKind,
    message: Box<str>,
}

/// The kinds of [`ClusterError`], independent of the wording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClusterErrorKind {
    /// An argument or a setting is out of its range. The text names it.
    InvalidArgument,
    /// The cluster did not answer within the message timeout. The text says how far the attempt
    /// came.
    Timeout,
    /// The cluster refused the session. The text has its reason, such as the session limit.
    Rejected,
    /// The cluster's authenticator refused the credentials.
    AuthenticationRejected,
    /// The leader disconnected after it had answered with a challenge. Connect again.
    ConnectionLost,
    /// The session is closed; [`state`](crate::ClusterClient::state) has the cause. Connect again.
    Closed,
    /// Another container of the same service is alive, or was until a few seconds ago. Its mark file
    /// says so.
    ActiveMarkFile,
    /// A mark file is damaged, or belongs to another component or another version.
    InvalidMarkFile,
    /// A recording of the log or of a snapshot is damaged or incomplete.
    InvalidRecording,
    /// A service could not process a recorded log: it failed in the same way in both runs.
    ServiceFailed,
    /// A file of the cluster's directory cannot be written or read.
    Io(std::io::ErrorKind),
    /// The client failed, not the cluster.
    Client(ErrorKind),
}

impl ClusterError {
    pub(crate) fn new(kind: ClusterErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Content { kind, message: message.into().into() }))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ClusterErrorKind::InvalidArgument, message)
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> ClusterErrorKind {
        self.0.kind
    }

    /// Returns the text of the cluster or of the client.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind() {
            ClusterErrorKind::InvalidArgument => "invalid argument",
            ClusterErrorKind::Timeout => "timeout",
            ClusterErrorKind::Rejected => "rejected by the cluster",
            ClusterErrorKind::AuthenticationRejected => "credentials rejected by the cluster",
            ClusterErrorKind::ConnectionLost => "connection lost",
            ClusterErrorKind::Closed => "session closed",
            ClusterErrorKind::ActiveMarkFile => "active mark file",
            ClusterErrorKind::InvalidMarkFile => "invalid mark file",
            ClusterErrorKind::InvalidRecording => "invalid recording",
            ClusterErrorKind::ServiceFailed => "the service failed",
            ClusterErrorKind::Io(_) => "file",
            // The text of the client's error begins with its kind.
            ClusterErrorKind::Client(_) => return Printable(self.message()).fmt(f),
        };
        match self.message() {
            "" => f.write_str(kind),
            message => write!(f, "{kind}: {}", Printable(message)),
        }
    }
}

rusteron_core::debug_as_display!(ClusterError);

impl std::error::Error for ClusterError {}

impl From<Error> for ClusterError {
    fn from(error: Error) -> Self {
        Self::new(ClusterErrorKind::Client(error.kind()), error.to_string())
    }
}

/// For closures of [`Reconnect`](rusteron_client::Reconnect). An error of the cluster gets the kind
/// [`ErrorKind::Other`], which is transient, or [`ErrorKind::InvalidArgument`] if an attempt with the same credentials
/// and files would fail alike.
impl From<ClusterError> for Error {
    fn from(error: ClusterError) -> Self {
        let kind = match error.kind() {
            ClusterErrorKind::Client(kind) => kind,
            ClusterErrorKind::Io(kind) => ErrorKind::Io(kind),
            ClusterErrorKind::InvalidArgument
            | ClusterErrorKind::AuthenticationRejected
            | ClusterErrorKind::InvalidMarkFile
            | ClusterErrorKind::InvalidRecording
            | ClusterErrorKind::ServiceFailed => ErrorKind::InvalidArgument,
            // The session limit is one of the reasons for a rejected session, and passes.
            ClusterErrorKind::Timeout
            | ClusterErrorKind::Rejected
            | ClusterErrorKind::ConnectionLost
            | ClusterErrorKind::Closed
            | ClusterErrorKind::ActiveMarkFile => ErrorKind::Other,
        };
        let text = error.to_string();
        Self::new(kind, text.strip_prefix(&format!("{kind}: ")).unwrap_or(&text))
    }
}

impl From<ChannelUriError> for ClusterError {
    fn from(error: ChannelUriError) -> Self {
        Self::from(Error::from(error))
    }
}

/// Allocates, so use this conversion only to leave a loop.
impl From<OfferError> for ClusterError {
    fn from(error: OfferError) -> Self {
        Self::from(Error::from(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_client_comes_back() {
        let error = Error::new(ErrorKind::DriverTimeout, "no driver");
        let back = Error::from(ClusterError::from(error.clone()));
        assert_eq!((back.kind(), back.to_string()), (error.kind(), error.to_string()));
        assert!(!Error::from(ClusterError::invalid("")).is_transient());
        let lost = Error::from(ClusterError::new(ClusterErrorKind::ConnectionLost, ""));
        assert!(lost.is_transient() && !lost.is_retryable());
    }

    #[test]
    fn permanent_errors_are_not_transient() {
        use ClusterErrorKind::*;
        let permanent = [
            InvalidArgument,
            AuthenticationRejected,
            InvalidMarkFile,
            InvalidRecording,
            ServiceFailed,
            Io(std::io::ErrorKind::PermissionDenied),
        ];
        let transient = [Timeout, Rejected, ConnectionLost, Closed, ActiveMarkFile];
        let permanent = permanent.map(|kind| (kind, false));
        for (kind, is_transient) in permanent.into_iter().chain(transient.map(|kind| (kind, true)))
        {
            let error = Error::from(ClusterError::new(kind, "the text"));
            assert_eq!(error.is_transient(), is_transient, "{kind:?}");
            assert!(error.message().ends_with("the text"), "{error}");
        }
    }
}
