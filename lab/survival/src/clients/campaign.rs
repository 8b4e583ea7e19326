//! The campaign from its start to its end.

use std::ops::Range;
use std::process::{self, Command};
use std::time::{Duration, Instant};

use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::{Failure, on_interrupt};
use rusteron_test_support::programs::ResultsFile;
use rusteron_test_support::{Random, SteppedClock};
use rustix::process::WaitOptions;

use super::process::Process;
use crate::clients::disk::Disk;
use crate::clients::faults::FaultKind;
use crate::clients::leaks::{self, DriverState};
use crate::clients::member::{Member, Predecessor, Role};
use crate::clients::options::ClientsOptions;
use crate::clients::words::Order;
use crate::process::{command, seed};
use crate::report::Report;

/// How often the supervisor looks at everything.
pub(super) const TICK: Duration = Duration::from_millis(5);
/// How long faults come before a checkpoint.
const ROUND: Duration = Duration::from_secs(9);

/// The conditions that can be violated. Parts name them in their notices, too.
const CONDITIONS: [&str; 9] = [
    "lost",
    "repeated",
    "reordered",
    "corrupted",
    "foreign",
    "leaked",
    "crashed",
    "stuck",
    "refused",
];

/// The rows of the table: the faults that were caused, and what came of them.
const FIGURES: [&str; 19] = [
    "kills of clients",
    "kills of drivers",
    "takeovers of drivers",
    "replaced drivers",
    "forks",
    "forgers of metadata",
    "short pauses of clients",
    "pauses past liveness",
    "pauses past counter reuse",
    "pauses of drivers",
    "full file systems",
    "full memories",
    "clock steps",
    "exhausted descriptors",
    "processes started",
    CHECKPOINTS,
    "messages sent",
    RECEIVED,
    "skipped after a timeout",
];
pub(super) const CHECKPOINTS: &str = "checkpoints passed";
const RECEIVED: &str = "messages received";

/// Runs the campaign.
pub(crate) fn run(options: &ClientsOptions) -> Result<(), Failure> {
    let json = ResultsFile::open(&options.results, "survival.json")?;
    let interrupt = on_interrupt()?;
    let mut campaign = Campaign::new(options, interrupt)?;
    campaign.run()?;
    campaign.report.finish(json)
}

pub(super) struct Campaign<'a> {
    pub(super) options: &'a ClientsOptions,
    pub(super) faults: Vec<FaultKind>,
    pub(super) interrupt: ShutdownSignal,
    pub(super) endpoint: String,
    pub(super) disk: Disk,
    pub(super) disk_full_until: Option<Instant>,
    pub(super) random: Random,
    /// The driver first, then publishers, then subscribers.
    pub(super) members: Vec<Member>,
    /// When the driver was killed whose successor has not delivered a message yet.
    pub(super) taken_over_at: Option<Instant>,
    /// The driver that hangs while another one has its directory, if there is one.
    pub(super) predecessor: Option<Predecessor>,
    /// The forger, if there is one.
    pub(super) forger: Option<Process>,
    /// The client that takes all memory, if there is one.
    pub(super) hog: Option<Process>,
    /// Whether the driver makes sparse log buffers.
    pub(super) has_sparse_logs: bool,
    /// The clock of all processes but this one, if it is stepped.
    pub(super) clock: Option<SteppedClock>,
    /// When publishers are killed so that their successors have counters, logs and images made. The successors
    /// get the counters of a paused client, and need the descriptors of a client that has none.
    pub(super) successions: Vec<Instant>,
    /// The number of the checkpoint that is under way, or 0.
    pub(super) checkpoint: u64,
    pub(super) report: Report,
}

impl<'a> Campaign<'a> {
    fn new(options: &'a ClientsOptions, interrupt: ShutdownSignal) -> Result<Self, Failure> {
        let seed = seed(options.seed);
        let needs_disk =
            |kind: &FaultKind| matches!(kind, FaultKind::FullDisk | FaultKind::FullMemory);
        let wants_disk = options.faults.iter().any(needs_disk);
        let disk = Disk::new(wants_disk)?;
        let mut report = Report::new(seed, &CONDITIONS, FIGURES);
        let mut faults = options.faults.clone();
        if wants_disk && !disk.is_small() {
            if std::env::var_os("RUSTERON_REQUIRE_MOUNT").is_some_and(|value| value == "1") {
                let text = "RUSTERON_REQUIRE_MOUNT=1, but a file system cannot be mounted";
                return Err(Failure::Run(text.to_owned()));
            }
            let text =
                "full-disk, full-memory: skipped, a file system cannot be mounted without root";
            println!("{text}");
            report.skipped_faults.push(text.to_owned());
            faults.retain(|kind| !needs_disk(kind));
        }
        let publishers = (0..options.publishers).map(Role::Publisher);
        let subscribers = (0..options.subscribers).map(Role::Subscriber);
        let roles = std::iter::once(Role::Driver).chain(publishers).chain(subscribers);
        // An address of this campaign's own, so that any port is free.
        let pid = process::id();
        let address = format!("127.{}.{}.{}", 1 + pid % 250, pid >> 8 & 0xff, 1 + (pid >> 16));
        Ok(Self {
            options,
            faults,
            interrupt,
            endpoint: format!("{address}:20121"),
            disk,
            disk_full_until: None,
            random: Random::new(seed),
            members: roles.map(Member::new).collect(),
            taken_over_at: None,
            predecessor: None,
            forger: None,
            hog: None,
            has_sparse_logs: false,
            clock: options.faults.contains(&FaultKind::ClockStep).then(SteppedClock::new),
            successions: Vec::new(),
            checkpoint: 0,
            report,
        })
    }

