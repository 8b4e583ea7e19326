//! A node, by the counters of its media driver.

use std::collections::BTreeMap;

use rusteron_client::CountersReader;
use rusteron_core::cnc::{i32_at, i64_at};
use serde::Serialize;

use crate::{counter_types, text};

/// A node, by the counters of its consensus module. A missing counter is `None`.
#[derive(Debug, Default, Serialize)]
pub(super) struct Node {
    cluster_id: i32,
    state: Option<String>,
    role: Option<String>,
    election_state: Option<String>,
    leadership_term_id: Option<i64>,
    commit_position: Option<i64>,
    control_toggle: Option<String>,
    node_control_toggle: Option<String>,
    snapshots: Option<i64>,
    elections: Option<i64>,
    timed_out_clients: Option<i64>,
    invalid_requests: Option<i64>,
    #[serde(flatten)]
    agent: Agent,
}

/// A service, by the counters of its container.
#[derive(Debug, Default, Serialize)]
pub(super) struct Service {
    service_id: i32,
    #[serde(flatten)]
    agent: Agent,
}

/// The counters that the agents of consensus modules and of containers have.
#[derive(Debug, Default, Serialize)]
struct Agent {
    errors: Option<i64>,
    max_cycle_time_ns: Option<i64>,
    slow_cycles: Option<i64>,
    max_snapshot_time_ns: Option<i64>,
    slow_snapshots: Option<i64>,
}

/// A session of a client.
#[derive(Debug, Serialize)]
pub(super) struct Session {
    cluster_session_id: i64,
    label: String,
}

// Names of values, in the order of Java's codes.
const STATES: [&str; 7] =
    ["init", "active", "suspended", "snapshot", "quitting", "terminating", "closed"];
const ROLES: [&str; 3] = ["follower", "candidate", "leader"];
const ELECTION_STATES: [&str; 18] = [
    "init",
    "canvass",
    "nominate",
    "candidate-ballot",
    "follower-ballot",
    "leader-log-replication",
    "leader-replay",
    "leader-init",
    "leader-ready",
    "follower-log-replication",
    "follower-replay",
    "follower-catchup-init",
    "follower-catchup-await",
    "follower-catchup",
    "follower-log-init",
    "follower-log-await",
    "follower-ready",
    "closed",
];
const CONTROL_TOGGLES: [&str; 8] = [
    "inactive",
    "neutral",
    "suspend",
    "resume",
    "snapshot",
    "shutdown",
    "abort",
    "standby-snapshot",
];
const NODE_CONTROL_TOGGLES: [&str; 4] =
    ["inactive", "neutral", "replicate-standby-snapshot", "validate-recording-log"];

/// Returns the name of a code, or the code itself.
fn value_name(names: &[&str], code: i64) -> String {
    let known = usize::try_from(code).ok().and_then(|code| names.get(code));
    known.map_or_else(|| code.to_string(), ToString::to_string)
}

/// Reads the counters of a cluster. The services and sessions are in the order of their ids.
pub(super) fn read(
    counters: &CountersReader<'_>,
    cluster_id: i32,
) -> (Option<Node>, Vec<Service>, Vec<Session>) {
    let mut node = Node { cluster_id, ..Node::default() };
    let (mut services, mut sessions) = (BTreeMap::new(), Vec::new());
    let mut has_node = false;
    counters.for_each(|counter| {
        let name = counter_types::name(counter.type_id);
        let Some(name) = name.filter(|_| i32_at(&counter.key, 0) == Some(cluster_id)) else {
            return;
        };
        if name == "cluster-session" {
            let label = counter.label.clone();
            let cluster_session_id = i64_at(&counter.key, 4).unwrap_or_default();
            sessions.push(Session { cluster_session_id, label });
        } else if let Some(name) = name.strip_prefix("cluster-") {
            has_node |= node.add(name, counter.value);
        } else if let Some(name) = name.strip_prefix("service-") {
            let service_id = i32_at(&counter.key, 4).unwrap_or_default();
            let new = Service { service_id, ..Service::default() };
            services.entry(service_id).or_insert(new).agent.add(name, counter.value);
        }
    });
    sessions.sort_by_key(|session| session.cluster_session_id);
    (has_node.then_some(node), services.into_values().collect(), sessions)
}

impl Node {
    /// Adds a counter's value. Returns whether it is a counter of a consensus module.
    fn add(&mut self, name: &str, value: i64) -> bool {
        let named = |names: &[&str]| Some(value_name(names, value));
        match name {
            "state" => self.state = named(&STATES),
            "role" => self.role = named(&ROLES),
            "election-state" => self.election_state = named(&ELECTION_STATES),
            "term" => self.leadership_term_id = Some(value),
            "commit-pos" => self.commit_position = Some(value),
            "control" => self.control_toggle = named(&CONTROL_TOGGLES),
            "node-control" => self.node_control_toggle = named(&NODE_CONTROL_TOGGLES),
            "snapshots" => self.snapshots = Some(value),
            "elections" => self.elections = Some(value),
            "timed-out-clients" => self.timed_out_clients = Some(value),
            "invalid-requests" => self.invalid_requests = Some(value),
            _ => return self.agent.add(name, value),
        }
        true
    }

    /// Returns the most important facts in one line.
    pub(super) fn line(&self) -> String {
        format!(
            "cluster {}: {}, term {}, commit position {}; election {}, consensus module {}",
            self.cluster_id,
            known(&self.role),
            number(self.leadership_term_id),
            number(self.commit_position),
            known(&self.election_state),
            known(&self.state),
        )
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let toggles = format!(
            "control toggle {}, of the node {}",
            known(&self.control_toggle),
            known(&self.node_control_toggle)
        );
        let counts = [
            ("snapshots", self.snapshots),
            ("elections", self.elections),
            ("errors", self.agent.errors),
            ("timed out clients", self.timed_out_clients),
            ("invalid requests", self.invalid_requests),
            ("slow cycles", self.agent.slow_cycles),
            ("slow snapshots", self.agent.slow_snapshots),
        ];
        let counts = counts.map(|(name, value)| format!("{name} {}", number(value)));
        vec![toggles, counts.join(", "), self.agent.durations()]
    }
}

impl Agent {
    /// Adds a counter's value. Returns whether it is one of these counters.
    fn add(&mut self, name: &str, value: i64) -> bool {
        *match name {
            "errors" => &mut self.errors,
            "max-cycle-time" => &mut self.max_cycle_time_ns,
            "slow-cycles" => &mut self.slow_cycles,
            "max-snapshot-time" => &mut self.max_snapshot_time_ns,
            "slow-snapshots" => &mut self.slow_snapshots,
            _ => return false,
        } = Some(value);
        true
    }

    fn durations(&self) -> String {
        let (cycle, snapshot) = (number(self.max_cycle_time_ns), number(self.max_snapshot_time_ns));
        format!("longest cycle {cycle} ns, longest snapshot {snapshot} ns")
    }
}

impl Service {
    pub(super) fn line(&self) -> String {
        format!(
            "service {}: errors {}, slow cycles {}, slow snapshots {}; {}",
            self.service_id,
            number(self.agent.errors),
            number(self.agent.slow_cycles),
            number(self.agent.slow_snapshots),
            self.agent.durations()
        )
    }
}

impl Session {
    pub(super) fn line(&self) -> String {
        format!("{:>5}  {}", self.cluster_session_id, text::printable(&self.label))
    }
}

fn known(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("unknown")
}

fn number(number: Option<i64>) -> String {
    number.map_or_else(|| "unknown".to_owned(), text::grouped)
}
