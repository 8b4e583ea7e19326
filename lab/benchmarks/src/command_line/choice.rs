//! Choices that several benchmarks offer, and their names in tables.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use rusteron_client::IdleStrategyKind;
use rusteron_core::program::Failure;
use rusteron_test_support::networks::Network;

/// The value of an option in words: `c-functions` is `C functions`.
pub fn in_words<T: ValueEnum>(value: &T) -> String {
    let name = value.to_possible_value().map(|value| value.get_name().replace('-', " "));
    let mut letters = name.unwrap_or_default();
    if let Some(first) = letters.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    letters
}

/// Displays values of options [in words](in_words).
macro_rules! display_in_words {
    ($($type:ty),+) => {$(
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&$crate::command_line::choice::in_words(self))
            }
        }
    )+};
}
pub(crate) use display_in_words;

/// The language of a client or a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Ours
    Rust,
    /// Aeron's
    Java,
}
display_in_words!(Language);

/// The transport of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// Shared memory
    Ipc,
    /// UDP over the loopback interface
    Udp,
}

impl Transport {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ipc => "IPC",
            Self::Udp => "UDP",
        }
    }
}

/// The threading modes of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Threading {
    /// A thread each for conductor, sender, receiver and native resource agent.
    Dedicated,
    /// Three threads: sender and receiver share one.
    SharedNetwork,
    /// One thread for everything.
    Shared,
}

impl Threading {
    /// The name in options and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dedicated => "dedicated",
            Self::SharedNetwork => "shared-network",
            Self::Shared => "shared",
        }
    }
}

/// The way from publisher to subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Route {
    /// One driver, over 127.0.0.1
    Loopback,
    /// A driver in each of two network namespaces, joined by virtual Ethernet devices; needs root
    /// and ip
    Namespaces,
}

impl Route {
    /// The name, as the option calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Namespaces => "namespaces",
        }
    }

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
            Failure::usage("--networks <NETWORKS>", Self::Namespaces.name(), reason)
        })
    }
}

/// The parser of options that name an idle strategy.
pub fn idle_strategy() -> impl TypedValueParser<Value = IdleStrategyKind> {
    PossibleValuesParser::new(IdleStrategyKind::ALL.map(IdleStrategyKind::name))
        .try_map(|name| name.parse::<IdleStrategyKind>())
}
