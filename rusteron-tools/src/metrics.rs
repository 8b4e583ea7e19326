//! `rusteron stat --openmetrics`: the state of a driver as metrics.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use rusteron_client::{
    CncFile, CounterSnapshot, CountersReader, ErrorKind, LossReportEntry, PositionKind,
    StreamPosition, StreamPositions, SystemCounter,
};
use rusteron_core::files;
use rusteron_core::program::Failure;

use crate::client_heartbeat::{self, ClientHeartbeat};
use crate::clients;
use crate::counter_types::{RECORDING_POSITION, SHARED_PUBLICATION, SUBSCRIPTION};
use crate::driver_dir::{DriverDir, DriverState, DriverStatus};
use crate::exposition::{Kind, Labels, Metrics};
use crate::recording::Recording;
use crate::shared_streams::{SharedStreams, overrun_bytes};
use crate::text;
use crate::unconnected;

/// The clients by their ids.
type Clients = BTreeMap<i64, ClientHeartbeat>;

/// Sources of metrics.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) driver: DriverDir,
    /// The directory of an archive, whose recordings take space.
    pub(crate) archive_dir: Option<PathBuf>,
}

impl Sources {
    /// Returns the metrics, and the first failure to read some of them. Without a living driver, `aeron_up` is its only
    /// metric.
    pub(crate) fn read(&self) -> (Metrics, Result<(), Failure>) {
        let (mut metrics, mut outcome) = match driver_metrics(&self.driver) {
            Ok(metrics) => (metrics, Ok(())),
            Err(failure) => (up(false), Err(failure)),
        };
        if let Some(dir) = &self.archive_dir {
            match files::usable_space(dir) {
                Ok(space) => {
                    let labels = vec![("archive_dir", dir.to_string_lossy().into_owned())];
                    let help = "Space that is left on the file system of an archive's recordings";
                    let space = i64::try_from(space).unwrap_or(i64::MAX);
                    metrics.gauge("aeron_archive_disk_free_bytes", help, &labels, space);
                }
                Err(error) => outcome = outcome.and(Err(Failure::run(dir.display(), error))),
            }
        }
        (metrics, outcome)
    }
}

fn driver_metrics(dir: &DriverDir) -> Result<Metrics, Failure> {
    let cnc = dir.find()?;
    let status = dir.status(cnc.as_ref());
    let cnc = cnc.filter(|_| status.state == DriverState::Alive);
    let mut metrics = up(cnc.is_some());
    if let Some(cnc) = cnc {
        driver(&mut metrics, &cnc, &status);
        let clients = client_heartbeat::heartbeats(&cnc.counters());
        counters(&mut metrics, &cnc, &clients);
        streams(&mut metrics, dir, &cnc, &clients);
        losses(&mut metrics, loss_report(&cnc)?);
        errors(&mut metrics, &cnc);
    }
    Ok(metrics)
}

fn up(is_alive: bool) -> Metrics {
    let mut metrics = Metrics::default();
    metrics.gauge("aeron_up", "1 if the media driver is alive", &Labels::new(), is_alive.into());
    metrics
}

fn driver(metrics: &mut Metrics, cnc: &CncFile, status: &DriverStatus) {
    let Some(about) = &status.about else { return };
    let control_protocol = SystemCounter::ControlProtocolVersion.read(&cnc.counters());
    let labels = vec![
        ("dir", status.dir.clone()),
        ("version", about.aeron_version.clone().unwrap_or_default()),
        ("cnc_version", about.protocol_version.clone()),
        ("control_protocol", control_protocol.map_or(String::new(), text::semantic_version)),
        ("pid", about.pid.to_string()),
    ];
    metrics.gauge("aeron_driver_info", "Facts about the media driver", &labels, 1);
    let start = about.start_time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut seconds =
        |name: &str, help: &str, value| metrics.seconds(name, help, &Labels::new(), value);
    seconds(
        "aeron_driver_start_time_seconds",
        "Start of the driver since 1970",
        start.as_secs_f64(),
    );
    let age = about.heartbeat_age_ms.unwrap_or(0) as f64 / 1000.0;
    seconds("aeron_driver_heartbeat_age_seconds", "Time since the driver's last heartbeat", age);
}

