//! A node, by the counters of its media driver.

use rusteron_client::{CounterSnapshot, CountersReader};
use rusteron_core::cnc::{i32_at, i64_at};
use serde::Serialize;

use crate::counter_types::cluster as types;
use crate::text;

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
    errors: Option<i64>,
    timed_out_clients: Option<i64>,
    invalid_requests: Option<i64>,
    max_cycle_time_ns: Option<i64>,
    slow_cycles: Option<i64>,
    max_snapshot_time_ns: Option<i64>,
    slow_snapshots: Option<i64>,
}

/// A service, by the counters of its container.
#[derive(Debug, Default, Serialize)]
pub(super) struct Service {
    service_id: i32,
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

/// The counters of containers.
const SERVICE_TYPES: [i32; 5] = [
    types::SERVICE_ERRORS,
    types::SERVICE_MAX_CYCLE_TIME,
    types::SERVICE_SLOW_CYCLES,
    types::SERVICE_MAX_SNAPSHOT_TIME,
    types::SERVICE_SLOW_SNAPSHOTS,
];

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
fn name(names: &[&str], code: i64) -> String {
    let known = usize::try_from(code).ok().and_then(|code| names.get(code));
    known.map_or_else(|| code.to_string(), ToString::to_string)
}

/// Reads the counters of a cluster. The services and sessions are in the order of their ids.
pub(super) fn read(
    counters: &CountersReader<'_>,
    cluster_id: i32,
) -> (Option<Node>, Vec<Service>, Vec<Session>) {
    let mut node = Node { cluster_id, ..Node::default() };
    let (mut services, mut sessions) = (Vec::new(), Vec::new());
    let mut has_node = false;
    counters.for_each(|counter| {
        if i32_at(&counter.key, 0) == Some(cluster_id) {
            has_node |= node.add(counter);
            add_service(&mut services, counter);
            if counter.type_id == types::SESSION {
                let label = counter.label.clone();
                let cluster_session_id = i64_at(&counter.key, 4).unwrap_or_default();
                sessions.push(Session { cluster_session_id, label });
            }
        }
    });
    services.sort_by_key(|service: &Service| service.service_id);
    sessions.sort_by_key(|session| session.cluster_session_id);
    (has_node.then_some(node), services, sessions)
}

impl Node {
    /// Adds a counter's value. Returns whether it is a counter of a consensus module.
    fn add(&mut self, counter: &CounterSnapshot) -> bool {
        let value = counter.value;
        let named = |names: &[&str]| Some(name(names, value));
        match counter.type_id {
            types::STATE => self.state = named(&STATES),
            types::ROLE => self.role = named(&ROLES),
            types::ELECTION_STATE => self.election_state = named(&ELECTION_STATES),
            types::LEADERSHIP_TERM => self.leadership_term_id = Some(value),
            types::COMMIT_POSITION => self.commit_position = Some(value),
            types::CONTROL_TOGGLE => self.control_toggle = named(&CONTROL_TOGGLES),
            types::NODE_CONTROL_TOGGLE => self.node_control_toggle = named(&NODE_CONTROL_TOGGLES),
            types::SNAPSHOTS => self.snapshots = Some(value),
            types::ELECTIONS => self.elections = Some(value),
            types::ERRORS => self.errors = Some(value),
            types::TIMED_OUT_CLIENTS => self.timed_out_clients = Some(value),
            types::INVALID_REQUESTS => self.invalid_requests = Some(value),
            types::MAX_CYCLE_TIME => self.max_cycle_time_ns = Some(value),
            types::SLOW_CYCLES => self.slow_cycles = Some(value),
            types::MAX_SNAPSHOT_TIME => self.max_snapshot_time_ns = Some(value),
            types::SLOW_SNAPSHOTS => self.slow_snapshots = Some(value),
            _ => return false,
        }
        true
    }

    /// Returns the most important facts in one line.
    pub(super) fn line(&self) -> String {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        format!(
            "cluster {}: {}, term {}, commit position {}; election {}, consensus module {}",
            self.cluster_id,
            text(&self.role),
            number(self.leadership_term_id),
            number(self.commit_position),
            text(&self.election_state),
            text(&self.state),
        )
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        let toggles = format!(
            "control toggle {}, of the node {}",
            text(&self.control_toggle),
            text(&self.node_control_toggle)
        );
        let counts = [
            ("snapshots", self.snapshots),
            ("elections", self.elections),
            ("errors", self.errors),
            ("timed out clients", self.timed_out_clients),
            ("invalid requests", self.invalid_requests),
            ("slow cycles", self.slow_cycles),
            ("slow snapshots", self.slow_snapshots),
        ];
        let counts = counts.map(|(name, value)| format!("{name} {}", number(value)));
        let times = durations(self.max_cycle_time_ns, self.max_snapshot_time_ns);
        vec![toggles, counts.join(", "), times]
    }
}

/// Adds the value of a container's counter to its service.
fn add_service(services: &mut Vec<Service>, counter: &CounterSnapshot) {
    if !SERVICE_TYPES.contains(&counter.type_id) {
        return;
    }
    let service_id = i32_at(&counter.key, 4).unwrap_or_default();
    let index = services.iter().position(|service| service.service_id == service_id);
    let index = index.unwrap_or_else(|| {
        services.push(Service { service_id, ..Service::default() });
        services.len() - 1
    });
    let service = &mut services[index];
    *match counter.type_id {
        types::SERVICE_ERRORS => &mut service.errors,
        types::SERVICE_MAX_CYCLE_TIME => &mut service.max_cycle_time_ns,
        types::SERVICE_SLOW_CYCLES => &mut service.slow_cycles,
        types::SERVICE_MAX_SNAPSHOT_TIME => &mut service.max_snapshot_time_ns,
        _ => &mut service.slow_snapshots,
    } = Some(counter.value);
}

impl Service {
    pub(super) fn line(&self) -> String {
        format!(
            "service {}: errors {}, slow cycles {}, slow snapshots {}; {}",
            self.service_id,
            number(self.errors),
            number(self.slow_cycles),
            number(self.slow_snapshots),
            durations(self.max_cycle_time_ns, self.max_snapshot_time_ns)
        )
    }
}

impl Session {
    pub(super) fn line(&self) -> String {
        format!("{:>5}  {}", self.cluster_session_id, text::printable(&self.label))
    }
}

fn durations(cycle_ns: Option<i64>, snapshot_ns: Option<i64>) -> String {
    let (cycle, snapshot) = (number(cycle_ns), number(snapshot_ns));
    format!("longest cycle {cycle} ns, longest snapshot {snapshot} ns")
}

fn number(number: Option<i64>) -> String {
    number.map_or_else(|| "unknown".to_owned(), text::grouped)
}
