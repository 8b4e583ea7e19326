//! Consensus modules of another release.

use rusteron_cluster::ClusterClient;
use rusteron_test_support::cluster::load::{Load, context};
use rusteron_test_support::cluster::{AeronVersion, JavaCluster, Options, Service};
use rusteron_test_support::{connect, launch_with_long_timeouts};

#[test]
#[ignore = "compiles Aeron's Java code once: just test-cluster"]
fn compiled_node_answers() {
    let versions = vec![AeronVersion::Compiled];
    let options = Options { versions, service: Service::Number, ..Options::default() };
    let Some(cluster) = JavaCluster::launch(options) else { return };
    let driver = launch_with_long_timeouts();
    let context = context(&cluster.ingress_endpoints());
    let load = Load::start(ClusterClient::connect(&connect(&driver), context).expect("a session"));
    load.await_answers();
    load.finish();
}
