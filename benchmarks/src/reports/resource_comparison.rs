//! The resources that drivers use, and their comparison.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use crate::command_line::failure::Failure;
use crate::command_line::number::Grouped;
use crate::measuring::statistics::Statistics;
use crate::processes::driver_process::{Host, Settings};
use crate::processes::process_usage::Usage;
use crate::reports::chart::{Bar, BarChart, Heading, PercentileChart};
use crate::reports::latencies::{distribution, micros};
use crate::reports::results::Results;

/// The percentiles of round trips that are compared.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)];

/// One run of a driver.
#[derive(Debug, Clone)]
pub struct Run {
    /// From the start of its process until clients could connect.
    pub start_up: Duration,
    /// From the request to end until its process had ended.
    pub shutdown: Duration,
    /// Without clients.
    pub idle: Usage,
    /// With messages at a fixed rate.
    pub paced: Usage,
    /// With as many messages as go.
    pub full: Usage,
    /// Of the messages at the fixed rate, in nanoseconds.
    pub round_trips: Histogram<u64>,
    /// As many as went: the median of the slices.
    pub messages_per_second: f64,
}

/// One number of a run.
#[derive(Debug, Clone, PartialEq)]
struct Figure {
    /// In reports.
    key: String,
    /// In tables, with the unit.
    label: String,
    value: f64,
}

impl Run {
    /// All numbers, in the same order for each run.
    fn figures(&self) -> Vec<Figure> {
        let figure = |key: &str, label: &str, value: f64| Figure {
            key: key.to_owned(),
            label: label.to_owned(),
            value,
        };
        let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
        let mut figures = vec![
            figure("start_up_millis", "start-up, ms", millis(self.start_up)),
            figure("shutdown_millis", "shutdown, ms", millis(self.shutdown)),
        ];
        for (phase, usage) in self.phases() {
            let mut add = |key: &str, label: &str, value| {
                figures.push(figure(
                    &format!("{phase}_{key}"),
                    &format!("{phase}: {label}"),
                    value,
                ));
            };
            add("cpu_percent_mean", "CPU %, mean", usage.cpu_mean);
            add("cpu_percent_peak", "CPU %, peak", usage.cpu_peak);
            add("resident_mib_mean", "resident MiB, mean", mebibytes(usage.resident_mean));
            add("resident_mib_peak", "resident MiB, peak", mebibytes(usage.resident_peak));
            add("shared_mib_mean", "of these shared, mean", mebibytes(usage.shared_mean));
            let private = usage.resident_mean - usage.shared_mean;
            add("private_mib_mean", "of these private, mean", mebibytes(private));
            add("threads", "threads", usage.threads as f64);
        }
        for (name, quantile) in PERCENTILES {
            let latency = micros(self.round_trips.value_at_quantile(quantile));
            let label = format!("paced: round trip us, {name}");
            figures.push(figure(&format!("round_trip_micros_{name}"), &label, latency));
        }
        figures.push(figure("messages_per_second", "full: msgs/sec", self.messages_per_second));
        figures
    }

    fn phases(&self) -> [(&'static str, &Usage); 3] {
        [("idle", &self.idle), ("paced", &self.paced), ("full", &self.full)]
    }

    /// The run in a line.
    pub fn summary(&self) -> String {
        let phases = self.phases().map(|(phase, usage)| {
            let (cpu, resident) = (usage.cpu_mean, mebibytes(usage.resident_mean));
            format!("{phase} {cpu:.1} % CPU {resident:.1} MiB")
        });
        format!(
            "{}, round trip p50 {:.2} us, {} msgs/sec",
            phases.join(", "),
            micros(self.round_trips.value_at_quantile(0.5)),
            Grouped::rounded(self.messages_per_second)
        )
    }
}

/// The runs of one driver with the same settings.
#[derive(Debug, Clone)]
pub struct Contender {
    /// The program that the driver is a part of.
    pub host: Host,
    /// Its runs.
    pub runs: Vec<Run>,
}

impl Contender {
    /// The statistics of the figure at an index over the runs; `None` if there are none.
    fn statistics(&self, index: usize) -> Option<Statistics> {
        let figures = self.runs.iter().filter_map(|run| run.figures().into_iter().nth(index));
        Statistics::new(figures.map(|figure| figure.value))
    }

    fn bar(&self, value: impl Fn(&Run) -> f64) -> Option<Bar> {
        Statistics::new(self.runs.iter().map(value)).map(|statistics| Bar {
            lower_quartile: statistics.lower_quartile(),
            median: statistics.median(),
            upper_quartile: statistics.upper_quartile(),
        })
    }

