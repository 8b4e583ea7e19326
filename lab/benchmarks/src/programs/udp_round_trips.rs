//! Round trips over UDP between two processes of one busy thread each.

use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, thread};

use clap::{Args, ValueEnum};
use hdrhistogram::Histogram;
use rusteron_client::{
    Aeron, CloseCause, Context, ExclusivePublication, Header, IdleStrategyKind, OfferError,
    PollError, Registration, Resource, Subscription,
};
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::Failure;
use rusteron_media_driver::{DriverContext, DriverInvoker, ThreadingMode};
use rusteron_test_support::free_port;
use rusteron_test_support::networks::Network;
use rusteron_test_support::programs::Process;

use super::comparison::{Comparison, cases, percentiles};
use crate::command_line::choice::{Contender, Route, among, option_name};
use crate::command_line::run_options::RunOptions;
use crate::contenders::ping_pong::{self, End};
use crate::measuring::measurement::{FRAGMENT_LIMIT, Plan};
use crate::measuring::message_path::{Publish, Receive};
use crate::processes::aeron_c::AeronC;
use crate::processes::environment::Environment;
use crate::processes::program::{in_network, own_program, temporary_dir};

/// Compares round trips of 32 bytes over UDP between two processes: each is one busy thread that
/// runs application, client and media driver in one loop. Those in C and Java are Aeron's. The
/// bound is a pair of connected UDP sockets without Aeron.
///
/// The next message is sent when the last is back. Each run starts both processes anew. The program
/// in C is compiled on first use.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("warmup", |arg| arg.default_value("1s")))]
pub struct RoundTripOptions {
    /// The contenders, separated by commas; ratios are of the first to the others
    #[arg(long, value_delimiter = ',', default_value = "rust,c,java,sockets",
          value_parser = among("rust,c,java,sockets"))]
    contenders: Vec<Contender>,

    /// The networks, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "loopback,namespaces")]
    networks: Vec<Route>,

    #[command(flatten)]
    run: RunOptions,
}

/// Runs the benchmark.
///
/// # Errors
/// [`Failure::Usage`] for options that cannot be used; [`Failure::Run`] for everything else.
pub fn run(options: &RoundTripOptions) -> Result<(), Failure> {
    let comparison = Comparison::start("udp-round-trips", &options.run, &options.contenders)?;
    let environment = comparison.environment.clone();
    let namespaces = Route::networks(&options.networks)?;
    let c = comparison.contenders.contains(&Contender::C).then(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join("round_trips.c");
        AeronC::compile()?.program("round_trips", &[source], &[])
    });
    let bench =
        Bench { namespaces: namespaces.as_ref(), c: c.transpose()?, environment: &environment };
    let cases = cases(options.networks.iter().copied(), option_name, &comparison.contenders);
    comparison.compare(&cases, |network, contender, _| {
        bench.measure(contender, *network).map(|round_trips| percentiles(&round_trips))
    })
}

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

/// The length of terms. The warm-up passes all three, whose pages are allocated on first use.
const TERM_LENGTH: usize = 1 << 20;

/// How long the two processes may take to connect, and a message to come back.
const DEADLINE: Duration = Duration::from_secs(20);

/// One of the two processes, as a subcommand of the program. C and Java take the same values, after
/// the contender.
#[derive(Debug, Clone, Args)]
pub struct Side {
    #[arg(value_parser = among("rust,sockets"))]
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
}

impl Side {
    /// Sends, or sends back, until the measurement or the standard input ends. Prints the
    /// histogram.
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
            warmup: Duration::from_nanos(self.warmup),
            measure: Duration::from_nanos(self.measure),
            timeout: DEADLINE,
        };
        if self.role == Role::Pong {
            return ping_pong::pong(&mut end, &mut plan.idle.new_strategy(), running);
        }
        let histogram = ping_pong::ping(&mut end, &plan, None, running, &ShutdownSignal::new())?;
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
        let mut context = DriverContext::new()?;
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

/// A subscription, polled after the driver's turns that bring its messages. The client's turns come
/// when there are none.
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
    environment: &'a Environment,
}

impl Bench<'_> {
    /// Runs once, and returns the latencies.
    fn measure(&self, contender: Contender, network: Route) -> Result<Histogram<u64>, Failure> {
        let endpoints = match network {
            Route::Loopback => [(); 2].map(|()| SocketAddr::from(([127, 0, 0, 1], free_port()))),
            Route::Namespaces => Network::PAIR.map(|address| SocketAddr::from((address, PORT))),
        };
        let endpoints = endpoints.map(|endpoint| endpoint.to_string());
        let namespaces = match (network, self.namespaces) {
            (Route::Namespaces, Some(namespaces)) => namespaces.each_ref().map(Some),
            _ => [None; 2],
        };
        let interrupt = &self.environment.interrupt;
        let dirs = [temporary_dir(None)?, temporary_dir(None)?];
        // The pinger has index 0.
        let start = |role: &str, own: usize| {
            let warmup = self.environment.warmup(contender);
            let measure = self.environment.options.measure;
            let mut command = self.command(contender)?;
            command
                .arg(role)
                .arg(dirs[own].path().join("driver"))
                .args([&endpoints[1 - own], &endpoints[own]]);
            command.args([TERM_LENGTH, 32].map(|length| length.to_string()));
            command.args([warmup, measure].map(|time| time.as_nanos().to_string()));
            let command = in_network(command, namespaces[own]);
            let timeout = 2 * DEADLINE + warmup + measure;
            Process::start(format!("{role} of {contender}"), command, timeout)
        };
        let mut ponger = start("pong", 1)?;
        ponger.line(interrupt)?;
        let mut pinger = start("ping", 0)?;
        let (histogram, _) =
            ping_pong::read_histogram(&mut pinger, interrupt).map_err(|failure| {
                // If the other process has ended, its own words say more.
                ponger.check().err().unwrap_or(failure)
            })?;
        pinger.finish(interrupt)?;
        ponger.finish(interrupt)?;
        Ok(histogram)
    }

    fn command(&self, contender: Contender) -> Result<Command, Failure> {
        Ok(match (contender, &self.c) {
            (Contender::Java, _) => {
                self.environment.java()?.command("benchmarks/RoundTrips.java", &[], &[])
            }
            (Contender::C, Some(c)) => Command::new(c),
            _ => {
                let mut command = Command::new(own_program()?);
                command.args(["side", &option_name(&contender)]);
                command
            }
        })
    }
}
