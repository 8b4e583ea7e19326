//! Contenders that take turns, and the results file of a benchmark.

use std::env;
use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::{Failure, on_interrupt};
use rusteron_test_support::programs::ResultsFile;

use crate::command_line::output::print_line;
use crate::command_line::run_options::RunOptions;
use crate::processes::java::Java;
use crate::reports::host;
use crate::reports::results::{Figure, Results, Row, Values};
use crate::reports::table;

/// The percentiles of round trips in nanoseconds.
pub fn percentiles(round_trips: &Histogram<u64>) -> Vec<Figure> {
    let quantiles =
        [("p50 µs", 0.5), ("p90 µs", 0.9), ("p99 µs", 0.99), ("p99.9 µs", 0.999), ("max µs", 1.0)];
    quantiles.map(|(name, it)| (name, round_trips.value_at_quantile(it) as f64 / 1e3)).into()
}

/// Conditions, and the contenders that are measured under them.
#[derive(Debug, Clone)]
pub struct Case<K, C> {
    /// The name in tables: `exclusive, 32 B`.
    pub name: String,
    /// The conditions.
    pub conditions: K,
    /// The contenders; ratios are of the first to the others.
    pub contenders: Vec<C>,
}

/// A benchmark that runs.
#[derive(Debug)]
pub struct Comparison {
    name: &'static str,
    options: RunOptions,
    interrupt: ShutdownSignal,
    file: ResultsFile,
    java: Option<Java>,
    measures: Vec<&'static str>,
    rows: Vec<Row>,
}

impl Comparison {
    /// Opens the results file, and handles signals.
    ///
    /// # Errors
    /// [`Failure::Usage`] if an option cannot be used, or the file cannot be written to.
    pub fn start(name: &'static str, options: &RunOptions) -> Result<Self, Failure> {
        options.check()?;
        let file = ResultsFile::open(&options.results, &format!("{name}.json"))?;
        Ok(Self {
            name,
            options: options.clone(),
            file,
            interrupt: on_interrupt()?,
            java: None,
            measures: Vec::new(),
            rows: Vec::new(),
        })
    }

    /// Ends a run early.
    pub fn interrupt(&self) -> ShutdownSignal {
        self.interrupt.clone()
    }

    /// Looks for Java if one of the contenders needs it. Without it these contenders are left out, and standard error
    /// says why.
    pub fn java_for<T>(
        &mut self,
        contenders: &mut Vec<T>,
        needs_java: impl Fn(&T) -> bool,
    ) -> Option<Java> {
        let java = self.find_java(contenders.iter().any(&needs_java));
        if java.is_none() {
            contenders.retain(|contender| !needs_java(contender));
        }
        java
    }

    /// Looks for Java if it is needed. Standard error says why it is not there.
    pub fn find_java(&mut self, is_needed: bool) -> Option<Java> {
        if is_needed {
            self.java = Java::find_or_warn(&self.options.java_option, &self.interrupt);
        }
        self.java.clone()
    }

    /// Looks for Java, without which there is nothing to measure.
    ///
    /// # Errors
    /// [`Failure::Run`] with the reason.
    pub fn require_java(&mut self) -> Result<Java, Failure> {
        let java = Java::find(&self.options.java_option, &self.interrupt)
            .map_err(|reason| Failure::run("this benchmark needs Java", reason))?;
        self.java = Some(java.clone());
        Ok(java)
    }

    /// Measures all contenders of all cases in turn, again and again, and prints each run. Each round begins with another
    /// contender: streams that linger and processes that end slow the run that follows. An interrupt ends it with the
    /// runs so far.
    ///
    /// # Errors
    /// The failure of a run; [`Failure::Run`] if standard output cannot be written to.
    pub fn compare<K, C: Copy + fmt::Display>(
        &mut self,
        cases: &[Case<K, C>],
        mut measure: impl FnMut(&K, C) -> Result<Vec<Figure>, Failure>,
    ) -> Result<(), Failure> {
        let interrupt = self.interrupt();
        for case in cases {
            self.rows.extend(case.contenders.iter().map(|contender| Row {
                case: case.name.clone(),
                contender: contender.to_string(),
                measures: Default::default(),
            }));
        }
        for round in 0..self.options.runs {
            for case in cases {
                for index in in_turn(case.contenders.len(), round) {
                    let contender = case.contenders[index];
                    let measured = measure(&case.conditions, contender);
                    // Ctrl-C in a terminal also ends the processes that took part, perhaps before this process knows.
                    let grace =
                        if measured.is_err() { Duration::from_secs(1) } else { Duration::ZERO };
                    if interrupt.wait_timeout(grace) {
                        // A run that was cut short would not be comparable with the others.
                        return Ok(());
                    }
                    let figures = measured?;
                    print_line(
                        &interrupt,
                        format_args!(
                            "Run {}, {}, {contender}: {}",
                            round + 1,
                            case.name,
                            in_words(&figures)
                        ),
                    )?;
                    self.add(&case.name, &contender.to_string(), &figures);
                }
            }
        }
        Ok(())
    }

