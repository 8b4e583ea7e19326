//! The service of Aeron's cluster tutorial: an auction.
//!
//! Shows state that a snapshot saves and restores. Messages and snapshots are those of Aeron's Java sample
//! `BasicAuctionClusteredService`. So Java's `BasicAuctionClusterClient` and the program `cluster_auction` can bid, and
//! a member can change from Java to Rust. `just run-cluster --rust --service cluster_auction_service` starts nodes.

use std::error::Error;
use std::io::Read;
use std::time::Duration;

use rusteron_client::agent::ShutdownSignal;
use rusteron_cluster::{Cluster, ClusteredService, Lifecycle, MessageSource, ServiceContainer};
use rusteron_cluster::{ServiceContext, ServiceResult, SessionMessage};
use rusteron_cluster::{SnapshotReader, SnapshotWriter};

const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let shutdown = ShutdownSignal::on_interrupt()?;
    // As in Java, nobody leads at first.
    let auction = Auction { best_customer: -1, best_price: 0 };
    let container = ServiceContainer::launch(ServiceContext::from_env()?, auction)?;
    let cause = container.join_or_stop(&shutdown);
    println!("End: {cause}");
    if cause.is_failure() { Err(cause.into()) } else { Ok(()) }
}

/// The replicated state. It depends on the messages and their order only, so that it is the same on all members.
struct Auction {
    best_customer: i64,
    best_price: i64,
}

impl ClusteredService for Auction {
    fn on_start(
        &mut self,
        _cluster: &mut Lifecycle<'_>,
        snapshot: Option<&mut SnapshotReader<'_>>,
    ) -> ServiceResult {
        let Some(snapshot) = snapshot else { return Ok(()) };
        for number in [&mut self.best_customer, &mut self.best_price] {
            let mut bytes = [0; 8];
            snapshot.read_exact(&mut bytes)?;
            *number = i64::from_le_bytes(bytes);
        }
        println!("Restored: customer {} leads with {}", self.best_customer, self.best_price);
        Ok(())
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        message: &SessionMessage<'_>,
    ) -> ServiceResult {
        let MessageSource::Client { session_id } = message.source else { return Ok(()) };
        let number = |index: usize| message.payload.get(8 * index..)?.first_chunk();
        let (Some(correlation_id), Some(customer), Some(price)) = (number(0), number(1), number(2))
        else {
            return Ok(()); // All members ignore a malformed message. An error would end them all.
        };
        let (customer, price) = (i64::from_le_bytes(*customer), i64::from_le_bytes(*price));
        let is_accepted = price > self.best_price;
        if is_accepted {
            (self.best_customer, self.best_price) = (customer, price);
        }
        println!("Customer {customer} bids {price}, best is {}", self.best_price);

        let Some(mut session) = cluster.session(session_id) else { return Ok(()) };
        let mut answer = correlation_id.to_vec();
        answer.extend(self.best_customer.to_le_bytes());
        answer.extend(self.best_price.to_le_bytes());
        answer.push(is_accepted.into());
        session.offer_or_close(&answer, ANSWER_TIMEOUT)
    }

    fn on_take_snapshot(&self, snapshot: &mut SnapshotWriter<'_>) -> ServiceResult {
        snapshot.offer(&[self.best_customer.to_le_bytes(), self.best_price.to_le_bytes()].concat())
    }
}