    fn run(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        let descriptors = leaks::descriptors(pid_of_this_process());
        println!("seed {}, {:?}", self.report.seed, self.options.duration);
        let bare_driver = self.start_driver()?;
        let mut survives = self.check()?;
        let deadline = Instant::now() + self.options.duration;
        while survives && Instant::now() < deadline {
            self.strike_until(deadline.min(Instant::now() + ROUND))?;
            survives = self.check()?;
            println!(
                "{:6.1} s: checkpoint {}, {} received, {} violations",
                start.elapsed().as_secs_f64(),
                self.report.figure(CHECKPOINTS),
                self.report.figure(RECEIVED),
                self.report.violations()
            );
        }
        if survives {
            self.end(bare_driver.as_ref())?;
            let mut excess = Vec::new();
            self.await_none(&mut excess, self.lingering(), "leaked", |_| {
                let now = leaks::descriptors(pid_of_this_process());
                let text = || format!("supervisor: {now:?} descriptors, {descriptors:?} before");
                (now > descriptors).then(text).into_iter().collect()
            })?;
        }
        self.report.elapsed = start.elapsed();
        Ok(())
    }

    /// Starts the driver alone, and returns its state then.
    fn start_driver(&mut self) -> Result<Option<DriverState>, Failure> {
        self.launch(0)?;
        let dir = self.disk.aeron_dir();
        let is_ready =
            self.wait("the driver does not start", self.options.deadline, |campaign| {
                campaign.look_at(0)?;
                Ok(campaign.members[0].is_ready)
            })?;
        if !is_ready {
            return Err(Failure::Run(format!("the driver does not start\n{}", self.report)));
        }
        Ok(DriverState::of(&dir))
    }

    /// Starts a process for the role of a member.
    pub(super) fn launch(&mut self, index: usize) -> Result<(), Failure> {
        let role = self.members[index].role;
        let (part, number) = match role {
            Role::Driver => ("driver", 0),
            Role::Publisher(number) => ("publisher", number),
            Role::Subscriber(number) => ("subscriber", number),
        };
        let mut command = self.command(part)?;
        command
            .args(["--index", &number.to_string(), "--endpoint", &self.endpoint])
            .args(["--counters", &self.members[index].counters.to_string()]);
        if role == Role::Driver {
            self.has_sparse_logs =
                self.faults.contains(&FaultKind::FullMemory) && self.random.percent(50);
            if self.has_sparse_logs {
                command.arg("--sparse");
            }
        }
        if self.members[index].takes_over {
            command.arg("--take-over");
        }
        if self.faults.contains(&FaultKind::Loss) {
            command.arg("--loss");
        }
        if let (Role::Subscriber(0), Some(sabotage)) = (role, self.options.sabotage) {
            let value = clap::ValueEnum::to_possible_value(&sabotage);
            command.args(["--sabotage", value.as_ref().map_or("", |value| value.get_name())]);
        }
        let mut process = Process::start(command)?;
        if self.checkpoint > 0 {
            process.order(Order::Checkpoint(self.checkpoint));
        }
        self.report.add("processes started", 1);
        self.members[index] = Member { process: Some(process), ..Member::new(role) };
        Ok(())
    }

    /// Starts a client whose messages are not checked.
    pub(super) fn launch_client(&mut self, part: &str) -> Result<Process, Failure> {
        let process = Process::start(self.command(part)?)?;
        self.report.add("processes started", 1);
        Ok(process)
    }

    /// Returns the command that starts this program as a part.
    fn command(&mut self, part: &str) -> Result<Command, Failure> {
        let mut command = command(["part", part])?;
        command
            .arg("--dir")
            .arg(self.disk.aeron_dir())
            .args(["--seed", &self.random.next().to_string()]);
        if let Some(clock) = &self.clock {
            clock.set(&mut command);
        }
        Ok(command)
    }

    /// Ends all processes in good order, the driver last, and looks for the resources that they have left.
    fn end(&mut self, bare_driver: Option<&DriverState>) -> Result<(), Failure> {
        self.end_members(1..self.members.len())?;
        let dir = self.disk.aeron_dir();
        if let Some(bare) = bare_driver {
            let mut left = Vec::new();
            self.await_none(&mut left, self.lingering(), "leaked", |_| {
                match DriverState::of(&dir) {
                    Some(state) => state.excess_over(bare),
                    None => vec!["the driver's files cannot be read".to_owned()],
                }
            })?;
        }
        self.end_members(0..1)?;
        for file in self.disk.files() {
            self.report.violation("leaked", 1, &format!("a file: {}", file.display()));
        }
        if dir.exists() {
            self.report.violation("leaked", 1, &format!("the directory {}", dir.display()));
        }
        // Of processes that no one waits for, there would be a status or none yet.
        let waited = rustix::process::wait(WaitOptions::NOHANG);
        if !matches!(waited, Err(rustix::io::Errno::CHILD)) {
            self.report.violation("leaked", 1, "a process");
        }
        Ok(())
    }

    fn end_members(&mut self, range: Range<usize>) -> Result<(), Failure> {
        for member in &mut self.members[range.clone()] {
            member.is_ending = true;
            if let Some(process) = &mut member.process {
                process.order(Order::End);
            }
        }
        self.wait("a process does not end", self.options.deadline, |campaign| {
            campaign.step()?;
            Ok(campaign.members[range.clone()].iter().all(|member| member.process.is_none()))
        })?;
        Ok(())
    }
}

fn pid_of_this_process() -> i32 {
    i32::try_from(process::id()).unwrap_or(i32::MAX)
}
