//! Messages to the cluster and its answers.

use std::io::IoSlice;

use rusteron_client::{Action, Header, OfferError};
use rusteron_cluster::{ClusterClient, ClusterState, Egress, EgressAdapter, Ingress};
use rusteron_test_support::cluster::{AeronVersion, JavaCluster, Options, Service, load};
use rusteron_test_support::{Random, await_that, connect, free_port, launch_with_long_timeouts};

use super::{Host, assert_echo, context, receive, request, retry, send};

#[test]
fn offers_parts_and_claims_are_echoed() {
    let Some(cluster) = JavaCluster::launch(Options::default()) else { return };
    let host = Host::new();
    for is_exclusive in [true, false] {
        let mut settings = context(&cluster);
        settings.set_is_ingress_exclusive(is_exclusive).unwrap();
        let mut session = host.connect(settings);
        let mut random = Random::new(5);
        let max_payload_length = session.ingress().max_payload_length();
        assert!(session.ingress().max_message_length() > 100_000);

        for length in [0, 1, 32, max_payload_length, max_payload_length + 1, 100_000] {
            let message = random.bytes(length);
            send(&mut session, &message);
            assert!(receive(&mut session, 1) == [&message[..]], "offer of {length} bytes");

            for count in [1, 3, 15, 16, 40] {
                let parts: Vec<IoSlice<'_>> =
                    message.chunks(length.div_ceil(count).max(1)).map(IoSlice::new).collect();
                retry(&mut session, |session| session.offer_parts(&parts));
                assert!(receive(&mut session, 1) == [&message[..]], "{count} parts of {length}");
            }

            if length <= max_payload_length {
                retry(&mut session, |session| {
                    let mut claim = session.try_claim(length)?;
                    assert_eq!(claim.len(), length);
                    claim.copy_from_slice(&message);
                    claim.commit()
                });
                assert!(receive(&mut session, 1) == [&message[..]], "claim of {length} bytes");
            }
        }

        retry(&mut session, |session| session.try_claim(8).map(|claim| claim.abort()));
        assert_eq!(request(&mut session, b"after"), b"after");

        let error = session.try_claim(max_payload_length + 1).unwrap_err();
        assert!(matches!(error, OfferError::MessageTooLong { .. }), "{error}");
        let max_message_length = session.ingress().max_message_length();
        let error = session.offer(&vec![0; max_message_length + 1]).unwrap_err();
        assert!(matches!(error, OfferError::MessageTooLong { .. }), "{error}");
        let error = session.try_claim(usize::MAX).unwrap_err();
        assert!(matches!(error, OfferError::MessageTooLong { .. }), "{error}");
        assert_eq!(request(&mut session, b"still open"), b"still open");
    }
}

#[test]
fn handler_sends_the_next_message() {
    const COUNT: u64 = 200;
    let Some(cluster) = JavaCluster::launch(Options::default()) else { return };
    let host = Host::new();
    let mut session = host.connect(context(&cluster));
    send(&mut session, &0_u64.to_le_bytes());
    let mut last = None;
    await_that("all answers", || {
        let handler = |ingress: &mut Ingress, event: Egress<'_>| {
            let Egress::Message { payload, header, .. } = event else { panic!("{event:?}") };
            let number = u64::from_le_bytes(payload.try_into().expect("8 bytes"));
            assert_eq!(number, last.map_or(0, |last| last + 1));
            assert!(payload.as_ptr().addr().is_multiple_of(32));
            assert_eq!(header.frame_length(), 32 + 32 + 8);
            last = Some(number);
            let next = number + 1;
            while next < COUNT && ingress.offer(&next.to_le_bytes()).is_err() {}
        };
        session.poll_egress(handler, 10).expect("an open session");
        last == Some(COUNT - 1)
    });
}

#[test]
fn aborted_message_comes_again() {
    let Some(cluster) = JavaCluster::launch(Options::default()) else { return };
    let host = Host::new();
    let mut session = host.connect(context(&cluster));
    for number in 0..20_u8 {
        send(&mut session, &[number]);
    }
    let mut seen = Vec::new();
    let mut accepted = Vec::new();
    await_that("all answers", || {
        let handler = |_: &mut Ingress, event: Egress<'_>| {
            let Egress::Message { payload, .. } = event else { panic!("{event:?}") };
            let is_first = seen.last() != Some(&payload[0]);
            seen.push(payload[0]);
            match payload[0] % 4 {
                0 if is_first => return Action::Abort,
                number => accepted.push((payload[0], number)),
            }
            [Action::Continue, Action::Break, Action::Commit][usize::from(payload[0]) % 3]
        };
        session.controlled_poll_egress(handler, 10).expect("an open session");
        accepted.len() == 20
    });
    assert!(accepted.iter().map(|accepted| accepted.0).eq(0..20), "{accepted:?}");
    assert_eq!(seen.len(), 25, "{seen:?}");
}

