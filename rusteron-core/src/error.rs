//! Errors: of calls that may wait, and of the message path.

mod close_cause;
mod offer_error;
mod phrases;

use std::fmt;
use std::io;

use rusteron_sys as sys;

use crate::printable::Printable;

pub use close_cause::{CloseCause, SessionEnd};
pub use offer_error::{BlockFault, Mismatch, OfferError, PollError, Position};
#[doc(hidden)]
pub use phrases::{exhausted, is_full};

/// The result of every operation outside the message path.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed operation: its kind, Aeron's error number and Aeron's own text.
///
/// The text is captured when the operation fails. An `Error` is one machine word, so a `Result` of
/// a handle stays small.
///
/// ```
/// use rusteron_client::{Aeron, Context, Error, ErrorKind};
///
/// /// Connects, and returns `None` if no media driver runs.
/// fn connect(context: Context) -> Result<Option<Aeron>, Error> {
///     match Aeron::connect(context) {
///         Ok(aeron) => Ok(Some(aeron)),
///         Err(error) if error.kind() == ErrorKind::DriverTimeout => Ok(None),
///         Err(error) => Err(error),
///     }
/// }
/// ```
#[doc(alias(
    "AeronException",
    "DriverTimeoutException",
    "RegistrationException",
    "aeron_errcode",
    "aeron_errmsg"
))]
#[derive(Clone)]
pub struct Error(Box<Content>);

#[derive(Clone)]
struct Content {
    kind: ErrorKind,
    code: i32,
    message: Box<str>,
    close_cause: Option<CloseCause>,
}

/// Makes [`ErrorKind`] of a table: each kind with its text and the code that only it has.
macro_rules! error_kinds {
    ($($(#[$doc:meta])+ $kind:ident = $text:literal $(, $code:ident)?;)+) => {
        /// The kinds of [`Error`], independent of the wording.
        #[doc(alias = "ErrorCode")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[$doc])+ $kind,)+
            /// The operating system refused an operation.
            Io(io::ErrorKind),
            /// An Aeron error without a kind of its own.
            Other,
        }

        impl ErrorKind {
            fn from_aeron_code(code: u32) -> Self {
                match code {
                    $($(sys::$code => Self::$kind,)?)+
                    200..=299 | 2000..=2099 => Self::Archive,
                    _ => Self::Other,
                }
            }
        }

        impl fmt::Display for ErrorKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$kind => f.write_str($text),)+
                    // The standard library has no kind for some codes, and says so.
                    Self::Io(kind) if *kind == uncategorized() => {
                        f.write_str("operating system error")
                    }
                    Self::Io(kind) => write!(f, "{kind}"),
                    Self::Other => f.write_str("error"),
                }
            }
        }
    };
}

