//! The program `benchmark_drivers`.

use std::path::PathBuf;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use serde_json::{Map, Value, json};

use crate::command_line::byte_size;
use crate::command_line::failure::Failure;
use crate::command_line::interrupt::Interrupt;
use crate::command_line::number::Grouped;
use crate::command_line::output::Output;
use crate::command_line::run_options::{self, JavaOptions, RunOptions};
use crate::contenders::applications::{self, Application, Figure, Samples};
use crate::contenders::latency::Transport;
use crate::measuring::statistics::Statistics;
use crate::processes::aeron_c::AeronC;
use crate::processes::driver_process::{self, Host, Launch, Launcher, Settings};
use crate::processes::java::Java;
use crate::reports::comparison;
use crate::reports::host;
use crate::reports::results::Results;

/// Round trips over IPC for each one over UDP, which takes as many times as long. The kernel counts processor time in
/// hundredths of a second, so a run must last longer than some of these.
const IPC_ROUND_TRIPS: u32 = 1000;

/// Runs Aeron's sample programs, unchanged, on media drivers: the C driver in the program media_driver, Aeron's own
/// C driver aeronmd, and Aeron's Java driver.
///
/// Each run starts a driver and two processes that send each other messages through it. All drivers have the same
/// settings. The drivers take turns. Without Java its driver and applications are left out. Needs a C compiler and
/// unzip. Linux only.
///
/// Durations are whole numbers with a unit (m, s, ms, us, ns).
#[derive(Debug, Clone, Parser)]
#[command(name = "benchmark_drivers", version, mut_arg("measure", |arg| arg.default_value("2s")))]
pub struct DriversOptions {
    /// The drivers, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "DRIVERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,c,java"
    )]
    pub drivers: Vec<Host>,

    /// The applications, separated by commas
    #[arg(
        long,
        value_name = "APPLICATIONS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "java-stream,c-stream,java-ping,c-ping"
    )]
    pub applications: Vec<Application>,

    /// Transports of the messages, separated by commas
    #[arg(
        long,
        value_name = "TRANSPORTS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "ipc,udp"
    )]
    pub transports: Vec<Transport>,

    /// Threading mode and idle strategy of the drivers, or a preset such as low-latency
    #[arg(long, value_name = "MODE/STRATEGY|PRESET", default_value = "shared/backoff")]
    pub settings: Settings,

    /// Length of each message in bytes, from 8 to 1376: one fragment
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = RangedU64ValueParser::<usize>::new().range(8..=1376))]
    pub message_length: usize,

    /// Length of a term buffer: a power of two from 64k to 1g [default: the drivers', 16m for UDP, 64m for IPC]
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES",
          value_parser = byte_size::parse_term_length)]
    pub term_length: Option<usize>,

    /// Round trips over UDP in each run, and as many before; over IPC a thousand times as many
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "5000",
          value_parser = RangedU64ValueParser::<u32>::new().range(100..=10_000_000))]
    pub round_trips: u32,

    /// Scheduling priority of the applications, which spin; with 0, a driver that wakes waits for milliseconds if there
    /// are only two cores
    #[arg(long, allow_hyphen_values = true, value_name = "0 TO 19", default_value = "19",
          value_parser = RangedU64ValueParser::<u8>::new().range(0..=19))]
    pub nice: u8,

    /// The program media_driver [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    pub media_driver: Option<PathBuf>,

    /// Rounds, times, results.
    #[command(flatten)]
    pub run: RunOptions,

    /// Java.
    #[command(flatten)]
    pub java: JavaOptions,
}

/// Runs the program.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &DriversOptions) -> Result<(), Failure> {
    options.run.check()?;
    if !cfg!(target_os = "linux") {
        let text = "this program reads /proc, which Linux alone has; the other benchmarks run here";
        return Err(Failure::Run(text.to_owned()));
    }
    let (media_driver, version) = driver_process::media_driver(options.media_driver.as_deref())?;
    let results = Results::open(&options.run.results, "drivers")?;
    let interrupt = Interrupt::on_signals()?;
    let mut output = Output::new(&interrupt);

    let mut hosts = run_options::distinct(&options.drivers);
    let mut applications = run_options::distinct(&options.applications);
    let needs_java = hosts.contains(&Host::Java) || applications.iter().any(|it| it.is_java());
    let java = Java::find_if(needs_java, &options.java, &interrupt);
    if java.is_none() {
        hosts.retain(|host| *host != Host::Java);
        applications.retain(|application| !application.is_java());
    }
    let has_c = applications.iter().any(|application| !application.is_java());
    let (mut aeronmd, mut c_programs) = (None, Vec::new());
    if has_c || hosts.contains(&Host::C) {
        let aeron = AeronC::compile()?;
        aeronmd = Some(aeron.aeronmd()?);
        c_programs = applications::compile_samples(&aeron)?;
    }
    let bench = DriversBench {
        options,
        launcher: Launcher {
            media_driver: &media_driver,
            aeronmd: aeronmd.as_deref(),
            java: java.as_ref(),
            term_length: options.term_length,
        },
        c_programs: &c_programs,
        java: java.as_ref(),
        interrupt: &interrupt,
    };
    let cases = bench.compare(&applications, &hosts, &mut output)?;
    for is_ping in [false, true] {
        for line in table(cases.iter().filter(|case| case.application.is_ping() == is_ping)) {
            output.line(line)?;
        }
    }
    output.line(results.write(&report(options, &cases, &version, java.as_ref()))?)
}

