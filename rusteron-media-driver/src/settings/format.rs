//! The texts that the driver can read as the value of a setting.
//!
//! Aeron reads more: it takes `64kb` for `64k`, `truely` for `true` and, where it expects a number,
//! `10s` for 10. Such texts are refused here, because they are probably mistakes.

use std::env;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use rusteron_core::idle::IdleStrategyKind;
use rusteron_core::scan;

/// The form of a setting's value, and its range.
#[derive(Debug)]
pub(super) enum Format {
    Flag,
    /// Bytes, as a number or with k, m or g.
    Size(Limit),
    /// Nanoseconds from this minimum, as a number or with a unit.
    Duration(u64),
    /// A duration as a number without a unit.
    Milliseconds,
    /// A number as in C, which can be hexadecimal or octal.
    Number(RangeInclusive<i128>),
    Word(&'static [&'static str]),
    /// The name of a function of Aeron or of a library.
    Function(&'static [Names]),
    /// Names of functions, separated by commas.
    Functions(&'static [Names]),
    /// Arguments of the idle strategy that this variable names.
    IdleArguments(&'static str),
    /// Two ports, separated by a space.
    Ports,
    /// Codes of the event log, separated by commas.
    Events,
    Text,
}

/// The permitted sizes of a setting, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Any,
    PowerOfTwo,
    MultipleOf(u64),
    /// A power of two, and the bytes of a trailer.
    PowerOfTwoAnd(u64),
}

impl Limit {
    fn admits(&self, size: u64) -> bool {
        (self.min..=self.max).contains(&size)
            && match self.form {
                Form::Any => true,
                Form::PowerOfTwo => size.is_power_of_two(),
                Form::MultipleOf(step) => size % step == 0,
                Form::PowerOfTwoAnd(trailer) => (size - trailer).is_power_of_two(),
            }
    }
}

/// Writes the sizes behind "must be" and "is not".
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Any => f.write_str("a size")?,
            Form::PowerOfTwo => f.write_str("a power of two")?,
            Form::MultipleOf(step) => write!(f, "a multiple of {step}")?,
            Form::PowerOfTwoAnd(trailer) => write!(f, "a power of two and {trailer} bytes")?,
        }
        write!(f, " from {} to {}", scan::format_size(self.min), scan::format_size(self.max))
    }
}

/// A short name, and the name of the C function.
type Names = (&'static str, &'static str);

const SLEEPING: &str = "aeron_idle_strategy_sleeping";
const BACKOFF: &str = "aeron_idle_strategy_backoff";

pub(super) const IDLE_STRATEGIES: &[Names] = &[
    ("sleep-ns", SLEEPING),
    ("sleeping", SLEEPING),
    ("yield", "aeron_idle_strategy_yielding"),
    ("spin", "aeron_idle_strategy_busy_spinning"),
    ("noop", "aeron_idle_strategy_noop"),
    ("backoff", BACKOFF),
];
pub(super) const TERMINATION_VALIDATORS: &[Names] = &[
    ("allow", "aeron_driver_termination_validator_default_allow"),
    ("deny", "aeron_driver_termination_validator_default_deny"),
];
pub(super) const BINDINGS: &[Names] =
    &[("default", "aeron_udp_channel_transport_bindings_default")];

const LAST_EVENT_ID: u8 = 62;

