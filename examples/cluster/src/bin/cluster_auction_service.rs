//! The service of Aeron's cluster tutorial: an auction.
//!
//! Speaks the protocol of Aeron's Java sample `BasicAuctionClusteredService`, and writes its snapshots. So Java's
//! `BasicAuctionClusterClient` and the program `cluster_auction` can bid, and a member can change from Java to Rust.
//! Shows state that a snapshot saves and restores.
//!
//! `just run-cluster-rust --service cluster_auction_service` starts nodes with this service.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rusteron_client::agent::ShutdownSignal;
use rusteron_cluster::{
    Cluster, ClusteredService, Lifecycle, MessageSource, Role, ServiceContainer, ServiceContext,
    ServiceError, ServiceResult, SessionMessage, SnapshotReader, SnapshotWriter, TerminationCause,
};

/// The service of Aeron's cluster tutorial: an auction
#[derive(Debug, Parser)]
#[command(name = "cluster_auction_service", version)]
struct Options {
    /// Directory of the node's media driver
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    aeron_dir: PathBuf,

    /// Directory of the node's consensus module, for the mark file that tools read
    #[arg(long, value_name = "DIR", env = "AERON_CLUSTER_DIR")]
    cluster_dir: PathBuf,
}

/// A client that takes no answer for so long loses its session. The whole cluster waits meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// A bid: correlation id, customer and price, 8 bytes each, little endian.
struct Bid {
    correlation_id: i64,
    customer: i64,
    price: i64,
}

impl Bid {
    fn decode(payload: &[u8]) -> Option<Self> {
        let [correlation_id, customer, price] = numbers(payload)?;
        Some(Self { correlation_id, customer, price })
    }
}

/// Decodes the first numbers of some bytes.
fn numbers<const N: usize>(bytes: &[u8]) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(bytes.get(..8 * N)?.chunks_exact(8)) {
        *number = i64::from_le_bytes(bytes.try_into().ok()?);
    }
    Some(numbers)
}

/// The replicated state.
struct Auction {
    best_price: i64,
    best_customer: i64,
}

impl Auction {
    /// Returns whether a bid is the best one.
    fn bid(&mut self, customer: i64, price: i64) -> bool {
        let is_best = price > self.best_price;
        if is_best {
            (self.best_price, self.best_customer) = (price, customer);
        }
        is_best
    }
}

impl ClusteredService for Auction {
    fn on_start(
        &mut self,
        cluster: &mut Lifecycle<'_>,
        snapshot: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        let Some(snapshot) = snapshot else { return Ok(()) };
        let mut is_loaded = false;
        // The snapshot is one message. Its end has to be read, too.
        snapshot.for_each(|message| {
            let [customer, price] =
                numbers(message).ok_or_else(|| ServiceError::failed("a short snapshot"))?;
            (self.best_customer, self.best_price) = (customer, price);
            is_loaded = true;
            Ok(())
        })?;
        if !is_loaded {
            return Err(ServiceError::failed("an empty snapshot"));
        }
        let Self { best_customer, best_price } = self;
        let position = cluster.log_position();
        println!(
            "Snapshot at position {position}: customer {best_customer} leads with {best_price}"
        );
        Ok(())
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        message: &SessionMessage<'_>,
    ) -> ServiceResult {
        let MessageSource::Client { session_id } = message.source else { return Ok(()) };
        // All members ignore a malformed message. An error would end them all.
        let Some(bid) = Bid::decode(message.payload) else { return Ok(()) };
        let is_accepted = self.bid(bid.customer, bid.price);
        let verdict = if is_accepted { "accepted" } else { "too low" };
        println!("Customer {} bids {}: {verdict}", bid.customer, bid.price);

        let mut reply = [0; 25];
        let fields = [bid.correlation_id, self.best_customer, self.best_price];
        for (target, field) in reply.chunks_exact_mut(8).zip(fields) {
            target.copy_from_slice(&field.to_le_bytes());
        }
        reply[24] = is_accepted.into();
        answer(cluster, session_id, &reply)
    }

    fn on_take_snapshot(&self, snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
        let mut message = [0; 16];
        message[..8].copy_from_slice(&self.best_customer.to_le_bytes());
        message[8..].copy_from_slice(&self.best_price.to_le_bytes());
        snapshot.offer(&message)
    }

    fn on_role_change(&mut self, cluster: &mut Lifecycle<'_>, role: Role) {
        println!("Member {} is {role:?}", cluster.member_id().unwrap_or(-1));
    }
}

/// Sends an answer, and closes the session of a client that does not take it. Members that do not lead
/// send nothing.
fn answer(cluster: &mut Cluster<'_>, session_id: i64, payload: &[u8]) -> ServiceResult {
    // A service may have closed the session.
    let Some(mut session) = cluster.session(session_id) else { return Ok(()) };
    session.offer_or_close(payload, ANSWER_TIMEOUT)
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

/// Runs the service until its node ends. The supervisor of the node then starts all parts of the node again.
fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let shutdown = ShutdownSignal::new();
    let signal = shutdown.clone();
    ctrlc::set_handler(move || signal.signal())?;

    let mut context = ServiceContext::from_env()?;
    context.set_aeron_dir(&options.aeron_dir).set_cluster_dir(&options.cluster_dir);
    // As in Java, nobody leads at first.
    let auction = Auction { best_price: 0, best_customer: -1 };
    let container = ServiceContainer::launch(context, auction)?;
    while container.is_running() {
        if shutdown.wait_timeout(Duration::from_millis(100)) {
            container.stop();
            break;
        }
    }
    match container.join() {
        cause @ (TerminationCause::Stopped
        | TerminationCause::ConsensusModuleTerminated { is_expected: true, .. }) => {
            println!("End: {cause}");
            Ok(())
        }
        cause => Err(cause.into()),
    }
}
