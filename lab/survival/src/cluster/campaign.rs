//! The campaign: its options, its parties, its start and its end.

use std::fs;
use std::mem;
use std::path::Path;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use rusteron_core::program::Failure;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::cluster::Ports;
use rusteron_test_support::cluster::ledger::Digests;
use rusteron_test_support::cluster::requests::{Answers, check_numbers};
use rusteron_test_support::{
    Random, connect, has_java, java_run, launch_with_long_timeouts, mix, prepare_java,
};

use super::client::{Client, Shared};
use super::node::Node;
use super::parts::{MODULE_PROGRAM, MemberOptions, Process};
use super::strikes::{ClusterFault, Strike};
use crate::campaign::{Campaign, CommonOptions, Defaults, Frame};

pub(crate) const NAME: &str = "cluster";

const DEFAULTS: Defaults = Defaults {
    duration: Duration::from_secs(120),
    deadline: Duration::from_secs(240),
    results: "target/cluster-survival",
    report: "cluster-survival.json",
};
/// The conditions that can be violated.
const CONDITIONS: [&str; 8] =
    ["diverged", "lost", "repeated", "corrupted", "stalled", "stuck", "crashed", "unproved"];

const MEMBERS: usize = 3;
/// The interval at which the supervisor looks at the digests.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// New answers that show that the cluster goes on.
const ANSWERS: u64 = 50;
/// Processes whose peers have gone end within this time.
const END_DEADLINE: Duration = Duration::from_secs(90);
/// The time between snapshots, roughly.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterOptions {
    #[command(flatten)]
    pub(crate) common: CommonOptions,

    /// Faults to cause, separated by commas
    #[arg(long, value_name = "FAULTS", value_enum, value_delimiter = ',',
          default_values_t = ClusterFault::value_variants().to_vec())]
    pub(crate) faults: Vec<ClusterFault>,

    /// Number of clients
    #[arg(long, default_value_t = 2, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=16))]
    clients: u16,

    /// Runs ledgers that iterate a `HashMap`: the campaign must notice
    #[arg(long)]
    pub(crate) diverge: bool,
}

/// Runs the campaign.
pub(crate) fn run(options: &ClusterOptions) -> Result<(), Failure> {
    if options.faults.is_empty() {
        return Err(Failure::usage("--faults <FAULTS>", "", "at least one"));
    }
    if !has_java() {
        return Err(Failure::Run(
            "the campaign needs a JDK, and Aeron's Java artefacts".to_owned(),
        ));
    }
    // Once, and not in the time of the campaign.
    prepare_java(&mut Command::new(java_run()), MODULE_PROGRAM).map_err(Failure::Run)?;
    let figures: Vec<_> = options.faults.iter().map(|fault| fault.figure()).collect();
    let frame = Frame::new(&options.common, &DEFAULTS, &CONDITIONS, &figures)?;
    let (nodes, endpoints) = new_nodes(options, &frame)?;
    let shared = Shared::default();
    let driver = launch_with_long_timeouts();
    let new_client = |index| {
        let (aeron, endpoints) = (connect(&driver), endpoints.parse().expect("endpoints"));
        let client = Client::new(shared.clone(), aeron, endpoints, index, options.clients);
        thread::spawn(move || client.run())
    };
    let campaign = ClusterCampaign {
        faults: options.faults.clone(),
        diverge: options.diverge,
        clients: (0..options.clients).map(new_client).collect(),
        nodes,
        shared,
        snapshot_random: Random::new(mix(frame.report.seed)),
        next_snapshot: None,
        next_check: Instant::now(),
        digests: Digests::default(),
        member_digests: Digests::default(),
        read: vec![0; MEMBERS],
        frame,
        _driver: driver,
    };
    campaign.run()
}