#[test]
fn long_answers_are_whole() {
    let options = Options { service: Service::Number, ..Options::default() };
    let Some(cluster) = JavaCluster::launch(options) else { return };
    let host = Host::new();
    let mut session = host.connect(context(&cluster));
    for length in [0, 1, 1375, 1376, 100_000_u32] {
        let command = [&b"b"[..], &length.to_le_bytes()].concat();
        let expected: Vec<u8> = (0..length).map(|i| (7 * i) as u8).collect();
        assert!(request(&mut session, &command) == expected, "{length} bytes");
    }
    assert_eq!(request(&mut session, b"x"), b"unknown");
}

#[test]
fn own_streams_with_header_and_adapter() {
    let Some(cluster) = JavaCluster::launch(Options::default()) else { return };
    let host = Host::new();
    let port = free_port();
    let egress_channel = format!("aeron:udp?endpoint=localhost:{port}");
    let mut settings = context(&cluster);
    settings.set_egress_channel(&*egress_channel).unwrap().set_is_ingress_exclusive(false).unwrap();
    let mut session = host.connect(settings);

    // A second publication and subscription of the same streams.
    let ingress_channel =
        format!("aeron:udp?endpoint={}|term-length=1m", cluster.node(0).ingress_endpoint());
    let publication = host.aeron.add_publication(&*ingress_channel, 101).expect("a publication");
    let egress = session.egress_subscription().expect("an open session").channel().to_owned();
    let mut subscription = host.aeron.add_subscription(egress, 102).expect("a subscription");
    await_that("the connection", || publication.is_connected());
    await_that("the image", || subscription.is_connected());

    let header = *session.ingress().session_header();
    let parts = [IoSlice::new(header.as_bytes()), IoSlice::new(b"own")];
    await_that("an accepted offer", || publication.offer_parts(&parts).is_ok());
    assert_eq!(receive(&mut session, 1), [b"own"]);

    let adapter = EgressAdapter::new(session.cluster_session_id());
    let other = EgressAdapter::new(session.cluster_session_id() + 1);
    let mut received = Vec::new();
    await_that("the same answer", || {
        let handler = |message: &[u8], header: &Header<'_>| {
            assert!(other.decode(message, header).is_none());
            if let Some(Egress::Message { payload, .. }) = adapter.decode(message, header) {
                received.push(payload.to_vec());
            }
        };
        subscription.poll(handler, 10).expect("an open subscription");
        !received.is_empty()
    });
    assert_eq!(received, [b"own"]);
}

#[test]
fn suspended_cluster_answers_after_resuming() {
    let Some(mut cluster) = JavaCluster::launch(Options::default()) else { return };
    let host = Host::new();
    let mut session = host.connect(context(&cluster));
    assert_echo(&mut session, b"before");
    cluster.node_mut(0).toggle("suspend");
    cluster.node_mut(0).await_that("suspended", |node| node.log().contains("suspend begins"));
    for number in 0..10_u8 {
        retry(&mut session, |session| session.offer(&[number]));
    }
    cluster.node_mut(0).toggle("resume");
    let answers = receive(&mut session, 10);
    assert!(answers.iter().map(|answer| answer[0]).eq(0..10), "{answers:?}");
    assert_eq!(session.state(), ClusterState::Connected);
}

#[test]
#[ignore = "compiles Aeron's Java code once: just test-cluster"]
fn compiled_node_answers() {
    let versions = vec![AeronVersion::Compiled];
    let options = Options { versions, service: Service::Number, ..Options::default() };
    let Some(cluster) = JavaCluster::launch(options) else { return };
    let driver = launch_with_long_timeouts();
    let context = load::context(&cluster.ingress_endpoints());
    let load =
        load::Load::start(ClusterClient::connect(&connect(&driver), context).expect("a session"));
    load.await_answers();
    load.finish();
}