/// The names of the event log's codes. A test compares them with Aeron's source.
#[rustfmt::skip]
const EVENTS: &[&str] = &[
    "FRAME_IN", "FRAME_OUT", "CMD_IN_ADD_PUBLICATION", "CMD_IN_REMOVE_PUBLICATION",
    "CMD_IN_ADD_SUBSCRIPTION", "CMD_IN_REMOVE_SUBSCRIPTION", "CMD_OUT_PUBLICATION_READY",
    "CMD_OUT_AVAILABLE_IMAGE", "CMD_OUT_ON_OPERATION_SUCCESS", "CMD_IN_KEEPALIVE_CLIENT",
    "REMOVE_PUBLICATION_CLEANUP", "REMOVE_SUBSCRIPTION_CLEANUP", "REMOVE_IMAGE_CLEANUP",
    "CMD_OUT_ON_UNAVAILABLE_IMAGE", "SEND_CHANNEL_CREATION", "RECEIVE_CHANNEL_CREATION",
    "SEND_CHANNEL_CLOSE", "RECEIVE_CHANNEL_CLOSE", "CMD_IN_ADD_DESTINATION",
    "CMD_IN_REMOVE_DESTINATION", "CMD_IN_ADD_EXCLUSIVE_PUBLICATION",
    "CMD_OUT_EXCLUSIVE_PUBLICATION_READY", "CMD_OUT_ERROR", "CMD_IN_ADD_COUNTER",
    "CMD_IN_REMOVE_COUNTER", "CMD_OUT_SUBSCRIPTION_READY", "CMD_OUT_COUNTER_READY",
    "CMD_OUT_ON_UNAVAILABLE_COUNTER", "CMD_IN_CLIENT_CLOSE", "CMD_IN_ADD_RCV_DESTINATION",
    "CMD_IN_REMOVE_RCV_DESTINATION", "CMD_OUT_ON_CLIENT_TIMEOUT", "CMD_IN_TERMINATE_DRIVER",
    "UNTETHERED_SUBSCRIPTION_STATE_CHANGE", "NAME_RESOLUTION_NEIGHBOR_ADDED",
    "NAME_RESOLUTION_NEIGHBOR_REMOVED", "FLOW_CONTROL_RECEIVER_ADDED",
    "FLOW_CONTROL_RECEIVER_REMOVED", "NAME_RESOLUTION_RESOLVE", "GENERIC_MESSAGE",
    "NAME_RESOLUTION_LOOKUP", "NAME_RESOLUTION_HOST_NAME", "NAK_SENT", "RESEND",
    "CMD_IN_REMOVE_DESTINATION_BY_ID", "CMD_IN_REJECT_IMAGE", "NAK_RECEIVED", "PUBLICATION_REVOKE",
    "PUBLICATION_IMAGE_REVOKE", "ADD_DYNAMIC_DISSECTOR", "DYNAMIC_DISSECTOR_EVENT",
    "SEND_NAK_MESSAGE",
];

impl Format {
    /// Checks a text.
    ///
    /// # Errors
    /// The texts that are permitted, such as `must be true or false`.
    pub(super) fn check(&self, text: &str) -> Result<(), String> {
        let (is_valid, valid) = match self {
            Self::Flag => {
                let valid = ["true", "on", "1", "false", "off", "0"];
                (valid.contains(&text), "true or false".into())
            }
            Self::Size(limit) => {
                (scan::size(text).is_some_and(|bytes| limit.admits(bytes)), limit.to_string())
            }
            Self::Duration(min) => (
                scan::duration(text).is_some_and(|duration| duration >= Duration::from_nanos(*min)),
                format!(
                    "a duration with ns, us, ms or s, {} or more",
                    scan::format_duration(Duration::from_nanos(*min))
                ),
            ),
            Self::Milliseconds => (
                number(text).is_some_and(|millis| (0..=i64::MAX.into()).contains(&millis)),
                "a number of milliseconds, such as 10000".into(),
            ),
            Self::Number(range) => (
                number(text).is_some_and(|number| range.contains(&number)),
                format!("an integer from {} to {}", range.start(), range.end()),
            ),
            Self::Word(words) => (words.contains(&text), list(words)),
            Self::Function(names) => (is_function(names, text), functions(names)),
            Self::Functions(names) => (
                !text.is_empty() && text.split(',').all(|name| is_function(names, name)),
                format!("a list, separated by commas, of {}", functions(names)),
            ),
            Self::IdleArguments(variable) => match strategy(variable).as_str() {
                SLEEPING => {
                    (scan::duration(text).is_some(), "a duration with ns, us, ms or s".into())
                }
                BACKOFF => (
                    is_backoff(text),
                    "spins, yields, and the shortest and the longest sleep, such as 10-20-1us-1ms"
                        .into(),
                ),
                _ => return Ok(()),
            },
            Self::Ports => {
                (are_ports(text), "the first and the last port, such as 20000 20100".into())
            }
            Self::Events => (
                text.split(',').all(is_event),
                "codes of the event log, separated by commas, such as admin or CMD_OUT_ERROR"
                    .into(),
            ),
            Self::Text => return Ok(()),
        };
        if is_valid { Ok(()) } else { Err(format!("must be {valid}")) }
    }
}

