//! Existing applications on media drivers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fmt, fs};

use ::rusteron_sys as sys;
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use rusteron_client::CncFile;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_test_support::programs::Process;

use super::comparison::{Case, Comparison};
use crate::command_line::choice::Transport;
use crate::command_line::run_options::{self, RunOptions, distinct};
use crate::contenders::latency;
use crate::processes::aeron_c::AeronC;
use crate::processes::driver_process::{
    self, DriverProcess, Host, Launch, Launcher, Settings, remove_driver_variables,
};
use crate::processes::java::Java;
use crate::processes::process_usage;
use crate::reports::results::Figure;

/// Round trips over IPC for each one over UDP, which takes as many times as long. The kernel counts processor time in
/// hundredths of a second, so a run must last longer than some of these.
const IPC_ROUND_TRIPS: u32 = 1000;

/// Runs Aeron's sample programs, unchanged, on media drivers: the program media_driver, Aeron's own C driver aeronmd,
/// and Aeron's Java driver.
///
/// Each run starts a driver and two processes that send each other messages through it. All drivers have the same
/// settings. Processor time and memory are the driver's. Needs a C compiler and unzip. Linux only.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("measure", |arg| arg.default_value("2s")))]
pub struct DriversOptions {
    /// The drivers, separated by commas; ratios are of the first to the others
    #[arg(
        long,
        value_name = "DRIVERS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "rust,c,java"
    )]
    contenders: Vec<Host>,

    /// The applications, separated by commas
    #[arg(
        long,
        value_name = "APPLICATIONS",
        value_delimiter = ',',
        num_args = 1,
        default_value = "java-stream,c-stream,java-ping,c-ping"
    )]
    applications: Vec<Application>,

    /// Transports of the messages, separated by commas
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "ipc,udp")]
    transports: Vec<Transport>,

    /// Threading mode and idle strategy of the drivers, or a preset such as low-latency
    #[arg(long, value_name = "MODE/STRATEGY|PRESET", default_value = "shared/backoff")]
    settings: Settings,

    /// Length of each message in bytes, from 8 to 1376: one fragment
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = RangedU64ValueParser::<usize>::new().range(8..=1376))]
    message_length: usize,

    /// Length of a term buffer: a power of two from 64k to 1g [default: the drivers', 16m for UDP, 64m for IPC]
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES",
          value_parser = run_options::parse_term_length)]
    term_length: Option<usize>,

    /// Round trips over UDP in each run, and as many before; over IPC a thousand times as many
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "5000",
          value_parser = RangedU64ValueParser::<u32>::new().range(100..=10_000_000))]
    round_trips: u32,

    /// Scheduling priority of the applications, which spin; with 0, a driver that wakes waits for milliseconds if there
    /// are only two cores
    #[arg(long, allow_hyphen_values = true, value_name = "0 TO 19", default_value = "19",
          value_parser = RangedU64ValueParser::<u8>::new().range(0..=19))]
    nice: u8,

    /// The program media_driver [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    media_driver: Option<PathBuf>,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used, before a driver is started; [`Failure::Run`]
