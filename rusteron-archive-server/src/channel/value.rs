//! Values of a channel's parameters, as Java reads and writes them.

use std::fmt;

/// The parameters that a derived channel retains. The first that is wrong gives the error, so the order is Java's.
pub(super) const RETAINED: [(&str, Kind); 23] = [
    ("endpoint", Kind::Text),
    ("interface", Kind::Text),
    ("control", Kind::Text),
    ("control-mode", Kind::ControlMode),
    ("tags", Kind::Text),
    ("rejoin", Kind::Boolean),
    ("group", Kind::Boolean),
    ("tether", Kind::Boolean),
    ("fc", Kind::Text),
    ("gtag", Kind::GroupTag),
    ("cc", Kind::Text),
    ("so-rcvbuf", Kind::Size),
    ("so-sndbuf", Kind::Size),
    ("rcv-wnd", Kind::Size),
    ("channel-snd-ts-offset", Kind::TimestampOffset("channelSendTimestampOffset")),
    ("channel-rcv-ts-offset", Kind::TimestampOffset("channelReceiveTimestampOffset")),
    ("media-rcv-ts-offset", Kind::TimestampOffset("mediaReceiveTimestampOffset")),
    ("session-id", Kind::SessionId),
    ("alias", Kind::Text),
    ("response-correlation-id", Kind::ResponseCorrelationId),
    ("response-endpoint", Kind::Text),
    ("ttl", Kind::Ttl),
    ("stream-id", Kind::StreamId),
];

/// Why a channel is refused, in Java's words: they reach the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChannelError(String);

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ChannelError {}

/// How Java reads a parameter's value before it writes the value again.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// Anything else than `true` is `false`, also `infer`.
    Boolean,
    Size,
    ControlMode,
    GroupTag,
    SessionId,
    Ttl,
    StreamId,
    /// With Java's name for it.
    TimestampOffset(&'static str),
    ResponseCorrelationId,
}

impl Kind {
    pub(super) fn read(self, key: &str, value: &str) -> Result<String, ChannelError> {
        let int = || value.parse::<i32>().ok();
        let refusal = match self {
            Self::Text => return Ok(value.to_owned()),
            Self::Boolean => return Ok(is_true(value).to_string()),
            Self::Size => {
                let size = parse_size(key, value)?;
                if size <= i32::MAX.into() {
                    return Ok(format_size(size));
                }
                format!("value exceeds maximum permitted: value={size}")
            }
            Self::ControlMode => match value {
                "manual" | "dynamic" | "response" => return Ok(value.to_owned()),
                _ => format!("invalid control mode: {value}"),
            },
            Self::GroupTag => match value.parse::<i64>() {
                Ok(tag) => return Ok(tag.to_string()),
                Err(_) => "'gtag' must be a valid long value".to_owned(),
            },
            Self::SessionId => match (value.strip_prefix("tag:"), int()) {
                (Some(tag), _) => return Ok(format!("tag:{}", parse_long(tag, "tag:".len())?)),
                (None, Some(id)) => return Ok(id.to_string()),
                (None, None) => "'session-id' must be a valid integer".to_owned(),
            },
            Self::Ttl => match int() {
                Some(ttl @ 0..=255) => return Ok(ttl.to_string()),
                Some(ttl) => format!("TTL not in range 0-255: {ttl}"),
                None => "'ttl' must be a value integer".to_owned(),
            },
            Self::StreamId => match int() {
                Some(id) => return Ok(id.to_string()),
                None => "stream-id must be a number".to_owned(),
            },
            Self::TimestampOffset(name) => {
                if value == "reserved" || int().is_some() {
                    return Ok(value.to_owned());
                }
                format!("{name} must be a number or the value 'reserved' found: {value}")
            }
            Self::ResponseCorrelationId => {
                if value == "prototype" || value.parse::<i64>().is_ok_and(|id| id >= -1) {
                    return Ok(value.to_owned());
                }
                format!(
                    "responseCorrelationId must be a number greater than or equal to -1, or the value 'prototype' \
                     found: {value}"
                )
            }
        };
        error(refusal)
    }
}

pub(super) fn error<T>(text: String) -> Result<T, ChannelError> {
    Err(ChannelError(text))
}

pub(super) fn not_a_number(text: &str) -> ChannelError {
    ChannelError(format!("For input string: \"{text}\""))
}

pub(super) fn is_true(value: &str) -> bool {
    value.eq_ignore_ascii_case("true")
}

pub(super) fn check_mtu(mtu: i32) -> Result<(), ChannelError> {
    if !(32..=65504).contains(&mtu) {
        return error(format!("MTU not in range 32-65504: {mtu}"));
    }
    if mtu % 32 != 0 {
        return error(format!("MTU not a multiple of FRAME_ALIGNMENT: mtu={mtu}"));
    }
    Ok(())
}

pub(super) fn check_term_length(length: i32) -> Result<(), ChannelError> {
    let (min, max) = (64 << 10, 1 << 30);
    if length < min {
        return error(format!("Term length less than min length of {min}: length={length}"));
    }
    if length > max {
        return error(format!("Term length more than max length of {max}: length={length}"));
    }
    if length & (length - 1) != 0 {
        return error(format!("Term length not a power of 2: length={length}"));
    }
    Ok(())
}

/// Parses a size as Agrona does: digits, and a unit.
pub(super) fn parse_size(key: &str, text: &str) -> Result<i64, ChannelError> {
    let Some(last) = text.chars().next_back() else {
        return error(format!("{key} must be non-empty: "));
    };
    if text.starts_with('-') {
        return error(format!("{key} must be positive: {text}"));
    }
    if last.is_ascii_digit() {
        return parse_long(text, 0);
    }
    let number = parse_long(&text[..text.len() - last.len_utf8()], 0)?;
    let unit = match last {
        'k' | 'K' => 1 << 10,
        'm' | 'M' => 1 << 20,
        'g' | 'G' => 1 << 30,
        _ => return error(format!("{key}: {text} should end with: k, m, or g.")),
    };
    number
        .checked_mul(unit)
        .ok_or_else(|| ChannelError(format!("{key} would overflow a long: {text}")))
}

/// Parses a number as Agrona does, which takes no plus sign. The error names the index in the value.
fn parse_long(text: &str, index: usize) -> Result<i64, ChannelError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if text.is_empty() {
        return error(format!("empty string: index={index} length=0"));
    }
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return error(format!("error parsing long: {text}"));
    }
    text.parse().map_err(|_| ChannelError(format!("long overflow parsing: {text}")))
}

/// Writes a size in the greatest unit that leaves no rest.
pub(super) fn format_size(size: i64) -> String {
    in_greatest_unit(size, &[(1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k"), (1, "")])
}

pub(super) fn format_duration(nanos: i64) -> String {
    in_greatest_unit(nanos, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us"), (1, "ns")])
}

fn in_greatest_unit(number: i64, units: &[(i64, &str)]) -> String {
    let greatest =
        units.iter().find(|&&(unit, _)| unit == 1 || (number >= unit && number % unit == 0));
    match greatest {
        Some((unit, name)) => format!("{}{name}", number / unit),
        None => number.to_string(),
    }
}
