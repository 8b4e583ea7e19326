//! Errors of archives, and the texts by which some of them are known.

mod client_error;
pub(crate) mod phrases;

use std::fmt;

use rusteron_client::{CloseCause, Error, ErrorKind};
use rusteron_core::printable::Printable;
use rusteron_sys::archive as sys;

use crate::ids::CorrelationId;

/// The result of an operation of an archive.
pub type Result<T, E = ArchiveError> = std::result::Result<T, E>;

/// A failed operation of an archive: its kind, the archive's number, the id of the operation, and
/// the text.
///
/// Errors of the client, such as a media driver that does not answer, have the kind
/// [`ArchiveErrorKind::Client`]. The operator `?` converts them.
///
/// It is one machine word, so that a `Result` of a handle stays small.
///
/// ```
/// use rusteron_archive::{Archive, ArchiveErrorKind, RecordingId, Result};
///
/// /// Returns where a recording begins, and `None` if there is no such recording.
/// fn begin_of(archive: &Archive, recording_id: RecordingId) -> Result<Option<i64>> {
///     match archive.start_position(recording_id) {
///         Ok(position) => Ok(Some(position)),
///         Err(error) if error.kind() == ArchiveErrorKind::UnknownRecording => Ok(None),
///         Err(error) => Err(error),
///     }
/// }
/// ```
#[doc(alias = "ArchiveException")]
#[derive(Clone)]
pub struct ArchiveError(Box<Content>);

#[derive(Clone)]
struct Content {
    kind: ArchiveErrorKind,
    code: i32,
    operation: &'static str,
    relevant_id: Option<i64>,
    correlation_id: Option<CorrelationId>,
    message: Box<str>,
    close_cause: Option<CloseCause>,
}

/// The kinds of [`ArchiveError`], independent of the wording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ArchiveErrorKind {
    /// The archive refused the request for a reason without a number; the text has the reason.
    Refused,
    /// The session is already in a listing, and can do one listing at a time.
    ActiveListing,
    /// The recording is active, and the operation does not allow that.
    ActiveRecording,
    /// The archive records the channel and stream already.
    ActiveSubscription,
    /// The archive does not know the subscription, or has none with the channel and stream.
    UnknownSubscription,
    /// The archive has no recording with this id.
    UnknownRecording,
    /// The archive does not know the replay.
    UnknownReplay,
    /// The archive already runs its maximum of replays.
    MaxReplays,
    /// The archive already runs its maximum of recordings.
    MaxRecordings,
    /// The stream does not continue the recording that it should extend.
    InvalidExtension,
    /// The archive does not accept the credentials.
    AuthenticationRejected,
    /// There is not enough space on the archive's storage.
    StorageSpace,
    /// The archive does not know the replication.
    UnknownReplication,
    /// The archive does not allow this client to do this.
    UnauthorisedAction,
    /// The archive could not connect to the source archive of a replication.
    ReplicationConnectionFailure,
    /// The recording is empty, and the operation needs data.
    EmptyRecording,
    /// The position is not in the recording, or no frame or segment begins there.
    InvalidPosition,
    /// The archive speaks another version of the protocol, or refuses this client's.
    IncompatibleVersion,
    /// A message cannot be decoded; the text says why. The archive sent it, or another publisher on
    /// the response stream. The message is passed over, and the session goes on.
    MalformedMessage,
    /// The connection to the archive was lost. Connect again.
    NotConnected,
    /// There is no space to send the request now. Poll for answers, and try again. Only requests that
    /// do not block return it.
    BackPressured,
    /// The archive did not answer within the message timeout.
    Timeout,
    /// An operation of an archive was called in a callback of an archive.
    Reentrant,
    /// An argument or a setting is out of its range; the text names it.
    InvalidArgument,
    /// The client failed, not the archive.
    Client(ErrorKind),
}

impl ArchiveError {
    pub(crate) fn new(
        kind: ArchiveErrorKind,
        operation: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self(Box::new(Content {
            kind,
            code: 0,
            operation,
            relevant_id: None,
            correlation_id: None,
            message: message.into().into(),
            close_cause: None,
        }))
    }

    /// Converts the error of a function of C's archive client.
    pub(crate) fn from_c(error: &Error, operation: &'static str) -> Self {
        let code = archive_code(error);
        let words = without_locations(error.message());
        let kind = code.and_then(|code| kind_of_code(code, &words));
        let kind = kind.unwrap_or_else(|| kind_of(error, &words));
        Self::answered(operation, kind, code, error.message(), words)
    }

