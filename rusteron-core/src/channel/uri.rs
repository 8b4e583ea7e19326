//! The address of a stream: `aeron:udp?endpoint=localhost:40123`.

mod as_channel;
mod builder;
mod check;
mod error;
mod parameter;
mod text;
mod typed;
mod value;
mod warnings;

use std::fmt;
use std::str::FromStr;

pub use as_channel::{AsChannel, UncheckedChannel};
pub use builder::ChannelUriBuilder;
pub use check::{ChannelUse, is_safe_for_c};
pub use error::{ChannelUriError, ChannelUriErrorKind};
pub use parameter::Parameter;
pub use text::ChannelText;
pub use value::{
    CongestionControl, ControlMode, FlowControl, Group, Media, ResponseCorrelationId, SessionId,
    TimestampOffset,
};

const SPY_PREFIX: &str = "aeron-spy:";
const SCHEME: &str = "aeron:";

/// `AERON_URI_MAX_LENGTH`, without C's terminator. The spy prefix is not counted.
const MAX_LENGTH: usize = 4095;

/// A parsed channel URI: the medium, and the parameters with their values.
///
/// Make it from a text by [`parse`](str::parse), or by a builder from [`ipc`](Self::ipc),
/// [`udp`](Self::udp) or [`to_builder`](Self::to_builder). All functions that take a channel, such
/// as `Aeron::add_publication`, take a `ChannelUri` as well as a text.
///
/// # Validity
/// Parsing checks the form:
/// - Keys are case-sensitive. Unknown keys are retained and ignored.
/// - Of a repeated key, the value that the driver uses is retained. That is the last value of
///   `endpoint`, `interface`, `ttl`, `control` and `control-mode`, and the first value of other
///   keys. With IPC, it is the last value of `control-mode` only.
/// - Text behind the last `|` that is without `=` is dropped.
///
/// The functions that add a resource or a destination check each value by itself, also one that only
/// another use of the channel reads. Aeron ignores some mistakes silently, such as
/// `control-mode=dynamc`, and the text behind the unit in `term-length=64kb`. These functions also
/// refuse what would make a driver in C crash, and a [`Parameter::ReceiverWindow`] that exceeds
/// [`Parameter::SocketRcvbuf`], which would leak a socket.
///
/// The media driver checks the rest, and its text is in the error: whether values fit together, and
/// whether hosts, interfaces, ports and tagged publications exist.
/// Where a driver accepts more than the values that [`Parameter`] lists, use [`UncheckedChannel`].
///
/// # Warnings
/// When a resource or a destination is added, the following is probably a mistake, and is logged as
/// one warning (crate `log`). [`UncheckedChannel`] is added without a warning.
/// - A key that Aeron does not know, but that is close to a known key. Other unknown keys give no
///   warning: [`unknown_parameters`](Self::unknown_parameters) returns all of them.
/// - A value that no use of the channel reads: parameters of UDP in an IPC channel, and flow control
///   of a publication with one receiver. A valid value that only publications or only subscriptions
///   read gives no warning, because both can have the same channel.
///
/// Two URIs are equal if they have the same content in any order of the parameters.
///
/// ```
/// use rusteron_client::{ChannelUri, Media, Parameter};
///
/// # fn main() -> Result<(), rusteron_client::ChannelUriError> {
/// let uri: ChannelUri = "aeron:udp?mtu=8k|endpoint=localhost:40123|colour=green".parse()?;
/// assert_eq!(uri.media(), Media::Udp);
/// assert_eq!(uri.get(Parameter::Mtu), Some("8k"));
/// assert_eq!(uri.mtu()?, Some(8192));
/// assert_eq!(uri.get_key("colour"), Some("green"));
/// assert_eq!(uri.to_string(), "aeron:udp?endpoint=localhost:40123|mtu=8k|colour=green");
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to `aeron_uri_t`, and to `ChannelUri` in Java.
#[doc(alias("aeron_uri_t", "aeron_uri_parse", "aeron_uri_sprint"))]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChannelUri {
    is_spy: bool,
    media: Media,
    parameters: Parameters,
}

impl ChannelUri {
    /// Returns a builder of an IPC channel.
    pub fn ipc() -> ChannelUriBuilder {
        ChannelUriBuilder::new(Self::empty(Media::Ipc))
    }

    /// Returns a builder of a UDP channel.
    pub fn udp() -> ChannelUriBuilder {
        ChannelUriBuilder::new(Self::empty(Media::Udp))
    }

    fn empty(media: Media) -> Self {
        Self { is_spy: false, media, parameters: Parameters::default() }
    }