/// Describes the members. Returns the endpoints for clients, too.
fn new_nodes(options: &ClusterOptions, frame: &Frame) -> Result<(Vec<Node>, String), Failure> {
    let results = frame.results.canonicalize();
    let results = results.map_err(|error| Failure::run(frame.results.display(), error))?;
    let ports: Vec<_> = (0..MEMBERS).map(|_| Ports::new()).collect();
    let mut nodes = Vec::new();
    for id in 0..MEMBERS {
        let dir = frame.root.path().join(format!("node{id}"));
        fs::create_dir(&dir).map_err(|error| Failure::run(dir.display(), error))?;
        let digests = results.join(format!("digests-{id}"));
        // Digests of another campaign are no use.
        let _ = fs::remove_file(&digests);
        let member = MemberOptions {
            process: Process::Driver,
            aeron_dir: dir.join("driver"),
            archive_dir: dir.join("archive"),
            cluster_dir: dir.join("cluster"),
            archive_port: ports[id].archive,
            digests,
            diverge: options.diverge,
            properties: [format!("aeron.dir={}", dir.join("driver").display())]
                .into_iter()
                .chain(Ports::properties(&ports, id, &dir))
                .collect(),
        };
        nodes.push(Node::new(id, member, results.clone()));
    }
    Ok((nodes, Ports::ingress_endpoints(&ports)))
}

struct ClusterCampaign {
    faults: Vec<ClusterFault>,
    diverge: bool,
    clients: Vec<JoinHandle<Answers>>,
    nodes: Vec<Node>,
    shared: Shared,
    /// The clock decides when it is used. Therefore it does not choose faults.
    snapshot_random: Random,
    next_snapshot: Option<Instant>,
    next_check: Instant,
    /// Digests of members and of answers.
    digests: Digests,
    member_digests: Digests,
    /// Bytes of each file of digests that were read.
    read: Vec<usize>,
    frame: Frame,
    /// The media driver of the clients.
    _driver: MediaDriver,
}

impl Campaign for ClusterCampaign {
    const TICK: Duration = Duration::from_millis(20);
    const ENDS_WITH_VIOLATION: bool = true;

    fn frame(&mut self) -> &mut Frame {
        &mut self.frame
    }

    fn begin(&mut self) -> Result<bool, Failure> {
        self.nodes.iter_mut().try_for_each(Node::start)?;
        let is_well = self.await_all("the start")?;
        if is_well {
            self.frame.tell("all members run");
        }
        self.next_snapshot = Some(Instant::now() + SNAPSHOT_INTERVAL / 3);
        Ok(is_well)
    }

    fn step(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        self.supervise(now)?;
        if now >= self.next_check {
            self.check()?;
            self.next_check = now + CHECK_INTERVAL;
        }
        Ok(())
    }

    /// Injects one fault or more, and waits until all is well again.
    fn round(&mut self) -> Result<bool, Failure> {
        if self.next_snapshot.is_some_and(|next| Instant::now() >= next) {
            self.shared.lock().snapshot_requested = true;
            let pause =
                self.snapshot_random.between(SNAPSHOT_INTERVAL / 2, SNAPSHOT_INTERVAL * 3 / 2);
            self.next_snapshot = Some(Instant::now() + pause);
        }
        let millis = Duration::from_millis;
        let pause = self.frame.random.between(millis(200), millis(3000));
        self.pass(pause)?;
        let mut names = Vec::new();
        let injected = Instant::now();
        loop {
            let strike = Strike::choose(&self.faults, MEMBERS, &mut self.frame.random);
            names.push(self.inject(&strike)?);
            match strike.followed_after {
                Some(time) if names.len() < 3 => self.pass(time)?,
                _ => break,
            }
        }
        let names = names.join(", ");
        let answered = self.shared.lock().counts.answered + ANSWERS;
        let goes_on = self.await_none("stalled", self.frame.deadline, |campaign| {
            let is_stalled = campaign.shared.lock().counts.answered < answered;
            is_stalled.then(|| format!("no answers after {names}")).into_iter().collect()
        })?;
        if !goes_on {
            return Ok(false);
        }
        self.frame.report.time("answers after a fault", injected.elapsed());
        if !self.await_all(&names)? {
            return Ok(false);
        }
        self.frame.report.time("all members after a fault", injected.elapsed());
        let state = self.shared.lock();
        self.frame.tell(&format!(
            "{names}: all well after {:.1} s, {} answers, term {}",
            injected.elapsed().as_secs_f64(),
            state.counts.answers,
            state.term
        ));
        Ok(!self.frame.has_violations())
    }

