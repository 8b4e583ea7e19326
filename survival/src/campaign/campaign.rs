//! The campaign from its start to its end.

use std::ops::Range;
use std::path::PathBuf;
use std::process::{self, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusteron_benchmarks::command_line::failure::Failure;
use rusteron_benchmarks::command_line::interrupt::Interrupt;
use rusteron_benchmarks::command_line::json_file::JsonFile;
use rustix::process::WaitOptions;

use crate::child::Process;
use crate::disk::Disk;
use crate::faults::FaultKind;
use crate::leaks::{self, DriverState};
use crate::member::{Member, Role};
use crate::options::CampaignOptions;
use crate::random::{Random, mix};
use crate::report::Report;
use crate::words::Order;

/// How often the supervisor looks at everything.
pub(super) const TICK: Duration = Duration::from_millis(5);
/// How long faults come before a checkpoint.
const ROUND: Duration = Duration::from_secs(9);

/// Runs the campaign.
pub(crate) fn run(options: &CampaignOptions) -> Result<(), Failure> {
    let unusable = |error| Failure::usage("--results <DIR>", options.results.display(), error);
    std::fs::create_dir_all(&options.results).map_err(unusable)?;
    let json = JsonFile::open(&options.results.join("prove_survival.json"))?;
    let interrupt = Interrupt::on_signals()?;
    let mut campaign = Campaign::new(options, interrupt)?;
    campaign.run()?;
    let report = campaign.report;
    println!("{report}");
    json.write(&report.to_json())?;
    println!("Results: {}/prove_survival.json", options.results.display());
    match report.faults() {
        0 => Ok(()),
        count => Err(Failure::Run(format!("{count} faults"))),
    }
}

pub(super) struct Campaign<'a> {
    pub(super) options: &'a CampaignOptions,
    pub(super) faults: Vec<FaultKind>,
    pub(super) interrupt: Arc<Interrupt>,
    pub(super) program: PathBuf,
    pub(super) endpoint: String,
    pub(super) disk: Disk,
    pub(super) disk_full_until: Option<Instant>,
    pub(super) random: Random,
    /// The driver first, then publishers, then subscribers.
    pub(super) members: Vec<Member>,
    /// When the driver was killed whose successor has not delivered a message yet.
    pub(super) taken_over_at: Option<Instant>,
    /// The forger, if there is one.
    pub(super) forger: Option<Process>,
    /// When publishers are killed so that their successors have counters, logs and images made. The successors
    /// get the counters of a paused client, and need the descriptors of a client that has none.
    pub(super) successions: Vec<Instant>,
    /// The number of the checkpoint that is under way, or 0.
    pub(super) checkpoint: u64,
    pub(super) report: Report,
}

impl<'a> Campaign<'a> {
    fn new(options: &'a CampaignOptions, interrupt: Arc<Interrupt>) -> Result<Self, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::run("cannot find this program", error))?;
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let random_seed = mix(clock.unwrap_or_default().as_nanos() as u64) >> 32;
        let seed = options.seed.unwrap_or(random_seed);
        let wants_disk = options.faults.contains(&FaultKind::FullDisk);
        let disk = Disk::new(wants_disk)?;
        let mut report = Report::default();
        report.seed = seed;
        let mut faults = options.faults.clone();
        if wants_disk && !disk.is_small() {
            if std::env::var_os("RUSTERON_REQUIRE_MOUNT").is_some_and(|value| value == "1") {
                let text = "RUSTERON_REQUIRE_MOUNT=1, but a file system cannot be mounted";
                return Err(Failure::Run(text.to_owned()));
            }
            let text = "full-disk: skipped, a file system cannot be mounted without root";
            println!("{text}");
            report.skipped_faults.push(text.to_owned());
            faults.retain(|kind| *kind != FaultKind::FullDisk);
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
            program,
            endpoint: format!("{address}:20121"),
            disk,
            disk_full_until: None,
            random: Random::new(seed),
            members: roles.map(Member::new).collect(),
            taken_over_at: None,
            forger: None,
            successions: Vec::new(),
            checkpoint: 0,
            report,
        })
    }

    fn run(&mut self) -> Result<(), Failure> {
        let start = Instant::now();
        let descriptors = leaks::descriptors(pid_of_this_process());
        println!("prove_survival: seed {}, {:?}", self.report.seed, self.options.duration);
        let bare_driver = self.start_driver()?;
        let deadline = start + self.options.duration;
        let mut survives = self.check()?;
        while survives && Instant::now() < deadline {
            self.strike_until(deadline.min(Instant::now() + ROUND))?;
            survives = self.check()?;
            println!(
                "{:6.1} s: checkpoint {}, {} received, {} faults",
                start.elapsed().as_secs_f64(),
                self.report.checkpoints,
                self.report.received,
                self.report.faults()
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
        let mut command = self.command(part);
        command
            .args(["--index", &number.to_string(), "--endpoint", &self.endpoint])
            .args(["--counters", &self.members[index].counters.to_string()]);
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
        let mut process = Process::start(&mut command)?;
        if self.checkpoint > 0 {
            process.order(Order::Checkpoint(self.checkpoint));
        }
        self.report.processes += 1;
        self.members[index] = Member { process: Some(process), ..Member::new(role) };
        Ok(())
    }

    /// Starts a forger.
    pub(super) fn launch_forger(&mut self) -> Result<(), Failure> {
        self.forger = Some(Process::start(&mut self.command("forger"))?);
        self.report.processes += 1;
        Ok(())
    }

    /// Returns the command that starts this program as a part.
    fn command(&mut self, part: &str) -> Command {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os() {
            // Settings of Aeron's that a user may have.
            if name.to_string_lossy().starts_with("AERON_") {
                command.env_remove(name);
            }
        }
        command
            .env("RUST_BACKTRACE", "0")
            .arg(part)
            .args(["--supervisor", &process::id().to_string()])
            .arg("--dir")
            .arg(self.disk.aeron_dir())
            .args(["--seed", &self.random.next().to_string()]);
        command
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
            self.report.fault("leaked", 1, &format!("a file: {}", file.display()));
        }
        if dir.exists() {
            self.report.fault("leaked", 1, &format!("the directory {}", dir.display()));
        }
        // Of processes that no one waits for, there would be a status or none yet.
        let waited = rustix::process::wait(WaitOptions::NOHANG);
        if !matches!(waited, Err(rustix::io::Errno::CHILD)) {
            self.report.fault("leaked", 1, "a process");
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
