//! The program `benchmark_idle_strategies`.

use std::fmt;
use std::str::FromStr;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use rusteron_client::IdleStrategyKind;
use serde_json::{Value, json};

use crate::command_line::byte_size;
use crate::command_line::driver_options::{DriverOptions, Threading, idle_strategy};
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::output::Output;
use crate::command_line::run_options::{self, RunOptions};
use crate::measuring::connection::{Connection, Stream};
use crate::measuring::measurement::{self, Plan, Slice};
use crate::measuring::statistics::Statistics;
use crate::reports::chart::{BarChart, Heading, settings_note};
use crate::reports::comparison::Contender;
use crate::reports::host;
use crate::reports::results::{self, Results};

/// The stream of the first run; each further one has the next.
const FIRST_STREAM_ID: i32 = 4001;

/// Measures how many messages a second an exclusive publication passes to a subscription over IPC, for each
/// combination of term length, publication window, idle strategy and threading mode of the driver.
///
/// The combinations take turns, each time on a stream of its own and, for each threading mode, on a media
/// driver of its own. The driver backs off, as is Aeron's default. The rates of slices of 100 ms are
/// compared.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns); lengths may end in k, m or g.
#[derive(Debug, Clone, Parser)]
#[command(name = "benchmark_idle_strategies", version)]
pub struct IdleStrategiesOptions {
    /// Term lengths, separated by commas: powers of two from 64k to 1g
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", value_delimiter = ',', num_args = 1,
          default_value = "64k,1m,16m,64m", value_parser = byte_size::parse_term_length)]
    pub term_lengths: Vec<usize>,

    /// Publication windows in bytes, separated by commas: how far a publisher may get ahead, or `default`, half
    /// a term; windows of half a term and longer are left out
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        num_args = 1,
        default_value = "default"
    )]
    pub windows: Vec<Window>,

    /// Idle strategies of publisher and subscriber when they cannot go on, separated by commas
    #[arg(long, value_name = "STRATEGIES", value_delimiter = ',', num_args = 1,
          default_value = "spin,yield,sleep-ns,backoff,noop", value_parser = idle_strategy())]
    pub idles: Vec<IdleStrategyKind>,

    /// Threading modes of the driver, separated by commas
    #[arg(
        long,
        value_name = "MODES",
        value_delimiter = ',',
        num_args = 1,
        default_value = "shared,shared-network,dedicated"
    )]
    pub threading_modes: Vec<Threading>,

    /// Length of each message in bytes, from 1 to 16m, and at the most an eighth of the term length
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = byte_size::parse_message_length)]
    pub message_length: usize,

    /// How many fragments a poll receives at the most
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "10",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=i32::MAX as u64))]
    pub fragment_limit: usize,

    /// Rounds, times, results.
    #[command(flatten)]
    pub run: RunOptions,
}

/// How far a publisher may get ahead of the slowest subscriber, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window(Option<usize>);

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" => Ok(Self(None)),
            _ => byte_size::parse_length(text)
                .ok()
                .filter(|bytes| (4096..=1 << 29).contains(bytes))
                .map(|bytes| Self(Some(bytes)))
                .ok_or_else(|| "expected default, or 4k to 512m".to_owned()),
        }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.map_or_else(|| "default".to_owned(), byte_size::display))
    }
}

/// The log of a row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Log {
    term_length: usize,
    window: Window,
}

impl Log {
    fn combinations(term_lengths: &[usize], windows: &[Window]) -> Vec<Self> {
        let of_length = |term_length: &usize| {
            let term_length = *term_length;
            windows.iter().map(move |window| Self { term_length, window: *window })
        };
        // Aeron caps a window at half a term.
        let is_distinct = |log: &Self| log.window.0.is_none_or(|bytes| bytes < log.term_length / 2);
        term_lengths.iter().flat_map(of_length).filter(is_distinct).collect()
    }

    fn channel(self) -> String {
        let window = self.window.0.map_or_else(String::new, |bytes| format!("|pub-wnd={bytes}"));
        format!("aeron:ipc?term-length={}{window}", self.term_length)
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms = byte_size::display(self.term_length);
        f.pad(&match self.window.0 {
            Some(bytes) => format!("{terms}, window {}", byte_size::display(bytes)),
            None => terms,
        })
    }
}

/// A cell of the table.
#[derive(Debug)]
struct Cell {
    log: Log,
    idle: IdleStrategyKind,
    contender: Contender,
}

