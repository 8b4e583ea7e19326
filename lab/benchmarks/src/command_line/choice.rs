//! Choices that several benchmarks offer, and their names in tables.

use std::fmt;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rusteron_client::IdleStrategyKind;
use rusteron_core::program::Failure;
use rusteron_test_support::networks::Network;

/// A program or a loop that is compared with others. Each benchmark says what it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Contender {
    /// The Rust API, or a program of this project.
    Rust,
    /// The Rust API, with messages in batches.
    RustBatches,
    /// Loops in Rust that call C's functions.
    CFunctions,
    /// Loops written in C.
    CProgram,
    /// A program of Aeron's in C.
    C,
    /// A program in Java that uses Aeron's Java code.
    Java,
    /// Aeron's own sample in Java.
    JavaSample,
    /// Plain UDP sockets without Aeron.
    Sockets,
    /// A cluster's client in Rust.
    RustClient,
    /// A cluster's client in Java.
    JavaClient,
    /// A cluster's service in Rust.
    RustService,
    /// A cluster's service in Java.
    JavaService,
}

impl Contender {
    /// Returns whether it is left out without Java.
    pub fn is_java(self) -> bool {
        matches!(self, Self::Java | Self::JavaSample | Self::JavaClient | Self::JavaService)
    }
}

/// In words: `c-functions` is `C functions`.
impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = option_name(self).replace('-', " ");
        words[..1].make_ascii_uppercase();
        f.pad(&words)
    }
}

/// The name of a value in options.
pub fn option_name(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The parser of options that take some of the contenders, whose names are separated by commas.
pub fn among(names: &'static str) -> impl TypedValueParser<Value = Contender> {
    PossibleValuesParser::new(names.split(','))
        .try_map(|name| <Contender as ValueEnum>::from_str(&name, false))
}

/// The parser of options that name an idle strategy.
pub fn idle_strategy() -> impl TypedValueParser<Value = IdleStrategyKind> {
    PossibleValuesParser::new(IdleStrategyKind::ALL.map(IdleStrategyKind::name))
        .try_map(|name| name.parse::<IdleStrategyKind>())
}

/// The transport of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// Shared memory
    Ipc,
    /// UDP over the loopback interface
    Udp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&option_name(self).to_uppercase())
    }
}

/// The way from publisher to subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Route {
    /// Over 127.0.0.1
    Loopback,
    /// Between two network namespaces, joined by virtual Ethernet devices; needs root and ip
    Namespaces,
}

impl Route {
    /// Makes the two networks if one of the routes needs them.
    ///
    /// # Errors
    /// [`Failure::Usage`] if a program or the permission is missing.
    pub fn networks(routes: &[Self]) -> Result<Option<[Network; 2]>, Failure> {
        if !routes.contains(&Self::Namespaces) {
            return Ok(None);
        }
        Network::pair().map(Some).map_err(|error| {
            let reason = format!(
                "needs root and the program ip (iproute2); `--networks loopback` needs neither: {error}"
            );
            Failure::usage("--networks <NETWORKS>", "namespaces", reason)
        })
    }
}
