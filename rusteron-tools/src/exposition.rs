//! Metrics as text that Prometheus and other collectors read.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::text;

/// The syntax of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// Prometheus's text format, version 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only rises while a driver runs. The sample's name ends with `_total`.
    Counter,
    Gauge,
}

/// Names and values that tell the samples of a metric apart.
pub(crate) type Labels = Vec<(&'static str, String)>;

/// Metrics with their samples, in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Metrics(Vec<Metric>);

#[derive(Debug)]
struct Metric {
    /// Without `_total`.
    name: String,
    help: String,
    kind: Kind,
    /// Each sample's labels and value.
    samples: Vec<(String, String)>,
    /// The labels of all samples, which must differ. Any process can write counters with equal labels.
    labels: HashSet<String>,
}

impl Syntax {
    /// Returns the media type of the text.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Metrics {
    /// Adds a counter's sample. `name` is the metric's name without `_total`.
    pub(crate) fn counter(&mut self, name: &str, help: &str, labels: &Labels, value: i64) {
        self.add(name, help, Kind::Counter, labels, value);
    }

    /// Adds a gauge's sample.
    pub(crate) fn gauge(&mut self, name: &str, help: &str, labels: &Labels, value: i64) {
        self.add(name, help, Kind::Gauge, labels, value);
    }

    /// Adds a sample of either kind.
    pub(crate) fn add(&mut self, name: &str, help: &str, kind: Kind, labels: &Labels, value: i64) {
        // A rising number cannot be negative. Any client can write its own counters.
        let value = if kind == Kind::Counter { value.max(0) } else { value };
        self.add_text(name, help, kind, labels, value.to_string());
    }

    /// Adds a gauge's sample in seconds.
    pub(crate) fn seconds(&mut self, name: &str, help: &str, labels: &Labels, seconds: f64) {
        self.add_seconds(name, help, Kind::Gauge, labels, seconds);
    }

    /// Adds a sample of either kind in seconds.
    pub(crate) fn add_seconds(
        &mut self,
        name: &str,
        help: &str,
        kind: Kind,
        labels: &Labels,
        seconds: f64,
    ) {
        let seconds = if kind == Kind::Counter { seconds.max(0.0) } else { seconds };
        self.add_text(name, help, kind, labels, seconds.to_string());
    }

    /// Adds a sample, unless the metric has a sample with these labels.
    fn add_text(&mut self, name: &str, help: &str, kind: Kind, labels: &Labels, value: String) {
        let index = self.0.iter().position(|metric| metric.name == name).unwrap_or(self.0.len());
        if index == self.0.len() {
            let (name, help) = (name.to_owned(), help.to_owned());
            let (samples, labels) = (Vec::new(), HashSet::new());
            self.0.push(Metric { name, help, kind, samples, labels });
        }
        let metric = &mut self.0[index];
        let labels = written(labels);
        if metric.labels.insert(labels.clone()) {
            metric.samples.push((labels, value));
        }
    }

    pub(crate) fn to_text(&self, syntax: Syntax) -> String {
        let mut text = String::new();
        for Metric { name, help, kind, samples, .. } in &self.0 {
            let (total, kind) = match kind {
                Kind::Counter => ("_total", "counter"),
                Kind::Gauge => ("", "gauge"),
            };
            // In OpenMetrics, the suffix belongs to the sample only.
            let family = if syntax == Syntax::Prometheus { total } else { "" };
            // Writing to a string does not fail.
            let _ = writeln!(text, "# HELP {name}{family} {help}.");
            let _ = writeln!(text, "# TYPE {name}{family} {kind}");
            for (labels, value) in samples {
                let _ = writeln!(text, "{name}{total}{labels} {value}");
            }
        }
        // A comment in Prometheus's format.
        text.push_str("# EOF\n");
        text
    }
}

/// Returns the labels in braces, or nothing without labels. Empty values mean the same as no label.
fn written(labels: &Labels) -> String {
    let labels = labels.iter().filter(|(_, value)| !value.is_empty());
    let labels: Vec<_> =
        labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) }
}

/// Escapes a label's value. Control characters, line feeds included, become readable.
fn escaped(value: &str) -> String {
    text::printable(value).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(value: &str) -> Labels {
        vec![("channel", value.to_owned()), ("client_name", String::new())]
    }

    fn metrics() -> Metrics {
        let mut metrics = Metrics::default();
        metrics.counter("aeron_sent_bytes", "Bytes sent", &labels("one"), 5);
        metrics.seconds("aeron_age_seconds", "Age", &Vec::new(), 0.25);
        metrics.counter("aeron_sent_bytes", "Bytes sent", &labels("two"), -1);
        // The labels are those of another sample.
        metrics.counter("aeron_sent_bytes", "Bytes sent", &labels("one"), 6);
        metrics
    }

    #[test]
    fn samples_of_a_metric_stay_together() {
        let text = metrics().to_text(Syntax::Prometheus);
        let expected = "# HELP aeron_sent_bytes_total Bytes sent.\n\
                        # TYPE aeron_sent_bytes_total counter\n\
                        aeron_sent_bytes_total{channel=\"one\"} 5\n\
                        aeron_sent_bytes_total{channel=\"two\"} 0\n\
                        # HELP aeron_age_seconds Age.\n\
                        # TYPE aeron_age_seconds gauge\n\
                        aeron_age_seconds 0.25\n\
                        # EOF\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn openmetrics_names_family_without_suffix() {
        let text = metrics().to_text(Syntax::OpenMetrics);
        assert!(
            text.contains("# TYPE aeron_sent_bytes counter\naeron_sent_bytes_total{"),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(escaped("a\\b\"c\nd\x1b"), "a\\\\b\\\"c\\\\nd\\\\u{1b}");
    }
}
