//! The client's message path. A stand-in for the cluster answers.

use std::io::IoSlice;
use std::time::Duration;

use rusteron_client::{Action, Aeron, OfferError};
use rusteron_cluster::{ClusterClient, ClusterContext, Egress, Ingress, SessionHeader};
use rusteron_test_support::cluster::StandIn;
use rusteron_test_support::{await_some, await_that, connect, launch};

use crate::without_allocating;

const MESSAGE: &[u8] = b"a message that fits in a fragment";

/// Opens a session with a stand-in on the same media driver.
fn accept(aeron: &Aeron, context: ClusterContext) -> (StandIn, ClusterClient) {
    let mut leader = StandIn::new(aeron, "aeron:ipc", 0);
    let mut attempt = ClusterClient::async_connect(aeron, context).expect("valid settings");
    let request = leader.await_request(|| assert!(attempt.poll().expect("no error").is_none()));
    leader.accept(&request);
    let client = await_some("the session", || attempt.poll().expect("no error"));
    (leader, client)
}

fn context(is_exclusive: bool) -> ClusterContext {
    let mut context = ClusterContext::new();
    context
        .set_ingress_channel("aeron:ipc")
        .unwrap()
        .set_egress_channel("aeron:ipc")
        .unwrap()
        .set_is_ingress_exclusive(is_exclusive)
        .unwrap()
        .set_message_timeout(Duration::from_secs(60))
        .unwrap();
    context
}

fn sent<T>(what: &str, mut attempt: impl FnMut() -> Result<T, OfferError>) {
    await_that(what, || without_allocating(what, &mut attempt).is_ok());
}

#[test]
fn sending_does_not_allocate() {
    let driver = launch();
    let aeron = connect(&driver);
    for is_exclusive in [true, false] {
        let (mut leader, mut client) = accept(&aeron, context(is_exclusive));
        let long = vec![7; 100_000];
        let header = *client.ingress().session_header();
        let expected = |message: &[u8]| [header.as_bytes(), message].concat();

        sent("an offer", || client.offer(MESSAGE));
        assert_eq!(leader.receive(), expected(MESSAGE));
        sent("an offer in fragments", || client.offer(&long));
        assert!(leader.receive() == expected(&long));
        let parts = [IoSlice::new(MESSAGE); 15];
        sent("an offer of parts", || client.offer_parts(&parts));
        assert_eq!(leader.receive(), expected(&MESSAGE.repeat(15)));
        sent("a claim", || {
            let mut claim = client.try_claim(MESSAGE.len())?;
            claim.copy_from_slice(MESSAGE);
            claim.commit()
        });
        assert_eq!(leader.receive(), expected(MESSAGE));
        sent("a keep-alive", || client.send_keep_alive());
        leader.receive();
        sent("a request", || client.request_snapshot(1.into()));
        leader.receive();
    }
}

#[test]
fn polling_does_not_allocate() {
    let driver = launch();
    let aeron = connect(&driver);
    for keep_alive_interval in [None, Some(Duration::from_nanos(1))] {
        let mut settings = context(true);
        settings.set_keep_alive_interval(keep_alive_interval).unwrap();
        let (mut leader, mut client) = accept(&aeron, settings);
        let mut received = 0;
        // Counts messages, and answers them.
        let mut poll = |client: &mut ClusterClient| {
            let handler = |ingress: &mut Ingress, event: Egress<'_>| {
                if let Egress::Message { payload, .. } = event {
                    assert_eq!(payload, MESSAGE);
                    received += usize::from(ingress.offer(payload).is_ok());
                }
            };
            client.poll_egress(handler, 10).expect("an open session");
            received
        };
        // The first poll of an image may allocate.
        poll(&mut client);
        for count in 1..=20 {
            leader.send_message(MESSAGE);
            await_that("a message", || without_allocating("a poll", || poll(&mut client)) == count);
            while leader.receive().len() != SessionHeader::LENGTH + MESSAGE.len() {}
        }
        leader.send_message(MESSAGE);
        let mut count = 0;
        await_that("a controlled message", || {
            let handler = |_: &mut Ingress, event: Egress<'_>| {
                count += usize::from(matches!(event, Egress::Message { .. }));
                Action::Commit
            };
            without_allocating("a controlled poll", || {
                client.controlled_poll_egress(handler, 10).expect("an open session")
            });
            count == 1
        });
    }
}
