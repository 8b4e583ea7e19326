//! Streams with the positions of all who use them on one driver.

use std::collections::BTreeMap;

use rusteron_client::{ChannelUri, Parameter, PositionKind, StreamPosition, StreamPositions};

/// A publisher's stream: the positions of all its publishers and subscribers on the driver.
///
/// `StreamPositions` compares channels as text. Here, channels with the same media and address are one
/// channel. So a subscriber is compared with a publisher whose channel has other parameters.
#[derive(Debug, Default)]
pub(crate) struct SharedStream<'a> {
    parts: Vec<&'a StreamPositions>,
}

/// Session id, stream id, media and address.
type Key = (i32, i32, String);

impl<'a> SharedStream<'a> {
    /// Returns the streams of a driver.
    pub(crate) fn all(streams: &'a [StreamPositions]) -> Vec<Self> {
        let mut shared = BTreeMap::<Key, Self>::new();
        for stream in streams {
            let key = (stream.session_id, stream.stream_id, address(&stream.channel));
            shared.entry(key).or_default().parts.push(stream);
        }
        shared.into_values().collect()
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
        let published = self.furthest(PositionKind::PublisherPosition);
        let received = self.furthest(PositionKind::ReceiverHighWaterMark);
        // A spy reads the publication, and all other subscribers read what was received.
        let arrived = if is_spy(&part.channel) { published } else { received.or(published) };
        Some(arrived?.saturating_sub(position.value).max(0))
    }

    /// Returns whether the stream's publisher may not write on at the moment. `None` without a publisher.
    pub(crate) fn is_back_pressured(&self) -> Option<bool> {
        let limit = self.furthest(PositionKind::PublisherLimit)?;
        Some(self.furthest(PositionKind::PublisherPosition)? >= limit)
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
        let Some(backlog @ 1..) = self.backlog(part, position) else { return false };
        let mut backlogs =
            self.positions().filter_map(|(part, position)| self.backlog(part, position));
        let by_sender = self.furthest(PositionKind::SenderLimit).filter(|_| !is_spy(&part.channel));
        let limit = by_sender.or(self.furthest(PositionKind::PublisherLimit));
        let permitted = limit.map_or(0, |limit| limit.saturating_sub(position.value));
        self.is_back_pressured() == Some(true)
            && backlogs.all(|other| other <= backlog)
            && backlog > permitted / 2
    }

    fn furthest(&self, kind: PositionKind) -> Option<i64> {
        let of_kind = self.positions().filter(|(_, position)| position.kind == kind);
        of_kind.map(|(_, position)| position.value).max()
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