    /// Returns a builder that starts from this channel.
    ///
    /// ```
    /// use rusteron_client::ChannelUri;
    ///
    /// # fn main() -> Result<(), rusteron_client::ChannelUriError> {
    /// let uri: ChannelUri = "aeron:udp?endpoint=localhost:40123".parse()?;
    /// let spy = uri.to_builder().spy(true).build()?;
    /// assert_eq!(spy.to_string(), "aeron-spy:aeron:udp?endpoint=localhost:40123");
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_builder(&self) -> ChannelUriBuilder {
        ChannelUriBuilder::new(self.clone())
    }

    /// Returns the medium that carries the channel.
    pub fn media(&self) -> Media {
        self.media
    }

    /// Returns whether a subscription to this channel is a spy. A spy reads the messages that a
    /// publication of the same driver sends, instead of the messages that arrive.
    pub fn is_spy(&self) -> bool {
        self.is_spy
    }

    /// Returns the value of a parameter as it was written.
    pub fn get(&self, parameter: Parameter) -> Option<&str> {
        self.parameters.get(parameter.key())
    }

    /// Returns the value of any parameter as it was written. Aeron need not know the parameter.
    pub fn get_key(&self, key: &str) -> Option<&str> {
        self.parameters.get(key)
    }

    /// Returns keys and values of the parameters that Aeron does not know, by key. Aeron ignores
    /// them, so a program can put its own parameters into a channel. A misspelled key is one of
    /// them.
    ///
    /// ```
    /// use rusteron_client::ChannelUri;
    ///
    /// # fn main() -> Result<(), rusteron_client::ChannelUriError> {
    /// let uri: ChannelUri = "aeron:ipc?term-lenght=64k|mtu=8k|colour=green".parse()?;
    /// let unknown: Vec<_> = uri.unknown_parameters().collect();
    /// assert_eq!(unknown, [("colour", "green"), ("term-lenght", "64k")]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unknown_parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters().filter(|(key, _)| Parameter::from_key(key).is_none())
    }

    /// Returns keys and values: parameters that Aeron knows in the order of [`Parameter`], then the
    /// others by key.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter()
    }

    /// Checks the channel as a publication's.
    ///
    /// # Errors
    /// The first value that is not valid, with the parameter's name and its range.
    pub fn check_publication(&self) -> Result<(), ChannelUriError> {
        ChannelUse::Publication.check(self)
    }

    /// Checks the channel as a subscription's.
    ///
    /// # Errors
    /// As for [`check_publication`](Self::check_publication).
    pub fn check_subscription(&self) -> Result<(), ChannelUriError> {
        ChannelUse::Subscription.check(self)
    }
}

/// Checks the form. [`ChannelUri`] lists the other checks.
///
/// Corresponds to `aeron_uri_parse`.
impl FromStr for ChannelUri {
    type Err = ChannelUriError;

    fn from_str(text: &str) -> Result<Self, ChannelUriError> {
        let (is_spy, uri) = split_spy(text);
        check_length(uri)?;
        if let Some(offset) = text.find('\0') {
            let reason = format!("a NUL byte at offset {offset}");
            return Err(ChannelUriError::new(ChannelUriErrorKind::Syntax, reason).with_value(text));
        }
        let (media, parameters) = split_media(uri).ok_or_else(|| no_scheme(text))?;
        if is_spy && media == Media::Ipc {
            let reason = "only UDP channels have spies; a subscription to IPC needs none";
            return Err(ChannelUriError::new(ChannelUriErrorKind::Spy, reason).with_value(text));
        }
        Ok(Self { is_spy, media, parameters: Parameters::parse(media, parameters)? })
    }
}

/// Returns whether the text has the spy prefix, and the text without it.
fn split_spy(text: &str) -> (bool, &str) {
    match text.strip_prefix(SPY_PREFIX) {
        Some(rest) => (true, rest),
        None => (false, text),
    }
}

fn no_scheme(text: &str) -> ChannelUriError {
    let reason = match split_spy(text).1 {
        "aeron:udp" => "its parameters are missing, such as aeron:udp?endpoint=host:port",
        _ => "a channel begins with aeron:ipc or aeron:udp? and may have the prefix aeron-spy:",
    };
    ChannelUriError::new(ChannelUriErrorKind::Scheme, reason).with_value(text)
}

