//! Failures of members of a cluster with three ledgers in Rust, under load.
//!
//! Each test needs most of a small machine for up to two minutes. `cargo test` runs two of them, and
//! `just test-cluster` runs all.

use std::path::Path;
use std::process::Command;

use rusteron_client::Aeron;
use rusteron_cluster::ClusterClient;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::cluster::load::{Load, Outcome, context};
use rusteron_test_support::cluster::{Options, RustCluster, Service, ServiceProcess};
use rusteron_test_support::{connect, launch_with_long_timeouts};

/// The service of a member.
#[test]
#[ignore = "other tests start it, as a process of its own"]
fn service_process() {
    ServiceProcess::serve();
}

/// The program of the services: this one, with that test.
pub(super) fn program() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "service::three_nodes::service_process", "--ignored", "--nocapture"]);
    command
}

/// Three nodes, and the media driver of a client.
struct Fixture {
    cluster: RustCluster,
    aeron: Aeron,
    _driver: MediaDriver,
}

impl Fixture {
    fn launch() -> Option<Self> {
        Self::launch_with(Options::three(Service::None))
    }

    fn launch_with(options: Options) -> Option<Self> {
        let cluster = RustCluster::launch(options, program)?;
        let driver = launch_with_long_timeouts();
        Some(Self { cluster, aeron: connect(&driver), _driver: driver })
    }

    fn load(&self) -> Load {
        Load::start(self.connect())
    }

    fn connect(&self) -> ClusterClient {
        let context = context(&self.cluster.ingress_endpoints());
        ClusterClient::connect(&self.aeron, context).expect("a session")
    }

    /// Compares the digests of all members, and those in answers.
    fn check(&self, outcome: &Outcome) {
        self.cluster.await_equal_positions();
        let mut digests = self.cluster.digests();
        assert!(digests.compared() > 0, "{digests:?}");
        for &(position, digest) in &outcome.digests {
            digests.add(position, digest, Path::new("answers")).expect("equal digests");
        }
    }
}

#[test]
fn leader_killed_once() {
    let Some(mut fixture) = Fixture::launch() else { return };
    let load = fixture.load();
    load.await_answers();
    let leader = fixture.cluster.await_leader();
    fixture.cluster.kill(leader);
    load.await_answers();
    assert_ne!(fixture.cluster.await_leader(), leader);
    fixture.cluster.restart();
    load.await_answers();
    let outcome = load.finish();
    assert!(outcome.new_leaders >= 1);
    fixture.check(&outcome);
}
