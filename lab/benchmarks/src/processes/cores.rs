//! The cores that programs share.

use clap::ValueEnum;
use rusteron_core::program::Failure;

/// The cores of a member's process, and of all other threads.
///
/// With few cores, the system's choice of the threads that share a core decides rates of messages
/// one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Cores {
    /// The system's choice
    Shared,
    /// The first core for the member, the second for clients and services; Linux only
    Apart,
}

impl Cores {
    /// Starts a process on the cores of the member. Afterwards, this thread and all that it starts
    /// have the others.
    ///
    /// # Errors
    /// [`Failure::Run`] if there are too few cores, or the system is not Linux; the failure of the
    /// start.
    pub fn start_member<T>(self, start: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
        match self {
            Self::Shared => start(),
            Self::Apart => {
                use_core(0)?;
                let started = start();
                use_core(1)?;
                started
            }
        }
    }
}

/// Ties this thread to a core. Threads and processes that it starts inherit that.
#[cfg(target_os = "linux")]
fn use_core(core: usize) -> Result<(), Failure> {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|error| Failure::run(format_args!("cannot use core {core}"), error))
}

#[cfg(not(target_os = "linux"))]
fn use_core(_core: usize) -> Result<(), Failure> {
    Err(Failure::Run("only Linux ties threads to cores".to_owned()))
}
