//! `rusteron stat`: the counters, as a report or as metrics.

use std::io::{self, Write};
use std::time::Instant;

use rusteron_client::CounterSnapshot;
use rusteron_core::program::Failure;
use serde::Serialize;

use crate::counter_types;
use crate::driver_dir::{DriverDir, DriverStatus};
use crate::exposition::Syntax;
use crate::metrics::Sources;
use crate::metrics_server;
use crate::options::StatOptions;
use crate::report::Report;
use crate::text;
use crate::watch;
use crate::watch::Rates;

#[derive(Debug, Serialize)]
struct Stat {
    driver: DriverStatus,
    counters: Vec<Counter>,
    #[serde(skip)]
    has_rates: bool,
}

#[derive(Debug, Serialize)]
struct Counter {
    #[serde(flatten, with = "Snapshot")]
    counter: CounterSnapshot,
    /// `None` for the types that `--type` knows by number only.
    type_name: Option<&'static str>,
    /// `None` in the first report.
    rate_per_second: Option<f64>,
}

/// The JSON of a counter, without its key.
#[derive(Serialize)]
#[serde(remote = "CounterSnapshot")]
struct Snapshot {
    id: i32,
    type_id: i32,
    value: i64,
    label: String,
    registration_id: i64,
    owner_id: i64,
    reference_id: i64,
}

pub(crate) fn run(dir: DriverDir, options: &StatOptions) -> Result<(), Failure> {
    if options.openmetrics || options.listen.is_some() {
        let sources = Sources { driver: dir, archive_dir: options.archive_dir.clone() };
        return match &options.listen {
            Some(listen) => metrics_server::run(sources, listen),
            None => {
                let (metrics, outcome) = sources.read();
                // Collectors of text files read Prometheus's format.
                io::stdout().write_all(metrics.to_text(Syntax::Prometheus).as_bytes())?;
                outcome
            }
        };
    }
    dir.open()?;
    let labels: Vec<_> = options.labels.iter().map(|text| text.to_lowercase()).collect();
    let is_selected = |counter: &CounterSnapshot| {
        let label = counter.label.to_lowercase();
        (options.types.is_empty() || options.types.contains(&counter.type_id))
            && (labels.is_empty() || labels.iter().any(|text| label.contains(text)))
    };
    let with_rate = |(counter, rate_per_second): (CounterSnapshot, _)| {
        let type_name = counter_types::name(counter.type_id);
        Counter { counter, type_name, rate_per_second }
    };
    let mut rates = Rates::default();
    watch::run(&options.watch, || {
        // Opens the file for each report: a restarted driver has another file.
        let cnc = dir.find()?;
        let now = Instant::now();
        let mut counters: Vec<_> =
            cnc.iter().flat_map(|cnc| cnc.counters().iter()).filter(is_selected).collect();
        counters.sort_by_key(|counter| counter.id);
        let values = counters.iter().map(|c| (c.id, c.registration_id, c.value));
        let rates = rates.update(now, values);
        Ok(Stat {
            driver: dir.status(cnc.as_ref()),
            counters: counters.into_iter().zip(rates).map(with_rate).collect(),
            has_rates: options.watch.watch,
        })
    })
}

impl Report for Stat {
    fn header(&self) -> Vec<String> {
        vec![self.driver.line()]
    }

    fn body(&self) -> Vec<String> {
        let line = |Counter { counter, rate_per_second, .. }: &Counter| {
            let rate = text::rate(self.has_rates, *rate_per_second);
            let (value, label) = (text::grouped(counter.value), text::printable(&counter.label));
            format!("{:>5}: {value:>26}{rate} - {label}", counter.id)
        };
        self.counters.iter().map(line).collect()
    }
}
