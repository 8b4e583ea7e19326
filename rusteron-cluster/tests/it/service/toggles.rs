//! Requests of an operator, by the consensus module's toggle.

use std::fs;

use rusteron_cluster::__private::MarkFileHeader;
use rusteron_cluster::{ServiceContext, TerminationCause};
use rusteron_test_support::await_that;
use rusteron_test_support::cluster::Options;

use super::Node;

/// The counter of the consensus module's state, and the state of a suspended one.
const STATE: i32 = 200;
const SUSPENDED: i64 = 2;

#[test]
fn abort_ends_without_a_snapshot() {
    let node = Node::launch_probe(Options::default(), ServiceContext::new());
    let Some((mut node, before)) = node else { return };
    let mut client = node.client();
    assert_eq!(client.ask("echo before"), "echo before");
    node.cluster.node_mut(0).toggle("abort");
    let cause = node.await_service();
    let is_orderly =
        matches!(cause, TerminationCause::ConsensusModuleTerminated { is_expected: true, .. });
    assert!(is_orderly, "{cause:?}");
    assert!(node.cluster.node_mut(0).await_end().expect("a status").success());
    assert_eq!((before.count("terminate"), before.count("snapshot")), (1, 0));
    drop(client);
    // The log is replayed from its beginning.
    let after = node.restart_probe();
    assert_eq!(after.events()[0], "start 0 messages, 0 sessions");
    assert_eq!(after.count("echo before"), 1);
}

#[test]
fn suspended_cluster_sends_no_messages() {
    let node = Node::launch_probe(Options::default(), ServiceContext::new());
    let Some((mut node, service)) = node else { return };
    let mut client = node.client();
    assert_eq!(client.ask("timer 5 1000"), "set");
    node.cluster.node_mut(0).toggle("suspend");
    await_that("a suspended cluster", || node.counter(STATE) == Some(SUSPENDED));
    client.send("echo meanwhile");
    // The container goes on giving signs of life, and gets no message for seconds.
    let path = node.cluster.node(0).cluster_dir().join("cluster-mark-service-0.dat");
    let last_sign = || {
        let header = MarkFileHeader::decode(&fs::read(&path).expect("a mark file"));
        header.expect("a mark file").activity_timestamp
    };
    let begin = last_sign();
    await_that("signs of life", || last_sign() >= begin + 2000);
    assert_eq!(service.count("echo meanwhile"), 0);
    assert!(!client.received.iter().any(|message| message == "echo meanwhile"));
    let is_fired = service.count("fired 5") > 0;
    node.cluster.node_mut(0).toggle("resume");
    let mut received: Vec<String> = (0..2).map(|_| client.receive()).collect();
    received.sort();
    assert_eq!(received, ["echo meanwhile", "fired 5"]);
    // It may have fired between its request and the suspension.
    assert_eq!(service.count("fired 5"), 1, "{is_fired}");
    assert_eq!(client.ask("echo again"), "echo again");
}

#[test]
fn standby_snapshot_is_ignored() {
    let node = Node::launch_probe(Options::default(), ServiceContext::new());
    let Some((mut node, service)) = node else { return };
    let mut client = node.client();
    let position = node.cluster.node(0).commit_position();
    node.cluster.node_mut(0).toggle("standby_snapshot");
    node.cluster.node_mut(0).await_that("a longer log", |node| node.commit_position() > position);
    assert_eq!(client.ask("echo behind"), "echo behind");
    assert_eq!(service.count("snapshot"), 0);
    // An acknowledgement too many would have ended the node by now.
    node.snapshot();
    assert_eq!(service.count("snapshot"), 1);
    assert_eq!(client.ask("echo again"), "echo again");
}
