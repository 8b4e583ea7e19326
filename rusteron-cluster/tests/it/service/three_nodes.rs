//! Failures of members of a cluster with three ledgers in Rust, under the load of a client.
//!
//! Each test needs most of a small machine for up to two minutes. `cargo test` runs two of them, and
//! `just test-cluster` runs all.

use std::path::Path;
use std::process::Command;

use rusteron_client::Aeron;
use rusteron_cluster::ClusterClient;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::cluster::load::{Load, Outcome, context};
use rusteron_test_support::cluster::{
    AeronVersion, MemberArchive, Options, RustCluster, Service, ServiceProcess,
};
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

    /// A load whose session must survive.
    fn load(&self) -> Load {
        let context = context(&self.cluster.ingress_endpoints());
        Load::start(ClusterClient::connect(&self.aeron, context).expect("a session"))
    }

    /// A load that opens another session after the end of its session.
    fn persistent_load(&self) -> Load {
        let (aeron, endpoints) = (self.aeron.clone(), self.cluster.ingress_endpoints());
        Load::start_persistent(move || ClusterClient::connect(&aeron, context(&endpoints)))
    }

    /// Kills the leader again and again. Each time the load goes on, and the killed member comes back.
    fn kill_leaders(&mut self, times: u64) {
        let load = self.load();
        for _ in 0..times {
            load.await_answers();
            let leader = self.cluster.await_leader();
            self.cluster.kill(leader);
            load.await_answers();
            assert_ne!(self.cluster.await_leader(), leader);
            self.cluster.restart();
        }
        load.await_answers();
        assert!(self.finish(load).new_leaders >= times);
    }

    /// Ends a load, and compares the digests of all members with each other and with those in answers.
    fn finish(&self, load: Load) -> Outcome {
        let outcome = load.finish();
        let mut digests = self.cluster.await_equal_digests();
        assert!(digests.compared() > 0, "{digests:?}");
        for &(position, digest) in &outcome.digests {
            digests.add(position, digest, Path::new("answers")).expect("equal digests");
        }
        outcome
    }
}

#[test]
fn leader_killed_once() {
    let Some(mut fixture) = Fixture::launch() else { return };
    fixture.kill_leaders(1);
}

#[test]
#[ignore = "takes a minute, and compiles Aeron's Java code once: just test-cluster"]
fn leader_killed_with_mixed_versions() {
    let versions = vec![AeronVersion::Maven, AeronVersion::Compiled];
    let options = Options { versions, ..Options::three(Service::None) };
    let Some(mut fixture) = Fixture::launch_with(options) else { return };
    fixture.kill_leaders(3);
}

#[test]
fn followers_redirect_to_leader() {
    let Some(fixture) = Fixture::launch() else { return };
    let endpoints = fixture.cluster.ingress_endpoints_of(fixture.cluster.followers());
    let client = ClusterClient::connect(&fixture.aeron, context(&endpoints)).expect("a session");
    assert_eq!(client.leader_member_id(), fixture.cluster.await_leader() as i32);
    let load = Load::start(client);
    load.await_answers();
    fixture.finish(load);
}

#[test]
#[ignore = "takes a minute: just test-cluster"]
fn emptied_member_catches_up() {
    let Some(mut fixture) = Fixture::launch() else { return };
    let load = fixture.load();
    load.await_answers();
    fixture.cluster.snapshot();
    load.await_answers();
    let follower = fixture.cluster.followers()[0];
    fixture.cluster.kill(follower);
    fixture.cluster.node_mut(follower).empty();
    fixture.cluster.restart();
    load.await_answers();
    fixture.finish(load);
    // Not a snapshot, but the whole log.
    let log = fixture.cluster.service(follower).log();
    assert!(!log.contains("loaded "), "{log}");
}

#[test]
fn mixed_members_have_equal_digests() {
    let services = vec![Service::Ledger];
    let archives = vec![MemberArchive::Java, MemberArchive::Rust, MemberArchive::Java];
    let options = Options { services, archives, ..Options::three(Service::None) };
    let Some(mut fixture) = Fixture::launch_with(options) else { return };
    let load = fixture.persistent_load();
    load.await_answers();
    // Each member becomes the other kind, and loads the snapshot of its own former kind, with the other archive.
    fixture.cluster.shut_down();
    for (member, service) in [Service::None, Service::Ledger, Service::None].into_iter().enumerate()
    {
        fixture.cluster.node_mut(member).set_service(service);
    }
    let archives = [MemberArchive::Rust, MemberArchive::Java, MemberArchive::Rust];
    for (member, archive) in archives.into_iter().enumerate() {
        fixture.cluster.node_mut(member).set_archive(archive);
    }
    fixture.cluster.restart();
    load.await_answers();
    for member in [0, 2] {
        let log = fixture.cluster.service(member).log();
        assert!(log.contains("loaded "), "{log}");
    }
    let log = fixture.cluster.node(1).log();
    assert!(log.contains("loaded "), "{log}");
    fixture.finish(load);
}