error_kinds! {
    /// An argument or a setting is out of its range. The text names it.
    InvalidArgument = "invalid argument";
    /// No media driver answered within the driver timeout, or the driver has stopped.
    DriverTimeout = "driver timeout", AERON_CLIENT_ERROR_DRIVER_TIMEOUT;
    /// The media driver heard nothing from this client in time, and regards the client as dead.
    ClientTimeout = "client timeout", AERON_CLIENT_ERROR_CLIENT_TIMEOUT;
    /// The client's conductor thread was not scheduled for longer than the driver tolerates.
    ConductorServiceTimeout = "conductor service timeout", AERON_CLIENT_ERROR_CONDUCTOR_SERVICE_TIMEOUT;
    /// The command queue of the client's own conductor is full. The operation can be repeated.
    BufferFull = "client command buffer full", AERON_CLIENT_ERROR_BUFFER_FULL;
    /// The command queue of the media driver is full. The operation can be repeated.
    DriverBufferFull = "driver command buffer full", AERON_CLIENT_ERROR_DRIVER_BUFFER_FULL;
    /// A message was rejected: no subscriber is connected. The operation can be repeated.
    NotConnected = "not connected";
    /// A message was rejected: back pressure. The operation can be repeated.
    BackPressured = "back-pressured";
    /// A message was rejected: the log buffer is being rotated. The operation can be repeated.
    AdminAction = "admin action";
    /// A message was rejected: the media driver has unblocked its range. The operation can be
    /// repeated.
    Unblocked = "unblocked";
    /// A message was rejected: the stream has reached its maximum position. Add a new publication.
    MaxPositionExceeded = "maximum position exceeded";
    /// The metadata of a publication's log buffer is not what the media driver and publishers write
    /// there: another process has overwritten it. Add a new publication.
    CorruptLogBuffer = "corrupt log buffer";
    /// The client is closed, or a fatal error has ended it. Make a new client.
    ClientClosed = "client closed", AERON_CLIENT_ERROR_CLIENT_ILLEGAL_STATE;
    /// The client fell too far behind the media driver's broadcasts.
    BroadcastReceiverIllegalState = "broadcast receiver fell behind", AERON_CLIENT_ERROR_BROADCAST_RECEIVER_ILLEGAL_STATE;
    /// The media driver of the directory has another version of the protocol.
    IncompatibleDriver = "incompatible driver";
    /// Another media driver is running in the directory.
    ActiveDriver = "active media driver";
    /// The media driver of the directory died so recently that it still counts as running.
    StaleDirectory = "stale directory";
    /// The channel URI is not valid, or the media driver rejects it.
    InvalidChannel = "invalid channel", AERON_ERROR_CODE_INVALID_CHANNEL;
    /// The media driver does not know the subscription.
    UnknownSubscription = "unknown subscription", AERON_ERROR_CODE_UNKNOWN_SUBSCRIPTION;
    /// The media driver does not know the publication.
    UnknownPublication = "unknown publication", AERON_ERROR_CODE_UNKNOWN_PUBLICATION;
    /// A socket of the channel could not be set up.
    ChannelEndpoint = "channel endpoint error", AERON_ERROR_CODE_CHANNEL_ENDPOINT_ERROR;
    /// The media driver does not know the counter.
    UnknownCounter = "unknown counter", AERON_ERROR_CODE_UNKNOWN_COUNTER;
    /// The media driver does not know the command.
    UnknownCommand = "unknown command", AERON_ERROR_CODE_UNKNOWN_COMMAND_TYPE_ID;
    /// The media driver could not read the command.
    MalformedCommand = "malformed command", AERON_ERROR_CODE_MALFORMED_COMMAND;
    /// The media driver does not support the operation.
    NotSupported = "not supported", AERON_ERROR_CODE_NOT_SUPPORTED;
    /// A host name could not be resolved.
    UnknownHost = "unknown host", AERON_ERROR_CODE_UNKNOWN_HOST;
    /// A resource of the media driver is temporarily unavailable. The operation can be repeated.
    ResourceTemporarilyUnavailable = "resource temporarily unavailable", AERON_ERROR_CODE_RESOURCE_TEMPORARILY_UNAVAILABLE;
    /// There is not enough space for the log buffers.
    StorageSpace = "insufficient storage space", AERON_ERROR_CODE_STORAGE_SPACE;
    /// A subscriber rejected the image.
    ImageRejected = "image rejected", AERON_ERROR_CODE_IMAGE_REJECTED;
    /// The publication has been revoked.
    PublicationRevoked = "publication revoked", AERON_ERROR_CODE_PUBLICATION_REVOKED;
    /// The archive reported an error. [`Error::code`] is the archive's own code, negated.
    Archive = "archive error";
    /// A blocking operation was called from a callback on the conductor thread. The operation would
    /// wait for its own thread.
    CalledFromConductor = "called from a conductor callback";
    /// The operation does not fit the state of its object. Example: a finished registration is
    /// polled again.
    IllegalState = "illegal state";
}

impl Error {
    /// Makes an error that arises on the Rust side of the FFI.
    #[doc(hidden)]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self::with_code(kind, 0, message.into())
    }

    /// Makes an error from a number and a text that C reports directly. C leaves other errors in a
    /// thread-local of the calling thread.
    #[doc(hidden)]
    pub fn from_code(code: i32, message: impl Into<String>) -> Self {
        let message = message.into();
        let kind = match ErrorKind::from_code(code) {
            // The driver passes on errors that it has no code for, together with their cause.
            ErrorKind::Other => ErrorKind::of_cause(&message).unwrap_or(ErrorKind::Other),
            kind => kind,
        };
        Self::with_code(kind, code, message)
    }

    /// Makes an error that C reports through a callback. C passes the code without its sign.
    pub fn from_callback(code: i32, message: String) -> Self {
        Self::from_code(code.wrapping_neg(), message)
    }

    /// Returns the same failure with a kind that is more precise than its number.
    #[doc(hidden)]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Returns the same failure with one more line of text.
    #[doc(hidden)]
    pub fn with_line(mut self, line: &str) -> Self {
        self.0.message = format!("{}\n{line}", self.0.message).into();
        self
    }

    fn with_code(kind: ErrorKind, code: i32, message: String) -> Self {
        Self(Box::new(Content { kind, code, message: message.into(), close_cause: None }))
    }

    /// Makes an error of a closed client. The text names the cause.
    pub fn closed(cause: CloseCause, message: String) -> Self {
        let mut error = Self::new(ErrorKind::ClientClosed, message);
        error.0.close_cause = Some(cause);
        error
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns Aeron's error number.
    ///
    /// The number is negative for Aeron's own codes and positive for an `errno`. It is 0 if the
    /// failure was noticed before C was called.
    pub fn code(&self) -> i32 {
        self.0.code
    }

    /// Returns the whole text, with the places in Aeron's source that it comes from, one per line.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the reason why the client is closed, if the kind is [`ErrorKind::ClientClosed`].
    pub fn close_cause(&self) -> Option<CloseCause> {
        self.0.close_cause
    }

    /// Returns whether the same call may succeed if it is simply repeated, with the same handle.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::BufferFull
                | ErrorKind::DriverBufferFull
                | ErrorKind::ResourceTemporarilyUnavailable
                | ErrorKind::NotConnected
                | ErrorKind::BackPressured
                | ErrorKind::AdminAction
                | ErrorKind::Unblocked
        )
    }

    /// Returns whether a later attempt with the same arguments may succeed: see
    /// [`ErrorKind::is_transient`].
    pub fn is_transient(&self) -> bool {
        self.kind().is_transient()
    }
}

