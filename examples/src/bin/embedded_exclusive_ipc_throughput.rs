//! Measures how many messages a second go from an exclusive publication to a subscription over IPC.
//!
//! A port of Aeron's Java sample `EmbeddedExclusiveIpcThroughput`. One thread publishes the same message again and
//! again, and another receives. The main thread prints the rate once a second until Ctrl-C or the end of `--duration`,
//! and the mean rate at the end.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{Aeron, Backoff, ChannelUri, Context, ExclusivePublication, Header};
use rusteron_client::{IdleStrategy, OfferError, PollError, Subscription, Yielding};
use rusteron_media_driver::{DriverContext, MediaDriver, ThreadingMode};

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
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    warmup: Duration,
}

fn parse_duration(text: &str) -> Result<Duration, Box<dyn Error + Send + Sync>> {
    let duration = humantime::parse_duration(text)?;
    // Sums of times must not overflow.
    if duration > Duration::from_secs(366 * 24 * 60 * 60) {
        return Err("must be at most 366 days".into());
    }
    Ok(duration)
}

/// How many messages are published between two looks at the shutdown signal.
const BURST_LENGTH: usize = 1_000_000;
/// How often a rate is printed.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long publication and subscription may take to connect.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How many payload bytes the subscriber has received. Processors fetch cache lines in pairs, so this has two to
/// itself: otherwise its writes would slow reads of its neighbours.
static RECEIVED_BYTES: Padded = Padded(AtomicU64::new(0));

#[repr(align(128))]
struct Padded(AtomicU64);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has closed the output, as in `… | head`.
        Err(error)
            if error.downcast_ref().map(io::Error::kind) == Some(io::ErrorKind::BrokenPipe) =>
        {
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    if options.duration.is_some_and(|duration| duration <= options.warmup) {
        return Err("--warmup must be less than --duration".into());
    }
    let shutdown = ShutdownSignal::on_interrupt()?;
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
    subscription.await_connected(Instant::now() + TIMEOUT, &mut Backoff::default())?;

    let message: Vec<u8> = (0..=u8::MAX).cycle().take(options.message_length).collect();
    let (rate, back_pressure, failed_polls) = thread::scope(|scope| {
        // When one of the three ends, by an error or at the end of the time, the others end as well.
        let publisher = scope.spawn(|| {
            let outcome = publish(&mut publication, &message, &shutdown);
            shutdown.signal();
            outcome
        });
        let subscriber = scope.spawn(|| {
            let outcome = receive(&mut subscription, options.fragment_limit, &shutdown);
            shutdown.signal();
            outcome
        });
        let rate = measure(options, &shutdown);
        shutdown.signal();
        (rate, publisher.join(), subscriber.join())
    });
    let (rate, back_pressure, failed_polls) = (
        rate?,
        back_pressure.expect("the publisher does not panic")?,
        failed_polls.expect("the subscriber does not panic")?,
    );
    let mut out = io::stdout();
    writeln!(out, "Publisher: back-pressure ratio {back_pressure:.6}")?;
    writeln!(out, "Subscriber: failed-poll ratio {failed_polls:.6}")?;
    writeln!(out, "Throughput: {rate}")?;
    Ok(())
}

/// Publishes the message until the signal. Returns how many offers were rejected for each message, because of back
/// pressure or a rotation of the log.
fn publish(
    publication: &mut ExclusivePublication,
    message: &[u8],
    shutdown: &ShutdownSignal,
) -> Result<f64, OfferError> {
    let mut idle = Yielding;
    let (mut messages, mut rejected) = (0_u64, 0_u64);
    'running: while !shutdown.is_signalled() {
        for _ in 0..BURST_LENGTH {
            // The offer is compiled into this loop.
            while let Err(error) = publication.offer(message) {
                if !error.is_retryable() {
                    return Err(error);
                }
                rejected += 1;
                if shutdown.is_signalled() {
                    break 'running;
                }
                idle.idle(0);
            }
            messages += 1;
        }
    }
    Ok(rejected as f64 / messages.max(1) as f64)
}

/// Receives messages and counts their bytes until the signal. Returns the share of polls that found nothing.
fn receive(
    subscription: &mut Subscription,
    fragment_limit: usize,
    shutdown: &ShutdownSignal,
) -> Result<f64, PollError> {
    let mut idle = Yielding;
    let (mut polls, mut failed_polls, mut bytes) = (0_u64, 0_u64, 0);
    while !shutdown.is_signalled() {
        // Poll and handler are compiled into this loop.
        let handler = |message: &[u8], _: &Header<'_>| bytes += message.len() as u64;
        let fragments = subscription.poll(handler, fragment_limit)?;
        polls += 1;
        if fragments > 0 {
            RECEIVED_BYTES.0.store(bytes, Ordering::Relaxed);
        } else {
            failed_polls += 1;
        }
        idle.idle(fragments);
    }
    Ok(failed_polls as f64 / polls.max(1) as f64)
}

/// Prints rates until the signal or the end of the duration. Returns the mean rate since the end of the warm-up.
fn measure(options: &Options, shutdown: &ShutdownSignal) -> io::Result<String> {
    let start = Sample::take();
    if !print_rates("Warm-up", start, Some(start.time + options.warmup), options, shutdown)? {
        return Ok("not measured, ended during the warm-up".to_owned());
    }
    let first = Sample::take();
    let end = options.duration.map(|duration| start.time + duration);
    print_rates("Rate", first, end, options, shutdown)?;
    Ok(first.rate_until(&Sample::take(), options.message_length))
}

/// Prints a rate once a second until `end`. Returns `false` if the signal comes first.
fn print_rates(
    label: &str,
    mut last: Sample,
    end: Option<Instant>,
    options: &Options,
    shutdown: &ShutdownSignal,
) -> io::Result<bool> {
    loop {
        let tick = last.time + INTERVAL;
        let next = end.map_or(tick, |end| tick.min(end));
        if shutdown.wait_timeout(next.saturating_duration_since(Instant::now())) {
            return Ok(false);
        }
        let sample = Sample::take();
        if Some(next) != end || sample.time - last.time >= INTERVAL / 2 {
            let rate = last.rate_until(&sample, options.message_length);
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

    fn rate_until(&self, later: &Self, message_length: usize) -> String {
        let seconds = (later.time - self.time).as_secs_f64().max(1e-9);
        let bytes = (later.bytes - self.bytes) as f64 / seconds;
        let messages = bytes / message_length as f64;
        format!("{} msgs/sec, {} bytes/sec", grouped(messages), grouped(bytes))
    }
}

/// Writes a number with a comma before each group of three digits.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}
