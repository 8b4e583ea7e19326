//! The campaign: its options, its parties, its start and its end.

use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant};

use clap::Args;
use rusteron_core::program::Failure;
use rusteron_test_support::{SmallFileSystem, SteppedClock};
use rustix::process::WaitOptions;

use super::leaks::{self, DriverState};
use super::members::{Guest, Member};
use super::parts::{Part, PartOptions, Sabotage};
use super::settings::DISK_SIZE;
use super::strikes::FaultKind;
use crate::campaign::{Campaign, CommonOptions, Defaults, Frame};
use crate::party::{Order, Party};

pub(crate) const NAME: &str = "clients";

const DEFAULTS: Defaults = Defaults {
    duration: Duration::from_secs(60),
    deadline: Duration::from_secs(60),
    results: "target/survival",
    report: "survival.json",
};
/// How long faults come before a checkpoint.
const ROUND: Duration = Duration::from_secs(9);
/// The end of the names of saved error logs. A driver that takes over a directory saves its
/// predecessor's beside it, as Aeron's does.
const SAVED_ERRORS: &str = "-error.log";

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
const FIGURES: [&str; 18] = [
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
    "clock steps",
    "exhausted descriptors",
    "processes started",
    CHECKPOINTS,
    "messages sent",
    RECEIVED,
    "skipped after a timeout",
];
pub(super) const CHECKPOINTS: &str = "checkpoints passed";
pub(super) const RECEIVED: &str = "messages received";

#[derive(Debug, Clone, Args)]
pub(crate) struct ClientsOptions {
    #[command(flatten)]
    common: CommonOptions,

    /// Faults to cause, separated by commas
    #[arg(long, value_name = "FAULTS", value_enum, value_delimiter = ',',
          default_values_t = FaultKind::all())]
    pub(crate) faults: Vec<FaultKind>,

    /// Number of publishers, a process each
    #[arg(long, default_value_t = 3, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=16))]
    publishers: u16,

    /// Number of subscribers, a process each
    #[arg(long, default_value_t = 3, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=16))]
    subscribers: u16,

    /// Lets the first subscriber make a mistake, which the campaign must notice
    #[arg(long, hide = true, value_name = "MISTAKE")]
    sabotage: Option<Sabotage>,
}

/// Runs the campaign.
pub(crate) fn run(options: &ClientsOptions) -> Result<(), Failure> {
    let mut frame = Frame::new(&options.common, &DEFAULTS, &CONDITIONS, &FIGURES)?;
    let mut faults = options.faults.clone();
    let mut disk = None;
    if faults.contains(&FaultKind::FullDisk) {
        disk = SmallFileSystem::mount(DISK_SIZE);
        if disk.is_none() {
            let text = "full-disk: skipped, a file system cannot be mounted without root";
            frame.report.skipped_faults.push(text.to_owned());
            faults.retain(|kind| *kind != FaultKind::FullDisk);
        }
    }
    let publishers = (0..options.publishers).map(|index| Member::new(Part::Publisher, index));
    let subscribers = (0..options.subscribers).map(|index| Member::new(Part::Subscriber, index));
    let driver = Member::new(Part::Driver, 0);
    // An address of this campaign's own, so that any port is free.
    let pid = process::id();
    let address = format!("127.{}.{}.{}", 1 + pid % 250, pid >> 8 & 0xff, 1 + (pid >> 16));
    let campaign = Clients {
        members: std::iter::once(driver).chain(publishers).chain(subscribers).collect(),
        publishers: options.publishers.into(),
        sabotage: options.sabotage,
        guests: Vec::new(),
        endpoint: format!("{address}:20121"),
        disk_full_until: None,
        taken_over_at: None,
        clock: faults.contains(&FaultKind::ClockStep).then(SteppedClock::new),
        successions: Vec::new(),
        checkpoint: 0,
        bare_driver: None,
        descriptors: leaks::descriptors(pid_of_this_process()),
        faults,
        disk,
        frame,
    };
    campaign.run()
}

pub(super) struct Clients {
    /// The driver first, then publishers, then subscribers.
    pub(super) members: Vec<Member>,
    pub(super) publishers: usize,
    sabotage: Option<Sabotage>,
    /// Parties that come for a while, and whose messages are not checked.
    pub(super) guests: Vec<Guest>,
    endpoint: String,
    pub(super) disk_full_until: Option<Instant>,
    /// When the driver was killed whose successor has not delivered a message yet.
    pub(super) taken_over_at: Option<Instant>,
    /// The clock of all processes but this one, if it is stepped.
    pub(super) clock: Option<SteppedClock>,
    /// When publishers are killed so that their successors have counters, logs and images made. The successors
    /// get the counters of a paused client, and need the descriptors of a client that has none.
    pub(super) successions: Vec<Instant>,
    /// The number of the checkpoint that is under way, or 0.
    pub(super) checkpoint: u64,
    /// The driver's state before there were clients.
    bare_driver: Option<DriverState>,
    /// The supervisor's descriptors before there were parties.
    descriptors: Option<u64>,
    pub(super) faults: Vec<FaultKind>,
    /// The small file system that can be filled up.
    disk: Option<SmallFileSystem>,
    pub(super) frame: Frame,
}

impl Campaign for Clients {
    const TICK: Duration = Duration::from_millis(5);
    const ENDS_WITH_VIOLATION: bool = false;

    fn frame(&mut self) -> &mut Frame {
        &mut self.frame
    }

