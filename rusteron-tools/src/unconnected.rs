//! Subscriptions without an image, and the likely reason.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusteron_client::{
    ChannelUri, CncFile, ControlMode, CounterSnapshot, CountersReader, Media, Parameter,
    PositionKind, SessionId, StreamPositions,
};
use serde::Serialize;

use crate::client_heartbeat::{self, ClientHeartbeat};
use crate::counter_types::{RECEIVE_CHANNEL_STATUS, SUBSCRIPTION};
use crate::driver_dir::{DriverDir, DriverState};
use crate::text;

/// A subscription without an image.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Unconnected {
    pub(crate) channel: String,
    /// `None` with other drivers than rusteron's, which tell the channels of UDP subscriptions only.
    pub(crate) stream_id: Option<i32>,
    pub(crate) registration_id: i64,
    /// `None` with other drivers than rusteron's.
    pub(crate) client_id: Option<i64>,
    client_name: Option<String>,
    /// The likely reason: what separates the subscription from the publication that resembles it most.
    reason: String,
}

/// Returns the driver's subscriptions without an image. If there are any, reads the drivers in sibling directories,
/// too: the publication may be there.
pub(crate) fn find(
    dir: &DriverDir,
    counters: &CountersReader<'_>,
    streams: &[StreamPositions],
    clients: &BTreeMap<i64, ClientHeartbeat>,
) -> Vec<Unconnected> {
    let mut unconnected = without_image(counters, streams);
    if unconnected.is_empty() {
        return unconnected;
    }
    let mut publications = publications(streams, None);
    for sibling in siblings(dir) {
        // One look: a directory may have an incomplete file for ever, and each wait would delay the report.
        let Ok(cnc) = CncFile::read(&sibling.path, Duration::ZERO) else { continue };
        if sibling.status(Some(&cnc)).state == DriverState::Alive {
            let streams = cnc.counters().stream_positions();
            publications.extend(self::publications(&streams, Some(&sibling.path)));
        }
    }
    for subscription in &mut unconnected {
        subscription.reason = reason(&subscription.channel, subscription.stream_id, &publications);
        let name = subscription.client_id.and_then(|id| client_heartbeat::name_of(clients, id));
        subscription.client_name = name.map(str::to_owned);
    }
    unconnected
}

/// Returns all subscriptions, connected or not, of rusteron's driver, without reasons and names.
pub(crate) fn subscriptions(counters: &CountersReader<'_>) -> impl Iterator<Item = Unconnected> {
    let subscriptions = counters.iter().filter(|counter| counter.type_id == SUBSCRIPTION);
    subscriptions.filter_map(|counter| Unconnected::of_subscription(&counter))
}

/// Returns the subscriptions without an image, without reasons and names.
fn without_image(counters: &CountersReader<'_>, streams: &[StreamPositions]) -> Vec<Unconnected> {
    let images = || streams.iter().flat_map(|stream| stream.of(PositionKind::SubscriberPosition));
    let connected: HashSet<_> = images().map(|position| position.registration_id).collect();
    let mut subscriptions = subscriptions(counters).peekable();
    if subscriptions.peek().is_some() {
        return subscriptions.filter(|one| !connected.contains(&one.registration_id)).collect();
    }
    let has_image = |channel: &str| {
        let mut same = streams.iter().filter(|stream| stream.channel == channel);
        same.any(|stream| stream.subscriber_positions().next().is_some())
    };
    let channels = counters.iter().filter(|counter| counter.type_id == RECEIVE_CHANNEL_STATUS);
    channels
        .filter_map(|counter| Unconnected::of_channel(&counter))
        .filter(|subscription| !has_image(&subscription.channel))
        .collect()
}

impl Unconnected {
    /// Reads the label, which is `sub: <registration id> <session id> <stream id> <channel>`.
    fn of_subscription(counter: &CounterSnapshot) -> Option<Self> {
        let (_, rest) = counter.label.split_once(": ")?;
        let mut words = rest.splitn(4, ' ').skip(2);
        let stream_id = words.next()?.parse().ok()?;
        let of_client = Self::new(words.next()?, counter);
        Some(Self { stream_id: Some(stream_id), client_id: Some(counter.owner_id), ..of_client })
    }

    /// Reads the label of a channel's status, which is `rcv-channel: <channel> <addresses>`.
    fn of_channel(counter: &CounterSnapshot) -> Option<Self> {
        let (_, rest) = counter.label.split_once(": ")?;
        Some(Self::new(rest.split(' ').next()?, counter))
    }