/// Adds the counters that are not positions of streams.
fn counters(metrics: &mut Metrics, cnc: &CncFile, clients: &Clients) {
    for (id, client) in clients {
        let mut labels = client_labels(clients, *id);
        let age = client.age().as_secs_f64();
        let help = "Time since the client's last heartbeat";
        metrics.seconds("aeron_client_heartbeat_age_seconds", help, &labels, age);
        labels.push(("version", client.version.clone().unwrap_or_default()));
        metrics.gauge("aeron_client_info", "Facts about a client", &labels, 1);
    }
    for counter in cnc.counters().iter() {
        const SYSTEM: i32 = 0;
        match counter.type_id {
            SYSTEM => system_counter(metrics, &counter),
            client_heartbeat::TYPE_ID | SHARED_PUBLICATION | SUBSCRIPTION | RECORDING_POSITION => {}
            id if PositionKind::ALL.iter().any(|kind| kind.type_id() == id) => {}
            _ => other_counter(metrics, clients, &counter),
        }
    }
}

fn system_counter(metrics: &mut Metrics, counter: &CounterSnapshot) {
    let Some(system) = SystemCounter::from_id(counter.id) else { return };
    if let Some((name, kind)) = system_metric(system) {
        let help = system.to_string();
        let help = help.trim_end_matches(" in ns");
        add_counter(metrics, name, help, kind, &Labels::new(), counter.value);
    }
}

/// Adds a sample of a counter, whose value is nanoseconds if the metric's are seconds.
fn add_counter(
    metrics: &mut Metrics,
    name: &str,
    help: &str,
    kind: Kind,
    labels: &Labels,
    value: i64,
) {
    const NANOS_PER_SECOND: f64 = 1e9;
    if name.ends_with("_seconds") {
        metrics.add_seconds(name, help, kind, labels, value as f64 / NANOS_PER_SECOND);
    } else {
        metrics.add(name, help, kind, labels, value);
    }
}

/// Returns the metric of a system counter. `None` if the counter counts nothing.
fn system_metric(counter: SystemCounter) -> Option<(&'static str, Kind)> {
    use Kind::{Counter, Gauge};
    use SystemCounter as C;
    Some(match counter {
        C::BytesSent => ("aeron_sent_bytes", Counter),
        C::BytesReceived => ("aeron_received_bytes", Counter),
        C::ReceiverProxyFails => ("aeron_receiver_proxy_fails", Counter),
        C::SenderProxyFails => ("aeron_sender_proxy_fails", Counter),
        C::ConductorProxyFails => ("aeron_conductor_proxy_fails", Counter),
        C::NakMessagesSent => ("aeron_naks_sent", Counter),
        C::NakMessagesReceived => ("aeron_naks_received", Counter),
        C::StatusMessagesSent => ("aeron_status_messages_sent", Counter),
        C::StatusMessagesReceived => ("aeron_status_messages_received", Counter),
        C::HeartbeatsSent => ("aeron_heartbeats_sent", Counter),
        C::HeartbeatsReceived => ("aeron_heartbeats_received", Counter),
        C::RetransmitsSent => ("aeron_retransmits_sent", Counter),
        C::FlowControlUnderRuns => ("aeron_flow_control_under_runs", Counter),
        C::FlowControlOverRuns => ("aeron_flow_control_over_runs", Counter),
        C::InvalidPackets => ("aeron_invalid_packets", Counter),
        C::Errors => ("aeron_errors", Counter),
        C::ShortSends => ("aeron_short_sends", Counter),
        C::FreeFails => ("aeron_free_fails", Counter),
        C::SenderFlowControlLimits => ("aeron_sender_flow_control_limits", Counter),
        C::UnblockedPublications => ("aeron_unblocked_publications", Counter),
        C::UnblockedCommands => ("aeron_unblocked_commands", Counter),
        C::PossibleTtlAsymmetry => ("aeron_possible_ttl_asymmetry", Counter),
        C::LossGapFills => ("aeron_loss_gap_fills", Counter),
        C::ClientTimeouts => ("aeron_client_timeouts", Counter),
        C::ResolutionChanges => ("aeron_resolution_changes", Counter),
        C::ConductorMaxCycleTime => ("aeron_conductor_max_cycle_time_seconds", Gauge),
        C::ConductorCycleTimeThresholdExceeded => ("aeron_conductor_cycle_time_exceeded", Counter),
        C::SenderMaxCycleTime => ("aeron_sender_max_cycle_time_seconds", Gauge),
        C::SenderCycleTimeThresholdExceeded => ("aeron_sender_cycle_time_exceeded", Counter),
        C::ReceiverMaxCycleTime => ("aeron_receiver_max_cycle_time_seconds", Gauge),
        C::ReceiverCycleTimeThresholdExceeded => ("aeron_receiver_cycle_time_exceeded", Counter),
        C::NameResolverMaxTime => ("aeron_name_resolver_max_time_seconds", Gauge),
        C::NameResolverTimeThresholdExceeded => ("aeron_name_resolver_time_exceeded", Counter),
        C::BytesCurrentlyMapped => ("aeron_mapped_bytes", Gauge),
        C::RetransmittedBytes => ("aeron_retransmitted_bytes", Counter),
        C::RetransmitOverflow => ("aeron_retransmit_overflows", Counter),
        C::ErrorFramesReceived => ("aeron_error_frames_received", Counter),
        C::ErrorFramesSent => ("aeron_error_frames_sent", Counter),
        C::PublicationsRevoked => ("aeron_publications_revoked", Counter),
        C::PublicationImagesRevoked => ("aeron_publication_images_revoked", Counter),
        C::ImagesRejected => ("aeron_images_rejected", Counter),
        C::StatusMessagesRejected => ("aeron_status_messages_rejected", Counter),
        C::NativeResourceAgentProxyFails => ("aeron_native_resource_agent_proxy_fails", Counter),
        // `aeron_driver_info` has the versions, and the idle strategy is a setting.
        _ => return None,
    })
}

