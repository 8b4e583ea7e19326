//! The program `benchmark_ipc_throughput`.

use std::fmt;

use serde_json::{Value, json};

use crate::channel::Channel;
use crate::connection::{Connection, Stream};
use crate::failure::Failure;
use crate::host;
use crate::interrupt::Interrupt;
use crate::measurement::{self, Measurement, Plan, Slice};
use crate::message_path::{CPublication, CSubscription};
use crate::number::Grouped;
use crate::options::BenchmarkOptions;
use crate::output::Output;
use crate::statistics::Statistics;

/// The stream of the first run; each further one has the next.
const FIRST_STREAM_ID: i32 = 2001;

/// One of the two paths that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Path {
    /// `ExclusivePublication::offer`, `Subscription::poll`.
    Rust,
    /// `aeron_exclusive_publication_offer`, `aeron_subscription_poll`.
    C,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Rust => "Rust",
            Self::C => "C",
        })
    }
}

/// The runs of one side: the rates of each run's slices, in messages per second.
#[derive(Debug, Default)]
struct Side {
    runs: Vec<Vec<f64>>,
}

impl Side {
    fn statistics(&self) -> Option<Statistics> {
        Statistics::new(self.runs.iter().flatten().copied())
    }

    fn to_json(&self) -> Value {
        json!({
            "messages_per_second": self.statistics().map(|statistics| statistics.to_json()),
            "runs": self.runs,
        })
    }
}

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &BenchmarkOptions) -> Result<(), Failure> {
    options.check()?;
    let driver_context = options.common.driver_context()?;
    options.common.check_message_length(driver_context.ipc_term_buffer_length())?;
    let term_length = driver_context.ipc_term_buffer_length();
    let json = options.common.open_json()?;
    let interrupt = Interrupt::on_signals()?;

    let connection = Connection::embedded(driver_context)?;
    let (rust, c) =
        compare(options, &connection, &interrupt).map_err(|failure| connection.explain(failure))?;
    connection.warn();
    let mut report = report(options, &rust, &c);
    report["settings"]["term_length"] = json!(term_length);
    json.map_or(Ok(()), |json| json.write(&report))
}

/// Runs both sides in turn, prints each run and then the table.
fn compare(
    options: &BenchmarkOptions,
    connection: &Connection,
    interrupt: &Interrupt,
) -> Result<(Side, Side), Failure> {
    let mut output = Output::new(interrupt);
    let (mut rust, mut c) = (Side::default(), Side::default());
    let stream_ids = FIRST_STREAM_ID..;
    let turns = (1..=options.runs).flat_map(|run| [(run, Path::Rust), (run, Path::C)]);
    for ((run, path), stream_id) in turns.zip(stream_ids) {
        let measurement = measure(path, options, connection, stream_id, interrupt)?;
        if interrupt.is_requested() {
            // A run that was cut short would not be comparable with the others.
            break;
        }
        let rates: Vec<f64> = measurement.slices.iter().map(Slice::messages_per_second).collect();
        if let Some(statistics) = Statistics::new(rates.iter().copied()) {
            let median = Grouped::rounded(statistics.median());
            output.line(format_args!("Run {run}, {path}: median {median} msgs/sec"))?;
        }
        match path {
            Path::Rust => rust.runs.push(rates),
            Path::C => c.runs.push(rates),
        }
    }
    for line in table(&rust, &c) {
        output.line(line)?;
    }
    Ok((rust, c))
}

/// One run, on a stream of its own.
fn measure(
    path: Path,
    options: &BenchmarkOptions,
    connection: &Connection,
    stream_id: i32,
    interrupt: &Interrupt,
) -> Result<Measurement, Failure> {
    let channel: Channel = "aeron:ipc".parse().map_err(Failure::Run)?;
    let Stream { mut publication, mut subscription } =
        connection.open(&channel, stream_id, interrupt)?;
    let plan = Plan {
        message_length: options.common.message_length,
        fragment_limit: options.common.fragment_limit,
        idle: options.common.idle,
        interval: BenchmarkOptions::SLICE,
        warmup: options.warmup,
        measured: Some(options.measure),
        patience: connection.patience(),
    };
    match path {
        Path::Rust => {
            measurement::measure(&mut publication, &mut subscription, &plan, interrupt, |_, _| {
                Ok(())
            })
        }
        Path::C => measurement::measure(
            &mut CPublication(publication),
            &mut CSubscription(subscription),
            &plan,
            interrupt,
            |_, _| Ok(()),
        ),
    }
}

/// How many times as fast as C Rust is.
fn ratio(rust: &Side, c: &Side) -> Option<f64> {
    let (rust, c) = (rust.statistics()?.median(), c.statistics()?.median());
    (c > 0.0).then(|| rust / c)
}

/// The lines of the comparison.
fn table(rust: &Side, c: &Side) -> Vec<String> {
    let mut lines = vec![format!(
        "{:<10} {:>5} {:>7} {:>15} {:>15} {:>15} {:>15}",
        "msgs/sec", "runs", "slices", "median", "min", "max", "upper quartile"
    )];
    for (path, side) in [(Path::Rust, rust), (Path::C, c)] {
        let Some(statistics) = side.statistics() else { continue };
        lines.push(format!(
            "{path:<10} {:>5} {:>7} {:>15} {:>15} {:>15} {:>15}",
            side.runs.len(),
            statistics.count(),
            Grouped::rounded(statistics.median()),
            Grouped::rounded(statistics.min()),
            Grouped::rounded(statistics.max()),
            Grouped::rounded(statistics.upper_quartile()),
        ));
    }
    lines.push(match ratio(rust, c) {
        Some(ratio) => format!("Rust / C, ratio of medians: {ratio:.3}"),
        None => "Nothing to compare: it ended before both sides had run".to_owned(),
    });
    lines
}

/// The report, without what only the driver knows.
fn report(options: &BenchmarkOptions, rust: &Side, c: &Side) -> Value {
    json!({
        "program": "benchmark_ipc_throughput",
        "versions": host::versions(),
        "host": host::describe(),
        "settings": {
            "threading_mode": options.common.threading().name(),
            "message_length": options.common.message_length,
            "fragment_limit": options.common.fragment_limit,
            "idle": options.common.idle.name(),
            "runs": options.runs,
            "measure_seconds": options.measure.as_secs_f64(),
            "warmup_seconds": options.warmup.as_secs_f64(),
            "slice_seconds": BenchmarkOptions::SLICE.as_secs_f64(),
        },
        "rust": rust.to_json(),
        "c": c.to_json(),
        "ratio_of_medians": ratio(rust, c),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_compares_medians() {
        let rust = Side { runs: vec![vec![3_000_000.0, 5_000_000.0], vec![4_000_000.0]] };
        let c = Side { runs: vec![vec![2_000_000.0], vec![2_000_000.0]] };
        let lines = table(&rust, &c);
        assert!(lines[1].starts_with("Rust           2       3       4,000,000"), "{lines:#?}");
        assert_eq!(lines[3], "Rust / C, ratio of medians: 2.000");
    }

    #[test]
    fn one_side_alone_is_not_compared() {
        let rust = Side { runs: vec![vec![1.0]] };
        let lines = table(&rust, &Side::default());
        assert_eq!(lines.len(), 3);
        assert!(lines[2].starts_with("Nothing to compare"));
    }
}
