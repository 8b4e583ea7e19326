//! Fault campaigns. `clients` kills, pauses and starves publishers, subscribers and their media driver, each a process
//! of its own; `cluster` does so with the members of a cluster with replicated services; `archive` kills an archive server
//! under load. All check every message.
//!
//! One program plays all parties. The process that a user starts supervises: the frame in
//! `campaign` strikes, waits for the conditions, checks and reports, and starts this program anew
//! for each party (`party`). What the parties, the strikes and the checks are, each campaign says
//! in a folder of its own.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod archive;
#[cfg(target_os = "linux")]
mod campaign;
#[cfg(target_os = "linux")]
mod clients;
#[cfg(target_os = "linux")]
mod cluster;
#[cfg(target_os = "linux")]
mod message;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod party;
#[cfg(target_os = "linux")]
mod report;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use clap::Parser;
    use options::{Command, Options};
    use rusteron_core::program::Failure;

    rusteron_test_support::programs::exit_code(match Options::parse().command {
        Command::Clients(options) => clients::run(&options),
        Command::Cluster(options) => cluster::run(&options),
        Command::Archive(options) => archive::run(&options),
        Command::Party { campaign, options, supervisor } => {
            party::follow(supervisor).and_then(|()| match campaign.as_str() {
                clients::NAME => clients::play(&party::parse(&options)?),
                cluster::NAME => cluster::play(&party::parse(&options)?),
                archive::NAME => archive::play(&party::parse(&options)?),
                other => Err(Failure::usage("<CAMPAIGN>", other, "there is no such campaign")),
            })
        }
    })
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("the campaigns need Linux: /proc, prlimit, tmpfs, signals with the end of a parent");
    ExitCode::FAILURE
}
