//! Cases of the programs that measure round trips through a cluster.

use std::fmt;

use serde_json::{Value, json};

use crate::command_line::run_options;
use crate::contenders::cluster::Outcome;
use crate::contenders::latency::Transport;
use crate::measuring::statistics::Statistics;
use crate::programs::latency::PERCENTILES;
use crate::reports::comparison;
use crate::reports::latencies::micros;

/// All runs of a contender under the same conditions.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) name: String,
    pub(super) runs: Vec<Outcome>,
}

impl Contender {
    pub(super) fn new(name: impl fmt::Display) -> Self {
        Self { name: name.to_string(), runs: Vec::new() }
    }

    /// The statistics of a percentile over the runs, in microseconds; `None` if there are none.
    fn percentile(&self, quantile: f64) -> Option<Statistics> {
        let value = |run: &Outcome| micros(run.round_trips.value_at_quantile(quantile));
        Statistics::new(self.runs.iter().map(value))
    }

    fn to_json(&self) -> Value {
        let object = |value: &dyn Fn(f64) -> Value| {
            let values = PERCENTILES.map(|(name, quantile)| (name.to_owned(), value(quantile)));
            Value::Object(values.into_iter().collect())
        };
        let run = |run: &Outcome| {
            json!({
                "rate": run.rate,
                "count": run.round_trips.len(),
                "micros": object(&|quantile| json!(micros(run.round_trips.value_at_quantile(quantile)))),
            })
        };
        json!({
            "name": self.name,
            "micros": object(&|quantile| json!(self.percentile(quantile).map(|it| it.to_json()))),
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
        })
    }
}

/// Contenders that were measured under the same conditions.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) transport: Transport,
    pub(super) window: u64,
    pub(super) contenders: Vec<Contender>,
}

impl Case {
    /// Prepares the cases of some transports and windows.
    pub(super) fn all(
        transports: &[Transport],
        windows: &[u64],
        contenders: &[impl fmt::Display],
    ) -> Vec<Self> {
        let windows = run_options::distinct(windows);
        let contenders = || contenders.iter().map(Contender::new).collect();
        run_options::distinct(transports)
            .into_iter()
            .flat_map(|transport| windows.iter().map(move |&window| (transport, window)))
            .map(|(transport, window)| Self { transport, window, contenders: contenders() })
            .collect()
    }

    pub(super) fn name(&self) -> String {
        format!("{}, window {}", self.transport.name(), self.window)
    }

    pub(super) fn rates(&self) -> comparison::Case {
        let names = self.contenders.iter().map(|contender| contender.name.clone());
        let mut case = comparison::Case::new(self.name(), names);
        for (rates, contender) in case.contenders.iter_mut().zip(&self.contenders) {
            rates.runs = contender.runs.iter().map(|run| vec![run.rate]).collect();
        }
        case
    }

    /// The lines of a table of round trips.
    pub(super) fn table(&self) -> Vec<String> {
        let row = |what: &str, values: [String; PERCENTILES.len()]| {
            format!("  {what:<28}{}", values.map(|value| format!("{value:>10}")).join(" "))
        };
        let mut lines = vec![
            format!("{}, microseconds: medians of the runs' percentiles", self.name()),
            row("contender", PERCENTILES.map(|(name, _)| name.to_owned())),
        ];
        let medians = |contender: &Contender| {
            PERCENTILES.map(|(_, quantile)| contender.percentile(quantile).map(|it| it.median()))
        };
        let first = self.contenders.first().map(medians);
        for (index, contender) in self.contenders.iter().enumerate() {
            let own = medians(contender);
            let text = |value: Option<f64>| value.map_or_else(String::new, |it| format!("{it:.1}"));
            lines.push(row(&contender.name, own.map(text)));
            if let (1.., Some(first)) = (index, first) {
                let mut ratios = [const { String::new() }; PERCENTILES.len()];
                for (ratio, (first, own)) in ratios.iter_mut().zip(first.iter().zip(own)) {
                    *ratio =
                        first.zip(own).map_or_else(String::new, |(a, b)| format!("{:.3}", a / b));
                }
                lines.push(row("    first / it", ratios));
            }
        }
        lines
    }

    pub(super) fn to_json(&self) -> Value {
        let contenders = self.contenders.iter().map(Contender::to_json);
        json!({
            "name": self.name(),
            "rates": self.rates().to_json(),
            "contenders": contenders.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contenders::ping_pong;

    #[test]
    fn tables_compare_with_the_first_contender() {
        let contender = |name: &str, rate, micros: u64| {
            let mut round_trips = ping_pong::histogram().expect("a histogram");
            round_trips.saturating_record_n(micros * 1000, 100);
            Contender { name: name.to_owned(), runs: vec![Outcome { round_trips, rate }] }
        };
        let contenders = vec![contender("Rust", 3e4, 20), contender("Java", 2e4, 40)];
        let case = Case { transport: Transport::Udp, window: 1, contenders };
        let lines = case.table();
        assert!(lines[0].starts_with("udp, window 1"), "{lines:#?}");
        assert_eq!(lines[2].split_whitespace().take(2).collect::<Vec<_>>(), ["Rust", "20.0"]);
        assert!(lines[4].contains(" 0.500"), "{lines:#?}");
        let rates = comparison::table(&[case.rates()], "msgs/sec");
        assert!(rates[2].contains(" 1.500 "), "{rates:#?}");
    }
}