    /// The round trips of all runs; `None` if there are none.
    fn round_trips(&self) -> Option<Histogram<u64>> {
        let mut runs = self.runs.iter().map(|run| &run.round_trips);
        let mut sum = runs.next()?.clone();
        // The bounds are the same, so that every latency fits.
        runs.try_for_each(|run| sum.add(run)).ok()?;
        (!sum.is_empty()).then_some(sum)
    }
}

/// Drivers with the same settings.
#[derive(Debug, Clone)]
pub struct Case {
    /// The settings of the drivers.
    pub settings: Settings,
    /// The drivers; ratios are of the others to the first.
    pub contenders: Vec<Contender>,
}

impl Case {
    /// Drivers without runs.
    pub fn new(settings: Settings, hosts: &[Host]) -> Self {
        let contenders = hosts.iter().map(|host| Contender { host: *host, runs: Vec::new() });
        Self { settings, contenders: contenders.collect() }
    }

    /// How many times as much as the first contender's a figure of another is.
    fn ratio(&self, contender: &Contender, index: usize) -> Option<f64> {
        let first = self.contenders.first()?.statistics(index)?.median();
        let ratio = contender.statistics(index)?.median() / first;
        ratio.is_finite().then_some(ratio)
    }

    /// The lines of a table of all figures.
    pub fn table(&self) -> Vec<String> {
        const CELL: usize = 34;
        let row = |label: &str, cells: &[String]| {
            let cells: String = cells.iter().map(|cell| format!(" {cell:>CELL$}")).collect();
            format!("  {label:<30}{cells}").trim_end().to_owned()
        };
        let title = format!("Driver {}: medians and quartiles of the runs", self.settings);
        let Some(run) = self.contenders.iter().flat_map(|contender| &contender.runs).next() else {
            return vec![title, "  Nothing to compare: it ended before a run had".to_owned()];
        };
        let others = || self.contenders.iter().skip(1);
        let names = self.contenders.iter().map(|contender| contender.host.to_string());
        let ratios =
            others().map(|contender| format!("{} / {}", contender.host, self.contenders[0].host));
        let mut lines = vec![title, row("", &names.chain(ratios).collect::<Vec<_>>())];
        for (index, figure) in run.figures().iter().enumerate() {
            let cell = |contender: &Contender| {
                contender.statistics(index).map_or_else(String::new, |statistics| {
                    let [lower, median, upper] = [
                        statistics.lower_quartile(),
                        statistics.median(),
                        statistics.upper_quartile(),
                    ]
                    .map(display);
                    format!("{median} ({lower} to {upper})")
                })
            };
            let ratio = |contender| {
                self.ratio(contender, index).map_or_else(String::new, |ratio| format!("{ratio:.2}"))
            };
            let cells: Vec<_> =
                self.contenders.iter().map(cell).chain(others().map(ratio)).collect();
            lines.push(row(&figure.label, &cells));
        }
        lines
    }

