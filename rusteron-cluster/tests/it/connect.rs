//! Attempts to connect that no cluster answers.

use std::thread;
use std::time::Duration;

use rusteron_client::{Aeron, ErrorKind};
use rusteron_cluster::{
    ClusterClient, ClusterContext, ClusterErrorKind, ClusterState, ConnectState,
};
use rusteron_test_support::cluster::StandIn;
use rusteron_test_support::{
    DEADLINE, await_some, await_that, block_on, connect, connect_watchfully, context, free_port,
    launch,
};

const SHORT: Duration = Duration::from_millis(300);

fn cluster_context(channel: &str) -> ClusterContext {
    let mut context = ClusterContext::new();
    context
        .set_ingress_channel(channel)
        .unwrap()
        .set_egress_channel("aeron:udp?endpoint=localhost:0")
        .unwrap()
        .set_message_timeout(DEADLINE)
        .unwrap();
    context
}

fn members(endpoints: &str) -> ClusterContext {
    let mut context = cluster_context("aeron:udp");
    context.set_ingress_endpoints(endpoints.parse().expect("endpoints")).unwrap();
    context
}

#[test]
fn unresolved_name_leaves_other_members() {
    let driver = launch();
    let aeron = connect(&driver);
    let endpoint = format!("localhost:{}", free_port());
    let channel = format!("aeron:udp?endpoint={endpoint}");
    let mut leader = StandIn::new(&connect(&driver), &channel, 1);
    // This driver has no name resolver that knows the name.
    let context = members(&format!("0=node-0,1={endpoint}"));
    let mut attempt = ClusterClient::async_connect(&aeron, context).expect("valid settings");
    let request = leader.await_request(|| assert!(attempt.poll().expect("no error").is_none()));
    leader.accept(&request);
    let client = await_some("the session", || attempt.poll().expect("no error"));
    assert_eq!(client.leader_member_id(), 1);
    // The driver's answer, if there is no other member.
    let error = ClusterClient::connect(&aeron, members("0=node-0")).unwrap_err();
    assert!(error.message().contains("node-0"), "{error}");
}

#[test]
fn awaited_timeout() {
    let driver = launch();
    let aeron = connect(&driver);
    let mut context = members(&format!("0=localhost:{}", free_port()));
    context.set_message_timeout(SHORT).unwrap();
    let attempt = ClusterClient::async_connect(&aeron, context).expect("valid settings");
    let error = block_on(attempt).unwrap_err();
    assert_eq!(error.kind(), ClusterErrorKind::Timeout, "{error}");
}

#[test]
fn client_without_conductor_thread_connects() {
    let driver = launch();
    let mut client_context = context(driver.aeron_dir());
    client_context.set_use_conductor_agent_invoker(true).expect("a setting");
    let aeron = Aeron::connect(client_context).expect("a client");
    let mut leader = StandIn::new(&connect(&driver), "aeron:ipc", 0);
    let mut settings = cluster_context("aeron:ipc");
    settings.set_egress_channel("aeron:ipc").unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let request = leader.await_request(thread::yield_now);
            leader.accept(&request);
        });
        let session = ClusterClient::connect(&aeron, settings).expect("a session");
        assert_eq!(session.state(), ClusterState::Connected);
    });
}

#[test]
fn closed_client_ends_attempt() {
    let driver = launch();
    let aeron = connect_watchfully(&driver);
    let context = members("0=localhost:1");
    let mut attempt = ClusterClient::async_connect(&aeron, context.clone()).expect("an attempt");
    await_that("the publication", || {
        assert!(attempt.poll().expect("pending").is_none());
        attempt.state() == ConnectState::AwaitConnected
    });
    drop(driver);
    await_that("the client's end", || aeron.is_closed());
    let error = await_some("the attempt's end", || attempt.poll().err());
    assert_eq!(error.kind(), ClusterErrorKind::Client(ErrorKind::ClientClosed), "{error}");
    assert_eq!(attempt.state(), ConnectState::Done);
    let error = ClusterClient::connect(&aeron, context).unwrap_err();
    assert_eq!(error.kind(), ClusterErrorKind::Client(ErrorKind::ClientClosed));
}