    /// Has all requests sent a second time, and waits for their effects.
    fn end(&mut self) -> Result<(), Failure> {
        {
            let mut state = self.shared.lock();
            state.snapshot_requested = false;
            state.is_over = true;
        }
        let timeout = self.frame.deadline + self.frame.duration / 4;
        let mut was_well = false;
        let have_finished = self.await_none("stalled", timeout, |campaign| {
            was_well = !campaign.frame.has_violations();
            let is_late = !campaign.clients.iter().all(JoinHandle::is_finished);
            let text = || "the cluster has not answered all requests again".to_owned();
            is_late.then(text).into_iter().collect()
        })?;
        if !have_finished {
            // Another violation has ended the wait early, so that answers may still have come.
            let missing = self.shared.lock().missing.take();
            if let Some((condition, text)) = missing.filter(|_| was_well) {
                self.frame.report.violation(condition, 1, &text);
            }
            return Ok(());
        }
        // No traffic any more: all members note the same last digest.
        let last = |campaign: &Self| campaign.nodes.iter().map(|node| node.position).max();
        self.await_none("stalled", self.frame.deadline, |campaign| {
            campaign.missing(last(campaign).unwrap_or(0), "at the end")
        })?;
        if self.member_digests.compared() == 0 && !self.frame.has_violations() {
            self.frame.report.violation("unproved", 1, "no digests of members were compared");
        }
        Ok(())
    }

    fn complete(&mut self) -> bool {
        self.shared.lock().is_aborted = true;
        let mut answers = Vec::new();
        for client in mem::take(&mut self.clients) {
            match client.join() {
                Ok(of_client) => answers.push(of_client),
                Err(_) => self.frame.report.violation("crashed", 1, "a client panicked"),
            }
        }
        // The last answers.
        if let Err(failure) = self.check() {
            self.frame.report.violation("corrupted", 1, &failure.to_string());
        }
        let report = &mut self.frame.report;
        if let (0, Err((condition, text))) = (report.violations(), check_numbers(&answers)) {
            report.violation(condition, 1, &text);
        }
        let state = self.shared.lock();
        let compared =
            [&self.member_digests, &self.digests].map(|digests| digests.compared() as u64);
        let starts = |process| self.nodes.iter().map(|node| u64::from(node.starts(process))).sum();
        for (name, value) in [
            ("requests answered", state.counts.answered),
            ("answers", state.counts.answers),
            ("sessions", state.counts.sessions),
            ("terms", u64::try_from(state.term).unwrap_or(0) + 1),
            ("new leaders, by session", state.counts.new_leaders),
            ("snapshots", state.counts.snapshots),
            ("snapshots loaded", self.nodes.iter().map(Node::loaded_snapshots).sum()),
            ("starts of drivers", starts(Process::Driver)),
            ("starts of consensus modules", starts(Process::Module)),
            ("starts of services", starts(Process::Service)),
            ("digests compared of members", compared[0]),
            ("digests compared with answers", compared[1].saturating_sub(compared[0])),
        ] {
            report.add(name, value);
        }
        // The data of the negative control is of no use.
        !self.diverge
    }
}

