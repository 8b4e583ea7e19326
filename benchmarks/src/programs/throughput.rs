//! The program `benchmark_ipc_throughput`.

use clap::builder::RangedU64ValueParser;
use clap::{Parser, ValueEnum};
use rusteron_client::IdleStrategyKind;
use serde_json::{Value, json};

use crate::command_line::byte_size;
use crate::command_line::driver_options::{DriverOptions, idle_strategy};
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::number::Grouped;
use crate::command_line::output::Output;
use crate::command_line::run_options::{self, JavaOptions, RunOptions};
use crate::contenders::throughput::{Bench, Publishers, Way};
use crate::measuring::connection::Connection;
use crate::measuring::handover::Probes;
use crate::measuring::measurement::Plan;
use crate::measuring::statistics::Statistics;
use crate::processes::java::Java;
use crate::reports::chart::{BarChart, Heading, settings_note};
use crate::reports::comparison::{self, Case};
use crate::reports::host;
use crate::reports::results::{self, Results};

/// The stream of the first run; each further one has the next.
const FIRST_STREAM_ID: i32 = 2001;

/// Kinds of publications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// One publisher on an exclusive publication, for each of the message lengths
    Exclusive,
    /// Several publishers on one publication, with messages of the first of the lengths
    Concurrent,
}

/// Compares how many messages a second go through Aeron over IPC: with the Rust API, with C's functions
/// called from Rust, with loops in C, and with Java.
///
/// All but Aeron's own Java sample use the same embedded media driver. The contenders take turns, each time on
/// a stream of its own. The rates of slices of 100 ms (1 s for the sample) are compared. All contenders count
/// messages longer than a fragment in fragments, without assembling them. Without Java its contenders are left
/// out.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns); lengths may end in k, m or g.
#[derive(Debug, Clone, Parser)]
#[command(name = "benchmark_ipc_throughput", version)]
pub struct ThroughputOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "CONTENDERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,rust-batches,c-functions,c-program,java,java-sample"
    )]
    pub contenders: Vec<Way>,

    /// The kinds of publications, separated by commas
    #[arg(
        long,
        value_name = "KINDS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "exclusive,concurrent"
    )]
    pub publications: Vec<Kind>,

    /// Lengths of messages in bytes, separated by commas, from 1 to 16m
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", value_delimiter = ',', num_args = 1,
          default_value = "32,64,128,512,1408,4096", value_parser = byte_size::parse_message_length)]
    pub message_lengths: Vec<usize>,

    /// Numbers of threads on a concurrent publication, separated by commas
    #[arg(long, allow_hyphen_values = true, value_name = "N", value_delimiter = ',', num_args = 1,
          default_value = "1,2,4", value_parser = RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub publishers: Vec<usize>,

    /// How many fragments a poll receives at the most
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "10",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=i32::MAX as u64))]
    pub fragment_limit: usize,

    /// Idle strategy of publishers and subscriber when they cannot go on; the Java sample spins all the same
    #[arg(long, value_name = "STRATEGY", default_value = "yield", value_parser = idle_strategy())]
    pub idle: IdleStrategyKind,

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

/// A case to be measured: the publishers, and the length of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Load {
    publishers: Publishers,
    message_length: usize,
}

impl Load {
    fn name(&self) -> String {
        match self.publishers {
            Publishers::Exclusive => format!("exclusive, {} B", self.message_length),
            Publishers::Concurrent(count) => {
                format!("{count} concurrent, {} B", self.message_length)
            }
        }
    }
}

impl ThroughputOptions {
    fn loads(&self) -> Vec<Load> {
        let exclusive = run_options::distinct(&self.message_lengths)
            .into_iter()
            .map(|message_length| Load { publishers: Publishers::Exclusive, message_length });
        let concurrent = run_options::distinct(&self.publishers).into_iter().filter_map(|count| {
            let message_length = *self.message_lengths.first()?;
            Some(Load { publishers: Publishers::Concurrent(count), message_length })
        });
        let wanted = |kind| self.publications.contains(&kind);
        exclusive
            .filter(|_| wanted(Kind::Exclusive))
            .chain(concurrent.filter(|_| wanted(Kind::Concurrent)))
            .collect()
    }

    fn plan(&self, load: Load, connection: &Connection) -> Plan {
        Plan {
            message_length: load.message_length,
            fragment_limit: self.fragment_limit,
            idle: self.idle,
            interval: RunOptions::SLICE,
            warmup: self.run.warmup,
            measured: Some(self.run.measure),
            timeout: connection.timeout(),
        }
    }
}

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &ThroughputOptions) -> Result<(), Failure> {
    options.run.check()?;
    let driver_context = options.driver.driver_context()?;
    let term_length = driver_context.ipc_term_buffer_length();
    for message_length in &options.message_lengths {
        run_options::check_message_length(
            "--message-lengths <BYTES>",
            *message_length,
            term_length,
        )?;
    }
    let results = Results::open(&options.run.results, "ipc-throughput")?;
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);

    let mut ways = run_options::distinct(&options.contenders);
    let java =
        Java::find_for(&mut ways, |contender| contender.is_java(), &options.java, &interrupt);
    let connection = Connection::embedded(driver_context)?;
    let bench = Bench {
        connection: &connection,
        java: java.as_ref(),
        java_warmup: options.java.java_warmup,
        interrupt: &interrupt,
    };
    let cases = compare(options, &ways, &bench, &mut output)
        .map_err(|failure| connection.explain(failure))?;
    connection.warn();

    for line in comparison::table(&cases, "msgs/sec") {
        output.line(line)?;
    }
    let notes = notes(options, term_length, java.as_ref());
    for kind in run_options::distinct(&options.publications) {
        let (part, prefix) = match kind {
            Kind::Exclusive => ("exclusive", "exclusive, "),
            Kind::Concurrent => ("concurrent", ""),
        };
        let of_kind =
            |case: &&Case| case.name.starts_with("exclusive") == (kind == Kind::Exclusive);
        let cases: Vec<&Case> = cases.iter().filter(of_kind).collect();
        chart(part, prefix, &cases, &ways, notes.clone()).write(&results.chart(part))?;
    }
    output.line(results.write(&report(options, term_length, &cases, java.as_ref()))?)
}

