//! Measures how many messages a second go from an exclusive publication to a subscription over IPC.
//!
//! A port of Aeron's Java sample `EmbeddedExclusiveIpcThroughput`. One thread publishes the same message
//! again and again, and another receives. The main thread prints the rate once a second until Ctrl-C or the
//! end of `--duration`, and the mean rate at the end. The media driver runs in this process, unless
//! `--aeron-dir` names the directory of a driver that runs already.

use std::error::Error;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use clap::builder::RangedU64ValueParser;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use num_format::{Locale, ToFormattedString};
use rusteron_client::{
    Aeron, ChannelUri, Context, ExclusivePublication, Header, IdleStrategy, OfferError, PollError,
    Subscription, Yielding,
};
use rusteron_media_driver::{Context as DriverContext, MediaDriver, ThreadingMode};

/// Measures how many messages a second an exclusive publication passes to a subscription over IPC
#[derive(Debug, Parser)]
#[command(name = "embedded_exclusive_ipc_throughput", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Channel to publish on, such as aeron:ipc?term-length=1m
    #[arg(long, value_name = "URI", default_value = "aeron:ipc")]
    channel: ChannelUri,

    /// Stream id within the channel
    #[arg(long, allow_negative_numbers = true, value_name = "ID", default_value_t = 1001)]
    stream_id: i32,

    /// Length of each message in bytes, at most an eighth of the term length, which is 8m in the
    /// embedded driver
    #[arg(long, allow_hyphen_values = true, value_name = "BYTES", default_value = "32",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=16 << 20))]
    message_length: usize,

    /// How many fragments a poll receives at most
    #[arg(long, allow_hyphen_values = true, value_name = "N", default_value = "10",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..=i32::MAX as u64))]
    fragment_limit: usize,

    /// How long to run, warm-up included, such as 10s [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,

    /// How long to run before the measurement begins
    #[arg(long, value_name = "TIME", default_value = "2s",
          value_parser = parse_duration)]
    warmup: Duration,
}

/// The longest accepted duration, a leap year: sums of times must not overflow.
const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// How many messages are published between two looks at `RUNNING`.
const BURST_LENGTH: usize = 1_000_000;
/// How often a rate is printed.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long publication and subscription may take to connect.
const DEADLINE: Duration = Duration::from_secs(10);

/// A value with two cache lines to itself, as processors fetch lines in pairs. So the writes of one thread
/// do not slow another thread's reads of other values.
#[repr(align(128))]
struct Padded<T>(T);

/// Tells publisher and subscriber to go on.
static RUNNING: Padded<AtomicBool> = Padded(AtomicBool::new(true));

/// Ends publisher and subscriber when it is dropped, also by a panic.
struct StopOnDrop;

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        RUNNING.0.store(false, Ordering::Relaxed);
    }
}

/// How many payload bytes the subscriber has received.
static RECEIVED_BYTES: Padded<AtomicU64> = Padded(AtomicU64::new(0));

