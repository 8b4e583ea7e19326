//! Events of an archive's recordings, for all subscribers.

use rusteron_client::Position;
use rusteron_core::RecordingId;
use rusteron_core::cnc::{i32_at, i64_at};

/// An event of a recording, from the archive's stream of recording events.
///
/// An archive with enabled recording events (Java's: `aeron.archive.recording.events.enabled`)
/// publishes them on a channel and stream of its own. Any client can subscribe.
/// [Signals](crate::RecordingSignal) go to the recording session instead. A subscriber misses the
/// events before it was connected. The archive does not wait for subscribers: under back pressure,
/// events are lost.
///
/// ```no_run
/// use rusteron_archive::{Archive, RecordingEvent};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let aeron = rusteron_client::Aeron::connect(rusteron_client::Context::new()?)?;
/// # let archive = Archive::connect(&aeron, rusteron_archive::ArchiveContext::new()?)?;
/// // What the archive is configured with.
/// let channel = "aeron:udp?control-mode=dynamic|control=localhost:8030|endpoint=localhost:0";
/// let mut subscription = archive.aeron().add_subscription(channel, 30)?;
/// loop {
///     subscription.poll(
///         |message, _header| match RecordingEvent::decode(message) {
///             Some(RecordingEvent::Progress { recording_id, position, .. }) => {
///                 println!("recording {recording_id} is at {position}");
///             }
///             Some(event) => println!("{event:?}"),
///             None => {}
///         },
///         10,
///     )?;
/// }
/// # }
/// ```
#[doc(alias("RecordingEventsAdapter", "RecordingEventsListener", "RecordingEventsPoller"))]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordingEvent {
    /// A publication is being recorded from now on.
    Started {
        /// The recording, which is another one or goes on.
        recording_id: RecordingId,
        /// The position at which this part begins, in bytes of the stream.
        start_position: Position,
        /// The session id of the publication.
        session_id: i32,
        /// The stream id of the publication.
        stream_id: i32,
        /// The channel that the archive was asked to record.
        channel: String,
        /// Source of the publication: an address, or `aeron:ipc`.
        source_identity: String,
    },
    /// More has been recorded.
    Progress {
        /// The recording.
        recording_id: RecordingId,
        /// The position at which the recording begins.
        start_position: Position,
        /// The recorded position.
        position: Position,
    },
    /// A publication is no longer recorded.
    Stopped {
        /// The recording.
        recording_id: RecordingId,
        /// The position at which the recording begins.
        start_position: Position,
        /// The position at which the recording ends.
        stop_position: Position,
    },
}

/// The archive's schema, and the numbers of its messages.
pub(crate) const SCHEMA: u16 = 101;
const STARTED: u16 = 101;
const PROGRESS: u16 = 102;
const STOPPED: u16 = 103;
/// Lengths of a block, number of the message, number and version of the schema.
pub(crate) const HEADER: usize = 8;

impl RecordingEvent {
    /// Decodes an event. Returns `None` for another kind of message, and for a truncated message.
    ///
    /// Does not block. Allocates only for the texts of [`Started`](Self::Started). Texts are ASCII
    /// in the archive's schema; bytes that are not UTF-8 are replaced.
    ///
    /// Has no counterpart in C, whose client has settings for the channel and stream, but reads neither.
    pub fn decode(message: &[u8]) -> Option<Self> {
        let block_length = usize::from(u16_at(message, 0)?);
        if u16_at(message, 4)? != SCHEMA {
            return None;
        }
        let (block, texts) = message.get(HEADER..)?.split_at_checked(block_length)?;
        let recording_id = RecordingId::new(i64_at(block, 0)?);
        let start_position = i64_at(block, 8)?;
        Some(match u16_at(message, 2)? {
            STARTED => {
                let (channel, rest) = text(texts)?;
                let (source_identity, _) = text(rest)?;
                Self::Started {
                    recording_id,
                    start_position,
                    session_id: i32_at(block, 16)?,
                    stream_id: i32_at(block, 20)?,
                    channel,
                    source_identity,
                }
            }
            PROGRESS => {
                Self::Progress { recording_id, start_position, position: i64_at(block, 16)? }
            }
            STOPPED => {
                Self::Stopped { recording_id, start_position, stop_position: i64_at(block, 16)? }
            }
            _ => return None,
        })
    }
}

/// Splits off a text with a length prefix. Returns the text and the rest.
fn text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (text, rest) = text_bytes(bytes)?;
    Some((String::from_utf8_lossy(text).into_owned(), rest))
}

/// As [`text`], without copying.
pub(crate) fn text_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    rest.split_at_checked(length)
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..)?.first_chunk().copied().map(u16::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(template: u16, schema: u16, block: &[u8], texts: &[&[u8]]) -> Vec<u8> {
        let header = [block.len() as u16, template, schema, 14];
        let mut message: Vec<u8> = header.iter().flat_map(|field| field.to_le_bytes()).collect();
        message.extend(block);
        for text in texts {
            message.extend((text.len() as u32).to_le_bytes());
            message.extend(*text);
        }
        message
    }

    fn block(numbers: [i64; 3]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn truncated_event_is_none() {
        let session_and_stream = i64::from(-7_i32 as u32) | 1001 << 32;
        let channel = "aeron:ipc".to_owned();
        let cases = [
            (
                message(101, 101, &block([3, 64, session_and_stream]), &[b"aeron:ipc", b"me\xff"]),
                RecordingEvent::Started {
                    recording_id: RecordingId::new(3),
                    start_position: 64,
                    session_id: -7,
                    stream_id: 1001,
                    channel,
                    source_identity: "me\u{fffd}".to_owned(),
                },
            ),
            (
                message(102, 101, &block([3, 64, 96]), &[]),
                RecordingEvent::Progress {
                    recording_id: RecordingId::new(3),
                    start_position: 64,
                    position: 96,
                },
            ),
            (
                message(103, 101, &block([3, 64, 128]), &[]),
                RecordingEvent::Stopped {
                    recording_id: RecordingId::new(3),
                    start_position: 64,
                    stop_position: 128,
                },
            ),
        ];
        for (message, event) in cases {
            assert_eq!(RecordingEvent::decode(&message), Some(event));
            for end in 0..message.len() {
                assert_eq!(RecordingEvent::decode(&message[..end]), None, "{end}");
            }
        }
        assert_eq!(RecordingEvent::decode(&message(104, 101, &block([3, 64, 128]), &[])), None);
        assert_eq!(RecordingEvent::decode(&message(103, 111, &block([3, 64, 128]), &[])), None);
        let endless = [&message(101, 101, &block([3, 64, 0]), &[])[..], &[0xff; 8]].concat();
        assert_eq!(RecordingEvent::decode(&endless), None);
    }

    #[test]
    fn longer_block_of_later_version() {
        let mut block = block([3, 64, 0]);
        block.extend([9; 8]);
        let event = RecordingEvent::decode(&message(101, 101, &block, &[b"a", b"b"]));
        let Some(RecordingEvent::Started { channel, source_identity, .. }) = event else {
            panic!("{event:?}");
        };
        assert_eq!((&*channel, &*source_identity), ("a", "b"));
    }
}
