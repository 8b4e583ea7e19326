//! Processes that the supervisor starts, from both sides.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{SystemTime, UNIX_EPOCH};

use rusteron_benchmarks::command_line::failure::Failure;
use rusteron_test_support::{memory_dir, mix};
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
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

/// A child process. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) pid: Pid,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Result<Self, Failure> {
        let cannot = |error: io::Error| Failure::run("cannot start a process", error);
        let child = command.spawn().map_err(cannot)?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let Some(pid) = pid else { return Err(cannot(io::ErrorKind::InvalidData.into())) };
        Ok(Self { child, pid })
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        // The process is ours and was not waited for, so that the number is not another one's.
        kill_process(self.pid, signal).map_err(|error| Failure::run("cannot signal", error))
    }

    /// Its end, if it has come.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        self.child.try_wait().map_err(|error| Failure::run("cannot wait for a process", error))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended, and then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
