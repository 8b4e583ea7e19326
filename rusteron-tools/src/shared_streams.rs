//! The publications of a driver, and the subscriptions that read them.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use rusteron_client::{
    ChannelUri, CountersReader, Parameter, PositionKind, StreamPosition, StreamPositions,
};

use crate::counter_types::SUBSCRIPTION;
use crate::log_file::LogFile;

/// The positions of all streams on a driver, and the connections between the positions.
///
/// `StreamPositions` compares channels as text. A publisher and a subscriber may write the same channel
/// differently, so here registration ids, session ids and stream ids connect the two.
#[derive(Debug)]
pub(crate) struct SharedStreams<'a> {
    streams: &'a [StreamPositions],
    /// By the counter of a subscriber's position: the id of the image or the publication that is read.
    sources: HashMap<i32, i64>,
    /// By registration id.
    publications: BTreeMap<i64, Publication<'a>>,
    /// By registration id.
    images: BTreeMap<i64, Image>,
}

#[derive(Debug)]
struct Publication<'a> {
    part: &'a StreamPositions,
    published: i64,
    limit: Option<i64>,
    /// `None` with IPC.
    sent: Option<i64>,
    sender_limit: Option<i64>,
    /// The largest backlog of the publication's subscribers on this driver.
    largest_backlog: Option<i64>,
    /// The MTU length of a publication that is open, connected and at its limit.
    back_pressured_mtu: Option<i64>,
}

#[derive(Debug)]
struct Image {
    /// The highest position that came, received or dropped.
    arrived: i64,
    is_overrun: bool,
    /// The publication on this driver, if the image comes from this driver.
    publication: Option<i64>,
}

impl<'a> SharedStreams<'a> {
    /// Returns the connections between the positions of `streams`. Reads the log buffers of publications
    /// that are at their limit.
    pub(crate) fn new(
        dir: &Path,
        counters: &CountersReader<'_>,
        streams: &'a [StreamPositions],
    ) -> Self {
        let subscriber_position = PositionKind::SubscriberPosition.type_id();
        let subscribers = counters.iter().filter(|counter| counter.type_id == subscriber_position);
        let sources = subscribers.map(|counter| (counter.id, counter.reference_id)).collect();
        let mut shared =
            Self { streams, sources, publications: BTreeMap::new(), images: BTreeMap::new() };
        shared.add_publications(dir);
        shared.add_images();
        for (_, position) in shared.positions() {
            let backlog = shared.backlog(position);
            if let Some(publication) =
                shared.publication_of(position).and_then(|id| shared.publications.get_mut(&id))
            {
                publication.largest_backlog = publication.largest_backlog.max(backlog);
            }
        }
        shared
    }

    fn add_publications(&mut self, dir: &Path) {
        for part in self.streams {
            for position in part.of(PositionKind::PublisherPosition) {
                let of_publication = |kind| {
                    let id = position.registration_id;
                    part.of(kind).find(|other| other.registration_id == id).map(|other| other.value)
                };
                let (published, limit) =
                    (position.value, of_publication(PositionKind::PublisherLimit));
                let is_at_limit = limit.is_some_and(|limit| published >= limit);
                let publication = Publication {
                    part,
                    published,
                    limit,
                    sent: of_publication(PositionKind::SenderPosition),
                    sender_limit: of_publication(PositionKind::SenderLimit),
                    largest_backlog: None,
                    back_pressured_mtu: is_at_limit
                        .then(|| back_pressured_mtu(dir, position.registration_id))
                        .flatten(),
                };
                self.publications.insert(position.registration_id, publication);
            }
        }
    }

    fn add_images(&mut self) {
        for part in self.streams {
            for position in part.of(PositionKind::ReceiverHighWaterMark) {
                let publication = self.publication_of_image(part);
                let image = Image { arrived: position.value, is_overrun: false, publication };
                self.images.insert(position.registration_id, image);
            }
        }
        for part in self.streams {
            for position in part.of(PositionKind::ReceiverOverrun) {
                if let Some(image) = self.images.get_mut(&position.registration_id) {
                    image.arrived = image.arrived.max(position.value);
                    image.is_overrun = true;
                }
            }
        }
    }

