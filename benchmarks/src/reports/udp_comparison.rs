//! The UDP throughput of drivers, and its comparison.

use serde_json::{Value, json};

use crate::command_line::failure::Failure;
use crate::command_line::number::Grouped;
use crate::contenders::udp_throughput::{Buffers, Conditions, Contender, MessageLength, Run};
use crate::measuring::statistics::Statistics;
use crate::processes::driver_totals::DriverTotals;
use crate::processes::system_calls::SystemCalls;
use crate::reports::chart::{Bar, BarChart, Heading};
use crate::reports::comparison::{self, RATIO_TITLES, Ratio};
use crate::reports::results::Results;

/// The runs of a contender with messages of one length.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The conditions.
    pub conditions: Conditions,
    /// The length.
    pub length: MessageLength,
    /// The driver.
    pub contender: Contender,
    /// Its runs, one in each round.
    pub runs: Vec<Run>,
}

/// All runs of the program.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// All conditions, in the order of the tables.
    pub conditions: Vec<Conditions>,
    /// The lengths of messages.
    pub lengths: Vec<MessageLength>,
    /// The drivers; ratios are of the first to the others.
    pub contenders: Vec<Contender>,
    /// A cell for each combination.
    pub cells: Vec<Cell>,
}

impl Run {
    /// The run in a line.
    pub fn summary(&self) -> String {
        let DriverTotals { naks, retransmits, gap_bytes, overruns, .. } = self.totals;
        let per = |value: fn(&SystemCalls) -> Option<f64>| {
            display(self.calls.as_ref().and_then(value), 1)
        };
        format!(
            "{} msgs/sec, {:.1} MB/s, {} CPU s/GB, {} datagrams/send, {} datagrams/read, {naks} NAKs, \
             {retransmits} retransmissions, {gap_bytes} B of gaps, {overruns} overruns",
            Grouped::rounded(median(&self.rates).unwrap_or(0.0)),
            self.bytes_per_second() / 1e6,
            display(self.cpu_seconds_per_gigabyte(), 2),
            per(SystemCalls::datagrams_per_send),
            per(SystemCalls::datagrams_per_read),
        )
    }

    fn to_json(&self) -> Value {
        json!({
            "messages_per_second": self.rates,
            "bytes_per_second": self.bytes_per_second(),
            "cpu_seconds_per_gb": self.cpu_seconds_per_gigabyte(),
            "datagrams_per_send": self.calls.as_ref().and_then(SystemCalls::datagrams_per_send),
            "datagrams_per_read": self.calls.as_ref().and_then(SystemCalls::datagrams_per_read),
            "naks": self.totals.naks,
            "retransmissions": self.totals.retransmits,
            "gap_bytes": self.totals.gap_bytes,
            "overruns": self.totals.overruns,
        })
    }
}

impl Cell {
    fn rates(&self) -> comparison::Contender {
        let mut rates = comparison::Contender::new(self.contender.name());
        rates.runs = self.runs.iter().map(|run| run.rates.clone()).collect();
        rates
    }

    /// The median of a number of each run.
    fn median(&self, value: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        Statistics::new(self.runs.iter().filter_map(value)).map(|values| values.median())
    }

    /// The sum of a count of all runs.
    fn sum(&self, value: impl Fn(&DriverTotals) -> u64) -> u64 {
        self.runs.iter().map(|run| value(&run.totals)).sum()
    }

    /// How many times as fast as another cell's this one's messages are.
    fn ratio(&self, other: &Self) -> Option<Ratio> {
        Ratio::new(&self.rates(), &other.rates())
    }

    fn line(&self, first: Option<&Self>) -> Option<String> {
        let rates = self.rates().statistics()?;
        let messages = format!(
            "{} ({} to {})",
            Grouped::rounded(rates.median()),
            Grouped::rounded(rates.lower_quartile()),
            Grouped::rounded(rates.upper_quartile())
        );
        let per = |value: fn(&SystemCalls) -> Option<f64>| {
            display(self.median(|run| run.calls.as_ref().and_then(value)), 1)
        };
        let line = format!(
            "  {:<8} {:<9} {:>4} {messages:>40} {:>8} {:>8} {:>9} {:>9} {:>7} {:>8} {:>10} {:>8} {}",
            self.length,
            self.contender.name(),
            self.runs.len(),
            display(self.median(|run| Some(run.bytes_per_second() / 1e6)), 1),
            display(self.median(Run::cpu_seconds_per_gigabyte), 2),
            per(SystemCalls::datagrams_per_send),
            per(SystemCalls::datagrams_per_read),
            self.sum(|totals| totals.naks),
            self.sum(|totals| totals.retransmits),
            self.sum(|totals| totals.gap_bytes),
            self.sum(|totals| totals.overruns),
            display_ratio(first.and_then(|first| first.ratio(self))),
        );
        Some(line.trim_end().to_owned())
    }
}

