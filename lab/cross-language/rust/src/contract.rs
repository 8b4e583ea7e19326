//! Numbers and names of the contract.

use std::fmt;

use crate::Kind;

/// The channel of requests, unless an option names another one.
///
/// The term length bounds a message: an eighth of 4 MiB. The MTU makes fewer fragments of a long message.
pub const REQUEST_CHANNEL: &str = "aeron:ipc?term-length=4m|mtu=8k";
/// The stream of requests.
pub const REQUEST_STREAM: i32 = 3001;
/// The channel of responses, unless an option names another one.
pub const RESPONSE_CHANNEL: &str = "aeron:ipc?control-mode=response|term-length=4m|mtu=8k";
/// The stream of responses.
pub const RESPONSE_STREAM: i32 = 3002;

/// Most elements that `RUNNING_SUMS` accepts.
pub const SMALL_ARRAY_LIMIT: usize = 64;
/// Most elements of a list of integers.
pub const LIST_LIMIT: usize = 65_534;
/// The greatest argument of `SQUARES`.
pub const SQUARES_LIMIT: i64 = 20_000;
/// Most objects of a session.
pub const OBJECT_LIMIT: usize = 1_024;
/// Most calls of a session that await an answer to a callback.
pub const OPEN_CALL_LIMIT: usize = 64;

/// Defines an enumeration of the schema, with its numbers and names.
macro_rules! schema_enum {
    ($(#[$doc:meta])* $name:ident: $($(#[$item_doc:meta])* $item:ident = $number:literal $text:literal,)*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$item_doc])* $item = $number,)*
        }

        impl $name {
            /// All values, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$item),*];

            /// Returns the value of a number in a message.
            pub fn from_number(number: u8) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| *value as u8 == number)
            }

            /// Returns the value with a name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }

            /// Returns the name in the schema, which command lines and outputs use.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$item => $text,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

schema_enum! {
    /// An operation of the service.
    Operation:
    /// Does nothing.
    Ping = 1 "ping",
    /// Adds 1 to an integer.
    Successor = 2 "successor",
    /// Reverses the code points of a text.
    Reverse = 3 "reverse",
    /// Replaces each integer of a small array by the sum up to and including it.
    RunningSums = 4 "running_sums",
    /// Creates an object with a value, and adds to the value.
    Create = 5 "create",
    /// Adds to the value of an existing object.
    Call = 6 "call",
    /// Calls the caller back with 1, 2, … n, and adds the answers.
    Callback = 7 "callback",
    /// Transforms a dynamically typed value.
    Transform = 8 "transform",
    /// Adds many integers.
    Total = 9 "total",
    /// Returns the squares of 0, 1, … n - 1.
    Squares = 10 "squares",
    /// Transforms each of many dynamically typed values.
    TransformAll = 11 "transform_all",
}

schema_enum! {
    /// The result of a call.
    Status:
    /// The body is the result.
    Ok = 0 "OK",
    /// The envelope is truncated, or has another schema or template.
    MalformedMessage = 1 "MALFORMED_MESSAGE",
    /// The operation's number is unknown.
    UnknownOperation = 2 "UNKNOWN_OPERATION",
    /// The body is not of the operation's kind, or has more bytes than that.
    MalformedBody = 3 "MALFORMED_BODY",
    /// The argument is out of range.
    InvalidArgument = 4 "INVALID_ARGUMENT",
    /// The session has no such object.
    UnknownObject = 5 "UNKNOWN_OBJECT",
    /// No call of the session awaits this answer.
    UnknownCall = 6 "UNKNOWN_CALL",
    /// The caller's function has failed, or has not answered in time.
    CallbackFailed = 7 "CALLBACK_FAILED",
    /// The result is longer than the longest message of the response channel.
    ResponseTooLong = 8 "RESPONSE_TOO_LONG",
    /// The session has the most objects or open calls that are allowed.
    LimitReached = 9 "LIMIT_REACHED",
}

impl Operation {
    /// Returns the kind of the argument.
    pub fn argument(self) -> Kind {
        match self {
            Self::Ping => Kind::Void,
            Self::Successor | Self::Callback | Self::Squares => Kind::Integer,
            Self::Reverse => Kind::Text,
            Self::RunningSums | Self::Total => Kind::Integers,
            Self::Create => Kind::CreateObject,
            Self::Call => Kind::CallObject,
            Self::Transform | Self::TransformAll => Kind::Value,
        }
    }

    /// Returns the kind of the result.
    pub fn result(self) -> Kind {
        match self {
            Self::Ping => Kind::Void,
            Self::Successor | Self::Callback | Self::Total => Kind::Integer,
            Self::Reverse => Kind::Text,
            Self::RunningSums | Self::Squares => Kind::Integers,
            Self::Create | Self::Call => Kind::ObjectValue,
            Self::Transform | Self::TransformAll => Kind::Value,
        }
    }
}