/// Returns the medium, and the text of the parameters.
fn split_media(uri: &str) -> Option<(Media, &str)> {
    let rest = uri.strip_prefix(SCHEME)?;
    let (media, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    // As in C, `aeron:udp` needs its question mark.
    let media = media.parse().ok().filter(|&media| media == Media::Ipc || rest.contains('?'))?;
    Some((media, parameters))
}

fn check_length(uri: &str) -> Result<(), ChannelUriError> {
    if uri.len() <= MAX_LENGTH {
        return Ok(());
    }
    let reason = format!("a channel of {} bytes; the maximum is {MAX_LENGTH}", uri.len());
    Err(ChannelUriError::new(ChannelUriErrorKind::Length, reason))
}

/// Writes the canonical text, which parses to an equal value.
///
/// Corresponds to `aeron_uri_sprint`, with the order of Java's `ChannelUriStringBuilder`.
impl fmt::Display for ChannelUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_spy {
            f.write_str(SPY_PREFIX)?;
        }
        write!(f, "{SCHEME}{}", self.media)?;
        let mut separator = '?';
        for (key, value) in self.parameters() {
            write!(f, "{separator}{key}={value}")?;
            separator = '|';
        }
        // Without a question mark, the C code does not accept `aeron:udp` as a URI.
        if separator == '?' && self.media == Media::Udp {
            f.write_str("?")?;
        }
        Ok(())
    }
}

/// Keys and values, each key once, in canonical order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Parameters(Vec<(Box<str>, Box<str>)>);

impl Parameters {
    fn parse(media: Media, text: &str) -> Result<Self, ChannelUriError> {
        let syntax = |key, reason| {
            Err(ChannelUriError::new(ChannelUriErrorKind::Syntax, reason).with_key(key))
        };
        let mut parameters = Self::default();
        let mut rest = text;
        // C ignores a rest that contains neither of the two characters.
        while let Some(end) = rest.find(['=', '|']) {
            let key = &rest[..end];
            if rest[end..].starts_with('|') {
                return syntax(key, "no value: parameters are written key=value|key=value");
            }
            if key.is_empty() {
                return syntax(key, "no key: parameters are written key=value|key=value");
            }
            let (value, next) = rest[end + 1..].split_once('|').unwrap_or((&rest[end + 1..], ""));
            if value.is_empty() {
                return syntax(key, "an empty value");
            }
            parameters.take_up(media, key, value);
            rest = next;
        }
        Ok(parameters)
    }

    /// Adds a key and a value from a text. C keeps the last value of some keys and the first of
    /// others.
    fn take_up(&mut self, media: Media, key: &str, value: &str) {
        if key == Parameter::Tags.key() {
            return self.merge_tags(value);
        }
        let last_counts = match Parameter::from_key(key) {
            Some(Parameter::ControlMode) => true,
            Some(
                Parameter::Endpoint | Parameter::Interface | Parameter::Ttl | Parameter::Control,
            ) => media == Media::Udp,
            _ => false,
        };
        if last_counts || self.get(key).is_none() {
            self.set(key, value);
        }
    }

    /// Merges the tags of two `tags` parameters. C reads the channel tag and the entity tag
    /// separately. A later value without a comma keeps the earlier entity tag.
    fn merge_tags(&mut self, value: &str) {
        let key = Parameter::Tags.key();
        let known = || (value, split_tags(self.get(key).unwrap_or_default()).1);
        let (channel, entity) = value.split_once(',').unwrap_or_else(known);
        match join_tags(channel, entity) {
            tags if tags.is_empty() => self.remove(key),
            tags => self.set(key, &tags),
        }
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|parameter| *parameter.0 == *key).map(|parameter| &*parameter.1)
    }

    /// Replaces the value, or inserts the key at its position.
    fn set(&mut self, key: &str, value: &str) {
        if let Some(parameter) = self.0.iter_mut().find(|parameter| *parameter.0 == *key) {
            parameter.1 = value.into();
            return;
        }
        let index = self.0.partition_point(|parameter| sort_key(&parameter.0) < sort_key(key));
        self.0.insert(index, (key.into(), value.into()));
    }

    fn remove(&mut self, key: &str) {
        self.0.retain(|parameter| *parameter.0 != *key);
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

/// Splits the value of [`Parameter::Tags`] into the channel's tag and the publication's, each empty if it is missing.
fn split_tags(tags: &str) -> (&str, &str) {
    tags.split_once(',').unwrap_or((tags, ""))
}

fn join_tags(channel: &str, entity: &str) -> String {
    let separator = if entity.is_empty() { "" } else { "," };
    format!("{channel}{separator}{entity}")
}

/// Returns the sort key: Aeron's parameters in their order, then all other keys by name.
fn sort_key(key: &str) -> (usize, &str) {
    match Parameter::from_key(key) {
        Some(parameter) => (parameter as usize, ""),
        None => (usize::MAX, key),
    }
}
