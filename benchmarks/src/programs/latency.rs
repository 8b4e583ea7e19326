//! The program `benchmark_ipc_latency`.

use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Parser, ValueEnum};
use hdrhistogram::Histogram;
use rusteron_client::IdleStrategyKind;
use rusteron_media_driver::Context as DriverContext;
use serde_json::{Value, json};

use crate::command_line::byte_size;
use crate::command_line::driver_options::{DriverOptions, Threading, idle_strategy};
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::output::Output;
use crate::command_line::run_options::{self, JavaOptions, RunOptions};
use crate::contenders::latency::{Bench, Pair, Transport};
use crate::contenders::ping_pong::{MIN_MESSAGE_LENGTH, Pace, Plan};
use crate::measuring::connection::Connection;
use crate::measuring::handover::{Distance, Probes};
use crate::measuring::statistics::Statistics;
use crate::processes::java::Java;
use crate::reports::chart::{Heading, PercentileChart, settings_note};
use crate::reports::comparison;
use crate::reports::host;
use crate::reports::latencies::{distribution, micros};
use crate::reports::results::{self, Results};

/// The first stream of the first run; each further one has the next two.
const FIRST_STREAM_ID: i32 = 3001;

/// The percentiles of tables and reports; the last is the maximum.
pub(crate) const PERCENTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999), ("max", 1.0)];

/// When messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Each as soon as the last one is back
    Closed,
    /// At a fixed rate, with latencies from the times at which messages should have been sent
    Paced,
}

/// Measures how long messages take from one thread to another and back, over IPC and UDP loopback: with
/// the Rust API, with C's functions called from Rust, with Java, and between Rust and Java.
///
/// All use the same embedded media driver. The pairs take turns, each time on streams of their own. Two
/// threads and the driver's thread share the machine's cores. With fewer than three cores all threads have to
/// yield, which is the default, and a round trip contains the operating system's switching between them.
/// Without Java its contenders are left out.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns); lengths may end in k, m or g.
#[derive(Debug, Clone, Parser)]
// As long as Java's: the first pass over a log meets pages that the system has not allocated yet.
#[command(
    name = "benchmark_ipc_latency",
    version,
    mut_arg("warmup", |arg| arg.default_value("3s"))
)]
pub struct LatencyOptions {
    /// The pairs, separated by commas; ratios are of the others to the first
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,c-functions,java,rust-java"
    )]
    pub contenders: Vec<Pair>,

    /// Transports of the messages, separated by commas
    #[arg(
        long,
        value_name = "TRANSPORTS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "ipc,udp"
    )]
    pub transports: Vec<Transport>,

    /// When messages are sent, separated by commas
    #[arg(
        long,
        value_name = "MODES",
        value_delimiter = ',',
        num_args = 1,
        default_value = "closed,paced"
    )]
    pub modes: Vec<Mode>,

    /// Messages per second in the paced mode
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "10000",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=10_000_000))]
    pub rate: u32,

    /// Length of each message in bytes, from 8 to 16m
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = byte_size::parse_message_length)]
    pub message_length: usize,

    /// Idle strategy of both threads when there is nothing to do
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    pub idle: IdleStrategyKind,

    /// Idle strategy of the driver's threads when there is nothing to do
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    pub driver_idle: IdleStrategyKind,

    /// Term buffer and threads.
    #[command(flatten)]
    pub driver: DriverOptions,

    /// Rounds, times, results.
    #[command(flatten)]
    pub run: RunOptions,

    /// Java.
    #[command(flatten)]
    pub java: JavaOptions,
}

impl LatencyOptions {
    fn driver_context(&self) -> Result<DriverContext, Failure> {
        let mut context = self.driver.driver_context()?;
        let idle = self.driver_idle;
        match self.driver.threading() {
            Threading::Shared => context.set_shared_idle_strategy(idle)?,
            Threading::SharedNetwork => {
                context.set_conductor_idle_strategy(idle)?.set_shared_network_idle_strategy(idle)?
            }
            Threading::Dedicated => context
                .set_conductor_idle_strategy(idle)?
                .set_sender_idle_strategy(idle)?
                .set_receiver_idle_strategy(idle)?,
        };
        Ok(context)
    }

    fn check(&self, context: &DriverContext) -> Result<(), Failure> {
        const OPTION: &str = "--message-length <BYTES>";
        self.run.check()?;
        if self.message_length < MIN_MESSAGE_LENGTH {
            let reason = format!("expected at least {MIN_MESSAGE_LENGTH} bytes, for a time");
            return Err(Failure::usage(OPTION, self.message_length, reason));
        }
        let term_length = context.ipc_term_buffer_length().min(context.term_buffer_length());
        // C and Java do not put fragments together.
        let max = context.mtu_length().min(context.ipc_mtu_length()).saturating_sub(HEADER_LENGTH);
        if self.message_length > max {
            let reason = format!("expected a message of one fragment, at the most {max} bytes");
            return Err(Failure::usage(OPTION, self.message_length, reason));
        }
        run_options::check_message_length(OPTION, self.message_length, term_length)
    }