/// for everything else.
pub fn run(options: &DriversOptions) -> Result<(), Failure> {
    run_options::check_linux()?;
    let media_driver = driver_process::media_driver(options.media_driver.as_deref())?;
    let mut comparison = Comparison::start("drivers", &options.run)?;
    let interrupt = comparison.interrupt();
    let mut hosts = distinct(&options.contenders);
    let mut applications = distinct(&options.applications);
    let needs_java = hosts.contains(&Host::Java) || applications.iter().any(|it| it.is_java());
    let java = comparison.find_java(needs_java);
    if java.is_none() {
        hosts.retain(|host| *host != Host::Java);
        applications.retain(|application| !application.is_java());
    }
    let has_c = applications.iter().any(|application| !application.is_java());
    let (mut aeronmd, mut c_programs) = (None, Vec::new());
    if has_c || hosts.contains(&Host::C) {
        let aeron = AeronC::compile()?;
        aeronmd = Some(aeron.aeronmd()?);
        c_programs = compile_samples(&aeron)?;
    }
    let launcher = Launcher {
        media_driver: &media_driver,
        aeronmd: aeronmd.as_deref(),
        java: java.as_ref(),
        term_length: options.term_length,
    };
    let mut cases = Vec::new();
    for application in applications {
        for transport in distinct(&options.transports) {
            cases.push(Case {
                name: format!("{application}, {}", transport.name()),
                conditions: (application, transport),
                contenders: hosts.clone(),
            });
        }
    }
    let mut numbers = 0..;
    comparison.compare(&cases, |&(application, transport), host| {
        let number = numbers.next().unwrap_or(u32::MAX);
        let launch = Launch {
            host,
            settings: &[options.settings],
            segmentation_offload: true,
            namespace: None,
            number,
        };
        let mut driver = launcher.start(&launch, &interrupt)?;
        let factor = if transport == Transport::Ipc { IPC_ROUND_TRIPS } else { 1 };
        let samples = Samples {
            c_programs: &c_programs,
            java: java.as_ref(),
            options,
            round_trips: options.round_trips.saturating_mul(factor),
        };
        let warmup = options.run.warmup_with(application.is_java() || host == Host::Java);
        let measured = samples.measure(application, transport, &driver, warmup, &interrupt);
        // If it has ended, its own words say more.
        driver.check()?;
        let measured = measured?;
        driver.end(&interrupt)?;
        Ok(measured)
    })?;
    comparison.finish()
}

/// How long a program may be silent. Round trips can take milliseconds each, and are printed at the end.
const DEADLINE: Duration = Duration::from_secs(300);

/// How often a wait looks for a stream.
const TICK: Duration = Duration::from_millis(10);

/// The type of the counters with subscribers' positions.
const SUBSCRIBER_POSITION: i32 = sys::AERON_COUNTER_SUBSCRIPTION_POSITION_TYPE_ID as i32;

const FRAME_HEADER_LENGTH: usize = 32;

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
    /// Returns whether it is in Java.
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

/// The name of the option.
impl fmt::Display for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
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
        Ok(status) if status.success() => {}
        Ok(status) => {
            return Err(Failure::run(format_args!("unzip {}", package.display()), status));
        }
        Err(error) => return Err(Failure::run("cannot run `unzip`", error)),
    }
    Ok(dir.join(package.file_stem().unwrap_or_default()))
}

/// The settings of all applications, and their programs.
#[derive(Debug)]
struct Samples<'a> {
    /// The programs in C ([`compile_samples`]); none if no application is in C.
    c_programs: &'a [PathBuf],
    /// Java, if it is there and wanted.
    java: Option<&'a Java>,
    options: &'a DriversOptions,
    /// How many round trips to measure, and to make before.
    round_trips: u32,
}

