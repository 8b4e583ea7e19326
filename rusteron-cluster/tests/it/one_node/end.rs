//! The end of the cluster, and of the client's media driver.

use std::time::Duration;

use rusteron_client::OfferError;
use rusteron_cluster::{CloseCause, ClusterClient, ClusterErrorKind, ClusterState};
use rusteron_test_support::cluster::{JavaCluster, Options};
use rusteron_test_support::{await_that, connect_watchfully, launch};

use super::{Host, assert_echo, await_close, context};

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