pub(super) fn number(text: &str) -> Option<i128> {
    if text.starts_with(|c: char| c.is_whitespace() || c == '+') {
        return None;
    }
    let of_64_bits = || text.parse::<u64>().ok().filter(|_| !text.starts_with('0'));
    scan::int64(text, 0).map(i128::from).or_else(|| of_64_bits().map(i128::from))
}

/// Returns whether the driver can find a function by this name. Libraries can have any function.
fn is_function(names: &[Names], name: &str) -> bool {
    let has_libraries =
        env::var_os("AERON_DRIVER_DYNAMIC_LIBRARIES").is_some_and(|names| !names.is_empty());
    has_libraries || names.iter().any(|(short, function)| *short == name || *function == name)
}

fn functions(names: &[Names]) -> String {
    let short: Vec<_> = names.iter().map(|names| names.0).collect();
    format!("{}, or a function of AERON_DRIVER_DYNAMIC_LIBRARIES", short.join(", "))
}

/// Writes `a, b or c`.
fn list(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        words => words.join(""),
    }
}

/// Returns the C function of the idle strategy that a variable names.
fn strategy(variable: &str) -> String {
    let default = match variable {
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY" => SLEEPING,
        _ => BACKOFF,
    };
    let name = env::var(variable).unwrap_or_else(|_| default.to_owned());
    let known = IDLE_STRATEGIES.iter().find(|(short, _)| *short == name);
    known.map_or(name, |(_, function)| (*function).to_owned())
}

/// Finds one of Aeron's idle strategies by either of its names in C.
pub(super) fn idle_strategy(name: &str) -> Option<IdleStrategyKind> {
    let is_known = |(short, function): &&Names| *short == name || *function == name;
    let (_, function) = IDLE_STRATEGIES.iter().find(is_known)?;
    IDLE_STRATEGIES
        .iter()
        .filter(|names| names.1 == *function)
        .find_map(|(short, _)| short.parse().ok())
}

fn is_backoff(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    // In this place C knows no unit ns.
    let is_time = |text: &str| scan::duration(text).is_some() && !text.contains(['n', 'N']);
    matches!(*parts, [spins, yields, shortest, longest]
        if is_number(spins) && is_number(yields) && is_time(shortest) && is_time(longest))
}

fn are_ports(text: &str) -> bool {
    let ports: Option<Vec<u16>> = text.split_whitespace().map(|port| port.parse().ok()).collect();
    matches!(ports.as_deref(), Some([low, high]) if low <= high)
}

