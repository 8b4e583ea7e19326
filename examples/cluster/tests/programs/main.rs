//! The programs that use a cluster, with Java's.

#![cfg(unix)]

mod clients;
#[cfg(target_os = "linux")]
mod run_cluster;
mod services;

use rusteron_test_support::cluster::JavaCluster;
use rusteron_test_support::{Finished, command, run};

/// Runs a program with a cluster. Its timeout is long, for loaded machines.
fn with_cluster(cluster: &JavaCluster, path: &str, arguments: &[&str]) -> Finished {
    let mut command = command(path, ["--ingress-endpoints", &cluster.ingress_endpoints()]);
    command.args(arguments).env("AERON_CLUSTER_MESSAGE_TIMEOUT", "60s");
    run(command)
}
