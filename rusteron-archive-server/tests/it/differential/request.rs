//! Kinds of requests, and their bytes.

use super::files::Recording;
use super::protocol::{Field, Int, Long, Names, encode};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    StartRecording,
    /// Until the first image ends, or not.
    StartRecordingUntilEnd,
    StopRecording,
    StopSubscription,
    StopByIdentity,
    Replay,
    BoundedReplay,
    StopReplay,
    StopAllReplays,
    ReplayToken,
    List,
    ListForUri,
    ListOne,
    FindLast,
    ListSubscriptions,
    /// Any of the four that there are.
    Position,
    Extend,
    Truncate,
    Purge,
    PurgeSegments,
    DetachSegments,
    DeleteDetached,
    Attach,
    Migrate,
    /// What a publisher does, not a request.
    Publish,
}

/// A request without the two ids with which each begins.
pub(super) struct Request {
    /// What is requested, for people.
    pub(super) what: String,
    pub(super) template: u16,
    pub(super) fields: Vec<Field>,
    pub(super) text: Option<String>,
    /// What the answer's id names.
    pub(super) names: Option<Names>,
}

impl Request {
    pub(super) fn new(
        template: u16,
        fields: impl IntoIterator<Item = Field>,
        what: String,
    ) -> Self {
        let fields = fields.into_iter().collect();
        Self { what, template, fields, text: None, names: None }
    }

    pub(super) fn with(self, text: &str) -> Self {
        Self { text: Some(text.to_owned()), ..self }
    }

    pub(super) fn giving(self, names: Names) -> Self {
        Self { names: Some(names), ..self }
    }

    pub(super) fn encode(&self, session: i64, correlation_id: i64) -> Vec<u8> {
        let ids = [Long(session), Long(correlation_id)];
        let fields: Vec<_> = ids.into_iter().chain(self.fields.iter().copied()).collect();
        let data: Vec<_> = self.text.iter().map(|text| text.as_bytes()).collect();
        encode(self.template, &fields, &data)
    }
}

/// The values from which a request takes those that it needs. Both archives get the same.
pub(super) struct Values<'a> {
    pub(super) channel: String,
    pub(super) stream: i32,
    pub(super) location: i32,
    pub(super) auto_stop: i32,
    pub(super) recording: i64,
    pub(super) known: Option<&'a Recording>,
    pub(super) position: i64,
    pub(super) length: i64,
    pub(super) io_max: i32,
    pub(super) count: i32,
    pub(super) fragment: &'static str,
    /// Chooses among what one of the archives has.
    pub(super) number: usize,
}

impl Values<'_> {
    pub(super) fn source(&self) -> [Field; 2] {
        [Int(self.stream), Int(self.location)]
    }

    pub(super) fn described(&self) -> String {
        format!("{} stream {} location {}", self.channel, self.stream, self.location)
    }

    /// Picks an id, and says which one it is.
    pub(super) fn pick(&self, ids: &[i64]) -> (usize, i64) {
        match ids.len() {
            known if known == 0 || self.number % 5 == 0 => (0, 12_345),
            known => (1 + self.number % known, ids[self.number % known]),
        }
    }
}

/// The kinds of steps, with their weights.
pub(super) const KINDS: [(Kind, usize); 25] = [
    (Kind::StartRecording, 2),
    (Kind::StartRecordingUntilEnd, 1),
    (Kind::StopRecording, 1),
    (Kind::StopSubscription, 1),
    (Kind::StopByIdentity, 1),
    (Kind::Replay, 2),
    (Kind::BoundedReplay, 1),
    (Kind::StopReplay, 1),
    (Kind::StopAllReplays, 1),
    (Kind::ReplayToken, 1),
    (Kind::List, 1),
    (Kind::ListForUri, 1),
    (Kind::ListOne, 1),
    (Kind::FindLast, 1),
    (Kind::ListSubscriptions, 1),
    (Kind::Position, 1),
    (Kind::Extend, 1),
    (Kind::Truncate, 2),
    (Kind::Purge, 1),
    (Kind::PurgeSegments, 1),
    (Kind::DetachSegments, 2),
    (Kind::DeleteDetached, 1),
    (Kind::Attach, 1),
    (Kind::Migrate, 2),
    (Kind::Publish, 13),
];
