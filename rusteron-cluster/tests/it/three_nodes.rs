//! Failures of members of a cluster with three Java nodes, under load.
//!
//! Each test needs most of a small machine for up to a minute. `cargo test` runs two of them, and
//! `just test-cluster` runs all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rusteron_client::{Aeron, IdleStrategy, IdleStrategyKind};
use rusteron_cluster::{
    ClusterClient, ClusterCloseCause, ClusterEgress, ClusterState, Egress, EventCode, Ingress,
};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::cluster::load::{Load, context};
use rusteron_test_support::cluster::{AeronVersion, JavaCluster, Options, Service};
use rusteron_test_support::{await_that, connect, launch_with_long_timeouts};

use crate::halves::EndOnDrop;

/// Three nodes, and the media driver of a client.
struct Fixture {
    cluster: JavaCluster,
    aeron: Aeron,
    driver: MediaDriver,
}

impl Fixture {
    fn launch() -> Option<Self> {
        Self::launch_with(Options::three(Service::Number))
    }

    fn launch_with(options: Options) -> Option<Self> {
        let cluster = JavaCluster::launch(options)?;
        let driver = launch_with_long_timeouts();
        Some(Self { cluster, aeron: connect(&driver), driver })
    }

    fn connect(&self) -> ClusterClient {
        self.connect_to(&self.cluster.ingress_endpoints())
    }

    fn connect_to(&self, endpoints: &str) -> ClusterClient {
        ClusterClient::connect(&self.aeron, context(endpoints)).expect("a session")
    }

    /// Kills the leader again and again. Each time the load goes on, and the killed member comes back.
    fn kill_leaders(&mut self, times: u64) {
        let load = Load::start(self.connect());
        for _ in 0..times {
            load.await_answers();
            let leader = self.cluster.await_leader();
            self.cluster.node_mut(leader).kill();
            load.await_answers();
            assert_ne!(self.cluster.await_leader(), leader);
            self.cluster.restart();
        }
        assert!(load.finish().new_leaders >= times);
    }
}

#[test]
fn leader_killed_once() {
    let Some(mut fixture) = Fixture::launch() else { return };
    fixture.kill_leaders(1);
}

#[test]
#[ignore = "takes a minute: just test-cluster"]
fn leader_killed_five_times() {
    let Some(mut fixture) = Fixture::launch() else { return };
    fixture.kill_leaders(5);
}

#[test]
#[ignore = "takes half a minute, and compiles Aeron's Java code once: just test-cluster"]
fn leader_killed_with_mixed_versions() {
    let versions = vec![AeronVersion::Maven, AeronVersion::Compiled];
    let options = Options { versions, ..Options::three(Service::Number) };
    let Some(mut fixture) = Fixture::launch_with(options) else { return };
    fixture.kill_leaders(3);
}

#[test]
fn followers_redirect_to_leader() {
    let Some(fixture) = Fixture::launch() else { return };
    let cluster = &fixture.cluster;
    let endpoints = cluster.ingress_endpoints_of(cluster.followers());
    let client = fixture.connect_to(&endpoints);
    assert_eq!(client.leader_member_id(), cluster.await_leader() as i32);
    let load = Load::start(client);
    load.await_answers();
    load.finish();
}

#[test]
#[ignore = "takes half a minute: just test-cluster"]
fn redirected_client_survives_leader() {
    let Some(mut fixture) = Fixture::launch() else { return };
    let followers = fixture.cluster.followers();
    let endpoints = fixture.cluster.ingress_endpoints_of([followers[0]]);
    let load = Load::start(fixture.connect_to(&endpoints));
    load.await_answers();
    let leader = fixture.cluster.await_leader();
    fixture.cluster.node_mut(leader).kill();
    load.await_answers();
    assert!(load.finish().new_leaders >= 1);
}

#[test]
#[ignore = "takes half a minute: just test-cluster"]
fn follower_killed_and_back() {
    let Some(mut fixture) = Fixture::launch() else { return };
    let load = Load::start(fixture.connect());
    load.await_answers();
    let follower = fixture.cluster.followers()[0];
    fixture.cluster.node_mut(follower).kill();
    load.await_answers();
    fixture.cluster.restart();
    load.await_answers();
    load.finish();
    fixture.cluster.await_equal_positions();
}