impl ErrorKind {
    /// Returns whether a later attempt with the same arguments may succeed, with a client or handle
    /// made anew if this one is closed: after a driver, a peer or the network has come back.
    ///
    /// False for what stays until the user changes the program, its settings, or the media driver's:
    /// - [`InvalidArgument`](Self::InvalidArgument) and
    ///   [`InvalidChannel`](Self::InvalidChannel);
    /// - [`IncompatibleDriver`](Self::IncompatibleDriver),
    ///   [`NotSupported`](Self::NotSupported),
    ///   [`UnknownCommand`](Self::UnknownCommand) and
    ///   [`MalformedCommand`](Self::MalformedCommand);
    /// - [`CalledFromConductor`](Self::CalledFromConductor) and
    ///   [`IllegalState`](Self::IllegalState);
    /// - [`Io`](Self::Io) with [`NotADirectory`](io::ErrorKind::NotADirectory),
    ///   [`PermissionDenied`](io::ErrorKind::PermissionDenied) or
    ///   [`ReadOnlyFilesystem`](io::ErrorKind::ReadOnlyFilesystem).
    ///
    /// True for all others, also for errors without a kind of their own: an attempt too many costs
    /// less than a service that has stopped. Each [retryable](Error::is_retryable) error is transient.
    ///
    /// The client's `Reconnect` decides by this.
    pub fn is_transient(self) -> bool {
        !matches!(
            self,
            Self::InvalidArgument
                | Self::InvalidChannel
                | Self::IncompatibleDriver
                | Self::NotSupported
                | Self::UnknownCommand
                | Self::MalformedCommand
                | Self::CalledFromConductor
                | Self::IllegalState
                | Self::Io(
                    io::ErrorKind::NotADirectory
                        | io::ErrorKind::PermissionDenied
                        | io::ErrorKind::ReadOnlyFilesystem
                )
        )
    }

    fn from_code(code: i32) -> Self {
        match code {
            0 => Self::Other,
            1.. => Self::from_errno(code),
            ..0 => Self::from_aeron_code(code.unsigned_abs()),
        }
    }

    /// Returns the kind of the first OS error code in the text.
    fn of_cause(message: &str) -> Option<Self> {
        errno_of_cause(message).map(Self::from_errno)
    }

    fn from_errno(errno: i32) -> Self {
        // `ERANGE`: a number is too large for its type. The value is the same on all operating
        // systems.
        const ERANGE: i32 = 34;
        if errno == ERANGE {
            return Self::InvalidArgument;
        }
        let error = io::Error::from_raw_os_error(errno);
        match error.kind() {
            io::ErrorKind::InvalidInput => Self::InvalidArgument,
            _ if is_full(&error) => Self::StorageSpace,
            kind => Self::Io(kind),
        }
    }
}

/// Writes one line: the kind, then Aeron's description with control characters escaped, then
/// Aeron's number. `Debug` writes the same.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind())?;
        match phrases::explain(self.kind(), self.message()) {
            Some(text) => write!(f, ": {}", Printable(text))?,
            None => {
                self.write_lines(f)?;
                if let Some(advice) = self.errno().and_then(exhausted) {
                    write!(f, ": {advice}")?;
                }
            }
        }
        const GENERIC: i32 = -(sys::AERON_ERROR_CODE_GENERIC_ERROR as i32);
        match self.code() {
            0 | GENERIC => Ok(()),
            code => write!(f, " (Aeron error {code})"),
        }
    }
}

