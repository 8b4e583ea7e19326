//! The texts of settings that only a driver has: functions of C, arguments of idle strategies, ports, events.

use std::env;
use std::ops::RangeInclusive;

use rusteron_core::idle::IdleStrategyKind;
use rusteron_core::scan;

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

/// Checks the name of a function of Aeron or of a library.
pub(super) fn function(names: &[Names], text: &str) -> Result<(), String> {
    must_be(is_function(names, text), || functions_of(names))
}

/// Checks names of functions, separated by commas.
pub(super) fn functions(names: &[Names], text: &str) -> Result<(), String> {
    let is_valid = !text.is_empty() && text.split(',').all(|name| is_function(names, name));
    must_be(is_valid, || format!("a list, separated by commas, of {}", functions_of(names)))
}

/// Checks the arguments of the idle strategy that a variable names.
pub(super) fn idle_arguments(variable: &str, text: &str) -> Result<(), String> {
    match strategy(variable).as_str() {
        SLEEPING => {
            must_be(scan::duration(text).is_some(), || "a duration with ns, us, ms or s".into())
        }
        BACKOFF => must_be(is_backoff(text), || {
            "spins, yields, and the shortest and the longest sleep, such as 10-20-1us-1ms".into()
        }),
        _ => Ok(()),
    }
}

/// Reads the first and the last of a range of ports, separated by a space; 0 and 0 for none.
pub(super) fn ports(text: &str) -> Result<Option<RangeInclusive<u16>>, String> {
    let ports: Option<Vec<u16>> = text.split_whitespace().map(|port| port.parse().ok()).collect();
    match ports.as_deref() {
        Some([0, 0]) => Ok(None),
        Some(&[low, high]) if low <= high => Ok(Some(low..=high)),
        _ => Err("must be the first and the last port, such as 20000 20100".to_owned()),
    }
}

/// Writes a range of ports.
pub(super) fn ports_text(ports: RangeInclusive<u16>) -> String {
    format!("{} {}", ports.start(), ports.end())
}

/// Checks codes of the event log, separated by commas.
pub(super) fn events(text: &str) -> Result<(), String> {
    must_be(text.split(',').all(is_event), || {
        "codes of the event log, separated by commas, such as admin or CMD_OUT_ERROR".into()
    })
}

fn must_be(is_valid: bool, valid: impl FnOnce() -> String) -> Result<(), String> {
    if is_valid { Ok(()) } else { Err(format!("must be {}", valid())) }
}

/// Returns whether the driver can find a function by this name. Libraries can have any function.
fn is_function(names: &[Names], name: &str) -> bool {
    let has_libraries =
        env::var_os("AERON_DRIVER_DYNAMIC_LIBRARIES").is_some_and(|names| !names.is_empty());
    has_libraries || names.iter().any(|(short, function)| *short == name || *function == name)
}

fn functions_of(names: &[Names]) -> String {
    let short: Vec<_> = names.iter().map(|names| names.0).collect();
    format!("{}, or a function of AERON_DRIVER_DYNAMIC_LIBRARIES", short.join(", "))
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
pub(crate) fn idle_strategy(name: &str) -> Option<IdleStrategyKind> {
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
        type Check = fn(&str) -> Result<(), String>;
        let cases: [(Check, &[&str], &[&str]); 6] = [
            (
                |text| function(IDLE_STRATEGIES, text),
                &["noop", "aeron_idle_strategy_noop"],
                &["", "sleepy", "Noop"],
            ),
            (
                |text| functions(UdpInterceptor::FUNCTIONS, text),
                &["loss", "loss,fixed-loss"],
                &["", "loss,", "gain"],
            ),
            (
                |text| idle_arguments("AERON_SENDER_IDLE_STRATEGY", text),
                &["10-20-1us-1ms", "1-2-3-4"],
                &["", "1ms", "1-2-3", "1-2-3-4ns", "a-2-3-4", "1-2-3-4-5"],
            ),
            (
                |text| idle_arguments("AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY", text),
                &["1ms"],
                &["", "soon"],
            ),
            (
                |text| ports(text).map(drop),
                &["20000 20100", "0 0"],
                &["", "1", "2 1", "1 65536", "1 2 3"],
            ),
            (
                events,
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
        ];
        for (check, valid, invalid) in cases {
            for text in valid {
                assert_eq!(check(text), Ok(()), "{text:?}");
            }
            for text in invalid {
                let error = check(text).expect_err(text);
                assert!(error.starts_with("must be "), "{text:?}: {error}");
            }
        }
    }
}
