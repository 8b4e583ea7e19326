//! A member of the cluster: its processes, and their supervision.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rusteron_core::program::Failure;
use rusteron_test_support::cluster::{MEMBER_PROPERTIES, SERVICE_CLOSED_FIRST};

use super::campaign::NAME;
use super::parts::{MemberOptions, Process};
use crate::party::Party;

/// Aeron refuses to start beside a mark file whose last sign of life is younger than ten seconds.
const RESTART_DELAY: Duration = Duration::from_millis(10_500);

/// Settings that differ from those of the tests' members: timeouts of clients and drivers are
/// Aeron's defaults, ten seconds.
const PROPERTIES: [&str; 6] = [
    "aeron.client.liveness.timeout=10s",
    "aeron.publication.unblock.timeout=15s",
    "aeron.driver.timeout=10000",
    "aeron.cluster.leader.heartbeat.timeout=5s",
    "aeron.cluster.startup.canvass.timeout=15s",
    "aeron.cluster.session.timeout=20s",
];

/// A process that runs, and the file with its output.
#[derive(Debug)]
struct MemberProcess {
    party: Party,
    log: PathBuf,
}

/// An end of a process.
#[derive(Debug)]
pub(super) struct End {
    pub(super) process: Process,
    pub(super) status: ExitStatus,
    /// The last line of the output.
    pub(super) last_words: String,
    /// The driver or the consensus module has ended or was paused, or the service was paused, since the service's start.
    has_reason: bool,
}

impl End {
    /// Returns whether the process may end so. A service ends in order when its consensus module or driver has gone;
    /// while they are dying, it can also fail to start. A consensus module may end in any way.
    pub(super) fn is_expected(&self) -> bool {
        let is_killed = self.status.signal() == Some(9);
        match self.process {
            Process::Service => is_killed || self.needs_reason() && self.has_reason,
            Process::Driver => is_killed,
            Process::Module => true,
        }
    }

    /// Returns whether a service says that its peers have gone.
    fn needs_reason(&self) -> bool {
        const CAUSES: [&str; 4] =
            ["ConsensusModuleGone", "ClientClosed", "ConsensusModuleTerminated", "StartFailed"];
        let cause = self.last_words.strip_prefix("ended: ").unwrap_or_default();
        self.process == Process::Service
            && self.status.success()
            && CAUSES.iter().any(|name| cause.starts_with(name))
    }
}

/// A member, and its life so far.
#[derive(Debug)]
pub(super) struct Node {
    id: usize,
    options: MemberOptions,
    /// The directory of the processes' output.
    results: PathBuf,
    processes: [Option<MemberProcess>; 3],
    starts: [u32; 3],
    /// When the first process of a member that is ending was seen to have ended.
    pub(super) ending_since: Option<Instant>,
    restart_at: Option<Instant>,
    /// The reason for an end of the present service, see [`End`].
    has_reason: bool,
    /// The end of a service whose reason was not seen yet: the consensus module may need seconds for its own end.
    unexplained: Option<End>,
    /// The last position with a digest of the service.
    pub(super) position: i64,
    /// The same when the present service was started.
    position_at_start: i64,
}

impl Node {
    /// Describes a member. The options are those of all its processes.
    pub(super) fn new(id: usize, mut options: MemberOptions, results: PathBuf) -> Self {
        let properties = MEMBER_PROPERTIES.iter().chain(&PROPERTIES);
        // The last value of a property counts.
        options.properties.splice(0..0, properties.map(|&property| property.to_owned()));
        Self {
            id,
            options,
            results,
            processes: [None, None, None],
            starts: [0; 3],
            ending_since: None,
            restart_at: None,
            has_reason: false,
            unexplained: None,
            position: 0,
            position_at_start: 0,
        }
    }

    /// Returns whether the present service has worked.
    pub(super) fn has_worked(&self) -> bool {
        self.position != self.position_at_start
    }

    pub(super) fn digests(&self) -> PathBuf {
        self.options.digests.clone()
    }

    /// Starts all processes that do not run.
    pub(super) fn start(&mut self) -> Result<(), Failure> {
        for process in [Process::Driver, Process::Module, Process::Service] {
            if self.processes[process as usize].is_none() {
                self.start_process(process)?;
            }
        }
        Ok(())
    }

    fn start_process(&mut self, process: Process) -> Result<(), Failure> {
        let cannot = |error: io::Error| Failure::run("cannot start a process", error);
        self.starts[process as usize] += 1;
        if process == Process::Service {
            self.position_at_start = self.position;
            self.has_reason = false;
        }
        let start = self.starts[process as usize];
        if process == Process::Driver && start > 1 {
            // The new driver deletes it, too, but the others must not see it before.
            let _ = fs::remove_dir_all(&self.options.aeron_dir);
        }
        let log = self.log(process, start);
        let output = File::create(&log).map_err(cannot)?;
        let errors = output.try_clone().map_err(cannot)?;
        self.options.process = process;
        let party = Party::start(NAME, &self.options, |command| {
            command.stdout(output).stderr(errors);
        })?;
        self.processes[process as usize] = Some(MemberProcess { party, log });
        Ok(())
    }

    fn log(&self, process: Process, start: u32) -> PathBuf {
        let name = format!("{process:?}-{}-{start}.log", self.id).to_lowercase();
        self.results.join(name)
    }

    /// Returns whether all processes run, and none is paused.
    pub(super) fn is_whole(&self) -> bool {
        self.processes
            .iter()
            .all(|process| process.as_ref().is_some_and(|it| !it.party.is_paused()))
    }