    fn plan(&self, mode: Mode, timeout: Duration) -> Plan {
        Plan {
            message_length: self.message_length,
            idle: self.idle,
            pace: match mode {
                Mode::Closed => Pace::Closed,
                Mode::Paced => Pace::Fixed(Duration::from_secs(1) / self.rate),
            },
            warmup: self.run.warmup,
            measure: self.run.measure,
            timeout,
        }
    }
}

/// The length of a data frame's header, in bytes of the MTU.
const HEADER_LENGTH: usize = 32;

/// The runs of one pair.
#[derive(Debug)]
struct Contender {
    pair: Pair,
    /// The round trips of each run, and the probes around it.
    runs: Vec<(Histogram<u64>, Probes)>,
}

impl Contender {
    /// The statistics of a percentile over the runs, in microseconds; `None` if there are none.
    fn percentile(&self, quantile: f64) -> Option<Statistics> {
        self.percentile_of(quantile, |_| true)
    }

    /// The same over the runs with certain probes.
    fn percentile_of(&self, quantile: f64, are: impl Fn(&Probes) -> bool) -> Option<Statistics> {
        let runs = self.runs.iter().filter(|(run, probes)| !run.is_empty() && are(probes));
        Statistics::new(runs.map(|(run, _)| micros(run.value_at_quantile(quantile))))
    }

    /// All runs as one; `None` if there are none.
    fn sum(&self) -> Option<Histogram<u64>> {
        let mut runs = self.runs.iter().map(|(run, _)| run);
        let mut sum = runs.next()?.clone();
        // The bounds are the same, so that every latency fits.
        runs.try_for_each(|run| sum.add(run)).ok()?;
        (!sum.is_empty()).then_some(sum)
    }

    fn to_json(&self, first: &Self) -> Value {
        let percentiles = PERCENTILES.map(|(name, quantile)| {
            let statistics = self.percentile(quantile).map(|statistics| statistics.to_json());
            let to_median = ratio(self, first, quantile, Statistics::median);
            let to_highest = ratio(self, first, quantile, Statistics::max);
            let values = json!({
                "micros": statistics,
                "ratio_of_this_to_first": to_median,
                "ratio_of_this_to_highest_of_first": to_highest,
            });
            (name.to_owned(), values)
        });
        let run = |(run, probes): &(Histogram<u64>, Probes)| {
            let percentiles = PERCENTILES.map(|(name, quantile)| {
                (name.to_owned(), json!(micros(run.value_at_quantile(quantile))))
            });
            json!({
                "count": run.len(),
                "micros": Value::Object(percentiles.into_iter().collect()),
                "handover_nanoseconds": probes.to_json(),
            })
        };
        json!({
            "name": self.pair.to_string(),
            "percentiles": Value::Object(percentiles.into_iter().collect()),
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
            "distribution": self.sum().map(|sum| distribution(&sum)),
        })
    }
}

/// The median over the runs of one contender divided by the median or the highest of the first.
fn ratio(
    contender: &Contender,
    first: &Contender,
    quantile: f64,
    of_first: fn(&Statistics) -> f64,
) -> Option<f64> {
    let ratio = contender.percentile(quantile)?.median() / of_first(&first.percentile(quantile)?);
    ratio.is_finite().then_some(ratio)
}

/// Pairs that were measured under the same conditions.
#[derive(Debug)]
struct Case {
    transport: Transport,
    mode: Mode,
    contenders: Vec<Contender>,
}

impl Case {
    fn name(&self) -> String {
        let mode = match self.mode {
            Mode::Closed => "closed",
            Mode::Paced => "paced",
        };
        format!("{}-{mode}", self.transport.name())
    }

