//! Round trips over UDP between two processes of one busy thread each.

use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use hdrhistogram::Histogram;
use rusteron_client::{
    Aeron, CloseCause, Context, ExclusivePublication, Header, IdleStrategyKind, OfferError,
    PollError, Registration, Resource, Subscription,
};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_media_driver::{DriverContext, DriverInvoker, Preset, ThreadingMode};
use rusteron_test_support::networks::Network;
use rusteron_test_support::programs::Process;

use super::comparison::{Case, Comparison, percentiles};
use crate::command_line::choice::{Route, display_in_words};
use crate::command_line::run_options::{self, RunOptions, distinct};
use crate::contenders::ping_pong::{self, End, Pace, Plan};
use crate::measuring::connection::free_endpoints;
use crate::measuring::message_path::{FRAGMENT_LIMIT, Publish, Receive};
use crate::processes::aeron_c::AeronC;
use crate::processes::driver_process::{DriverDir, in_network};
use crate::processes::java::Java;

/// Compares round trips over UDP between two processes: each is one busy thread that runs application, client and media
/// driver in one loop. The bound is a pair of connected UDP sockets without Aeron.
///
/// The next message is sent when the last is back. Each run starts both processes anew. The program in C is compiled on
/// first use.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("warmup", |arg| arg.default_value("1s")))]
pub struct RoundTripOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "rust,c,java,sockets")]
    contenders: Vec<Contender>,

    /// The networks, separated by commas
    #[arg(long, value_delimiter = ',', num_args = 1, default_value = "loopback,namespaces")]
    networks: Vec<Route>,

    /// The preset of the driver in Rust [default: none]
    #[arg(long, value_name = "PRESET")]
    preset: Option<Preset>,

    /// Length of each message in bytes, from 8 to 1376
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = RangedU64ValueParser::<usize>::new().range(8..=1376))]
    message_length: usize,

    /// Length of a term buffer: a power of two from 64k to 1g
    // The warm-up passes all three terms, whose pages are allocated on first use.
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "1m",
          value_parser = run_options::parse_term_length)]
    term_length: usize,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used; [`Failure::Run`] for everything else.
pub fn run(options: &RoundTripOptions) -> Result<(), Failure> {
    let networks = distinct(&options.networks);
    let mut comparison = Comparison::start("udp-round-trips", &options.run)?;
    let namespaces = Route::networks(&networks)?;
    let interrupt = comparison.interrupt();
    let mut contenders = distinct(&options.contenders);
    let java = comparison.java_for(&mut contenders, |contender| *contender == Contender::Java);
    let c = contenders.contains(&Contender::C).then(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join("round_trips.c");
        AeronC::compile()?.program("round_trips", &[source], &[])
    });
    let bench = Bench {
        namespaces: namespaces.as_ref(),
        c: c.transpose()?,
        java: java.as_ref(),
        options,
        interrupt: &interrupt,
    };
    let case = |network: Route| Case {
        name: network.name().to_owned(),
        conditions: network,
        contenders: contenders.clone(),
    };
    let cases: Vec<_> = networks.into_iter().map(case).collect();
    comparison.compare(&cases, |network, contender| {
        bench.measure(contender, *network).map(|round_trips| percentiles(&round_trips))
    })?;
    comparison.finish()
}

/// The program of both processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Contender {
    /// Client and driver in Rust
    Rust,
    /// Aeron's C client and driver, compiled from the unpatched tree
    C,
    /// Aeron's Java client and driver
    Java,
    /// Two connected UDP sockets without Aeron: the bound
    Sockets,
}
display_in_words!(Contender);

/// The part of a process in a round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Sends them, and measures
    Ping,
    /// Sends them back
    Pong,
}

/// The stream of both directions.
const STREAM_ID: i32 = 1001;

/// Endpoints in namespaces, where all ports are free.
const PORT: u16 = 20_121;

/// How long the two processes may take to connect, and a message to come back.
const DEADLINE: Duration = Duration::from_secs(20);

/// One of the two processes, as a subcommand of the program. C and Java take the same values, after the contender.
#[derive(Debug, Clone, Args)]
pub struct Side {
    /// `rust` or `sockets`.
    contender: Contender,
    role: Role,
    /// The driver's directory.
    aeron_dir: PathBuf,
    /// The address of the other process.
    to: SocketAddr,
    /// The address of this process.
    from: SocketAddr,
    /// The length of terms, in bytes.
    term_length: usize,
    /// The length of messages, in bytes.
    message_length: usize,
    /// The time before the measurement, in nanoseconds.
    warmup: u64,
    /// The time of the measurement, in nanoseconds.
    measure: u64,
    /// The preset of the driver in Rust.
    #[arg(long)]
    preset: Option<Preset>,
}

