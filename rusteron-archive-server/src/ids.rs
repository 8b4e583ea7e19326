//! Ids. Messages, files, counters and the Aeron client have the same kind of number for all of
//! them, so each kind of id is a type of its own here, and becomes a number only there.

use std::fmt;

/// Stands for no id in messages and answers.
pub(crate) const NULL_ID: i64 = -1;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(i64);

        impl $name {
            pub(crate) const fn new(value: i64) -> Self {
                Self(value)
            }

            pub(crate) const fn get(self) -> i64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.get().fmt(f)
            }
        }

        /// Prints the number alone, because log lines show whole structs.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        /// Tests write ids as literals.
        #[cfg(any(test, fuzzing))]
        impl From<i64> for $name {
            fn from(value: i64) -> Self {
                Self(value)
            }
        }

        #[cfg(any(test, fuzzing))]
        impl PartialEq<i64> for $name {
            fn eq(&self, other: &i64) -> bool {
                self.0 == *other
            }
        }
    )*};
}

ids! {
    /// A recording's id in the catalog.
    RecordingId;
    /// A recording's id in the catalog of the archive that a replication copies from.
    SourceRecordingId;
    /// A control session's id, as clients see it.
    SessionId;
    /// A replication's id, as clients see it. It comes from the same sequence as those of sessions.
    ReplicationId;
    /// The running number of a replay.
    ReplayId;
    /// A replay's id, as clients see it: its number, and the session id of its publication.
    ReplaySessionId;
    /// The registration id of an Aeron resource: what clients see as subscription id.
    RegistrationId;
    /// The id of a replication's session with its source.
    SourceSessionId;
    /// The id that the source of a replication has for its replay.
    SourceReplayId;
    /// Names the order for a subscription until there is a registration id.
    Ticket;
    /// The id that the driver has for an image: of a client's requests, or of a stream to record.
    ImageId;
    /// A client's id of a request, which the answer repeats.
    CorrelationId;
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

impl RecordingId {
    pub(crate) const fn saturating_next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl ReplaySessionId {
    pub(crate) fn of(replay: ReplayId, publication_session: i32) -> Self {
        Self((replay.get() << 32) | i64::from(publication_session as u32))
    }

    pub(crate) fn publication_session(self) -> i32 {
        self.0 as i32
    }
}