    /// The case as an object.
    pub fn to_json(&self) -> Value {
        let contender = |contender: &Contender| {
            let mut figures = Map::new();
            for (index, figure) in
                contender.runs.first().map(Run::figures).unwrap_or_default().into_iter().enumerate()
            {
                let mut object = contender
                    .statistics(index)
                    .map_or(Value::Null, |statistics| statistics.to_json());
                object["ratio_of_this_to_first"] = json!(self.ratio(contender, index));
                figures.insert(figure.key, object);
            }
            let run = |run: &Run| {
                let figures = run.figures().into_iter();
                figures.map(|figure| (figure.key, json!(figure.value))).collect::<Map<_, _>>()
            };
            json!({
                "name": contender.host.to_string(),
                "figures": figures,
                "runs": contender.runs.iter().map(run).collect::<Vec<_>>(),
                "round_trip_distribution": contender.round_trips().map(|sum| distribution(&sum)),
            })
        };
        let mut case = json!({
            "name": self.settings.to_string(),
            "contenders": self.contenders.iter().map(contender).collect::<Vec<_>>(),
        });
        match self.settings {
            Settings::Threads(threading, idle) => {
                case["threading_mode"] = json!(threading.name());
                case["driver_idle"] = json!(idle.name());
            }
            Settings::Preset(preset) => case["preset"] = json!(preset.name()),
        }
        case
    }
}

fn mebibytes(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

/// A number with as many digits as are of use.
fn display(value: f64) -> String {
    if value >= 1e3 { Grouped::rounded(value).to_string() } else { format!("{value:.1}") }
}

/// A bar of a chart: which phase or moment it shows, and how high it is in a run.
type Series = (&'static str, fn(&Run) -> f64);

/// Writes the charts: processor, memory, times, throughput, round trips.
///
/// # Errors
/// If one cannot be written.
pub fn write_charts(
    cases: &[Case],
    hosts: &[Host],
    notes: &[String],
    results: &Results,
) -> Result<(), Failure> {
    let bars = |part: &str, title: &str, unit: &str, series: &[Series]| {
        let names = hosts
            .iter()
            .flat_map(|host| series.iter().map(move |(name, _)| format!("{host}{name}")));
        let group = |case: &Case| {
            let of_contender = |contender: &Contender| {
                series.iter().map(|(_, value)| contender.bar(value)).collect::<Vec<_>>()
            };
            (case.settings.to_string(), case.contenders.iter().flat_map(of_contender).collect())
        };
        BarChart {
            heading: Heading { title: title.to_owned(), notes: notes.to_vec() },
            unit: unit.to_owned(),
            series: names.collect(),
            groups: cases.iter().map(group).collect(),
            has_common_scale: true,
        }
        .write(&results.chart(part))
    };
    bars(
        "cpu",
        "Processor time of a driver process",
        "% of one core: median, quartiles",
        &[
            (", idle", |run| run.idle.cpu_mean),
            (", paced", |run| run.paced.cpu_mean),
            (", full", |run| run.full.cpu_mean),
        ],
    )?;
    bars(
        "memory",
        "Resident memory of a driver process",
        "MiB: median, quartiles",
        &[
            (", idle", |run| mebibytes(run.idle.resident_mean)),
            (", paced", |run| mebibytes(run.paced.resident_mean)),
            (", full", |run| mebibytes(run.full.resident_mean)),
        ],
    )?;
    bars(
        "times",
        "Start-up and shutdown of a driver process",
        "ms: median, quartiles",
        &[
            (", start-up", |run| run.start_up.as_secs_f64() * 1e3),
            (", shutdown", |run| run.shutdown.as_secs_f64() * 1e3),
        ],
    )?;
    bars(
        "throughput",
        "Throughput of Rust clients by driver",
        "messages per second: median, quartiles",
        &[("", |run| run.messages_per_second)],
    )?;
    let lines = cases.iter().flat_map(|case| {
        case.contenders.iter().filter_map(|contender| {
            let points = distribution(&contender.round_trips()?);
            Some((format!("{}, {}", contender.host, case.settings), points))
        })
    });
    let title = "Round trips of Rust clients by driver, at a fixed rate".to_owned();
    PercentileChart { heading: Heading { title, notes: notes.to_vec() }, lines: lines.collect() }
        .write(&results.chart("round-trips"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start_up: u64, latency: u64) -> Run {
        let usage = Usage {
            cpu_mean: 2.0,
            cpu_peak: 4.0,
            resident_mean: f64::from(3 << 20),
            resident_peak: f64::from(5 << 20),
            shared_mean: f64::from(1 << 20),
            threads: 3,
        };
        let mut round_trips = crate::contenders::ping_pong::histogram().expect("a histogram");
        round_trips.saturating_record_n(latency, 100);
        Run {
            start_up: Duration::from_millis(start_up),
            shutdown: Duration::from_millis(1),
            idle: usage,
            paced: Usage { cpu_mean: 50.0, ..usage },
            full: usage,
            round_trips,
            messages_per_second: 1e6,
        }
    }

    fn case() -> Case {
        let settings = "shared/backoff".parse().expect("settings");
        let mut case = Case::new(settings, &[Host::Rust, Host::Java]);
        case.contenders[0].runs = vec![run(10, 1000), run(20, 3000)];
        case.contenders[1].runs = vec![run(300, 4000)];
        case
    }

    #[test]
    fn the_table_has_medians_quartiles_and_ratios() {
        let lines = case().table();
        let row = |label: &str| {
            let line = lines.iter().find_map(|line| line.trim_start().strip_prefix(label));
            let line = line.unwrap_or_else(|| panic!("no {label} in {lines:#?}"));
            line.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("Rust"), "Java Java / Rust");
        assert_eq!(row("start-up, ms"), "15.0 (12.5 to 17.5) 300.0 (300.0 to 300.0) 20.00");
        assert_eq!(row("paced: CPU %, mean"), "50.0 (50.0 to 50.0) 50.0 (50.0 to 50.0) 1.00");
        let unchanged = "1,000,000 (1,000,000 to 1,000,000)";
        assert_eq!(row("full: msgs/sec"), format!("{unchanged} {unchanged} 1.00"));
    }

    #[test]
    fn a_case_without_runs_says_so() {
        let settings = "shared/backoff".parse().expect("settings");
        let case = Case::new(settings, &[Host::Rust]);
        assert!(case.table()[1].contains("Nothing to compare"));
        assert_eq!(case.to_json()["contenders"][0]["figures"], json!({}));
    }

    #[test]
    fn the_report_has_each_figure_of_each_run() {
        let report = case().to_json();
        let contenders = &report["contenders"];
        assert_eq!(contenders[0]["runs"][1]["start_up_millis"], 20.0);
        assert_eq!(contenders[0]["figures"]["idle_resident_mib_peak"]["median"], 5.0);
        assert_eq!(contenders[0]["figures"]["full_private_mib_mean"]["max"], 2.0);
        assert_eq!(contenders[1]["figures"]["start_up_millis"]["ratio_of_this_to_first"], 20.0);
        assert_eq!(contenders[1]["round_trip_distribution"][0], json!([0.0, 4.0]));
        assert_eq!(
            (&report["threading_mode"], &report["driver_idle"]),
            (&"shared".into(), &"backoff".into())
        );
    }
}