    /// The lines of a table. With a boundary, they include the runs on near and on far cores.
    fn table(&self, boundary: Option<f64>) -> Vec<String> {
        let row = |what: &str, values: [String; PERCENTILES.len()]| {
            let values = values.map(|value| format!("{value:>10}")).join(" ");
            format!("  {what:<28}{values}")
        };
        let mut lines = vec![
            format!("{}, microseconds: the distribution of the runs' percentiles", self.name()),
            row("contender", PERCENTILES.map(|(name, _)| name.to_owned())),
        ];
        for (index, contender) in self.contenders.iter().enumerate() {
            if contender.sum().is_none() {
                continue;
            }
            let name = format!("{}, {} runs", contender.pair, contender.runs.len());
            lines.push(row(&name, [const { String::new() }; PERCENTILES.len()]));
            let statistics = PERCENTILES.map(|(_, quantile)| contender.percentile(quantile));
            let titles = ["lowest", "lower quartile", "median", "upper quartile", "highest"];
            for (number, title) in titles.into_iter().enumerate() {
                let value = |it: &Statistics| format!("{:.2}", it.five_numbers()[number]);
                let values =
                    statistics.each_ref().map(|it| it.as_ref().map(value).unwrap_or_default());
                lines.push(row(&format!("    {title}"), values));
            }
            for (distance, name) in Distance::ALL {
                let Some(boundary) = boundary else { break };
                let are = |probes: &Probes| probes.distance(boundary) == Some(distance);
                let values =
                    PERCENTILES.map(|(_, quantile)| contender.percentile_of(quantile, are));
                let Some(runs) = values[0].as_ref().map(Statistics::count) else { continue };
                let median = |it: Option<Statistics>| it.map(|it| format!("{:.2}", it.median()));
                let values = values.map(|it| median(it).unwrap_or_default());
                lines.push(row(&format!("    median, {name}, {runs}"), values));
            }
            let first = &self.contenders[0];
            let ratios = |of_first| {
                PERCENTILES.map(|(_, quantile)| {
                    let ratio = ratio(contender, first, quantile, of_first);
                    ratio.map_or_else(String::new, |ratio| format!("{ratio:.3}"))
                })
            };
            if index > 0 {
                let title = format!("    median / {}", first.pair);
                lines.push(row(&title, ratios(Statistics::median)));
                lines.push(row(&format!("{title}, highest"), ratios(Statistics::max)));
            }
        }
        if lines.len() == 2 {
            lines.push("  Nothing to compare: it ended before a run had".to_owned());
        }
        lines
    }

    fn chart(&self, notes: Vec<String>, rate: u32) -> PercentileChart {
        let over = match self.transport {
            Transport::Ipc => "IPC",
            Transport::Udp => "UDP loopback",
        };
        let when = match self.mode {
            Mode::Closed => "the next message after the last is back".to_owned(),
            Mode::Paced => format!("{rate} messages per second, from the intended time"),
        };
        let line = |contender: &Contender| {
            Some((contender.pair.to_string(), distribution(&contender.sum()?)))
        };
        PercentileChart {
            heading: Heading { title: format!("Round trip over {over}: {when}"), notes },
            lines: self.contenders.iter().filter_map(line).collect(),
        }
    }

    fn to_json(&self) -> Value {
        let contenders = self
            .contenders
            .first()
            .into_iter()
            .flat_map(|first| self.contenders.iter().map(|contender| contender.to_json(first)));
        json!({ "name": self.name(), "contenders": contenders.collect::<Vec<_>>() })
    }
}

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &LatencyOptions) -> Result<(), Failure> {
    let driver_context = options.driver_context()?;
    options.check(&driver_context)?;
    let results = Results::open(&options.run.results, "ipc-latency")?;
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);

    let mut pairs = run_options::distinct(&options.contenders);
    let java =
        Java::find_for(&mut pairs, |contender| contender.needs_java(), &options.java, &interrupt);
    let connection = Connection::embedded(driver_context)?;
    let bench = Bench {
        connection: &connection,
        java: java.as_ref(),
        java_warmup: options.java.java_warmup,
        interrupt: &interrupt,
    };
    let cases = compare(options, &pairs, &bench, &mut output)
        .map_err(|failure| connection.explain(failure))?;
    connection.warn();

    let notes = notes(options, java.as_ref());
    let runs = cases.iter().flat_map(|case| &case.contenders).flat_map(|it| &it.runs);
    let boundary = Probes::boundary_of_two_cores(runs.map(|(_, probes)| probes));
    for case in &cases {
        for line in case.table(boundary) {
            output.line(line)?;
        }
        case.chart(notes.clone(), options.rate).write(&results.chart(&case.name()))?;
    }
    output.line(results.write(&report(options, &cases, java.as_ref()))?)
}

