//! The names of Java classes in settings, and what stands for them here.
//!
//! Whatever starts Aeron's Java archive names idle strategies, checksums, authenticators and strategies of the driver by
//! their classes. A class that nothing stands for is refused.

use std::fmt;

use rusteron_client::IdleStrategyKind;
use rusteron_core::settings::list;

use crate::segment::checksum::Checksum;

/// The names of idle strategies beside Rusteron's. Agrona's backoff sleeps a millisecond at most, as its strategy that
/// sleeps milliseconds does always.
const IDLE_STRATEGIES: &[(&str, IdleStrategyKind)] = &[
    ("sleep-ms", IdleStrategyKind::Backoff),
    ("org.agrona.concurrent.BusySpinIdleStrategy", IdleStrategyKind::BusySpin),
    ("org.agrona.concurrent.YieldingIdleStrategy", IdleStrategyKind::Yielding),
    ("org.agrona.concurrent.SleepingIdleStrategy", IdleStrategyKind::Sleeping),
    ("org.agrona.concurrent.SleepingMillisIdleStrategy", IdleStrategyKind::Backoff),
    ("org.agrona.concurrent.BackoffIdleStrategy", IdleStrategyKind::Backoff),
    ("org.agrona.concurrent.NoOpIdleStrategy", IdleStrategyKind::NoOp),
];

/// The names of checksums, of which the first of each is printed.
const CHECKSUMS: &[(&str, Checksum)] = &[
    ("CRC-32", Checksum::Crc32),
    ("CRC-32C", Checksum::Crc32c),
    ("io.aeron.archive.checksum.Crc32", Checksum::Crc32),
    ("io.aeron.archive.checksum.Crc32c", Checksum::Crc32c),
    ("org.agrona.checksum.Crc32", Checksum::Crc32),
    ("org.agrona.checksum.Crc32c", Checksum::Crc32c),
];

#[cfg(feature = "binary")]
const TERMINATION_VALIDATORS: &[(&str, &str)] = &[
    ("io.aeron.driver.DefaultAllowTerminationValidator", "allow"),
    ("io.aeron.driver.DefaultDenyTerminationValidator", "deny"),
];

#[cfg(feature = "binary")]
const FLOW_CONTROL: &[(&str, &str)] = &[
    ("io.aeron.driver.DefaultUnicastFlowControlSupplier", "unicast_max"),
    ("io.aeron.driver.DefaultMulticastFlowControlSupplier", "multicast_max"),
    ("io.aeron.driver.MaxMulticastFlowControlSupplier", "multicast_max"),
    ("io.aeron.driver.MinMulticastFlowControlSupplier", "multicast_min"),
    ("io.aeron.driver.TaggedMulticastFlowControlSupplier", "multicast_tagged"),
];

#[cfg(feature = "binary")]
const CONGESTION_CONTROL: &[(&str, &str)] = &[
    ("io.aeron.driver.DefaultCongestionControlSupplier", "default"),
    ("io.aeron.driver.ext.CubicCongestionControlSupplier", "cubic"),
];

/// Finds an idle strategy by Rusteron's name or by its class.
///
/// # Errors
/// The known names.
pub(crate) fn idle_strategy(name: &str) -> Result<IdleStrategyKind, String> {
    let own = || name.parse().ok();
    let known = IdleStrategyKind::ALL.into_iter().map(IdleStrategyKind::name);
    find(IDLE_STRATEGIES, name)
        .or_else(own)
        .ok_or_else(|| must_be(known.chain(IDLE_STRATEGIES.iter().map(|(name, _)| *name))))
}

/// Finds a checksum by its name or its class.
///
/// # Errors
/// The known names.
pub(crate) fn checksum(name: &str) -> Result<Checksum, String> {
    find(CHECKSUMS, name).ok_or_else(|| must_be(CHECKSUMS.iter().map(|(name, _)| *name)))
}

/// Writes the name by which settings find it.
impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = CHECKSUMS.iter().find(|(_, checksum)| checksum == self).map(|(name, _)| *name);
        f.pad(name.unwrap_or_default())
    }
}

