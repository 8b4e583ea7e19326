//! Containers of Java and of Rust that want the same mark file.

use std::fs;
use std::process::Command;

use rusteron_cluster::__private::{ENDED, MarkFileHeader, VERSION};
use rusteron_cluster::{ClusterErrorKind, ServiceContainer, ServiceContext, TerminationCause};
use rusteron_test_support::cluster::{JavaCluster, Options};
use rusteron_test_support::{has_java, java_run, launch};

use super::probe::Probe;

#[test]
fn java_container_is_refused_beside_ours() {
    if !has_java() {
        return;
    }
    // No consensus module is needed: the mark file comes first.
    let driver = launch();
    let dir = tempfile::tempdir().expect("a directory");
    let mut context = ServiceContext::new();
    context.set_aeron_dir(driver.aeron_dir()).set_cluster_dir(dir.path());
    let container = ServiceContainer::launch(context, Probe::new().0).expect("a container");
    let read = || {
        let bytes = fs::read(dir.path().join("cluster-mark-service-0.dat")).expect("a mark file");
        MarkFileHeader::decode(&bytes).expect("a mark file")
    };
    let before = read();
    let output = Command::new(java_run())
        .arg("io.aeron.cluster.service.ClusteredServiceContainer")
        .arg(format!("-Daeron.dir={}", driver.aeron_dir().display()))
        .arg(format!("-Daeron.cluster.dir={}", dir.path().display()))
        .arg("-Daeron.cluster.service.class.name=io.aeron.samples.cluster.EchoService")
        .output()
        .expect("the container starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{errors}");
    assert!(errors.contains("active"), "{errors}");
    // Nothing has changed but the sign of life.
    let after = read();
    let activity_timestamp = before.activity_timestamp;
    assert_eq!(MarkFileHeader { activity_timestamp, ..after.clone() }, before);
    assert!(after.activity_timestamp >= activity_timestamp && after.version == VERSION);
    container.stop();
    assert_eq!(container.join(), TerminationCause::Stopped);
    assert_eq!(read().activity_timestamp, ENDED);
}

#[test]
fn container_is_refused_beside_javas() {
    let Some(cluster) = JavaCluster::launch(Options::default()) else { return };
    let node = cluster.node(0);
    let mut context = ServiceContext::new();
    context.set_aeron_dir(node.aeron_dir()).set_cluster_dir(node.cluster_dir());
    let error = ServiceContainer::launch(context, Probe::new().0).expect_err("refused");
    assert_eq!(error.kind(), ClusterErrorKind::ActiveMarkFile, "{error}");
    // Nothing of the refused container is left to disturb the member.
    assert_eq!(cluster.await_leader(), 0);
}