    fn new(channel: &str, counter: &CounterSnapshot) -> Self {
        Self {
            channel: channel.to_owned(),
            stream_id: None,
            registration_id: counter.registration_id,
            client_id: None,
            client_name: None,
            reason: String::new(),
        }
    }

    /// Returns the lines in a list of streams.
    pub(crate) fn lines(&self) -> Vec<String> {
        let channel = text::printable(&self.channel);
        let stream = self.stream_id.map_or(String::new(), |id| format!(" stream {id}"));
        let client = self.client_id.map_or(String::new(), |id| format!("  client {id}"));
        let name = self.client_name.as_deref().map(text::printable);
        let name = name.map_or(String::new(), |name| format!(" {name}"));
        vec![
            format!("{channel}{stream} without an image"),
            format!("  registration {}{client}{name}", self.registration_id),
            format!("  {}", text::printable(&self.reason)),
        ]
    }

    /// Returns the line in a list of a client's resources.
    pub(crate) fn line(&self) -> String {
        let (channel, reason) = (text::printable(&self.channel), text::printable(&self.reason));
        let stream = self.stream_id.map_or(String::new(), |id| format!(" stream {id}"));
        format!(
            "  subscription {} {channel}{stream} without an image: {reason}",
            self.registration_id
        )
    }
}

/// Returns the other directories beside this one with a driver's file, up to a limit.
fn siblings(dir: &DriverDir) -> Vec<DriverDir> {
    const LIMIT: usize = 100;
    let Ok(path) = dir.path.canonicalize() else { return Vec::new() };
    let entries = path.parent().and_then(|parent| fs::read_dir(parent).ok());
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let others = paths.filter(|other| *other != path && other.join("cnc.dat").is_file());
    let with_dir = |path| DriverDir { path, driver_timeout: dir.driver_timeout };
    others.take(LIMIT).map(with_dir).collect()
}

/// A publication that a subscription might have been meant for.
#[derive(Debug, Clone)]
struct Publication {
    registration_id: i64,
    channel: String,
    stream_id: i32,
    session_id: i32,
    /// The directory of its driver, if that is another one.
    elsewhere: Option<PathBuf>,
}

fn publications(streams: &[StreamPositions], elsewhere: Option<&Path>) -> Vec<Publication> {
    let of = |stream: &StreamPositions| {
        let publications = stream.of(PositionKind::PublisherPosition);
        let publications = publications.map(|position| Publication {
            registration_id: position.registration_id,
            channel: stream.channel.clone(),
            stream_id: stream.stream_id,
            session_id: stream.session_id,
            elsewhere: elsewhere.map(Path::to_owned),
        });
        publications.collect::<Vec<_>>()
    };
    streams.iter().flat_map(of).collect()
}

/// Returns what separates a subscription from the publication that resembles it most.
fn reason(channel: &str, stream_id: Option<i32>, publications: &[Publication]) -> String {
    let Ok(uri) = channel.parse::<ChannelUri>() else {
        return "the channel cannot be read".to_owned();
    };
    match uri.control_mode() {
        Ok(Some(ControlMode::Manual)) => {
            return "control-mode=manual: it receives from destinations that its client adds, and \
                    nothing has arrived at them"
                .to_owned();
        }
        Ok(Some(ControlMode::Response)) => {
            return "control-mode=response: no response publication has been made for it"
                .to_owned();
        }
        _ => {}
    }
    let candidates = publications.iter().filter_map(|publication| {
        let differences = differences(&uri, stream_id, publication)?;
        let is_same_medium = publication.channel.contains(&format!("aeron:{}", uri.media()));
        Some((publication, is_same_medium, differences))
    });
    // With two differences, the publication is hardly meant.
    let nearest = candidates.filter(|(.., differences)| differences.len() <= 1).min_by_key(
        |(publication, is_same_medium, differences)| {
            (differences.len(), !is_same_medium, publication.elsewhere.is_some())
        },
    );
    match nearest {
        Some((.., mut differences)) if !differences.is_empty() => differences.remove(0),
        Some((publication, ..)) if uri.media() == Media::Ipc || uri.is_spy() => {
            format!("{} fits; its image has ended, or is on its way", publication.name())
        }
        Some((publication, ..)) => format!("{} fits; nothing has arrived", publication.name()),
        None if publications.iter().all(|publication| publication.elsewhere.is_some()) => {
            "no publication in this driver".to_owned()
        }
        None if uri.media() == Media::Ipc => {
            "no publication of this channel or stream in this driver".to_owned()
        }
        None => "no publication of this channel or stream on this machine".to_owned(),
    }
}