/// Translates the value of a driver's variable that is a Java class. `None` for other values, which the driver checks.
///
/// # Errors
/// The known classes, if the value is another one.
#[cfg(feature = "binary")]
pub(crate) fn driver_value(variable: &str, value: &str) -> Result<Option<&'static str>, String> {
    let classes = match variable {
        "AERON_DRIVER_TERMINATION_VALIDATOR" => TERMINATION_VALIDATORS,
        "AERON_UNICAST_FLOWCONTROL_SUPPLIER" | "AERON_MULTICAST_FLOWCONTROL_SUPPLIER" => {
            FLOW_CONTROL
        }
        "AERON_CONGESTIONCONTROL_SUPPLIER" => CONGESTION_CONTROL,
        _ if variable.ends_with("_IDLE_STRATEGY") => {
            return match find(IDLE_STRATEGIES, value) {
                Some(kind) => Ok(Some(kind.name())),
                None if value.contains('.') => idle_strategy(value).map(|kind| Some(kind.name())),
                None => Ok(None),
            };
        }
        _ => return Ok(None),
    };
    match find(classes, value) {
        Some(name) => Ok(Some(name)),
        None if value.contains('.') => Err(must_be(classes.iter().map(|(class, _)| *class))),
        None => Ok(None),
    }
}

fn find<T: Copy>(names: &[(&str, T)], name: &str) -> Option<T> {
    names.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

fn must_be<'a>(known: impl Iterator<Item = &'a str>) -> String {
    format!("must be {}", list(&known.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_strategies_have_names_and_classes() {
        for kind in IdleStrategyKind::ALL {
            assert_eq!(idle_strategy(kind.name()), Ok(kind));
        }
        let class =
            |name: &str| idle_strategy(&format!("org.agrona.concurrent.{name}IdleStrategy"));
        for (name, kind) in [
            ("BusySpin", IdleStrategyKind::BusySpin),
            ("Yielding", IdleStrategyKind::Yielding),
            ("Sleeping", IdleStrategyKind::Sleeping),
            ("Backoff", IdleStrategyKind::Backoff),
            ("NoOp", IdleStrategyKind::NoOp),
        ] {
            assert_eq!(class(name), Ok(kind), "{name}");
        }
        for name in ["", "sleepy", "Backoff", "org.agrona.concurrent.ControllableIdleStrategy"] {
            let error = idle_strategy(name).expect_err(name);
            assert!(error.starts_with("must be spin, yield, sleep-ns, backoff, noop, "), "{error}");
            assert!(error.ends_with(" or org.agrona.concurrent.NoOpIdleStrategy"), "{error}");
        }
    }

    #[test]
    fn checksums_have_names_and_classes() {
        for (names, checksum_of_names) in [
            (
                ["CRC-32", "io.aeron.archive.checksum.Crc32", "org.agrona.checksum.Crc32"],
                Checksum::Crc32,
            ),
            (
                ["CRC-32C", "io.aeron.archive.checksum.Crc32c", "org.agrona.checksum.Crc32c"],
                Checksum::Crc32c,
            ),
        ] {
            for name in names {
                assert_eq!(checksum(name), Ok(checksum_of_names), "{name}");
            }
            assert_eq!(checksum_of_names.to_string(), names[0]);
        }
        for name in ["", "crc32", "io.aeron.archive.checksum.Crc64"] {
            let error = checksum(name).expect_err(name);
            assert!(error.starts_with("must be CRC-32, CRC-32C, io.aeron."), "{error}");
        }
    }

    #[cfg(feature = "binary")]
    #[test]
    fn classes_of_driver_are_translated() {
        for (variable, value, expected) in [
            (
                "AERON_DRIVER_TERMINATION_VALIDATOR",
                "io.aeron.driver.DefaultAllowTerminationValidator",
                Some("allow"),
            ),
            (
                "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
                "io.aeron.driver.MinMulticastFlowControlSupplier",
                Some("multicast_min"),
            ),
            (
                "AERON_CONGESTIONCONTROL_SUPPLIER",
                "io.aeron.driver.ext.CubicCongestionControlSupplier",
                Some("cubic"),
            ),
            (
                "AERON_SHARED_IDLE_STRATEGY",
                "org.agrona.concurrent.YieldingIdleStrategy",
                Some("yield"),
            ),
            ("AERON_SHARED_IDLE_STRATEGY", "sleep-ms", Some("backoff")),
            ("AERON_SHARED_IDLE_STRATEGY", "yield", None),
            ("AERON_DRIVER_TERMINATION_VALIDATOR", "allow", None),
            ("AERON_DIR", "/tmp/a.b", None),
        ] {
            assert_eq!(driver_value(variable, value), Ok(expected), "{variable}={value}");
        }
        for (variable, value, known) in [
            ("AERON_DRIVER_TERMINATION_VALIDATOR", "com.Mine", "DefaultAllowTerminationValidator"),
            ("AERON_UNICAST_FLOWCONTROL_SUPPLIER", "com.Mine", "DefaultUnicastFlowControlSupplier"),
            ("AERON_SENDER_IDLE_STRATEGY", "com.Mine", "BackoffIdleStrategy"),
        ] {
            let error = driver_value(variable, value).expect_err(variable);
            assert!(error.contains(known), "{error}");
        }
    }
}