    /// Returns the publication on this driver that an image comes from, if there is one.
    ///
    /// Publisher and subscriber may name the same address differently, or name different ones. So the address
    /// only decides between several publications.
    fn publication_of_image(&self, part: &StreamPositions) -> Option<i64> {
        let candidates: Vec<_> = self
            .publications
            .iter()
            .filter(|(_, publication)| {
                publication.sent.is_some()
                    && publication.part.session_id == part.session_id
                    && publication.part.stream_id == part.stream_id
            })
            .collect();
        let address = address(&part.channel);
        let same_address = candidates
            .iter()
            .find(|(_, publication)| self::address(&publication.part.channel) == address);
        let only = candidates.first().filter(|_| candidates.len() == 1);
        same_address.or(only).map(|(id, _)| **id)
    }

    /// Returns the streams with each publication and all its subscriptions in one group, however they spell the
    /// channel. A group has the spelling of its first position, which is the publication's if that is on this driver.
    pub(crate) fn grouped(&self) -> Vec<Vec<(&'a StreamPositions, &'a StreamPosition)>> {
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        for (part, position) in self.positions() {
            let id = self.publication_of_any(part, position);
            groups.entry((part.session_id, part.stream_id, id)).or_default().push((part, position));
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        for group in &mut groups {
            group.sort_by_key(|(_, position)| position.kind);
        }
        groups
    }

    /// Returns the registration id of the publication that a position belongs to, or of the image if the publication is
    /// not on this driver.
    fn publication_of_any(&self, part: &StreamPositions, position: &StreamPosition) -> i64 {
        let source = match position.kind {
            PositionKind::SubscriberPosition => self.source_of(position).filter(|id| *id != 0),
            _ => Some(position.registration_id),
        };
        let only_source = || self.publication_of_image(part).unwrap_or_default();
        source.map_or_else(only_source, |id| {
            self.images.get(&id).and_then(|image| image.publication).unwrap_or(id)
        })
    }

    /// Returns each position with the channel as its owner wrote it.
    pub(crate) fn positions(
        &self,
    ) -> impl Iterator<Item = (&'a StreamPositions, &'a StreamPosition)> + use<'a> {
        let streams = self.streams;
        streams.iter().flat_map(|part| part.positions.iter().map(move |position| (part, position)))
    }

    /// Returns the number of bytes that have come to the driver and that a subscriber has not read
    /// yet. `None` unless the position is a subscriber's and the stream has a source on this
    /// driver.
    pub(crate) fn backlog(&self, position: &StreamPosition) -> Option<i64> {
        let source = self.source_of(position)?;
        let arrived = self.images.get(&source).map(|image| image.arrived);
        let published = || self.publications.get(&source).map(|source| source.published);
        Some(arrived.or_else(published)?.saturating_sub(position.value).max(0))
    }

    /// Returns whether the receiver drops what comes, because this subscriber of the image is the
    /// furthest behind.
    pub(crate) fn is_overrun(&self, position: &StreamPosition) -> bool {
        let source = self.source_of(position);
        let image = source.and_then(|id| self.images.get(&id));
        image.is_some_and(|image| image.is_overrun)
            && self
                .positions()
                .all(|(_, other)| self.source_of(other) != source || other.value >= position.value)
    }

    /// Returns the position of the publisher that subscribers of a client read, or, if the publisher is on another driver,
    /// the highest position that was received. `None` if the client reads the stream from no source or from several.
    pub(crate) fn source_position(
        &self,
        client_id: i64,
        session_id: i32,
        stream_id: i32,
    ) -> Option<i64> {
        let subscribers = self.positions().filter(|(part, position)| {
            position.kind == PositionKind::SubscriberPosition
                && position.owner_id == client_id
                && (part.session_id, part.stream_id) == (session_id, stream_id)
        });
        let mut sources = subscribers.filter_map(|(_, position)| self.source_of(position));
        let source = sources.next()?;
        if sources.any(|other| other != source) {
            return None;
        }
        let published = |id| self.publications.get(&id).map(|publication| publication.published);
        match self.images.get(&source) {
            Some(image) => image.publication.and_then(published).or(Some(image.arrived)),
            None => published(source),
        }
    }

