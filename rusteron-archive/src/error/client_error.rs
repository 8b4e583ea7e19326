//! The client's errors as the archive's, and back.

use rusteron_client::{Error, ErrorKind};

use crate::error::{ArchiveError, ArchiveErrorKind};

impl From<Error> for ArchiveError {
    fn from(error: Error) -> Self {
        let kind = ArchiveErrorKind::Client(error.kind());
        let mut content = Self::new(kind, "client", error.to_string()).0;
        content.close_cause = error.close_cause();
        Self(content)
    }
}

/// For closures of [`Reconnect`](rusteron_client::Reconnect). An error of the archive gets the code 0 and the kind
/// [`ErrorKind::Archive`], which is transient, or a kind that is not if the same request would fail alike:
/// [`ErrorKind::InvalidArgument`] for credentials, ids and positions, [`ErrorKind::NotSupported`] for requests that the
/// archive refuses, and [`ErrorKind::IllegalState`] for calls in a callback.
impl From<ArchiveError> for Error {
    fn from(error: ArchiveError) -> Self {
        let kind = match error.kind() {
            ArchiveErrorKind::Client(kind) => kind,
            ArchiveErrorKind::InvalidArgument
            | ArchiveErrorKind::AuthenticationRejected
            | ArchiveErrorKind::UnknownRecording
            | ArchiveErrorKind::UnknownReplay
            | ArchiveErrorKind::UnknownReplication
            | ArchiveErrorKind::UnknownSubscription
            | ArchiveErrorKind::InvalidExtension
            | ArchiveErrorKind::InvalidPosition => ErrorKind::InvalidArgument,
            ArchiveErrorKind::Refused
            | ArchiveErrorKind::UnauthorisedAction
            | ArchiveErrorKind::IncompatibleVersion => ErrorKind::NotSupported,
            ArchiveErrorKind::Reentrant => ErrorKind::IllegalState,
            ArchiveErrorKind::BackPressured => ErrorKind::BackPressured,
            ArchiveErrorKind::ActiveListing
            | ArchiveErrorKind::ActiveRecording
            | ArchiveErrorKind::ActiveSubscription
            | ArchiveErrorKind::MaxReplays
            | ArchiveErrorKind::MaxRecordings
            | ArchiveErrorKind::StorageSpace
            | ArchiveErrorKind::ReplicationConnectionFailure
            | ArchiveErrorKind::EmptyRecording
            | ArchiveErrorKind::MalformedMessage
            | ArchiveErrorKind::NotConnected
            | ArchiveErrorKind::Timeout => ErrorKind::Archive,
        };
        let text = error.to_string();
        let text = text.strip_prefix(&format!("{kind}: ")).unwrap_or(&text);
        match error.close_cause() {
            Some(cause) => Self::closed(cause, text.to_owned()),
            None => Self::new(kind, text),
        }
    }
}

#[cfg(test)]
mod tests {
    use rusteron_client::CloseCause;

    use super::*;

    #[test]
    fn error_of_client_comes_back() {
        let closed = Error::closed(CloseCause::DriverShutdown, "closed".to_owned());
        let closed = Error::from(ArchiveError::from(closed));
        assert_eq!(closed.close_cause(), Some(CloseCause::DriverShutdown));
        assert_eq!(closed.to_string(), "client closed: closed");
        let invalid = ArchiveError::from(Error::new(ErrorKind::InvalidChannel, ""));
        assert!(!Error::from(invalid).is_transient());
        assert!(!Error::from(ArchiveError::invalid("test", "")).is_transient());
        // A lost connection ends the archive's client, and is nothing that passes by itself.
        let lost = Error::from(ArchiveError::new(ArchiveErrorKind::NotConnected, "test", ""));
        assert!(lost.is_transient() && !lost.is_retryable());
        let busy = ArchiveError::new(ArchiveErrorKind::BackPressured, "test", "");
        assert!(Error::from(busy).is_retryable());
    }

    #[test]
    fn permanent_errors_are_not_transient() {
        use ArchiveErrorKind::*;
        let permanent = [
            InvalidArgument,
            AuthenticationRejected,
            UnknownRecording,
            UnknownReplay,
            UnknownReplication,
            UnknownSubscription,
            InvalidExtension,
            InvalidPosition,
            Refused,
            UnauthorisedAction,
            IncompatibleVersion,
            Reentrant,
        ];
        let transient = [
            ActiveListing,
            ActiveRecording,
            ActiveSubscription,
            MaxReplays,
            MaxRecordings,
            StorageSpace,
            ReplicationConnectionFailure,
            EmptyRecording,
            MalformedMessage,
            NotConnected,
            BackPressured,
            Timeout,
        ];
        let permanent = permanent.map(|kind| (kind, false));
        for (kind, is_transient) in permanent.into_iter().chain(transient.map(|kind| (kind, true)))
        {
            let error = Error::from(ArchiveError::new(kind, "it", "the text"));
            assert_eq!(error.is_transient(), is_transient, "{kind:?}");
            assert!(error.message().ends_with("the text"), "{error}");
        }
    }
}