impl Samples<'_> {
    /// Lets an application run on a driver. Returns its rate or its round trips, and then the driver's processor time
    /// and memory. Streams are measured after `warmup`.
    fn measure(
        &self,
        application: Application,
        transport: Transport,
        driver: &DriverProcess,
        warmup: Duration,
        interrupt: &ShutdownSignal,
    ) -> Result<Vec<Figure>, Failure> {
        let channels = latency::channels(transport)?;
        let [answering, asking] = application.programs();
        let start = |name| self.start(application, name, &channels, driver.aeron_dir());
        let mut answering = start(answering)?;
        let mut asking = start(asking)?;
        let measured = if application.is_ping() {
            round_trips(&mut asking, driver.pid(), interrupt)
        } else {
            let stream = Stream { driver, frame_length: frame_length(self.options.message_length) };
            stream.measure(
                [&mut answering, &mut asking],
                warmup,
                self.options.run.measure,
                interrupt,
            )
        };
        // If it has ended, its own words say more.
        answering.check()?;
        measured
    }

    fn start(
        &self,
        application: Application,
        name: &str,
        channels: &[String; 2],
        aeron_dir: &Path,
    ) -> Result<Process, Failure> {
        let command = match application.is_java() {
            true => self.java_command(name, channels, aeron_dir)?,
            false => self.c_command(name, channels, aeron_dir)?,
        };
        let mut nice = Command::new("nice");
        nice.arg("-n").arg(self.options.nice.to_string());
        // The programs in C would keep lines back until they have many.
        nice.args(["stdbuf", "-oL"]).arg(command.get_program()).args(command.get_args());
        remove_driver_variables(&mut nice);
        Process::start(name.to_owned(), nice, DEADLINE)
    }

    fn java_command(
        &self,
        name: &str,
        [to, from]: &[String; 2],
        aeron_dir: &Path,
    ) -> Result<Command, Failure> {
        let java = self.java.ok_or_else(|| Failure::Run("there is no Java".to_owned()))?;
        // Warm-up has ten iterations of as many messages.
        let warmup = self.round_trips.div_ceil(10);
        let options = [
            format!("-Daeron.dir={}", aeron_dir.display()),
            format!("-Daeron.sample.channel={to}"),
            format!("-Daeron.sample.ping.channel={to}"),
            format!("-Daeron.sample.pong.channel={from}"),
            format!("-Daeron.sample.messageLength={}", self.options.message_length),
            format!("-Daeron.sample.warmup.messages={warmup}"),
            // Streams are measured from outside, and end when they have been.
            format!("-Daeron.sample.messages={}", self.messages(name == "StreamingPublisher")),
            "-Duser.language=en".to_owned(),
        ];
        Ok(java.command(&format!("io.aeron.samples.{name}"), &options, &[]))
    }

    fn c_command(
        &self,
        name: &str,
        [to, from]: &[String; 2],
        aeron_dir: &Path,
    ) -> Result<Command, Failure> {
        let is_it = |path: &&PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            file.rsplit_once('-').is_some_and(|(program, _)| program == name)
        };
        let path = self.c_programs.iter().find(is_it);
        let path = path.ok_or_else(|| Failure::Run(format!("there is no {name}")))?;
        let mut command = Command::new(path);
        command.arg("-p").arg(aeron_dir).args(["-c", to]);
        let length = self.options.message_length.to_string();
        let messages = self.messages(name == "streaming_publisher").to_string();
        match name {
            "cpong" => command.args(["-C", from]),
            "cping" => {
                let warmup = self.round_trips.to_string();
                command.args(["-C", from, "-L", &length, "-w", &warmup, "-m", &messages])
            }
            "streaming_publisher" => command.args(["-L", &length, "-m", &messages]),
            _ => &mut command,
        };
        Ok(command)
    }

    /// How many messages a program sends. A publisher shall not end by itself.
    fn messages(&self, is_publisher: bool) -> i64 {
        if is_publisher { 1 << 50 } else { self.round_trips.into() }
    }
}

/// The bytes of a message in a stream.
fn frame_length(message_length: usize) -> usize {
    (FRAME_HEADER_LENGTH + message_length).next_multiple_of(FRAME_HEADER_LENGTH)
}

/// Measures the driver's processor time from a moment on.
struct Load {
    pid: u32,
    start: Instant,
    cpu: Duration,
}

impl Load {
    fn start(pid: u32) -> Result<Self, Failure> {
        let cpu = process_usage::cpu_time(pid)?;
        Ok(Self { pid, start: Instant::now(), cpu })
    }

    /// The driver's figures until now.
    fn figures(&self) -> Result<[Figure; 3], Failure> {
        const MEBIBYTE: f64 = (1 << 20) as f64;
        let cpu = process_usage::cpu_time(self.pid)?.saturating_sub(self.cpu).as_secs_f64();
        let percent = 100.0 * cpu / self.start.elapsed().as_secs_f64();
        let (resident, shared) = process_usage::resident(self.pid)?;
        Ok([
            ("CPU %", percent),
            ("resident MiB", resident as f64 / MEBIBYTE),
            ("private MiB", resident.saturating_sub(shared) as f64 / MEBIBYTE),
        ])
    }
}

/// Lets a program make its round trips, and reads the distribution that it prints.
fn round_trips(
    asking: &mut Process,
    pid: u32,
    interrupt: &ShutdownSignal,
) -> Result<Vec<Figure>, Failure> {
    let mut load = Load::start(pid)?;
    let mut driver = None;
    let mut percentiles = Percentiles::default();
    loop {
        let Some(line) = asking.line(interrupt)? else { return Err(Failure::Interrupted) };
        if line.starts_with("Pinging ") {
            load = Load::start(pid)?;
            continue;
        }
        let Some((percentile, micros)) = parse_percentile(&line) else { continue };
        if driver.is_none() {
            driver = Some(load.figures()?);
        }
        percentiles.add(percentile, micros);
        if let (Some([p50, p99]), true) = (percentiles.values(), percentile >= 1.0) {
            let mut figures = vec![("p50 µs", p50), ("p99 µs", p99)];
            figures.extend(driver.into_iter().flatten());
            return Ok(figures);
        }
    }
}