    /// Returns whether the position belongs to a connected publisher that may not write on at the moment.
    pub(crate) fn is_back_pressured(&self, position: &StreamPosition) -> bool {
        let publication = self.publications.get(&position.registration_id);
        position.kind == PositionKind::PublisherPosition
            && publication.is_some_and(|publication| publication.back_pressured_mtu.is_some())
    }

    /// Returns whether a subscriber keeps the publisher from writing on.
    ///
    /// The publisher is at its limit, no subscriber of the stream on this driver is further behind, and the
    /// subscriber has read less than half of the permitted bytes. If the subscriber has an image, flow control
    /// has also stopped the sender. Otherwise, another driver's receiver or the sender itself is behind.
    pub(crate) fn limits_publisher(&self, position: &StreamPosition) -> bool {
        let backlog = self.backlog(position);
        let publication = self.publication_of(position).and_then(|id| self.publications.get(&id));
        let Some(publication) = publication else { return false };
        let Some(mtu_length) = publication.back_pressured_mtu else { return false };
        let has_image = self.source_of(position).is_some_and(|id| self.images.contains_key(&id));
        // The sender sends no part of a frame, so less than a datagram may be left.
        let is_stopped =
            |limit| publication.sent.is_some_and(|sent| sent.saturating_add(mtu_length) > limit);
        let limit = match publication.sender_limit {
            Some(limit) if has_image && is_stopped(limit) => limit,
            _ if has_image => return false,
            _ => publication.limit.unwrap_or(publication.published),
        };
        let permitted = limit.saturating_sub(position.value).max(0);
        backlog == publication.largest_backlog && backlog > Some(permitted / 2)
    }

    /// Returns the registration id of the image or publication that a subscriber reads.
    fn source_of(&self, position: &StreamPosition) -> Option<i64> {
        self.sources.get(&position.counter_id).copied()
    }

    /// Returns the registration id of the publication on this driver that a subscriber reads.
    fn publication_of(&self, position: &StreamPosition) -> Option<i64> {
        let source = self.source_of(position)?;
        self.images.get(&source).map_or(Some(source), |image| image.publication)
    }
}

/// Returns the bytes that each subscription has lost because it was too far behind, by registration
/// id. Only rusteron's driver tells.
pub(crate) fn overrun_bytes(counters: &CountersReader<'_>) -> HashMap<i64, i64> {
    let of_subscriptions = counters.iter().filter(|counter| counter.type_id == SUBSCRIPTION);
    of_subscriptions.map(|counter| (counter.registration_id, counter.value)).collect()
}

/// Returns the MTU length of a publication at its limit, according to the log buffer. `None` if the publication
/// is closed or unconnected: the driver then lets it write nothing.
fn back_pressured_mtu(dir: &Path, registration_id: i64) -> Option<i64> {
    let file = format!("publications/{registration_id}.logbuffer");
    let file = LogFile::open_path(&dir.join(file)).ok()?;
    let metadata = file.metadata;
    let is_open = metadata.end_of_stream_position.is_none();
    (is_open && metadata.is_connected).then_some(metadata.mtu_length.into())
}

/// Returns the media and the address of a channel, or the whole channel if it has no address.
fn address(channel: &str) -> String {
    let Ok(uri) = channel.parse::<ChannelUri>() else { return channel.to_owned() };
    let of = |parameter| uri.get(parameter).map(|address| format!("aeron:udp?{address}"));
    of(Parameter::Endpoint).or_else(|| of(Parameter::Control)).unwrap_or_else(|| channel.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_do_not_part_streams() {
        let same = ["aeron:udp?endpoint=localhost:1|mtu=1408", "aeron:udp?endpoint=localhost:1"];
        assert_eq!(address(same[0]), address(same[1]));
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
