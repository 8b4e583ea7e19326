//! The command lines: of the campaign, and of the parts that it starts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use rusteron_benchmarks::command_line::duration;

use crate::faults::FaultKind;

/// Kills, pauses and starves publishers, subscribers and their driver, and checks every message.
///
/// Prints a table and writes a JSON file. Exits with 1 if anything was lost, repeated, reordered, corrupted or
/// leaked, or if a process crashed. The same seed chooses the same faults; when they strike is up to the machine.
#[derive(Debug, Parser)]
#[command(
    name = "prove_survival",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub struct SurvivalOptions {
    /// The options of the supervisor.
    #[command(flatten)]
    pub campaign: CampaignOptions,

    /// The part that the supervisor has started this process for.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The options of the campaign.
#[derive(Debug, Clone, Args)]
pub struct CampaignOptions {
    /// How long faults are caused; start, end and the last checkpoint take some seconds more
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = duration::parse)]
    pub duration: Duration,

    /// How long a condition may take to come true when no fault lasts; half of it for resources to be gone
    #[arg(long, default_value = "1m", value_name = "DURATION", value_parser = duration::parse)]
    pub deadline: Duration,

    /// Seed of the choice of faults [default: a random number, which is printed]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Faults to cause, separated by commas
    #[arg(long, value_name = "FAULTS", value_enum, value_delimiter = ',',
          default_values_t = FaultKind::ALL)]
    pub faults: Vec<FaultKind>,

    /// Number of publishers, a process each
    #[arg(long, default_value_t = 3, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=16))]
    pub publishers: u16,

    /// Number of subscribers, a process each
    #[arg(long, default_value_t = 3, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=16))]
    pub subscribers: u16,

    /// Directory for the report
    #[arg(long, default_value = "target/survival", value_name = "DIR")]
    pub results: PathBuf,

    /// Lets the first subscriber make a mistake, which the campaign must notice
    #[arg(long, hide = true, value_name = "MISTAKE")]
    pub sabotage: Option<Sabotage>,
}

/// A mistake of a subscriber's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sabotage {
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

/// The parts of the campaign.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Runs the media driver.
    #[command(hide = true)]
    Driver(PartOptions),
    /// Publishes on all streams.
    #[command(hide = true)]
    Publisher(PartOptions),
    /// Subscribes to all streams.
    #[command(hide = true)]
    Subscriber(PartOptions),
    /// Forges the metadata of log buffers of its own.
    #[command(hide = true)]
    Forger(PartOptions),
}

/// The options of a part.
#[derive(Debug, Clone, Args)]
pub struct PartOptions {
    /// The supervisor's process
    #[arg(long)]
    pub supervisor: i32,
    /// The driver's directory
    #[arg(long)]
    pub dir: PathBuf,
    /// Which of the publishers or subscribers this is
    #[arg(long, default_value_t = 0)]
    pub index: u16,
    /// The address and port of the stream over UDP
    #[arg(long, default_value = "127.0.0.1:0")]
    pub endpoint: String,
    /// Seed of the random choices
    #[arg(long)]
    pub seed: u64,
    /// How many counters a publisher has
    #[arg(long, default_value_t = 0)]
    pub counters: usize,
    /// Let the driver take over the directory of a dead driver, instead of deleting it in any case
    #[arg(long)]
    pub take_over: bool,
    /// Let the driver lose datagrams
    #[arg(long)]
    pub loss: bool,
    /// The mistake to make
    #[arg(long)]
    pub sabotage: Option<Sabotage>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_lines_are_consistent() {
        SurvivalOptions::command().debug_assert();
    }

    #[test]
    fn everything_is_on_for_a_minute_by_default() {
        let options = SurvivalOptions::parse_from(["prove_survival"]);
        assert_eq!(options.campaign.duration, Duration::from_secs(60));
        assert_eq!(options.campaign.faults, FaultKind::ALL);
        assert!(options.command.is_none());
    }

    #[test]
    fn faults_are_a_list() {
        let line = ["prove_survival", "--faults", "kill-client,loss", "--seed", "7"];
        let options = SurvivalOptions::parse_from(line);
        assert_eq!(options.campaign.faults, [FaultKind::KillClient, FaultKind::Loss]);
        assert!(SurvivalOptions::try_parse_from(["prove_survival", "--faults", "rust"]).is_err());
    }
}
