//! Fault campaigns. `clients` kills, pauses and starves publishers, subscribers and their media driver, each a process
//! of its own; `cluster` does so with the members of a cluster with replicated services; `archive` kills an archive server
//! under load. All check every message.
//!
//! One program plays all parts. The process that a user starts supervises: it chooses faults, carries them out, checks
//! what the parts tell it, and starts this program anew for each part.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod archive;
#[cfg(target_os = "linux")]
mod clients;
#[cfg(target_os = "linux")]
mod cluster;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod report;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use clap::Parser;
    use options::{Command, Options};

    rusteron_test_support::programs::exit_code(match Options::parse().command {
        Command::Clients(options) => clients::run(&options),
        Command::Cluster(options) => cluster::run(&options),
        Command::Archive(options) => archive::run(&options),
        Command::Part { part, options } => clients::play(part, &options),
        Command::Member { process, options } => cluster::play(process, &options),
        Command::Server { supervisor, options } => archive::play(supervisor, &options),
    })
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("the campaigns need Linux: /proc, prlimit, tmpfs, signals with the end of a parent");
    ExitCode::FAILURE
}
