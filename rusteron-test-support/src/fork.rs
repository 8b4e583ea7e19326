//! Children that a process forks, with all its memory.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, set_parent_process_death_signal, waitpid,
};

/// How often a child is looked at.
const PAUSE: Duration = Duration::from_millis(5);

/// Forks this process. Returns the child's process id, or `None` in the child.
///
/// The child has one thread, this one. It dies with its parent.
///
/// # Errors
/// The operating system's.
pub fn fork() -> io::Result<Option<Pid>> {
    unsafe extern "C" {
        #[link_name = "fork"]
        safe fn c_fork() -> i32;
    }
    match c_fork() {
        0 => {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(None)
        }
        child => Pid::from_raw(child)
            .filter(|_| child > 0)
            .map_or_else(|| Err(io::Error::last_os_error()), |pid| Ok(Some(pid))),
    }
}

/// Waits for a child that has to end with the exit status 0, and kills it at the deadline.
///
/// # Errors
/// Says how the child has ended, or that it has not.
pub fn await_success(child: Pid, deadline: Instant) -> Result<(), String> {
    loop {
        match waitpid(Some(child), WaitOptions::NOHANG) {
            Ok(None) if Instant::now() < deadline => thread::sleep(PAUSE),
            Ok(None) => {
                // The child was not waited for, so the id is still its own.
                let _ = kill_process(child, Signal::KILL);
                let _ = waitpid(Some(child), WaitOptions::empty());
                return Err("does not end".to_owned());
            }
            Ok(Some((_, status))) => return describe(status),
            Err(error) => return Err(error.to_string()),
        }
    }
}

fn describe(status: WaitStatus) -> Result<(), String> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(format!("exit status {code}")),
        (None, signal) => Err(format!("signal {}", signal.unwrap_or_default())),
    }
}
