//! `rusteron clients`: the clients of the driver, their resources, and the slow ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use rusteron_client::{
    CncFile, CounterSnapshot, CountersReader, PositionKind, StreamPosition, StreamPositions,
};
use rusteron_core::program::Failure;
use serde::Serialize;

use crate::client_heartbeat::{self, ClientHeartbeat};
use crate::counter_types::{RECEIVE_CHANNEL_STATUS, SHARED_PUBLICATION, SUBSCRIPTION};
use crate::driver_dir::{DriverDir, DriverStatus};
use crate::options::WatchOptions;
use crate::report::Report;
use crate::shared_streams::{SharedStreams, overrun_bytes};
use crate::unconnected::{self, Unconnected};
use crate::{text, watch};

#[derive(Debug, Serialize)]
struct Clients {
    driver: DriverStatus,
    clients: Vec<Client>,
    /// The publications whose client has gone. The driver keeps them until they have lingered, or for a client that it
    /// does not name.
    publications_without_client: Vec<Publication>,
}

#[derive(Debug, Serialize)]
struct Client {
    client_id: i64,
    client_name: Option<String>,
    aeron_version: Option<String>,
    heartbeat_age_ms: u64,
    /// True if one of the subscriptions limits its publisher, or is overrun.
    is_slow: bool,
    publications: Vec<Publication>,
    subscriptions: Vec<Subscription>,
    unconnected_subscriptions: Vec<Unconnected>,
    counters: Vec<Counter>,
}

#[derive(Debug, Clone, Serialize)]
struct Publication {
    #[serde(flatten)]
    stream: Stream,
    /// The other clients that have added the same publication.
    shared_with: Vec<i64>,
    position: i64,
    limit: Option<i64>,
    /// True if the publisher is connected and may not write on at the moment.
    is_back_pressured: bool,
}

/// A subscription to one publisher: an image.
#[derive(Debug, Serialize)]
struct Subscription {
    #[serde(flatten)]
    stream: Stream,
    position: i64,
    /// The bytes that have come to the driver and were not read. `None` without a source on this
    /// driver.
    backlog: Option<i64>,
    limits_publisher: bool,
    /// True while the driver drops what comes, because the subscription is too far behind.
    is_overrun: bool,
    /// The bytes that the whole subscription has lost so. `None` with another driver than
    /// rusteron's.
    overrun_bytes: Option<i64>,
}

