//! The client against a cluster of one Java member.

use std::io::IoSlice;
use std::time::Duration;

use rusteron_client::{Action, Aeron, IdleStrategy, IdleStrategyKind, OfferError};
use rusteron_cluster::{
    AdminResponseCode, CloseCause, ClusterClient, ClusterContext, ClusterError, ClusterErrorKind,
    ClusterState, CredentialsSupplier, Egress, EgressAdapter, EventCode, Ingress,
};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::cluster::{AeronVersion, JavaCluster, Options, Service, load};
use rusteron_test_support::{
    Random, await_some, await_that, block_on, connect, connect_watchfully,
    context as client_context, free_port, launch, launch_with_long_timeouts,
};

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
        .set_ingress_endpoints(cluster.ingress_endpoints().parse().expect("endpoints"))
        .set_egress_channel("aeron:udp?endpoint=localhost:0")
        .set_message_timeout(TIMEOUT)
        .set_client_name("rusteron-test");
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

/// Polls until the session is closed. Returns the reasons that the cluster gave.
fn await_close(cluster: &mut ClusterClient) -> Vec<String> {
    let mut reasons = Vec::new();
    await_that("the end of the session", || {
        let handler = |_: &mut _, event: Egress<'_>| {
            if let Egress::SessionEvent { code: EventCode::Closed, detail, .. } = event {
                reasons.push(detail.into_owned());
            }
        };
        cluster.poll_egress(handler, 10).expect("a session that was open before");
        matches!(cluster.state(), ClusterState::Closed(_))
    });
    reasons
}

/// Requests a snapshot, and returns the answer: its code and text.
fn request_snapshot(cluster: &mut ClusterClient) -> (AdminResponseCode, String) {
    const CORRELATION_ID: i64 = 17;
    retry(cluster, |cluster| cluster.request_snapshot(CORRELATION_ID));
    let mut answer = None;
    await_that("the answer to the request", || {
        let handler = |_: &mut _, event: Egress<'_>| match event {
            Egress::AdminResponse { correlation_id, response_code, message, .. } => {
                assert_eq!(correlation_id, CORRELATION_ID);
                answer = Some((response_code, message.into_owned()));
            }
            event => panic!("{event:?}"),
        };
        cluster.poll_egress(handler, 10).expect("an open session");
        answer.is_some()
    });
    answer.expect("an answer")
}

#[test]
fn connects_blocking_polled_and_awaited() {
    let Some(cluster) = JavaCluster::launch(Options::default()) else { return };
    let host = Host::new();

    let mut blocking = host.connect(context(&cluster));
    assert_eq!(blocking.state(), ClusterState::Connected);
    assert_eq!((blocking.leader_member_id(), blocking.leadership_term_id()), (0, 0));
    assert_echo(&mut blocking, b"blocking");

    let mut attempt = ClusterClient::async_connect(&host.aeron, context(&cluster)).unwrap();
    let mut polled = await_some("a session", || attempt.poll().expect("no error"));
    assert_echo(&mut polled, b"polled");
    let error = attempt.poll().unwrap_err();
    assert!(matches!(error.kind(), ClusterErrorKind::Client(_)), "{error}");

    let attempt = ClusterClient::async_connect(&host.aeron, context(&cluster)).unwrap();
    let mut awaited = block_on(attempt).expect("a session");
    assert_echo(&mut awaited, b"awaited");

    // The sessions are independent.
    let sessions = [&blocking, &polled, &awaited].map(ClusterClient::cluster_session_id);
    assert!(sessions[0] < sessions[1] && sessions[1] < sessions[2], "{sessions:?}");
    assert_echo(&mut blocking, b"blocking again");
}

#[test]
fn client_without_conductor_thread_connects() {
    let Some(cluster) = JavaCluster::launch(Options::default()) else { return };
    let driver = rusteron_test_support::launch();
    let mut client = client_context(driver.aeron_dir());
    client.set_use_conductor_agent_invoker(true).expect("a setting");
    let aeron = Aeron::connect(client).expect("a client");
    let mut session = ClusterClient::connect(&aeron, context(&cluster)).expect("a session");
    assert_echo(&mut session, b"invoker");
    session.close();
    aeron.do_work().expect("an open client");
}