impl Side {
    /// Sends, or sends back, until the measurement or the standard input ends. Prints the histogram.
    ///
    /// # Errors
    /// [`Failure::Run`] if the other process does not answer.
    pub fn run(&self) -> Result<(), Failure> {
        let running = Arc::new(AtomicBool::new(true));
        let ended = Arc::clone(&running);
        thread::spawn(move || {
            // A failed read counts as the end.
            let _ = io::stdin().read_to_end(&mut Vec::new());
            ended.store(false, Ordering::Relaxed);
        });
        match self.contender {
            Contender::Sockets => {
                let failed = |error| Failure::run(format_args!("socket {}", self.from), error);
                let socket = UdpSocket::bind(self.from).map_err(failed)?;
                socket.connect(self.to).map_err(failed)?;
                socket.set_nonblocking(true).map_err(failed)?;
                let subscription = Socket(socket.try_clone().map_err(failed)?);
                println!("ready");
                self.exchange(End { publication: Socket(socket), subscription }, &running)
            }
            _ => self.exchange(self.connect(&running)?, &running),
        }
    }

    fn exchange<P: Publish, S: Receive>(
        &self,
        mut end: End<P, S>,
        running: &AtomicBool,
    ) -> Result<(), Failure> {
        let plan = Plan {
            message_length: self.message_length,
            idle: IdleStrategyKind::NoOp,
            pace: Pace::Closed,
            warmup: Duration::from_nanos(self.warmup),
            measure: Duration::from_nanos(self.measure),
            timeout: DEADLINE,
        };
        if self.role == Role::Pong {
            return ping_pong::pong(&mut end, &mut plan.idle.new_strategy(), running);
        }
        let histogram = ping_pong::ping(&mut end, &plan, running, &ShutdownSignal::new())?;
        for value in histogram.iter_recorded() {
            println!("latency {} {}", value.value_iterated_to(), value.count_at_value());
        }
        println!("done");
        Ok(())
    }

    fn connect(
        &self,
        running: &AtomicBool,
    ) -> Result<End<ExclusivePublication, Invokers>, Failure> {
        let mut context = match self.preset {
            Some(preset) => DriverContext::with_preset(preset)?,
            None => DriverContext::new()?,
        };
        context.set_threading_mode(ThreadingMode::Invoker)?.set_dir(&self.aeron_dir)?;
        let mut driver = DriverInvoker::launch(context)?;
        // Makes the driver known to clients.
        driver.do_work()?;
        let mut context = Context::new()?;
        context.set_dir(driver.aeron_dir())?.set_use_conductor_agent_invoker(true)?;
        let mut work = Work { aeron: Aeron::connect(context)?, driver };
        let channel =
            |address| format!("aeron:udp?endpoint={address}|term-length={}", self.term_length);
        let subscription =
            work.aeron.async_add_subscription(channel(self.from).as_str(), STREAM_ID)?;
        let publication =
            work.aeron.async_add_exclusive_publication(channel(self.to).as_str(), STREAM_ID)?;
        let subscription = work.added(subscription)?;
        let publication = work.added(publication)?;
        println!("ready");
        let deadline = Instant::now() + DEADLINE;
        while !(publication.is_connected() && subscription.is_connected()) {
            work.once()?;
            if Instant::now() > deadline || !running.load(Ordering::Relaxed) {
                return Err(Failure::Run(format!("{} does not connect", self.to)));
            }
        }
        Ok(End { publication, subscription: Invokers { subscription, work } })
    }
}

/// The duty cycles of client and driver. The client ends first.
struct Work {
    aeron: Aeron,
    driver: DriverInvoker,
}

impl Work {
    fn once(&mut self) -> rusteron_client::Result<()> {
        self.driver.do_work()?;
        self.aeron.do_work()?;
        Ok(())
    }

    /// The driver answers in the same loop.
    fn added<R: Resource>(&mut self, mut registration: Registration<R>) -> Result<R, Failure> {
        loop {
            if let Some(resource) = registration.poll()? {
                return Ok(resource);
            }
            self.once()?;
        }
    }
}

/// A subscription, polled after the driver's turns that bring its messages. The client's turns come when there are none.
struct Invokers {
    subscription: Subscription,
    work: Work,
}

impl Receive for Invokers {
    #[inline(always)]
    fn receive(&mut self, mut handler: impl FnMut(&[u8])) -> Result<usize, PollError> {
        self.work.driver.do_work().map_err(closed)?;
        let handler = |message: &[u8], _: &Header<'_>| handler(message);
        let fragments = self.subscription.poll(handler, FRAGMENT_LIMIT)?;
        if fragments == 0 {
            self.work.aeron.do_work().map_err(closed)?;
        }
        Ok(fragments)
    }
}

