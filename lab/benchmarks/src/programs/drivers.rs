//! Existing applications on media drivers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ::rusteron_sys as sys;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use rusteron_client::CncFile;
use rusteron_core::program::Failure;
use rusteron_test_support::programs::Process;
use rusteron_test_support::without_settings;

use super::comparison::{Comparison, cases, pairs};
use crate::command_line::choice::{Contender, Transport, among, option_name};
use crate::command_line::run_options::{self, RunOptions};
use crate::contenders::latency;
use crate::processes::aeron_c::AeronC;
use crate::processes::driver_process::{DriverProcess, Launcher, threads};
use crate::processes::environment::Environment;
use crate::processes::process_usage::Usage;
use crate::reports::results::Figure;

/// Round trips over IPC for each one over UDP, which takes as many times as long. The kernel counts
/// processor time in hundredths of a second, so a run must last longer than some of these.
const IPC_ROUND_TRIPS: u32 = 1000;

/// How long a program may be silent. Round trips can take milliseconds each, and are printed at the
/// end.
const DEADLINE: Duration = Duration::from_secs(300);

/// How often a wait looks for a stream.
const TICK: Duration = Duration::from_millis(10);

/// The type of the counters with subscribers' positions.
const SUBSCRIBER_POSITION: i32 = sys::AERON_COUNTER_SUBSCRIPTION_POSITION_TYPE_ID as i32;

const MESSAGE_LENGTH: usize = 32;

/// The bytes of a message in a stream: its header is as long as itself, and both fill an aligned
/// frame.
const FRAME_LENGTH: f64 = 64.0;

/// Runs Aeron's sample programs, unchanged, on media drivers: the program media_driver, Aeron's own
/// C driver aeronmd, and Aeron's Java driver.
///
/// Each run starts a driver and two processes that send each other messages of 32 bytes through it.
/// All drivers have one thread that backs off. Processor time and memory are the driver's. The
/// applications spin, and have a low priority: otherwise a driver that wakes waits for
/// milliseconds if there are only two cores. Needs a C compiler and unzip. Linux only.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("measure", |arg| arg.default_value("2s")))]
pub struct DriversOptions {
    /// The drivers, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', default_value = "rust,c,java",
          value_parser = among("rust,c,java"))]
    contenders: Vec<Contender>,

    /// The applications, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "java-stream,c-stream,java-ping,c-ping")]
    applications: Vec<Application>,

    /// Transports of the messages, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "ipc,udp")]
    transports: Vec<Transport>,

    /// Round trips over UDP in each run, and as many before; over IPC a thousand times as many
    #[arg(long, value_name = "N", default_value = "5000",
          value_parser = RangedU64ValueParser::<u32>::new().range(100..=1_000_000))]
    round_trips: u32,

    /// The niceness of the applications, which spin; on a busy machine 19 can starve them
    #[arg(long, value_name = "N", default_value = "19",
          value_parser = RangedU64ValueParser::<u8>::new().range(0..=19))]
    niceness: u8,

    #[command(flatten)]
    run: RunOptions,
}

/// Two programs that send each other messages, or one to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Application {
    /// StreamingPublisher and RateSubscriber, in Java
    JavaStream,
    /// streaming_publisher and rate_subscriber, in C
    CStream,
    /// Ping and Pong, in Java
    JavaPing,
    /// cping and cpong, in C
    CPing,
}

impl Application {
    fn is_java(self) -> bool {
        matches!(self, Self::JavaStream | Self::JavaPing)
    }

    /// Returns whether it measures round trips, and not a rate.
    fn is_ping(self) -> bool {
        matches!(self, Self::JavaPing | Self::CPing)
    }

