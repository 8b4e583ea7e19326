//! Children that a process forks, with all its memory.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

/// How often a child is looked at.
const PAUSE: Duration = Duration::from_millis(1);

unsafe extern "C" {
    #[link_name = "fork"]
    safe fn c_fork() -> i32;
    #[link_name = "_exit"]
    safe fn c_exit(status: i32) -> !;
}

/// A forked child of this process.
#[derive(Debug)]
pub struct ForkedChild(Pid);

impl ForkedChild {
    /// Forks this process. Returns `None` in the child.
    ///
    /// The child has one thread, this one. On Linux, it dies with its parent.
    ///
    /// # Errors
    /// The operating system's.
    pub fn fork() -> io::Result<Option<Self>> {
        match c_fork() {
            0 => {
                #[cfg(target_os = "linux")]
                if rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).is_err() {
                    // A caller that got an error would go on as the parent.
                    c_exit(1);
                }
                Ok(None)
            }
            -1 => Err(io::Error::last_os_error()),
            child => Ok(Pid::from_raw(child).map(Self)),
        }
    }

    /// Forks a child that runs a function and ends without returning. It fails if the function panics.
    ///
    /// # Errors
    /// The operating system's.
    pub fn run(function: impl FnOnce()) -> io::Result<Self> {
        if let Some(child) = Self::fork()? {
            return Ok(child);
        }
        let has_panicked = catch_unwind(AssertUnwindSafe(function)).is_err();
        c_exit(has_panicked.into());
    }

    /// Waits until the child has ended with the exit status 0, and kills it at the deadline.
    ///
    /// # Errors
    /// Says how the child has ended, or that it has not.
    pub fn await_success(self, deadline: Instant) -> Result<(), String> {
        loop {
            match waitpid(Some(self.0), WaitOptions::NOHANG) {
                Ok(None) if Instant::now() < deadline => thread::sleep(PAUSE),
                Ok(None) => {
                    // The child was not waited for, so the id is still its own.
                    let _ = kill_process(self.0, Signal::KILL);
                    let _ = waitpid(Some(self.0), WaitOptions::empty());
                    return Err("does not end".to_owned());
                }
                Ok(Some((_, status))) => return success(status),
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

fn success(status: WaitStatus) -> Result<(), String> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(format!("exit status {code}")),
        (None, signal) => Err(format!("signal {}", signal.unwrap_or_default())),
    }
}