/// Types of counters with a metric of their own: the type's id in Aeron, the metric, and its help.
const COUNTER_TYPES: [(i32, &str, Kind, &str); 18] = [
    (6, "aeron_send_channel_status", Kind::Gauge, "1 active, 0 starting, 2 closing, -1 failed"),
    (7, "aeron_receive_channel_status", Kind::Gauge, "1 active, 0 starting, 2 closing, -1 failed"),
    (15, "aeron_name_resolver_neighbors", Kind::Gauge, "Drivers that the name resolver knows"),
    (16, "aeron_name_resolver_cache_entries", Kind::Gauge, "Names in the name resolver's cache"),
    (17, "aeron_flow_control_receivers", Kind::Gauge, "Receivers that flow control waits for"),
    (18, "aeron_channel_destinations", Kind::Gauge, "Destinations of a channel"),
    (101, "aeron_archive_errors", Kind::Counter, "Errors of an archive"),
    (102, "aeron_archive_control_sessions", Kind::Gauge, "Control sessions of an archive"),
    (
        103,
        "aeron_archive_max_cycle_time_seconds",
        Kind::Gauge,
        "Longest duty cycle of an agent of an archive",
    ),
    (
        104,
        "aeron_archive_cycle_time_exceeded",
        Kind::Counter,
        "Duty cycles of an archive's agent beyond its threshold",
    ),
    (
        105,
        "aeron_archive_max_write_time_seconds",
        Kind::Gauge,
        "Longest write of an archive's recorder",
    ),
    (
        106,
        "aeron_archive_written_bytes",
        Kind::Counter,
        "Bytes that an archive's recorder has written",
    ),
    (
        107,
        "aeron_archive_write_time_seconds",
        Kind::Counter,
        "Time that an archive's recorder has spent in writes",
    ),
    (
        108,
        "aeron_archive_max_read_time_seconds",
        Kind::Gauge,
        "Longest read of an archive's replayer",
    ),
    (109, "aeron_archive_read_bytes", Kind::Counter, "Bytes that an archive's replayer has read"),
    (
        110,
        "aeron_archive_read_time_seconds",
        Kind::Counter,
        "Time that an archive's replayer has spent in reads",
    ),
    (111, "aeron_archive_recording_sessions", Kind::Gauge, "Recordings that are active"),
    (112, "aeron_archive_replay_sessions", Kind::Gauge, "Replays that are active"),
];

fn other_counter(metrics: &mut Metrics, clients: &Clients, counter: &CounterSnapshot) {
    let is_driver = clients::DRIVER_TYPE_IDS.contains(&counter.type_id);
    let mut labels =
        if is_driver { Labels::new() } else { client_labels(clients, counter.owner_id) };
    labels.push(("registration_id", counter.registration_id.to_string()));
    labels.push(("label", counter.label.clone()));
    match COUNTER_TYPES.iter().find(|(id, ..)| *id == counter.type_id) {
        Some((_, name, kind, help)) => {
            add_counter(metrics, name, help, *kind, &labels, counter.value);
        }
        None => {
            labels.insert(0, ("type_id", counter.type_id.to_string()));
            let help = "Counter of a type without a metric of its own";
            metrics.gauge("aeron_other_value", help, &labels, counter.value);
        }
    }
}