fn main() -> ExitCode {
    let options = Options::parse();
    if options.duration.is_some_and(|duration| duration <= options.warmup) {
        let message = "--warmup <TIME> must be less than --duration <TIME>";
        Options::command().error(ErrorKind::ValueValidation, message).exit();
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            // The reader has closed the output, as in `… | head`.
            Some(io::ErrorKind::BrokenPipe) => ExitCode::SUCCESS,
            _ => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

fn parse_duration(text: &str) -> Result<Duration, Box<dyn Error + Send + Sync>> {
    let duration = humantime::parse_duration(text)?;
    if duration > MAX_DURATION {
        return Err("must be at most 366 days".into());
    }
    Ok(duration)
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    // Ctrl-C, and a thread that ends early, send to the main thread. Only the main thread changes `RUNNING`.
    let (stop, stopped) = mpsc::channel();
    let (publisher_stop, subscriber_stop) = (stop.clone(), stop.clone());
    // A send fails only when the main thread has ended, and then nothing is left to stop.
    ctrlc::set_handler(move || {
        let _ = stop.send(());
    })?;

    let mut context = Context::new()?;
    let _embedded_driver = match &options.aeron_dir {
        Some(dir) => {
            context.set_dir(dir)?;
            None
        }
        None => {
            let mut driver_context = DriverContext::new()?;
            driver_context.set_threading_mode(ThreadingMode::Shared)?;
            // Three such terms fit into more caches than three of Aeron's default length, 64 MiB.
            driver_context.set_ipc_term_buffer_length(8 << 20)?;
            let driver = MediaDriver::launch_embedded_with(driver_context)?;
            context.set_dir(driver.aeron_dir())?;
            Some(driver)
        }
    };
    // Errors of the client's own thread, such as a driver that has died.
    context.set_error_handler(|error| eprintln!("error: {error}"))?;
    let aeron = Aeron::connect(context)?;

    let mut publication = aeron.add_exclusive_publication(&options.channel, options.stream_id)?;
    let max_length = publication.constants().max_message_length;
    if options.message_length > max_length {
        let length = options.message_length;
        return Err(format!("--message-length {length}: must be 1 to {max_length}").into());
    }
    // Messages of this publication only: a running driver may have others on the same stream.
    let own = options.channel.to_builder().session_id(publication.session_id()).build()?;
    let mut subscription = aeron.add_subscription(&own, options.stream_id)?;
    let deadline = Instant::now() + DEADLINE;
    while !(publication.is_connected() && subscription.is_connected()) {
        if Instant::now() > deadline {
            return Err("publication and subscription did not connect in time".into());
        }
        if stopped.recv_timeout(Duration::from_millis(1)).is_ok() {
            return Ok(());
        }
    }

    let message: Vec<u8> = (0..=u8::MAX).cycle().take(options.message_length).collect();
    let (rate, published, received) = thread::scope(|scope| {
        // The scope waits for both threads, whatever happens on this one.
        let stop_on_drop = StopOnDrop;
        let publisher = scope.spawn(move || {
            let published = publish(&mut publication, &message);
            let _ = publisher_stop.send(());
            published
        });
        let subscriber = scope.spawn(move || {
            let received = receive(&mut subscription, options.fragment_limit);
            let _ = subscriber_stop.send(());
            received
        });
        let rate = measure(options, &stopped);
        drop(stop_on_drop);
        let published = publisher.join().expect("the publisher does not panic");
        let received = subscriber.join().expect("the subscriber does not panic");
        (rate, published, received)
    });
    let (rate, published, received) = (rate?, published?, received?);

    let mut out = io::stdout();
    writeln!(out, "Publisher: back-pressure ratio {:.6}", published.back_pressure_ratio())?;
    writeln!(out, "Subscriber: failed-poll ratio {:.6}", received.failed_poll_ratio())?;
    match rate {
        Some(rate) => writeln!(out, "Throughput: {rate}")?,
        None => writeln!(out, "Throughput: not measured, ended during the warm-up")?,
    }
    Ok(())
}

/// The publisher's counts.
struct Published {
    messages: u64,
    /// Offers that were rejected, because of back pressure or a rotation of the log.
    rejected: u64,
}

impl Published {
    fn back_pressure_ratio(&self) -> f64 {
        self.rejected as f64 / self.messages.max(1) as f64
    }
}

/// Publishes the message until the program is to end.
fn publish(
    publication: &mut ExclusivePublication,
    message: &[u8],
) -> Result<Published, OfferError> {
    let mut idle = Yielding;
    let mut published = Published { messages: 0, rejected: 0 };
    while RUNNING.0.load(Ordering::Relaxed) {
        for _ in 0..BURST_LENGTH {
            // The offer is compiled into this loop.
            while let Err(error) = publication.offer(message) {
                if !error.is_retryable() {
                    return Err(error);
                }
                published.rejected += 1;
                if !RUNNING.0.load(Ordering::Relaxed) {
                    return Ok(published);
                }
                idle.idle(0);
            }
            published.messages += 1;
        }
    }
    Ok(published)
}

/// The subscriber's counts.
struct Received {
    polls: u64,
    /// Polls that found nothing.
    failed_polls: u64,
}

impl Received {
    fn failed_poll_ratio(&self) -> f64 {
        self.failed_polls as f64 / self.polls.max(1) as f64
    }
}

/// Receives messages and counts their bytes until the program is to end.
fn receive(subscription: &mut Subscription, fragment_limit: usize) -> Result<Received, PollError> {
    let mut idle = Yielding;
    let mut received = Received { polls: 0, failed_polls: 0 };
    let mut bytes = 0;
    while RUNNING.0.load(Ordering::Relaxed) {
        // Poll and handler are compiled into this loop.
        let handler = |message: &[u8], _: &Header<'_>| bytes += message.len() as u64;
        let fragments = subscription.poll(handler, fragment_limit)?;
        received.polls += 1;
        if fragments > 0 {
            RECEIVED_BYTES.0.store(bytes, Ordering::Relaxed);
        } else {
            received.failed_polls += 1;
        }
        idle.idle(fragments);
    }
    Ok(received)
}

/// Prints rates until the end of the duration or a wish to stop. Returns the mean rate since the end of
/// the warm-up, or `None` if the program ends earlier.
fn measure(options: &Options, stopped: &Receiver<()>) -> io::Result<Option<Rate>> {
    let start = Sample::take();
    let warm = start.time + options.warmup;
    if !print_rates("Warm-up", start, Some(warm), options, stopped)? {
        return Ok(None);
    }
    let first = Sample::take();
    let end = options.duration.map(|duration| start.time + duration);
    print_rates("Rate", first, end, options, stopped)?;
    Ok(Some(Rate::between(&first, &Sample::take(), options.message_length)))
}

/// Prints a rate once a second until `end`. Returns `false` if the program is to stop earlier.
fn print_rates(
    label: &str,
    mut last: Sample,
    end: Option<Instant>,
    options: &Options,
    stopped: &Receiver<()>,
) -> io::Result<bool> {
    loop {
        let tick = last.time + INTERVAL;
        let next = end.map_or(tick, |end| tick.min(end));
        match stopped.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(false),
        }
        let sample = Sample::take();
        if Some(next) != end || sample.time - last.time >= INTERVAL / 2 {
            let rate = Rate::between(&last, &sample, options.message_length);
            writeln!(io::stdout(), "{label}: {rate}")?;
        }
        if Some(next) == end {
            return Ok(true);
        }
        last = sample;
    }
}

/// The received bytes at a time.
#[derive(Clone, Copy)]
struct Sample {
    time: Instant,
    bytes: u64,
}

impl Sample {
    fn take() -> Self {
        Self { time: Instant::now(), bytes: RECEIVED_BYTES.0.load(Ordering::Relaxed) }
    }
}

/// Messages and payload bytes per second.
struct Rate {
    messages: f64,
    bytes: f64,
}

impl Rate {
    fn between(first: &Sample, last: &Sample, message_length: usize) -> Self {
        let seconds = (last.time - first.time).as_secs_f64().max(1e-9);
        let bytes = (last.bytes - first.bytes) as f64 / seconds;
        Self { messages: bytes / message_length as f64, bytes }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grouped = |value: f64| (value.round() as u64).to_formatted_string(&Locale::en);
        write!(f, "{} msgs/sec, {} bytes/sec", grouped(self.messages), grouped(self.bytes))
    }
}
