//! Containers in the caller's loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rusteron_client::{Aeron, Context};
use rusteron_cluster::{ServiceAgent, ServiceContext, TerminationCause};
use rusteron_test_support::cluster::Options;
use rusteron_test_support::{EndOnDrop, await_that};

use super::Node;
use super::command_service::CommandService;

/// Starts a service whose agent and Aeron client run in one loop.
fn run_in_loop(
    context: ServiceContext,
    service: CommandService,
    ends: &AtomicBool,
) -> TerminationCause {
    let mut agent = ServiceAgent::new(context, service).expect("an agent");
    while !ends.load(Ordering::Acquire) {
        match agent.do_work() {
            Ok(0) => thread::sleep(Duration::from_micros(100)),
            Ok(_) => {}
            Err(cause) => {
                assert_eq!(agent.do_work(), Err(cause.clone()));
                return cause;
            }
        }
    }
    TerminationCause::Stopped
}

/// A client without a thread, which a driver without a sign of life for ten seconds gives up.
fn invoker(node: &Node) -> Aeron {
    let mut context = Context::new().expect("a context");
    context
        .set_dir(node.cluster.node(0).aeron_dir())
        .and_then(|context| context.set_use_conductor_agent_invoker(true))
        .expect("valid settings");
    Aeron::connect(context).expect("a client")
}

fn context(node: &Node) -> ServiceContext {
    let mut context = ServiceContext::new();
    context
        .set_aeron(Some(invoker(node)))
        .unwrap()
        .set_cluster_dir(node.cluster.node(0).cluster_dir())
        .unwrap();
    context
}

/// Runs the test while a container runs in a loop of another thread, and returns the cause of the
/// container's end.
fn with_agent(node: &mut Node, test: impl FnOnce(&mut Node)) -> TerminationCause {
    let context = context(node);
    let (service, seen) = CommandService::new();
    node.seen = seen;
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let agent = scope.spawn(|| run_in_loop(context, service, &ends));
        let end = EndOnDrop(&ends);
        node.cluster.await_leader();
        test(node);
        drop(end);
        agent.join().expect("no panic")
    })
}

#[test]
fn invoker_runs_service_and_snapshots() {
    let node = Node::launch_alone(Options::default(), ServiceContext::new());
    let Some(mut node) = node else { return };
    let cause = with_agent(&mut node, |node| {
        let mut client = node.client();
        assert_eq!(client.ask("echo before"), "before");
        assert_eq!(client.ask("timer 5 10"), "set");
        assert_eq!(client.receive(), "fired 5");
        // Connects to the archive, and waits for it, within the loop.
        node.snapshot();
        assert_eq!(client.ask("echo behind"), "behind");
        assert_eq!(node.counter(215), Some(0));
        node.cluster.node_mut(0).toggle("shutdown");
        await_that("the end", || node.lifecycle().last().is_some_and(|it| it == "terminate"));
        assert!(node.cluster.node_mut(0).await_end().expect("a status").success());
    });
    // The loop may end first.
    let is_orderly = matches!(
        cause,
        TerminationCause::ConsensusModuleTerminated { is_expected: true, .. }
            | TerminationCause::Stopped
    );
    assert!(is_orderly, "{cause:?}");
    // The replay of the snapshot runs within the loop, too.
    node.restart_alone();
    let cause = with_agent(&mut node, |node| {
        assert!(node.lifecycle()[0].starts_with("load at "), "{:?}", node.lifecycle());
    });
    assert_eq!(cause, TerminationCause::Stopped);
    // The agent was dropped, and the consensus module sees the end of its client.
    assert_eq!(node.lifecycle().last().map(String::as_str), Some("terminate"));
    node.cluster.node_mut(0).await_end();
}
