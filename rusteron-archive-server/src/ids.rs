//! Ids. Messages, files, counters and the Aeron client have the same kind of number for all of
//! them, so each kind of id is a type of its own here, and becomes a number only there.

use std::fmt;

pub(crate) use rusteron_core::ids::{
    ArchiveId, ControlSessionId, CorrelationId, RecordingId, ReplaySessionId, ReplicationId,
};

/// Stands for no id in messages and answers.
pub(crate) const NULL_ID: i64 = -1;

rusteron_core::ids! {
    /// A recording's id in the catalog of the archive that a replication copies from.
    pub(crate) SourceRecordingId(i64);
    /// The running number of a replay.
    pub(crate) ReplayId(i64);
    /// The registration id of an Aeron resource: what clients see as subscription id.
    pub(crate) RegistrationId(i64);
    /// The id of a replication's session with its source.
    pub(crate) SourceSessionId(i64);
    /// The id that the source of a replication has for its replay.
    pub(crate) SourceReplayId(i64);
    /// Names the order for a subscription until there is a registration id.
    pub(crate) Ticket(i64);
    /// The id that the driver has for an image: of a client's requests, or of a stream to record.
    pub(crate) ImageId(i64);
}

/// Stands for a session in requests for a replay. Whoever knows it may request the replay, so its
/// `Debug` hides the number: log lines show whole structs.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ReplayToken(i64);

impl ReplayToken {
    /// Returns the token of a message, in which -1 stands for none.
    pub(crate) fn of(value: i64) -> Option<Self> {
        (value != NULL_ID).then_some(Self(value))
    }

    pub(crate) const fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Debug for ReplayToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("secret")
    }
}

impl ReplayId {
    /// Returns the id by which clients know this replay, whose publication has this session id.
    pub(crate) fn session_id(self, publication_session: i32) -> ReplaySessionId {
        ReplaySessionId::new((self.get() << 32) | i64::from(publication_session as u32))
    }
}
