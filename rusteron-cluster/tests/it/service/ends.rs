//! Ends of the processes around a container: each with its own cause.

use std::fs;

use rusteron_client::CloseCause;
use rusteron_cluster::__private::{ENDED, MarkFileHeader, VERSION};
use rusteron_cluster::{ServiceContext, TerminationCause};
use rusteron_test_support::cluster::{AeronVersion, Options, SERVICE_CLOSED_FIRST};

use super::Node;
use super::split_node::SplitNode;

#[test]
fn killed_consensus_module_is_the_cause() {
    let Some(mut node) = SplitNode::launch() else { return };
    node.consensus_module.kill();
    assert_eq!(node.await_service(), TerminationCause::ConsensusModuleGone);
    node.assert_ended_in_order();
}

#[test]
fn killed_driver_is_the_cause() {
    let Some(mut node) = SplitNode::launch() else { return };
    node.driver.kill();
    let cause = node.await_service();
    assert!(
        matches!(
            cause,
            TerminationCause::ClientClosed(
                CloseCause::DriverTimeout { .. } | CloseCause::DriverGone { .. }
            )
        ),
        "{cause:?}"
    );
    node.assert_ended_in_order();
}

#[test]
fn sigterm_of_the_member_ends_in_order() {
    let node = Node::launch_probe(Options::default(), ServiceContext::new());
    let Some((mut node, service)) = node else { return };
    let mut client = node.client();
    assert_eq!(client.ask("echo before"), "echo before");
    node.cluster.node_mut(0).stop();
    let cause = node.await_service();
    // The consensus module closes before the media driver. A machine under load shows both at once.
    assert!(
        matches!(cause, TerminationCause::ConsensusModuleGone | TerminationCause::ClientClosed(_)),
        "{cause:?}"
    );
    assert_eq!((service.count("terminate"), service.count("snapshot")), (1, 0));
    let path = node.cluster.node(0).cluster_dir().join("cluster-mark-service-0.dat");
    let header = MarkFileHeader::decode(&fs::read(path).expect("a mark file"));
    let header = header.expect("a mark file");
    assert_eq!((header.version, header.activity_timestamp), (VERSION, ENDED));
    drop(client);
    let after = node.restart_probe();
    assert_eq!(after.count("echo before"), 1);
}

/// The fault campaign tells by this text which process of a member has ended first.
#[test]
fn stopped_service_is_the_modules_reason() {
    stop_service(AeronVersion::Maven);
}

#[test]
#[ignore = "compiles Aeron's Java code of the C release first; `just test-cluster` runs it"]
fn stopped_service_ends_a_compiled_module() {
    stop_service(AeronVersion::Compiled);
}

fn stop_service(version: AeronVersion) {
    let options = Options { versions: vec![version], ..Options::default() };
    let Some(mut node) = Node::launch_with(options, ServiceContext::new()) else { return };
    drop(node.container.take());
    let member = node.cluster.node_mut(0);
    member.await_end();
    let log = member.log();
    assert!(log.contains(SERVICE_CLOSED_FIRST), "{log}");
}