/// A non-blocking, connected socket.
struct Socket(UdpSocket);

impl Publish for Socket {
    fn offer(&mut self, message: &[u8]) -> Result<(), OfferError> {
        match self.0.send(message) {
            Ok(_) => Ok(()),
            Err(error) if is_retryable(&error) => Err(OfferError::BackPressured),
            Err(error) => {
                eprintln!("{error}");
                Err(OfferError::Closed(CloseCause::Handle))
            }
        }
    }
}

impl Receive for Socket {
    fn receive(&mut self, mut handler: impl FnMut(&[u8])) -> Result<usize, PollError> {
        let mut buffer = [0; 2048];
        match self.0.recv(&mut buffer) {
            Ok(length) => {
                handler(&buffer[..length]);
                Ok(1)
            }
            Err(error) if is_retryable(&error) => Ok(0),
            Err(error) => Err(closed(error)),
        }
    }
}

/// The other socket may be gone for a while, or already.
fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused)
}

/// Standard error has the cause.
fn closed(error: impl fmt::Display) -> PollError {
    eprintln!("{error}");
    PollError::Closed(CloseCause::Handle)
}

/// Starts the processes of one run after another.
#[derive(Debug)]
struct Bench<'a> {
    /// The network namespaces, if a network needs them.
    namespaces: Option<&'a [Network; 2]>,
    /// The program in C.
    c: Option<PathBuf>,
    /// Java, if it is there and wanted.
    java: Option<&'a Java>,
    options: &'a RoundTripOptions,
    interrupt: &'a ShutdownSignal,
}

impl Bench<'_> {
    /// Runs once, and returns the latencies.
    fn measure(&self, contender: Contender, network: Route) -> Result<Histogram<u64>, Failure> {
        let [ping, pong] = match network {
            Route::Loopback => free_endpoints()?,
            Route::Namespaces => {
                Network::PAIR.map(|address| SocketAddr::from((address, PORT)).to_string())
            }
        };
        let namespaces = match (network, self.namespaces) {
            (Route::Namespaces, Some(namespaces)) => namespaces.each_ref().map(Some),
            _ => [None; 2],
        };
        let dirs = [0, 1].map(DriverDir::new);
        let start = |role, dir: &DriverDir, to: &str, from: &str, namespace| {
            self.start(contender, role, dir, [to, from], namespace)
        };
        let mut ponger = start("pong", &dirs[1], &ping, &pong, namespaces[1])?;
        if ponger.line(self.interrupt)?.is_none() {
            return Err(Failure::Interrupted);
        }
        let mut pinger = start("ping", &dirs[0], &pong, &ping, namespaces[0])?;
        let (histogram, _) =
            ping_pong::read_histogram(&mut pinger, self.interrupt).map_err(|failure| {
                // If the other process has ended, its own words say more.
                ponger.check().err().unwrap_or(failure)
            })?;
        pinger.finish(self.interrupt)?;
        ponger.finish(self.interrupt)?;
        Ok(histogram)
    }

    fn start(
        &self,
        contender: Contender,
        role: &str,
        dir: &DriverDir,
        [to, from]: [&str; 2],
        namespace: Option<&Network>,
    ) -> Result<Process, Failure> {
        let warmup = self.options.run.warmup_with(contender == Contender::Java);
        let arguments = [
            role.to_owned(),
            dir.path().display().to_string(),
            to.to_owned(),
            from.to_owned(),
            self.options.term_length.to_string(),
            self.options.message_length.to_string(),
            warmup.as_nanos().to_string(),
            self.options.run.measure.as_nanos().to_string(),
        ];
        let mut command = match (contender, self.java, &self.c) {
            (Contender::Java, Some(java), _) => {
                java.command("benchmarks/RoundTrips.java", &[], &[])
            }
            (Contender::C, _, Some(c)) => Command::new(c),
            _ => {
                let program = std::env::current_exe()
                    .map_err(|error| Failure::run("the path of this program", error))?;
                let mut command = Command::new(program);
                command.arg("side");
                if let Some(preset) = self.options.preset {
                    command.args(["--preset", preset.name()]);
                }
                command.arg(contender.to_string().to_lowercase());
                command
            }
        };
        command.args(arguments);
        let command = in_network(command, namespace);
        let timeout = 2 * DEADLINE + warmup + self.options.run.measure;
        Process::start(format!("{role} of {contender}"), command, timeout)
    }
}