/// Runs all pairs of all cases in turn, again and again, and prints each run.
fn compare(
    options: &LatencyOptions,
    pairs: &[Pair],
    bench: &Bench<'_>,
    output: &mut Output<'_>,
) -> Result<Vec<Case>, Failure> {
    let modes = run_options::distinct(&options.modes);
    let contenders =
        || pairs.iter().map(|pair| Contender { pair: *pair, runs: Vec::new() }).collect();
    let mut cases: Vec<Case> = run_options::distinct(&options.transports)
        .into_iter()
        .flat_map(|transport| modes.iter().map(move |mode| (transport, *mode)))
        .map(|(transport, mode)| Case { transport, mode, contenders: contenders() })
        .collect();
    let mut stream_ids = (FIRST_STREAM_ID..).step_by(2);
    for run in 1..=options.run.runs {
        for case in &mut cases {
            let name = case.name();
            for contender in comparison::in_turn(&mut case.contenders, run) {
                let stream_id = stream_ids.next().unwrap_or(FIRST_STREAM_ID);
                let plan = options.plan(case.mode, bench.connection.timeout());
                let measured = Probes::around(bench.interrupt, || {
                    bench.measure(contender.pair, case.transport, &plan, stream_id)
                })?;
                let Some((histogram, probes)) = measured else { return Ok(cases) };
                let p50 = micros(histogram.value_at_quantile(0.5));
                let p99 = micros(histogram.value_at_quantile(0.99));
                let (pair, count) = (contender.pair, histogram.len());
                output.line(format_args!(
                    "Run {run}, {name}, {pair}: {count} messages, p50 {p50:.2} us, p99 {p99:.2} us"
                ))?;
                contender.runs.push((histogram, probes));
            }
        }
    }
    Ok(cases)
}

fn notes(options: &LatencyOptions, java: Option<&Java>) -> Vec<String> {
    let mut notes = results::notes();
    notes.extend(java.map(|java| java.versions().to_owned()));
    notes.push(settings_note(&[
        ("messages", &format_args!("{} B", options.message_length)),
        ("idle", &options.idle.name()),
        ("driver", &options.driver.threading().name()),
        ("driver's idle", &options.driver_idle.name()),
        ("runs", &options.run.runs),
    ]));
    notes
}

fn report(options: &LatencyOptions, cases: &[Case], java: Option<&Java>) -> Value {
    let mut versions = host::versions();
    versions["java"] = json!(java.map(Java::versions));
    let mut settings = options.run.to_json();
    settings["java_warmup_seconds"] = json!(options.java.java_warmup.as_secs_f64());
    settings["java_options"] = json!(options.java.java_option);
    settings["threading_mode"] = json!(options.driver.threading().name());
    settings["message_length"] = json!(options.message_length);
    settings["rate"] = json!(options.rate);
    settings["idle"] = json!(options.idle.name());
    settings["driver_idle"] = json!(options.driver_idle.name());
    json!({
        "program": "benchmark_ipc_latency",
        "versions": versions,
        "host": host::describe(),
        "settings": settings,
        "cases": cases.iter().map(Case::to_json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn contender(pair: Pair, latencies: &[u64]) -> Contender {
        let run = |latency: &u64| {
            let mut histogram = crate::contenders::ping_pong::histogram().expect("a histogram");
            histogram.saturating_record_n(*latency, 1000);
            let nanoseconds = *latency as f64 / 10.0;
            (histogram, Probes { before: nanoseconds, after: nanoseconds })
        };
        Contender { pair, runs: latencies.iter().map(run).collect() }
    }

    #[test]
    fn the_definition_is_consistent() {
        LatencyOptions::command().debug_assert();
    }

    #[test]
    fn table_has_distributions_and_ratios() {
        let case = Case {
            transport: Transport::Ipc,
            mode: Mode::Closed,
            contenders: vec![contender(Pair::Rust, &[1000, 1200]), contender(Pair::Java, &[2200])],
        };
        let lines = case.table(Some(150.0));
        let row = |index: usize| lines[index].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(row(2), "Rust, 2 runs");
        assert_eq!(row(3), "lowest 1.00 1.00 1.00 1.00 1.00 1.00");
        assert!(row(4).starts_with("lower quartile 1.05 "), "{lines:#?}");
        assert!(row(5).starts_with("median 1.10 "), "{lines:#?}");
        assert!(row(8).starts_with("median, near cores, 2 1.10 "), "{lines:#?}");
        assert_eq!(row(9), "Java, 1 runs");
        assert!(row(15).starts_with("median, far cores, 1 2.20 "), "{lines:#?}");
        // The histogram's third digit.
        assert!(row(16).starts_with("median / Rust 2.00"), "{lines:#?}");
        assert!(row(17).starts_with("median / Rust, highest 1.83"), "{lines:#?}");
        assert_eq!(lines.len(), 18);
    }

    #[test]
    fn a_case_without_runs_says_so() {
        let contenders = vec![contender(Pair::Rust, &[])];
        let case = Case { transport: Transport::Udp, mode: Mode::Paced, contenders };
        assert!(case.table(None)[2].contains("Nothing to compare"));
        assert_eq!(case.to_json()["name"], "udp-paced");
    }
}