#[test]
fn shared_ingress_and_egress_serve_two_sessions() {
    let Some(cluster) = JavaCluster::launch(Options::default()) else { return };
    let host = Host::new();
    let mut settings = context(&cluster);
    settings
        .set_is_ingress_exclusive(false)
        .set_egress_channel(format!("aeron:udp?endpoint=localhost:{}", free_port()));
    let (mut first, mut second) = (host.connect(settings.clone()), host.connect(settings));
    // Each session sees its own answers only.
    for number in 0..10_u8 {
        assert_echo(&mut first, &[number, 1]);
        assert_echo(&mut second, &[number, 2]);
    }
    drop(first);
    assert_echo(&mut second, b"still here");
}

#[test]
fn ingress_over_ipc() {
    let Some(cluster) = JavaCluster::launch(Options::default()) else { return };
    let aeron = cluster.node(0).aeron();
    let mut settings = rusteron_cluster::ClusterContext::new();
    settings
        .set_ingress_channel("aeron:ipc?term-length=64k")
        .set_egress_channel("aeron:ipc")
        .set_message_timeout(TIMEOUT);
    for is_exclusive in [true, false] {
        settings.set_is_ingress_exclusive(is_exclusive);
        let mut session = ClusterClient::connect(&aeron, settings.clone()).expect("a session");
        assert_echo(&mut session, b"ipc");
    }
}

#[test]
fn ingress_over_multicast() {
    let port = free_port();
    let channel = format!("aeron:udp?endpoint=224.20.30.39:{port}|interface=localhost");
    let properties = vec![format!("aeron.cluster.ingress.channel={channel}")];
    let Some(cluster) = JavaCluster::launch(Options { properties, ..Options::default() }) else {
        return;
    };
    let host = Host::new();
    let mut settings = rusteron_cluster::ClusterContext::new();
    settings
        .set_ingress_channel(channel)
        .set_egress_channel("aeron:udp?endpoint=localhost:0")
        .set_message_timeout(TIMEOUT);
    let mut session = host.connect(settings);
    assert_echo(&mut session, b"multicast");
    drop(cluster);
}

#[test]
fn session_limit_is_a_rejection() {
    let properties = vec!["aeron.cluster.max.sessions=1".to_owned()];
    let Some(cluster) = JavaCluster::launch(Options { properties, ..Options::default() }) else {
        return;
    };
    let host = Host::new();
    let mut first = host.connect(context(&cluster));
    let error = ClusterClient::connect(&host.aeron, context(&cluster)).unwrap_err();
    assert_eq!(error.kind(), ClusterErrorKind::Rejected, "{error}");
    assert!(error.message().contains("limit"), "{error}");
    assert_echo(&mut first, b"first");
}

