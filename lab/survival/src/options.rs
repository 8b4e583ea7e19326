//! The command line.

use clap::{Parser, Subcommand};

use crate::archive::ArchiveOptions;
use crate::clients::ClientsOptions;
use crate::cluster::ClusterOptions;

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
    /// Kills an archive server while it records and replays: nothing that it had announced may be missing, and the next
    /// server must start at once
    Archive(ArchiveOptions),
    /// A process of a campaign.
    #[command(hide = true)]
    Party {
        campaign: String,
        /// What the process is to do, in JSON
        options: String,
        /// The supervisor's process
        #[arg(long)]
        supervisor: i32,
    },
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::{CommandFactory, ValueEnum};

    use super::*;
    use crate::clients::FaultKind;
    use crate::cluster::ClusterFault;

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
        assert_eq!(options.faults, FaultKind::all());
        assert!(!options.faults.contains(&FaultKind::None) && options.faults.len() == 13);
        let Command::Cluster(options) = parse(["cluster", "--duration", "3m"]) else {
            panic!("cluster")
        };
        assert_eq!(options.common.duration, Some(Duration::from_secs(180)));
        assert_eq!(options.faults, ClusterFault::value_variants());
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
