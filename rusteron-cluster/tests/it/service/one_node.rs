//! One member with a service in Rust.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rusteron_archive::CredentialsSupplier;
use rusteron_cluster::codec::mark_file::{ENDED, MarkFileHeader, VERSION};
use rusteron_cluster::{
    ClusterErrorKind, ErrorPolicy, ServiceContainer, ServiceContext, TerminationCause,
};
use rusteron_core::cnc::error_log;
use rusteron_test_support::cluster::{AeronVersion, JavaCluster, Options};
use rusteron_test_support::{await_that, has_java, java_run, launch};

use super::command_service::CommandService;
use super::probe::Probe;
use super::{Client, Node};

#[test]
fn echo_by_offer_and_claim() {
    let Some(node) = Node::launch() else { return };
    let mut client = node.client();
    let mut other = node.client();
    for text in ["a", "ab", "abc", &"x".repeat(5000)] {
        assert_eq!(client.ask(&format!("echo {text}")), text);
    }
    assert_eq!(other.ask("echo other"), "other");
    let ids = [client.cluster.cluster_session_id(), other.cluster.cluster_session_id()];
    assert_eq!(client.ask("sessions"), format!("{ids:?}"));
    // The digest is the service's own.
    let (count, digest) = (node.digests().len(), node.digests().last().expect("events").1);
    let answer = client.ask("digest");
    assert_ne!(answer, format!("{count} {digest:x}"));
    let (count, digest) = (node.digests().len(), node.digests().last().expect("events").1);
    assert_eq!(answer, format!("{count} {digest:x}"));
    assert_eq!(node.lifecycle(), ["start at 0", "Leader"]);
    // No errors.
    assert_eq!(node.counter(215), Some(0));
}

#[test]
fn service_closes_a_session() {
    let Some(node) = Node::launch() else { return };
    let mut client = node.client();
    let mut other = node.client();
    client.send("close");
    await_that("the end of the session", || {
        let _ = client.cluster.poll_egress(|_, _| {}, 10);
        matches!(client.cluster.state(), rusteron_cluster::ClusterState::Closed(_))
    });
    let id = other.cluster.cluster_session_id();
    assert_eq!(other.ask("sessions"), format!("[{id}]"));
}

