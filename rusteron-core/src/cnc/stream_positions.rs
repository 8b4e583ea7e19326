//! The positions of the publishers and subscribers of each stream, from a driver's counters.

use std::collections::BTreeMap;
use std::fmt;

use rusteron_sys as sys;

use crate::cnc::{CounterSnapshot, CountersReader, i32_at, i64_at};
use crate::error::Position;
use crate::printable::Printable;

/// The positions of all publishers and subscribers of one publisher's stream, on one media driver.
///
/// As in Aeron's tool `StreamStat`, session id, stream id and channel identify a stream. The
/// channel is compared as each side wrote it. So a publisher and a subscriber that wrote the
/// channel differently are in two groups.
///
/// It is printed as one line, as in that tool. Made by [`CountersReader::stream_positions`].
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// for stream in aeron.counters_reader().stream_positions() {
///     println!("{stream}");
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "StreamStat")]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamPositions {
    /// The session id of the publisher.
    pub session_id: i32,
    /// The stream id within the channel.
    pub stream_id: i32,
    /// The channel. It is complete unless it is longer than the counters' labels.
    pub channel: String,
    /// The positions, in the order of their counters' ids.
    pub positions: Vec<StreamPosition>,
}

/// One position in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamPosition {
    /// The kind of the position.
    pub kind: PositionKind,
    /// The registration id of the publication, the subscription or the image.
    pub registration_id: i64,
    /// The id of the client that owns the publication or subscription. An image belongs to the client
    /// whose subscription came first. The id is -1 if the driver has not recorded an owner.
    pub owner_id: i64,
    /// The counter that the position comes from.
    pub counter_id: i32,
    /// The position, in bytes. For
    /// [`SenderBackPressureEvents`](PositionKind::SenderBackPressureEvents) and the two kinds of
    /// NAKs, it is the number of these events.
    pub value: Position,
}

macro_rules! position_kinds {
    ($($(#[$doc:meta])+ $variant:ident = $type_id:expr, $name:literal;)+) => {
        /// The owner and the meaning of a position counter.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum PositionKind {
            $($(#[$doc])+ $variant,)+
        }

        impl PositionKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the type of the counters with such positions.
            pub fn type_id(self) -> i32 {
                match self { $(Self::$variant => $type_id as i32,)+ }
            }

            /// Returns Aeron's name for it, as in its counters' labels.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            fn from_type_id(type_id: i32) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.type_id() == type_id)
            }
        }
    };
}

position_kinds! {
    /// The position up to which the publisher may write.
    PublisherLimit = sys::AERON_COUNTER_PUBLISHER_LIMIT_TYPE_ID, "pub-lmt";
    /// The position up to which the publisher has written, as last seen by the driver.
    PublisherPosition = sys::AERON_COUNTER_PUBLISHER_POSITION_TYPE_ID, "pub-pos";
    /// The position up to which the sender has sent.
    SenderPosition = sys::AERON_COUNTER_SENDER_POSITION_TYPE_ID, "snd-pos";
    /// The position up to which flow control lets the sender send.
    SenderLimit = sys::AERON_COUNTER_SENDER_LIMIT_TYPE_ID, "snd-lmt";
    /// The number of times that flow control has stopped the sender.
    SenderBackPressureEvents = sys::AERON_COUNTER_SENDER_BPE_TYPE_ID, "snd-bpe";
    /// The number of retransmission requests (NAKs) that the sender has received.
    SenderNaksReceived = sys::AERON_COUNTER_SENDER_NAKS_RECEIVED_TYPE_ID, "snd-naks-received";
    /// The highest position that the receiver has received, with or without gaps before it.
    ReceiverHighWaterMark = sys::AERON_COUNTER_RECEIVER_HWM_TYPE_ID, "rcv-hwm";
    /// Where the last frame begins that the receiver has dropped because its subscribers were too
    /// far behind. Only rusteron's driver has it, and only until the receiver takes frames again.
    ReceiverOverrun = 54_004, "rcv-overrun";
    /// The position up to which the receiver has received everything.
    ReceiverPosition = sys::AERON_COUNTER_RECEIVER_POSITION_TYPE_ID, "rcv-pos";
    /// The number of retransmission requests (NAKs) that the receiver has sent.
    ReceiverNaksSent = sys::AERON_COUNTER_RECEIVER_NAKS_SENT_TYPE_ID, "rcv-naks-sent";
    /// The position up to which a subscriber has read.
    SubscriberPosition = sys::AERON_COUNTER_SUBSCRIPTION_POSITION_TYPE_ID, "sub-pos";
}

impl CountersReader<'_> {
    /// Returns the positions of all streams of the driver, sorted by session id, stream id and
    /// channel.
    ///
    /// The positions are read one after the other. So the positions of a stream in motion do not
    /// fit together exactly.
    pub fn stream_positions(&self) -> Vec<StreamPositions> {
        let mut streams = BTreeMap::<(i32, i32, String), StreamPositions>::new();
        self.for_each(|counter| {
            let Some(kind) = PositionKind::from_type_id(counter.type_id) else { return };
            let Some(key) = Key::parse(&counter.key) else { return };
            let full_channel = full_channel(counter, &key.channel);
            let stream = streams
                .entry((key.session_id, key.stream_id, key.channel))
                .or_insert_with(|| StreamPositions {
                    session_id: key.session_id,
                    stream_id: key.stream_id,
                    channel: String::new(),
                    positions: Vec::new(),
                });
            if full_channel.len() > stream.channel.len() {
                stream.channel = full_channel;
            }
            stream.positions.push(StreamPosition {
                kind,
                registration_id: key.registration_id,
                owner_id: counter.owner_id,
                counter_id: counter.id,
                value: counter.value,
            });
        });
        streams.into_values().collect()
    }
}

