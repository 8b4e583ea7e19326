//! Channels as Java's archive reads them, and what it derives from them.
//!
//! The text of a client is kept as it was written. Derived channels have the parameters, values and order of Java's, since
//! catalogs and counters show them. Java's parser takes more than [`rusteron_client::ChannelUri`]: the network adds these
//! channels as [`rusteron_client::UncheckedChannel`], and the driver decides.

use crate::ids::ImageId;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use rusteron_core::log_buffer::FRAME_ALIGNMENT;

mod value;

pub(crate) use value::ChannelError;
use value::{
    RETAINED, check_mtu, check_term_length, error, format_duration, format_size, is_true,
    not_a_number, parse_size,
};

const SCHEME: &str = "aeron:";
const SPY_PREFIX: &str = "aeron-spy:";
const MAX_LENGTH: usize = 4095;

const UDP: &str = "udp";
const IPC: &str = "ipc";

/// The order in which Java writes parameters.
const ORDER: [&str; 30] = [
    "tags",
    "endpoint",
    "interface",
    "control",
    "control-mode",
    "mtu",
    "term-length",
    "init-term-id",
    "term-id",
    "term-offset",
    "session-id",
    "ttl",
    "linger",
    "alias",
    "cc",
    "fc",
    "gtag",
    "sparse",
    "eos",
    "tether",
    "group",
    "rejoin",
    "so-sndbuf",
    "so-rcvbuf",
    "rcv-wnd",
    "media-rcv-ts-offset",
    "channel-rcv-ts-offset",
    "channel-snd-ts-offset",
    "response-endpoint",
    "response-correlation-id",
];

/// Parameters of the response channels of control sessions. A client's channel can set another MTU,
/// shorter terms, and a sparse log buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResponseDefaults {
    /// In bytes.
    pub(crate) mtu: i32,
    /// In bytes.
    pub(crate) term_length: i32,
    pub(crate) is_sparse: bool,
}

/// Where the publication of a replay starts. Lengths and position are in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReplayStart {
    pub(crate) position: i64,
    pub(crate) initial_term_id: i32,
    /// A power of two.
    pub(crate) term_length: i32,
    pub(crate) mtu: i32,
}