/// Runs all contenders of all cases in turn, again and again, and prints each run.
fn compare(
    options: &ThroughputOptions,
    ways: &[Way],
    bench: &Bench<'_>,
    output: &mut Output<'_>,
) -> Result<Vec<Case>, Failure> {
    let loads = options.loads();
    let contenders = |load: &Load| {
        let load = *load;
        ways.iter().copied().filter(move |way| load.publishers.have(*way))
    };
    let mut cases: Vec<Case> = loads
        .iter()
        .map(|load| Case::new(load.name(), contenders(load).map(|way| way.to_string())))
        .collect();
    let mut stream_ids = FIRST_STREAM_ID..;
    for run in 1..=options.run.runs {
        for (load, case) in loads.iter().zip(&mut cases) {
            for (way, contender) in
                comparison::in_turn(contenders(load).zip(&mut case.contenders), run)
            {
                let stream_id = stream_ids.next().unwrap_or(FIRST_STREAM_ID);
                let plan = options.plan(*load, bench.connection);
                let measured = Probes::around(bench.interrupt, || {
                    bench.measure(way, load.publishers, &plan, stream_id)
                })?;
                let Some((rates, probes)) = measured else { return Ok(cases) };
                if let Some(statistics) = Statistics::new(rates.iter().copied()) {
                    let median = Grouped::rounded(statistics.median());
                    let case = &case.name;
                    output
                        .line(format_args!("Run {run}, {case}, {way}: median {median} msgs/sec"))?;
                }
                contender.runs.push(rates);
                contender.probes.push(probes);
            }
        }
    }
    Ok(cases)
}

fn notes(options: &ThroughputOptions, term_length: usize, java: Option<&Java>) -> Vec<String> {
    let mut notes = results::notes();
    notes.extend(java.map(|java| java.versions().to_owned()));
    notes.push(settings_note(&[
        ("fragment limit", &options.fragment_limit),
        ("idle", &options.idle.name()),
        ("driver", &options.driver.threading().name()),
        ("terms", &byte_size::display(term_length)),
        ("runs", &options.run.runs),
    ]));
    notes
}

fn chart(part: &str, prefix: &str, cases: &[&Case], ways: &[Way], notes: Vec<String>) -> BarChart {
    let group = |case: &&Case| {
        let name = case.name.strip_prefix(prefix).unwrap_or(&case.name).to_owned();
        let bars = ways.iter().map(|way| {
            let name = way.to_string();
            case.contenders
                .iter()
                .find(|contender| contender.name == name)
                .and_then(|contender| contender.bar())
        });
        (name, bars.collect())
    };
    BarChart {
        heading: Heading { title: format!("IPC throughput, {part} publication"), notes },
        unit: "messages per second: median, quartiles".to_owned(),
        series: ways.iter().map(Way::to_string).collect(),
        groups: cases.iter().map(group).collect(),
        // Long messages are a hundred times as slow as short ones.
        has_common_scale: false,
    }
}

fn report(
    options: &ThroughputOptions,
    term_length: usize,
    cases: &[Case],
    java: Option<&Java>,
) -> Value {
    let mut versions = host::versions();
    versions["java"] = json!(java.map(Java::versions));
    let mut settings = options.run.to_json();
    settings["slice_seconds"] = json!(RunOptions::SLICE.as_secs_f64());
    settings["java_warmup_seconds"] = json!(options.java.java_warmup.as_secs_f64());
    settings["java_options"] = json!(options.java.java_option);
    settings["threading_mode"] = json!(options.driver.threading().name());
    settings["term_length"] = json!(term_length);
    settings["fragment_limit"] = json!(options.fragment_limit);
    settings["idle"] = json!(options.idle.name());
    json!({
        "program": "benchmark_ipc_throughput",
        "versions": versions,
        "host": host::describe(),
        "settings": settings,
        "unit": "messages per second",
        "cases": cases.iter().map(Case::to_json).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn options(arguments: &[&str]) -> ThroughputOptions {
        let arguments = [&["program"], arguments].concat();
        ThroughputOptions::try_parse_from(arguments).expect("valid arguments")
    }

    #[test]
    fn the_definition_is_consistent() {
        ThroughputOptions::command().debug_assert();
    }

    #[test]
    fn each_length_and_publisher_count_is_a_case() {
        let names: Vec<String> = options(&[]).loads().iter().map(Load::name).collect();
        assert_eq!(names.len(), 9);
        assert_eq!(names[0], "exclusive, 32 B");
        assert_eq!(names[8], "4 concurrent, 32 B");
        let exclusive = options(&["--publications", "exclusive", "--message-lengths", "64,64"]);
        assert_eq!(exclusive.loads().len(), 1);
    }

    #[test]
    fn the_sample_has_no_concurrent_publication() {
        assert!(Publishers::Exclusive.have(Way::JavaSample));
        assert!(!Publishers::Concurrent(1).have(Way::JavaSample));
        assert!(Publishers::Concurrent(1).have(Way::Java));
    }
}
