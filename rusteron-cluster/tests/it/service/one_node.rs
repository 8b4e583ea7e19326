//! One member with a service in Rust.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusteron_archive::CredentialsSupplier;
use rusteron_cluster::codec::mark_file::{ENDED, MarkFileHeader, VERSION};
use rusteron_cluster::{
    ClusterState, DeterminismCheck, RecordedLog, ServiceContainer, ServiceContext, TerminationCause,
};
use rusteron_test_support::cluster::{AeronVersion, Options, SERVICE_CLOSED_FIRST};
use rusteron_test_support::{await_that, has_java, java_run, launch};

use super::command_service::{CommandService, SNAPSHOT};
use super::{Client, Node};

#[test]
fn answers_timers_and_closed_sessions() {
    let Some(node) = Node::launch() else { return };
    let mut client = node.client();
    let mut other = node.client();
    // By an offer, a claim, and an offer in fragments.
    for text in ["ab", "abc", &"x".repeat(5000)] {
        assert_eq!(client.ask(&format!("echo {text}")), text);
    }
    assert_eq!(other.ask("echo other"), "other");
    let ids = [client.cluster.cluster_session_id(), other.cluster.cluster_session_id()];
    assert_eq!(client.ask("sessions"), format!("{ids:?}"));
    // The digest is the service's own.
    let answer = client.ask("digest");
    let (count, digest) = (node.digests().len(), node.digests().last().expect("events").1);
    assert_eq!(answer, format!("{count} {digest:x}"));

    assert_eq!(client.ask("self hello"), "sent");
    assert_eq!([client.receive(), other.receive()], ["self hello"; 2]);
    client.send("close");
    await_that("the end of the session", || {
        let _ = client.cluster.poll_egress(|_, _| {}, 10);
        matches!(client.cluster.state(), ClusterState::Closed(_))
    });
    assert_eq!(other.ask("sessions"), format!("[{}]", ids[1]));

    assert_eq!(other.ask("timer 7 10"), "set");
    assert_eq!(other.receive(), "fired 7");
    // Replaced by an earlier deadline, and one that is cancelled.
    assert_eq!(other.ask("timer 8 3600000"), "set");
    assert_eq!(other.ask("timer 8 10"), "set");
    assert_eq!(other.receive(), "fired 8");
    // Cancelled in the same callback, long before the deadline.
    assert_eq!(other.ask("timer-and-cancel 9 2000"), "cancelled");
    assert_eq!(other.ask("timer 10 2100"), "set");
    assert_eq!(other.receive(), "fired 10");
    assert_eq!(node.lifecycle(), ["start at 0", "Leader"]);
    // No errors.
    assert_eq!(node.counter(215), Some(0));
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
fn shutdown_and_abort_end_in_order() {
    for action in ["shutdown", "abort"] {
        let Some(mut node) = Node::launch() else { return };
        let mut client = node.client();
        assert_eq!(client.ask("echo before"), "before");
        node.cluster.node_mut(0).toggle(action);
        node.await_orderly_end();
        // Only a shutdown takes a snapshot, from which the next start goes on.
        let has_snapshot = action == "shutdown";
        let expected = if has_snapshot { &["snapshot", "terminate"][..] } else { &["terminate"] };
        assert_eq!(node.lifecycle()[2..], *expected);
        drop(client);
        node.restart();
        let start = &node.lifecycle()[0];
        assert_eq!(
            (start.starts_with("load at"), start == "start at 0"),
            (has_snapshot, !has_snapshot)
        );
    }
}

#[test]
fn sigterm_of_the_member_ends_in_order() {
    let Some(mut node) = Node::launch() else { return };
    node.cluster.node_mut(0).stop();
    let cause = node.await_service();
    // The consensus module closes before the media driver. A machine under load shows both at once.
    assert!(is_death(&cause), "{cause:?}");
    // The log may be gone before the service ends.
    let lifecycle = node.lifecycle();
    assert_eq!(lifecycle.iter().filter(|it| *it == "terminate").count(), 1, "{lifecycle:?}");
    assert!(!lifecycle.contains(&"snapshot".to_owned()), "{lifecycle:?}");
    let path = node.cluster.node(0).cluster_dir().join("cluster-mark-service-0.dat");
    let header = MarkFileHeader::decode(&fs::read(path).expect("a mark file"));
    let header = header.expect("a mark file");
    assert_eq!((header.version, header.activity_timestamp), (VERSION, ENDED));
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
    let container = node.container.as_ref().expect("a container");
    assert!(container.is_running());
    container.stop();
    assert_eq!(node.await_service(), TerminationCause::Stopped);
    let member = node.cluster.node_mut(0);
    member.await_end();
    let log = member.log();
    assert!(log.contains(SERVICE_CLOSED_FIRST), "{log}");
}

#[test]
fn panic_in_a_timer_ends_the_node() {
    let Some(mut node) = Node::launch() else { return };
    node.set_trap("on_timer_event");
    node.client().send("timer 1 10");
    let callback = "on_timer_event";
    let error = format!("panic: in {callback}");
    assert_eq!(node.await_service(), TerminationCause::ServiceFailed { callback, error });
    // The service is in the middle of a change.
    assert_eq!(node.lifecycle(), ["start at 0", "Leader"]);
    node.cluster.node_mut(0).await_end();
}

#[test]
fn half_a_snapshot_leaves_the_next_one() {
    let Some(mut node) = Node::launch() else { return };
    let mut client = node.client();
    // A snapshot of standby members is none of ours.
    let position = node.cluster.node(0).commit_position();
    node.cluster.node_mut(0).toggle("standby_snapshot");
    node.cluster.node_mut(0).await_that("a longer log", |node| node.commit_position() > position);
    assert_eq!(client.ask("echo before"), "before");
    assert_eq!(node.lifecycle(), ["start at 0", "Leader"]);
    // With the default policy, which ends the service when another callback panics.
    node.set_trap("on_take_snapshot");
    let count = node.cluster.node(0).snapshot_count();
    node.cluster.node_mut(0).toggle("snapshot");
    await_that("a recorded panic", || node.counter(215) == Some(1));
    // The consensus module has got its acknowledgement, and goes on without the snapshot.
    assert_eq!(client.ask("echo between"), "between");
    assert_eq!(node.cluster.node(0).snapshot_count(), count);
    let in_snapshot = node.digests().len();
    node.snapshot();
    assert_eq!(client.ask("echo behind"), "behind");
    let before = node.digests();
    let _ = node.kill();
    drop(client);
    node.restart();
    assert!(node.lifecycle()[0].contains(&format!(": {in_snapshot} [")), "{:?}", node.lifecycle());
    assert_eq!(node.digests()[..before.len() - in_snapshot], before[in_snapshot..]);
}

/// The causes that the death of driver and consensus module can have.
fn is_death(cause: &TerminationCause) -> bool {
    matches!(cause, TerminationCause::ClientClosed(_) | TerminationCause::ConsensusModuleGone)
}

/// As [`Client::ask`], but passes over timers that fire meanwhile.
fn ask(client: &mut Client, message: &str) -> String {
    client.send(message);
    loop {
        let answer = client.receive();
        if !answer.starts_with("fired") {
            return answer;
        }
    }
}

#[test]
fn timers_survive_snapshot_and_replay() {
    let Some(mut node) = Node::launch() else { return };
    let mut client = node.client();
    assert_eq!(client.ask("timer 5 10"), "set");
    assert_eq!(client.receive(), "fired 5");
    // On a slow machine these timers fire before the kill. They fire once all the same.
    assert_eq!(ask(&mut client, "timer 6 3000"), "set");
    assert_eq!(ask(&mut client, "timer 7 3600000"), "set");
    assert_eq!(ask(&mut client, "timer 8 3000"), "set");
    assert_eq!(ask(&mut client, "cancel 8"), "cancelled");
    let timers = |node: &Node| node.seen.lock().expect("no panic").timers.clone();
    node.snapshot();
    assert_eq!(ask(&mut client, "timer 9 3000"), "set");
    let _ = node.kill();
    drop(client);
    // The state's history: the first start up to the snapshot, and then the second start.
    let before = timers(&node);
    let kept = before.split(|timer| *timer == SNAPSHOT).next().expect("a snapshot");

    node.restart();
    let count = |node: &Node, id| {
        let after = timers(node);
        kept.iter().chain(&after).filter(|timer| **timer == id).count()
    };
    await_that("both timers", || count(&node, 6) > 0 && count(&node, 9) > 0);
    // A replaced deadline of a timer from before the restart.
    let mut client = node.client();
    assert_eq!(client.ask("timer 7 10"), "set");
    assert_eq!(client.receive(), "fired 7");
    assert_eq!(client.ask("timer 10 10"), "set");
    assert_eq!(client.receive(), "fired 10");
    assert_eq!([5, 6, 7, 8, 9].map(|id| count(&node, id)), [1, 1, 1, 0, 1]);
}

#[test]
fn service_is_deterministic_over_a_recorded_log() {
    let Some(mut node) = Node::launch() else { return };
    let (mut client, mut other) = (node.client(), node.client());
    for index in 0..20 {
        assert_eq!(client.ask(&format!("echo {index}")), index.to_string());
        assert_eq!(other.ask(&format!("echo {index}")), index.to_string());
    }
    let long = "x".repeat(5000);
    assert_eq!(client.ask(&format!("echo {long}")), long);
    assert_eq!(client.ask("timer 7 10"), "set");
    assert_eq!(client.receive(), "fired 7");
    assert_eq!(client.ask("self hello"), "sent");
    assert_eq!(client.receive(), "self hello");
    node.snapshot();
    for index in 0..20 {
        assert_eq!(client.ask(&format!("echo {index}")), index.to_string());
    }
    drop((client, other));
    node.kill();
    let dir = node.cluster.node(0).cluster_dir();
    let check = || {
        let log = RecordedLog::open(&dir, dir.with_file_name("archive")).expect("a log");
        let mut check = DeterminismCheck::new(log);
        check.set_pause(Duration::ZERO);
        check
    };
    let service = || CommandService::new().0;
    let comparison = check().run(service).expect("two runs");
    assert!(comparison.is_equal() && comparison.events() > 65, "{comparison}");
    let rest = check().begin_with_last_snapshot().run(service).expect("two runs");
    assert!(rest.is_equal() && rest.events() >= 20, "{rest}");
    assert!(rest.events() < comparison.events());
}

/// Supplies credentials, and answers the challenge of Aeron's sample.
struct Credentials(&'static str);

impl CredentialsSupplier for Credentials {
    fn encoded_credentials(&mut self) -> Vec<u8> {
        self.0.into()
    }

    fn on_challenge(&mut self, encoded_challenge: &[u8]) -> Vec<u8> {
        assert_eq!(encoded_challenge, b"challenge!");
        b"admin:CSadmin".to_vec()
    }
}

#[test]
fn snapshots_of_an_archive_with_an_authenticator() {
    let properties = [
        "aeron.archive.authenticator.supplier=io.aeron.samples.archive.SampleAuthenticatorSupplier",
        "rusteron.archive.credentials=admin:admin",
    ];
    let properties = properties.map(str::to_owned).to_vec();
    let options = Options { properties, ..Options::default() };
    let has_password = Arc::new(AtomicBool::new(true));
    let errors = Arc::new(Mutex::new(Vec::new()));
    let mut context = ServiceContext::new();
    let (with_password, seen) = (Arc::clone(&has_password), Arc::clone(&errors));
    context
        .set_archive_configurator(move |archive| {
            let has_password = with_password.load(Ordering::Relaxed);
            let credentials = if has_password { "admin:adminC" } else { "reject me" };
            archive.set_credentials_supplier(Credentials(credentials)).map(drop)
        })
        .unwrap()
        .set_error_handler(move |error| seen.lock().expect("no panic").push(error.to_owned()))
        .unwrap();
    let Some(mut node) = Node::launch_with(options, context) else { return };
    node.snapshot();
    node.kill();
    node.restart();
    assert!(node.lifecycle()[0].starts_with("load"), "{:?}", node.lifecycle());
    assert_eq!(*errors.lock().expect("no panic"), [""; 0]);

    has_password.store(false, Ordering::Relaxed);
    node.cluster.node_mut(0).toggle("snapshot");
    await_that("a refused connection to the archive", || {
        let errors = errors.lock().expect("no panic");
        errors.iter().any(|error| error.contains("no snapshot") && error.contains("reject"))
    });
}

#[test]
fn java_container_is_refused_beside_ours() {
    if !has_java() {
        return;
    }
    // No consensus module is needed: the mark file comes first.
    let driver = launch();
    let dir = tempfile::tempdir().expect("a directory");
    let mut context = ServiceContext::new();
    context.set_aeron_dir(driver.aeron_dir()).unwrap().set_cluster_dir(dir.path()).unwrap();
    let container =
        ServiceContainer::launch(context, CommandService::new().0).expect("a container");
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