    /// Kills a process, or all. Returns the number of killed processes.
    pub(super) fn kill(&mut self, process: Option<Process>) -> Result<usize, Failure> {
        let mut count = 0;
        for (index, running) in self.processes.iter().enumerate() {
            if process.is_some_and(|process| process as usize != index) {
                continue;
            }
            if let Some(running) = running {
                running.party.kill()?;
                self.has_reason |= index != Process::Service as usize;
                count += 1;
            }
        }
        Ok(count)
    }

    /// Pauses a process. Returns how many were.
    pub(super) fn pause(&mut self, process: Process, pause: Duration) -> Result<usize, Failure> {
        let running = self.processes[process as usize].as_mut();
        let Some(running) = running.filter(|it| !it.party.is_paused()) else { return Ok(0) };
        running.party.pause(pause)?;
        self.has_reason = true;
        Ok(1)
    }

    /// Lets paused processes go on when their time has come, notices ends, and starts a member whose consensus module
    /// and service have both ended. Returns the ends.
    pub(super) fn supervise(&mut self, now: Instant) -> Result<Vec<End>, Failure> {
        let mut ends = Vec::new();
        for process in [Process::Driver, Process::Module, Process::Service] {
            let Some(member) = &mut self.processes[process as usize] else { continue };
            member.party.resume()?;
            if let Some(status) = member.party.ended()? {
                let output = fs::read_to_string(&member.log).unwrap_or_default();
                let last_words = output.lines().last().unwrap_or_default().to_owned();
                self.processes[process as usize] = None;
                self.ending_since.get_or_insert(now);
                self.restart_at = None;
                if process != Process::Service && !output.contains(SERVICE_CLOSED_FIRST) {
                    self.has_reason = true;
                }
                let end = End { process, status, last_words, has_reason: self.has_reason };
                if end.needs_reason() && !end.has_reason && self.is_running(Process::Module) {
                    self.unexplained = Some(end);
                } else {
                    ends.push(end);
                }
                if process != Process::Service {
                    ends.extend(self.take_unexplained());
                }
            }
        }
        if self.ending_since.is_some() {
            let [driver, others @ ..] = &self.processes;
            let is_driver_paused = driver.as_ref().is_some_and(|it| it.party.is_paused());
            if others.iter().all(Option::is_none) && !is_driver_paused {
                let restart_at = *self.restart_at.get_or_insert(now + RESTART_DELAY);
                if now >= restart_at {
                    self.ending_since = None;
                    self.restart_at = None;
                    self.start()?;
                }
            }
        }
        Ok(ends)
    }

    fn is_running(&self, process: Process) -> bool {
        self.processes[process as usize].is_some()
    }

    /// Takes the end of a service that had no reason when it came. By now, it may have one.
    pub(super) fn take_unexplained(&mut self) -> Option<End> {
        let end = self.unexplained.take()?;
        Some(End { has_reason: self.has_reason, ..end })
    }

    /// The processes that run although they should have ended.
    pub(super) fn lingering(&self) -> Vec<Process> {
        let is_lingering = |process: &Process| {
            let running = self.processes[*process as usize].as_ref();
            running.is_some_and(|running| !running.party.is_paused())
        };
        [Process::Module, Process::Service].into_iter().filter(is_lingering).collect()
    }

    pub(super) fn starts(&self, process: Process) -> u32 {
        self.starts[process as usize]
    }

    /// Starts of services that have loaded a snapshot.
    pub(super) fn loaded_snapshots(&self) -> u64 {
        let has_loaded = |start: &u32| {
            let log = fs::read_to_string(self.log(Process::Service, *start));
            log.is_ok_and(|text| text.contains("loaded "))
        };
        (1..=self.starts(Process::Service)).filter(has_loaded).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `wait` returns them.
    const KILLED: i32 = 9;
    const CRASHED: i32 = 11;
    const FAILED: i32 = 1 << 8;

    #[test]
    fn ends_are_expected_with_a_reason() {
        use Process::{Driver, Module, Service};
        // True for an expected end: without a reason, and with one.
        let table = [
            (Service, 0, "ended: ConsensusModuleGone", [false, true]),
            (Service, 0, "ended: ClientClosed", [false, true]),
            (Service, 0, "ended: ConsensusModuleTerminated { log_position: 8 }", [false, true]),
            (Service, 0, "ended: StartFailed(\"no snapshot\")", [false, true]),
            (Service, 0, "ended: Failed(\"the log is not contiguous\")", [false, false]),
            (Service, 0, "ended: ServiceFailed { callback: \"on_start\" }", [false, false]),
            (Service, 0, "ended: Stopped", [false, false]),
            (Service, 0, "Leader at 64", [false, false]),
            (Service, FAILED, "ended: ClientClosed", [false, false]),
            (Service, CRASHED, "ended: ClientClosed", [false, false]),
            (Service, KILLED, "Leader at 64", [true, true]),
            (Driver, 0, "", [false, false]),
            (Driver, CRASHED, "", [false, false]),
            (Driver, KILLED, "", [true, true]),
            (Module, 0, "stopped", [true, true]),
            (Module, FAILED, "", [true, true]),
        ];
        for (process, status, last_words, expected) in table {
            let is_expected = [false, true].map(|has_reason| {
                let (status, last_words) = (ExitStatus::from_raw(status), last_words.to_owned());
                End { process, status, last_words, has_reason }.is_expected()
            });
            assert_eq!(is_expected, expected, "{process:?} {status} {last_words}");
        }
    }
}
