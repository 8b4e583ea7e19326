//! The campaign from its start to its end.

use std::fs;
use std::mem;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::{Failure, on_interrupt};
use rusteron_test_support::cluster::Ports;
use rusteron_test_support::cluster::ledger::Digests;
use rusteron_test_support::cluster::requests::{Answers, check_numbers};
use rusteron_test_support::programs::ResultsFile;
use rusteron_test_support::{
    Random, connect, has_java, java_run, launch_with_long_timeouts, mix, prepare_java,
};

use super::client::{Client, Shared};
use super::faults::{ClusterFault, Fault};
use super::member_process::Process;
use super::node::{Node, Settings};
use super::options::ClusterOptions;
use super::parts::MODULE_PROGRAM;
use crate::process::{seed, temporary_dir};
use crate::report::Report;

/// The conditions that can be violated.
const CONDITIONS: [&str; 7] =
    ["diverged", "lost", "repeated", "corrupted", "stalled", "stuck", "crashed"];

const MEMBERS: usize = 3;
/// How often the supervisor looks at everything.
const TICK: Duration = Duration::from_millis(20);
/// New answers that show that the cluster goes on.
const ANSWERS: u64 = 50;
/// Processes whose peers have gone end within this time.
const END_DEADLINE: Duration = Duration::from_secs(90);
/// The time between snapshots, roughly.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(60);

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
    let json = ResultsFile::open(&options.results, "cluster-survival.json")?;
    let results = options.results.canonicalize();
    let results = results.map_err(|error| Failure::run(options.results.display(), error))?;
    // Digests of another campaign are no use.
    for member in 0..MEMBERS {
        let _ = fs::remove_file(results.join(format!("digests-{member}")));
    }
    let interrupt = on_interrupt()?;
    let seed = seed(options.seed);
    println!("seed {seed}, {:?}", options.duration);

    let root = temporary_dir()?;
    let (nodes, endpoints) = new_nodes(options, root.path(), &results);
    let shared = Shared::default();
    let driver = launch_with_long_timeouts();
    let report = Report::new(seed, &CONDITIONS, ClusterFault::ALL.map(ClusterFault::name));
    let mut campaign = Campaign {
        options,
        interrupt,
        nodes,
        shared: &shared,
        random: Random::new(seed),
        snapshot_random: Random::new(mix(seed)),
        digests: Digests::default(),
        member_digests: Digests::default(),
        read: vec![0; MEMBERS],
        start: Instant::now(),
        report,
    };
    let answers = thread::scope(|scope| {
        let clients: Vec<_> = (0..options.clients)
            .map(|index| {
                let (aeron, endpoints) = (connect(&driver), endpoints.parse().expect("endpoints"));
                let client = Client::new(&shared, aeron, endpoints, index, options.clients);
                scope.spawn(move || client.run())
            })
            .collect();
        let outcome = campaign.run(|| clients.iter().all(|client| client.is_finished()));
        shared.is_aborted.store(true, Ordering::Relaxed);
        let answers: Vec<_> = clients
            .into_iter()
            .map(|client| client.join().map_err(|_| Failure::Run("a client panicked".to_owned())))
            .collect();
        outcome?;
        answers.into_iter().collect::<Result<Vec<_>, _>>()
    })?;
    campaign.finish(&answers)?;
    let Campaign { report, nodes, member_digests, .. } = campaign;
    drop(nodes);
    // The data of the negative control is of no use.
    if report.violations() > 0 && !options.diverge {
        println!("Data of the members: {}", root.keep().display());
    }
    report.finish(json)?;
    if member_digests.compared() == 0 {
        return Err(Failure::Run("no digests of different members were compared".to_owned()));
    }
    Ok(())
}

/// Describes the members. Returns the endpoints for clients, too.
fn new_nodes(options: &ClusterOptions, root: &Path, results: &Path) -> (Vec<Node>, String) {
    let ports: Vec<_> = (0..MEMBERS).map(|_| Ports::new()).collect();
    let members = Ports::members(&ports);
    let endpoint = |(id, ports): (usize, &Ports)| format!("{id}=localhost:{}", ports.ingress);
    let endpoints: Vec<String> = ports.iter().enumerate().map(endpoint).collect();
    let new_node = |(id, &ports): (usize, &Ports)| {
        Node::new(Settings {
            id,
            dir: root.join(format!("node{id}")),
            results: results.to_owned(),
            ports,
            members: members.clone(),
            archive: options.archive,
            diverge: options.diverge,
        })
    };
    (ports.iter().enumerate().map(new_node).collect(), endpoints.join(","))
}

struct Campaign<'a> {
    options: &'a ClusterOptions,
    interrupt: ShutdownSignal,
    nodes: Vec<Node>,
    shared: &'a Shared,
    random: Random,
    /// The clock decides when it is used. Therefore it does not choose faults.
    snapshot_random: Random,
    /// Of members and answers.
    digests: Digests,
    member_digests: Digests,
    /// Bytes of each file of digests that were read.
    read: Vec<usize>,
    start: Instant,
    report: Report,
}