impl ClusterCampaign {
    /// Injects a fault. Returns its description.
    fn inject(&mut self, strike: &Strike) -> Result<String, Failure> {
        let leader = usize::try_from(self.shared.lock().leader);
        let leader = leader.ok().filter(|leader| *leader < MEMBERS);
        let member = leader.filter(|_| strike.is_for_leader).unwrap_or(strike.member);
        let Strike { kind, duration, .. } = *strike;
        let count = match kind.process() {
            Some(process) if kind.is_pause() => self.nodes[member].pause(process, duration)?,
            None if kind == ClusterFault::KillAll => {
                self.nodes.iter_mut().map(|node| node.kill(None)).sum::<Result<_, _>>()?
            }
            process => self.nodes[member].kill(process)?,
        };
        let mut text = format!("{kind:?} of member {member}");
        if leader == Some(member) {
            text += " (leader)";
        }
        if kind.is_pause() {
            text += &format!(" for {:.1} s", duration.as_secs_f64());
        }
        if count > 0 {
            self.frame.report.add(kind.figure(), 1);
        } else {
            text += ", which does not run";
        }
        Ok(text)
    }

    /// Waits until all members run, and have caught up with all that was digested up to now.
    fn await_all(&mut self, after: &str) -> Result<bool, Failure> {
        self.check()?;
        // One line more than now, so that a member that stands still is noticed.
        let target = self.nodes.iter().map(|node| node.position).max().unwrap_or(0) + 1;
        let after = format!("after {after}");
        self.await_none("stalled", self.frame.deadline, |it| it.missing(target, &after))
    }

    /// Returns the positions of the members, unless all run and have reached a target.
    fn missing(&self, target: i64, when: &str) -> Vec<String> {
        if self.nodes.iter().all(|node| node.is_whole() && node.position >= target) {
            return Vec::new();
        }
        let positions: Vec<_> = self.nodes.iter().map(|node| node.position).collect();
        vec![format!("positions {positions:?} of {target} {when}")]
    }

    fn supervise(&mut self, now: Instant) -> Result<(), Failure> {
        let report = &mut self.frame.report;
        for (id, node) in self.nodes.iter_mut().enumerate() {
            let mut ends = node.supervise(now)?;
            let is_late =
                node.ending_since.is_some_and(|since| now.duration_since(since) >= END_DEADLINE);
            if is_late {
                ends.extend(node.take_unexplained());
            }
            for end in ends {
                let text = format!("{:?}: {}, {}", end.process, end.status, end.last_words);
                if !end.is_expected() {
                    report.violation("crashed", 1, &format!("member {id}, {text}"));
                }
                // Without numbers, so that ends of one kind are counted together.
                let words: String =
                    end.last_words.chars().filter(|c| !c.is_ascii_digit()).collect();
                report.end(format!("{:?}: {}, {words}", end.process, end.status), &end.last_words);
            }
            let lingering = if is_late { node.lingering() } else { Vec::new() };
            for process in lingering {
                // A service whose consensus module has not come waits for the next one.
                if process == Process::Service && node.has_worked() {
                    report.violation("stuck", 1, &format!("member {id}'s service goes on alone"));
                }
                report.end(format!("{process:?} lingered"), "");
                node.kill(Some(process))?;
            }
        }
        Ok(())
    }

    /// Reads new digests, and compares them.
    fn check(&mut self) -> Result<(), Failure> {
        let (violations, digests) = {
            let mut state = self.shared.lock();
            (mem::take(&mut state.violations), mem::take(&mut state.digests))
        };
        for (condition, text) in violations {
            self.frame.report.violation(condition, 1, &text);
        }
        for (position, digest) in digests {
            let added = self.digests.add(position, digest, Path::new("answers"));
            self.note_difference(added);
        }
        for member in 0..MEMBERS {
            let file = self.nodes[member].digests();
            let Ok(text) = fs::read_to_string(&file) else { continue };
            let new = text.get(self.read[member]..).unwrap_or_default();
            let (lines, length) = Digests::parse(new, &file).map_err(Failure::Run)?;
            self.read[member] += length;
            for (position, digest) in lines {
                self.nodes[member].position = position;
                let added = self.member_digests.add(position, digest, &file);
                let added = added.and_then(|()| self.digests.add(position, digest, &file));
                self.note_difference(added);
            }
        }
        Ok(())
    }

    fn note_difference(&mut self, added: Result<(), String>) {
        if let Err(text) = added {
            self.frame.report.violation("diverged", 1, &text);
        }
    }
}
