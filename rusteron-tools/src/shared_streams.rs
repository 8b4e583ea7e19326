//! Streams with the positions of all who use them on one driver.

use std::collections::BTreeMap;

use rusteron_client::{ChannelUri, Parameter, PositionKind, StreamPosition, StreamPositions};

/// A publisher's stream: the positions of all its publishers and subscribers on the driver.
///
/// `StreamPositions` compares channels as text. Here, channels with the same media and address are one
/// channel. So a subscriber is compared with a publisher whose channel has other parameters.
#[derive(Debug)]
pub(crate) struct SharedStream<'a> {
    parts: Vec<&'a StreamPositions>,
    /// The furthest positions, if there are any.
    published: Option<i64>,
    publisher_limit: Option<i64>,
    sent: Option<i64>,
    sender_limit: Option<i64>,
    received: Option<i64>,
    has_subscriber: bool,
    largest_backlog: Option<i64>,
}

/// Session id, stream id, media and address.
type Key = (i32, i32, String);

impl<'a> SharedStream<'a> {
    /// Returns the streams of a driver.
    pub(crate) fn all(streams: &'a [StreamPositions]) -> Vec<Self> {
        let mut shared = BTreeMap::<Key, Vec<_>>::new();
        for stream in streams {
            let key = (stream.session_id, stream.stream_id, address(&stream.channel));
            shared.entry(key).or_default().push(stream);
        }
        shared.into_values().map(Self::new).collect()
    }

    fn new(parts: Vec<&'a StreamPositions>) -> Self {
        let furthest = |kind| {
            let of_kind = parts.iter().flat_map(|part| part.of(kind));
            of_kind.map(|position| position.value).max()
        };
        let mut stream = Self {
            published: furthest(PositionKind::PublisherPosition),
            publisher_limit: furthest(PositionKind::PublisherLimit),
            sent: furthest(PositionKind::SenderPosition),
            sender_limit: furthest(PositionKind::SenderLimit),
            received: furthest(PositionKind::ReceiverHighWaterMark),
            has_subscriber: furthest(PositionKind::SubscriberPosition).is_some(),
            largest_backlog: None,
            parts,
        };
        let backlogs = stream.positions().filter_map(|(part, at)| stream.backlog(part, at));
        stream.largest_backlog = backlogs.max();
        stream
    }

    /// Returns each position with the channel as its owner wrote it.
    pub(crate) fn positions(
        &self,
    ) -> impl Iterator<Item = (&'a StreamPositions, &'a StreamPosition)> {
        self.parts.iter().flat_map(|part| part.positions.iter().map(|position| (*part, position)))
    }

    /// Returns the number of bytes that the driver has and that a subscriber has not read yet. `None`
    /// unless the position is a subscriber's and the stream has a source on this driver.
    pub(crate) fn backlog(&self, part: &StreamPositions, position: &StreamPosition) -> Option<i64> {
        if position.kind != PositionKind::SubscriberPosition {
            return None;
        }
        // A spy reads the publication, and all other subscribers read what was received.
        let received = self.received.filter(|_| !is_spy(&part.channel));
        let arrived = received.or(self.published)?;
        Some(arrived.saturating_sub(position.value).max(0))
    }

    /// Returns whether the stream has a connected publisher that may not write on at the moment.
    pub(crate) fn is_back_pressured(&self) -> bool {
        let (Some(published), Some(limit)) = (self.published, self.publisher_limit) else {
            return false;
        };
        // Without a receiver, the driver sets the limit back to the sender's position.
        let is_connected = self.has_subscriber || self.sent.is_some_and(|sent| limit > sent);
        is_connected && published >= limit
    }

    /// Returns whether a subscriber keeps the publisher from writing on.
    ///
    /// The publisher is at its limit, no subscriber of the stream on this driver is further behind, and the
    /// subscriber has read less than half of what was permitted. Otherwise, a receiver of another driver or
    /// the sender itself is behind.
    pub(crate) fn limits_publisher(
        &self,
        part: &StreamPositions,
        position: &StreamPosition,
    ) -> bool {
        let backlog = self.backlog(part, position);
        let by_sender = self.sender_limit.filter(|_| !is_spy(&part.channel));
        let limit = by_sender.or(self.publisher_limit);
        let permitted = limit.map_or(0, |limit| limit.saturating_sub(position.value).max(0));
        self.is_back_pressured() && backlog == self.largest_backlog && backlog > Some(permitted / 2)
    }
}

fn is_spy(channel: &str) -> bool {
    channel.starts_with("aeron-spy:")
}

/// Returns the media and the address of a channel, or the whole channel if it has no address.
fn address(channel: &str) -> String {
    let bare = channel.strip_prefix("aeron-spy:").unwrap_or(channel);
    let Ok(uri) = bare.parse::<ChannelUri>() else { return bare.to_owned() };
    if bare.starts_with("aeron:ipc") {
        return "aeron:ipc".to_owned();
    }
    let of = |parameter| uri.get(parameter).map(|address| format!("aeron:udp?{address}"));
    of(Parameter::Endpoint).or_else(|| of(Parameter::Control)).unwrap_or_else(|| bare.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_do_not_part_streams() {
        let same = [
            ["aeron:ipc", "aeron:ipc?alias=one|term-length=64k"],
            ["aeron:udp?endpoint=localhost:1|mtu=1408", "aeron:udp?endpoint=localhost:1"],
            ["aeron-spy:aeron:udp?endpoint=localhost:1", "aeron:udp?endpoint=localhost:1"],
        ];
        for [one, other] in same {
            assert_eq!(address(one), address(other));
        }
        let distinct =
            ["aeron:ipc", "aeron:udp?endpoint=a:1", "aeron:udp?endpoint=a:2", "aeron:udp?"];
        for (index, one) in distinct.iter().enumerate() {
            for other in &distinct[..index] {
                assert_ne!(address(one), address(other));
            }
        }
        // Any process can write a counter's key.
        assert_eq!(address("no channel"), "no channel");
    }
}