/// The percentiles of a distribution. As the programs print only some, each is the first one that is not below.
#[derive(Debug, Default)]
struct Percentiles {
    values: [Option<f64>; 2],
}

impl Percentiles {
    fn add(&mut self, percentile: f64, micros: f64) {
        for (value, least) in self.values.iter_mut().zip([0.5, 0.99]) {
            if percentile >= least {
                value.get_or_insert(micros);
            }
        }
    }

    fn values(&self) -> Option<[f64; 2]> {
        Some([self.values[0]?, self.values[1]?])
    }
}

/// Reads a line of a distribution: microseconds, percentile as a fraction, samples so far, one more number but at the
/// end.
fn parse_percentile(line: &str) -> Option<(f64, f64)> {
    let fields: Option<Vec<f64>> =
        line.split_ascii_whitespace().map(|field| field.parse().ok()).collect();
    match *fields? {
        [micros, percentile, _] | [micros, percentile, _, _] => Some((percentile, micros)),
        _ => None,
    }
}

/// A stream between two programs, which the driver's counters show.
struct Stream<'a> {
    driver: &'a DriverProcess,
    frame_length: usize,
}

impl Stream<'_> {
    fn measure(
        &self,
        mut programs: [&mut Process; 2],
        warmup: Duration,
        measure: Duration,
        interrupt: &ShutdownSignal,
    ) -> Result<Vec<Figure>, Failure> {
        let cnc = CncFile::open(self.driver.aeron_dir(), DEADLINE)?;
        if !await_position_after(0, &cnc, &mut programs, interrupt)? {
            return Err(Failure::Interrupted);
        }
        if interrupt.wait_timeout(warmup) {
            return Err(Failure::Interrupted);
        }
        let lost = || Failure::Run("the stream has ended".to_owned());
        let load = Load::start(self.driver.pid())?;
        let before = position(&cnc).ok_or_else(lost)?;
        let start = Instant::now();
        if interrupt.wait_timeout(measure) {
            return Err(Failure::Interrupted);
        }
        // On a busy machine a short time may see no message.
        if !await_position_after(before, &cnc, &mut programs, interrupt)? {
            return Err(Failure::Interrupted);
        }
        let bytes = position(&cnc).ok_or_else(lost)? - before;
        let seconds = start.elapsed().as_secs_f64();
        let mut figures = vec![("msgs/s", bytes as f64 / self.frame_length as f64 / seconds)];
        figures.extend(load.figures()?);
        programs.iter_mut().try_for_each(|program| program.check())?;
        Ok(figures)
    }
}

/// Waits until the subscriber is beyond a position. Returns `false` if interrupted.
fn await_position_after(
    reached: i64,
    cnc: &CncFile,
    programs: &mut [&mut Process; 2],
    interrupt: &ShutdownSignal,
) -> Result<bool, Failure> {
    let deadline = Instant::now() + DEADLINE;
    while position(cnc).is_none_or(|position| position <= reached) {
        programs.iter_mut().try_for_each(|program| program.check())?;
        if Instant::now() >= deadline {
            return Err(Failure::Run("no messages arrive".to_owned()));
        }
        if interrupt.wait_timeout(TICK) {
            return Ok(false);
        }
    }
    Ok(true)
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
        let mut percentiles = Percentiles::default();
        let lines: Vec<_> = text.lines().filter_map(parse_percentile).collect();
        assert_eq!(lines.len(), 5);
        lines.iter().for_each(|&(percentile, micros)| percentiles.add(percentile, micros));
        assert_eq!(percentiles.values(), Some([149.631, 2961.407]));
        assert_eq!(
            parse_percentile("    6012.927 1.000000000000       2000"),
            Some((1.0, 6012.927))
        );
    }

    #[test]
    fn frames_are_aligned() {
        assert_eq!([8, 32, 33, 1376].map(frame_length), [64, 64, 96, 1408]);
    }
}
