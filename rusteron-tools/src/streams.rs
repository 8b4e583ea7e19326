//! `rusteron streams`: positions and backlogs of publications and subscriptions.

use std::collections::BTreeMap;
use std::time::Instant;

use rusteron_client::{StreamPosition, StreamPositions};
use rusteron_core::program::Failure;
use serde::Serialize;

use crate::client_heartbeat::{self, ClientHeartbeat};
use crate::driver_dir::{DriverDir, DriverStatus};
use crate::options::StreamsOptions;
use crate::report::Report;
use crate::shared_streams::SharedStreams;
use crate::text;
use crate::unconnected::{self, Unconnected};
use crate::watch;
use crate::watch::Rates;

#[derive(Debug, Serialize)]
struct Streams {
    driver: DriverStatus,
    streams: Vec<Stream>,
    unconnected: Vec<Unconnected>,
    #[serde(skip)]
    has_rates: bool,
}

#[derive(Debug, Serialize)]
struct Stream {
    /// As the publisher writes it, if the publication is on this driver.
    channel: String,
    stream_id: i32,
    session_id: i32,
    /// Bytes written and not sent. `None` without a sender, as with IPC.
    sender_backlog: Option<i64>,
    /// Bytes that the driver has and the slowest subscriber has not read. `None` without a subscriber.
    subscriber_backlog: Option<i64>,
    positions: Vec<Position>,
}

#[derive(Debug, Serialize)]
struct Position {
    kind: &'static str,
    /// As the owner of the publication or subscription writes it.
    channel: String,
    value: i64,
    /// `None` in the first report.
    rate_per_second: Option<f64>,
    counter_id: i32,
    registration_id: i64,
    /// The client that owns the publication, the subscription, or the image's first subscription.
    client_id: i64,
    client_name: Option<String>,
}

pub(crate) fn run(dir: &DriverDir, options: &StreamsOptions) -> Result<(), Failure> {
    dir.open()?;
    let is_selected = |stream_id: Option<i32>, channel: &str| {
        options.stream_id.is_none_or(|id| stream_id == Some(id))
            && options.channel.as_ref().is_none_or(|text| channel.contains(text))
    };
    let mut rates = Rates::default();
    watch::run(&options.watch, || {
        // Opens the file for each report: a restarted driver has another file.
        let cnc = dir.find()?;
        let now = Instant::now();
        let counters = cnc.as_ref().map(|cnc| cnc.counters());
        let clients = counters.as_ref().map(client_heartbeat::heartbeats).unwrap_or_default();
        let parts = counters.map_or(Vec::new(), |counters| counters.stream_positions());
        let mut groups = counters.map_or(Vec::new(), |counters| {
            SharedStreams::new(&dir.path, &counters, &parts).grouped()
        });
        groups.retain(|group| {
            group.iter().any(|(part, _)| is_selected(Some(part.stream_id), &part.channel))
        });
        let positions = groups.iter().flatten();
        let values = positions.map(|(_, p)| (p.counter_id, p.registration_id, p.value));
        let mut rates = rates.update(now, values).into_iter();
        let streams = groups.iter().map(|group| Stream::new(group, &clients, &mut rates));
        let mut unconnected = counters
            .map_or(Vec::new(), |counters| unconnected::find(dir, &counters, &parts, &clients));
        unconnected.retain(|one| is_selected(one.stream_id, &one.channel));
        Ok(Streams {
            driver: dir.status(cnc.as_ref()),
            streams: streams.collect(),
            unconnected,
            has_rates: options.watch.watch,
        })
    })
}

impl Stream {
    fn new(
        group: &[(&StreamPositions, &StreamPosition)],
        clients: &BTreeMap<i64, ClientHeartbeat>,
        rates: &mut impl Iterator<Item = Option<f64>>,
    ) -> Self {
        let mut stream = group[0].0.clone();
        stream.positions = group.iter().map(|(_, position)| (*position).clone()).collect();
        let (sender_backlog, subscriber_backlog) =
            (stream.sender_backlog(), stream.subscriber_backlog());
        let positions = group.iter().map(|(part, position)| Position {
            kind: position.kind.name(),
            channel: part.channel.clone(),
            value: position.value,
            rate_per_second: rates.next().flatten(),
            counter_id: position.counter_id,
            registration_id: position.registration_id,
            client_id: position.owner_id,
            client_name: client_heartbeat::name_of(clients, position.owner_id).map(str::to_owned),
        });
        Self {
            channel: stream.channel,
            stream_id: stream.stream_id,
            session_id: stream.session_id,
            sender_backlog,
            subscriber_backlog,
            positions: positions.collect(),
        }
    }

    fn lines(&self, has_rates: bool) -> Vec<String> {
        let Self { stream_id, session_id, .. } = self;
        let channel = text::printable(&self.channel);
        let mut lines = vec![format!("{channel} stream {stream_id} session {session_id}")];
        for position in &self.positions {
            let rate = text::rate(has_rates, position.rate_per_second);
            let (kind, value) = (position.kind, text::grouped(position.value));
            let Position { registration_id, client_id, .. } = position;
            let name = position.client_name.as_deref().map(text::printable);
            let name = name.map_or(String::new(), |name| format!(" {name}"));
            let spelling = (position.channel != self.channel)
                .then(|| format!("  {}", text::printable(&position.channel)));
            lines.push(format!(
                "  {kind:<18}{value:>26}{rate}  registration {registration_id}  client {client_id}{name}{}",
                spelling.unwrap_or_default()
            ));
        }
        let backlogs = [("not sent", self.sender_backlog), ("not read", self.subscriber_backlog)];
        for (name, backlog) in backlogs {
            if let Some(bytes) = backlog {
                lines.push(format!("  {name:<18}{:>26}", text::grouped(bytes)));
            }
        }
        lines
    }
}

impl Report for Streams {
    fn header(&self) -> Vec<String> {
        vec![self.driver.line()]
    }

    fn body(&self) -> Vec<String> {
        let streams = self.streams.iter().flat_map(|stream| stream.lines(self.has_rates));
        streams.chain(self.unconnected.iter().flat_map(Unconnected::lines)).collect()
    }
}