impl StreamPositions {
    /// Returns the positions of one kind.
    pub fn of(&self, kind: PositionKind) -> impl Iterator<Item = &StreamPosition> {
        self.positions.iter().filter(move |position| position.kind == kind)
    }

    /// Returns the position up to which the publisher has written, as last seen by the driver.
    /// `None` without a publisher.
    pub fn publisher_position(&self) -> Option<Position> {
        self.furthest(PositionKind::PublisherPosition)
    }

    /// Returns the position up to which the publisher may write. `None` without a publisher.
    pub fn publisher_limit(&self) -> Option<Position> {
        self.furthest(PositionKind::PublisherLimit)
    }

    /// Returns the position up to which the sender has sent. `None` without a sender, as with IPC.
    pub fn sender_position(&self) -> Option<Position> {
        self.furthest(PositionKind::SenderPosition)
    }

    /// Returns the position up to which flow control lets the sender send. `None` without a sender,
    /// as with IPC.
    pub fn sender_limit(&self) -> Option<Position> {
        self.furthest(PositionKind::SenderLimit)
    }

    /// Returns the highest position that the receiver has received. `None` without a receiver, as
    /// with IPC.
    pub fn receiver_high_water_mark(&self) -> Option<Position> {
        self.furthest(PositionKind::ReceiverHighWaterMark)
    }

    /// Returns the position up to which the receiver has received everything. `None` without a
    /// receiver, as with IPC.
    pub fn receiver_position(&self) -> Option<Position> {
        self.furthest(PositionKind::ReceiverPosition)
    }

    /// Returns the position up to which each subscriber has read.
    pub fn subscriber_positions(&self) -> impl Iterator<Item = Position> {
        self.of(PositionKind::SubscriberPosition).map(|position| position.value)
    }

    /// Returns the number of bytes that the publisher has written and the sender has not sent yet.
    /// `None` unless there are both.
    pub fn sender_backlog(&self) -> Option<i64> {
        Some(self.publisher_position()?.saturating_sub(self.sender_position()?).max(0))
    }

    /// Returns the number of bytes that have come to this driver and that the slowest subscriber
    /// has not read yet, those included that the receiver has dropped. The bytes come from the
    /// network or from a publisher.
    ///
    /// `None` without a subscriber, or without a source.
    pub fn subscriber_backlog(&self) -> Option<i64> {
        let received = self.receiver_high_water_mark();
        let received = received.max(self.furthest(PositionKind::ReceiverOverrun));
        let arrived = received.or(self.publisher_position())?;
        Some(arrived.saturating_sub(self.subscriber_positions().min()?).max(0))
    }

    fn furthest(&self, kind: PositionKind) -> Option<Position> {
        self.of(kind).map(|position| position.value).max()
    }
}

impl fmt::Display for StreamPositions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session_id, stream_id, channel, positions } = self;
        let channel = Printable(channel);
        write!(f, "sessionId={session_id} streamId={stream_id} channel={channel} :")?;
        for StreamPosition { kind, registration_id, value, .. } in positions {
            write!(f, " {}:{registration_id}:{value}", kind.name())?;
        }
        Ok(())
    }
}

