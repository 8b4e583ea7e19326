//! Aeron's tools beside a member with a service in Rust.

use rusteron_cluster::{ClusterClient, TerminationCause};
use rusteron_test_support::cluster::load::{Load, Outcome, context};
use rusteron_test_support::cluster::{JavaBackup, JavaCluster, Options, RustCluster, Service};
use rusteron_test_support::{command, connect, java_run, launch_with_long_timeouts, succeed};

use super::Node;
use super::three_nodes::program;

/// Runs a command of `ClusterTool` on the first member, and returns its output.
fn tool(cluster: &JavaCluster, name: &str) -> String {
    let java_run = java_run().display().to_string();
    let dir = cluster.node(0).cluster_dir().display().to_string();
    succeed(command(&java_run, ["io.aeron.cluster.ClusterTool", &dir, name])).stdout
}

#[test]
fn cluster_tool_knows_a_rust_node() {
    let Some(mut cluster) = launch() else { return };
    let assert_contains = |output: String, expected: &[&str]| {
        for text in expected {
            assert!(output.contains(text), "no {text}: {output}");
        }
    };
    let pid = format!("|pid={}|", cluster.service(0).id());
    let container =
        ["componentType=CONTAINER", "memberId=0|serviceId=0", "serviceName='ledger'", &pid];
    assert_contains(tool(&cluster, "describe"), &container);
    let errors = tool(&cluster, "errors");
    assert!(errors.contains("Type: CONTAINER"), "{errors}");
    // The consensus module, the media driver and the service have one each.
    assert_eq!(errors.matches("distinct errors observed").count(), 3, "{errors}");
    let endpoint = format!("ingressEndpoint='{}'", cluster.node(0).ingress_endpoint());
    assert_contains(tool(&cluster, "list-members"), &["leaderMemberId=0", &endpoint]);
    assert_contains(tool(&cluster, "snapshot"), &["SNAPSHOT applied successfully"]);
    cluster.node_mut(0).await_that("a snapshot", |node| node.snapshot_count() == Some(1));
    assert_contains(tool(&cluster, "shutdown"), &["SHUTDOWN applied successfully"]);
    let cause = cluster.await_end(0).expect("a service in Rust");
    let is_orderly =
        cause.starts_with("ConsensusModuleTerminated") && cause.contains("is_expected: true");
    assert!(is_orderly, "{cause}");
    cluster.restart();
    let log = cluster.service(0).log();
    assert!(log.contains("loaded "), "{log}");
}

#[test]
fn node_starts_from_backup() {
    let Some(mut cluster) = launch() else { return };
    let driver = launch_with_long_timeouts();
    let aeron = connect(&driver);
    let load = |cluster: &RustCluster, outcome: Outcome| {
        let context = context(&cluster.ingress_endpoints());
        let client = ClusterClient::connect(&aeron, context).expect("a session");
        let load = Load::resume(client, outcome);
        load.await_answers();
        load.finish()
    };
    let outcome = load(&cluster, Outcome::default());
    cluster.snapshot();
    // Behind the snapshot.
    let outcome = load(&cluster, outcome);
    let node = cluster.node(0);
    let backup = JavaBackup::start(node.dir().join("backup"), &node.consensus_endpoint());
    backup.await_position(node.commit_position().expect("a position"));
    let backup = backup.stop();
    cluster.kill(0);
    cluster.node_mut(0).restore(&backup);
    cluster.restart();
    let log = cluster.service(0).log();
    assert!(log.contains("loaded "), "{log}");
    // The cluster knows its answers.
    load(&cluster, outcome);
    cluster.await_equal_digests();
}

/// Requests of the client in Java.
const REQUESTS: &str = "500";

#[test]
fn java_client_is_answered_by_rust() {
    let Some(cluster) = launch() else { return };
    let driver = launch_with_long_timeouts();
    let java_run = java_run().display().to_string();
    let dir = driver.aeron_dir().display().to_string();
    let endpoints = cluster.ingress_endpoints();
    let client =
        succeed(command(&java_run, ["cluster/LedgerClient.java", &dir, &endpoints, REQUESTS]));
    client.assert_lines([&*format!("answered {REQUESTS}")]);
}

/// Starts one member with a service in Rust.
fn launch() -> Option<RustCluster> {
    RustCluster::launch(Options { service: Service::None, ..Options::default() }, program)
}

/// Replaces a ledger in Rust by one in Java, and that one by another in Rust. Each loads the snapshot of the one before.
#[test]
fn snapshots_of_rust_and_java_are_alike() {
    let Some(mut cluster) = launch() else { return };
    let driver = launch_with_long_timeouts();
    let aeron = connect(&driver);
    let load = |cluster: &RustCluster, outcome: Outcome| {
        let context = context(&cluster.ingress_endpoints());
        let client = ClusterClient::connect(&aeron, context).expect("a session");
        let load = Load::resume(client, outcome);
        load.await_answers();
        load.finish()
    };
    let mut outcome = load(&cluster, Outcome::default());
    for service in [Service::Ledger, Service::None] {
        cluster.shut_down();
        cluster.node_mut(0).set_service(service);
        cluster.restart();
        let log = match service {
            Service::None => cluster.service(0).log(),
            _ => cluster.node(0).log(),
        };
        assert!(log.contains("loaded "), "{log}");
        outcome = load(&cluster, outcome);
    }
    cluster.await_equal_digests();
}

#[test]
fn invalidated_snapshot_leaves_the_log() {
    let Some(mut node) = Node::launch() else { return };
    let mut client = node.client();
    assert_eq!(client.ask("echo before"), "before");
    assert_eq!(client.ask("corrupt"), "corrupted");
    node.snapshot();
    assert_eq!(client.ask("echo behind"), "behind");
    let before = node.digests();
    let _ = node.kill();
    drop(client);
    // The service cannot load the snapshot.
    node.restart_alone();
    node.start_service();
    let cause = TerminationCause::StartFailed("no digest".to_owned());
    assert_eq!(node.await_service(), cause);
    node.cluster.node_mut(0).kill();

    let output = tool(&node.cluster, "invalidate-latest-snapshot");
    assert!(output.contains("true"), "{output}");
    node.restart();
    assert_eq!(node.lifecycle()[0], "start at 0");
    assert_eq!(node.digests()[..before.len()], before[..]);
    assert_eq!(node.client().ask("echo after"), "after");
}
