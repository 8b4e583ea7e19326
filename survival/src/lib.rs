//! A fault campaign: publishers, subscribers and a media driver, each a process of its own, are killed, paused
//! and starved at random for a given time. Subscribers check every message.
//!
//! One program plays all parts. The process that a user starts supervises, and starts itself anew for each part
//! (`parts`). The supervisor chooses the faults (`faults`), carries them out (`campaign`), and looks for what the
//! parts leave behind (`leaks`). The subscribers' checks are in `oracle`.
//!
//! These conditions must hold:
//! - Within one image, the messages of a publication arrive in order, each once, unchanged.
//! - A gap is allowed only where the driver has timed out the subscriber: its client reports that within a second.
//! - An image that was joined at its beginning has the first message of each publication.
//! - A client that was paused for longer than the client liveness timeout reports that it is closed.
//! - After the faults, every remaining client finds all the others, and every message arrives.
//! - Files, mappings, descriptors, threads, counters and memory then are as before.
//!
//! The faults: processes are killed and paused, for shorter and longer than the client liveness timeout and
//! than the time after which counters go to another client; a driver is killed and another takes its directory
//! over at once; processes fork children that use and drop all inherited handles; a forger overwrites the
//! metadata of its own log buffers; the driver's file system fills up, which needs root; descriptors run out.
//! The streams go over IPC and UDP, and the driver loses datagrams.
//!
//! `just survival clients --duration 10m` runs it, and prints a table of violations, the time of each takeover,
//! and the seed. `--seed` chooses the same faults again; the machine decides when they strike. A violation,
//! leak or crash is exit code 1. `skipped after a timeout` counts gaps that a subscriber saw in the second
//! before it reported its timeout, in which publishers no longer waited for it.
#![forbid(unsafe_code)]
// Parts that other systems do not use are tested there all the same.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod campaign;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
mod cluster;
#[cfg(target_os = "linux")]
mod disk;
mod faults;
#[cfg(target_os = "linux")]
mod leaks;
#[cfg(target_os = "linux")]
mod member;
mod message;
mod options;
mod oracle;
#[cfg(target_os = "linux")]
mod parts;
mod random;
mod report;
mod settings;
mod words;

#[cfg(target_os = "linux")]
pub use cluster::{
    ClusterCampaignOptions, ClusterCommand, ClusterFault, ClusterSurvivalOptions, MemberOptions,
};
pub use faults::FaultKind;
pub use options::{CampaignOptions, Command, PartOptions, Sabotage, SurvivalOptions};

use rusteron_benchmarks::command_line::failure::Failure;

/// Runs the campaign, or the part of it that the options name.
///
/// # Errors
/// [`Failure::Run`] if something was lost, repeated, reordered, corrupted or leaked, if a process crashed, or if
/// the processes could not be run; [`Failure::Usage`] for an option that cannot be used.
#[cfg(target_os = "linux")]
pub fn run(options: SurvivalOptions) -> Result<(), Failure> {
    match options.command {
        Some(command) => parts::play(command),
        None => campaign::run(&options.campaign),
    }
}

/// Says that the campaign needs Linux.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn run(_options: SurvivalOptions) -> Result<(), Failure> {
    Err(Failure::Run("the campaign needs Linux: /proc, prlimit, tmpfs".to_owned()))
}

/// Runs the campaign on a cluster, or the process of a member that the options name.
///
/// # Errors
/// [`Failure::Run`] if members have diverged, if an answer was lost or repeated, if something did not come back, or if
/// the processes could not be run; [`Failure::Usage`] for an option that cannot be used.
#[cfg(target_os = "linux")]
pub fn run_cluster(options: ClusterSurvivalOptions) -> Result<(), Failure> {
    match &options.command {
        Some(command) => cluster::play(command),
        None => cluster::run(&options.campaign),
    }
}
