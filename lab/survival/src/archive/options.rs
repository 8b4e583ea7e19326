//! The command line of the campaign.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Args)]
pub(crate) struct ArchiveOptions {
    /// How long servers are killed; the checks in the end take some seconds more
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) duration: Duration,

    /// Ends after so many kills if they come before the end of the duration [default: no limit]
    #[arg(long, value_name = "COUNT")]
    pub(crate) kills: Option<u64>,

    /// How long a start, an answer or a replay may take
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) deadline: Duration,

    /// Seed of all choices [default: a random number, which is printed]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,

    /// Number of streams that are recorded at once
    #[arg(long, default_value_t = 6, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) streams: u16,

    /// Directory for the recordings, which are deleted in the end [default: shared memory]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    /// Directory for the report
    #[arg(long, default_value = "target/survival", value_name = "DIR")]
    pub(crate) results: PathBuf,

    /// Damages the first recording between a kill and the start, which the campaign must notice
    #[arg(long, hide = true, value_name = "DAMAGE")]
    pub(crate) sabotage: Option<Damage>,
}

/// A fault of a server, as its files would show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Damage {
    /// A segment that was announced is empty
    Cut,
    /// A byte of a message that was announced is another one
    Change,
}
