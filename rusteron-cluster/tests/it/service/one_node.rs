//! One member with a service in Rust.

use std::fs;

use rusteron_client::__private::error_log;
use rusteron_cluster::__private::{ENDED, MarkFileHeader, VERSION};
use rusteron_cluster::{
    ClusterErrorKind, ErrorPolicy, ServiceContainer, ServiceContext, TerminationCause,
};
use rusteron_test_support::await_that;
use rusteron_test_support::cluster::{AeronVersion, Options};

use super::Node;
use super::command_service::CommandService;

#[test]
fn echo_by_offer_and_claim() {
    let Some(node) = Node::launch() else { return };
    let mut client = node.client();
    let mut other = node.client();
    for text in ["a", "ab", "abc", &"x".repeat(5000)] {
        assert_eq!(client.ask(&format!("echo {text}")), text);
    }
    assert_eq!(other.ask("echo other"), "other");
    let ids = [client.cluster.cluster_session_id(), other.cluster.cluster_session_id()];
    assert_eq!(client.ask("sessions"), format!("{ids:?}"));
    // The digest is the service's own.
    let (count, digest) = (node.digests().len(), node.digests().last().expect("events").1);
    let answer = client.ask("digest");
    assert_ne!(answer, format!("{count} {digest:x}"));
    let (count, digest) = (node.digests().len(), node.digests().last().expect("events").1);
    assert_eq!(answer, format!("{count} {digest:x}"));
    assert_eq!(node.lifecycle(), ["start at 0", "Leader"]);
    // No errors.
    assert_eq!(node.counter(215), Some(0));
}

#[test]
fn service_closes_a_session() {
    let Some(node) = Node::launch() else { return };
    let mut client = node.client();
    let mut other = node.client();
    client.send("close");
    await_that("the end of the session", || {
        let _ = client.cluster.poll_egress(|_, _| {}, 10);
        matches!(client.cluster.state(), rusteron_cluster::ClusterState::Closed(_))
    });
    let id = other.cluster.cluster_session_id();
    assert_eq!(other.ask("sessions"), format!("[{id}]"));
}

#[test]
fn timers_and_service_messages() {
    let Some(node) = Node::launch() else { return };
    let mut client = node.client();
    assert_eq!(client.ask("timer 7 10"), "set");
    assert_eq!(client.receive(), "fired 7");
    // Replaced by an earlier deadline, and one that is cancelled.
    assert_eq!(client.ask("timer 8 3600000"), "set");
    assert_eq!(client.ask("timer 8 10"), "set");
    assert_eq!(client.receive(), "fired 8");
    // Cancelled in the same callback, long before the deadline.
    assert_eq!(client.ask("timer-and-cancel 9 2000"), "cancelled");
    assert_eq!(client.ask("timer 10 2100"), "set");
    assert_eq!(client.receive(), "fired 10");
    assert_eq!(client.ask("self hello"), "sent");
    assert_eq!(client.receive(), "self hello");
}

#[test]
fn restart_without_snapshot_replays() {
    let Some(mut node) = Node::launch() else { return };
    let mut client = node.client();
    for index in 0..20 {
        assert_eq!(client.ask(&format!("echo {index}")), index.to_string());
    }
    assert_eq!(client.ask("self once"), "sent");
    assert_eq!(client.receive(), "self once");
    let before = node.digests();
    drop(client);
    let cause = node.kill();
    assert!(is_death(&cause), "{cause:?}");
    assert_eq!(node.lifecycle().last().map(String::as_str), Some("terminate"));

    node.restart();
    // The same events with the same digests; the session's end may have been among them.
    let after = node.digests();
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(node.lifecycle()[0], "start at 0");
    let mut client = node.client();
    assert_eq!(client.ask("echo again"), "again");
}

#[test]
fn restart_with_snapshot_and_more_log() {
    let Some(mut node) = Node::launch() else { return };
    let mut client = node.client();
    let session = client.cluster.cluster_session_id();
    assert_eq!(client.ask("timer 5 10"), "set");
    assert_eq!(client.receive(), "fired 5");
    assert_eq!(client.ask("echo before"), "before");
    node.snapshot();
    let in_snapshot = node.digests().len();
    assert_eq!(client.ask("echo behind"), "behind");
    assert_eq!(client.ask("timer 6 3600000"), "set");
    let before = node.digests();
    let cause = node.kill();
    assert!(is_death(&cause), "{cause:?}");
    drop(client);

    node.restart();
    let position = before[in_snapshot - 1].0;
    let lifecycle = node.lifecycle();
    let start = format!("{in_snapshot} [{session}] true");
    assert!(lifecycle[0].starts_with("load at") && lifecycle[0].ends_with(&start), "{lifecycle:?}");
    let loaded: i64 = lifecycle[0]["load at ".len()..]
        .split(':')
        .next()
        .expect("a position")
        .parse()
        .expect("a number");
    assert!(loaded > position, "{loaded}");
    // Only the log behind the snapshot is replayed, to the same digests.
    let after = node.digests();
    let replayed = before.len() - in_snapshot;
    assert_eq!(after[..replayed], before[in_snapshot..]);
    let mut client = node.client();
    assert_eq!(client.ask("echo again"), "again");
}

#[test]
fn two_services_see_the_same_events() {
    let Some(node) = Node::launch_two() else { return };
    let mut client = node.client();
    client.send("echo both");
    assert_eq!([client.receive(), client.receive()], ["both", "both"]);
    // Both services send a message to both services.
    client.send("self hello");
    let mut received: Vec<String> = (0..6).map(|_| client.receive()).collect();
    received.sort();
    let hello = "self hello";
    assert_eq!(received, [hello, hello, hello, hello, "sent", "sent"]);
    let second = node.second.as_ref().expect("a second service");
    let digests = second.1.lock().expect("no panic").digests.clone();
    assert_eq!(digests, node.digests());
}

