//! The command lines: of the campaigns, and of the processes that they start.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use rusteron_benchmarks::command_line::duration;

use crate::clients::FaultKind;
use crate::cluster::{ClusterFault, Process};

/// Causes faults at random, and checks every message.
///
/// Prints a table and writes a JSON file. Exits with 1 if a condition was violated. The same seed chooses the same
/// faults; the machine decides when they strike.
#[derive(Debug, Parser)]
#[command(name = "survival", version, disable_help_subcommand = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Command {
    /// Kills, pauses and starves publishers, subscribers and their driver: nothing may be lost, repeated, reordered,
    /// corrupted or leaked, and no process may crash
    Clients(ClientsOptions),
    /// Kills and pauses the processes of three cluster members: members may not diverge, answers may not be lost or
    /// repeated, and everything has to come back (needs Java)
    Cluster(ClusterOptions),
    /// A process of the campaign `clients`.
    #[command(hide = true)]
    Part {
        part: Part,
        #[command(flatten)]
        options: PartOptions,
    },
    /// A process of a cluster's member.
    #[command(hide = true)]
    Member {
        process: Process,
        #[command(flatten)]
        options: MemberOptions,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ClientsOptions {
    /// How long faults are caused; start, end and the last checkpoint take some seconds more
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) duration: Duration,

    /// How long a condition may take to come true when no fault lasts; half of it for resources to be gone
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = duration::parse)]
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
    /// Let the driver lose datagrams
    #[arg(long)]
    pub(crate) loss: bool,
    /// The mistake to make
    #[arg(long)]
    pub(crate) sabotage: Option<Sabotage>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterOptions {
    /// How long faults are caused; start and end take a minute more
    #[arg(long, default_value = "2m", value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) duration: Duration,

    /// Time within which the cluster must answer again after a fault, and a member must catch up
    #[arg(long, default_value = "4m", value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) deadline: Duration,

    /// Seed of the choice of faults [default: a random number, which is printed]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,

    /// Faults to cause, separated by commas
    #[arg(long, value_name = "FAULTS", value_enum, value_delimiter = ',',
          default_values_t = ClusterFault::ALL)]
    pub(crate) faults: Vec<ClusterFault>,

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

#[derive(Debug, Clone, Args)]
pub(crate) struct MemberOptions {
    /// The supervisor's process
    #[arg(long)]
    pub(crate) supervisor: i32,
    /// The media driver's directory
    #[arg(long)]
    pub(crate) aeron_dir: PathBuf,
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse<const N: usize>(arguments: [&str; N]) -> Command {
        Options::parse_from([&["survival"], &arguments[..]].concat()).command
    }

    #[test]
    fn command_lines_are_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn all_faults_are_on_by_default() {
        let Command::Clients(options) = parse(["clients"]) else { panic!("clients") };
        assert_eq!(options.duration, Duration::from_secs(60));
        assert_eq!(options.faults, FaultKind::ALL);
        let Command::Cluster(options) = parse(["cluster"]) else { panic!("cluster") };
        assert_eq!(options.faults, ClusterFault::ALL);
        assert!(!options.diverge);
    }

    #[test]
    fn faults_are_a_list() {
        let command = parse(["clients", "--faults", "kill-client,loss", "--seed", "7"]);
        let Command::Clients(options) = command else { panic!("clients") };
        assert_eq!(options.faults, [FaultKind::KillClient, FaultKind::Loss]);
        assert!(Options::try_parse_from(["survival", "clients", "--faults", "rust"]).is_err());
    }
}
