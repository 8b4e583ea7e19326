//! Ways to connect, channels of ingress and egress, and credentials.

use rusteron_client::Aeron;
use rusteron_cluster::{
    AdminResponseCode, ClusterClient, ClusterContext, ClusterError, ClusterErrorKind, ClusterState,
    CredentialsSupplier, Egress,
};
use rusteron_test_support::cluster::{JavaCluster, Options, Service};
use rusteron_test_support::{
    await_some, await_that, block_on, context as client_context, free_port, launch,
};

use super::{Host, TIMEOUT, assert_echo, context, request, retry};

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
    let driver = launch();
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
        .unwrap()
        .set_egress_channel(format!("aeron:udp?endpoint=localhost:{}", free_port()))
        .unwrap();
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
    let mut settings = ClusterContext::new();
    settings
        .set_ingress_channel("aeron:ipc?term-length=64k")
        .unwrap()
        .set_egress_channel("aeron:ipc")
        .unwrap()
        .set_message_timeout(TIMEOUT)
        .unwrap();
    for is_exclusive in [true, false] {
        settings.set_is_ingress_exclusive(is_exclusive).unwrap();
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