#[test]
#[ignore = "takes half a minute: just test-cluster"]
fn leader_stopped_in_order() {
    let Some(mut fixture) = Fixture::launch() else { return };
    let load = Load::start(fixture.connect());
    load.await_answers();
    let leader = fixture.cluster.await_leader();
    fixture.cluster.node_mut(leader).stop();
    load.await_answers();
    assert_ne!(fixture.cluster.await_leader(), leader);
    fixture.cluster.restart();
    load.await_answers();
    assert!(load.finish().new_leaders >= 1);
}

#[test]
#[ignore = "takes half a minute: just test-cluster"]
fn leader_paused_becomes_follower() {
    let Some(mut fixture) = Fixture::launch() else { return };
    let load = Load::start(fixture.connect());
    load.await_answers();
    let leader = fixture.cluster.await_leader();
    fixture.cluster.node(leader).pause();
    load.await_answers();
    fixture.cluster.node(leader).resume();
    fixture
        .cluster
        .node_mut(leader)
        .await_that("the old leader follows", |node| node.is_follower());
    load.await_answers();
    assert!(load.finish().new_leaders >= 1);
}

#[test]
#[ignore = "takes half a minute: just test-cluster"]
fn quorum_lost_closes_client() {
    let Some(mut fixture) = Fixture::launch() else { return };
    let mut client = fixture.connect();
    for follower in fixture.cluster.followers() {
        fixture.cluster.node_mut(follower).kill();
    }
    await_that("the session is closed", || {
        let _ = client.offer(b"t");
        client.poll_egress(|_, _| {}, 10).is_err()
    });
    assert_eq!(client.state(), ClusterState::Closed(ClusterCloseCause::NoNewLeader));
}

#[test]
#[ignore = "takes half a minute: just test-cluster"]
fn quorum_back_in_time_goes_on() {
    let options = Options {
        leader_heartbeat_timeout: Duration::from_secs(10),
        ..Options::three(Service::Number)
    };
    let Some(mut fixture) = Fixture::launch_with(options) else { return };
    let load = Load::start(fixture.connect());
    load.await_answers();
    for follower in fixture.cluster.followers() {
        fixture.cluster.node_mut(follower).kill();
    }
    fixture.cluster.restart();
    load.await_answers();
    load.finish();
}

#[test]
#[ignore = "takes half a minute: just test-cluster"]
fn idle_client_follows_by_keep_alives() {
    let Some(mut fixture) = Fixture::launch() else { return };
    let mut context = context(&fixture.cluster.ingress_endpoints());
    context.set_keep_alive_interval(Some(Duration::from_millis(200))).unwrap();
    let mut client = ClusterClient::connect(&fixture.aeron, context).expect("a session");
    let leader = fixture.cluster.await_leader();
    fixture.cluster.node_mut(leader).kill();
    // Only polls; they send the first message to the new leader.
    let mut idle = IdleStrategyKind::Backoff.new_strategy();
    await_that("a connection to the new leader", || {
        idle.idle(client.poll_egress(|_, _| {}, 10).expect("an open session"));
        client.leader_member_id() != leader as i32 && client.state() == ClusterState::Connected
    });
    let load = Load::start(client);
    load.await_answers();
    load.finish();
}

#[test]
#[ignore = "takes half a minute: just test-cluster"]
fn leader_killed_without_conductor_thread() {
    let Some(mut fixture) = Fixture::launch() else { return };
    let mut settings = rusteron_test_support::context(fixture.driver.aeron_dir());
    settings.set_use_conductor_agent_invoker(true).expect("a setting");
    let aeron = Aeron::connect(settings).expect("a client");
    let context = context(&fixture.cluster.ingress_endpoints());
    let client = ClusterClient::connect(&aeron, context).expect("a session");
    let load = Load::start_with_invoker(client, aeron);
    load.await_answers();
    let leader = fixture.cluster.await_leader();
    fixture.cluster.node_mut(leader).kill();
    load.await_answers();
    assert!(load.finish().new_leaders >= 1);
}

#[test]
#[ignore = "takes half a minute: just test-cluster"]
fn restart_of_all_closes_sessions_only() {
    let Some(mut fixture) = Fixture::launch() else { return };
    let load = Load::start(fixture.connect());
    load.await_answers();
    let outcome = load.finish();
    let mut session = fixture.connect();
    // With a snapshot. The services know their answers afterwards.
    fixture.cluster.shut_down();
    fixture.cluster.restart();
    await_that("the end of the old session", || session.poll_egress(|_, _| {}, 10).is_err());
    let load = Load::resume(fixture.connect(), outcome);
    load.await_answers();
    load.finish();
}

