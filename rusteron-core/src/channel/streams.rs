//! Streams that a program's settings must keep apart.

use crate::channel::{ChannelText, Media};

/// A stream of a program, by the two settings that choose it.
#[derive(Debug, Clone, Copy)]
pub struct ChosenStream<'a> {
    /// Name and value of the channel's setting. An empty value is a channel that is not set.
    pub channel: (&'a str, &'a str),
    /// Name and value of the stream id's setting.
    pub stream_id: (&'a str, i32),
}

impl ChosenStream<'_> {
    /// Returns whether messages of the two arrive in one place. A channel whose place the operating
    /// system or the archive chooses meets no other.
    fn meets(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|stream| ChannelText::new(stream.channel.1));
        let [session, other_session] =
            [&one, &two].map(|channel| channel.values("session-id").next());
        self.stream_id.1 == other.stream_id.1
            && destination(&one).is_some_and(|it| Some(it) == destination(&two))
            && (session.is_none() || other_session.is_none() || session == other_session)
    }
}

/// Returns a text for each two streams whose messages would arrive in one place.
///
/// ```
/// use rusteron_core::channel::{ChosenStream, clashes};
///
/// let stream = |channel, stream_id| ChosenStream { channel, stream_id };
/// let ipc = "aeron:ipc?term-length=64k";
/// let requests = stream(("request_channel", "aeron:ipc"), ("request_stream_id", 10));
/// let answers = stream(("answer_channel", ipc), ("answer_stream_id", 10));
/// assert_eq!(
///     clashes(&[requests, answers]),
///     ["request_stream_id=10 (request_channel=aeron:ipc) and answer_stream_id=10 \
///       (answer_channel=aeron:ipc?term-length=64k) are one stream; set different stream ids"]
/// );
/// let answers = stream(("answer_channel", ipc), ("answer_stream_id", 20));
/// assert_eq!(clashes(&[requests, answers]).len(), 0);
/// ```
pub fn clashes(streams: &[ChosenStream<'_>]) -> Vec<String> {
    let mut clashes = Vec::new();
    for (index, one) in streams.iter().enumerate() {
        for two in streams[index + 1..].iter().filter(|two| one.meets(two)) {
            let [one, two] = [one, two].map(|it| {
                let ((channel_name, channel), (name, id)) = (it.channel, it.stream_id);
                format!("{name}={id} ({channel_name}={channel})")
            });
            clashes.push(format!("{one} and {two} are one stream; set different stream ids"));
        }
    }
    clashes
}

/// Returns where the messages of a channel arrive: an empty text for the media driver's own
/// memory, and otherwise an address.
fn destination(channel: &ChannelText<'_>) -> Option<String> {
    if channel.values("control-mode").any(|mode| mode == "response") {
        return None;
    }
    if channel.media() == Some(Media::Ipc) {
        return Some(String::new());
    }
    let endpoint = channel.values("endpoint").next()?;
    let is_chosen = !endpoint.ends_with(":0");
    is_chosen.then(|| endpoint.replace("localhost:", "127.0.0.1:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_meet_at_one_destination() {
        let meet = |one, two| {
            let stream = |channel| ChosenStream { channel: ("", channel), stream_id: ("", 1) };
            stream(one).meets(&stream(two)) && stream(two).meets(&stream(one))
        };
        for (one, two) in [
            ("aeron:ipc", "aeron:ipc?alias=a"),
            ("aeron:ipc?session-id=1", "aeron:ipc"),
            ("aeron:udp?endpoint=localhost:8010", "aeron:udp?mtu=8k|endpoint=127.0.0.1:8010"),
        ] {
            assert!(meet(one, two), "{one} {two}");
        }
        for (one, two) in [
            ("", ""),
            ("aeron:ipc", "aeron:udp?endpoint=localhost:8010"),
            ("aeron:ipc?session-id=1", "aeron:ipc?session-id=2"),
            ("aeron:ipc?control-mode=response", "aeron:ipc"),
            ("aeron:udp?endpoint=localhost:8010", "aeron:udp?endpoint=localhost:8011"),
            ("aeron:udp?endpoint=localhost:0", "aeron:udp?endpoint=localhost:0"),
            ("aeron:udp", "aeron:udp?control-mode=dynamic|control=localhost:8010"),
        ] {
            assert!(!meet(one, two), "{one} {two}");
        }
    }
}
