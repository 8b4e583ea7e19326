//! Timers that outlive the member's processes.

use rusteron_cluster::ServiceContext;
use rusteron_test_support::await_that;
use rusteron_test_support::cluster::Options;

use super::{Client, Node};

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