    /// Adds the figures of a run.
    fn add(&mut self, case: &str, contender: &str, figures: &[Figure]) {
        let mut rows = self.rows.iter_mut();
        let Some(row) = rows.find(|row| row.case == case && row.contender == contender) else {
            return;
        };
        for (measure, value) in figures {
            if !self.measures.contains(measure) {
                self.measures.push(measure);
            }
            let values = row.measures.entry((*measure).to_owned());
            if let Values::Runs(runs) = values.or_insert_with(|| Values::Runs(Vec::new())) {
                runs.push(*value);
            }
        }
    }

    /// Prints the table, and writes the results file.
    ///
    /// # Errors
    /// [`Failure::Run`] if either cannot be written.
    pub fn finish(self) -> Result<(), Failure> {
        let versions = match &self.java {
            Some(java) => format!("{}, {}", host::versions_in_words(), java.versions()),
            None => host::versions_in_words(),
        };
        let interrupt = self.interrupt();
        let results = Results {
            benchmark: self.name.to_owned(),
            command: command(env::args().skip(1)),
            date: host::today(),
            machine: host::machine(),
            versions,
            rows: self.rows.into_iter().filter(|row| !row.measures.is_empty()).collect(),
        };
        if results.rows.is_empty() {
            print_line(&interrupt, "Nothing to compare: it ended before a run had")?;
        } else {
            print_line(&interrupt, table::by_measure(&results, &self.measures, ""))?;
        }
        let path = self.file.write(&results.to_json())?;
        print_line(&interrupt, format_args!("Results: {}", path.display()))
    }
}

/// The order of contenders in a round.
fn in_turn(contenders: usize, round: u32) -> impl Iterator<Item = usize> {
    (0..contenders).map(move |index| (index + round as usize) % contenders)
}

fn in_words(figures: &[Figure]) -> String {
    let words = figures.iter().map(|(measure, value)| match value {
        1e6.. => format!("{} M {measure}", table::short(value / 1e6)),
        _ => format!("{} {measure}", table::short(*value)),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The recipe that runs the program with some arguments.
fn command(arguments: impl Iterator<Item = String>) -> String {
    let quoted = |text: String| if text.contains(' ') { format!("'{text}'") } else { text };
    let mut words = vec!["just benchmark".to_owned()];
    words.extend(arguments.map(quoted));
    // This comparison has a recipe, which builds the program of `--lto`.
    if words.get(1).is_some_and(|name| name == "headline") {
        words.splice(..2, ["just benchmark-headline".to_owned()]);
        if let Some(lto) = words.iter().position(|word| word == "--lto") {
            words.drain(lto..words.len().min(lto + 2));
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contender_is_the_first_of_a_round() {
        let rounds: Vec<Vec<usize>> = (0..4).map(|round| in_turn(3, round).collect()).collect();
        assert_eq!(rounds, [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 1, 2]]);
        assert_eq!(in_turn(0, 3).count(), 0);
    }

    #[test]
    fn runs_are_told_in_words() {
        assert_eq!(
            in_words(&[("msgs/s", 1.234e7), ("p50 µs", 0.25)]),
            "12.3 M msgs/s, 0.25 p50 µs"
        );
        let arguments = ["x", "a b"].map(str::to_owned);
        assert_eq!(command(arguments.into_iter()), "just benchmark x 'a b'");
        let arguments = ["headline", "--lto", "a/benchmark", "--runs", "2"].map(str::to_owned);
        assert_eq!(command(arguments.into_iter()), "just benchmark-headline --runs 2");
        assert_eq!(command(["headline".to_owned()].into_iter()), "just benchmark-headline");
    }
}
