//! Names of the types of counters.

use rusteron_client::PositionKind;

/// The driver's own counters of all streams together.
const SYSTEM: i32 = 0;
/// The status of a channel that subscriptions receive from.
pub(crate) const RECEIVE_CHANNEL_STATUS: i32 = 7;
/// The position of an archive's recording.
pub(crate) const RECORDING_POSITION: i32 = 100;
/// Rusteron's driver: a subscription, with an image or without.
pub(crate) const SUBSCRIPTION: i32 = 54_002;
/// Rusteron's driver: a further client of a shared publication, whose registration id is the reference.
pub(crate) const SHARED_PUBLICATION: i32 = 54_003;

/// The counters of archives, as Java's `AeronCounters` numbers them.
const ARCHIVE: [(&str, i32); 14] = [
    ("archive-recording-pos", RECORDING_POSITION),
    ("archive-errors", 101),
    ("archive-control-sessions", 102),
    ("archive-max-cycle-time", 103),
    ("archive-slow-cycles", 104),
    ("archive-max-write-time", 105),
    ("archive-written-bytes", 106),
    ("archive-write-time", 107),
    ("archive-max-read-time", 108),
    ("archive-read-bytes", 109),
    ("archive-read-time", 110),
    ("archive-recording-sessions", 111),
    ("archive-replay-sessions", 112),
    ("archive-control-session", 113),
];

/// The counters of Aeron Cluster that this program reads or names, as Java's `AeronCounters` numbers them.
const CLUSTER: [(&str, i32); 23] = [
    ("cluster-state", 200),
    ("cluster-role", 201),
    ("cluster-control", 202),
    ("cluster-commit-pos", 203),
    ("cluster-recovery", 204),
    ("cluster-snapshots", 205),
    ("cluster-election-state", 207),
    ("cluster-errors", 212),
    ("cluster-timed-out-clients", 213),
    ("cluster-invalid-requests", 214),
    ("cluster-max-cycle-time", 216),
    ("cluster-slow-cycles", 217),
    ("cluster-node-control", 233),
    ("cluster-max-snapshot-time", 234),
    ("cluster-slow-snapshots", 235),
    ("cluster-elections", 238),
    ("cluster-term", 239),
    ("cluster-session", 241),
    ("service-errors", 215),
    ("service-max-cycle-time", 218),
    ("service-slow-cycles", 219),
    ("service-max-snapshot-time", 236),
    ("service-slow-snapshots", 237),
];

/// Returns all types with a name.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, i32)> {
    let positions = PositionKind::ALL.iter().map(|kind| (kind.name(), kind.type_id()));
    let rusteron = [("subscription", SUBSCRIPTION), ("pub-shared", SHARED_PUBLICATION)];
    let system = std::iter::once(("system", SYSTEM));
    system.chain(positions).chain(rusteron).chain(ARCHIVE).chain(CLUSTER)
}

/// Returns the name of a type, if it has one.
pub(crate) fn name(type_id: i32) -> Option<&'static str> {
    all().find(|(_, id)| *id == type_id).map(|(name, _)| name)
}
