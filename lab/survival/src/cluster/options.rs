//! The command lines of the campaign and its members' processes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::faults::ClusterFault;

#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterOptions {
    /// How long faults are caused; start and end take a minute more
    #[arg(long, default_value = "2m", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) duration: Duration,

    /// Time within which the cluster must answer again after a fault, and a member must catch up
    #[arg(long, default_value = "4m", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) deadline: Duration,

    /// Seed of the choice of faults [default: a random number, which is printed]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,

    /// Faults to cause, separated by commas
    #[arg(long, value_name = "FAULTS", value_enum, value_delimiter = ',',
          default_values_t = ClusterFault::ALL)]
    pub(crate) faults: Vec<ClusterFault>,

    /// The archives: ours in the processes of media drivers, or Java's in those of consensus modules
    #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
    pub(crate) archive: Language,

    /// Number of clients
    #[arg(long, default_value_t = 2, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=16))]
    pub(crate) clients: u16,

    /// Directory for the report and the output of all processes
    #[arg(long, default_value = "target/cluster-survival", value_name = "DIR")]
    pub(crate) results: PathBuf,

    /// Runs ledgers that iterate a `HashMap`: the campaign must notice
    #[arg(long)]
    pub(crate) diverge: bool,
}

/// The language of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// Ours
    Rust,
    /// Aeron's
    Java,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct MemberOptions {
    /// The supervisor's process
    #[arg(long)]
    pub(crate) supervisor: i32,
    /// The media driver's directory
    #[arg(long)]
    pub(crate) aeron_dir: PathBuf,
    /// The directory of the archive
    #[arg(long)]
    pub(crate) archive_dir: PathBuf,
    /// The UDP port of the archive, if it is ours
    #[arg(long)]
    pub(crate) archive_port: Option<u16>,
    /// The cluster directory
    #[arg(long)]
    pub(crate) cluster_dir: PathBuf,
    /// The file to which the ledger appends digests
    #[arg(long)]
    pub(crate) digests: PathBuf,
    /// Run a ledger that iterates a `HashMap`
    #[arg(long)]
    pub(crate) diverge: bool,
    /// Arguments of the JVM
    #[arg(last = true)]
    pub(crate) arguments: Vec<OsString>,
}
