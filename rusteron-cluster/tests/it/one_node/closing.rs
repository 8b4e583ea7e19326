//! Ends of sessions.

use std::time::{Duration, Instant};

use rusteron_client::{IdleStrategy, IdleStrategyKind, OfferError};
use rusteron_cluster::{
    ClusterClient, ClusterCloseCause, ClusterErrorKind, ClusterState, Egress, EventCode,
};
use rusteron_test_support::cluster::{JavaCluster, Options, Service};
use rusteron_test_support::{await_some, await_that, connect_watchfully, launch};

use super::{Host, assert_echo, context, send};

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
fn killed_cluster_closes_the_session() {
    let Some(mut cluster) = JavaCluster::launch(Options::default()) else { return };
    let host = Host::new();
    let mut settings = context(&cluster);
    settings.set_new_leader_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut offering = host.connect(settings.clone());
    let mut polling = host
        .connect(settings.set_keep_alive_interval(Some(Duration::from_secs(1))).unwrap().clone());
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
        assert_eq!(session.state(), ClusterState::Closed(ClusterCloseCause::NoNewLeader));
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
    assert_eq!(polling.state(), ClusterState::Closed(ClusterCloseCause::ClientClosed(cause)));
    assert!(offering.offer(b"closed").is_err());
    assert_eq!(offering.state(), ClusterState::Closed(ClusterCloseCause::ClientClosed(cause)));
}