impl Publication {
    fn name(&self) -> String {
        let id = self.registration_id;
        match &self.elsewhere {
            Some(dir) => format!("publication {id} of the driver in {}", dir.display()),
            None => format!("publication {id}"),
        }
    }
}

/// Returns the differences that keep a subscription from the publication's messages. `None` if the publication's channel
/// cannot be read.
fn differences(
    subscription: &ChannelUri,
    stream_id: Option<i32>,
    publication: &Publication,
) -> Option<Vec<String>> {
    let uri = publication.channel.parse::<ChannelUri>().ok()?;
    let name = publication.name();
    let mut differences = Vec::new();
    differences.extend(address_difference(subscription, &uri, &name));
    if let Some(id) = stream_id.filter(|id| *id != publication.stream_id) {
        differences.push(format!("stream {id}: {name} has stream {}", publication.stream_id));
    }
    if let Ok(Some(SessionId::Id(id))) = subscription.session_id() {
        if id != publication.session_id {
            let session_id = publication.session_id;
            differences.push(format!("session-id={id}: {name} has session {session_id}"));
        }
    }
    if publication.elsewhere.is_some() {
        if subscription.is_spy() {
            differences.push(format!("{name}: a spy sees its own driver only"));
        } else if subscription.media() == Media::Ipc {
            differences.push(format!("{name}: IPC stays within one driver"));
        }
    }
    Some(differences)
}

fn address_difference(
    subscription: &ChannelUri,
    publication: &ChannelUri,
    name: &str,
) -> Option<String> {
    if subscription.media() != publication.media() {
        return Some(format!("aeron:{}: {name} is on {publication}", subscription.media()));
    }
    if subscription.media() == Media::Ipc {
        return None;
    }
    let mode = publication.control_mode().ok().flatten();
    let is_dynamic = mode == Some(ControlMode::Dynamic);
    let [control, its_control] = [subscription, publication].map(|uri| uri.get(Parameter::Control));
    let [endpoint, its_endpoint] =
        [subscription, publication].map(|uri| uri.get(Parameter::Endpoint));
    let target = its_endpoint.unwrap_or("other destinations");
    match (control, its_control) {
        (Some(control), Some(its)) if is_dynamic => {
            (!is_same(control, its)).then(|| format!("control={control}: {name} has control={its}"))
        }
        (None, Some(its)) if is_dynamic => {
            Some(format!("control is missing: {name} has control-mode=dynamic and control={its}"))
        }
        _ if mode == Some(ControlMode::Manual) => Some(format!(
            "{name} has control-mode=manual: it sends to destinations that its client adds"
        )),
        _ if endpoint.zip(its_endpoint).is_none_or(|(one, other)| is_same(one, other)) => None,
        (Some(control), Some(its)) if is_same(control, its) => {
            Some(format!("control-mode=dynamic is missing: {name} sends to {target}"))
        }
        (Some(control), _) => Some(format!(
            "control={control}: {name} has no control-mode=dynamic and sends to {target}"
        )),
        _ => {
            let endpoint = endpoint.unwrap_or_default();
            let (host, port) = split(endpoint);
            let is_port = its_endpoint.is_some_and(|its| is_same_host(host, split(its).0));
            let part =
                if is_port { format!("port {port}") } else { format!("endpoint={endpoint}") };
            Some(format!("{part}: {name} sends to {target}"))
        }
    }
}

/// Splits an address into host and port.
fn split(address: &str) -> (&str, &str) {
    address.rsplit_once(':').unwrap_or((address, ""))
}

fn is_same(one: &str, other: &str) -> bool {
    let ((host, port), (other_host, other_port)) = (split(one), split(other));
    port == other_port && is_same_host(host, other_host)
}