#[test]
#[ignore = "compiles Aeron's Java code of the C release first; `just test-cluster` runs it"]
fn compiled_consensus_module_shuts_down() {
    let versions = vec![AeronVersion::Compiled];
    let options = Options { versions, ..Options::default() };
    let Some(node) = Node::launch_with(options, ServiceContext::new()) else { return };
    shut_down_and_restart(node);
}

#[test]
fn shutdown_ends_both_in_order() {
    let Some(node) = Node::launch() else { return };
    shut_down_and_restart(node);
}

fn shut_down_and_restart(mut node: Node) {
    let mut client = node.client();
    assert_eq!(client.ask("echo before"), "before");
    node.cluster.node_mut(0).toggle("shutdown");
    let cause = node.await_service();
    let is_orderly =
        matches!(cause, TerminationCause::ConsensusModuleTerminated { is_expected: true, .. });
    assert!(is_orderly, "{cause:?}");
    assert!(node.cluster.node_mut(0).await_end().expect("a status").success());
    assert_eq!(node.lifecycle()[2..], ["terminate"]);
    drop(client);
    // The shutdown has taken a snapshot.
    node.restart();
    assert!(node.lifecycle()[0].starts_with("load at"), "{:?}", node.lifecycle());
}

#[test]
fn failed_shutdown_snapshot_leaves_the_log() {
    let Some(mut node) = Node::launch() else { return };
    let mut client = node.client();
    assert_eq!(client.ask("break"), "broken");
    node.cluster.node_mut(0).toggle("shutdown");
    let cause = node.await_service();
    let is_orderly =
        matches!(cause, TerminationCause::ConsensusModuleTerminated { is_expected: true, .. });
    assert!(is_orderly, "{cause:?}");
    node.cluster.node_mut(0).await_end();
    let before = node.digests();
    drop(client);
    node.restart();
    assert_eq!(node.lifecycle()[0], "start at 0");
    assert_eq!(node.digests()[..before.len()], before[..]);
}

#[test]
fn failures_are_recorded_on_request() {
    let mut context = ServiceContext::new();
    context.set_error_policy(ErrorPolicy::RecordAndContinue);
    let Some(mut node) = Node::launch_with(Options::default(), context) else { return };
    let mut client = node.client();
    assert_eq!(client.ask("break"), "broken");
    let snapshots = node.cluster.node(0).snapshot_count();
    node.cluster.node_mut(0).toggle("snapshot");
    // The consensus module goes on, without a snapshot.
    await_that("a recorded error", || node.counter(215) == Some(1));
    assert_eq!(client.ask("echo behind"), "behind");
    assert_eq!(node.cluster.node(0).snapshot_count(), snapshots);
    // Failures of messages are recorded, too.
    client.send("panic");
    client.send("fail");
    assert_eq!(client.ask("echo last"), "last");
    assert_eq!(node.counter(215), Some(3));
}

#[test]
fn mark_file_shows_life_errors_and_end() {
    let mut context = ServiceContext::new();
    context.set_error_policy(ErrorPolicy::RecordAndContinue).set_service_name("commands");
    let Some(mut node) = Node::launch_with(Options::default(), context) else { return };
    let path = node.cluster.node(0).cluster_dir().join("cluster-mark-service-0.dat");
    let bytes = || fs::read(&path).expect("a mark file");
    let header = || MarkFileHeader::decode(&bytes()).expect("a mark file");
    let mut client = node.client();
    client.send("panic");
    assert_eq!(client.ask("echo last"), "last");
    let first = header();
    assert_eq!((first.version, first.member_id, &*first.service_name), (VERSION, 0, "commands"));
    await_that("a later sign of life", || header().activity_timestamp > first.activity_timestamp);
    let errors = error_log::entries(&bytes()[8192..]);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].text.contains("panic: on request"), "{errors:?}");
    let second = ServiceContainer::launch(node.context.clone(), CommandService::new().0);
    assert_eq!(second.expect_err("refused").kind(), ClusterErrorKind::ActiveMarkFile);
    assert_eq!(client.ask("echo again"), "again");
    let _ = node.kill();
    assert_eq!(header().activity_timestamp, ENDED);
}

#[test]
fn panic_ends_service_and_consensus_module() {
    let Some(mut node) = Node::launch() else { return };
    let mut client = node.client();
    assert_eq!(client.ask("echo before"), "before");
    client.send("panic");
    let callback = "on_session_message";
    let error = "panic: on request".to_owned();
    assert_eq!(node.await_service(), TerminationCause::ServiceFailed { callback, error });
    assert_eq!(node.lifecycle(), ["start at 0", "Leader"]);
    // The consensus module sees that the service's client has closed.
    node.cluster.node_mut(0).await_end();
}

#[test]
fn stop_ends_consensus_module() {
    let Some(mut node) = Node::launch() else { return };
    let container = node.container.as_ref().expect("a container");
    assert!(container.is_running());
    container.stop();
    assert_eq!(node.await_service(), TerminationCause::Stopped);
    assert_eq!(node.lifecycle(), ["start at 0", "Leader", "terminate"]);
    node.cluster.node_mut(0).await_end();
}

/// The causes that the death of driver and consensus module can have.
fn is_death(cause: &TerminationCause) -> bool {
    matches!(cause, TerminationCause::ClientClosed(_) | TerminationCause::ConsensusModuleGone)
}