#[test]
fn timers_and_service_messages() {
    let Some(node) = Node::launch() else { return };
    let mut client = node.client();
    assert_eq!(client.ask("timer 7 10"), "set");
    assert_eq!(client.receive(), "fired 7");
    // Replaced by an earlier deadline, and one that is cancelled.
    assert_eq!(client.ask("timer 8 3600000"), "set");
    assert_eq!(client.ask("timer 8 10"), "set");
    assert_eq!(client.receive(), "fired 8");
    // Cancelled in the same callback, long before the deadline.
    assert_eq!(client.ask("timer-and-cancel 9 2000"), "cancelled");
    assert_eq!(client.ask("timer 10 2100"), "set");
    assert_eq!(client.receive(), "fired 10");
    assert_eq!(client.ask("self hello"), "sent");
    assert_eq!(client.receive(), "self hello");
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
#[ignore = "compiles Aeron's Java code of the C release first; `just test-cluster` runs it"]
fn compiled_consensus_module_shuts_down() {
    let versions = vec![AeronVersion::Compiled];
    let options = Options { versions, ..Options::default() };
    let Some(node) = Node::launch_with(options, ServiceContext::new()) else { return };
    shut_down_and_restart(node);
}

#[test]
fn shutdown_ends_both_in_order() {
    let Some(node) = Node::launch() else { return };
    shut_down_and_restart(node);
}

fn shut_down_and_restart(mut node: Node) {
    let mut client = node.client();
    assert_eq!(client.ask("echo before"), "before");
    node.cluster.node_mut(0).toggle("shutdown");
    let cause = node.await_service();
    let is_orderly =
        matches!(cause, TerminationCause::ConsensusModuleTerminated { is_expected: true, .. });
    assert!(is_orderly, "{cause:?}");
    assert!(node.cluster.node_mut(0).await_end().expect("a status").success());
    assert_eq!(node.lifecycle()[2..], ["terminate"]);
    drop(client);
    // The shutdown has taken a snapshot.
    node.restart();
    assert!(node.lifecycle()[0].starts_with("load at"), "{:?}", node.lifecycle());
}

#[test]
fn failed_shutdown_snapshot_leaves_the_log() {
    let Some(mut node) = Node::launch() else { return };
    let mut client = node.client();
    assert_eq!(client.ask("break"), "broken");
    node.cluster.node_mut(0).toggle("shutdown");
    let cause = node.await_service();
    let is_orderly =
        matches!(cause, TerminationCause::ConsensusModuleTerminated { is_expected: true, .. });
    assert!(is_orderly, "{cause:?}");
    node.cluster.node_mut(0).await_end();
    let before = node.digests();
    drop(client);
    node.restart();
    assert_eq!(node.lifecycle()[0], "start at 0");
    assert_eq!(node.digests()[..before.len()], before[..]);
}

#[test]
fn failures_are_recorded_on_request() {
    let mut context = ServiceContext::new();
    context.set_error_policy(ErrorPolicy::RecordAndContinue).unwrap();
    let Some(mut node) = Node::launch_with(Options::default(), context) else { return };
    let mut client = node.client();
    assert_eq!(client.ask("break"), "broken");
    let snapshots = node.cluster.node(0).snapshot_count();
    node.cluster.node_mut(0).toggle("snapshot");
    // The consensus module goes on, without a snapshot.
    await_that("a recorded error", || node.counter(215) == Some(1));
    assert_eq!(client.ask("echo behind"), "behind");
    assert_eq!(node.cluster.node(0).snapshot_count(), snapshots);
    // Failures of messages are recorded, too.
    client.send("panic");
    client.send("fail");
    assert_eq!(client.ask("echo last"), "last");
    assert_eq!(node.counter(215), Some(3));
}

#[test]
fn mark_file_shows_life_errors_and_end() {
    let mut context = ServiceContext::new();
    context
        .set_error_policy(ErrorPolicy::RecordAndContinue)
        .unwrap()
        .set_service_name("commands")
        .unwrap();
    let Some(mut node) = Node::launch_with(Options::default(), context) else { return };
    let path = node.cluster.node(0).cluster_dir().join("cluster-mark-service-0.dat");
    let bytes = || fs::read(&path).expect("a mark file");
    let header = || MarkFileHeader::decode(&bytes()).expect("a mark file");
    let mut client = node.client();
    client.send("panic");
    assert_eq!(client.ask("echo last"), "last");
    let first = header();
    assert_eq!((first.version, first.member_id, &*first.service_name), (VERSION, 0, "commands"));
    await_that("a later sign of life", || header().activity_timestamp > first.activity_timestamp);
    let errors = error_log::entries(&bytes()[8192..]);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].text.contains("panic: on request"), "{errors:?}");
    let second = ServiceContainer::launch(node.context.clone(), CommandService::new().0);
    assert_eq!(second.expect_err("refused").kind(), ClusterErrorKind::ActiveMarkFile);
    assert_eq!(client.ask("echo again"), "again");
    let _ = node.kill();
    assert_eq!(header().activity_timestamp, ENDED);
}

#[test]
fn panic_ends_service_and_consensus_module() {
    let Some(mut node) = Node::launch() else { return };
    let mut client = node.client();
    assert_eq!(client.ask("echo before"), "before");
    client.send("panic");
    let callback = "on_session_message";
    let error = "panic: on request".to_owned();
    assert_eq!(node.await_service(), TerminationCause::ServiceFailed { callback, error });
    assert_eq!(node.lifecycle(), ["start at 0", "Leader"]);
    // The consensus module sees that the service's client has closed.
    node.cluster.node_mut(0).await_end();
}

#[test]
fn stop_ends_consensus_module() {
    let Some(mut node) = Node::launch() else { return };
    let container = node.container.as_ref().expect("a container");
    assert!(container.is_running());
    container.stop();
    assert_eq!(node.await_service(), TerminationCause::Stopped);
    assert_eq!(node.lifecycle(), ["start at 0", "Leader", "terminate"]);
    node.cluster.node_mut(0).await_end();
}

/// The causes that the death of driver and consensus module can have.
fn is_death(cause: &TerminationCause) -> bool {
    matches!(cause, TerminationCause::ClientClosed(_) | TerminationCause::ConsensusModuleGone)
}

#[test]
fn timers_survive_replay() {
    timers_survive(false);
}

