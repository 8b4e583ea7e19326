//! Ledgers and clients in Rust and Java, on one member.

use rusteron_cluster::ClusterClient;
use rusteron_test_support::cluster::load::{Load, Outcome, context};
use rusteron_test_support::cluster::{AeronVersion, Options, RustCluster, Service};
use rusteron_test_support::{command, connect, java_run, launch_with_long_timeouts, succeed};

use super::three_nodes::program;

/// Requests of the client in Java.
const REQUESTS: &str = "500";

#[test]
fn java_client_is_answered_by_rust() {
    let Some(cluster) = launch(vec![AeronVersion::Maven]) else { return };
    let driver = launch_with_long_timeouts();
    let java_run = java_run().display().to_string();
    let dir = driver.aeron_dir().display().to_string();
    let endpoints = cluster.ingress_endpoints();
    let client =
        succeed(command(&java_run, ["cluster/LedgerClient.java", &dir, &endpoints, REQUESTS]));
    client.assert_lines([&*format!("answered {REQUESTS}")]);
}

#[test]
fn snapshots_of_rust_and_java_are_alike() {
    let Some(cluster) = launch(vec![AeronVersion::Maven]) else { return };
    change_service_twice(cluster);
}

#[test]
#[ignore = "compiles Aeron's Java code once: just test-cluster"]
fn snapshots_in_compiled_version_are_alike() {
    let Some(cluster) = launch(vec![AeronVersion::Compiled]) else { return };
    change_service_twice(cluster);
}

/// Starts one member with a service in Rust.
fn launch(versions: Vec<AeronVersion>) -> Option<RustCluster> {
    let options = Options { service: Service::None, versions, ..Options::default() };
    RustCluster::launch(options, program)
}

/// Replaces a ledger in Rust by one in Java, and that one by another in Rust. Each loads the snapshot of the one before.
fn change_service_twice(mut cluster: RustCluster) {
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
