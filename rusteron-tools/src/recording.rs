//! A recording that is active, as the counter of its position describes it.

use rusteron_archive::RecordingId;
use rusteron_core::cnc::{i32_at, i64_at};

use crate::exposition::Labels;

/// The facts in the key and the label of the counter of a recording's position, which any client can write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recording {
    pub(crate) recording_id: RecordingId,
    pub(crate) session_id: i32,
    pub(crate) stream_id: Option<i32>,
    /// The channel without what does not identify the stream, perhaps cut.
    pub(crate) channel: Option<String>,
    /// The address of the publisher, perhaps cut.
    pub(crate) source: Option<String>,
    pub(crate) archive_id: Option<i64>,
}

impl Recording {
    /// Reads the key: recording id, session id, length and text of the source identity, archive id. Stream id and channel
    /// stand in the label only: `rec-pos: RECORDING SESSION STREAM CHANNEL - archiveId=ID`.
    pub(crate) fn of(key: &[u8], label: &str) -> Self {
        const SOURCE: usize = 16;
        let source_end =
            i32_at(key, 12).and_then(|length| usize::try_from(length).ok()?.checked_add(SOURCE));
        let source = source_end.and_then(|end| key.get(SOURCE..end));
        let mut words = label.splitn(5, ' ').skip(3);
        let stream_id = words.next().and_then(|id| id.parse().ok());
        let channel = words.next();
        let channel =
            channel.map(|text| text.rsplit_once(" - archiveId=").map_or(text, |(it, _)| it));
        Self {
            recording_id: i64_at(key, 0).unwrap_or_default().into(),
            session_id: i32_at(key, 8).unwrap_or_default(),
            stream_id,
            channel: channel.map(str::to_owned),
            source: source.map(|text| String::from_utf8_lossy(text).into_owned()),
            archive_id: source_end.and_then(|end| i64_at(key, end)),
        }
    }

    pub(crate) fn labels(self) -> Labels {
        let text = |text: Option<String>| text.unwrap_or_default();
        vec![
            ("archive_id", text(self.archive_id.map(|id| id.to_string()))),
            ("recording_id", self.recording_id.to_string()),
            ("session_id", self.session_id.to_string()),
            ("stream_id", text(self.stream_id.map(|id| id.to_string()))),
            ("channel", text(self.channel)),
            ("source", text(self.source)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source_length: i32, source: &str) -> Vec<u8> {
        let mut key = 3_i64.to_le_bytes().to_vec();
        key.extend((-5_i32).to_le_bytes());
        key.extend(source_length.to_le_bytes());
        key.extend(source.as_bytes());
        key.extend((-7_i64).to_le_bytes());
        key.resize(112, 0);
        key
    }

    #[test]
    fn key_and_label_describe_recording() {
        let key = key(15, "127.0.0.1:40123");
        let label = "rec-pos: 3 -5 10 aeron:ipc?alias=a b - archiveId=-7";
        let expected = Recording {
            recording_id: RecordingId::new(3),
            session_id: -5,
            stream_id: Some(10),
            channel: Some("aeron:ipc?alias=a b".to_owned()),
            source: Some("127.0.0.1:40123".to_owned()),
            archive_id: Some(-7),
        };
        assert_eq!(Recording::of(&key, label), expected);
    }

    #[test]
    fn missing_facts_have_no_label() {
        for length in [-1, 97, i32::MAX] {
            let recording = Recording::of(&key(length, ""), "a b c d");
            assert_eq!((&recording.source, recording.archive_id), (&None, None), "{length}");
            assert_eq!((recording.stream_id, &recording.channel), (None, &None));
            let labels = recording.labels();
            let given: Vec<_> = labels.iter().filter(|(_, text)| !text.is_empty()).collect();
            assert_eq!(given, [&("recording_id", "3".into()), &("session_id", "-5".into())]);
        }
        assert_eq!(Recording::of(&[], "").recording_id, 0);
    }
}
