//! The results of a campaign.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use rusteron_core::program::Failure;
use rusteron_test_support::programs::ResultsFile;
use serde_json::{Value, json};

/// Descriptions of violations beyond this number are dropped.
const DESCRIBED: usize = 300;
/// So many characters of an error are printed.
const SHOWN: usize = 120;

/// A violation that a check has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The condition that is violated.
    pub(crate) condition: &'static str,
    /// The number of its occurrences.
    pub(crate) count: u64,
    pub(crate) text: String,
}

impl Finding {
    pub(crate) fn new(condition: &'static str, text: impl Into<String>) -> Self {
        Self { condition, count: 1, text: text.into() }
    }
}

/// The result.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) elapsed: Duration,
    pub(crate) skipped_faults: Vec<String>,
    /// The reason why the campaign has not come to its end.
    pub(crate) broken_off: Option<&'static str>,
    /// Names and values, in the order of the table.
    figures: Vec<(&'static str, u64)>,
    times: BTreeMap<&'static str, Vec<Duration>>,
    /// The conditions that can be violated, and how often they were.
    violations: Vec<(&'static str, u64)>,
    descriptions: Vec<String>,
    /// Ends of processes and clients that are no violations, and refused calls: by kind, with the first text.
    ends: BTreeMap<String, (u64, String)>,
}

impl Report {
    pub(crate) fn new(seed: u64, conditions: &[&'static str], figures: &[&'static str]) -> Self {
        let zeros = |names: &[&'static str]| names.iter().map(|name| (*name, 0)).collect();
        Self {
            seed,
            elapsed: Duration::ZERO,
            skipped_faults: Vec::new(),
            broken_off: None,
            figures: zeros(figures),
            times: BTreeMap::new(),
            violations: zeros(conditions),
            descriptions: Vec::new(),
            ends: BTreeMap::new(),
        }
    }

    /// Adds to a figure, which is new in the table if it was not named before.
    pub(crate) fn add(&mut self, name: &'static str, count: u64) {
        match self.figures.iter_mut().find(|(known, _)| *known == name) {
            Some((_, value)) => *value += count,
            None => self.figures.push((name, count)),
        }
    }

    pub(crate) fn figure(&self, name: &str) -> u64 {
        self.figures.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value)
    }

    pub(crate) fn time(&mut self, name: &'static str, time: Duration) {
        self.times.entry(name).or_default().push(time);
    }

    /// Notes that a condition was violated.
    ///
    /// # Panics
    /// If there is no such condition.
    pub(crate) fn violation(&mut self, name: &str, count: u64, text: &str) {
        let known = self.violations.iter_mut().find(|(known, _)| *known == name);
        known.unwrap_or_else(|| panic!("no condition {name}")).1 += count;
        if self.descriptions.len() < DESCRIBED && !text.is_empty() {
            self.descriptions.push(format!("{name}: {}", one_line(text)));
        }
    }

    /// Counts an end or a refusal that is no violation.
    pub(crate) fn end(&mut self, kind: String, text: &str) {
        self.ends.entry(kind).or_insert_with(|| (0, one_line(text))).0 += 1;
    }

    pub(crate) fn violations(&self) -> u64 {
        self.violations.iter().map(|(_, count)| count).sum()
    }

    /// Prints the report and writes it. Fails if a condition was violated.
    pub(crate) fn finish(&self, json: ResultsFile) -> Result<(), Failure> {
        println!("{self}");
        json.write(&self.to_json())?;
        match self.violations() {
            0 => Ok(()),
            count => Err(Failure::Run(format!("{count} violations"))),
        }
    }

    /// Returns lowest, median and highest of each kind of times, in milliseconds.
    fn millis(&self) -> impl Iterator<Item = (&'static str, [u128; 3])> {
        self.times.iter().map(|(name, times)| {
            let mut millis: Vec<_> = times.iter().map(Duration::as_millis).collect();
            millis.sort_unstable();
            (*name, [millis[0], millis[millis.len() / 2], millis[millis.len() - 1]])
        })
    }

    fn to_json(&self) -> Value {
        let map = |rows: &[(&'static str, u64)]| rows.iter().copied().collect::<BTreeMap<_, _>>();
        json!({
            "seed": self.seed,
            "seconds": self.elapsed.as_secs_f64(),
            "skippedFaults": self.skipped_faults,
            "figures": map(&self.figures),
            "millis": self.millis().collect::<BTreeMap<_, _>>(),
            "violations": map(&self.violations),
            "descriptions": self.descriptions,
            "ends": self.ends,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.figures.iter().chain(&self.violations) {
            writeln!(f, "  {name:<34}{count:>12}")?;
        }
        for (name, [least, median, most]) in self.millis() {
            writeln!(f, "  {name}: {least}, {median}, {most} ms (lowest, median, highest)")?;
        }
        for (kind, (count, text)) in &self.ends {
            let text: String = text.chars().take(SHOWN).collect();
            writeln!(f, "  {count} x {kind}, such as: {text}")?;
        }
        for text in self.skipped_faults.iter().chain(&self.descriptions) {
            writeln!(f, "  {text}")?;
        }
        let verdict = match (self.broken_off, self.violations()) {
            (Some(verdict), _) => verdict,
            (None, 0) => "survived",
            (None, _) => "did not survive",
        };
        write!(f, "{verdict} {:.1} s with seed {}", self.elapsed.as_secs_f64(), self.seed)
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_violation_counts_and_is_shown() {
        for name in ["lost", "leaked"] {
            let mut report = Report::new(1, &["lost", "leaked"], &["messages"]);
            assert!(report.to_string().contains("\nsurvived"));
            report.violation(name, 2, "why");
            assert_eq!(
                (report.violations(), &report.to_json()["violations"][name]),
                (2, &json!(2))
            );
            let text = report.to_string();
            assert!(text.contains(&format!("{name}: why")) && text.contains("did not survive"));
        }
    }

    #[test]
    fn what_was_broken_off_did_not_survive() {
        let mut report = Report::new(1, &[], &[]);
        report.skipped_faults.push("full-disk: skipped".to_owned());
        report.broken_off = Some("was interrupted after");
        let text = report.to_string();
        assert_eq!(text, "  full-disk: skipped\nwas interrupted after 0.0 s with seed 1");
    }

    #[test]
    fn ends_are_counted_by_kind() {
        let mut report = Report::new(1, &[], &[]);
        report.end("ClientTimeout".to_owned(), "timed\n  out");
        report.end("ClientTimeout".to_owned(), "");
        assert_eq!(report.ends["ClientTimeout"], (2, "timed out".to_owned()));
    }

    #[test]
    fn figures_and_times_are_in_the_table() {
        let mut report = Report::new(1, &[], &["messages"]);
        report.add("messages", 3);
        report.add("sessions", 1);
        [7, 5, 6]
            .into_iter()
            .for_each(|millis| report.time("to an answer", Duration::from_millis(millis)));
        assert_eq!((report.figure("messages"), report.figure("sessions")), (3, 1));
        assert_eq!(report.to_json()["millis"]["to an answer"], json!([5, 6, 7]));
    }
}
