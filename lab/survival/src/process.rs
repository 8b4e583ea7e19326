//! Processes that the supervisor starts, from both sides.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use rusteron_core::program::Failure;
use rusteron_test_support::{memory_dir, mix};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use tempfile::TempDir;

/// Returns the seed that the user has chosen, or a random one.
pub(crate) fn seed(chosen: Option<u64>) -> u64 {
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    chosen.unwrap_or(mix(clock.as_nanos() as u64) >> 32)
}

/// Makes a directory for the processes' files, in shared memory if there is any.
pub(crate) fn temporary_dir() -> Result<TempDir, Failure> {
    memory_dir("rusteron-survival-").map_err(|error| Failure::run("cannot make a directory", error))
}

/// Returns the command that starts this program for a process of a campaign.
pub(crate) fn command<const N: usize>(arguments: [&str; N]) -> Result<Command, Failure> {
    let program =
        std::env::current_exe().map_err(|error| Failure::run("cannot find this program", error))?;
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        // Settings of Aeron's that a user may have.
        if name.to_string_lossy().starts_with("AERON_") {
            command.env_remove(name);
        }
    }
    command
        .env("RUST_BACKTRACE", "0")
        .args(arguments)
        .args(["--supervisor", &std::process::id().to_string()]);
    Ok(command)
}

/// Lets this process die with its supervisor.
pub(crate) fn follow(supervisor: i32) -> Result<(), Failure> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Failure::run("cannot follow the supervisor", error))?;
    // It may have died before.
    let parent = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if parent != supervisor {
        return Err(Failure::Run(format!("started by {parent}, not by {supervisor}")));
    }
    Ok(())
}
