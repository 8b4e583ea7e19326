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
    use clap::CommandFactory as _;

    #[test]
    fn command_lines_are_consistent() {
        super::Options::command().debug_assert();
    }
}