    /// The two programs. The first one waits for the messages of the other.
    fn programs(self) -> [&'static str; 2] {
        match self {
            Self::JavaStream => ["RateSubscriber", "StreamingPublisher"],
            Self::CStream => ["rate_subscriber", "streaming_publisher"],
            Self::JavaPing => ["Pong", "Ping"],
            Self::CPing => ["cpong", "cping"],
        }
    }
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &DriversOptions) -> Result<(), Failure> {
    run_options::check_linux()?;
    let mut applications = options.applications.clone();
    let comparison = Comparison::start("drivers", &options.run, &options.contenders)?;
    if applications.iter().any(|it| it.is_java()) && !comparison.environment.has_java()? {
        applications.retain(|it| !it.is_java());
    }
    let environment = comparison.environment.clone();
    let has_c = applications.iter().any(|application| !application.is_java());
    let (mut aeronmd, mut c_programs) = (None, Vec::new());
    if has_c || comparison.contenders.contains(&Contender::C) {
        let aeron = AeronC::compile()?;
        aeronmd = Some(aeron.aeronmd()?);
        c_programs = compile_samples(&aeron)?;
    }
    let launcher = Launcher::new(aeronmd, &environment)?;
    let name = |&(application, transport): &(Application, Transport)| {
        format!("{}, {transport}", option_name(&application))
    };
    let cases = cases(pairs(&applications, &options.transports), name, &comparison.contenders);
    comparison.compare(&cases, |&(application, transport), host, _| {
        let mut driver = launcher.start(host, &threads("shared/backoff"), None)?;
        let factor = if transport == Transport::Ipc { IPC_ROUND_TRIPS } else { 1 };
        let samples = Samples {
            c_programs: &c_programs,
            environment: &environment,
            driver: &driver,
            round_trips: options.round_trips.saturating_mul(factor),
            niceness: options.niceness,
        };
        let slower = if application.is_java() { Contender::Java } else { host };
        let measured = samples.measure(application, transport, environment.warmup(slower));
        // If it has ended, its own words say more.
        driver.check()?;
        let measured = measured?;
        driver.end(&environment.interrupt)?;
        Ok(measured)
    })
}

/// Compiles Aeron's samples in C.
fn compile_samples(aeron: &AeronC) -> Result<Vec<PathBuf>, Failure> {
    let samples = AeronC::tree().join("aeron-samples/src/main/c");
    let histogram = unpack_histogram(aeron.dir())?;
    let include = format!("-I{}", histogram.join("include").display());
    let applications = Application::value_variants().iter().filter(|it| !it.is_java());
    applications
        .flat_map(|application| application.programs())
        .map(|name| {
            let mut sources =
                vec![samples.join(name).with_extension("c"), samples.join("sample_util.c")];
            if name == "cping" {
                let files = ["hdr_histogram.c", "hdr_histogram_log_no_op.c"];
                sources.extend(files.map(|file| histogram.join("src").join(file)));
            }
            aeron.program(name, &sources, &[&include])
        })
        .collect()
}

/// Unpacks the library HdrHistogram_c, and returns its folder.
fn unpack_histogram(dir: &Path) -> Result<PathBuf, Failure> {
    let packages = AeronC::tree().join("cppbuild");
    let unreadable = |error| Failure::run(packages.display(), error);
    let mut names = fs::read_dir(&packages).map_err(unreadable)?.filter_map(Result::ok);
    let package = names
        .find(|entry| entry.file_name().to_string_lossy().starts_with("HdrHistogram_c"))
        .ok_or_else(|| Failure::Run(format!("{} has no HdrHistogram_c", packages.display())))?
        .path();
    let status = Command::new("unzip").args(["-qo", "-d"]).arg(dir).arg(&package).status();
    match status {
        Ok(status) if status.success() => Ok(dir.join(package.file_stem().unwrap_or_default())),
        Ok(status) => Err(Failure::run(format_args!("unzip {}", package.display()), status)),
        Err(error) => Err(Failure::run("cannot run `unzip`", error)),
    }
}

/// The applications' programs, and the driver of a run.
#[derive(Debug)]
struct Samples<'a> {
    /// The programs in C ([`compile_samples`]); none if no application is in C.
    c_programs: &'a [PathBuf],
    environment: &'a Environment,
    driver: &'a DriverProcess,
    /// How many round trips to measure, and to make before.
    round_trips: u32,
    niceness: u8,
}