/// The beginning of `aeron_stream_position_counter_key_layout_t`. The rest of the key is the
/// channel, cut off at the end of the key.
struct Key {
    registration_id: i64,
    session_id: i32,
    stream_id: i32,
    channel: String,
}

impl Key {
    /// Parses a key. `None` for another layout, which any process may give to its counters.
    fn parse(key: &[u8]) -> Option<Self> {
        const CHANNEL: usize = 20;
        let channel_length = usize::try_from(i32_at(key, 16)?).ok()?;
        let channel = key.get(CHANNEL..)?.get(..channel_length)?;
        Some(Self {
            registration_id: i64_at(key, 0)?,
            session_id: i32_at(key, 8)?,
            stream_id: i32_at(key, 12)?,
            channel: String::from_utf8_lossy(channel).into_owned(),
        })
    }
}

/// Returns the channel from the label, where it is longer than in the key.
///
/// The label is `<name>: <registration id> <session id> <stream id> <channel>`. A subscriber's
/// label ends with ` @<position>`.
fn full_channel(counter: &CounterSnapshot, channel: &str) -> String {
    let Some(start) = counter.label.find(channel).filter(|_| !channel.is_empty()) else {
        return channel.to_owned();
    };
    let full = &counter.label[start..];
    let joined = full.rfind(" @").filter(|&end| {
        counter.type_id == PositionKind::SubscriberPosition.type_id() && end >= channel.len()
    });
    full[..joined.unwrap_or(full.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(channel_length: i32, channel: &[u8]) -> Vec<u8> {
        let mut key = Vec::new();
        key.extend(7_i64.to_ne_bytes());
        key.extend((-8_i32).to_ne_bytes());
        key.extend(9_i32.to_ne_bytes());
        key.extend(channel_length.to_ne_bytes());
        key.extend(channel);
        key.resize(112, 0);
        key
    }

    #[test]
    fn keys_of_another_layout_are_none() {
        let parsed = Key::parse(&key(9, b"aeron:ipc")).expect("a key");
        assert_eq!((parsed.registration_id, parsed.session_id, parsed.stream_id), (7, -8, 9));
        assert_eq!(parsed.channel, "aeron:ipc");
        assert_eq!(Key::parse(&key(92, &[b'x'; 92])).expect("a key").channel.len(), 92);
        for length in [93, -1, i32::MAX, i32::MIN] {
            assert!(Key::parse(&key(length, b"")).is_none(), "{length}");
        }
        for length in 0..20 {
            assert!(Key::parse(&key(0, b"")[..length]).is_none(), "{length}");
        }
    }

    fn stream(positions: &[(PositionKind, i64)]) -> StreamPositions {
        let positions = positions.iter().map(|&(kind, value)| StreamPosition {
            kind,
            registration_id: 1,
            owner_id: 5,
            counter_id: 2,
            value,
        });
        StreamPositions {
            session_id: 3,
            stream_id: 4,
            channel: "aeron:ipc".into(),
            positions: positions.collect(),
        }
    }

    #[test]
    fn backlog_is_the_slowest_and_not_negative() {
        use PositionKind::*;
        let ipc =
            stream(&[(PublisherPosition, 100), (SubscriberPosition, 90), (SubscriberPosition, 40)]);
        assert_eq!(ipc.subscriber_backlog(), Some(60));
        assert_eq!(ipc.sender_backlog(), None);
        let udp = stream(&[
            (PublisherPosition, 100),
            (SenderPosition, 128),
            (ReceiverHighWaterMark, 64),
            (SubscriberPosition, 32),
        ]);
        assert_eq!(udp.sender_backlog(), Some(0));
        assert_eq!(udp.subscriber_backlog(), Some(32));
        assert_eq!(stream(&[(PublisherPosition, 1)]).subscriber_backlog(), None);
        let absurd = stream(&[(PublisherPosition, i64::MAX), (SubscriberPosition, i64::MIN)]);
        assert_eq!(absurd.subscriber_backlog(), Some(i64::MAX));
    }

    #[test]
    fn a_stream_is_printed_as_in_aerons_tool() {
        let stream = stream(&[
            (PositionKind::PublisherLimit, 5),
            (PositionKind::SenderBackPressureEvents, 6),
        ]);
        assert_eq!(
            stream.to_string(),
            "sessionId=3 streamId=4 channel=aeron:ipc : pub-lmt:1:5 snd-bpe:1:6"
        );
    }
}
