//! Bids in the auction of Aeron's cluster tutorial, as its Java program `BasicAuctionClusterClient` does.
//!
//! Shows claims, and answers that all members give alike. Start a cluster with
//! `just run-cluster --rust --service cluster_auction_service`, and two of these. The environment variable
//! `AERON_CLUSTER_INGRESS_ENDPOINTS` names the members' endpoints, which the recipe prints.

use std::error::Error;
use std::time::Duration;
use std::{process, thread};

use rusteron_client::{Aeron, Backoff, Context, IdleStrategy};
use rusteron_cluster::{ClusterClient, ClusterContext, Egress};
use rusteron_media_driver::MediaDriver;

const BIDS: usize = 10;
/// Time between two bids.
const INTERVAL: Duration = Duration::from_millis(200);

fn main() -> Result<(), Box<dyn Error>> {
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    let aeron = Aeron::connect(context)?;
    let mut context = ClusterContext::from_env()?;
    context
        .set_ingress_channel("aeron:udp?term-length=64k")?
        .set_egress_channel("aeron:udp?endpoint=localhost:0")?
        .set_keep_alive_interval(Some(Duration::from_secs(1)))?;
    let mut cluster = ClusterClient::connect(&aeron, context)?;

    let customer = i64::from(process::id());
    println!("Customer {customer}, session {}", cluster.cluster_session_id());
    let mut best_price = 100;
    for number in 0..BIDS {
        // Some bids are too low.
        let price = best_price + [3, 1, 0, 5][number % 4];
        best_price = bid(&mut cluster, [aeron.next_correlation_id(), customer, price])?;
        thread::sleep(INTERVAL);
    }
    Ok(())
}

/// Makes a bid of correlation id, customer and price, and waits for its answer. Returns the best price.
fn bid(cluster: &mut ClusterClient, bid: [i64; 3]) -> Result<i64, Box<dyn Error>> {
    let [correlation_id, _, price] = bid;
    let mut idle = Backoff::default();
    let (mut is_sent, mut best_price) = (false, None);
    while best_price.is_none() {
        if !is_sent {
            // The bid is written into the log buffer, without a copy.
            let sent = cluster.try_claim(size_of_val(&bid)).and_then(|mut claim| {
                claim.copy_from_slice(&bid.map(i64::to_le_bytes).concat());
                claim.commit()
            });
            match sent {
                Ok(_) => is_sent = true,
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let handler = |_: &mut _, event: Egress<'_>| match event {
            // The answer to a bid: its correlation id, the leading customer, the best price.
            Egress::Message { payload, .. } if number(payload, 0) == Some(correlation_id) => {
                let (leader, best) = (number(payload, 1).unwrap_or(-1), number(payload, 2));
                println!("Bid {price}: customer {leader} leads with {}", best.unwrap_or(0));
                best_price = best;
            }
            // A bid that the old leader may have lost is made again. The auction ignores a bid that comes twice,
            // because the second one is not higher.
            Egress::NewLeader { .. } => is_sent = false,
            _ => {}
        };
        idle.idle(cluster.poll_egress(handler, 10)?);
    }
    Ok(best_price.unwrap_or(price))
}

fn number(payload: &[u8], index: usize) -> Option<i64> {
    payload.get(8 * index..)?.first_chunk().copied().map(i64::from_le_bytes)
}
