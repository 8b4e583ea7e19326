//! Options of an embedded driver, and of idle strategies.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use rusteron_client::IdleStrategyKind;
use rusteron_media_driver::{Context as DriverContext, ThreadingMode};

use super::byte_size;
use super::failure::Failure;

/// The threading modes of an embedded driver.
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
    /// The mode, as the driver calls it.
    pub fn mode(self) -> ThreadingMode {
        match self {
            Self::Dedicated => ThreadingMode::Dedicated,
            Self::SharedNetwork => ThreadingMode::SharedNetwork,
            Self::Shared => ThreadingMode::Shared,
        }
    }

    /// The mode, as the option calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dedicated => "dedicated",
            Self::SharedNetwork => "shared-network",
            Self::Shared => "shared",
        }
    }
}

/// The options of programs that launch an embedded driver.
#[derive(Debug, Clone, Args)]
pub struct DriverOptions {
    /// Length of a term buffer: a power of two from 64k to 1g [default: the driver's, usually 64m for IPC, 16m for UDP]
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES",
          value_parser = byte_size::parse_term_length)]
    pub term_length: Option<usize>,

    /// Threads of the embedded driver [default: shared]
    #[arg(long, value_name = "MODE")]
    pub threading_mode: Option<Threading>,
}

impl DriverOptions {
    /// The threading mode of an embedded driver.
    pub fn threading(&self) -> Threading {
        self.threading_mode.unwrap_or(Threading::Shared)
    }

    /// The settings of an embedded driver. Nothing is launched, and no file made.
    ///
    /// # Errors
    /// [`Failure::Run`] if the environment has settings that cannot be used.
    pub fn driver_context(&self) -> Result<DriverContext, Failure> {
        let mut context = DriverContext::new()?;
        context.set_threading_mode(self.threading().mode())?;
        if let Some(length) = self.term_length {
            context.set_term_buffer_length(length)?.set_ipc_term_buffer_length(length)?;
        }
        Ok(context)
    }
}

/// The parser of options that name an idle strategy.
pub fn idle_strategy() -> impl TypedValueParser<Value = IdleStrategyKind> {
    PossibleValuesParser::new(IdleStrategyKind::ALL.map(IdleStrategyKind::name))
        .try_map(|name| name.parse::<IdleStrategyKind>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threading_modes_parse_by_name() {
        for threading in Threading::value_variants() {
            assert_eq!(Threading::from_str(threading.name(), false), Ok(*threading));
        }
    }
}
