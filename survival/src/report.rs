//! The results of the campaign.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

/// The faults that were caused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Caused {
    pub(crate) kills_of_clients: u64,
    pub(crate) kills_of_drivers: u64,
    pub(crate) takeovers_of_drivers: u64,
    pub(crate) forks: u64,
    pub(crate) forgers: u64,
    pub(crate) short_pauses: u64,
    pub(crate) pauses_past_liveness: u64,
    pub(crate) pauses_past_reuse: u64,
    pub(crate) pauses_of_drivers: u64,
    pub(crate) full_disks: u64,
    pub(crate) exhausted_descriptors: u64,
}

impl Caused {
    fn rows(&self) -> [(&'static str, u64); 11] {
        [
            ("kills of clients", self.kills_of_clients),
            ("kills of drivers", self.kills_of_drivers),
            ("takeovers of drivers", self.takeovers_of_drivers),
            ("forks", self.forks),
            ("forgers of metadata", self.forgers),
            ("short pauses of clients", self.short_pauses),
            ("pauses past liveness", self.pauses_past_liveness),
            ("pauses past counter reuse", self.pauses_past_reuse),
            ("pauses of drivers", self.pauses_of_drivers),
            ("full file systems", self.full_disks),
            ("exhausted descriptors", self.exhausted_descriptors),
        ]
    }
}

/// The forbidden faults. The names are those of the report, and of the notices in which parts report them.
pub(crate) const FAULTS: [&str; 9] = [
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

/// Descriptions of faults beyond this number are dropped.
const DESCRIBED: usize = 300;
/// So many characters of an error are printed.
const SHOWN: usize = 120;

/// The result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) elapsed: Duration,
    pub(crate) skipped_faults: Vec<String>,
    pub(crate) caused: Caused,
    pub(crate) checkpoints: u64,
    pub(crate) processes: u64,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    /// Messages that a subscriber did not see because the driver had given it up.
    pub(crate) skipped: u64,
    /// From the kill of a driver to the first message with the driver that has taken over its directory.
    pub(crate) resumptions: Vec<Duration>,
    faults: BTreeMap<String, u64>,
    descriptions: Vec<String>,
    /// Ends of clients and refused calls, by the kind of the error.
    pub(crate) errors: BTreeMap<String, Errors>,
}

/// Errors of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Errors {
    count: u64,
    /// The text of the first.
    text: String,
}

impl Report {
    pub(crate) fn fault(&mut self, name: &str, count: u64, text: &str) {
        *self.faults.entry(name.to_owned()).or_default() += count;
        if self.descriptions.len() < DESCRIBED && !text.is_empty() {
            self.descriptions.push(format!("{name}: {text}"));
        }
    }

    /// Counts an error that is no fault. The text begins with its kind.
    pub(crate) fn error(&mut self, word: &str, text: &str) {
        let (kind, text) = text.split_once(' ').unwrap_or((text, ""));
        let first = || Errors { count: 0, text: text.to_owned() };
        self.errors.entry(format!("{word} {kind}")).or_insert_with(first).count += 1;
    }

    /// How often something happened that must not be.
    pub(crate) fn faults(&self) -> u64 {
        self.faults.values().sum()
    }

    fn count(&self, name: &str) -> u64 {
        self.faults.get(name).copied().unwrap_or(0)
    }

    /// Returns lowest, median and highest.
    fn resumption_millis(&self) -> Option<[u128; 3]> {
        let mut millis: Vec<_> = self.resumptions.iter().map(Duration::as_millis).collect();
        millis.sort_unstable();
        let median = *millis.get(millis.len() / 2)?;
        Some([*millis.first()?, median, *millis.last()?])
    }

    pub(crate) fn to_json(&self) -> Value {
        let caused: BTreeMap<_, _> = self.caused.rows().into_iter().collect();
        let faults: BTreeMap<_, _> = FAULTS.map(|name| (name, self.count(name))).into();
        let errors: BTreeMap<_, _> = self
            .errors
            .iter()
            .map(|(kind, errors)| (kind, json!({"count": errors.count, "first": errors.text})))
            .collect();
        json!({
            "seed": self.seed,
            "seconds": self.elapsed.as_secs_f64(),
            "skippedFaults": self.skipped_faults,
            "caused": caused,
            "checkpoints": self.checkpoints,
            "processes": self.processes,
            "sent": self.sent,
            "received": self.received,
            "skippedAfterTimeout": self.skipped,
            "resumptionsMillis": self.resumption_millis(),
            "faults": faults,
            "descriptions": self.descriptions,
            "errors": errors,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, count: u64| writeln!(f, "  {name:<30}{count:>12}");
        for (name, count) in self.caused.rows() {
            row(name, count)?;
        }
        row("processes started", self.processes)?;
        row("checkpoints passed", self.checkpoints)?;
        row("messages sent", self.sent)?;
        row("messages received", self.received)?;
        row("skipped after a timeout", self.skipped)?;
        for name in FAULTS {
            row(name, self.count(name))?;
        }
        if let Some([least, median, most]) = self.resumption_millis() {
            let count = self.resumptions.len();
            writeln!(
                f,
                "  {count} takeovers, ms to the first message: {least}, {median}, {most} (lowest, median, highest)"
            )?;
        }
        for (kind, Errors { count, text }) in &self.errors {
            let text: String = text.chars().take(SHOWN).collect();
            writeln!(f, "  {count} x {kind}, such as: {text}")?;
        }
        for description in &self.descriptions {
            writeln!(f, "  {description}")?;
        }
        let verdict = if self.faults() == 0 { "survived" } else { "did not survive" };
        write!(f, "{verdict} {:.1} s with seed {}", self.elapsed.as_secs_f64(), self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_fault_counts_and_is_shown() {
        for name in FAULTS {
            let mut report = Report::default();
            assert!(report.to_string().contains("\nsurvived"));
            report.fault(name, 2, "why");
            assert_eq!(report.faults(), 2);
            assert_eq!(report.to_json()["faults"][name], 2);
            let text = report.to_string();
            assert!(text.contains(&format!("{name}: why")) && text.contains("did not survive"));
        }
    }

    #[test]
    fn errors_are_counted_by_kind() {
        let mut report = Report::default();
        report.error("ended", "ClientTimeout timed out");
        report.error("ended", "ClientTimeout");
        assert_eq!(report.errors["ended ClientTimeout"].count, 2);
    }
}
