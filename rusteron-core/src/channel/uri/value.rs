//! Parameter values that are more than a number.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::named;
use crate::scan::{self, int32, int64};

named! {
    /// The medium that carries a channel.
    #[derive(PartialOrd, Ord)]
    Media, "a medium";
    /// Shared memory, between the clients of one media driver.
    Ipc = "ipc",
    /// The network.
    Udp = "udp",
}

named! {
    /// The origin of the destinations of a publication, or of the sources of a subscription: the
    /// parameter [`ControlMode`](crate::channel::Parameter::ControlMode).
    #[non_exhaustive]
    #[derive(PartialOrd, Ord)]
    ControlMode, "a control mode";
    /// Calls add and remove them.
    Manual = "manual",
    /// Receivers join at the control address.
    Dynamic = "dynamic",
    /// They are the answers to a request.
    Response = "response",
}

named! {
    /// The congestion control of a subscription: the parameter
    /// [`CongestionControl`](crate::channel::Parameter::CongestionControl).
    #[non_exhaustive]
    #[derive(PartialOrd, Ord)]
    CongestionControl, "a congestion control";
    /// A window of a fixed length.
    Static = "static",
    /// A window that shrinks with loss, and grows by a cubic function of time.
    Cubic = "cubic",
}

named! {
    /// The group semantics of a subscription: the parameter [`Group`](crate::channel::Parameter::Group).
    #[non_exhaustive]
    #[derive(PartialOrd, Ord)]
    Group, "a group";
    /// The subscription behaves as one of a group.
    True = "true",
    /// The subscription behaves as if it were alone.
    False = "false",
    /// The channel decides.
    Infer = "infer",
}

/// Reads the name of a variant.
pub(super) fn word<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// A session id, or its source: the parameter [`SessionId`](crate::channel::Parameter::SessionId).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SessionId {
    /// This session id.
    Id(i32),
    /// The session id of the publication with this entity tag.
    Tag(i64),
}

const TAG_PREFIX: &str = "tag:";

impl SessionId {
    /// In C, an empty text after `tag:` is 0.
    pub(super) fn read(text: &str) -> Option<Self> {
        match text.strip_prefix(TAG_PREFIX) {
            Some("") => Some(Self::Tag(0)),
            Some(tag) => int64(tag, 0).map(Self::Tag),
            None => int32(text).map(Self::Id),
        }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "{id}"),
            Self::Tag(tag) => write!(f, "{TAG_PREFIX}{tag}"),
        }
    }
}

impl From<i32> for SessionId {
    fn from(id: i32) -> Self {
        Self::Id(id)
    }
}

/// The offset of a timestamp in a message: the type of parameters such as
/// [`ChannelSendTimestampOffset`](crate::channel::Parameter::ChannelSendTimestampOffset).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimestampOffset {
    /// In the reserved value of the frame's header.
    Reserved,
    /// This number of bytes behind the frame's header.
    Bytes(i32),
}

/// `AERON_UDP_CHANNEL_RESERVED_VALUE_OFFSET`: before the end of the header.
const RESERVED_VALUE_OFFSET: i32 = -8;

impl TimestampOffset {
    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "reserved" => Some(Self::Reserved),
            _ => int32(text).map(|offset| match offset {
                RESERVED_VALUE_OFFSET => Self::Reserved,
                offset => Self::Bytes(offset),
            }),
        }
    }
}

impl fmt::Display for TimestampOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reserved | Self::Bytes(RESERVED_VALUE_OFFSET) => f.write_str("reserved"),
            Self::Bytes(offset) => write!(f, "{offset}"),
        }
    }
}

/// The subscription or image that a publication of requests or of answers belongs to: the parameter
/// [`ResponseCorrelationId`](crate::channel::Parameter::ResponseCorrelationId).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResponseCorrelationId {
    /// None: the publication only reserves the channel of the answers.
    Prototype,
    /// The subscription or image with this id. −1 stands for none.
    Id(i64),
}

impl ResponseCorrelationId {
    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "prototype" => Some(Self::Prototype),
            _ => int64(text, 0).filter(|&id| id >= -1).map(Self::Id),
        }
    }
}

impl fmt::Display for ResponseCorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prototype => f.write_str("prototype"),
            Self::Id(id) => write!(f, "{id}"),
        }
    }
}

impl From<i64> for ResponseCorrelationId {
    fn from(id: i64) -> Self {
        Self::Id(id)
    }
}

/// The strategy by which a publication with several receivers controls its flow: the parameter
/// [`FlowControl`](crate::channel::Parameter::FlowControl).
///
/// ```
/// use std::time::Duration;
/// use rusteron_client::FlowControl;
///
/// let two_receivers = FlowControl::Min { group_size: Some(2), timeout: None };
/// assert_eq!(two_receivers.to_string(), "min,g:/2");
///
/// let timeout = Some(Duration::from_secs(5));
/// let tagged = FlowControl::Tagged { group_tag: Some(7), group_size: Some(2), timeout };
/// assert_eq!(tagged.to_string(), "tagged,g:7/2,t:5s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlowControl {
    /// The publication follows the fastest receiver.
    Max,
    /// The publication follows the slowest receiver.
    Min {
        /// The number of receivers that have to be present before anything is sent. A negative
        /// number is refused.
        group_size: Option<i32>,
        /// The silence after which a receiver is forgotten.
        timeout: Option<Duration>,
    },
    /// The publication follows the slowest receiver with a tag.
    Tagged {
        /// The tag. With `None`, the driver's own tag.
        group_tag: Option<i64>,
        /// The number of receivers with the tag that have to be present before anything is sent. A
        /// negative number is refused.
        group_size: Option<i32>,
        /// The silence after which a receiver is forgotten.
        timeout: Option<Duration>,
    },
}