/// An application on some drivers.
struct Case {
    application: Application,
    transport: Transport,
    cells: Vec<Cell>,
}

/// The runs of an application on a driver.
struct Cell {
    host: Host,
    /// All have the same figures.
    runs: Vec<Vec<Figure>>,
}

struct DriversBench<'a> {
    options: &'a DriversOptions,
    launcher: Launcher<'a>,
    c_programs: &'a [PathBuf],
    java: Option<&'a Java>,
    interrupt: &'a Interrupt,
}

impl DriversBench<'_> {
    /// Runs all applications on all drivers in turn, again and again, and prints each run.
    fn compare(
        &self,
        applications: &[Application],
        hosts: &[Host],
        output: &mut Output<'_>,
    ) -> Result<Vec<Case>, Failure> {
        let mut cases = Vec::new();
        for &application in applications {
            for transport in run_options::distinct(&self.options.transports) {
                let cells = hosts.iter().map(|&host| Cell { host, runs: Vec::new() }).collect();
                cases.push(Case { application, transport, cells });
            }
        }
        let mut numbers = 0..;
        for round in 1..=self.options.run.runs {
            for Case { application, transport, cells } in &mut cases {
                for cell in comparison::in_turn(cells.iter_mut(), round) {
                    let number = numbers.next().unwrap_or(u32::MAX);
                    let measured = self.measure(*application, *transport, cell.host, number);
                    if self.interrupt.has_ended(&measured) {
                        break;
                    }
                    if let Some(run) = measured? {
                        output.line(format_args!(
                            "Run {round}, {application}, {}, {}: {}",
                            transport.name(),
                            cell.host,
                            run.iter().map(summary).collect::<Vec<_>>().join(", ")
                        ))?;
                        cell.runs.push(run);
                    }
                }
                if self.interrupt.is_requested() {
                    return Ok(cases);
                }
            }
        }
        Ok(cases)
    }

    /// One run, from the start of a driver to its end; `None` if the interrupt is requested meanwhile.
    fn measure(
        &self,
        application: Application,
        transport: Transport,
        host: Host,
        number: u32,
    ) -> Result<Option<Vec<Figure>>, Failure> {
        let launch = Launch {
            host,
            settings: &[self.options.settings],
            segmentation_offload: true,
            namespace: None,
            number,
        };
        let Some(mut driver) = self.launcher.start(&launch, self.interrupt)? else {
            return Ok(None);
        };
        let has_java = application.is_java() || host == Host::Java;
        let run = &self.options.run;
        let warmup = if has_java { self.options.java.java_warmup } else { run.warmup };
        let factor = if transport == Transport::Ipc { IPC_ROUND_TRIPS } else { 1 };
        let samples = Samples {
            c_programs: self.c_programs,
            java: self.java,
            nice: self.options.nice,
            message_length: self.options.message_length,
            round_trips: self.options.round_trips.saturating_mul(factor),
            measure: run.measure,
        };
        let measured = samples.measure(application, transport, &driver, warmup, self.interrupt);
        // If it has ended, its own words say more.
        driver.check()?;
        let measured = measured?;
        driver.end(self.interrupt)?;
        Ok(measured.filter(|_| !self.interrupt.is_requested()))
    }
}

impl Case {
    fn to_json(&self) -> Value {
        let cells: Vec<_> = self.cells.iter().map(|cell| cell.to_json(self.ratio(cell))).collect();
        json!({
            "application": self.application.to_string(),
            "transport": self.transport.name(),
            "drivers": cells,
        })
    }

    /// How many times as high as on a driver the first figure is on the first driver.
    fn ratio(&self, cell: &Cell) -> Option<f64> {
        let median = |cell: &Cell| Some(cell.statistics().first()?.1.median());
        Some(median(self.cells.first()?)? / median(cell)?)
    }
}

impl Cell {
    /// The statistics of each figure.
    fn statistics(&self) -> Vec<(&'static str, Statistics)> {
        let Some(first) = self.runs.first() else { return Vec::new() };
        let of = |index: usize| Statistics::new(self.runs.iter().map(|run| run[index].1));
        first
            .iter()
            .enumerate()
            .filter_map(|(index, &(name, _))| Some((name, of(index)?)))
            .collect()
    }