/// A channel that a client has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Channel<'a> {
    media: &'a str,
    /// Of a repeated key, the last value counts.
    parameters: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> Channel<'a> {
    /// Parses a channel by the rules of Java's `ChannelUri`. The medium of a channel with parameters is checked when another
    /// channel is derived, as there.
    pub(crate) fn parse(text: &'a str) -> Result<Self, ChannelError> {
        let length = text.encode_utf16().count();
        if length > MAX_LENGTH {
            let start: String = text.chars().take(MAX_LENGTH).collect();
            return error(format!(
                "URI length ({length}) exceeds max supported length ({MAX_LENGTH}): {start}"
            ));
        }
        let uri = text.strip_prefix(SPY_PREFIX).unwrap_or(text);
        let Some(uri) = uri.strip_prefix(SCHEME) else {
            return error(format!("Aeron URIs must start with 'aeron:', found: {text}"));
        };
        // Java counts characters, and prefixes have one byte each.
        let index = |rest: &str| length - rest.encode_utf16().count();
        let (media, mut rest) = match uri.split_once('?') {
            Some((media, rest)) => (media, Some(rest)),
            None => (uri, None),
        };
        if let Some(offset) = media.find([':', '|', '=']) {
            let (wrong, index) = (&media[offset..=offset], index(&uri[offset..]));
            return error(format!(
                "encountered '{wrong}' within media definition at index {index} in {text}"
            ));
        }
        if rest.is_none() && media != UDP && media != IPC {
            return error(format!("unknown media: {media}"));
        }
        let mut parameters = Vec::new();
        while let Some(parameter) = rest {
            let (key, value) = match parameter.find(['=', '|']) {
                None => return error(format!("no more input found, state=PARAMS_KEY in {text}")),
                Some(0) if parameter.starts_with('=') => {
                    return error(format!(
                        "empty key not allowed at index {} in {text}",
                        index(parameter)
                    ));
                }
                Some(end) if parameter[end..].starts_with('|') => {
                    let index = index(&parameter[end..]);
                    return error(format!("invalid end of key at index {index} in {text}"));
                }
                Some(end) => (&parameter[..end], &parameter[end + 1..]),
            };
            let (value, next) = match value.split_once('|') {
                Some((value, next)) => (value, Some(next)),
                None => (value, None),
            };
            parameters.push((key, Cow::Borrowed(value)));
            rest = next;
        }
        Ok(Self { media, parameters })
    }

    /// Returns the value of a parameter, as it was written.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.parameters.iter().rev().find(|(known, _)| *known == key).map(|(_, value)| &**value)
    }

    /// Replaces the value of a parameter.
    pub(crate) fn set(&mut self, key: &'a str, value: impl fmt::Display) {
        self.parameters.push((key, Cow::Owned(value.to_string())));
    }

    /// Sets a parameter that the channel does not have.
    pub(crate) fn set_default(&mut self, key: &'a str, value: impl fmt::Display) {
        if self.get(key).is_none() {
            self.set(key, value);
        }
    }

    /// Removes a parameter.
    pub(crate) fn remove(&mut self, key: &str) {
        self.retain(|known| known != key);
    }

    /// Removes all other parameters.
    pub(crate) fn retain(&mut self, is_retained: impl Fn(&str) -> bool) {
        self.parameters.retain(|(key, _)| is_retained(key));
    }

    /// Refuses a channel without a parameter.
    pub(crate) fn require(&self, key: &str) -> Result<(), ChannelError> {
        match self.get(key) {
            Some(_) => Ok(()),
            None => error(format!("{self}: has no {key}")),
        }
    }

    /// Tells whether answers are to come on the channel's `control-mode=response`.
    pub(crate) fn is_response(&self) -> bool {
        self.get("control-mode") == Some("response")
    }

    /// Returns the channel without what does not identify the stream: for the catalog, and to subscribe to it.
    pub(crate) fn stripped(&self) -> Result<String, ChannelError> {
        self.derive().map(|derived| derived.to_string())
    }

    /// Returns the channel of the subscription that records a stream. Local UDP streams are recorded by a spy.
    pub(crate) fn recorded(&self, is_local: bool) -> Result<String, ChannelError> {
        let stripped = self.stripped()?;
        let is_spy = is_local && self.media == UDP;
        Ok(if is_spy { format!("{SPY_PREFIX}{stripped}") } else { stripped })
    }

    /// Returns the text by which recording subscriptions are the same.
    pub(crate) fn recording_key(&self, stream_id: i32) -> String {
        let names = ["endpoint", "interface", "control", "session-id", "tags"];
        let parameter = |name| self.get(name).map(|value| format!("{name}={value}"));
        let parameters: Vec<_> = names.into_iter().filter_map(parameter).collect();
        let separator = if parameters.is_empty() { "" } else { "?" };
        format!("{stream_id}:{}{separator}{}", self.media, parameters.join("|"))
    }

    /// Returns the channel of a control session's responses. Its client need not be known yet, so
    /// its log buffer is not larger than the server's setting, and sparse if that is.
    pub(crate) fn response(
        &self,
        defaults: ResponseDefaults,
        request_image: ImageId,
    ) -> Result<String, ChannelError> {
        // Java cuts off the upper half of longer numbers.
        let size = |key: &str, default: i32| match self.get(key) {
            Some(value) => parse_size(key, value).map(|size| size as i32),
            None => Ok(default),
        };
        let (mtu, term_length) =
            (size("mtu", defaults.mtu)?, size("term-length", defaults.term_length)?);
        let mut derived = self.derive()?;
        check_term_length(term_length)?;
        derived.set("term-length", format_size(term_length.min(defaults.term_length).into()));
        derived.set("sparse", defaults.is_sparse || self.get("sparse").is_some_and(is_true));
        check_mtu(mtu)?;
        derived.set("mtu", format_size(mtu.into()));
        if self.is_response() {
            derived.set("response-correlation-id", request_image);
        }
        Ok(derived.to_string())
    }

    /// Returns the channel of a replay's publication.
    pub(crate) fn replay(
        &self,
        start: ReplayStart,
        default_linger_ns: i64,
    ) -> Result<String, ChannelError> {
        let ReplayStart { position, initial_term_id, term_length, mtu } = start;
        let mut derived = self.derive()?;
        if position % FRAME_ALIGNMENT as i64 != 0 {
            return error(format!(
                "invalid position={position} does not have frame alignment={FRAME_ALIGNMENT}"
            ));
        }
        let term_count = position / i64::from(term_length.max(1));
        derived.set("init-term-id", initial_term_id);
        derived.set("term-id", initial_term_id.wrapping_add(term_count as i32));
        derived.set("term-offset", position % i64::from(term_length.max(1)));
        derived.set("term-length", format_size(term_length.into()));
        for key in ["eos", "sparse"] {
            if let Some(value) = self.get(key) {
                derived.set(key, is_true(value));
            }
        }
        check_mtu(mtu)?;
        derived.set("mtu", format_size(mtu.into()));
        let linger = match self.get("linger") {
            // Unlike elsewhere, Java takes no unit here.
            Some(value) => value.parse::<i64>().map_err(|_| not_a_number(value))?,
            None => default_linger_ns,
        };
        if linger < 0 {
            return error(format!("`linger` value cannot be negative: {linger}"));
        }
        derived.set("linger", format_duration(linger));
        Ok(derived.to_string())
    }

    fn derive(&self) -> Result<Derived<'_>, ChannelError> {
        if self.media != UDP && self.media != IPC {
            return error(format!("invalid media: {}", self.media));
        }
        let mut derived = Derived { media: self.media, parameters: BTreeMap::new() };
        for (key, kind) in RETAINED {
            if let Some(value) = self.get(key) {
                derived.set(key, kind.read(key, value)?);
            }
        }
        Ok(derived)
    }
}

/// Writes all parameters, also those that the archive does not know.
impl fmt::Display for Channel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.media)?;
        let mut separator = '?';
        for (index, (key, value)) in self.parameters.iter().enumerate() {
            if !self.parameters[index + 1..].iter().any(|(later, _)| later == key) {
                write!(f, "{separator}{key}={value}")?;
                separator = '|';
            }
        }
        Ok(())
    }
}

/// A channel with parameters in Java's order.
#[derive(Debug)]
struct Derived<'a> {
    media: &'a str,
    /// Keys and values by their place in the order.
    parameters: BTreeMap<usize, (&'static str, String)>,
}

impl Derived<'_> {
    fn set(&mut self, key: &'static str, value: impl fmt::Display) {
        // The stream id is behind all others.
        let place = ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
        self.parameters.insert(place, (key, value.to_string()));
    }
}

impl fmt::Display for Derived<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.media)?;
        let mut separator = '?';
        for (key, value) in self.parameters.values() {
            write!(f, "{separator}{key}={value}")?;
            separator = '|';
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
