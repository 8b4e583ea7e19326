//! The results of the campaign on a cluster.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::faults::ClusterFault;

/// The conditions that can be violated.
const VIOLATIONS: [&str; 7] =
    ["diverged", "lost", "repeated", "corrupted", "stalled", "stuck", "crashed"];

/// Descriptions of violations beyond this number are dropped.
const DESCRIBED: usize = 100;

/// The result.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) elapsed: Duration,
    pub(super) caused: BTreeMap<ClusterFault, u64>,
    /// Numbers for people, by name, in the order in which they were set.
    pub(super) figures: Vec<(&'static str, u64)>,
    /// The time from each fault until the cluster has answered new requests, and until the members were back.
    pub(super) answered_after: Vec<Duration>,
    pub(super) recovered_after: Vec<Duration>,
    /// Ends of processes that no fault of this campaign has killed, by process and last words.
    pub(super) ends: BTreeMap<String, u64>,
    violations: BTreeMap<&'static str, u64>,
    descriptions: Vec<String>,
}

impl Report {
    pub(super) fn violation(&mut self, name: &'static str, text: String) {
        *self.violations.entry(name).or_default() += 1;
        if self.descriptions.len() < DESCRIBED {
            self.descriptions.push(format!("{name}: {text}"));
        }
    }

    pub(super) fn violations(&self) -> u64 {
        self.violations.values().sum()
    }

    fn count(&self, name: &str) -> u64 {
        self.violations.get(name).copied().unwrap_or(0)
    }

    /// The rows of the table that are no violations.
    fn rows(&self) -> Vec<(String, String)> {
        let caused = ClusterFault::ALL.map(|fault| {
            let count = self.caused.get(&fault).copied().unwrap_or(0);
            (fault.name().to_owned(), count.to_string())
        });
        let figures =
            self.figures.iter().map(|(name, count)| ((*name).to_owned(), count.to_string()));
        let times = [
            ("answers after a fault", &self.answered_after),
            ("all members after a fault", &self.recovered_after),
        ];
        let times = times.into_iter().map(|(name, times)| {
            let mut times = times.clone();
            times.sort();
            let seconds = |time: Option<&Duration>| time.map_or(0.0, Duration::as_secs_f64);
            let (median, most) = (seconds(times.get(times.len() / 2)), seconds(times.last()));
            (name.to_owned(), format!("median {median:.1} s, longest {most:.1} s"))
        });
        caused.into_iter().chain(figures).chain(times).collect()
    }

    pub(super) fn to_json(&self) -> Value {
        let rows: BTreeMap<_, _> = self.rows().into_iter().collect();
        let violations: BTreeMap<_, _> = VIOLATIONS.map(|name| (name, self.count(name))).into();
        json!({
            "seed": self.seed,
            "seconds": self.elapsed.as_secs_f64(),
            "figures": rows,
            "violations": violations,
            "ends": self.ends,
            "descriptions": self.descriptions,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.rows() {
            writeln!(f, "  {name:<30}{value:>12}")?;
        }
        for name in VIOLATIONS {
            writeln!(f, "  {name:<30}{:>12}", self.count(name))?;
        }
        for (text, count) in &self.ends {
            writeln!(f, "  {count} x {text}")?;
        }
        for description in &self.descriptions {
            writeln!(f, "  {description}")?;
        }
        let verdict = if self.violations() == 0 { "survived" } else { "did not survive" };
        write!(f, "{verdict} {:.1} s with seed {}", self.elapsed.as_secs_f64(), self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_violation_counts_and_is_shown() {
        for name in VIOLATIONS {
            let mut report = Report::default();
            assert!(report.to_string().contains("\nsurvived"));
            report.violation(name, "why".to_owned());
            assert_eq!(
                (report.violations(), &report.to_json()["violations"][name]),
                (1, &json!(1))
            );
            let text = report.to_string();
            assert!(text.contains(&format!("{name}: why")) && text.contains("did not survive"));
        }
    }
}
