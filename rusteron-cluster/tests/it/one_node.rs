//! The client against a cluster of one Java member.

mod closing;
mod connecting;
mod messages;

use std::time::Duration;

use rusteron_client::{Aeron, OfferError};
use rusteron_cluster::{ClusterClient, ClusterContext, Egress};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::cluster::JavaCluster;
use rusteron_test_support::{await_some, await_that, connect, launch};

/// Longer than any answer takes on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A media driver of the clients' own, and a client of it.
struct Host {
    aeron: Aeron,
    _driver: MediaDriver,
}

impl Host {
    fn new() -> Self {
        let driver = launch();
        Self { aeron: connect(&driver), _driver: driver }
    }

    fn connect(&self, context: ClusterContext) -> ClusterClient {
        ClusterClient::connect(&self.aeron, context).expect("a session")
    }
}

/// Settings for the cluster, with the members' endpoints.
fn context(cluster: &JavaCluster) -> ClusterContext {
    let mut context = ClusterContext::new();
    context
        .set_ingress_channel("aeron:udp?term-length=1m")
        .unwrap()
        .set_ingress_endpoints(cluster.ingress_endpoints().parse().expect("endpoints"))
        .unwrap()
        .set_egress_channel("aeron:udp?endpoint=localhost:0")
        .unwrap()
        .set_message_timeout(TIMEOUT)
        .unwrap()
        .set_client_name("rusteron-test")
        .unwrap();
    context
}

/// Offers until the cluster's leader accepts; polls meanwhile.
fn retry<T>(
    cluster: &mut ClusterClient,
    mut attempt: impl FnMut(&mut ClusterClient) -> Result<T, OfferError>,
) -> T {
    await_some("an accepted offer", || match attempt(cluster) {
        Ok(outcome) => Some(outcome),
        Err(error) if error.is_retryable() => {
            cluster.poll_egress(|_, event| panic!("{event:?}"), 1).expect("an open session");
            None
        }
        Err(error) => panic!("{error}"),
    })
}

fn send(cluster: &mut ClusterClient, message: &[u8]) {
    retry(cluster, |cluster| cluster.offer(message));
}

/// The next `count` messages of the service; panics on other events.
fn receive(cluster: &mut ClusterClient, count: usize) -> Vec<Vec<u8>> {
    let mut received = Vec::new();
    await_that("the answers", || {
        let handler = |_: &mut _, event: Egress<'_>| match event {
            Egress::Message { payload, timestamp, .. } => {
                assert!(timestamp > 0, "{timestamp}");
                received.push(payload.to_vec());
            }
            event => panic!("{event:?}"),
        };
        cluster.poll_egress(handler, 10).expect("an open session");
        received.len() >= count
    });
    assert_eq!(received.len(), count);
    received
}

/// Sends a message, and returns the answer.
fn request(cluster: &mut ClusterClient, message: &[u8]) -> Vec<u8> {
    send(cluster, message);
    receive(cluster, 1).remove(0)
}

/// Sends a message that an echo service answers.
fn assert_echo(cluster: &mut ClusterClient, message: &[u8]) {
    assert_eq!(request(cluster, message), message);
}
