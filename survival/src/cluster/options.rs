//! The command lines: of the campaign, and of the processes that it starts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use rusteron_benchmarks::command_line::duration;

use super::faults::ClusterFault;

/// Kills and pauses the processes of three cluster members, and checks every answer and every state.
///
/// Prints a table and writes a JSON file. Exits with 1 if members have diverged, if an answer was lost or repeated, if
/// the cluster or a member did not come back, or if a service crashed. Needs Java. The same seed chooses the same
/// faults; the machine decides when they strike.
#[derive(Debug, Parser)]
#[command(
    name = "prove_cluster_survival",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
pub struct ClusterSurvivalOptions {
    /// The options of the supervisor.
    #[command(flatten)]
    pub campaign: ClusterCampaignOptions,

    /// The part that the supervisor has started this process for.
    #[command(subcommand)]
    pub command: Option<ClusterCommand>,
}

/// The options of the campaign.
#[derive(Debug, Clone, Args)]
pub struct ClusterCampaignOptions {
    /// How long faults are caused; start and end take a minute more
    #[arg(long, default_value = "2m", value_name = "DURATION", value_parser = duration::parse)]
    pub duration: Duration,

    /// Seed of the choice of faults [default: a random number, which is printed]
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Faults to cause, separated by commas
    #[arg(long, value_name = "FAULTS", value_enum, value_delimiter = ',',
          default_values_t = ClusterFault::ALL)]
    pub faults: Vec<ClusterFault>,

    /// Number of clients
    #[arg(long, default_value_t = 2, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=16))]
    pub clients: u16,

    /// Time within which the cluster must answer again after a fault, and a member must catch up
    #[arg(long, default_value = "4m", value_name = "DURATION", value_parser = duration::parse)]
    pub deadline: Duration,

    /// Directory for the report and the output of all processes
    #[arg(long, default_value = "target/cluster-survival", value_name = "DIR")]
    pub results: PathBuf,

    /// Runs ledgers that iterate a `HashMap`: the campaign must notice
    #[arg(long)]
    pub diverge: bool,
}

/// The processes of a member.
#[derive(Debug, Clone, Subcommand)]
pub enum ClusterCommand {
    /// Runs a media driver.
    #[command(hide = true)]
    Driver(MemberOptions),
    /// Becomes Java's archive and consensus module.
    #[command(hide = true)]
    Module(MemberOptions),
    /// Runs a ledger.
    #[command(hide = true)]
    Service(MemberOptions),
}

/// The options of a process of a member.
#[derive(Debug, Clone, Args)]
pub struct MemberOptions {
    /// The supervisor's process
    #[arg(long)]
    pub supervisor: i32,
    /// The media driver's directory
    #[arg(long)]
    pub aeron_dir: PathBuf,
    /// The cluster directory
    #[arg(long)]
    pub cluster_dir: PathBuf,
    /// The file to which the ledger appends digests
    #[arg(long)]
    pub digests: PathBuf,
    /// Run a ledger that iterates a `HashMap`
    #[arg(long)]
    pub diverge: bool,
    /// Arguments of the JVM
    #[arg(last = true)]
    pub arguments: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_lines_are_consistent() {
        ClusterSurvivalOptions::command().debug_assert();
    }

    #[test]
    fn all_faults_are_on_by_default() {
        let options = ClusterSurvivalOptions::parse_from(["prove_cluster_survival"]);
        assert_eq!(options.campaign.faults, ClusterFault::ALL);
        assert!(!options.campaign.diverge && options.command.is_none());
    }
}
