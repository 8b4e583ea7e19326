//! The roles of the campaign, and their holders.

use std::collections::HashSet;
use std::fmt;
use std::time::Instant;

use super::process::Process;
use crate::clients::faults::Length;
use crate::clients::leaks::Holdings;

/// How many counters a publisher has.
const COUNTERS: usize = 4;

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Driver,
    Publisher(u16),
    Subscriber(u16),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Driver => f.write_str("driver"),
            Self::Publisher(index) => write!(f, "publisher {index}"),
            Self::Subscriber(index) => write!(f, "subscriber {index}"),
        }
    }
}

/// A role, and the process that has it at the moment.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) role: Role,
    pub(crate) process: Option<Process>,
    /// When the next process is to be started, if there is none.
    pub(crate) start_at: Instant,
    pub(crate) was_killed: bool,
    /// How many counters the next process has, if it is a publisher.
    pub(crate) counters: usize,
    /// `true` if the next process, a driver, takes over the directory of the last one.
    pub(crate) takes_over: bool,
    pub(crate) is_ending: bool,
    /// `true` if the driver runs, or the client has all its resources.
    pub(crate) is_ready: bool,
    pub(crate) paused: Option<Pause>,
    pub(crate) starved_until: Option<Instant>,
    /// When the client must have said that it has ended.
    pub(crate) must_end_by: Option<Instant>,
    /// The resources of the process at its first checkpoint.
    pub(crate) before: Option<Holdings>,
    pub(crate) messages: u64,
    pub(crate) skipped: u64,
    pub(crate) publishing: (u64, Vec<u64>),
    pub(crate) received: (u64, HashSet<u64>),
}

/// A driver that hangs, and does not know that its directory belongs to another driver now.
#[derive(Debug)]
pub(crate) struct Predecessor {
    pub(crate) process: Process,
    /// When it goes on, and is asked to end. `None` once it was.
    pub(crate) hangs_until: Option<Instant>,
}

/// A pause that is under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pause {
    pub(crate) until: Instant,
    pub(crate) length: Length,
}

impl Member {
    pub(crate) fn new(role: Role) -> Self {
        Self {
            role,
            process: None,
            start_at: Instant::now(),
            was_killed: false,
            counters: COUNTERS,
            takes_over: false,
            is_ending: false,
            is_ready: false,
            paused: None,
            starved_until: None,
            must_end_by: None,
            before: None,
            messages: 0,
            skipped: 0,
            publishing: (0, Vec::new()),
            received: (0, HashSet::new()),
        }
    }

    pub(crate) fn is_free(&self) -> bool {
        self.process.is_some()
            && !self.was_killed
            && self.paused.is_none()
            && self.starved_until.is_none()
    }
}