impl Comparison {
    /// Cells without runs.
    pub fn new(
        conditions: Vec<Conditions>,
        lengths: Vec<MessageLength>,
        contenders: Vec<Contender>,
    ) -> Self {
        let mut cells = Vec::new();
        for conditions in &conditions {
            for length in &lengths {
                let cell = |contender: &Contender| Cell {
                    conditions: *conditions,
                    length: *length,
                    contender: *contender,
                    runs: Vec::new(),
                };
                cells.extend(contenders.iter().map(cell));
            }
        }
        Self { conditions, lengths, contenders, cells }
    }

    /// Adds a run of each length.
    pub fn add(&mut self, contender: Contender, conditions: Conditions, runs: Vec<Run>) {
        let is_of = |cell: &&mut Cell| cell.contender == contender && cell.conditions == conditions;
        for (cell, run) in self.cells.iter_mut().filter(is_of).zip(runs) {
            cell.runs.push(run);
        }
    }

    fn cell(
        &self,
        contender: Contender,
        conditions: Conditions,
        length: MessageLength,
    ) -> Option<&Cell> {
        self.cells.iter().find(|cell| {
            (cell.contender, cell.conditions, cell.length) == (contender, conditions, length)
        })
    }

    /// The cell of the first contender under the same conditions.
    fn first(&self, cell: &Cell) -> Option<&Cell> {
        self.cell(*self.contenders.first()?, cell.conditions, cell.length)
    }

    /// The lines of all tables.
    pub fn tables(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for conditions in &self.conditions {
            lines.push(conditions.to_string());
            lines.push(format!(
                "  {:<8} {:<9} {:>4} {:>40} {:>8} {:>8} {:>9} {:>9} {:>7} {:>8} {:>10} {:>8} {RATIO_TITLES}",
                "message", "contender", "runs", "msgs/sec: median (quartiles)", "MB/s", "CPU s/GB",
                "dgr./send", "dgr./read", "NAKs", "retrans.", "gaps, B", "overruns"
            ));
            let cells = self.cells.iter().filter(|cell| cell.conditions == *conditions);
            let rows: Vec<_> = cells.filter_map(|cell| cell.line(self.first(cell))).collect();
            if rows.is_empty() {
                lines.push("  Nothing to compare: it ended before a run had".to_owned());
            }
            lines.extend(rows);
        }
        let presets = self.presets_to_defaults();
        if let (Some(first), false) = (self.contenders.first(), presets.is_empty()) {
            lines.push(format!(
                "{} with throughput buffers, compared with others with default buffers",
                first.name()
            ));
            lines.push(format!("  {:<24} {:<8} {:<9} {RATIO_TITLES}", "", "message", "other"));
            for (other, ratio) in presets {
                let Conditions { network, threading, .. } = other.conditions;
                let place = format!("{}, {}", network.name(), threading.name());
                let ratio = display_ratio(Some(ratio));
                let (length, name) = (other.length, other.contender.name());
                lines.push(format!("  {place:<24} {length:<8} {name:<9} {ratio}"));
            }
        }
        lines
    }

    /// The other contenders with default buffers, and how many times as fast as these the first one with the preset
    /// is.
    fn presets_to_defaults(&self) -> Vec<(&Cell, Ratio)> {
        let others = self.cells.iter().filter(|cell| cell.conditions.buffers == Buffers::Default);
        let others = others.filter(|cell| Some(&cell.contender) != self.contenders.first());
        let compared = others.filter_map(|other| {
            let conditions = Conditions { buffers: Buffers::Throughput, ..other.conditions };
            let first = self.cell(*self.contenders.first()?, conditions, other.length)?;
            Some((other, first.ratio(other)?))
        });
        compared.collect()
    }

    /// Writes a chart for each network and threading mode.
    ///
    /// # Errors
    /// If one cannot be written.
    pub fn write_charts(&self, notes: &[String], results: &Results) -> Result<(), Failure> {
        let buffers = |conditions: &Conditions| conditions.buffers;
        for conditions in
            self.conditions.iter().filter(|it| buffers(it) == buffers(&self.conditions[0]))
        {
            let is_alike = |other: &&Conditions| {
                (other.network, other.threading) == (conditions.network, conditions.threading)
            };
            let all: Vec<_> = self.conditions.iter().filter(is_alike).collect();
            let series = all.iter().flat_map(|conditions| {
                let name = conditions.buffers.name();
                self.contenders.iter().map(move |contender| format!("{}, {name}", contender.name()))
            });
            let group = |length: &MessageLength| {
                let bars = all.iter().flat_map(|conditions| {
                    let cell = |contender: &Contender| self.cell(*contender, **conditions, *length);
                    let bar = move |contender| -> Option<Bar> { cell(contender)?.rates().bar() };
                    self.contenders.iter().map(bar)
                });
                (length.to_string(), bars.collect())
            };
            let (network, threading) = (conditions.network.name(), conditions.threading.name());
            BarChart {
                heading: Heading {
                    title: format!("UDP throughput by driver: {network}, {threading}"),
                    notes: notes.to_vec(),
                },
                unit: "messages per second: median, quartiles".to_owned(),
                series: series.collect(),
                groups: self.lengths.iter().map(group).collect(),
                has_common_scale: false,
            }
            .write(&results.chart(&format!("{network}-{threading}")))?;
        }
        Ok(())
    }