impl Samples<'_> {
    /// Lets an application run. Returns its rate or its round trips, and then the driver's
    /// processor time and memory. Streams are measured after `warmup`.
    fn measure(
        &self,
        application: Application,
        transport: Transport,
        warmup: Duration,
    ) -> Result<Vec<Figure>, Failure> {
        let channels = latency::channels(transport);
        let [answering, asking] = application.programs();
        let mut answering = self.start(application, answering, &channels)?;
        let mut asking = self.start(application, asking, &channels)?;
        let measured = if application.is_ping() {
            self.measure_round_trips(&mut asking, &mut answering)
        } else {
            self.measure_stream(&mut [&mut answering, &mut asking], warmup)
        };
        // If it has ended, its own words say more.
        answering.check()?;
        measured
    }

    fn start(
        &self,
        application: Application,
        name: &str,
        channels: &[String],
    ) -> Result<Process, Failure> {
        let command = match application.is_java() {
            true => self.java_command(name, channels)?,
            false => self.c_command(name, channels)?,
        };
        let mut nice = without_settings("nice");
        // The programs in C would keep lines back until they have many.
        nice.args(["-n", &self.niceness.to_string(), "stdbuf", "-oL"])
            .arg(command.get_program())
            .args(command.get_args());
        Process::start(name, nice, DEADLINE)
    }

    fn java_command(&self, name: &str, channels: &[String]) -> Result<Command, Failure> {
        let options = [
            format!("-Daeron.dir={}", self.driver.aeron_dir().display()),
            format!("-Daeron.sample.channel={}", channels[0]),
            format!("-Daeron.sample.ping.channel={}", channels[0]),
            format!("-Daeron.sample.pong.channel={}", channels[1]),
            format!("-Daeron.sample.messageLength={MESSAGE_LENGTH}"),
            // Warm-up has ten iterations of as many messages.
            format!("-Daeron.sample.warmup.messages={}", self.round_trips.div_ceil(10)),
            format!("-Daeron.sample.messages={}", self.messages(name)),
            "-Duser.language=en".to_owned(),
        ];
        let main = format!("io.aeron.samples.{name}");
        Ok(self.environment.java()?.command(&main, &options, &[]))
    }

    fn c_command(&self, name: &str, channels: &[String]) -> Result<Command, Failure> {
        let is_it = |path: &&PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            file.rsplit_once('-').is_some_and(|(program, _)| program == name)
        };
        let path = self.c_programs.iter().find(is_it);
        let path = path.ok_or_else(|| Failure::Run(format!("there is no {name}")))?;
        let mut command = Command::new(path);
        command.arg("-p").arg(self.driver.aeron_dir()).args(["-c", &channels[0]]);
        if matches!(name, "cping" | "cpong") {
            command.args(["-C", &channels[1]]);
        }
        if matches!(name, "cping" | "streaming_publisher") {
            command.args([
                "-L",
                &MESSAGE_LENGTH.to_string(),
                "-m",
                &self.messages(name).to_string(),
            ]);
        }
        if name == "cping" {
            command.args(["-w", &self.round_trips.to_string()]);
        }
        Ok(command)
    }

    /// How many messages a program sends. Streams are measured from outside, and shall not end by
    /// themselves.
    fn messages(&self, name: &str) -> i64 {
        let is_stream = matches!(name, "StreamingPublisher" | "streaming_publisher");
        if is_stream { 1 << 50 } else { self.round_trips.into() }
    }

    /// The driver's figures since a sample.
    fn figures_since(&self, before: &Usage) -> Result<[Figure; 3], Failure> {
        let now = Usage::of(self.driver.pid())?;
        Ok([
            ("CPU %", now.cpu_since(before)),
            ("resident MiB", now.resident),
            ("private MiB", now.private),
        ])
    }

    /// Lets a program make its round trips, and reads the distribution that it prints.
    fn measure_round_trips(
        &self,
        asking: &mut Process,
        answering: &mut Process,
    ) -> Result<Vec<Figure>, Failure> {
        let mut before = Usage::of(self.driver.pid())?;
        let mut driver = None;
        let mut lines = Vec::new();
        while lines.last().is_none_or(|(percentile, _)| *percentile < 1.0) {
            let line = asking.line_while(&self.environment.interrupt, || answering.check())?;
            if line.starts_with("Pinging ") {
                before = Usage::of(self.driver.pid())?;
            }
            lines.extend(parse_percentile(&line));
            if driver.is_none() && !lines.is_empty() {
                driver = Some(self.figures_since(&before)?);
            }
        }
        let mut figures = Vec::from(percentiles(&lines));
        figures.extend(driver.into_iter().flatten());
        Ok(figures)
    }

    /// Measures a stream between two programs, which the driver's counters show.
    fn measure_stream(
        &self,
        programs: &mut [&mut Process; 2],
        warmup: Duration,
    ) -> Result<Vec<Figure>, Failure> {
        let cnc = CncFile::open(self.driver.aeron_dir(), DEADLINE)?;
        self.await_position_after(0, &cnc, programs)?;
        self.environment.sleep(warmup)?;
        let lost = || Failure::Run("the stream has ended".to_owned());
        let usage = Usage::of(self.driver.pid())?;
        let before = position(&cnc).ok_or_else(lost)?;
        let start = Instant::now();
        self.environment.sleep(self.environment.options.measure)?;
        // On a busy machine a short time may see no message.
        self.await_position_after(before, &cnc, programs)?;
        let bytes = position(&cnc).ok_or_else(lost)? - before;
        let seconds = start.elapsed().as_secs_f64();
        let mut figures = vec![("msgs/s", bytes as f64 / FRAME_LENGTH / seconds)];
        figures.extend(self.figures_since(&usage)?);
        programs.iter_mut().try_for_each(|program| program.check())?;
        Ok(figures)
    }

    /// Waits until the subscriber is beyond a position.
    fn await_position_after(
        &self,
        reached: i64,
        cnc: &CncFile,
        programs: &mut [&mut Process; 2],
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + DEADLINE;
        while position(cnc).is_none_or(|position| position <= reached) {
            programs.iter_mut().try_for_each(|program| program.check())?;
            if Instant::now() >= deadline {
                return Err(Failure::Run("no messages arrive".to_owned()));
            }
            self.environment.sleep(TICK)?;
        }
        Ok(())
    }
}

