//! The clients of a driver, by the counters of their heartbeats.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use rusteron_client::{CounterSnapshot, CountersReader};
use rusteron_core::cnc::epoch;

/// The type of the counters of heartbeats: `AERON_COUNTER_CLIENT_HEARTBEAT_TIMESTAMP_TYPE_ID`.
pub(crate) const TYPE_ID: i32 = 11;

/// The counter of a client's heartbeat. The client adds its name and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientHeartbeat {
    /// `None` if the client has no name.
    pub(crate) name: Option<String>,
    /// The client's version of Aeron. `None` if the client has not written it yet.
    pub(crate) version: Option<String>,
    /// The time of the last heartbeat, in milliseconds since 1970.
    pub(crate) time_ms: i64,
}

/// Returns the heartbeats of all clients, by client id.
pub(crate) fn heartbeats(counters: &CountersReader<'_>) -> BTreeMap<i64, ClientHeartbeat> {
    counters
        .iter()
        .filter(|counter| counter.type_id == TYPE_ID)
        .map(|counter| (counter.registration_id, ClientHeartbeat::new(&counter)))
        .collect()
}

/// Returns a client's name, if the client exists and has a name.
pub(crate) fn name_of(clients: &BTreeMap<i64, ClientHeartbeat>, client_id: i64) -> Option<&str> {
    clients.get(&client_id)?.name.as_deref()
}

impl ClientHeartbeat {
    /// The label is `client-heartbeat: id=5 name=NAME version=VERSION commit=COMMIT`. The client adds
    /// all that follows the id.
    fn new(counter: &CounterSnapshot) -> Self {
        let extension = counter.label.split_once(" name=").map(|(_, extension)| extension);
        // A name may contain anything.
        let (name, version) = extension.and_then(|text| text.rsplit_once(" version=")).unzip();
        let version = version.and_then(|text| text.split(' ').next());
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Self { name: name.and_then(text), version: version.and_then(text), time_ms: counter.value }
    }

    /// Returns the time since the last heartbeat. Zero if the clock was set back.
    pub(crate) fn age(&self) -> Duration {
        let age = epoch::millis(SystemTime::now()).saturating_sub(self.time_ms);
        Duration::from_millis(u64::try_from(age).unwrap_or(0))
    }
}