#[derive(Debug, Clone, Serialize)]
struct Stream {
    channel: String,
    stream_id: i32,
    session_id: i32,
    registration_id: i64,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Counter(#[serde(with = "Snapshot")] CounterSnapshot);

/// The JSON of a counter.
#[derive(Serialize)]
#[serde(remote = "CounterSnapshot")]
struct Snapshot {
    id: i32,
    type_id: i32,
    value: i64,
    label: String,
}

pub(crate) fn run(dir: &DriverDir, options: &WatchOptions) -> Result<(), Failure> {
    dir.open()?;
    watch::run(options, || {
        // Opens the file for each report: a restarted driver has another file.
        let cnc = dir.find()?;
        let driver = dir.status(cnc.as_ref());
        Ok(match &cnc {
            Some(cnc) => read(dir, cnc, driver),
            None => Clients { driver, clients: vec![], publications_without_client: vec![] },
        })
    })
}

fn read(dir: &DriverDir, cnc: &CncFile, driver: DriverStatus) -> Clients {
    let counters = cnc.counters();
    let heartbeats = client_heartbeat::heartbeats(&counters);
    let streams = counters.stream_positions();
    let unconnected = unconnected::find(dir, &counters, &streams, &heartbeats);
    let mut clients: BTreeMap<i64, Client> =
        heartbeats.into_iter().map(|(id, heartbeat)| (id, Client::new(id, heartbeat))).collect();
    let mut publications_without_client = Vec::new();
    let shared = SharedStreams::new(&dir.path, &counters, &streams);
    let owners = publication_owners(&counters);
    let overruns = overrun_bytes(&counters);
    for (part, position) in shared.positions() {
        match position.kind {
            PositionKind::PublisherPosition => {
                let owners = owners.get(&position.registration_id).into_iter().flatten().copied();
                let owners = std::iter::once(position.owner_id).chain(owners);
                let owners: BTreeSet<_> = owners.filter(|id| clients.contains_key(id)).collect();
                let publication = Publication::new(&shared, part, position);
                for id in &owners {
                    let shared_with = owners.iter().copied().filter(|other| other != id).collect();
                    let publication = Publication { shared_with, ..publication.clone() };
                    if let Some(client) = clients.get_mut(id) {
                        client.publications.push(publication);
                    }
                }
                if owners.is_empty() {
                    publications_without_client.push(publication);
                }
            }
            PositionKind::SubscriberPosition => {
                if let Some(client) = clients.get_mut(&position.owner_id) {
                    client.add_subscription(&shared, part, position, &overruns);
                }
            }
            _ => {}
        }
    }
    for subscription in unconnected {
        let client = subscription.client_id.and_then(|id| clients.get_mut(&id));
        if let Some(client) = client {
            client.unconnected_subscriptions.push(subscription);
        }
    }
    for counter in counters.iter().filter(is_added_by_client) {
        if let Some(client) = clients.get_mut(&counter.owner_id) {
            client.counters.push(Counter(counter));
        }
    }
    Clients { driver, clients: clients.into_values().collect(), publications_without_client }
}

/// Returns the clients that have added a publication which existed, by the publication's registration id.
fn publication_owners(counters: &CountersReader<'_>) -> BTreeMap<i64, Vec<i64>> {
    let mut owners = BTreeMap::<_, Vec<_>>::new();
    for counter in counters.iter().filter(|counter| counter.type_id == SHARED_PUBLICATION) {
        owners.entry(counter.reference_id).or_default().push(counter.owner_id);
    }
    owners
}

/// Returns whether a client has added the counter. The driver adds the counters of positions and heartbeats.
fn is_added_by_client(counter: &CounterSnapshot) -> bool {
    ![client_heartbeat::TYPE_ID, SUBSCRIPTION, SHARED_PUBLICATION].contains(&counter.type_id)
        && !DRIVER_TYPE_IDS.contains(&counter.type_id)
        && PositionKind::ALL.iter().all(|kind| kind.type_id() != counter.type_id)
}

impl Client {
    fn new(client_id: i64, heartbeat: ClientHeartbeat) -> Self {
        Self {
            client_id,
            heartbeat_age_ms: text::millis(heartbeat.age()),
            client_name: heartbeat.name,
            aeron_version: heartbeat.version,
            is_slow: false,
            publications: Vec::new(),
            subscriptions: Vec::new(),
            unconnected_subscriptions: Vec::new(),
            counters: Vec::new(),
        }
    }

    fn add_subscription(
        &mut self,
        shared: &SharedStreams<'_>,
        part: &StreamPositions,
        position: &StreamPosition,
        overruns: &HashMap<i64, i64>,
    ) {
        let limits_publisher = shared.limits_publisher(position);
        let is_overrun = shared.is_overrun(position);
        self.is_slow |= limits_publisher || is_overrun;
        self.subscriptions.push(Subscription {
            stream: Stream::new(part, position),
            position: position.value,
            backlog: shared.backlog(position),
            limits_publisher,
            is_overrun,
            overrun_bytes: overruns.get(&position.registration_id).copied(),
        });
    }

    /// Returns the subscription with the most unread bytes.
    fn furthest_behind(&self) -> Option<&Subscription> {
        self.subscriptions.iter().max_by_key(|subscription| subscription.backlog)
    }

    /// Returns the id and, if there is one, the name.
    fn title(&self) -> String {
        match &self.client_name {
            Some(name) => format!("client {} {}", self.client_id, text::printable(name)),
            None => format!("client {}", self.client_id),
        }
    }

    fn lines(&self) -> Vec<String> {
        let age = text::duration(Duration::from_millis(self.heartbeat_age_ms));
        let version = self.aeron_version.as_deref().map(text::printable);
        let version = version.map_or(String::new(), |version| format!(", Aeron {version}"));
        let slow = if self.is_slow { ", slow" } else { "" };
        let mut lines = vec![format!("{}: heartbeat {age} ago{version}{slow}", self.title())];
        lines.extend(self.publications.iter().map(Publication::line));
        lines.extend(self.subscriptions.iter().map(Subscription::line));
        lines.extend(self.unconnected_subscriptions.iter().map(Unconnected::line));
        for Counter(CounterSnapshot { id, value, label, .. }) in &self.counters {
            let (value, label) = (text::grouped(*value), text::printable(label));
            lines.push(format!("  counter      {id}: {value} - {label}"));
        }
        lines
    }
}

impl Subscription {
    /// Returns what the subscription does to others, or what it misses.
    fn state(&self) -> Option<&'static str> {
        match self {
            Self { limits_publisher: true, .. } => Some("limits its publisher"),
            Self { is_overrun: true, .. } => Some("is overrun"),
            _ => None,
        }
    }

    fn line(&self) -> String {
        let (stream, position) = (self.stream.text(), text::grouped(self.position));
        let mut line = format!("  subscription {stream} at {position}");
        if let Some(bytes) = self.backlog {
            line.push_str(&format!("  not read {}", text::grouped(bytes)));
        }
        if let Some(state) = self.state() {
            line.push_str(&format!("  {state}"));
        }
        if let Some(bytes @ 1..) = self.overrun_bytes {
            line.push_str(&format!("  lost {} by overruns", text::grouped(bytes)));
        }
        line
    }
}

impl Publication {
    fn new(shared: &SharedStreams<'_>, part: &StreamPositions, position: &StreamPosition) -> Self {
        Self {
            stream: Stream::new(part, position),
            shared_with: Vec::new(),
            position: position.value,
            limit: part.publisher_limit(),
            is_back_pressured: shared.is_back_pressured(position),
        }
    }

