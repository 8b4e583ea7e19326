//! Ways out of a bug that ends every member at the same event, as the guide describes them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use rusteron_cluster::{ErrorPolicy, ServiceContainer, ServiceContext, TerminationCause};
use rusteron_test_support::await_that;
use rusteron_test_support::cluster::{JavaCluster, Options, Service};

use super::command_service::{CommandService, Seen};
use super::tools::tool;
use super::{Client, Node};

/// A release of the service.
#[derive(Clone, Copy)]
enum Release {
    /// Fails at the command `fail`.
    Broken,
    /// The same code, with another error policy.
    Lenient,
    Fixed,
}

/// Three members of a cluster, with their services in this process.
struct Members {
    // Before the cluster, which kills the media drivers.
    services: Vec<(ServiceContainer, Arc<Mutex<Seen>>)>,
    cluster: JavaCluster,
}

impl Members {
    fn launch() -> Option<Self> {
        let cluster = JavaCluster::launch(Options::three(Service::None))?;
        let mut members = Self { services: Vec::new(), cluster };
        members.start_services(Release::Broken);
        members.cluster.await_leader();
        Some(members)
    }

    fn start_services(&mut self, release: Release) {
        let start = |member| {
            let node = self.cluster.node(member);
            let mut context = ServiceContext::new();
            context
                .set_aeron_dir(node.aeron_dir())
                .unwrap()
                .set_cluster_dir(node.cluster_dir())
                .unwrap();
            let (service, seen) = match release {
                Release::Broken => CommandService::new(),
                Release::Lenient => {
                    context.set_error_policy(ErrorPolicy::RecordAndContinue).unwrap();
                    CommandService::new()
                }
                Release::Fixed => CommandService::new_fixed(),
            };
            (ServiceContainer::launch(context, service).expect("a container"), seen)
        };
        self.services = (0..self.cluster.members()).map(start).collect();
    }

    /// Starts all members, which have ended, with a release of the service.
    fn deploy(&mut self, release: Release) {
        for member in 0..self.cluster.members() {
            let node = self.cluster.node_mut(member);
            node.restart();
            node.await_that("a member without its service", |node| node.awaits_services());
        }
        self.start_services(release);
    }

    /// Waits until services have ended at the failing event, and ends the others, which have no
    /// majority. Returns position and digest after each event that a service has seen.
    fn await_outage(&mut self, ends: usize) -> BTreeMap<i64, u64> {
        let has_ended = |service: &&(ServiceContainer, _)| !service.0.is_running();
        await_that("the end of services", || {
            self.services.iter().filter(has_ended).count() >= ends
        });
        let failure = TerminationCause::ServiceFailed {
            callback: "on_session_message",
            error: "on request".to_owned(),
        };
        for (container, _) in &self.services {
            container.stop();
        }
        let (mut digests, mut failures) = (BTreeMap::new(), 0);
        for (container, seen) in self.services.drain(..) {
            failures += usize::from(container.join() == failure);
            digests.extend(seen.lock().expect("no panic").digests.iter().copied());
        }
        assert!(failures >= ends, "{failures}");
        for member in 0..self.cluster.members() {
            self.cluster.node_mut(member).kill();
        }
        digests
    }
}

/// Fails at an event, fails again after a restart, and goes on with another release.
fn fail_and_deploy(release: Release) {
    let Some(mut fixture) = Members::launch() else { return };
    let mut client = Client::new(&fixture.cluster);
    assert_eq!(client.ask("echo in the snapshot"), "in the snapshot");
    let leader = fixture.cluster.await_leader();
    fixture.cluster.node_mut(leader).toggle("snapshot");
    for member in 0..fixture.cluster.members() {
        fixture
            .cluster
            .node_mut(member)
            .await_that("a snapshot", |node| node.snapshot_count() == Some(1));
    }
    for index in 0..20 {
        assert_eq!(client.ask(&format!("echo {index}")), index.to_string());
    }
    client.send("fail");
    let before = fixture.await_outage(2);
    drop(client);
    let (&last, digest) = before.last_key_value().expect("events");

    // A member that replays the event ends. The last one cannot elect alone, and may never read it.
    fixture.deploy(Release::Broken);
    let again = fixture.await_outage(1);
    assert_eq!(again.get(&last), Some(digest));

    fixture.deploy(release);
    fixture.cluster.await_leader();
    let mut client = Client::new(&fixture.cluster);
    assert_eq!(client.ask("echo after"), "after");
    fixture.cluster.await_equal_positions();
    for (_, seen) in &fixture.services {
        let caught_up = || seen.lock().expect("no panic").digests.len() > 21;
        await_that("all events", caught_up);
        let seen = seen.lock().expect("no panic");
        assert!(seen.lifecycle[0].starts_with("load at "), "{:?}", seen.lifecycle);
        let after: BTreeMap<i64, u64> = seen.digests.iter().copied().collect();
        let (&first, _) = after.first_key_value().expect("events");
        // Every event behind the snapshot, up to the failing one, with the same state.
        let expected: Vec<_> = before.range(first..).collect();
        assert_eq!(after.range(..=last).collect::<Vec<_>>(), expected);
        assert!(expected.len() > 20, "{}", expected.len());
    }
}

#[test]
fn fixed_release_passes_the_failing_event() {
    fail_and_deploy(Release::Fixed);
}

#[test]
#[ignore = "takes half a minute: just test-cluster"]
fn lenient_policy_passes_the_failing_event() {
    fail_and_deploy(Release::Lenient);
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