    /// Starts the driver alone, and then everything else.
    fn begin(&mut self) -> Result<bool, Failure> {
        self.launch(0)?;
        let deadline = Instant::now() + self.frame.deadline;
        while !self.members[0].is_ready {
            self.frame.check_interrupt()?;
            self.hear(0)?;
            if Instant::now() > deadline {
                self.frame.report.violation("stuck", 1, "the driver does not start");
                return Ok(false);
            }
            std::thread::sleep(Self::TICK);
        }
        self.bare_driver = DriverState::of(&self.aeron_dir());
        self.check()
    }

    fn step(&mut self) -> Result<(), Failure> {
        self.look_at_members()
    }

    fn round(&mut self) -> Result<bool, Failure> {
        self.strike_for(ROUND.min(self.frame.remaining()))?;
        let is_well = self.check()?;
        let figure = |name| self.frame.report.figure(name);
        self.frame.tell(&format!(
            "checkpoint {}, {} received",
            figure(CHECKPOINTS),
            figure(RECEIVED)
        ));
        Ok(is_well)
    }

    /// Ends all processes in good order, the driver last, and looks for the resources that they
    /// have left.
    fn end(&mut self) -> Result<(), Failure> {
        self.end_members(1..self.members.len())?;
        let dir = self.aeron_dir();
        self.await_none("leaked", self.lingering(), |campaign| {
            match (DriverState::of(&dir), &campaign.bare_driver) {
                (Some(state), Some(bare)) => state.excess_over(bare),
                _ => vec!["the driver's files cannot be read".to_owned()],
            }
        })?;
        self.end_members(0..1)?;
        for file in files(self.base()) {
            self.frame.report.violation("leaked", 1, &format!("a file: {}", file.display()));
        }
        if dir.exists() {
            self.frame.report.violation("leaked", 1, &format!("the directory {}", dir.display()));
        }
        // If a process were left that nobody has waited for, this would return its status, or none
        // yet.
        let waited = rustix::process::wait(WaitOptions::NOHANG);
        if !matches!(waited, Err(rustix::io::Errno::CHILD)) {
            self.frame.report.violation("leaked", 1, "a process");
        }
        self.await_none("leaked", self.lingering(), |campaign| {
            let (now, before) = (leaks::descriptors(pid_of_this_process()), campaign.descriptors);
            let text = || format!("supervisor: {now:?} descriptors, {before:?} before");
            // The small file system has none.
            (now > before).then(text).into_iter().collect()
        })?;
        Ok(())
    }
}

impl Clients {
    /// The time for which resources may linger.
    pub(super) fn lingering(&self) -> Duration {
        self.frame.deadline / 2
    }

    fn base(&self) -> &Path {
        self.disk.as_ref().map_or(self.frame.root.path(), SmallFileSystem::path)
    }

    /// The driver's directory, which the driver makes.
    pub(super) fn aeron_dir(&self) -> PathBuf {
        self.base().join("aeron")
    }

    fn filling(&self) -> PathBuf {
        self.base().join("filling")
    }

    /// Leaves no space on the small file system.
    pub(super) fn fill_disk(&self) -> Result<(), Failure> {
        let cannot = |error| Failure::run("cannot fill the file system", error);
        let mut file = File::create(self.filling()).map_err(cannot)?;
        while file.write_all(&[0x55; 4096]).is_ok() {}
        Ok(())
    }

    pub(super) fn empty_disk(&self) {
        // It is not there if it could not be made.
        let _ = fs::remove_file(self.filling());
    }

    /// Starts a process for the role of a member.
    pub(super) fn launch(&mut self, index: usize) -> Result<(), Failure> {
        let Member { part, index: number, counters, takes_over, .. } = self.members[index];
        let mut options = self.options(part);
        options.index = number;
        options.counters = counters;
        options.take_over = takes_over;
        options.sabotage = self.sabotage.filter(|_| part == Part::Subscriber && number == 0);
        let mut party = self.start(&options)?;
        if self.checkpoint > 0 {
            party.order(Order::Checkpoint(self.checkpoint));
        }
        self.members[index] = Member { party: Some(party), ..Member::new(part, number) };
        Ok(())
    }

    /// Starts a client whose messages are not checked.
    pub(super) fn launch_guest(&mut self, part: Part) -> Result<(), Failure> {
        let options = self.options(part);
        let party = self.start(&options)?;
        self.guests.push(Guest { part, party, end_codes: &[0] });
        Ok(())
    }

    fn options(&mut self, part: Part) -> PartOptions {
        PartOptions {
            part,
            dir: self.aeron_dir(),
            index: 0,
            endpoint: self.endpoint.clone(),
            seed: self.frame.random.next(),
            counters: 0,
            take_over: false,
            loss: self.faults.contains(&FaultKind::Loss),
            sabotage: None,
        }
    }

    fn start(&mut self, options: &PartOptions) -> Result<Party, Failure> {
        self.frame.report.add("processes started", 1);
        Party::start(NAME, options, |command| {
            if let Some(clock) = &self.clock {
                clock.set(command);
            }
        })
    }

    fn end_members(&mut self, range: Range<usize>) -> Result<(), Failure> {
        for member in &mut self.members[range.clone()] {
            member.is_ending = true;
            if let Some(party) = &mut member.party {
                party.order(Order::End);
            }
        }
        self.await_none("stuck", self.frame.deadline, |campaign| {
            let left = campaign.members[range.clone()].iter().filter(|it| it.party.is_some());
            left.map(|member| format!("{} does not end", member.name())).collect()
        })?;
        Ok(())
    }
}

/// Returns the files below a directory, directories and saved error logs aside.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files(&entry.path()));
        } else if !entry.file_name().to_string_lossy().ends_with(SAVED_ERRORS) {
            found.push(entry.path());
        }
    }
    found
}

fn pid_of_this_process() -> i32 {
    i32::try_from(process::id()).unwrap_or(i32::MAX)
}