#[test]
fn offers_parts_and_claims_are_echoed() {
    let Some(cluster) = JavaCluster::launch(Options::default()) else { return };
    let host = Host::new();
    for is_exclusive in [true, false] {
        let mut settings = context(&cluster);
        settings.set_is_ingress_exclusive(is_exclusive);
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
    const COUNT: u64 = 2000;
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
    let port = rusteron_test_support::free_port();
    let egress_channel = format!("aeron:udp?endpoint=localhost:{port}");
    let mut settings = context(&cluster);
    settings.set_egress_channel(&*egress_channel).set_is_ingress_exclusive(false);
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
        let handler = |message: &[u8], header: &rusteron_client::Header<'_>| {
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

const CLOSED: ClusterState = ClusterState::Closed(CloseCause::ClosedByCluster);

#[test]
fn keep_alives_keep_a_session_open() {
    let session_timeout = Duration::from_secs(10);
    let options = Options { session_timeout, ..Options::default() };
    let Some(cluster) = JavaCluster::launch(options) else { return };
    let host = Host::new();
    let interval = Duration::from_millis(200);
    let mut settings = context(&cluster);
    settings.set_keep_alive_interval(Some(interval));
    let mut silent = host.connect(context(&cluster));
    let mut manual = host.connect(context(&cluster));
    let mut attempt = ClusterClient::async_connect(&host.aeron, settings).expect("an attempt");
    let mut automatic = await_some("the last session", || {
        // The second session may not end meanwhile.
        let _ = manual.send_keep_alive();
        attempt.poll().expect("pending")
    });

    let mut last_keep_alive = std::time::Instant::now();
    let mut reasons = Vec::new();
    let mut idle = IdleStrategyKind::Backoff.new_strategy();
    await_that("the session timeout", || {
        idle.idle(0);
        automatic.poll_egress(|_, event| panic!("{event:?}"), 10).expect("kept alive by polls");
        manual.poll_egress(|_, event| panic!("{event:?}"), 10).expect("kept alive by hand");
        if last_keep_alive.elapsed() >= interval && manual.send_keep_alive().is_ok() {
            last_keep_alive = std::time::Instant::now();
        }
        let handler = |_: &mut _, event: rusteron_cluster::Egress<'_>| {
            if let rusteron_cluster::Egress::SessionEvent { detail, .. } = event {
                reasons.push(detail.into_owned());
            }
        };
        silent.poll_egress(handler, 10).expect("not closed before");
        silent.state() == CLOSED
    });
    assert_eq!(reasons, ["TIMEOUT"]);
    assert_echo(&mut automatic, b"automatic");
    assert_echo(&mut manual, b"manual");

    // A closed session says so.
    let error = silent.poll_egress(|_, event| panic!("{event:?}"), 10).unwrap_err();
    assert_eq!(error.kind(), ClusterErrorKind::Closed);
    assert!(error.message().contains("closed the session"), "{error}");
    assert!(!silent.offer(b"late").unwrap_err().is_retryable());
    assert!(!silent.try_claim(8).unwrap_err().is_retryable());
    assert!(!silent.send_keep_alive().unwrap_err().is_retryable());
}

#[test]
fn closing_tells_the_cluster() {
    let Some(mut cluster) = JavaCluster::launch(Options::default()) else { return };
    let host = Host::new();
    for is_dropped in [true, false] {
        let mut session = host.connect(context(&cluster));
        assert_echo(&mut session, b"open");
        cluster.node_mut(0).await_that("an open session", |node| node.session_count() == 1);
        if is_dropped {
            drop(session)
        } else {
            session.close()
        }
        cluster.node_mut(0).await_that("no open session", |node| node.session_count() == 0);
    }
    assert!(cluster.node(0).log().contains("closed: CLIENT_ACTION"), "{}", cluster.node(0).log());
}

#[test]
fn service_closes_a_session() {
    let options = Options { service: Service::Number, ..Options::default() };
    let Some(cluster) = JavaCluster::launch(options) else { return };
    let host = Host::new();
    let mut session = host.connect(context(&cluster));
    send(&mut session, b"c");
    assert_eq!(await_close(&mut session), ["SERVICE_ACTION"]);
    assert_eq!(session.state(), CLOSED);
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

/// Supplies credentials, and answers challenges with a text.
struct Credentials(&'static str, &'static str);

impl CredentialsSupplier for Credentials {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        self.0.into()
    }

    fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8> {
        let challenge = String::from_utf8_lossy(encoded_challenge);
        assert!(challenge.starts_with("password of "), "{challenge}");
        self.1.into()
    }
}

fn log_in(
    host: &Host,
    cluster: &JavaCluster,
    credentials: Credentials,
) -> Result<ClusterClient, ClusterError> {
    let mut settings = context(cluster);
    settings.set_credentials_supplier(credentials);
    ClusterClient::connect(&host.aeron, settings)
}

#[test]
fn credentials_challenge_and_rights() {
    let options = Options { service: Service::Number, ..Options::default() }.with_security();
    let Some(mut cluster) = JavaCluster::launch(options) else { return };
    let host = Host::new();

    // The service sees the principal.
    let mut ann = log_in(&host, &cluster, Credentials("ann", "")).expect("a session");
    assert_eq!(request(&mut ann, b"p"), b"ann");

    let bob = Credentials("challenge:bob", "secret of bob");
    let mut bob = log_in(&host, &cluster, bob).expect("a session");
    assert_eq!(request(&mut bob, b"p"), b"bob");

    for (credentials, answer) in [("challenge:bob", "wrong"), ("reject me", "")] {
        let error = log_in(&host, &cluster, Credentials(credentials, answer)).unwrap_err();
        assert_eq!(error.kind(), ClusterErrorKind::AuthenticationRejected, "{error}");
    }

    let (code, text) = request_snapshot(&mut ann);
    assert_eq!(code, AdminResponseCode::UnauthorisedAccess, "{text}");
    assert!(!text.is_empty());
    assert_eq!(cluster.node(0).snapshot_count(), Some(0));

    let mut operator = log_in(&host, &cluster, Credentials("operator", "")).expect("a session");
    let (code, text) = request_snapshot(&mut operator);
    assert_eq!(code, AdminResponseCode::Ok, "{text}");
    cluster.node_mut(0).await_that("the snapshot", |node| node.snapshot_count() == Some(1));
    assert_eq!(request(&mut ann, b"p"), b"ann");
}

#[test]
fn killed_cluster_closes_the_session() {
    let Some(mut cluster) = JavaCluster::launch(Options::default()) else { return };
    let host = Host::new();
    let mut settings = context(&cluster);
    settings.set_new_leader_timeout(Some(Duration::from_secs(1)));
    let mut offering = host.connect(settings.clone());
    let mut polling =
        host.connect(settings.set_keep_alive_interval(Some(Duration::from_secs(1))).clone());
    assert_echo(&mut offering, b"before");
    cluster.node_mut(0).kill();

    await_that("the loss of the leader", || {
        let _ = offering.offer(b"lost");
        let _ = polling.poll_egress(|_, event| panic!("{event:?}"), 10);
        offering.state() == ClusterState::AwaitNewLeader
    });
    assert_eq!(offering.offer(b"no leader"), Err(OfferError::NotConnected));
    assert!(matches!(offering.try_claim(8), Err(OfferError::NotConnected)));
    for session in [&mut offering, &mut polling] {
        if !matches!(session.state(), ClusterState::Closed(_)) {
            assert!(await_close(session).is_empty());
        }
        assert_eq!(session.state(), ClusterState::Closed(CloseCause::NoNewLeader));
        assert!(matches!(session.offer(b"closed"), Err(OfferError::Closed(_))));
        let error = session.poll_egress(|_, _| {}, 10).unwrap_err();
        assert_eq!(error.kind(), ClusterErrorKind::Closed);
    }
}

#[test]
fn dead_media_driver_closes_the_session() {
    let Some(cluster) = JavaCluster::launch(Options::default()) else { return };
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let sessions = [context(&cluster), context(&cluster)];
    let [mut polling, mut offering] =
        sessions.map(|settings| ClusterClient::connect(&aeron, settings).expect("a session"));
    assert_echo(&mut polling, b"before");
    drop(driver);
    await_that("the client's end", || aeron.is_closed());
    let error = polling.poll_egress(|_, event| panic!("{event:?}"), 10).unwrap_err();
    assert_eq!(error.kind(), ClusterErrorKind::Closed, "{error}");
    let cause = aeron.close_cause().expect("closed");
    assert_eq!(cause, rusteron_client::CloseCause::DriverShutdown);
    assert_eq!(polling.state(), ClusterState::Closed(CloseCause::ClientClosed(cause)));
    assert!(offering.offer(b"closed").is_err());
    assert_eq!(offering.state(), ClusterState::Closed(CloseCause::ClientClosed(cause)));
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
