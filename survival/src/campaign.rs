//! The supervisor: starts the parts, causes faults, and looks at their consequences.

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{self, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusteron_benchmarks::command_line::failure::Failure;
use rusteron_benchmarks::command_line::interrupt::Interrupt;
use rusteron_benchmarks::command_line::json_file::JsonFile;
use rustix::process::{Signal, WaitOptions};

use crate::child::Process;
use crate::disk::Disk;
use crate::faults::{Blow, FaultKind, Length};
use crate::leaks::{self, DriverState, Holdings};
use crate::member::{Member, Pause, Role};
use crate::options::CampaignOptions;
use crate::random::{Random, mix};
use crate::report::Report;
use crate::settings::{CLIENT_LIVENESS, COUNTER_REUSE};
use crate::words::{Notice, Order};

/// How often the supervisor looks at everything.
const TICK: Duration = Duration::from_millis(5);
/// How long faults come before a checkpoint.
const ROUND: Duration = Duration::from_secs(9);
/// The time between two faults.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
const MOST_PAUSE: Duration = Duration::from_millis(800);
/// A condition that does not come true in this time, without faults, never does.
const DEADLINE: Duration = Duration::from_secs(60);
/// Resources that linger are gone after this time.
const LINGERING: Duration = Duration::from_secs(30);
/// A client that was paused past its timeout says within this time that it has ended.
const UNDEAD: Duration = Duration::from_secs(20);

/// How many counters a publisher has after a succession: enough to use up those that have been free for longer.
const COUNTERS_OF_A_SUCCESSOR: usize = 96;

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

struct Campaign<'a> {
    options: &'a CampaignOptions,
    faults: Vec<FaultKind>,
    interrupt: Arc<Interrupt>,
    program: PathBuf,
    endpoint: String,
    disk: Disk,
    disk_full_until: Option<Instant>,
    random: Random,
    /// The driver first, then publishers, then subscribers.
    members: Vec<Member>,
    /// When publishers are killed so that their successors have counters, logs and images made. The successors
    /// get the counters of a paused client, and need the descriptors of a client that has none.
    successions: Vec<Instant>,
    /// The number of the checkpoint that is under way, or 0.
    checkpoint: u64,
    report: Report,
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
            self.await_none(&mut excess, LINGERING, "leaked", |_| {
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
        let is_ready = self.wait("the driver does not start", DEADLINE, |campaign| {
            campaign.look_at(0)?;
            Ok(campaign.members[0].is_ready)
        })?;
        if !is_ready {
            return Err(Failure::Run(format!("the driver does not start\n{}", self.report)));
        }
        Ok(DriverState::of(&dir))
    }

    /// Starts a process for the role of a member.
    fn launch(&mut self, index: usize) -> Result<(), Failure> {
        let role = self.members[index].role;
        let (part, number) = match role {
            Role::Driver => ("driver", 0),
            Role::Publisher(number) => ("publisher", number),
            Role::Subscriber(number) => ("subscriber", number),
        };
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
            .args(["--index", &number.to_string(), "--endpoint", &self.endpoint])
            .args(["--seed", &self.random.next().to_string()])
            .args(["--counters", &self.members[index].counters.to_string()]);
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

    /// Causes faults until a point in time, and then no more.
    fn strike_until(&mut self, end: Instant) -> Result<(), Failure> {
        let mut next = Instant::now();
        while Instant::now() < end {
            self.step()?;
            if Instant::now() >= next {
                next = Instant::now() + self.random.between(LEAST_PAUSE, MOST_PAUSE);
                if let Some(blow) = Blow::choose(&self.faults, &mut self.random) {
                    self.strike(blow)?;
                }
            }
            std::thread::sleep(TICK);
        }
        Ok(())
    }

    fn strike(&mut self, blow: Blow) -> Result<(), Failure> {
        let now = Instant::now();
        match blow {
            Blow::KillClient => {
                let delay = self.random.between(Duration::ZERO, Duration::from_millis(800));
                if let Some(index) = self.choose(1..self.members.len()) {
                    self.kill(index, delay)?;
                    self.report.caused.kills_of_clients += 1;
                }
            }
            Blow::KillDriver => {
                if self.members[0].is_free() {
                    let delay = self.random.between(Duration::ZERO, Duration::from_millis(500));
                    self.kill(0, delay)?;
                    self.report.caused.kills_of_drivers += 1;
                }
            }
            Blow::PauseClient(length, pause) => {
                // A subscriber that polls with another's counter does more harm than a publisher.
                let first_subscriber = 1 + usize::from(self.options.publishers);
                let is_special = length == Length::PastReuse && self.random.percent(75);
                let first = if is_special { first_subscriber } else { 1 };
                let Some(index) = self.choose(first..self.members.len()) else { return Ok(()) };
                self.pause(index, length, pause)?;
                let count = match length {
                    Length::Short => &mut self.report.caused.short_pauses,
                    Length::PastLiveness => &mut self.report.caused.pauses_past_liveness,
                    Length::PastReuse => &mut self.report.caused.pauses_past_reuse,
                };
                *count += 1;
                if length == Length::PastReuse {
                    let reuse = CLIENT_LIVENESS + COUNTER_REUSE + Duration::from_millis(300);
                    self.successions.push(now + reuse);
                }
            }
            Blow::PauseDriver(pause) => {
                if self.members[0].is_free() {
                    self.pause(0, Length::Short, pause)?;
                    self.report.caused.pauses_of_drivers += 1;
                }
            }
            Blow::FullDisk(while_) => {
                if self.disk_full_until.is_none() {
                    self.disk.fill()?;
                    self.disk_full_until = Some(now + while_);
                    self.report.caused.full_disks += 1;
                }
            }
            Blow::Descriptors(while_) => {
                let Some(index) = self.choose(0..self.members.len()) else { return Ok(()) };
                let member = &mut self.members[index];
                let Some(process) = &member.process else { return Ok(()) };
                // A process that has just died has none.
                let Some(next) = leaks::next_descriptor(process.pid()) else { return Ok(()) };
                process.limit_descriptors(next)?;
                member.starved_until = Some(now + while_);
                self.successions.push(now + Duration::from_millis(100));
                self.report.caused.exhausted_descriptors += 1;
            }
        }
        Ok(())
    }

    /// One of some members that runs undisturbed.
    fn choose(&mut self, range: Range<usize>) -> Option<usize> {
        let free = |index: &usize| self.members[*index].is_free();
        let free: Vec<_> = range.filter(free).collect();
        let chosen = self.random.below(free.len());
        free.get(chosen).copied()
    }

    fn kill(&mut self, index: usize, delay: Duration) -> Result<(), Failure> {
        let member = &mut self.members[index];
        if let Some(process) = &member.process {
            process.signal(Signal::KILL)?;
            member.was_killed = true;
            member.start_at = Instant::now() + delay;
        }
        Ok(())
    }

    fn pause(&mut self, index: usize, length: Length, pause: Duration) -> Result<(), Failure> {
        let member = &mut self.members[index];
        if let Some(process) = &member.process {
            process.signal(Signal::STOP)?;
            member.paused = Some(Pause { until: Instant::now() + pause, length });
        }
        Ok(())
    }

    /// Looks at every member, ends faults that have lasted long enough, and starts missing members.
    fn step(&mut self) -> Result<(), Failure> {
        if self.interrupt.is_requested() {
            return Err(Failure::Interrupted);
        }
        let now = Instant::now();
        for index in 0..self.members.len() {
            self.look_at(index)?;
            self.relieve(index, now)?;
            let member = &self.members[index];
            if member.process.is_none() && !member.is_ending && member.start_at <= now {
                self.launch(index)?;
            }
        }
        if self.disk_full_until.is_some_and(|until| until <= now) {
            self.disk.empty();
            self.disk_full_until = None;
        }
        let due = self.successions.iter().filter(|at| **at <= now).count();
        self.successions.retain(|at| *at > now);
        if self.faults.contains(&FaultKind::KillClient) {
            for _ in 0..due {
                if let Some(index) = self.choose(1..1 + usize::from(self.options.publishers)) {
                    self.kill(index, Duration::ZERO)?;
                    self.members[index].counters = COUNTERS_OF_A_SUCCESSOR;
                    self.report.caused.kills_of_clients += 1;
                }
            }
        }
        Ok(())
    }

    /// Ends the pause and the starvation of a member if they have lasted long enough.
    fn relieve(&mut self, index: usize, now: Instant) -> Result<(), Failure> {
        let member = &mut self.members[index];
        let Some(process) = &member.process else { return Ok(()) };
        if let Some(pause) = member.paused.filter(|pause| pause.until <= now) {
            process.signal(Signal::CONT)?;
            member.paused = None;
            if member.is_ready && pause.length != Length::Short {
                member.must_end_by = Some(now + UNDEAD);
            }
        }
        if member.starved_until.is_some_and(|until| until <= now) {
            process.restore_descriptors()?;
            member.starved_until = None;
        }
        if member.must_end_by.is_some_and(|by| by <= now) {
            member.must_end_by = None;
            let text = format!("{} was paused past its timeout, and goes on", member.role);
            self.report.fault("stuck", 1, &text);
        }
        Ok(())
    }

    /// Reads the notices of a member, and notices its end.
    fn look_at(&mut self, index: usize) -> Result<(), Failure> {
        while let Some(notice) = self.members[index].process.as_ref().and_then(Process::notice) {
            self.hear(index, notice);
        }
        let Some(process) = &mut self.members[index].process else { return Ok(()) };
        let Some(status) = process.ended()? else { return Ok(()) };
        while let Some(notice) = self.members[index].process.as_ref().and_then(Process::last_notice)
        {
            self.hear(index, notice);
        }
        self.bury(index, status);
        Ok(())
    }

    fn bury(&mut self, index: usize, status: ExitStatus) {
        let member = &mut self.members[index];
        let Some(process) = member.process.take() else { return };
        let is_expected = member.was_killed || (member.is_ending && status.success());
        if !is_expected {
            let text = format!("{}: {status}: {}", member.role, process.last_words());
            self.report.fault("crashed", 1, &text);
            member.start_at = Instant::now();
        }
        member.paused = None;
        member.starved_until = None;
        member.must_end_by = None;
        member.is_ready = false;
    }

    fn hear(&mut self, index: usize, notice: Notice) {
        let member = &mut self.members[index];
        match notice {
            Notice::Ready => member.is_ready = true,
            Notice::Ended(text) => {
                member.is_ready = false;
                member.must_end_by = None;
                self.report.error("ended", &text);
            }
            Notice::Refused(text) => self.report.error("refused", &text),
            Notice::Messages(count) => {
                let more = count - member.messages;
                member.messages = count;
                match member.role {
                    Role::Publisher(_) => self.report.sent += more,
                    _ => self.report.received += more,
                }
            }
            Notice::Skipped(count) => {
                self.report.skipped += count - member.skipped;
                member.skipped = count;
            }
            Notice::Publishing(checkpoint, publications) => {
                member.publishing = (checkpoint, publications);
            }
            Notice::Received(checkpoint, publication) => {
                if member.received.0 != checkpoint {
                    member.received = (checkpoint, HashSet::new());
                }
                member.received.1.insert(publication);
            }
            Notice::Fault(name, count, text) => {
                let text = if text.is_empty() { text } else { format!("{}: {text}", member.role) };
                self.report.fault(&name, count, &text);
            }
        }
    }

    /// Waits for a condition; reports a fault and returns `false` if it does not come true.
    fn wait(
        &mut self,
        what: &str,
        timeout: Duration,
        mut is_met: impl FnMut(&mut Self) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let deadline = Instant::now() + timeout;
        while !is_met(self)? {
            if self.interrupt.is_requested() {
                return Err(Failure::Interrupted);
            }
            if Instant::now() >= deadline {
                self.report.fault("stuck", 1, what);
                return Ok(false);
            }
            std::thread::sleep(TICK);
        }
        Ok(true)
    }

    /// Ends all faults, and waits until every subscriber gets messages of every publication. Then looks for leaks.
    /// Returns `false` if that does not come about, which makes everything that follows meaningless.
    fn check(&mut self) -> Result<bool, Failure> {
        self.relieve_all();
        self.report.checkpoints += 1;
        self.checkpoint = self.report.checkpoints;
        self.order(Order::Checkpoint(self.checkpoint));
        let mut missing = Vec::new();
        let is_whole = self.await_none(&mut missing, DEADLINE, "stuck", Self::missing)?;
        if is_whole {
            let mut excess = Vec::new();
            self.await_none(&mut excess, LINGERING, "leaked", Self::excess)?;
        }
        self.checkpoint = 0;
        self.order(Order::Resume);
        Ok(is_whole)
    }

    /// Waits until a list is empty; reports what stays in it under a name.
    fn await_none(
        &mut self,
        list: &mut Vec<String>,
        timeout: Duration,
        name: &str,
        mut update: impl FnMut(&mut Self) -> Vec<String>,
    ) -> Result<bool, Failure> {
        let deadline = Instant::now() + timeout;
        loop {
            self.step()?;
            *list = update(self);
            if list.is_empty() {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                for text in list {
                    self.report.fault(name, 1, text);
                }
                return Ok(false);
            }
            std::thread::sleep(4 * TICK);
        }
    }

    fn relieve_all(&mut self) {
        let now = Instant::now();
        self.successions.clear();
        for member in &mut self.members {
            member.start_at = now;
            if let Some(pause) = &mut member.paused {
                // A pause that is cut short may have been too short to be past any timeout.
                if pause.until > now {
                    *pause = Pause { until: now, length: Length::Short };
                }
            }
            member.starved_until = member.starved_until.map(|_| now);
        }
        self.disk_full_until = self.disk_full_until.map(|_| now);
    }

    fn order(&mut self, order: Order) {
        for member in &mut self.members {
            if let Some(process) = &mut member.process {
                process.order(order);
            }
        }
    }

    /// Who has not got messages of the checkpoint from whom.
    fn missing(&mut self) -> Vec<String> {
        let mut missing = Vec::new();
        let (publishers, subscribers) = self.clients();
        for publisher in publishers {
            if publisher.publishing.0 != self.checkpoint {
                missing.push(format!("{} does not publish", publisher.role));
                continue;
            }
            for subscriber in subscribers {
                let (checkpoint, received) = &subscriber.received;
                for (stream, publication) in publisher.publishing.1.iter().enumerate() {
                    if *checkpoint != self.checkpoint || !received.contains(publication) {
                        missing.push(format!(
                            "{} gets nothing from {} on stream {stream}",
                            subscriber.role, publisher.role
                        ));
                    }
                }
            }
        }
        missing
    }

    fn clients(&self) -> (&[Member], &[Member]) {
        self.members[1..].split_at(usize::from(self.options.publishers))
    }

    /// Returns the resources of which there are too many. The first checkpoint of a process sets the right number.
    fn excess(&mut self) -> Vec<String> {
        let dir = self.disk.aeron_dir();
        let (publishers, subscribers) = self.clients();
        let mut excess = match DriverState::of(&dir) {
            Some(state) => state.differences(publishers.len(), subscribers.len()),
            None => vec!["the driver's files cannot be read".to_owned()],
        };
        if !excess.is_empty() {
            // Resources that linger in the driver linger in the clients.
            return excess;
        }
        let publishers = u64::from(self.options.publishers);
        for member in &mut self.members {
            let Some(process) = &member.process else { continue };
            let Some(mut now) = Holdings::of(process.pid(), &dir) else { continue };
            if member.before.is_none() {
                // One of its images may just be about to be replaced.
                now.mappings = now.mappings.max(match member.role {
                    Role::Driver => 0,
                    Role::Publisher(_) => leaks::mappings_of_publisher(),
                    Role::Subscriber(_) => leaks::mappings_of_subscriber(publishers),
                });
            }
            let before = *member.before.get_or_insert(now);
            let texts = now.excess_over(&before);
            excess.extend(texts.iter().map(|text| format!("{}: {text}", member.role)));
        }
        excess
    }

    /// Ends all processes in good order, the driver last, and looks for the resources that they have left.
    fn end(&mut self, bare_driver: Option<&DriverState>) -> Result<(), Failure> {
        self.end_members(1..self.members.len())?;
        let dir = self.disk.aeron_dir();
        if let Some(bare) = bare_driver {
            let mut left = Vec::new();
            self.await_none(&mut left, LINGERING, "leaked", |_| match DriverState::of(&dir) {
                Some(state) => state.excess_over(bare),
                None => vec!["the driver's files cannot be read".to_owned()],
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
        self.wait("a process does not end", DEADLINE, |campaign| {
            campaign.step()?;
            Ok(campaign.members[range.clone()].iter().all(|member| member.process.is_none()))
        })?;
        Ok(())
    }
}

fn pid_of_this_process() -> i32 {
    i32::try_from(process::id()).unwrap_or(i32::MAX)
}