fn streams(metrics: &mut Metrics, dir: &DriverDir, cnc: &CncFile, clients: &Clients) {
    let counters = cnc.counters();
    let streams = counters.stream_positions();
    subscriptions(metrics, &counters, &streams, clients);
    let shared = SharedStreams::new(&dir.path, &counters, &streams);
    for (part, position) in shared.positions() {
        let labels = position_labels(clients, part, position);
        let (name, kind, help) = position_metric(position.kind);
        metrics.add(name, help, kind, &labels, position.value);
        if let Some(backlog) = shared.backlog(position) {
            let help = "Bytes that have come to the driver and that the subscriber has not read";
            metrics.gauge("aeron_subscriber_backlog_bytes", help, &labels, backlog);
            let help = "1 if the subscriber keeps its publisher at the limit";
            let limits = i64::from(shared.limits_publisher(position));
            metrics.gauge("aeron_subscriber_limits_publisher", help, &labels, limits);
            let help = "1 while the driver drops what comes: the subscriber is too far behind";
            let is_overrun = i64::from(shared.is_overrun(position));
            metrics.gauge("aeron_subscriber_overrun", help, &labels, is_overrun);
        }
        if position.kind == PositionKind::PublisherPosition {
            let help = "1 if the publisher is connected and at its limit";
            let is_limited = i64::from(shared.is_back_pressured(position));
            metrics.gauge("aeron_publisher_back_pressured", help, &labels, is_limited);
            if let Some(backlog) = part.sender_backlog() {
                let help = "Bytes that the publisher has written and the sender has not sent";
                metrics.gauge("aeron_sender_backlog_bytes", help, &labels, backlog);
            }
        }
    }
    recordings(metrics, &counters, &shared, clients);
}

/// Adds the recordings that are active.
fn recordings(
    metrics: &mut Metrics,
    counters: &CountersReader<'_>,
    shared: &SharedStreams<'_>,
    clients: &Clients,
) {
    for counter in counters.iter().filter(|counter| counter.type_id == RECORDING_POSITION) {
        let recording = Recording::of(&counter.key, &counter.label);
        let source = recording.stream_id.and_then(|stream_id| {
            shared.source_position(counter.owner_id, recording.session_id, stream_id)
        });
        let mut labels = client_labels(clients, counter.owner_id);
        labels.extend(recording.labels());
        let help = "Position up to which an archive has recorded a stream";
        metrics.counter("aeron_archive_recording_position_bytes", help, &labels, counter.value);
        if let Some(source) = source {
            let help =
                "Bytes that were published, or received from another host, and are not recorded";
            let lag = source.saturating_sub(counter.value).max(0);
            metrics.gauge("aeron_archive_recording_lag_bytes", help, &labels, lag);
        }
    }
}

/// Adds the number of images of each subscription, which only rusteron's driver tells.
fn subscriptions(
    metrics: &mut Metrics,
    counters: &CountersReader<'_>,
    streams: &[StreamPositions],
    clients: &Clients,
) {
    let mut images = HashMap::<_, i64>::new();
    for position in streams.iter().flat_map(|stream| stream.of(PositionKind::SubscriberPosition)) {
        *images.entry(position.registration_id).or_default() += 1;
    }
    let overruns = overrun_bytes(counters);
    for subscription in unconnected::subscriptions(counters) {
        let id = subscription.registration_id;
        let mut labels = client_labels(clients, subscription.client_id.unwrap_or(-1));
        labels.push(("registration_id", id.to_string()));
        labels.push(("stream_id", subscription.stream_id.unwrap_or_default().to_string()));
        labels.push(("channel", subscription.channel));
        let count = images.get(&id).copied().unwrap_or(0);
        metrics.gauge(
            "aeron_subscription_images",
            "Publishers that a subscription receives from",
            &labels,
            count,
        );
        let help = "Bytes that a subscription has lost because it was too far behind";
        let bytes = overruns.get(&id).copied().unwrap_or(0);
        metrics.counter("aeron_subscription_overrun_bytes", help, &labels, bytes);
    }
}

/// Returns the name, kind and help of a position's metric.
fn position_metric(kind: PositionKind) -> (&'static str, Kind, &'static str) {
    use Kind::{Counter, Gauge};
    use PositionKind as P;
    match kind {
        P::PublisherLimit => {
            ("aeron_publisher_limit_bytes", Gauge, "Position up to which a publisher may write")
        }
        P::PublisherPosition => (
            "aeron_publisher_position_bytes",
            Counter,
            "Position up to which a publisher has written",
        ),
        P::SenderPosition => {
            ("aeron_sender_position_bytes", Counter, "Position up to which the sender has sent")
        }
        P::SenderLimit => {
            ("aeron_sender_limit_bytes", Gauge, "Position up to which the sender may send")
        }
        P::SenderBackPressureEvents => {
            ("aeron_sender_back_pressure_events", Counter, "Stops of the sender by flow control")
        }
        P::SenderNaksReceived => {
            ("aeron_sender_naks_received", Counter, "NAKs received for a publication")
        }
        P::ReceiverHighWaterMark => (
            "aeron_receiver_high_water_mark_bytes",
            Counter,
            "Highest position received, with or without gaps",
        ),
        P::ReceiverOverrun => (
            "aeron_receiver_overrun_position_bytes",
            Counter,
            "Position of the last frame that was dropped for subscribers too far behind",
        ),
        P::ReceiverPosition => (
            "aeron_receiver_position_bytes",
            Counter,
            "Position up to which everything was received",
        ),
        P::ReceiverNaksSent => ("aeron_receiver_naks_sent", Counter, "NAKs sent for an image"),
        P::SubscriberPosition => (
            "aeron_subscriber_position_bytes",
            Counter,
            "Position up to which a subscriber has read",
        ),
        _ => ("aeron_position", Gauge, "Position of a kind that this program does not know"),
    }
}