    /// Creates the error for an argument that is refused before a request is sent.
    pub(crate) fn invalid(operation: &'static str, text: impl Into<String>) -> Self {
        Self::new(ArchiveErrorKind::InvalidArgument, operation, text)
    }

    /// Creates the error for a report of the archive that belongs to no request. Its number is
    /// moved up by 200.
    pub(crate) fn reported(operation: &'static str, code: i32, text: &str) -> Self {
        const GENERIC: i32 = sys::AERON_ARCHIVE_ERROR_CODE_GENERIC as i32;
        let words = without_locations(text);
        let known = kind_of_code(code, &words);
        let kind = known.or_else(|| kind_of_code(GENERIC, &words));
        let kind = kind.unwrap_or(ArchiveErrorKind::Refused);
        Self::answered(operation, kind, known.map(|_| code), text, words)
    }

    fn answered(
        operation: &'static str,
        kind: ArchiveErrorKind,
        code: Option<i32>,
        text: &str,
        words: String,
    ) -> Self {
        let mut content = Self::new(kind, operation, words).0;
        content.code = code.unwrap_or(0);
        content.relevant_id = named_recording(kind, &content.message);
        content.correlation_id = number_after(text, phrases::CORRELATION_ID)
            .or_else(|| number_after(text, phrases::LISTING_CORRELATION_ID))
            .map(CorrelationId::new);
        Self(content)
    }

    /// Adds the id that the operation was about, unless the archive has named the offending id: a
    /// request can have several.
    pub(crate) fn about(mut self, relevant_id: Option<i64>) -> Self {
        self.0.relevant_id = self.0.relevant_id.or(relevant_id);
        self
    }

