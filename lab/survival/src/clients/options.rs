//! The command lines of the campaign and its parts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::faults::FaultKind;

#[derive(Debug, Clone, Args)]
pub(crate) struct ClientsOptions {
    /// How long faults are caused; start, end and the last checkpoint take some seconds more
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) duration: Duration,

    /// How long a condition may take to come true when no fault lasts; half of it for resources to be gone
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) deadline: Duration,

    /// Seed of the choice of faults [default: a random number, which is printed]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,

    /// Faults to cause, separated by commas
    #[arg(long, value_name = "FAULTS", value_enum, value_delimiter = ',',
          default_values_t = FaultKind::ALL)]
    pub(crate) faults: Vec<FaultKind>,

    /// Number of publishers, a process each
    #[arg(long, default_value_t = 3, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) publishers: u16,

    /// Number of subscribers, a process each
    #[arg(long, default_value_t = 3, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) subscribers: u16,

    /// Directory for the report
    #[arg(long, default_value = "target/survival", value_name = "DIR")]
    pub(crate) results: PathBuf,

    /// Lets the first subscriber make a mistake, which the campaign must notice
    #[arg(long, hide = true, value_name = "MISTAKE")]
    pub(crate) sabotage: Option<Sabotage>,
}

/// A mistake of a subscriber's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sabotage {
    /// Sees a message twice
    Repeat,
    /// Overlooks a message
    Skip,
    /// Changes a message
    Corrupt,
    /// Aborts
    Crash,
    /// Keeps descriptors open
    Leak,
    /// Ignores that its client is closed
    Undead,
}

/// The processes of the campaign `clients`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Part {
    /// Runs the media driver
    Driver,
    /// Publishes on all streams
    Publisher,
    /// Subscribes to all streams
    Subscriber,
    /// Forges the metadata of log buffers of its own
    Forger,
    /// Takes all memory of the driver's file system with log buffers of its own
    Hog,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct PartOptions {
    /// The supervisor's process
    #[arg(long)]
    pub(crate) supervisor: i32,
    /// The driver's directory
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Which of the publishers or subscribers this is
    #[arg(long, default_value_t = 0)]
    pub(crate) index: u16,
    /// The address and port of the stream over UDP
    #[arg(long, default_value = "127.0.0.1:0")]
    pub(crate) endpoint: String,
    /// Seed of the random choices
    #[arg(long)]
    pub(crate) seed: u64,
    /// How many counters a publisher has
    #[arg(long, default_value_t = 0)]
    pub(crate) counters: usize,
    /// Let the driver take over the directory of a dead driver, instead of deleting it in any case
    #[arg(long)]
    pub(crate) take_over: bool,
    /// Let the driver make sparse log buffers, and count what they have yet to take
    #[arg(long)]
    pub(crate) sparse: bool,
    /// Let the driver lose datagrams
    #[arg(long)]
    pub(crate) loss: bool,
    /// The mistake to make
    #[arg(long)]
    pub(crate) sabotage: Option<Sabotage>,
}
