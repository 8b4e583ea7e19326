//! The command line: of the supervisor, and of the processes that it starts.

use clap::{Parser, Subcommand};

use crate::archive::{ArchiveOptions, ServerOptions};
use crate::clients::{ClientsOptions, Part, PartOptions};
use crate::cluster::{ClusterOptions, MemberOptions, Process};

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
    /// The process of the campaign `archive`.
    #[command(hide = true)]
    Server {
        /// The supervisor's process
        #[arg(long)]
        supervisor: i32,
        #[command(flatten)]
        options: ServerOptions,
    },
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::CommandFactory;

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