    /// Replaces the text.
    pub(crate) fn saying(mut self, message: impl Into<Box<str>>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Sets the operation that failed.
    pub(crate) fn during(mut self, operation: &'static str) -> Self {
        self.0.operation = operation;
        self
    }

    /// Sets the correlation id of the refused request.
    pub(crate) fn answering(mut self, correlation_id: CorrelationId) -> Self {
        self.0.correlation_id = Some(correlation_id);
        self
    }

    /// Returns whether the condition passes by itself, so that the same call can succeed later.
    ///
    /// True for [`BackPressured`](ArchiveErrorKind::BackPressured) only.
    pub fn is_retryable(&self) -> bool {
        self.kind() == ArchiveErrorKind::BackPressured
    }

    /// Returns the kind: by the archive's number if there is one, by C's number, or by the words.
    ///
    /// Has no counterpart in C, which has a number for some of the kinds only.
    pub fn kind(&self) -> ArchiveErrorKind {
        self.0.kind
    }

    /// Returns the archive's number for the failure, from 200 (words only) to 216, as in
    /// `aeron_archive_client_error.h`. Returns 0 if the archive does not report the failure, or
    /// reports it only in words, as when it refuses a connection. The [kind](Self::kind) has the
    /// numbers of the client and of the system.
    ///
    /// Corresponds to `aeron_errcode`, without its sign and the numbers that are not the archive's.
    #[doc(alias = "aeron_errcode")]
    pub fn code(&self) -> i32 {
        self.0.code
    }

    /// Returns the id that the operation was about: of a recording, a replay, a replication or a
    /// subscription.
    ///
    /// For an [unknown recording](ArchiveErrorKind::UnknownRecording), it is the id in the
    /// archive's text, which matters for methods with two recordings. Otherwise it is the id that
    /// was passed to the method. `None` if there was no id, or if the id was refused.
    ///
    /// Has no counterpart in C.
    pub fn relevant_id(&self) -> Option<i64> {
        self.0.relevant_id
    }

    /// Returns the correlation id of the request that the archive refused. The archive's own log
    /// has the same id.
    ///
    /// Corresponds to a part of the text of `aeron_errmsg`.
    #[doc(alias = "aeron_errmsg")]
    pub fn correlation_id(&self) -> Option<CorrelationId> {
        self.0.correlation_id
    }

    /// Returns the name of the failed method, or of the object behind it: `replay_merge`,
    /// `persistent_subscription`, `listing`. For an error that the archive reports without a
    /// request, the name is `archive`.
    ///
    /// Corresponds to the functions that `aeron_errmsg` names.
    #[doc(alias = "aeron_errmsg")]
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// Returns the reason why the Aeron client is closed, if it is.
    pub fn close_cause(&self) -> Option<CloseCause> {
        self.0.close_cause
    }

    /// Returns the text of the archive or of the client.
    ///
    /// Corresponds to `aeron_errmsg`, without locations in C's sources and without numbers.
    #[doc(alias = "aeron_errmsg")]
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl ArchiveErrorKind {
    /// Converts a number of the archive, which C moves up by 200.
    pub(crate) fn from_code(code: i32) -> Option<Self> {
        Some(match u32::try_from(code).ok()? {
            sys::AERON_ARCHIVE_ERROR_CODE_GENERIC => Self::Refused,
            sys::AERON_ARCHIVE_ERROR_CODE_ACTIVE_LISTING => Self::ActiveListing,
            sys::AERON_ARCHIVE_ERROR_CODE_ACTIVE_RECORDING => Self::ActiveRecording,
            sys::AERON_ARCHIVE_ERROR_CODE_ACTIVE_SUBSCRIPTION => Self::ActiveSubscription,
            sys::AERON_ARCHIVE_ERROR_CODE_UNKNOWN_SUBSCRIPTION => Self::UnknownSubscription,
            sys::AERON_ARCHIVE_ERROR_CODE_UNKNOWN_RECORDING => Self::UnknownRecording,
            sys::AERON_ARCHIVE_ERROR_CODE_UNKNOWN_REPLAY => Self::UnknownReplay,
            sys::AERON_ARCHIVE_ERROR_CODE_MAX_REPLAYS => Self::MaxReplays,
            sys::AERON_ARCHIVE_ERROR_CODE_MAX_RECORDINGS => Self::MaxRecordings,
            sys::AERON_ARCHIVE_ERROR_CODE_INVALID_EXTENSION => Self::InvalidExtension,
            sys::AERON_ARCHIVE_ERROR_CODE_AUTHENTICATION_REJECTED => Self::AuthenticationRejected,
            sys::AERON_ARCHIVE_ERROR_CODE_STORAGE_SPACE => Self::StorageSpace,
            sys::AERON_ARCHIVE_ERROR_CODE_UNKNOWN_REPLICATION => Self::UnknownReplication,
            sys::AERON_ARCHIVE_ERROR_CODE_UNAUTHORISED_ACTION => Self::UnauthorisedAction,
            sys::AERON_ARCHIVE_ERROR_CODE_REPLICATION_CONNECTION_FAILURE => {
                Self::ReplicationConnectionFailure
            }
            sys::AERON_ARCHIVE_ERROR_CODE_EMPTY_RECORDING => Self::EmptyRecording,
            sys::AERON_ARCHIVE_ERROR_CODE_INVALID_POSITION => Self::InvalidPosition,
            _ => return None,
        })
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Refused => "refused by the archive",
            Self::ActiveListing => "a listing is active already",
            Self::ActiveRecording => "the recording is active",
            Self::ActiveSubscription => "the stream is recorded already",
            Self::UnknownSubscription => "unknown subscription",
            Self::UnknownRecording => "unknown recording",
            Self::UnknownReplay => "unknown replay",
            Self::MaxReplays => "too many replays",
            Self::MaxRecordings => "too many recordings",
            Self::InvalidExtension => "invalid extension",
            Self::AuthenticationRejected => "authentication rejected",
            Self::StorageSpace => "insufficient storage space",
            Self::UnknownReplication => "unknown replication",
            Self::UnauthorisedAction => "unauthorised action",
            Self::ReplicationConnectionFailure => "no connection to the source archive",
            Self::EmptyRecording => "empty recording",
            Self::InvalidPosition => "invalid position",
            Self::IncompatibleVersion => "incompatible version",
            Self::MalformedMessage => "malformed message",
            Self::NotConnected => "not connected to the archive",
            Self::BackPressured => "back pressured",
            Self::Timeout => "timeout",
            Self::Reentrant => "called in a callback of an archive",
            Self::InvalidArgument => "invalid argument",
            Self::Client(_) => "client",
        }
    }
}

/// Returns the archive's number, moved up by 200, if the archive reports the error.
///
/// C passes the number on in two ways. Mostly it is negated and moved up; from listings and merges
/// it comes as it is.
fn archive_code(error: &Error) -> Option<i32> {
    let is_known = |code: &i32| ArchiveErrorKind::from_code(*code).is_some();
    let negated = error.code().checked_neg().filter(is_known);
    if negated.is_some() {
        return negated;
    }
    // The answer says only that there is no such recording or subscription.
    match number_after(error.message(), phrases::RESPONSE_CODE) {
        Some(2) => return Some(sys::AERON_ARCHIVE_ERROR_CODE_UNKNOWN_RECORDING as i32),
        Some(3) => return Some(sys::AERON_ARCHIVE_ERROR_CODE_UNKNOWN_SUBSCRIPTION as i32),
        _ => {}
    }
    let as_it_is = error.message().contains(phrases::LISTING_CORRELATION_ID);
    error.code().checked_add(200).filter(|code| as_it_is && is_known(code))
}

/// Returns the kind for a number of the archive. The text tells more than the number of refusals
/// for no particular reason.
fn kind_of_code(code: i32, words: &str) -> Option<ArchiveErrorKind> {
    match ArchiveErrorKind::from_code(code)? {
        ArchiveErrorKind::Refused => phrases::kind(words).or(Some(ArchiveErrorKind::Refused)),
        kind => Some(kind),
    }
}

/// Returns the kind of an error that C itself reports.
fn kind_of(error: &Error, words: &str) -> ArchiveErrorKind {
    const REENTRANT: i32 = -(sys::AERON_ARCHIVE_CLIENT_ERROR_REENTRANT_CALL as i32);
    const NOT_CONNECTED: i32 = -(sys::AERON_ARCHIVE_CLIENT_ERROR_NOT_CONNECTED as i32);
    const ILLEGAL_STATE: i32 = -(sys::AERON_ARCHIVE_CLIENT_ERROR_ILLEGAL_STATE as i32);
    match error.code() {
        REENTRANT => return ArchiveErrorKind::Reentrant,
        sys::RUSTERON_ARCHIVE_MALFORMED_MESSAGE => return ArchiveErrorKind::MalformedMessage,
        // The second says that the first was reported before.
        NOT_CONNECTED | ILLEGAL_STATE => return ArchiveErrorKind::NotConnected,
        _ => {}
    }
    phrases::kind(words).unwrap_or(match error.kind() {
        ErrorKind::Io(std::io::ErrorKind::TimedOut) => ArchiveErrorKind::Timeout,
        ErrorKind::Io(std::io::ErrorKind::NotConnected) => ArchiveErrorKind::NotConnected,
        ErrorKind::InvalidArgument => ArchiveErrorKind::InvalidArgument,
        kind => ArchiveErrorKind::Client(kind),
    })
}

/// Returns the text without locations in C's sources and without numbers that the error has
/// elsewhere. Such numbers begin the first line, and the lines with Aeron's numbers. Other numbers
/// belong to the operating system's text, and stay.
fn without_locations(text: &str) -> String {
    let lines = text.lines().map(str::trim).enumerate().filter_map(|(index, line)| {
        let words = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((_location, words)) => words.trim(),
            None if index == 0 && line.starts_with('(') || line.starts_with("(-") => "",
            None => line,
        };
        let words = words.split_once(phrases::ERROR_TEXT).map_or(words, |(_numbers, words)| words);
        (!words.is_empty()).then_some(words)
    });
    lines.collect::<Vec<_>>().join(": ")
}