/// Writes the value as Aeron's `ChannelUriStringBuilder` does.
impl fmt::Display for FlowControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group_tag, group_size, timeout) = match *self {
            Self::Max => return f.write_str("max"),
            Self::Min { group_size, timeout } => {
                f.write_str("min")?;
                (None, group_size, timeout)
            }
            Self::Tagged { group_tag, group_size, timeout } => {
                f.write_str("tagged")?;
                (group_tag, group_size, timeout)
            }
        };
        if group_tag.is_some() || group_size.is_some() {
            f.write_str(",g:")?;
        }
        if let Some(tag) = group_tag {
            write!(f, "{tag}")?;
        }
        if let Some(size) = group_size {
            write!(f, "/{size}")?;
        }
        timeout.map_or(Ok(()), |timeout| write!(f, ",t:{}", scan::format_duration(timeout)))
    }
}

impl FlowControl {
    /// Reads the options of `aeron_flow_control_parse_max_options` and `aeron_flow_control_parse_tagged_options`, and
    /// refuses the text that C ignores in them, such as `g:word`.
    pub(super) fn is_valid(text: &str) -> bool {
        // The text may end in a comma.
        let mut options = text.strip_suffix(',').unwrap_or(text).split(',');
        match options.next() {
            Some("max") => options.all(is_valid_multiple),
            Some("min" | "tagged") => options.all(|option| match option.split_once(':') {
                Some(("g", group)) => is_valid_group(group),
                Some(("t", timeout)) => scan::duration(timeout).is_some(),
                _ => is_valid_multiple(option),
            }),
            _ => false,
        }
    }
}

/// Checks a tag, a slash and a size, or only the tag, or the slash and the size.
fn is_valid_group(group: &str) -> bool {
    let is_tag = |text| int64(text, 10).is_some();
    group.split_once('/').map_or_else(
        || is_tag(group),
        |(tag, size)| {
            let size = int64(size, 10);
            (tag.is_empty() || is_tag(tag))
                && size.is_some_and(|size| (0..=i64::from(i32::MAX)).contains(&size))
        },
    )
}

/// Checks the maximum length of a retransmission, in receiver windows.
fn is_valid_multiple(option: &str) -> bool {
    let multiple = option.strip_prefix("rrwm:").and_then(|text| int64(text, 10));
    multiple.is_some_and(|multiple| (1..=i64::from(i32::MAX)).contains(&multiple))
}

/// Reads the port of `host:port` as `aeron_udp_port_resolver` does, which also takes hexadecimal
/// and octal numbers, but refuses text behind it.
pub(super) fn port(text: &str) -> Option<u16> {
    /// `AERON_MAX_PORT_LENGTH`, without C's terminator.
    const MAX_LENGTH: usize = 7;
    let (host, port) = text.rsplit_once(':').filter(|(host, _)| !host.is_empty())?;
    let is_outside_brackets = !port.contains(']') && host.contains('[') == host.contains(']');
    let is_read = is_outside_brackets && port.len() <= MAX_LENGTH;
    int64(port, 0).filter(|_| is_read)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_control_is_read_strictly() {
        #[rustfmt::skip]
        let valid = [
            "max", "max,", "max,rrwm:4", "min", "min,", "min,t:5s", "min,g:/3", "min,g:3",
            "min,g:/3,t:5s", "tagged,g:7", "tagged,g:7/3,t:10ms", "tagged,g:-7",
        ];
        for text in valid {
            assert!(FlowControl::is_valid(text), "{text}");
        }
        #[rustfmt::skip]
        let invalid = [
            "", ",", "maximum", "MAX", "max,g:7", "max,rrwm:0", "max,rrwm:", "min,,t:5s", "min,t:",
            "min,t:5m", "min,g:", "min,g:3/", "min,g:3x", "min,g:/-1", "min,g:/2147483648", "min,x",
            "tagged,g:99999999999999999999", "max,maximum", "min,g:x", "min,rrwm:2x",
        ];
        for text in invalid {
            assert!(!FlowControl::is_valid(text), "{text}");
        }
    }

    #[test]
    fn ports_are_read_as_in_c() {
        for (text, expected) in [
            ("localhost:40123", Some(40123)),
            ("127.0.0.1:0x10", Some(16)),
            ("[::1]:7", Some(7)),
            ("::1%lo:0", Some(0)),
            ("localhost:65536", None),
            ("localhost:x", None),
            ("localhost:", None),
            ("localhost", None),
            (":7", None),
            ("[::1]", None),
            ("[::1:7", None),
            ("localhost:0040123", Some(0o40123)),
            ("localhost:00040123", None),
        ] {
            assert_eq!(port(text), expected, "{text}");
        }
    }
}
