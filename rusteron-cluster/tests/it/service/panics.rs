//! Panics in each callback, with both error policies.

use rusteron_client::ErrorLogEntry;
use rusteron_cluster::{ErrorPolicy, ServiceContext, TerminationCause};
use rusteron_core::cnc::error_log;
use rusteron_test_support::await_that;
use rusteron_test_support::cluster::Options;

use super::Node;
use super::probe::{CALLBACKS, Handle};

/// Makes the consensus module call a callback, or does nothing if it is called anyway.
fn provoke(node: &mut Node, callback: &str) {
    match callback {
        // Dropping a client closes the session.
        "on_session_open" | "on_session_close" => drop(node.client()),
        "on_session_message" => node.client().send("echo"),
        "on_timer_event" => node.client().send("timer 1 10"),
        "on_take_snapshot" => node.cluster.node_mut(0).toggle("snapshot"),
        _ => {}
    }
}

/// Returns whether a callback comes once in the life of a container, at its start.
fn is_at_start(callback: &str) -> bool {
    matches!(callback, "on_new_leadership_term" | "on_role_change")
}

#[test]
fn recorded_panics_leave_the_service_running() {
    let mut context = ServiceContext::new();
    context.set_error_policy(ErrorPolicy::RecordAndContinue).unwrap();
    let Some(mut node) = Node::launch_alone(Options::default(), context) else { return };
    let mut errors = 0;
    let mut service = Handle::default();
    for start in CALLBACKS.into_iter().filter(|callback| is_at_start(callback)) {
        service = node.start_probe(Some(start));
        node.cluster.await_leader();
        await_that("a panic", || service.has_sprung() && node.counter(215) == Some(1));
        assert_eq!(node.client().ask("echo behind"), "echo behind");
        errors = 1;
        if start != "on_role_change" {
            let _ = node.kill();
            node.restart_alone();
        }
    }
    let later = |callback: &&str| !is_at_start(callback) && *callback != "on_terminate";
    for callback in CALLBACKS.into_iter().filter(later) {
        service.set_trap(callback);
        provoke(&mut node, callback);
        errors += 1;
        await_that(callback, || service.has_sprung() && node.counter(215) == Some(errors));
        assert_eq!(node.client().ask("echo behind"), "echo behind");
    }
    // A snapshot that failed does not disturb the next one.
    node.snapshot();
    // Nothing counts after the end. The mark file has the error.
    service.set_trap("on_terminate");
    node.cluster.node_mut(0).toggle("shutdown");
    let cause = node.await_service();
    let is_orderly =
        matches!(cause, TerminationCause::ConsensusModuleTerminated { is_expected: true, .. });
    assert!(is_orderly, "{cause:?}");
    assert!(node.cluster.node_mut(0).await_end().expect("a status").success());
    let path = node.cluster.node(0).cluster_dir().join("cluster-mark-service-0.dat");
    let errors = error_log::entries(&std::fs::read(path).expect("a mark file")[8192..]);
    for callback in CALLBACKS.into_iter().filter(|callback| *callback != "on_new_leadership_term") {
        let start = match callback {
            "on_take_snapshot" => "no snapshot at position ".to_owned(),
            _ => format!("{callback} failed"),
        };
        let is_recorded = |entry: &&ErrorLogEntry| {
            entry.text.starts_with(&start) && entry.text.ends_with(&format!("panic: in {callback}"))
        };
        assert_eq!(errors.iter().filter(is_recorded).count(), 1, "{callback}: {errors:?}");
    }
}

#[test]
fn half_a_snapshot_leaves_the_next_one() {
    // With the default policy, which ends the service when another callback panics.
    let node = Node::launch_probe(Options::default(), ServiceContext::new());
    let Some((mut node, service)) = node else { return };
    let mut client = node.client();
    assert_eq!(client.ask("echo before"), "echo before");
    service.set_trap("on_take_snapshot");
    let count = node.cluster.node(0).snapshot_count();
    node.cluster.node_mut(0).toggle("snapshot");
    await_that("a panic", || service.has_sprung() && node.counter(215) == Some(1));
    // The consensus module has got its acknowledgement, and goes on without the snapshot.
    assert_eq!(client.ask("echo between"), "echo between");
    assert_eq!(node.cluster.node(0).snapshot_count(), count);
    node.snapshot();
    assert_eq!(client.ask("echo behind"), "echo behind");
    let _ = node.kill();
    drop(client);
    let after = node.restart_probe();
    assert_eq!(after.events()[0], "load 2 messages, 1 sessions");
    assert_eq!((after.count("echo between"), after.count("echo behind")), (0, 1));
}

#[test]
fn panic_at_the_start_ends_the_node() {
    let node = Node::launch_alone(Options::default(), ServiceContext::new());
    let Some(mut node) = node else { return };
    let service = node.start_probe(Some("on_start"));
    let cause = TerminationCause::StartFailed("panic: in on_start".to_owned());
    assert_eq!(node.await_service(), cause);
    assert_eq!(service.count("terminate"), 0);
    // The acknowledgement of the failure ends the consensus module. Its process goes on.
    let expected = "failed to start clustered service(s)";
    node.cluster.node_mut(0).await_that("the end", |node| node.log().contains(expected));
}

#[test]
fn panic_in_a_timer_ends_the_node() {
    panic_ends_the_node("on_timer_event");
}

#[test]
#[ignore = "starts a node for each callback, half a minute: `just test-cluster`"]
fn panic_in_any_callback_ends_the_node() {
    CALLBACKS
        .into_iter()
        .filter(|callback| !matches!(*callback, "on_terminate" | "on_take_snapshot"))
        .for_each(panic_ends_the_node);
}

fn panic_ends_the_node(callback: &'static str) {
    let node = Node::launch_alone(Options::default(), ServiceContext::new());
    let Some(mut node) = node else { return };
    let at_start = is_at_start(callback).then_some(callback);
    let service = node.start_probe(at_start);
    if at_start.is_none() {
        node.cluster.await_leader();
        service.set_trap(callback);
        provoke(&mut node, callback);
    }
    let error = format!("panic: in {callback}");
    assert_eq!(node.await_service(), TerminationCause::ServiceFailed { callback, error });
    // The service is in the middle of a change.
    assert_eq!(service.count("terminate"), 0);
    node.cluster.node_mut(0).await_end();
}