/// The answers to numbered requests, by the id of the request.
#[derive(Default)]
struct Answers {
    numbers: BTreeMap<usize, i64>,
    new_leaders: usize,
}

impl Answers {
    fn request(id: usize) -> Vec<u8> {
        [&b"n"[..], &(id as i64).to_le_bytes()].concat()
    }

    fn on_event(&mut self, event: Egress<'_>) {
        match event {
            Egress::Message { payload, .. } => {
                let field = |at: usize| payload[at..at + 8].try_into().map(i64::from_le_bytes);
                let (number, id) = (field(0).expect("8 bytes"), field(9).expect("8 bytes"));
                let known = *self.numbers.entry(id as usize).or_insert(number);
                assert_eq!(known, number, "two answers to request {id}");
            }
            Egress::NewLeader { .. } => self.new_leaders += 1,
            // A new leader confirms a session that the old leader has opened.
            Egress::SessionEvent { code: EventCode::Ok, .. } => {}
            other => panic!("{other:?}"),
        }
    }

    fn poll(&mut self, egress: &mut ClusterEgress) {
        egress.poll(|event| self.on_event(event), 10).expect("an open session");
    }
}

/// Sends requests until the end, at most 32 behind the last answer of the same leader. Returns the
/// term of each.
fn send_requests(ingress: &mut Ingress, is_over: &AtomicBool, answered: &AtomicUsize) -> Vec<i64> {
    let mut terms = Vec::new();
    // The first request of the current term.
    let mut first = 0;
    let mut idle = IdleStrategyKind::Backoff.new_strategy();
    while !is_over.load(Ordering::Acquire) {
        let before = ingress.leadership_term_id();
        ingress.poll_state_changes();
        if ingress.leadership_term_id() != before {
            first = terms.len();
        }
        let is_free = terms.len() < answered.load(Ordering::Acquire).max(first) + 32;
        let is_sent = is_free
            && match ingress.offer(&Answers::request(terms.len())) {
                Ok(_) => true,
                Err(error) => {
                    assert!(error.is_retryable(), "{error}");
                    false
                }
            };
        if is_sent {
            terms.push(ingress.leadership_term_id());
        }
        idle.idle(usize::from(is_sent));
    }
    terms
}

#[test]
#[ignore = "takes half a minute: just test-cluster"]
fn leader_killed_while_threads_send_and_receive() {
    const ENOUGH: usize = 500;
    let Some(mut fixture) = Fixture::launch() else { return };
    let (mut ingress, mut egress) = fixture.connect().split();
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let mut answers = Answers::default();
    let terms = thread::scope(|scope| {
        let _end = EndOnDrop(&is_over);
        let sender = scope.spawn(|| send_requests(&mut ingress, &is_over, &answered));
        let mut await_more_answers = |answers: &mut Answers, new_leaders| {
            let last =
                |answers: &Answers| answers.numbers.last_key_value().map_or(0, |last| *last.0);
            let enough = last(answers) + ENOUGH;
            await_that("answers", || {
                answers.poll(&mut egress);
                answered.store(last(answers), Ordering::Release);
                answers.new_leaders >= new_leaders && last(answers) >= enough
            });
        };
        await_more_answers(&mut answers, 0);
        for kills in 1..=2 {
            let leader = fixture.cluster.await_leader();
            fixture.cluster.node_mut(leader).kill();
            await_more_answers(&mut answers, kills);
            fixture.cluster.restart();
        }
        is_over.store(true, Ordering::Release);
        sender.join().expect("the sender")
    });

    // Requests to the last leader, which lives, are all answered. Only those to killed ones are not.
    let last_term = *terms.last().expect("requests");
    let unanswered = |answers: &Answers| -> BTreeSet<usize> {
        (0..terms.len()).filter(|id| !answers.numbers.contains_key(id)).collect()
    };
    await_that("all answers of the last leader", || {
        answers.poll(&mut egress);
        unanswered(&answers).iter().all(|&id| terms[id] < last_term)
    });

    // Sent again, each request still has one effect.
    let mut client = ClusterClient::join(ingress, egress).expect("halves of one session");
    for id in unanswered(&answers) {
        await_that("an accepted offer", || client.offer(&Answers::request(id)).is_ok());
    }
    await_that("all answers", || {
        client.poll_egress(|_, event| answers.on_event(event), 10).expect("an open session");
        unanswered(&answers).is_empty()
    });
    let numbers: BTreeSet<i64> = answers.numbers.values().copied().collect();
    assert!(numbers.into_iter().eq(1..=terms.len() as i64));
}