    fn to_json(&self, ratio: Option<f64>) -> Value {
        let statistics: Map<String, Value> = self
            .statistics()
            .into_iter()
            .map(|(name, statistics)| (name.to_owned(), statistics.to_json()))
            .collect();
        let run = |run: &Vec<Figure>| {
            run.iter().map(|&(name, value)| (name.to_owned(), json!(value))).collect::<Map<_, _>>()
        };
        json!({
            "name": self.host.to_string(),
            "statistics": statistics,
            "ratio_of_first_to_this": ratio,
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
        })
    }
}

/// The lines of a table, one for each driver and application. The driver's figures are medians.
fn table<'a>(cases: impl Iterator<Item = &'a Case>) -> Vec<String> {
    let mut lines = Vec::new();
    for case in cases {
        for cell in &case.cells {
            let (mut head, mut row) = (String::new(), String::new());
            for (name, statistics) in cell.statistics() {
                if is_drivers(name) {
                    head += &format!("{:>14}", label(name));
                    row += &format!("{:>14}", number(statistics.median()));
                } else {
                    head += &format!("{:>18}{:>14}{:>14}", label(name), "median", "highest");
                    let values = [statistics.min(), statistics.median(), statistics.max()];
                    let [min, median, max] = values.map(number);
                    row += &format!("{min:>18}{median:>14}{max:>14}");
                }
            }
            if lines.is_empty() && !head.is_empty() {
                lines.push(format!("{:<22}{:<6}{head}{:>10}", "", "", "first/it"));
            }
            let ratio =
                case.ratio(cell).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
            let name = format!("{}, {}", case.application, case.transport.name());
            lines.push(format!("{name:<22}{:<6}{row}{ratio:>10}", cell.host));
        }
    }
    lines
}

/// Returns whether a figure is of the driver alone.
fn is_drivers(name: &str) -> bool {
    matches!(name, "cpu_percent" | "resident_mib" | "private_mib")
}

/// A figure's name in tables, with the unit. Lowest, median and highest value follow those of applications.
fn label(name: &str) -> &str {
    match name {
        "messages_per_second" => "msgs/sec, lowest",
        "p50_micros" => "p50 µs, lowest",
        "p99_micros" => "p99 µs, lowest",
        "cpu_percent" => "CPU %",
        "resident_mib" => "resident MiB",
        "private_mib" => "private MiB",
        other => other,
    }
}

fn summary(&(name, value): &Figure) -> String {
    let label = label(name);
    format!("{} {}", number(value), label.strip_suffix(", lowest").unwrap_or(label))
}

fn number(value: f64) -> String {
    if value < 1000.0 { format!("{value:.2}") } else { Grouped::rounded(value).to_string() }
}

fn report(
    options: &DriversOptions,
    cases: &[Case],
    media_driver: &str,
    java: Option<&Java>,
) -> Value {
    let mut versions = host::versions();
    versions["media_driver"] = json!(media_driver);
    versions["java"] = json!(java.map(Java::versions));
    let mut settings = options.run.to_json();
    settings["java_warmup_seconds"] = json!(options.java.java_warmup.as_secs_f64());
    settings["java_options"] = json!(options.java.java_option);
    settings["driver"] = json!(options.settings.to_string());
    settings["message_length"] = json!(options.message_length);
    settings["term_length"] = json!(options.term_length);
    settings["udp_round_trips"] = json!(options.round_trips);
    settings["nice"] = json!(options.nice);
    json!({
        "program": "benchmark_drivers",
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

    #[test]
    fn the_definition_is_consistent() {
        DriversOptions::command().debug_assert();
    }

    #[test]
    fn rows_compare_medians_with_the_first_driver() {
        let cell = |host, rates: &[f64]| Cell {
            host,
            runs: rates
                .iter()
                .map(|&rate| vec![("messages_per_second", rate), ("cpu_percent", 50.0)])
                .collect(),
        };
        let case = Case {
            application: Application::JavaStream,
            transport: Transport::Udp,
            cells: vec![
                cell(Host::Rust, &[9000.0, 3000.0, 6000.0]),
                cell(Host::Java, &[2000.0]),
                cell(Host::C, &[]),
            ],
        };
        let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let rows: Vec<_> = table([&case].into_iter()).iter().map(words).collect();
        assert_eq!(
            rows,
            [
                "msgs/sec, lowest median highest CPU % first/it",
                "java-stream, udp Rust 3,000 6,000 9,000 50.00 1.00",
                "java-stream, udp Java 2,000 2,000 2,000 50.00 3.00",
                "java-stream, udp C -",
            ]
        );
        let json = case.to_json();
        assert_eq!(json["drivers"][1]["ratio_of_first_to_this"], 3.0);
        assert_eq!(json["drivers"][0]["statistics"]["messages_per_second"]["min"], 3000.0);
    }
}
