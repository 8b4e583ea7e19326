//! Names of the types of counters.

use rusteron_client::PositionKind;

/// The driver's own counters of all streams together.
const SYSTEM: i32 = 0;

/// The counters of Aeron Cluster that this program reads or names, as Java's `AeronCounters` numbers them.
pub(crate) mod cluster {
    pub(crate) const STATE: i32 = 200;
    pub(crate) const ROLE: i32 = 201;
    pub(crate) const CONTROL_TOGGLE: i32 = 202;
    pub(crate) const COMMIT_POSITION: i32 = 203;
    pub(crate) const RECOVERY: i32 = 204;
    pub(crate) const SNAPSHOTS: i32 = 205;
    pub(crate) const ELECTION_STATE: i32 = 207;
    pub(crate) const ERRORS: i32 = 212;
    pub(crate) const TIMED_OUT_CLIENTS: i32 = 213;
    pub(crate) const INVALID_REQUESTS: i32 = 214;
    pub(crate) const SERVICE_ERRORS: i32 = 215;
    pub(crate) const MAX_CYCLE_TIME: i32 = 216;
    pub(crate) const SLOW_CYCLES: i32 = 217;
    pub(crate) const SERVICE_MAX_CYCLE_TIME: i32 = 218;
    pub(crate) const SERVICE_SLOW_CYCLES: i32 = 219;
    pub(crate) const NODE_CONTROL_TOGGLE: i32 = 233;
    pub(crate) const MAX_SNAPSHOT_TIME: i32 = 234;
    pub(crate) const SLOW_SNAPSHOTS: i32 = 235;
    pub(crate) const SERVICE_MAX_SNAPSHOT_TIME: i32 = 236;
    pub(crate) const SERVICE_SLOW_SNAPSHOTS: i32 = 237;
    pub(crate) const ELECTIONS: i32 = 238;
    pub(crate) const LEADERSHIP_TERM: i32 = 239;
    pub(crate) const SESSION: i32 = 241;
}

const CLUSTER: [(&str, i32); 23] = [
    ("cluster-state", cluster::STATE),
    ("cluster-role", cluster::ROLE),
    ("cluster-control", cluster::CONTROL_TOGGLE),
    ("cluster-commit-pos", cluster::COMMIT_POSITION),
    ("cluster-recovery", cluster::RECOVERY),
    ("cluster-snapshots", cluster::SNAPSHOTS),
    ("cluster-election-state", cluster::ELECTION_STATE),
    ("cluster-errors", cluster::ERRORS),
    ("cluster-timed-out-clients", cluster::TIMED_OUT_CLIENTS),
    ("cluster-invalid-requests", cluster::INVALID_REQUESTS),
    ("cluster-max-cycle-time", cluster::MAX_CYCLE_TIME),
    ("cluster-slow-cycles", cluster::SLOW_CYCLES),
    ("cluster-node-control", cluster::NODE_CONTROL_TOGGLE),
    ("cluster-max-snapshot-time", cluster::MAX_SNAPSHOT_TIME),
    ("cluster-slow-snapshots", cluster::SLOW_SNAPSHOTS),
    ("cluster-elections", cluster::ELECTIONS),
    ("cluster-term", cluster::LEADERSHIP_TERM),
    ("cluster-session", cluster::SESSION),
    ("service-errors", cluster::SERVICE_ERRORS),
    ("service-max-cycle-time", cluster::SERVICE_MAX_CYCLE_TIME),
    ("service-slow-cycles", cluster::SERVICE_SLOW_CYCLES),
    ("service-max-snapshot-time", cluster::SERVICE_MAX_SNAPSHOT_TIME),
    ("service-slow-snapshots", cluster::SERVICE_SLOW_SNAPSHOTS),
];

/// Returns all types with a name.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, i32)> {
    let positions = PositionKind::ALL.iter().map(|kind| (kind.name(), kind.type_id()));
    std::iter::once(("system", SYSTEM)).chain(positions).chain(CLUSTER)
}

/// Returns the name of a type, if it has one.
pub(crate) fn name(type_id: i32) -> Option<&'static str> {
    all().find(|(_, id)| *id == type_id).map(|(name, _)| name)
}