impl Error {
    /// Returns the operating system's error number, if the failure is its.
    fn errno(&self) -> Option<i32> {
        match self.code() {
            code @ 1.. => Some(code),
            _ => errno_of_cause(self.message()),
        }
    }

    /// Writes the lines that say something new.
    fn write_lines(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = "";
        for (index, line) in self.message().lines().enumerate() {
            let text = self.description(index == 0, line);
            if !text.is_empty() && text != last {
                write!(f, ": {}", Printable(text))?;
                last = text;
            }
        }
        Ok(())
    }

    /// Returns a line of Aeron's text without `[function, file:line]`.
    ///
    /// The result is empty for what other parts of a displayed error say: a line `(code) summary`,
    /// unless it is a cause of another kind than this error or of no kind that has words, and the C
    /// client's heading above the driver's text.
    fn description<'a>(&self, is_first: bool, line: &'a str) -> &'a str {
        let line = line.trim();
        let text = match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((_, text)) => text.trim(),
            None if line.starts_with('[') && line.ends_with(']') => "",
            None => line,
        };
        if let Some(number) = numbered(text) {
            if number > 0 && self.kind() == ErrorKind::Io(uncategorized()) {
                return text;
            }
            let is_of_kind = ErrorKind::from_code(number) == self.kind();
            let is_repeated = is_of_kind || number == self.code() || is_first && number <= 0;
            return if is_repeated { "" } else { text };
        }
        if phrases::is_heading(text) { "" } else { text }
    }
}

/// Returns the kind of OS error codes that the standard library has no kind for. It has no stable name.
fn uncategorized() -> io::ErrorKind {
    io::Error::from_raw_os_error(i32::MAX).kind()
}

/// Returns the first OS error code in the text.
fn errno_of_cause(message: &str) -> Option<i32> {
    message.lines().filter_map(numbered).find(|&number| number > 0)
}

/// Returns the number of a line of the form `(number) summary`.
fn numbered(line: &str) -> Option<i32> {
    let (number, _summary) = line.trim().strip_prefix('(')?.split_once(')')?;
    number.parse().ok()
}

