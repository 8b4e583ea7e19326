//! Bids in the auction of Aeron's cluster tutorial.
//!
//! A client of Aeron's Java sample `BasicAuctionClusteredService`, as its `BasicAuctionClusterClient` is. Shows claims,
//! which are written into the log buffer without a copy, answers to all sessions' bids in one order, and automatic
//! keep-alives between bids.
//!
//! Start a cluster with `just run-cluster-java --members 3 --service
//! io.aeron.samples.cluster.tutorial.BasicAuctionClusteredService`, and two of these programs with different customers.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use rusteron_client::agent::ShutdownSignal;
use rusteron_client::{Aeron, Backoff, Context, IdleStrategy, OfferError, Position};
use rusteron_cluster::{ClusterClient, ClusterContext, Egress, IngressEndpoints};
use rusteron_media_driver::MediaDriver;

/// Bids in the auction of Aeron's cluster tutorial
#[derive(Debug, Parser)]
#[command(name = "cluster_auction", version)]
struct Options {
    /// Directory of a running media driver, to use it instead of an embedded one
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: Option<PathBuf>,

    /// Ingress endpoints of the cluster's members
    #[arg(
        long,
        value_name = "ID=HOST:PORT,...",
        default_value = "0=localhost:9002,1=localhost:9102,2=localhost:9202"
    )]
    ingress_endpoints: IngressEndpoints,

    /// Channel for the answers; all members have to reach its endpoint
    #[arg(long, value_name = "URI", default_value = "aeron:udp?endpoint=localhost:0")]
    egress_channel: String,

    /// The bidding customer
    #[arg(long, value_name = "ID", default_value_t = 1)]
    customer: i64,

    /// How many bids to make
    #[arg(long, value_name = "N", default_value_t = 10)]
    bids: usize,

    /// Time between two bids
    #[arg(long, value_name = "TIME", default_value = "500ms")]
    interval: humantime::Duration,
}

/// A bid: correlation id, customer and price, 8 bytes each, little endian.
const BID_LENGTH: usize = 24;

/// How long an answer may take. A change of leader takes some seconds.
const DEADLINE: Duration = Duration::from_secs(60);

/// An answer: the correlation id of a bid, the leading customer, the best price, and one byte for success.
struct Answer {
    correlation_id: i64,
    best_customer: i64,
    best_price: i64,
    is_accepted: bool,
}

impl Answer {
    fn decode(payload: &[u8]) -> Option<Self> {
        let number =
            |index: usize| payload.get(8 * index..)?.first_chunk().copied().map(i64::from_le_bytes);
        Some(Self {
            correlation_id: number(0)?,
            best_customer: number(1)?,
            best_price: number(2)?,
            is_accepted: *payload.get(BID_LENGTH)? != 0,
        })
    }
}

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
        .set_ingress_channel("aeron:udp?term-length=64k")
        .set_ingress_endpoints(options.ingress_endpoints.clone())
        .set_egress_channel(&options.egress_channel)
        .set_keep_alive_interval(Some(Duration::from_secs(1)));
    let mut cluster = ClusterClient::connect(&aeron, context)?;
    println!("Session {}, leader {}", cluster.cluster_session_id(), cluster.leader_member_id());

    let mut best_price = 100;
    for number in 0..options.bids {
        let correlation_id = aeron.next_correlation_id();
        // Some bids are too low.
        let price = best_price + [3, 1, 0, 5][number % 4];
        best_price = bid(&mut cluster, correlation_id, options.customer, price)?;
        let next_bid = Instant::now() + *options.interval;
        while Instant::now() < next_bid {
            if shutdown.is_signalled() {
                return Ok(());
            }
            // Sends keep-alives, and follows the leader.
            cluster.poll_egress(print_event, 10)?;
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    println!("Done: {} bids", options.bids);
    Ok(())
}

/// Makes a bid, and waits for its answer. Returns the best price.
fn bid(
    cluster: &mut ClusterClient,
    correlation_id: i64,
    customer: i64,
    price: i64,
) -> Result<i64, Box<dyn Error>> {
    let mut idle = Backoff::default();
    let start = Instant::now();
    let (mut is_sent, mut best_price) = (false, None);
    loop {
        if !is_sent {
            match send(cluster, [correlation_id, customer, price]) {
                Ok(_position) => is_sent = true,
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let handler = |_: &mut _, event: Egress<'_>| match event {
            Egress::Message { payload, .. } => {
                let Some(answer) = Answer::decode(payload) else { return };
                if answer.correlation_id == correlation_id {
                    let verdict = if answer.is_accepted { "accepted" } else { "too low" };
                    let Answer { best_price: best, best_customer, .. } = answer;
                    println!("Bid {price}: {verdict}; customer {best_customer} leads with {best}");
                    best_price = Some(best);
                }
            }
            event => {
                // A bid that the old leader has lost is made again. The auction does not notice a bid that comes
                // twice, as the second one is not higher.
                is_sent &= !matches!(event, Egress::NewLeader { .. });
                print_event(&mut (), event);
            }
        };
        let work_count = cluster.poll_egress(handler, 10)?;
        if let Some(best_price) = best_price {
            return Ok(best_price);
        }
        if start.elapsed() > DEADLINE {
            let text = format!("no answer to a bid in state {:?}", cluster.state());
            return Err(io::Error::new(io::ErrorKind::TimedOut, text).into());
        }
        idle.idle(work_count);
    }
}

fn send(cluster: &mut ClusterClient, bid: [i64; 3]) -> Result<Position, OfferError> {
    let mut claim = cluster.try_claim(BID_LENGTH)?;
    for (target, number) in claim.chunks_exact_mut(8).zip(bid) {
        target.copy_from_slice(&number.to_le_bytes());
    }
    claim.commit()
}

fn print_event<T>(_ingress: &mut T, event: Egress<'_>) {
    match event {
        Egress::NewLeader { leader_member_id, .. } => println!("Member {leader_member_id} leads"),
        Egress::SessionEvent { code, detail, .. } => println!("{code:?}: {detail}"),
        _ => {}
    }
}