    /// The cells, and the ratios of the preset to defaults, as lists.
    pub fn to_json(&self) -> (Vec<Value>, Vec<Value>) {
        let describe = |cell: &Cell| {
            let Conditions { network, threading, buffers } = cell.conditions;
            json!({
                "network": network.name(),
                "threading_mode": threading.name(),
                "buffers": buffers.name(),
                "message_length": match cell.length {
                    MessageLength::Fixed(length) => json!(length),
                    MessageLength::Mix => json!("mix"),
                },
                "contender": cell.contender.name(),
            })
        };
        let cells = self.cells.iter().map(|cell| {
            let mut object = describe(cell);
            let statistics = cell.rates().statistics();
            object["messages_per_second"] = json!(statistics.map(|rates| rates.to_json()));
            let ratio = self.first(cell).and_then(|first| first.ratio(cell));
            object["ratio_of_first_to_this"] = json!(ratio.map(Ratio::to_json));
            object["runs"] = cell.runs.iter().map(Run::to_json).collect();
            object
        });
        let presets = self.presets_to_defaults().into_iter().map(|(other, ratio)| {
            let mut object = describe(other);
            object["ratio_of_first_with_throughput_buffers_to_this"] = ratio.to_json();
            object
        });
        (cells.collect(), presets.collect())
    }
}

fn median(values: &[f64]) -> Option<f64> {
    Statistics::new(values.iter().copied()).map(|values| values.median())
}

/// A number, or a dash if there is none.
fn display(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

fn display_ratio(ratio: Option<Ratio>) -> String {
    ratio.map_or_else(String::new, |ratio| ratio.to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::command_line::driver_options::Threading;
    use crate::processes::network_namespaces::Network;

    fn run(rate: f64, calls: Option<SystemCalls>) -> Run {
        let totals = DriverTotals {
            cpu: Duration::from_millis(500),
            naks: 1,
            retransmits: 2,
            gap_bytes: 3,
            overruns: 4,
        };
        let elapsed = Duration::from_secs(1);
        Run { rates: vec![rate], payload: 250_000_000, elapsed, totals, calls }
    }

    fn comparison() -> Comparison {
        let conditions = |buffers| Conditions {
            network: Network::Loopback,
            threading: Threading::Shared,
            buffers,
        };
        let [default, throughput] = [Buffers::Default, Buffers::Throughput].map(conditions);
        let mut comparison = Comparison::new(
            vec![default, throughput],
            vec![MessageLength::Fixed(32), MessageLength::Mix],
            vec![Contender::Rust, Contender::C],
        );
        let calls = Some(SystemCalls { datagrams: 100, sends: 10, reads: 20 });
        for _ in 0..2 {
            comparison.add(Contender::Rust, default, vec![run(3e6, calls), run(2e6, calls)]);
            comparison.add(Contender::C, default, vec![run(1e6, None), run(1e6, None)]);
            comparison.add(Contender::Rust, throughput, vec![run(8e6, calls), run(4e6, calls)]);
        }
        comparison
    }

    #[test]
    fn tables_have_medians_sums_and_ratios() {
        let lines = comparison().tables();
        let row = |number: usize| lines[number].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(lines[0], "loopback, shared, default buffers");
        let same = "1.000 1.000";
        let rates = "3,000,000 (3,000,000 to 3,000,000)";
        assert_eq!(row(2), format!("32 B rust 2 {rates} 250.0 2.00 10.0 5.0 2 4 6 8 {same}"));
        assert!(row(5).starts_with("mix c 2 1,000,000 "), "{lines:#?}");
        assert!(row(5).ends_with("2.00 – – 2 4 6 8 2.000 2.000"), "{lines:#?}");
        // The other contender has no runs with these buffers.
        assert_eq!(lines[6], "loopback, shared, throughput buffers");
        assert!(lines[10].starts_with("rust with throughput buffers"), "{lines:#?}");
        assert_eq!(row(12), "loopback, shared 32 B c 8.000 8.000");
        assert_eq!(lines.len(), 14);
    }

    #[test]
    fn report_has_each_run_and_ratio() {
        let (cells, presets) = comparison().to_json();
        assert_eq!(cells.len(), 8);
        assert_eq!(cells[1]["ratio_of_first_to_this"]["of_medians"], 3.0);
        assert_eq!(cells[0]["runs"][1]["datagrams_per_read"], 5.0);
        assert!(cells[1]["runs"][1]["datagrams_per_read"].is_null());
        assert_eq!(presets[1]["message_length"], "mix");
        let ratio = &presets[1]["ratio_of_first_with_throughput_buffers_to_this"];
        assert_eq!(ratio["of_lowest_to_median"], 4.0);
    }

    #[test]
    fn table_without_runs_says_so() {
        let Comparison { conditions, lengths, contenders, .. } = comparison();
        let lines = Comparison::new(conditions, lengths, contenders).tables();
        assert_eq!(lines.len(), 6);
        assert!(lines[2].contains("Nothing to compare"), "{lines:#?}");
    }
}
