//! The client against a cluster of one Java member.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, IdleStrategy, IdleStrategyKind, OfferError};
use rusteron_cluster::{
    AdminResponseCode, ClusterClient, ClusterCloseCause, ClusterContext, ClusterError,
    ClusterErrorKind, ClusterState, CorrelationId, CredentialsSupplier, Egress,
};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::cluster::{JavaCluster, Options};
use rusteron_test_support::{Random, await_some, await_that, block_on, connect, free_port, launch};

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

/// Requests a snapshot, and returns the answer: its code and text.
fn request_snapshot(cluster: &mut ClusterClient) -> (AdminResponseCode, String) {
    const CORRELATION_ID: i64 = 17;
    retry(cluster, |cluster| cluster.request_snapshot(CorrelationId::new(CORRELATION_ID)));
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
    assert_eq!((blocking.leader_member_id(), blocking.leadership_term_id()), (0.into(), 0.into()));
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
fn ingress_over_multicast() {
    let port = free_port();
    let channel = format!("aeron:udp?endpoint=224.20.30.39:{port}|interface=localhost");
    let properties = vec![format!("aeron.cluster.ingress.channel={channel}")];
    let Some(cluster) = JavaCluster::launch(Options { properties, ..Options::default() }) else {
        return;
    };
    let host = Host::new();
    let mut settings = ClusterContext::new();
    settings
        .set_ingress_channel(channel)
        .unwrap()
        .set_egress_channel("aeron:udp?endpoint=localhost:0")
        .unwrap()
        .set_message_timeout(TIMEOUT)
        .unwrap();
    let mut session = host.connect(settings);
    assert_echo(&mut session, b"multicast");
    drop(cluster);
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
    settings.set_credentials_supplier(credentials).unwrap();
    ClusterClient::connect(&host.aeron, settings)
}

/// Waits until the service has printed who has opened a session.
fn assert_opened_by(cluster: &JavaCluster, session: &ClusterClient, principal: &str) {
    let line = format!("session {} opened by '{principal}'", session.cluster_session_id());
    await_that(&line, || cluster.node(0).log().contains(&line));
}

#[test]
fn credentials_challenge_and_rights() {
    let options = Options::default().with_security();
    let Some(mut cluster) = JavaCluster::launch(options) else { return };
    let host = Host::new();

    // The service sees the principal.
    let mut ann = log_in(&host, &cluster, Credentials("ann", "")).expect("a session");
    assert_opened_by(&cluster, &ann, "ann");

    let bob = Credentials("challenge:bob", "secret of bob");
    let mut bob = log_in(&host, &cluster, bob).expect("a session");
    assert_opened_by(&cluster, &bob, "bob");
    assert_echo(&mut bob, b"after the challenge");

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
    assert_echo(&mut ann, b"after the snapshot");
}

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

const CLOSED: ClusterState = ClusterState::Closed(ClusterCloseCause::ClosedByCluster);

#[test]
fn keep_alives_keep_a_session_open() {
    let session_timeout = Duration::from_secs(10);
    let options = Options { session_timeout, ..Options::default() };
    let Some(cluster) = JavaCluster::launch(options) else { return };
    let host = Host::new();
    let interval = Duration::from_millis(200);
    let mut settings = context(&cluster);
    settings.set_keep_alive_interval(Some(interval)).unwrap();
    let mut silent = host.connect(context(&cluster));
    let mut manual = host.connect(context(&cluster));
    let mut attempt = ClusterClient::async_connect(&host.aeron, settings).expect("an attempt");
    let mut automatic = await_some("the last session", || {
        // The second session may not end meanwhile.
        let _ = manual.send_keep_alive();
        attempt.poll().expect("pending")
    });

    let mut last_keep_alive = Instant::now();
    let mut reasons = Vec::new();
    let mut idle = IdleStrategyKind::Backoff.new_strategy();
    await_that("the session timeout", || {
        idle.idle(0);
        automatic.poll_egress(|_, event| panic!("{event:?}"), 10).expect("kept alive by polls");
        manual.poll_egress(|_, event| panic!("{event:?}"), 10).expect("kept alive by hand");
        if last_keep_alive.elapsed() >= interval && manual.send_keep_alive().is_ok() {
            last_keep_alive = Instant::now();
        }
        let handler = |_: &mut _, event: Egress<'_>| {
            if let Egress::SessionEvent { detail, .. } = event {
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