/// Returns the driver's loss report. The file is absent for a moment when a driver starts.
fn loss_report(cnc: &CncFile) -> Result<Vec<LossReportEntry>, Failure> {
    match cnc.loss_report() {
        Err(error) if error.kind() == ErrorKind::Io(io::ErrorKind::NotFound) => Ok(Vec::new()),
        report => Ok(report?),
    }
}

fn losses(metrics: &mut Metrics, losses: Vec<LossReportEntry>) {
    // A stream that ended and came back has another entry.
    let mut totals = BTreeMap::<_, (i64, i64)>::new();
    for loss in losses {
        let key = (loss.session_id, loss.stream_id, loss.channel, loss.source);
        let total = totals.entry(key).or_default();
        total.0 = total.0.saturating_add(loss.total_bytes_lost);
        total.1 = total.1.saturating_add(loss.observation_count);
    }
    for ((session_id, stream_id, channel, source), (bytes, gaps)) in totals {
        let labels = vec![
            ("session_id", session_id.to_string()),
            ("stream_id", stream_id.to_string()),
            ("channel", channel),
            ("source", source),
        ];
        metrics.counter("aeron_lost_bytes", "Bytes that were missing at first", &labels, bytes);
        metrics.counter("aeron_loss_gaps", "Gaps that were observed", &labels, gaps);
    }
}

fn errors(metrics: &mut Metrics, cnc: &CncFile) {
    let errors = cnc.errors();
    let observations = errors.iter().map(|error| i64::from(error.observation_count)).sum();
    let last = errors.iter().map(|error| error.last_observation).max().unwrap_or(UNIX_EPOCH);
    let last = last.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let distinct = i64::try_from(errors.len()).unwrap_or(i64::MAX);
    let labels = Labels::new();
    metrics.gauge("aeron_error_log_entries", "Distinct errors in the error log", &labels, distinct);
    let help = "Observations of errors in the error log";
    metrics.counter("aeron_error_log_observations", help, &labels, observations);
    let help = "Time of the last logged error since 1970, or 0";
    metrics.seconds("aeron_error_log_last_timestamp_seconds", help, &labels, last);
}

/// Returns the labels of a client, or none for the driver's own resources.
fn client_labels(clients: &Clients, client_id: i64) -> Labels {
    // Drivers in C also write 0 for no client.
    if client_id < 0 || client_id == 0 && !clients.contains_key(&0) {
        return Labels::new();
    }
    let name = client_heartbeat::name_of(clients, client_id).unwrap_or_default();
    vec![("client_id", client_id.to_string()), ("client_name", name.to_owned())]
}

fn position_labels(clients: &Clients, part: &StreamPositions, position: &StreamPosition) -> Labels {
    let mut labels = client_labels(clients, position.owner_id);
    labels.push(("registration_id", position.registration_id.to_string()));
    labels.push(("session_id", part.session_id.to_string()));
    labels.push(("stream_id", part.stream_id.to_string()));
    labels.push(("channel", part.channel.clone()));
    labels
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_system_counter_has_its_metric() {
        let without = [
            SystemCounter::ControllableIdleStrategy,
            SystemCounter::AeronVersion,
            SystemCounter::ControlProtocolVersion,
        ];
        let mut names = HashSet::new();
        for counter in SystemCounter::ALL {
            match system_metric(*counter) {
                Some((name, _)) => assert!(names.insert(name), "{name}"),
                None => assert!(without.contains(counter), "{counter}"),
            }
        }
    }

    #[test]
    fn each_position_has_its_metric() {
        let names: HashSet<_> =
            PositionKind::ALL.iter().map(|kind| position_metric(*kind).0).collect();
        assert_eq!(names.len(), PositionKind::ALL.len());
        assert!(!names.contains("aeron_position"));
    }
}