fn is_event(code: &str) -> bool {
    let is_mask = || {
        let digits = code.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
        digits.is_some_and(|digits| u64::from_str_radix(digits, 16).is_ok_and(|mask| mask != 0))
    };
    let is_id = || code.parse().is_ok_and(|id: u8| (1..=LAST_EVENT_ID).contains(&id));
    matches!(code, "" | "all" | "admin") || EVENTS.contains(&code) || is_mask() || is_id()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UdpInterceptor;

    #[test]
    fn values_are_checked() {
        let size = || Format::Size(Limit { min: 0, max: 1 << 30, form: Form::Any });
        for (format, valid, invalid) in [
            (
                Format::Flag,
                &["true", "on", "1", "false", "off", "0"][..],
                &["", "yes", "TRUE", "truely"][..],
            ),
            (
                size(),
                &["0", "4096", "64k", "1M", "1g"],
                &["", "k", "64kb", "-1", "2g", " 64k", "1.5m"],
            ),
            (
                Format::Duration(1_000),
                &["1000", "1us", "1000ns", "5MS", "10s", "9223372036s"],
                &["", "9223372037s", "999", "1ns", "1sec", "5m", "1 s", "-1s", "1h"],
            ),
            (Format::Milliseconds, &["0", "10000"], &["", "10s", "-1", "9223372036854775808"]),
            (
                Format::Number(-1..=255),
                &["-1", "0", "255", "0xff", "017", "0X1F"],
                &["", "-2", "256", "08", "0x", "1k", "10s", "--1", "+1", "0x-1", "0x100"],
            ),
            (Format::Word(&["new", "classic"]), &["new"], &["", "New", "old"]),
            (
                Format::Function(IDLE_STRATEGIES),
                &["noop", "aeron_idle_strategy_noop"],
                &["", "sleepy", "Noop"],
            ),
            (
                Format::Functions(UdpInterceptor::FUNCTIONS),
                &["loss", "loss,fixed-loss"],
                &["", "loss,", "gain"],
            ),
            (
                Format::IdleArguments("AERON_SENDER_IDLE_STRATEGY"),
                &["10-20-1us-1ms", "1-2-3-4"],
                &["", "1ms", "1-2-3", "1-2-3-4ns", "a-2-3-4", "1-2-3-4-5"],
            ),
            (
                Format::IdleArguments("AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY"),
                &["1ms"],
                &["", "soon"],
            ),
            (Format::Ports, &["20000 20100", "0 0"], &["", "1", "2 1", "1 65536", "1 2 3"]),
            (
                Format::Events,
                &[
                    "",
                    "all",
                    "admin,FRAME_IN",
                    "0xffff",
                    "0xffffffffffffffff",
                    "CMD_OUT_ERROR",
                    "34",
                ],
                &["ALL", "CMD_OUT_EROR", "0x0", "0", "200", "admin FRAME_IN"],
            ),
            (Format::Text, &["", "anything"], &[]),
        ] {
            for text in valid {
                assert_eq!(format.check(text), Ok(()), "{text:?}");
            }
            for text in invalid {
                let error = format.check(text).expect_err(text);
                assert!(error.starts_with("must be "), "{text:?}: {error}");
            }
        }
    }

    #[test]
    fn range_is_named() {
        let error = |format: Format| format.check("?").expect_err("no value");
        assert_eq!(error(Format::Flag), "must be true or false");
        assert_eq!(
            error(Format::Duration(1_000)),
            "must be a duration with ns, us, ms or s, 1us or more"
        );
        assert_eq!(error(Format::Number(1..=256)), "must be an integer from 1 to 256");
        assert_eq!(
            error(Format::Size(Limit { min: 1 << 16, max: 1 << 30, form: Form::PowerOfTwo })),
            "must be a power of two from 64k to 1g"
        );
        assert_eq!(error(Format::Word(&["a", "b", "c"])), "must be a, b or c");
    }

    #[test]
    fn limits_are_written_and_checked() {
        for (min, max, form, text, admitted, refused) in [
            (1 << 16, 1 << 30, Form::PowerOfTwo, "a power of two from 64k to 1g", 1 << 16, 100),
            (64, 65_504, Form::MultipleOf(32), "a multiple of 32 from 64 to 65504", 1408, 1400),
            (1 << 20, 500 << 20, Form::Any, "a size from 1m to 500m", 1 << 20, (1 << 20) - 1),
            (
                (1 << 20) + 128,
                i32::MAX as u64,
                Form::PowerOfTwoAnd(128),
                "a power of two and 128 bytes from 1048704 to 2147483647",
                (2 << 20) + 128,
                2 << 20,
            ),
        ] {
            let limit = Limit { min, max, form };
            assert_eq!(limit.to_string(), text);
            assert!(limit.admits(admitted), "{text}");
            assert!(!limit.admits(refused), "{text}");
        }
    }
}
