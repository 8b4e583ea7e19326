//! The builder of channel URIs.

use std::fmt;

use crate::channel::uri::{ChannelUri, ChannelUriError, ChannelUriErrorKind, Parameter, check};

/// Makes a [`ChannelUri`] from typed parameters.
///
/// Start with [`ChannelUri::ipc`], [`ChannelUri::udp`] or [`ChannelUri::to_builder`]. End with
/// [`build`](Self::build), which checks the values. Sizes and durations are written as Aeron writes
/// them, such as `64m` and `5s`.
///
/// ```
/// use std::time::Duration;
/// use rusteron_client::{ChannelUri, ControlMode, FlowControl, SessionId};
///
/// # fn main() -> Result<(), rusteron_client::ChannelUriError> {
/// let uri = ChannelUri::udp()
///     .control("192.168.0.1:40456")
///     .control_mode(ControlMode::Dynamic)
///     .flow_control(FlowControl::Min { group_size: Some(2), timeout: None })
///     .term_length(1 << 20)
///     .linger(Duration::from_millis(1500))
///     .session_id(SessionId::Tag(7))
///     .build()?;
/// assert_eq!(
///     uri.to_string(),
///     "aeron:udp?control=192.168.0.1:40456|control-mode=dynamic|term-length=1m|session-id=tag:7\
///      |linger=1500ms|fc=min,g:/2"
/// );
///
/// let error = ChannelUri::ipc().term_length(63_000).build().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "term-length=63000: must be a power of two from 64k to 1g (bytes)"
/// );
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `aeron_uri_string_builder_t`, and to `ChannelUriStringBuilder` in Java.
#[doc(alias("aeron_uri_string_builder_t", "ChannelUriStringBuilder"))]
#[derive(Debug, Clone)]
pub struct ChannelUriBuilder {
    uri: ChannelUri,
    /// The error of the first call that failed.
    error: Option<ChannelUriError>,
}

impl ChannelUriBuilder {
    pub(super) fn new(uri: ChannelUri) -> Self {
        Self { uri, error: None }
    }

    /// Returns the channel, if it is valid.
    ///
    /// Each value is checked by itself. The media driver checks that the values fit together.
    ///
    /// # Errors
    /// The first value that is not valid.
    pub fn build(self) -> Result<ChannelUri, ChannelUriError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        check::values(&self.uri)?;
        // Parsing checks the rest: a spy needs UDP, and the text has a maximum length.
        self.uri.to_string().parse()
    }

    /// Sets whether the channel is a spy: a subscription that reads the messages which a
    /// publication of the same driver sends.
    #[must_use]
    pub fn spy(mut self, is_spy: bool) -> Self {
        self.uri.is_spy = is_spy;
        self
    }

    /// Sets a parameter to a text.
    ///
    /// A text that is empty, or contains `|` or a NUL byte, makes [`build`](Self::build) fail.
    #[must_use]
    pub fn set(self, parameter: Parameter, value: impl Into<String>) -> Self {
        self.set_key(parameter.key(), value)
    }

    /// Sets any parameter to a text. Aeron need not know the parameter.
    ///
    /// A key that is empty, or contains `=`, `|` or a NUL byte, makes [`build`](Self::build) fail.
    /// The value has the same conditions as in [`set`](Self::set).
    #[must_use]
    pub fn set_key(mut self, key: &str, value: impl Into<String>) -> Self {
        let value = value.into();
        let reason = if key.is_empty() {
            "a key cannot be empty"
        } else if key.contains(['=', '|', '\0']) {
            "a key cannot contain '=', '|' or a NUL byte"
        } else if value.is_empty() {
            "a value cannot be empty"
        } else if value.contains(['|', '\0']) {
            "a value cannot contain '|' or a NUL byte"
        } else {
            self.uri.parameters.remove(key);
            self.uri.parameters.take_up(self.uri.media, key, &value);
            return self;
        };
        self.fail(
            ChannelUriError::new(ChannelUriErrorKind::Syntax, reason)
                .with_key(key)
                .with_value(&value),
        )
    }

    /// Removes a parameter.
    #[must_use]
    pub fn remove(mut self, parameter: Parameter) -> Self {
        self.uri.parameters.remove(parameter.key());
        self
    }

    /// Makes a publication begin at a position, in bytes since the beginning of a stream. This sets
    /// [`Parameter::InitialTermId`], [`Parameter::TermId`], [`Parameter::TermOffset`] and
    /// [`Parameter::TermLength`].
    ///
    /// The position has to be a multiple of 32, and less than 2³¹ terms. Any other position makes
    /// [`build`](Self::build) fail.
    ///
    /// ```
    /// use rusteron_client::ChannelUri;
    ///
    /// # fn main() -> Result<(), rusteron_client::ChannelUriError> {
    /// let uri = ChannelUri::ipc().initial_position(3 * 65536 + 64, 7, 65536).build()?;
    /// assert_eq!(
    ///     uri.to_string(),
    ///     "aeron:ipc?term-length=64k|init-term-id=7|term-id=10|term-offset=64"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Corresponds to `aeron_uri_string_builder_set_initial_position`.
    #[doc(alias = "aeron_uri_string_builder_set_initial_position")]
    #[must_use]
    pub fn initial_position(self, position: i64, initial_term_id: i32, term_length: usize) -> Self {
        let builder = self.initial_term_id(initial_term_id).term_length(term_length);
        // Building reports a term length that is not valid.
        if !term_length.is_power_of_two() {
            return builder;
        }
        let terms = position.checked_shr(term_length.trailing_zeros()).map(i32::try_from);
        let Some((Ok(terms @ 0..), position)) = terms.zip(usize::try_from(position).ok()) else {
            let reason = "a position is a multiple of 32 from 0 on, below 2147483648 terms";
            return builder.fail(ChannelUriError::bad(
                Parameter::TermOffset,
                &position.to_string(),
                reason,
            ));
        };
        builder
            .term_id(initial_term_id.wrapping_add(terms))
            .term_offset(position & (term_length - 1))
    }

    pub(super) fn get(&self, parameter: Parameter) -> Option<&str> {
        self.uri.get(parameter)
    }

    fn fail(mut self, error: ChannelUriError) -> Self {
        self.error.get_or_insert(error);
        self
    }
}

/// Writes the parameters that have been set so far, valid or not.
impl fmt::Display for ChannelUriBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.uri.fmt(f)
    }
}
