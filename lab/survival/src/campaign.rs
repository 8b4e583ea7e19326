//! The frame of all campaigns: one loop that strikes, waits for the conditions, checks and reports.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::{Failure, on_interrupt};
use rusteron_test_support::programs::ResultsFile;
use rusteron_test_support::{Random, memory_dir, mix};
use tempfile::TempDir;

use crate::report::Report;

/// The options of all campaigns.
#[derive(Debug, Clone, Args)]
pub(crate) struct CommonOptions {
    /// How long faults are caused; start, end and the last checks take more [default: 1m, of the
    /// cluster 2m]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// How long a condition may take to come true when no fault lasts; half of it for resources to
    /// be gone [default: 1m, of the cluster 4m]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) deadline: Option<Duration>,

    /// Seed of the choice of faults [default: a random number, which is printed]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,

    /// Directory for the report, and for the output of a cluster's processes [default:
    /// target/survival, of the cluster target/cluster-survival]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
}

/// The defaults in which the campaigns differ.
pub(crate) struct Defaults {
    pub(crate) duration: Duration,
    pub(crate) deadline: Duration,
    pub(crate) results: &'static str,
    /// The name of the report's file.
    pub(crate) report: &'static str,
}

/// The state that every campaign has, whatever it strikes.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) duration: Duration,
    pub(crate) deadline: Duration,
    pub(crate) random: Random,
    pub(crate) report: Report,
    pub(crate) results: PathBuf,
    /// The directory of the parties' files, in shared memory if there is any.
    pub(crate) root: TempDir,
    json: Option<ResultsFile>,
    interrupt: ShutdownSignal,
    start: Instant,
    /// The time at which the last round ends.
    end: Instant,
}

impl Frame {
    /// Makes the frame of a campaign in which these conditions can be violated.
    pub(crate) fn new(
        options: &CommonOptions,
        defaults: &Defaults,
        conditions: &[&'static str],
        figures: &[&'static str],
    ) -> Result<Self, Failure> {
        let results = options.results.clone().unwrap_or_else(|| defaults.results.into());
        let json = ResultsFile::open(&results, defaults.report)?;
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seed = options.seed.unwrap_or(mix(clock.as_nanos() as u64) >> 32);
        let root = memory_dir("rusteron-survival-")
            .map_err(|error| Failure::run("cannot make a directory", error))?;
        Ok(Self {
            duration: options.duration.unwrap_or(defaults.duration),
            deadline: options.deadline.unwrap_or(defaults.deadline),
            random: Random::new(seed),
            report: Report::new(seed, conditions, figures),
            results,
            root,
            json: Some(json),
            interrupt: on_interrupt()?,
            start: Instant::now(),
            end: Instant::now(),
        })
    }

    /// The time until the end of the last round.
    pub(crate) fn remaining(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }

    /// Fails if the user wants an end.
    pub(crate) fn check_interrupt(&self) -> Result<(), Failure> {
        match self.interrupt.is_signalled() {
            true => Err(Failure::Interrupted),
            false => Ok(()),
        }
    }

    pub(crate) fn has_violations(&self) -> bool {
        self.report.violations() > 0
    }

    /// Tells the user how far the campaign is.
    pub(crate) fn tell(&self, text: &str) {
        let (elapsed, violations) = (self.start.elapsed().as_secs_f64(), self.report.violations());
        println!("{elapsed:6.1} s: {text}, {violations} violations");
    }
}

/// A campaign, with its parties, its strikes and its checks.
pub(crate) trait Campaign: Sized {
    /// The interval at which the supervisor looks at everything.
    const TICK: Duration;
    /// The first violation ends the campaign, because others would only follow from it.
    const ENDS_WITH_VIOLATION: bool;

    fn frame(&mut self) -> &mut Frame;

    /// Starts the parties, and waits until all is well. Returns whether it is.
    fn begin(&mut self) -> Result<bool, Failure>;

    /// Looks at the parties once: hears them, ends faults that have lasted long enough, and starts
    /// what is missing.
    fn step(&mut self) -> Result<(), Failure>;

    /// Strikes, and checks that all becomes well again. Returns whether it does; otherwise all that
    /// follows is meaningless.
    fn round(&mut self) -> Result<bool, Failure>;

    /// Checks what can be checked at the end only, and ends the parties in good order.
    fn end(&mut self) -> Result<(), Failure>;

    /// Returns whether there is an end before that of the duration.
    fn is_over(&self) -> bool {
        false
    }

    /// Completes the report, also of a campaign that has failed. Returns whether the data of the
    /// parties is kept after a violation.
    fn complete(&mut self) -> bool {
        false
    }

    /// Runs the campaign from its start to its end.
    fn run(mut self) -> Result<(), Failure> {
        let frame = self.frame();
        println!("seed {}, {:?}", frame.report.seed, frame.duration);
        let outcome = self.rounds();
        let keeps_data = self.complete();
        let frame = self.frame();
        frame.report.elapsed = frame.start.elapsed();
        if keeps_data && frame.has_violations() {
            frame.root.disable_cleanup(true);
            println!("Data of the processes: {}", frame.root.path().display());
        }
        if let Err(failure) = outcome {
            frame.report.broken_off = Some(match failure {
                Failure::Interrupted => "was interrupted after",
                _ => "failed after",
            });
            println!("{}", frame.report);
            return Err(failure);
        }
        frame.json.take().map_or(Ok(()), |json| frame.report.finish(json))
    }

    fn rounds(&mut self) -> Result<(), Failure> {
        let mut is_well = self.begin()?;
        let frame = self.frame();
        frame.end = Instant::now() + frame.duration;
        while is_well && !self.frame().remaining().is_zero() && !self.is_over() {
            self.look()?;
            is_well = self.round()?;
        }
        if is_well { self.end() } else { Ok(()) }
    }

    /// Looks at the parties, unless the user wants an end.
    fn look(&mut self) -> Result<(), Failure> {
        self.frame().check_interrupt()?;
        self.step()
    }

    /// Waits until nothing is missing. Reports what is missing at the deadline as violations of a
    /// condition.
    fn await_none(
        &mut self,
        condition: &str,
        timeout: Duration,
        mut missing: impl FnMut(&mut Self) -> Vec<String>,
    ) -> Result<bool, Failure> {
        let deadline = Instant::now() + timeout;
        loop {
            self.look()?;
            let missing = missing(self);
            if missing.is_empty() {
                return Ok(true);
            }
            if Self::ENDS_WITH_VIOLATION && self.frame().has_violations() {
                return Ok(false);
            }
            if Instant::now() >= deadline {
                for text in missing {
                    self.frame().report.violation(condition, 1, &text);
                }
                return Ok(false);
            }
            thread::sleep(Self::TICK);
        }
    }

    /// Looks at the parties for a while. Ends early with the campaign.
    fn pass(&mut self, time: Duration) -> Result<(), Failure> {
        let end = Instant::now() + time;
        while Instant::now() < end && !(Self::ENDS_WITH_VIOLATION && self.frame().has_violations())
        {
            self.look()?;
            thread::sleep(Self::TICK);
        }
        Ok(())
    }
}