#[test]
fn timers_survive_snapshot() {
    timers_survive(true);
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

fn timers_survive(has_snapshot: bool) {
    let node = Node::launch_probe(Options::default(), ServiceContext::new());
    let Some((mut node, before)) = node else { return };
    let mut client = node.client();
    assert_eq!(client.ask("timer 5 10"), "set");
    assert_eq!(client.receive(), "fired 5");
    // On a slow machine these timers fire before the kill. They fire once all the same.
    assert_eq!(ask(&mut client, "timer 6 3000"), "set");
    assert_eq!(ask(&mut client, "timer 7 3600000"), "set");
    assert_eq!(ask(&mut client, "timer 8 3000"), "set");
    assert_eq!(ask(&mut client, "cancel 8"), "cancelled");
    if has_snapshot {
        node.snapshot();
    }
    assert_eq!(ask(&mut client, "timer 9 3000"), "set");
    let _ = node.kill();
    drop(client);
    // The state's history: the first start up to the snapshot, and then the second start.
    let before = before.events();
    let kept = before.iter().position(|event| event == "snapshot").unwrap_or(0);
    assert_eq!(kept > 0, has_snapshot);
    let kept = &before[..kept];

    let after = node.restart_probe();
    let count =
        |timer: &str| after.count(timer) + kept.iter().filter(|event| *event == timer).count();
    await_that("both timers", || count("fired 6") > 0 && count("fired 9") > 0);
    // A replaced deadline of a timer from before the restart.
    let mut client = node.client();
    assert_eq!(client.ask("timer 7 10"), "set");
    assert_eq!(client.receive(), "fired 7");
    assert_eq!(client.ask("timer 10 10"), "set");
    assert_eq!(client.receive(), "fired 10");
    let counts = ["5", "6", "7", "8", "9"].map(|id| count(&format!("fired {id}")));
    assert_eq!(counts, [1, 1, 1, 0, 1]);
}

/// The counter of the consensus module's state, and the state of a suspended one.
const STATE: i32 = 200;
const SUSPENDED: i64 = 2;

#[test]
fn abort_ends_without_a_snapshot() {
    let node = Node::launch_probe(Options::default(), ServiceContext::new());
    let Some((mut node, before)) = node else { return };
    let mut client = node.client();
    assert_eq!(client.ask("echo before"), "echo before");
    node.cluster.node_mut(0).toggle("abort");
    let cause = node.await_service();
    let is_orderly =
        matches!(cause, TerminationCause::ConsensusModuleTerminated { is_expected: true, .. });
    assert!(is_orderly, "{cause:?}");
    assert!(node.cluster.node_mut(0).await_end().expect("a status").success());
    assert_eq!((before.count("terminate"), before.count("snapshot")), (1, 0));
    drop(client);
    // The log is replayed from its beginning.
    let after = node.restart_probe();
    assert_eq!(after.events()[0], "start 0 messages, 0 sessions");
    assert_eq!(after.count("echo before"), 1);
}

#[test]
fn suspended_cluster_sends_no_messages() {
    let node = Node::launch_probe(Options::default(), ServiceContext::new());
    let Some((mut node, service)) = node else { return };
    let mut client = node.client();
    assert_eq!(client.ask("timer 5 1000"), "set");
    node.cluster.node_mut(0).toggle("suspend");
    await_that("a suspended cluster", || node.counter(STATE) == Some(SUSPENDED));
    client.send("echo meanwhile");
    // The container goes on giving signs of life, and gets no message for seconds.
    let path = node.cluster.node(0).cluster_dir().join("cluster-mark-service-0.dat");
    let last_sign = || {
        let header = MarkFileHeader::decode(&fs::read(&path).expect("a mark file"));
        header.expect("a mark file").activity_timestamp
    };
    let begin = last_sign();
    await_that("signs of life", || last_sign() >= begin + 2000);
    assert_eq!(service.count("echo meanwhile"), 0);
    assert!(!client.received.iter().any(|message| message == "echo meanwhile"));
    let is_fired = service.count("fired 5") > 0;
    node.cluster.node_mut(0).toggle("resume");
    let mut received: Vec<String> = (0..2).map(|_| client.receive()).collect();
    received.sort();
    assert_eq!(received, ["echo meanwhile", "fired 5"]);
    // It may have fired between its request and the suspension.
    assert_eq!(service.count("fired 5"), 1, "{is_fired}");
    assert_eq!(client.ask("echo again"), "echo again");
}

#[test]
fn standby_snapshot_is_ignored() {
    let node = Node::launch_probe(Options::default(), ServiceContext::new());
    let Some((mut node, service)) = node else { return };
    let mut client = node.client();
    let position = node.cluster.node(0).commit_position();
    node.cluster.node_mut(0).toggle("standby_snapshot");
    node.cluster.node_mut(0).await_that("a longer log", |node| node.commit_position() > position);
    assert_eq!(client.ask("echo behind"), "echo behind");
    assert_eq!(service.count("snapshot"), 0);
    // An acknowledgement too many would have ended the node by now.
    node.snapshot();
    assert_eq!(service.count("snapshot"), 1);
    assert_eq!(client.ask("echo again"), "echo again");
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
    context.set_aeron_dir(node.aeron_dir()).unwrap().set_cluster_dir(node.cluster_dir()).unwrap();
    let error = ServiceContainer::launch(context, Probe::new().0).expect_err("refused");
    assert_eq!(error.kind(), ClusterErrorKind::ActiveMarkFile, "{error}");
    // Nothing of the refused container is left to disturb the member.
    assert_eq!(cluster.await_leader(), 0);
}