impl Campaign<'_> {
    /// Runs faults until the time is over or a condition is broken, and then lets the clients finish.
    fn run(&mut self, have_clients_finished: impl Fn() -> bool) -> Result<(), Failure> {
        for node in &mut self.nodes {
            node.start()?;
        }
        if !self.await_all("the start", self.options.deadline)? {
            return Ok(());
        }
        println!("{:6.1} s: all members run", self.start.elapsed().as_secs_f64());
        let begin = Instant::now();
        let mut next_snapshot = begin + SNAPSHOT_INTERVAL / 3;
        while begin.elapsed() < self.options.duration && !self.is_broken() {
            if Instant::now() >= next_snapshot {
                self.shared.snapshot_requested.store(true, Ordering::Relaxed);
                next_snapshot = Instant::now()
                    + self
                        .snapshot_random
                        .between(SNAPSHOT_INTERVAL / 2, SNAPSHOT_INTERVAL * 3 / 2);
            }
            if !self.round(begin)? {
                return Ok(());
            }
        }
        if self.is_broken() {
            return Ok(());
        }
        // All requests a second time, and then their effects.
        self.shared.snapshot_requested.store(false, Ordering::Relaxed);
        self.shared.is_over.store(true, Ordering::Relaxed);
        let deadline = Instant::now() + self.options.deadline + self.options.duration / 4;
        if !self.wait(deadline, |_| have_clients_finished())? {
            if !self.is_broken() {
                let missing = self.shared.findings().missing.take();
                let (name, text) = missing.unwrap_or_else(|| {
                    ("stalled", "the cluster has not answered all requests again".to_owned())
                });
                self.report.violation(name, 1, &text);
            }
            return Ok(());
        }
        // No traffic any more: all members note the same last digest.
        let are_level = |campaign: &Self| {
            let last = campaign.nodes.iter().map(|node| node.position).max();
            campaign.nodes.iter().all(|node| node.is_whole() && Some(node.position) == last)
        };
        if !self.wait(Instant::now() + self.options.deadline, are_level)? && !self.is_broken() {
            let text = format!("positions {:?} at the end", self.positions());
            self.report.violation("stalled", 1, &text);
        }
        Ok(())
    }

    fn positions(&self) -> Vec<i64> {
        self.nodes.iter().map(|node| node.position).collect()
    }

    /// Injects one fault or more, and waits until all is well again. Returns whether to go on.
    fn round(&mut self, begin: Instant) -> Result<bool, Failure> {
        let pause = self.random.between(Duration::from_millis(200), Duration::from_millis(3000));
        self.wait(Instant::now() + pause, |_| false)?;
        let mut names = Vec::new();
        let injected = Instant::now();
        loop {
            let fault = Fault::next(&self.options.faults, MEMBERS, &mut self.random);
            names.push(self.inject(&fault)?);
            match fault.followed_after {
                Some(time) if names.len() < 3 => self.wait(Instant::now() + time, |_| false)?,
                _ => break,
            };
        }
        let answered = self.shared.answered.load(Ordering::Relaxed) + ANSWERS;
        let deadline = injected + self.options.deadline;
        let shared = self.shared;
        let goes_on =
            self.wait(deadline, |_| shared.answered.load(Ordering::Relaxed) >= answered)?;
        let names = names.join(", ");
        if !goes_on && !self.is_broken() {
            self.report.violation("stalled", 1, &format!("no answers after {names}"));
            return Ok(false);
        }
        self.report.time("answers after a fault", injected.elapsed());
        if !self.await_all(&names, self.options.deadline)? {
            return Ok(false);
        }
        self.report.time("all members after a fault", injected.elapsed());
        let findings = self.shared.findings();
        println!(
            "{:6.1} s: {names}: all well after {:.1} s, {} answers, term {}, {} violations",
            begin.elapsed().as_secs_f64(),
            injected.elapsed().as_secs_f64(),
            findings.counts.answers,
            findings.term,
            self.report.violations(),
        );
        Ok(true)
    }

    /// Injects a fault. Returns its description.
    fn inject(&mut self, fault: &Fault) -> Result<String, Failure> {
        let leader = self.shared.leader.load(Ordering::Relaxed);
        let leader = usize::try_from(leader).ok().filter(|leader| *leader < MEMBERS);
        let member = leader.filter(|_| fault.is_for_leader).unwrap_or(fault.member);
        let is_leader = leader == Some(member);
        let count = match (fault.kind, fault.process()) {
            (ClusterFault::KillAll, _) => {
                let kill = |node: &mut Node| node.kill(None);
                self.nodes.iter_mut().map(kill).sum::<Result<usize, _>>()?
            }
            (_, Some(process)) if fault.is_pause() => {
                usize::from(self.nodes[member].pause(process, fault.duration)?)
            }
            (_, process) => self.nodes[member].kill(process)?,
        };
        let mut text = format!("{:?} of member {member}", fault.kind);
        if is_leader {
            text += " (leader)";
        }
        if fault.is_pause() {
            text += &format!(" for {:.1} s", fault.duration.as_secs_f64());
        }
        if count > 0 {
            self.report.add(fault.kind.name(), 1);
        } else {
            text += ", which does not run";
        }
        Ok(text)
    }

    /// Waits until all members run, and have caught up with all that was digested up to now.
    fn await_all(&mut self, after: &str, timeout: Duration) -> Result<bool, Failure> {
        let deadline = Instant::now() + timeout;
        self.check()?;
        // One line more than now, so that a member that stands still is noticed.
        let target = self.nodes.iter().map(|node| node.position).max().unwrap_or(0) + 1;
        let is_back = |campaign: &Self| {
            campaign.nodes.iter().all(|node| node.is_whole() && node.position >= target)
        };
        let is_back = self.wait(deadline, is_back)?;
        if !is_back && !self.is_broken() {
            let positions = self.positions();
            let text = format!("positions {positions:?} of {target}, {timeout:?} after {after}");
            self.report.violation("stalled", 1, &text);
        }
        Ok(is_back)
    }

    /// Supervises and checks until a condition is true, the deadline, or the first violation. Returns the condition.
    fn wait(
        &mut self,
        deadline: Instant,
        condition: impl Fn(&Self) -> bool,
    ) -> Result<bool, Failure> {
        let mut next_check = Instant::now();
        loop {
            let now = Instant::now();
            self.supervise(now)?;
            if now >= next_check {
                self.check()?;
                next_check = now + 10 * TICK;
            }
            if condition(self) {
                return Ok(true);
            }
            if self.interrupt.is_signalled() {
                return Err(Failure::Interrupted);
            }
            if now >= deadline || self.is_broken() {
                return Ok(false);
            }
            thread::sleep(TICK);
        }
    }

    fn is_broken(&self) -> bool {
        self.report.violations() > 0
    }

    fn supervise(&mut self, now: Instant) -> Result<(), Failure> {
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
                    self.report.violation("crashed", 1, &format!("member {id}, {text}"));
                }
                let words: String =
                    end.last_words.chars().filter(|c| !c.is_ascii_digit()).collect();
                let kind = format!("{:?}: {}, {words}", end.process, end.status);
                self.report.end(kind, &end.last_words);
            }
            if is_late {
                for process in node.lingering() {
                    // A service whose consensus module has not come waits for the next one.
                    if process == Process::Service && node.has_worked() {
                        let text = format!("member {id}'s service goes on alone");
                        self.report.violation("stuck", 1, &text);
                    }
                    self.report.end(format!("{process:?} lingered"), "");
                    node.kill(Some(process))?;
                }
            }
        }
        Ok(())
    }

    /// Reads new digests, and compares them.
    fn check(&mut self) -> Result<(), Failure> {
        let (violations, digests) = {
            let mut findings = self.shared.findings();
            (mem::take(&mut findings.violations), mem::take(&mut findings.digests))
        };
        for (name, text) in violations {
            self.report.violation(name, 1, &text);
        }
        for (position, digest) in digests {
            let added = self.digests.add(position, digest, Path::new("answers"));
            self.note_difference(added);
        }
        for member in 0..MEMBERS {
            let file = self.nodes[member].digests();
            let Ok(text) = fs::read_to_string(&file) else { continue };
            let new = text.get(self.read[member]..).unwrap_or_default();
            for line in new.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
                self.read[member] += line.len();
                let parsed = line.trim_end().split_once(' ').and_then(|(position, digest)| {
                    Some((position.parse().ok()?, u64::from_str_radix(digest, 16).ok()?))
                });
                let Some((position, digest)) = parsed else {
                    return Err(Failure::Run(format!("{}: {line:?}", file.display())));
                };
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
            self.report.violation("diverged", 1, &text);
        }
    }

    /// Checks the numbers of all requests, and completes the report.
    fn finish(&mut self, answers: &[Answers]) -> Result<(), Failure> {
        self.check()?;
        if let (false, Err((name, text))) = (self.is_broken(), check_numbers(answers)) {
            self.report.violation(name, 1, &text);
        }
        let Self { shared, nodes, report, digests, member_digests, .. } = self;
        let compared = [member_digests, digests].map(|digests| digests.compared() as u64);
        let findings = shared.findings();
        let starts = |process| nodes.iter().map(|node| u64::from(node.starts(process))).sum();
        let figures = [
            ("requests answered", findings.counts.answered),
            ("answers", findings.counts.answers),
            ("sessions", findings.counts.sessions),
            ("terms", u64::try_from(findings.term).unwrap_or(0) + 1),
            ("new leaders, by session", findings.counts.new_leaders),
            ("snapshots", findings.counts.snapshots),
            ("snapshots loaded", nodes.iter().map(Node::loaded_snapshots).sum()),
            ("starts of drivers", starts(Process::Driver)),
            ("starts of consensus modules", starts(Process::Module)),
            ("starts of services", starts(Process::Service)),
            ("digests compared of members", compared[0]),
            ("digests compared with answers", compared[1].saturating_sub(compared[0])),
        ];
        figures.into_iter().for_each(|(name, value)| report.add(name, value));
        report.elapsed = self.start.elapsed();
        Ok(())
    }
}