/// The cells of a threading mode.
#[derive(Debug)]
struct Sheet {
    threading: Threading,
    cells: Vec<Cell>,
}

impl Sheet {
    fn new(threading: Threading, logs: &[Log], idles: &[IdleStrategyKind]) -> Self {
        let cells = logs
            .iter()
            .flat_map(|log| idles.iter().map(|idle| (*log, *idle)))
            .map(|(log, idle)| Cell { log, idle, contender: Contender::new(idle.name()) })
            .collect();
        Self { threading, cells }
    }

    fn cell(&self, log: Log, idle: IdleStrategyKind) -> Option<&Contender> {
        let mut cells = self.cells.iter();
        let cell = cells.find(|cell| cell.log == log && cell.idle == idle);
        cell.map(|cell| &cell.contender)
    }

    fn table(&self, logs: &[Log], idles: &[IdleStrategyKind]) -> Vec<String> {
        let mut lines =
            vec![format!("{}, million msgs/sec: median (quartiles)", self.threading.name())];
        let row = |first: &str, cells: Vec<String>| {
            let cells: String = cells.iter().map(|cell| format!("{cell:>24}")).collect();
            format!("  {first:<20}{cells}")
        };
        lines.push(row("terms", idles.iter().map(|idle| idle.name().to_owned()).collect()));
        for log in logs {
            let cells = idles.iter().map(|idle| {
                let statistics = self.cell(*log, *idle).and_then(Contender::statistics);
                statistics.map_or_else(|| "-".to_owned(), |statistics| millions(&statistics))
            });
            lines.push(row(&log.to_string(), cells.collect()));
        }
        lines
    }

    fn chart(&self, logs: &[Log], idles: &[IdleStrategyKind], notes: Vec<String>) -> BarChart {
        let group = |log: &Log| {
            let bar = |idle| self.cell(*log, idle).and_then(Contender::bar);
            let bars = idles.iter().map(|idle| bar(*idle)).collect();
            (format!("terms of {log}"), bars)
        };
        let title = format!("IPC throughput by idle strategy, driver {}", self.threading.name());
        BarChart {
            heading: Heading { title, notes },
            unit: "messages per second: median, quartiles".to_owned(),
            series: idles.iter().map(|idle| idle.name().to_owned()).collect(),
            groups: logs.iter().map(group).collect(),
            has_common_scale: true,
        }
    }

    fn to_json(&self) -> Vec<Value> {
        let cell = |cell: &Cell| {
            json!({
                "threading_mode": self.threading.name(),
                "term_length": cell.log.term_length,
                "window": cell.log.window.0,
                "idle": cell.idle.name(),
                "messages_per_second":
                    cell.contender.statistics().map(|statistics| statistics.to_json()),
                "runs": cell.contender.runs,
            })
        };
        self.cells.iter().map(cell).collect()
    }
}

fn millions(statistics: &Statistics) -> String {
    format!(
        "{:.1} ({:.1} to {:.1})",
        statistics.median() / 1e6,
        statistics.lower_quartile() / 1e6,
        statistics.upper_quartile() / 1e6
    )
}

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &IdleStrategiesOptions) -> Result<(), Failure> {
    options.run.check()?;
    let term_lengths = run_options::distinct(&options.term_lengths);
    let idles = run_options::distinct(&options.idles);
    for term_length in &term_lengths {
        let option = "--message-length <BYTES>";
        run_options::check_message_length(option, options.message_length, *term_length)?;
    }
    let logs = Log::combinations(&term_lengths, &run_options::distinct(&options.windows));
    if logs.is_empty() {
        let reason = "expected default, or less than half of a term";
        let windows: Vec<_> = options.windows.iter().map(Window::to_string).collect();
        return Err(Failure::usage("--windows <BYTES>", windows.join(","), reason));
    }
    let results = Results::open(&options.run.results, "idle-strategies")?;
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);

    let mut sheets: Vec<Sheet> = run_options::distinct(&options.threading_modes)
        .into_iter()
        .map(|threading| Sheet::new(threading, &logs, &idles))
        .collect();
    for run in 1..=options.run.runs {
        for sheet in &mut sheets {
            if interrupt.is_requested() {
                break;
            }
            measure(run, sheet, options, &interrupt, &mut output)?;
        }
    }

    let mut notes = results::notes();
    notes.push(settings_note(&[
        ("messages", &format_args!("{} B", options.message_length)),
        ("fragment limit", &options.fragment_limit),
        ("runs", &options.run.runs),
    ]));
    for sheet in &sheets {
        for line in sheet.table(&logs, &idles) {
            output.line(line)?;
        }
        let path = results.chart(sheet.threading.name());
        sheet.chart(&logs, &idles, notes.clone()).write(&path)?;
    }
    output.line(results.write(&report(options, &sheets))?)
}

