//! Contenders that take turns, and the results file of a benchmark.

use std::collections::HashSet;
use std::env;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use rusteron_core::program::Failure;
use rusteron_test_support::programs::ResultsFile;

use crate::command_line::choice::Contender;
use crate::command_line::output::print_line;
use crate::command_line::run_options::RunOptions;
use crate::processes::environment::Environment;
use crate::reports::results::{Figure, Results, Row, Values};
use crate::reports::table;

/// The percentiles of round trips in nanoseconds.
pub fn percentiles(round_trips: &Histogram<u64>) -> Vec<Figure> {
    let quantiles =
        [("p50 µs", 0.5), ("p90 µs", 0.9), ("p99 µs", 0.99), ("p99.9 µs", 0.999), ("max µs", 1.0)];
    quantiles.map(|(name, quantile)| (name, micros(round_trips, quantile))).into()
}

/// A percentile of times in nanoseconds, in microseconds.
pub fn micros(times: &Histogram<u64>, quantile: f64) -> f64 {
    times.value_at_quantile(quantile) as f64 / 1e3
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

/// Makes a case of each of the conditions. Conditions with the same name make one case, and
/// contenders with the same name are one contender.
pub fn cases<K, C: Clone + fmt::Display>(
    conditions: impl IntoIterator<Item = K>,
    name: impl Fn(&K) -> String,
    contenders: &[C],
) -> Vec<Case<K, C>> {
    let mut names = HashSet::new();
    let contenders: Vec<C> = contenders
        .iter()
        .filter(|contender| names.insert(contender.to_string()))
        .cloned()
        .collect();
    let mut cases: Vec<Case<K, C>> = Vec::new();
    for conditions in conditions {
        let name = name(&conditions);
        if cases.iter().all(|case| case.name != name) {
            cases.push(Case { name, conditions, contenders: contenders.clone() });
        }
    }
    cases
}

/// All pairs of values of two options.
pub fn pairs<A: Copy, B: Copy>(first: &[A], second: &[B]) -> Vec<(A, B)> {
    first.iter().flat_map(|&a| second.iter().map(move |&b| (a, b))).collect()
}

/// A benchmark that runs.
#[derive(Debug)]
pub struct Comparison {
    name: &'static str,
    file: ResultsFile,
    /// The environment that all its runs share.
    pub environment: Arc<Environment>,
    /// The named contenders, each once. Those in Java are left out where Java is missing.
    pub contenders: Vec<Contender>,
    measures: Vec<&'static str>,
    rows: Vec<Row>,
}

impl Comparison {
    /// Opens the results file, handles signals, and looks for Java if a contender needs it. Without
    /// Java, these contenders are left out, and standard error says why.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the file cannot be written to; [`Failure::Interrupted`].
    pub fn start(
        name: &'static str,
        options: &RunOptions,
        named: &[Contender],
    ) -> Result<Self, Failure> {
        Self::open(name, options)?.with_contenders(named)
    }

    /// Does the same as [`start`](Self::start) for a benchmark that needs Java, whatever its
    /// contenders are.
    ///
    /// # Errors
    /// As for [`start`](Self::start); [`Failure::Run`] that says why Java is missing.
    pub fn start_with_java(
        name: &'static str,
        options: &RunOptions,
        named: &[Contender],
    ) -> Result<Self, Failure> {
        let comparison = Self::open(name, options)?;
        comparison.environment.java()?;
        comparison.with_contenders(named)
    }

    fn open(name: &'static str, options: &RunOptions) -> Result<Self, Failure> {
        let file = ResultsFile::open(&options.results, &format!("{name}.json"))?;
        let environment = Arc::new(Environment::new(options)?);
        let (contenders, measures, rows) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { name, file, environment, contenders, measures, rows })
    }

    fn with_contenders(mut self, named: &[Contender]) -> Result<Self, Failure> {
        let has_java = named.iter().any(|it| it.is_java()) && self.environment.has_java()?;
        for contender in named {
            if !self.contenders.contains(contender) && (has_java || !contender.is_java()) {
                self.contenders.push(*contender);
            }
        }
        Ok(self)
    }

    /// Measures all contenders of all cases in turn, again and again, and prints each run;
    /// `measure` gets the number of the run. Each round begins with another contender: streams that
    /// linger and processes that end slow the run that follows. Then prints the table, and writes
    /// the results file. An interrupt ends it with the runs so far.
    ///
    /// # Errors
    /// The failure of a run; [`Failure::Run`] if standard output or the file cannot be written to.
    pub fn compare<K, C: Copy + fmt::Display>(
        mut self,
        cases: &[Case<K, C>],
        mut measure: impl FnMut(&K, C, u32) -> Result<Vec<Figure>, Failure>,
    ) -> Result<(), Failure> {
        for case in cases {
            self.rows.extend(case.contenders.iter().map(|contender| Row {
                case: case.name.clone(),
                contender: contender.to_string(),
                measures: Default::default(),
            }));
        }
        let mut numbers = 0..;
        for round in 0..self.environment.options.runs {
            for case in cases {
                for index in in_turn(case.contenders.len(), round) {
                    let contender = case.contenders[index];
                    let number = numbers.next().unwrap_or(u32::MAX);
                    let measured = measure(&case.conditions, contender, number);
                    // Ctrl-C in a terminal also ends the processes that took part, perhaps before
                    // this process knows.
                    let grace =
                        if measured.is_err() { Duration::from_secs(1) } else { Duration::ZERO };
                    if self.environment.interrupt.wait_timeout(grace) {
                        // A run that was cut short would not be comparable with the others.
                        return self.finish();
                    }
                    let figures = measured?;
                    let words = in_words(&figures);
                    let line = format!("Run {}, {}, {contender}: {words}", round + 1, case.name);
                    self.print(line)?;
                    self.add(&case.name, &contender.to_string(), &figures);
                }
            }
        }
        self.finish()
    }

    fn print(&self, line: impl fmt::Display) -> Result<(), Failure> {
        print_line(&self.environment.interrupt, line)
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

    fn finish(mut self) -> Result<(), Failure> {
        let mut results = Results::of_this_machine(self.name, &command(env::args().skip(1)));
        if let Some(java) = self.environment.found_java() {
            results.versions += &format!(", {}", java.versions());
        }
        results.rows = std::mem::take(&mut self.rows);
        results.rows.retain(|row| !row.measures.is_empty());
        if results.rows.is_empty() {
            self.print("Nothing to compare: it ended before a run had")?;
        } else {
            self.print(table::by_measure(&results, &self.measures, ""))?;
        }
        let path = self.file.write(&results.to_json())?;
        print_line(&self.environment.interrupt, format_args!("Results: {}", path.display()))
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
    fn runs_are_told_in_words() {
        assert_eq!(
            in_words(&[("msgs/s", 1.234e7), ("p50 µs", 0.25)]),
            "12.3 M msgs/s, 0.25 p50 µs"
        );
        for (arguments, recipe) in [
            (&["x", "a b"][..], "just benchmark x 'a b'"),
            (&["headline", "--lto", "a/b", "--runs", "2"], "just benchmark-headline --runs 2"),
            (&["headline"], "just benchmark-headline"),
        ] {
            assert_eq!(command(arguments.iter().map(|it| (*it).to_owned())), recipe);
        }
    }
}