/// Returns the id of the unknown recording in the archive's text.
fn named_recording(kind: ArchiveErrorKind, words: &str) -> Option<i64> {
    let is_unknown = kind == ArchiveErrorKind::UnknownRecording;
    is_unknown.then(|| number_after(words, phrases::RECORDING_ID)).flatten()
}

/// Returns the number behind a name. A colon or spaces can stand between them.
fn number_after(text: &str, name: &str) -> Option<i64> {
    let (_, rest) = text.split_once(name)?;
    let rest = rest.trim_start_matches([':', ' ']);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

impl fmt::Display for ArchiveErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}

/// One line: the operation, its id, the kind, the archive's text with control characters escaped,
/// and its number.
impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            ArchiveErrorKind::Client(_) if self.operation() == "client" => {
                return Printable(self.message()).fmt(f);
            }
            kind => write!(f, "{}: {kind}", self.operation())?,
        }
        let id = self.relevant_id();
        if let Some(id) = id {
            write!(f, " (id {id})")?;
        }
        // All that the archive says of most unknown recordings.
        let is_said = id.is_some_and(|id| self.message() == format!("unknown recording id: {id}"));
        if !self.message().is_empty() && !is_said {
            write!(f, ": {}", Printable(self.message()))?;
        }
        match self.code() {
            0 => Ok(()),
            code => write!(f, " (archive error {code})"),
        }
    }
}

