//! Measures round trips through a cluster whose service echoes messages.
//!
//! Shows a session with Aeron Cluster: connecting by the endpoints of its members, offering, polling the answers, and
//! following a change of leader. A request without an answer is sent again to a new leader. Its number tells a second
//! answer from the first one.
//!
//! `just run-cluster-java --members 3` starts a cluster; `--help` of that recipe says how to kill its leader and watch.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use hdrhistogram::Histogram;
use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{Aeron, Backoff, Context, IdleStrategy};
use rusteron_cluster::{ClusterClient, ClusterContext, Egress, IngressEndpoints};
use rusteron_media_driver::MediaDriver;

/// Measures round trips through a cluster whose service echoes messages
#[derive(Debug, Parser)]
#[command(name = "cluster_echo", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Ingress endpoints of the cluster's members
    #[arg(long, value_name = "ID=HOST:PORT,...", default_value = "0=localhost:9002")]
    ingress_endpoints: IngressEndpoints,

    /// Channel to the cluster
    #[arg(long, value_name = "URI", default_value = "aeron:udp")]
    ingress_channel: String,

    /// Channel for the answers; all members have to reach its endpoint
    #[arg(long, value_name = "URI", default_value = "aeron:udp?endpoint=localhost:0")]
    egress_channel: String,

    /// How many round trips to measure
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    messages: u64,

    /// How many round trips to make before the measurement begins
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    warmup: u64,

    /// Length of a message
    #[arg(long, value_name = "BYTES", default_value_t = 32,
          value_parser = clap::value_parser!(u32).range(8..=65536))]
    message_length: u32,
}

/// How long a round trip may take. A change of leader takes some seconds.
const DEADLINE: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let shutdown = ShutdownSignal::new();
    let signal = shutdown.clone();
    ctrlc::set_handler(move || signal.signal())?;

    let mut context = Context::new()?;
    let _embedded_driver = match &options.aeron_dir {
        Some(dir) => {
            context.set_dir(dir)?;
            None
        }
        None => {
            let driver = MediaDriver::launch_embedded()?;
            context.set_dir(driver.aeron_dir())?;
            Some(driver)
        }
    };
    let aeron = Aeron::connect(context)?;

    let mut context = ClusterContext::from_env()?;
    context
        .set_ingress_channel(&options.ingress_channel)
        .set_ingress_endpoints(options.ingress_endpoints.clone())
        .set_egress_channel(&options.egress_channel)
        // The first message to a new leader is a keep-alive.
        .set_keep_alive_interval(Some(Duration::from_secs(1)));
    let mut cluster = ClusterClient::connect(&aeron, context)?;
    println!("Session {}, leader {}", cluster.cluster_session_id(), cluster.leader_member_id());

    let mut message = vec![0; options.message_length as usize];
    // From 1 ns to a minute, with 3 digits.
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3)?;
    let mut number = 0_u64;
    let total = options.warmup + options.messages;
    while number < total && !shutdown.is_signalled() {
        message[..8].copy_from_slice(&number.to_le_bytes());
        let duration = round_trip(&mut cluster, number, &message)?;
        if number >= options.warmup {
            histogram.saturating_record(duration.as_nanos() as u64);
        }
        number += 1;
    }
    for (name, quantile) in
        [("50%", 0.5), ("90%", 0.9), ("99%", 0.99), ("99.9%", 0.999), ("maximum", 1.0)]
    {
        let micros = histogram.value_at_quantile(quantile) as f64 / 1e3;
        println!("{name:>8} {micros:12.1} µs");
    }
    println!("Done: {} round trips measured", histogram.len());
    cluster.close();
    Ok(())
}

/// Sends a message, and waits for its answer.
fn round_trip(
    cluster: &mut ClusterClient,
    number: u64,
    message: &[u8],
) -> Result<Duration, Box<dyn Error>> {
    let mut idle = Backoff::default();
    let start = Instant::now();
    let (mut is_sent, mut is_answered) = (false, false);
    while !is_answered {
        if !is_sent {
            match cluster.offer(message) {
                Ok(_position) => is_sent = true,
                // Back pressure, or no leader at the moment.
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let work_count = cluster.poll_egress(
            |_ingress, event| match event {
                // A second answer to an earlier request has another number.
                Egress::Message { payload, .. } => {
                    is_answered |= payload.first_chunk() == Some(&number.to_le_bytes());
                }
                Egress::NewLeader { leader_member_id, .. } => {
                    println!("Member {leader_member_id} leads after {:.1?}", start.elapsed());
                    // The old leader may have lost the message.
                    is_sent = false;
                }
                Egress::SessionEvent { code, detail, .. } => println!("{code:?}: {detail}"),
                _ => {}
            },
            10,
        )?;
        if start.elapsed() > DEADLINE {
            let text = format!("no answer to message {number} in state {:?}", cluster.state());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text).into());
        }
        idle.idle(work_count);
    }
    Ok(start.elapsed())
}