/// One round of a threading mode, on a driver of its own.
fn measure(
    run: u32,
    sheet: &mut Sheet,
    options: &IdleStrategiesOptions,
    interrupt: &Interrupt,
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    let driver = DriverOptions { term_length: None, threading_mode: Some(sheet.threading) };
    let connection = Connection::embedded(driver.driver_context()?)?;
    for (cell, stream_id) in sheet.cells.iter_mut().zip(FIRST_STREAM_ID..) {
        let rates = measure_cell(cell, options, &connection, stream_id, interrupt)
            .map_err(|failure| connection.explain(failure))?;
        if interrupt.is_requested() {
            // A run that was cut short would not be comparable with the others.
            break;
        }
        if let Some(statistics) = Statistics::new(rates.iter().copied()) {
            output.line(format_args!(
                "Run {run}, {}, terms of {}, {}: {} million msgs/sec",
                sheet.threading.name(),
                cell.log,
                cell.idle.name(),
                millions(&statistics)
            ))?;
        }
        cell.contender.runs.push(rates);
    }
    connection.warn();
    Ok(())
}

fn measure_cell(
    cell: &Cell,
    options: &IdleStrategiesOptions,
    connection: &Connection,
    stream_id: i32,
    interrupt: &Interrupt,
) -> Result<Vec<f64>, Failure> {
    let channel = cell.log.channel().parse().map_err(Failure::Run)?;
    let Stream { mut publication, mut subscription } =
        connection.open(&channel, stream_id, interrupt)?;
    let plan = Plan {
        message_length: options.message_length,
        fragment_limit: options.fragment_limit,
        idle: cell.idle,
        interval: RunOptions::SLICE,
        warmup: options.run.warmup,
        measured: Some(options.run.measure),
        timeout: connection.timeout(),
    };
    let measurement =
        measurement::measure(&mut publication, &mut subscription, &plan, interrupt, |_, _| Ok(()))?;
    Ok(measurement.slices.iter().map(Slice::messages_per_second).collect())
}

fn report(options: &IdleStrategiesOptions, sheets: &[Sheet]) -> Value {
    let mut settings = options.run.to_json();
    settings["slice_seconds"] = json!(RunOptions::SLICE.as_secs_f64());
    settings["message_length"] = json!(options.message_length);
    settings["fragment_limit"] = json!(options.fragment_limit);
    json!({
        "program": "benchmark_idle_strategies",
        "versions": host::versions(),
        "host": host::describe(),
        "settings": settings,
        "cells": sheets.iter().flat_map(Sheet::to_json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        IdleStrategiesOptions::command().debug_assert();
    }

    #[test]
    fn windows_of_half_a_term_are_left_out() {
        let windows = ["default", "4k", "32k", "64k"].map(|text| text.parse().expect("a window"));
        let logs = Log::combinations(&[1 << 16, 1 << 17], &windows);
        let rows: Vec<_> = logs.iter().map(Log::to_string).collect();
        assert_eq!(rows, ["64k", "64k, window 4k", "128k", "128k, window 4k", "128k, window 32k"]);
        assert_eq!(logs[1].channel(), "aeron:ipc?term-length=65536|pub-wnd=4096");
        assert!("4095".parse::<Window>().is_err());
    }

    #[test]
    fn the_table_has_a_row_for_each_term_length() {
        let logs = Log::combinations(&[1 << 16, 1 << 20], &[Window(None)]);
        let idles = [IdleStrategyKind::Yielding, IdleStrategyKind::NoOp];
        let mut sheet = Sheet::new(Threading::Shared, &logs, &idles);
        sheet.cells[2].contender.runs.push(vec![1e6, 3e6]);
        let lines = sheet.table(&logs, &idles);
        assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["terms", "yield", "noop"]);
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["64k", "-", "-"]);
        assert!(lines[3].contains("1m") && lines[3].contains("2.0 (2.0 to 2.0)"), "{lines:#?}");
    }
}