rusteron_core::debug_as_display!(ArchiveError);

impl std::error::Error for ArchiveError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_is_one_word() {
        assert_eq!(size_of::<ArchiveError>(), size_of::<usize>());
    }

    #[test]
    fn codes_have_distinct_kinds() {
        let kinds: std::collections::HashSet<_> =
            (200..=216).map(|code| ArchiveErrorKind::from_code(code).expect("a kind")).collect();
        assert_eq!(kinds.len(), 17);
        assert_eq!(ArchiveErrorKind::from_code(217), None);
        assert_eq!(ArchiveErrorKind::from_code(-205), None);
    }

    #[test]
    fn kind_of_code_or_text() {
        use ArchiveErrorKind::*;
        let cases = [
            (-205, "response for correlationId=3, errorCode=5, error: no", UnknownRecording, 205),
            (-200, "error: invalid position 7", InvalidPosition, 200),
            (5, "correlation_id=3 unknown", UnknownRecording, 205),
            (i32::MAX, "correlation_id=3 x", Client(ErrorKind::Io(unknown_errno())), 0),
            (i32::MIN, "x", Client(ErrorKind::Other), 0),
            (22, "unexpected response code: 2", UnknownRecording, 205),
            (22, "invalid client version 0.1.0, archive is 1.11.0", IncompatibleVersion, 0),
            (-1, "found schema id: 9 that doesn't match expected id: 101", IncompatibleVersion, 0),
            (22, "channel", InvalidArgument, 0),
            (-1, "channel", Client(ErrorKind::InvalidChannel), 0),
            (-2000, "x", Reentrant, 0),
            (-2001, "x", NotConnected, 0),
        ];
        for (code, text, kind, archive_code) in cases {
            let error = ArchiveError::from_c(&Error::from_code(code, text), "it");
            assert_eq!((error.kind(), error.code()), (kind, archive_code), "{code} {text}");
        }
    }

    #[test]
    fn unknown_recording_id() {
        let cases = [
            (-205, "errorCode=5, error: unknown recording id: 99", Some(99)),
            (-205, "errorCode=5, error: unknown destination recording id 88", Some(88)),
            (-205, "errorCode=5, error: unknown recording id", Some(0)),
            (22, "unexpected response code: 2", Some(0)),
            // Another recording than the one that is wrong, or no recording.
            (-202, "errorCode=2, error: recording id 99 is active", Some(0)),
            (-204, "errorCode=4, error: unknown subscription id: 99", Some(0)),
        ];
        for (code, text, id) in cases {
            let error = ArchiveError::from_c(&Error::from_code(code, text), "it").about(Some(0));
            assert_eq!(error.relevant_id(), id, "{text}");
        }
        let reported = ArchiveError::reported("it", 205, "unknown recording id: 99");
        assert_eq!(reported.relevant_id(), Some(99));
        assert_eq!(reported.about(Some(7)).relevant_id(), Some(99));
    }

    fn unknown_errno() -> std::io::ErrorKind {
        std::io::Error::from_raw_os_error(i32::MAX).kind()
    }

    #[test]
    fn text_of_os_error() {
        let text = "(-11) generic error, see message\n[f, aeron_client.c:1] registration error\n\
                    (98) Address already in use\n[g, aeron_udp.c:2] failed to bind";
        let words = "registration error: (98) Address already in use: failed to bind";
        assert_eq!(without_locations(text), words);
    }

    #[test]
    fn text_without_locations() {
        let text = "(-205) unknown error code\n\
                    [aeron_archive_poll_for_response, aeron_archive_client.c:2179] response for \
                    correlationId=17, errorCode=5, error: unknown recording id: 3\n\
                    [aeron_archive_truncate_recording, aeron_archive_client.c:1700] ";
        assert_eq!(without_locations(text), "unknown recording id: 3");
        assert_eq!(number_after(text, "correlationId="), Some(17));
        assert_eq!(number_after("correlation_id=-1 x", "correlation_id="), Some(-1));
        assert_eq!(number_after("nothing", "correlationId="), None);
    }
}
