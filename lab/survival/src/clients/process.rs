//! A part, as the supervisor sees it.

use std::iter;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rusteron_core::program::Failure;
use rusteron_test_support::programs;
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use crate::clients::words::{Notice, Order, from_line, to_line};

/// A process that runs; it is killed on drop.
#[derive(Debug)]
pub(crate) struct Process {
    process: programs::Process,
    descriptors: Rlimit,
}

impl Process {
    pub(crate) fn start(command: Command) -> Result<Self, Failure> {
        // The supervisor waits for its parts by its own deadlines.
        let process = programs::Process::start("a process", command, Duration::ZERO)?;
        Ok(Self { process, descriptors: rustix::process::getrlimit(Resource::Nofile) })
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.process.pid()).unwrap_or_default()
    }

    /// Returns the next notice of the process that was not looked at yet.
    pub(crate) fn notice(&self) -> Option<Notice> {
        iter::from_fn(|| self.process.try_line()).find_map(|line| from_line(&line))
    }

    /// Returns the next of the remaining notices, once the process has ended.
    pub(crate) fn last_notice(&self) -> Option<Notice> {
        iter::from_fn(|| self.process.last_line()).find_map(|line| from_line(&line))
    }

    pub(crate) fn order(&mut self, order: Order) {
        // One that has ended is noticed elsewhere.
        let _ = self.process.order(&to_line(&order));
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        self.process.signal(signal)
    }

    /// Lets the process have no more descriptors from this number on. The process keeps its
    /// descriptors.
    pub(crate) fn limit_descriptors(&self, first: u64) -> Result<(), Failure> {
        self.limit(Rlimit { current: Some(first), maximum: self.descriptors.maximum })
    }

    pub(crate) fn restore_descriptors(&self) -> Result<(), Failure> {
        self.limit(self.descriptors)
    }

    fn limit(&self, limit: Rlimit) -> Result<(), Failure> {
        prlimit(Pid::from_raw(self.pid()), Resource::Nofile, limit)
            .map(drop)
            .map_err(|error| Failure::run("cannot set a limit", error))
    }

    /// Its end, if it has come.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        self.process.ended()
    }

    /// The end of the process's standard error output, once the process has ended.
    pub(crate) fn last_words(&self) -> String {
        self.process.last_words()
    }
}
