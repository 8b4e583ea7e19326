//! The life of a session: keep-alives, timeouts, closing, suspended clusters.

use std::time::Duration;

use rusteron_client::{IdleStrategy, IdleStrategyKind};
use rusteron_cluster::{CloseCause, ClusterClient, ClusterErrorKind, ClusterState};
use rusteron_test_support::cluster::{JavaCluster, Options, Service};
use rusteron_test_support::{await_some, await_that};

use super::{Host, assert_echo, await_close, context, receive, retry, send};

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