/// Names are not resolved, so two hosts differ only if both are addresses.
fn is_same_host(one: &str, other: &str) -> bool {
    let address = |host: &str| -> Option<std::net::IpAddr> {
        let host = if host == "localhost" { "127.0.0.1" } else { host };
        host.trim_matches(['[', ']']).parse().ok()
    };
    match (address(one), address(other)) {
        (Some(one), Some(other)) => one == other || one.is_unspecified() || other.is_unspecified(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publication(channel: &str, stream_id: i32) -> Publication {
        Publication {
            registration_id: 3,
            channel: channel.to_owned(),
            stream_id,
            session_id: 9,
            elsewhere: None,
        }
    }

    #[track_caller]
    fn assert_reason(subscription: (&str, i32), publication_: (&str, i32), expected: &str) {
        let (channel, stream_id) = subscription;
        let publications = [publication(publication_.0, publication_.1)];
        assert_eq!(reason(channel, Some(stream_id), &publications), expected);
    }

    const UDP: &str = "aeron:udp?endpoint=127.0.0.1:40123";
    const DYNAMIC: &str = "aeron:udp?control=127.0.0.1:40456|control-mode=dynamic";

    #[test]
    fn nearest_publication_names_reason() {
        let ipc = "aeron:ipc";
        let cases = [
            ((ipc, 1002), (ipc, 1001), "stream 1002: publication 3 has stream 1001"),
            ((UDP, 7), (UDP, 8), "stream 7: publication 3 has stream 8"),
            (("aeron:ipc?session-id=4", 7), (ipc, 7), "session-id=4: publication 3 has session 9"),
            (
                (ipc, 7),
                (UDP, 7),
                "aeron:ipc: publication 3 is on aeron:udp?endpoint=127.0.0.1:40123",
            ),
            (
                ("aeron:udp?endpoint=localhost:40124", 7),
                (UDP, 7),
                "port 40124: publication 3 sends to 127.0.0.1:40123",
            ),
            (
                ("aeron:udp?endpoint=10.0.0.1:40123", 7),
                (UDP, 7),
                "endpoint=10.0.0.1:40123: publication 3 sends to 127.0.0.1:40123",
            ),
            (
                ("aeron:udp?endpoint=localhost:0", 7),
                (DYNAMIC, 7),
                "control is missing: publication 3 has control-mode=dynamic and control=127.0.0.1:40456",
            ),
            (
                ("aeron:udp?endpoint=localhost:0|control=127.0.0.1:40457", 7),
                (DYNAMIC, 7),
                "control=127.0.0.1:40457: publication 3 has control=127.0.0.1:40456",
            ),
            (
                ("aeron:udp?endpoint=localhost:0|control=127.0.0.1:40456", 7),
                ("aeron:udp?endpoint=127.0.0.1:40123|control=localhost:40456", 7),
                "control-mode=dynamic is missing: publication 3 sends to 127.0.0.1:40123",
            ),
            (
                ("aeron:udp?endpoint=localhost:0|control=127.0.0.1:40456", 7),
                (UDP, 7),
                "control=127.0.0.1:40456: publication 3 has no control-mode=dynamic and sends to 127.0.0.1:40123",
            ),
            (
                (UDP, 7),
                ("aeron:udp?control-mode=manual", 7),
                "publication 3 has control-mode=manual: it sends to destinations that its client adds",
            ),
            (
                (UDP, 7),
                ("aeron:udp?endpoint=host:40123", 7),
                "publication 3 fits; nothing has arrived",
            ),
            (
                (UDP, 7),
                ("aeron:udp?endpoint=1.1.1.1:1", 8),
                "no publication of this channel or stream on this machine",
            ),
            (
                ("aeron:udp?control-mode=manual", 7),
                (UDP, 7),
                "control-mode=manual: it receives from destinations that its client adds, and nothing has arrived at them",
            ),
        ];
        for (subscription, publication, expected) in cases {
            assert_reason(subscription, publication, expected);
        }
        assert_eq!(reason("aeron:ipc", Some(1), &[]), "no publication in this driver");
    }

    #[test]
    fn ipc_and_spies_do_not_leave_driver() {
        let elsewhere = Some(PathBuf::from("/x"));
        for (channel, spied, end) in [
            ("aeron:ipc", "aeron:ipc", "IPC stays within one driver"),
            (&format!("aeron-spy:{UDP}"), UDP, "a spy sees its own driver only"),
        ] {
            let other = Publication { elsewhere: elsewhere.clone(), ..publication(spied, 7) };
            let expected = format!("publication 3 of the driver in /x: {end}");
            assert_eq!(reason(channel, Some(7), std::slice::from_ref(&other)), expected);
            let near = publication(spied, 8);
            let expected = "stream 7: publication 3 has stream 8";
            assert_eq!(reason(channel, Some(7), &[other, near]), expected);
        }
    }
}