/// Percentiles of a distribution. As the programs print only some, each is the first one that is
/// not below.
fn percentiles(lines: &[(f64, f64)]) -> [Figure; 2] {
    [("p50 µs", 0.5), ("p99 µs", 0.99)].map(|(name, least)| {
        let line = lines.iter().find(|(percentile, _)| *percentile >= least);
        (name, line.map_or(0.0, |(_, micros)| *micros))
    })
}

/// Reads a line of a distribution: microseconds, percentile as a fraction, samples so far, one more
/// number but at the end.
fn parse_percentile(line: &str) -> Option<(f64, f64)> {
    let fields: Option<Vec<f64>> =
        line.split_ascii_whitespace().map(|field| field.parse().ok()).collect();
    match *fields? {
        [micros, percentile, _] | [micros, percentile, _, _] => Some((percentile, micros)),
        _ => None,
    }
}

/// The position of the only subscriber.
fn position(cnc: &CncFile) -> Option<i64> {
    let mut counters = cnc.counters().iter();
    counters.find(|counter| counter.type_id == SUBSCRIBER_POSITION).map(|counter| counter.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_read_from_the_lines_of_both_languages() {
        let text = "Pinging 2000 messages of length 32 bytes\n\
                    \x20      Value   Percentile   TotalCount 1/(1-Percentile)\n\n\
                    \x20     71.039     0.000000            1         1.00\n\
                    \x20    149.631     0.500000         1034         2.00\n\
                    \x20    149.887 0.550000000000       1102           2.22\n\
                    \x20   2961.407     0.990625         1981       106.67\n\
                    \x20   6012.927     1.000000         2000          inf\n\
                    #[Mean    =      531.490, StdDeviation   =      996.371]\n";
        let lines: Vec<_> = text.lines().filter_map(parse_percentile).collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(percentiles(&lines), [("p50 µs", 149.631), ("p99 µs", 2961.407)]);
        let last = parse_percentile("    6012.927 1.000000000000       2000");
        assert_eq!(last, Some((1.0, 6012.927)));
    }
}
