//! The errors of channel URIs.

use std::borrow::Cow;
use std::fmt;

use crate::channel::uri::Parameter;
use crate::error::{Error, ErrorKind};
use crate::printable::Printable;

/// The reason why a channel URI is refused: the parameter, its value, and the valid values.
///
/// It converts into an [`Error`] of kind [`ErrorKind::InvalidChannel`]. Every `add_…` function
/// reports it in this form.
///
/// ```
/// use rusteron_client::{ChannelUri, ChannelUriErrorKind, Parameter};
///
/// let uri: ChannelUri = "aeron:udp?endpoint=localhost:40123|mtu=1500".parse().unwrap();
/// let error = uri.check_publication().unwrap_err();
/// assert_eq!(error.kind(), ChannelUriErrorKind::Value);
/// assert_eq!(error.parameter(), Some(Parameter::Mtu));
/// assert_eq!(error.value(), Some("1500"));
/// assert_eq!(error.to_string(), "mtu=1500: must be a multiple of 32 from 64 to 65504 (bytes)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ChannelUriError {
    kind: ChannelUriErrorKind,
    key: Option<Box<str>>,
    value: Option<Box<str>>,
    reason: Cow<'static, str>,
}

/// The kinds of [`ChannelUriError`], independent of the wording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChannelUriErrorKind {
    /// The text does not begin with `aeron:udp?` or `aeron:ipc`, alone or after `aeron-spy:`.
    Scheme,
    /// The text is longer than the 4095 bytes that Aeron reads.
    Length,
    /// The parameters are not written as `key=value|key=value`.
    Syntax,
    /// The value of a parameter cannot be read, or is out of its range.
    Value,
    /// A parameter is missing that the use of the channel needs.
    Missing,
    /// The channel is a spy. Only a subscription to a UDP channel can be a spy.
    Spy,
}

impl ChannelUriError {
    pub(super) fn new(kind: ChannelUriErrorKind, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, key: None, value: None, reason: reason.into() }
    }

    pub(super) fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.into());
        self
    }

    pub(super) fn with_value(mut self, value: &str) -> Self {
        self.value = Some(value.into());
        self
    }

    /// Makes the error of a value that its parameter does not allow.
    pub(super) fn value_of(parameter: Parameter, value: &str) -> Self {
        Self::bad(parameter, value, format!("must be {}", parameter.valid_values()))
    }

    /// Makes the error of a value that is not valid for a reason of its own.
    pub(super) fn bad(
        parameter: Parameter,
        value: &str,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(ChannelUriErrorKind::Value, reason).with_key(parameter.key()).with_value(value)
    }

    /// Returns the kind of the fault.
    pub fn kind(&self) -> ChannelUriErrorKind {
        self.kind
    }

    /// Returns the parameter at fault, if Aeron knows it.
    pub fn parameter(&self) -> Option<Parameter> {
        self.key().and_then(Parameter::from_key)
    }

    /// Returns the key at fault as it was written, also of a parameter that Aeron does not know.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Returns the value at fault.
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// Returns the reason why the value is refused.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the values that the parameter takes: its range and its unit.
    pub fn valid_values(&self) -> Option<&'static str> {
        self.parameter().map(Parameter::valid_values)
    }
}

/// Writes `key=value: reason`, as far as there is a key and a value.
impl fmt::Display for ChannelUriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = Printable(&self.reason);
        match (self.key().map(Printable), self.value().map(Printable)) {
            (Some(key), Some(value)) => write!(f, "{key}={value}: {reason}"),
            (Some(key), None) => write!(f, "{key}: {reason}"),
            (None, Some(Printable(value))) => write!(f, "{value:?}: {reason}"),
            (None, None) => reason.fmt(f),
        }
    }
}

crate::debug_as_display!(ChannelUriError);

impl std::error::Error for ChannelUriError {}

impl From<ChannelUriError> for Error {
    fn from(error: ChannelUriError) -> Self {
        Self::new(ErrorKind::InvalidChannel, error.to_string())
    }
}