    fn line(&self) -> String {
        let (stream, position) = (self.stream.text(), text::grouped(self.position));
        let state = if self.is_back_pressured { "  at its limit" } else { "" };
        let others: Vec<_> = self.shared_with.iter().map(i64::to_string).collect();
        let others = match others.is_empty() {
            true => String::new(),
            false => format!("  shared with client {}", others.join(", ")),
        };
        format!("  publication  {stream} at {position}{state}{others}")
    }
}

impl Stream {
    fn new(part: &StreamPositions, position: &StreamPosition) -> Self {
        Self {
            channel: part.channel.clone(),
            stream_id: part.stream_id,
            session_id: part.session_id,
            registration_id: position.registration_id,
        }
    }

    fn text(&self) -> String {
        let Self { stream_id, session_id, registration_id, .. } = self;
        let channel = text::printable(&self.channel);
        format!("{registration_id} {channel} stream {stream_id} session {session_id}")
    }
}

impl Report for Clients {
    fn header(&self) -> Vec<String> {
        let mut summary = format!("{} clients", self.clients.len());
        let furthest =
            self.clients.iter().filter_map(|client| Some((client, client.furthest_behind()?)));
        let furthest = furthest.max_by_key(|(_, subscription)| subscription.backlog);
        if let Some((client, subscription @ Subscription { backlog: Some(bytes @ 1..), .. })) =
            furthest
        {
            let state = subscription.state().map(|state| format!(", and {state}"));
            let state = state.unwrap_or_default();
            let (title, bytes) = (client.title(), text::grouped(*bytes));
            summary
                .push_str(&format!("; {title} is furthest behind: {bytes} bytes not read{state}"));
        }
        vec![self.driver.line(), summary]
    }

    fn body(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.clients.iter().flat_map(Client::lines).collect();
        if !self.publications_without_client.is_empty() {
            let title = "the client has gone; the driver keeps the publication until it has lingered, or for a client \
                         that it does not name:";
            lines.push(title.to_owned());
            lines.extend(self.publications_without_client.iter().map(Publication::line));
        }
        lines
    }
}

/// Types of counters that the driver adds for itself: status and addresses of channels, name resolver, flow
/// control, destinations, and rusteron's counters of segmentation offload. Drivers in C leave their owner 0, which
/// can also be the id of a client.
pub(crate) const DRIVER_TYPE_IDS: [i32; 9] =
    [6, RECEIVE_CHANNEL_STATUS, 14, 15, 16, 17, 18, 21, 54_001];