crate::debug_as_display!(Error);

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Io(kind) => kind,
            ErrorKind::InvalidArgument | ErrorKind::InvalidChannel => io::ErrorKind::InvalidInput,
            ErrorKind::DriverTimeout => io::ErrorKind::TimedOut,
            ErrorKind::NotConnected => io::ErrorKind::NotConnected,
            ErrorKind::BackPressured | ErrorKind::AdminAction => io::ErrorKind::WouldBlock,
            ErrorKind::StorageSpace => io::ErrorKind::StorageFull,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_machine_word() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn display_is_one_line() {
        let error = Error::with_code(
            ErrorKind::DriverTimeout,
            -1000,
            "(-1000) driver timeout\n[connect, aeronc.c:91] CnC file not created: /tmp/x\n[f, g.c:1]"
                .into(),
        );
        assert_eq!(
            error.to_string(),
            "driver timeout: CnC file not created: /tmp/x (Aeron error -1000)"
        );
        assert!(error.message().contains("aeronc.c:91"));
    }

    #[test]
    fn display_escapes_control_characters() {
        let error = Error::new(ErrorKind::Other, "a\u{1b}[2J\rb\nc\u{202e}");
        assert_eq!(error.to_string(), r"error: a\u{1b}[2J\rb: c\u{202e}");
    }

    #[test]
    fn error_without_code_has_kind_of_cause() {
        let text = "(-11) generic error, see message\n\
                    [poll, aeron_client.c:1] async_add_publication registration error\n\
                    (98) Address already in use\n[bind, aeron_udp.c:2] failed to bind";
        let error = Error::from_code(-11, text);
        assert_eq!(error.kind(), ErrorKind::Io(io::ErrorKind::AddrInUse));
        assert_eq!(error.to_string(), "address in use: failed to bind");
        let error = error.with_kind(ErrorKind::ChannelEndpoint);
        assert_eq!(
            error.to_string(),
            "channel endpoint error: (98) Address already in use: failed to bind"
        );
        assert_eq!(format!("{error:?}"), error.to_string());
        assert_eq!(Error::from_code(-11, "(-11) generic error").kind(), ErrorKind::Other);
    }

    #[test]
    fn cause_without_kind_keeps_its_words() {
        let cause = "(19) No such device\n[join, aeron_udp.c:2] failed to join";
        let expected = "operating system error: (19) No such device: failed to join";
        let error = Error::from_code(-11, format!("(-11) generic error\n{cause}"));
        assert_eq!(error.to_string(), expected);
        assert_eq!(Error::from_code(19, cause).to_string(), format!("{expected} (Aeron error 19)"));
    }

    #[test]
    fn exhausted_resource_names_its_limit() {
        for (cause, expected) in [
            ("(24) Too many open files", "LimitNOFILE="),
            ("(23) Too many open files in system", "fs.file-max"),
            ("(12) Cannot allocate memory", "MemoryMax="),
            ("(28) No space left on device", "free space on the file system"),
        ] {
            let text =
                format!("{cause}\n[aeron_open, aeron_fileutil.c:1] failed to open: x.logbuffer");
            let of_client = Error::from_callback(11, text.clone());
            let of_driver = Error::from_code(-11, format!("(-11) generic error\n{text}"));
            for error in [of_client, of_driver] {
                let error = error.to_string();
                assert!(error.contains("x.logbuffer: ") && error.contains(expected), "{error}");
            }
        }
        let other = Error::from_code(2, "(2) No such file or directory\n[f, g.c:1] x");
        assert_eq!(other.to_string(), "entity not found: x (Aeron error 2)");
    }

    /// When C calls its error handler, C passes -11 instead of an OS error number.
    #[test]
    fn callback_error_reads_first_line() {
        let text = "(98) Address already in use\n[aeron_open_file, aeron_fileutil.c:1] x.logbuffer";
        let error = Error::from_callback(11, text.to_owned());
        assert_eq!(error.kind(), ErrorKind::Io(io::ErrorKind::AddrInUse));
        assert_eq!(error.to_string(), "address in use: x.logbuffer");
    }

    #[test]
    fn codes_of_every_origin_get_their_kind() {
        let cases = [
            (-1000, ErrorKind::DriverTimeout),
            (-1005, ErrorKind::ClientClosed),
            (-1, ErrorKind::InvalidChannel),
            (-12, ErrorKind::StorageSpace),
            (-205, ErrorKind::Archive),
            (-2001, ErrorKind::Archive),
            (-11, ErrorKind::Other),
            (0, ErrorKind::Other),
            (22, ErrorKind::InvalidArgument),
            (34, ErrorKind::InvalidArgument),
            (28, ErrorKind::StorageSpace),
            (2, ErrorKind::Io(io::ErrorKind::NotFound)),
            (i32::MIN, ErrorKind::Other),
        ];
        for (code, kind) in cases {
            assert_eq!(ErrorKind::from_code(code), kind, "code {code}");
        }
        #[cfg(unix)]
        {
            let error = Error::from_code(libc::EDQUOT, "the quota");
            assert_eq!(error.kind(), ErrorKind::StorageSpace);
            assert!(error.to_string().contains("free space on the file system"), "{error}");
        }
    }

    #[test]
    fn io_error_has_kind_and_text() {
        for (kind, expected) in [
            (ErrorKind::Io(io::ErrorKind::AddrInUse), io::ErrorKind::AddrInUse),
            (ErrorKind::DriverTimeout, io::ErrorKind::TimedOut),
            (ErrorKind::InvalidChannel, io::ErrorKind::InvalidInput),
            (ErrorKind::IllegalState, io::ErrorKind::Other),
        ] {
            let error = Error::new(kind, "what it says");
            let words = error.to_string();
            let error = io::Error::from(error);
            assert_eq!((error.kind(), error.to_string()), (expected, words));
        }
    }

    #[test]
    fn errors_that_need_a_change_are_not_transient() {
        for (kind, is_transient) in [
            (ErrorKind::InvalidChannel, false),
            (ErrorKind::IncompatibleDriver, false),
            (ErrorKind::Io(io::ErrorKind::NotADirectory), false),
            (ErrorKind::Io(io::ErrorKind::PermissionDenied), false),
            (ErrorKind::DriverTimeout, true),
            (ErrorKind::ClientClosed, true),
            (ErrorKind::UnknownHost, true),
            (ErrorKind::Io(io::ErrorKind::AddrInUse), true),
            (ErrorKind::Other, true),
        ] {
            assert_eq!(Error::new(kind, "").is_transient(), is_transient, "{kind:?}");
        }
    }

    #[test]
    fn callback_code_changes_sign() {
        let code = |code| Error::from_callback(code, String::new()).code();
        assert_eq!([code(1001), code(-22), code(i32::MIN)], [-1001, 22, i32::MIN]);
    }
}
