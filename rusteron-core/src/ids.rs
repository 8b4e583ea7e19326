//! Ids as types of their own, so that the compiler tells a recording from a session.

/// Defines types of ids, each around the integer that messages, files and C have for it:
/// `ids! { /// Documentation. pub RecordingId(i64); }`.
#[doc(hidden)]
#[macro_export]
macro_rules! ids {
    ($($(#[$attribute:meta])* $visibility:vis $name:ident($integer:ty);)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $visibility struct $name($integer);

        impl $name {
            /// Returns the id with this number.
            pub const fn new(number: $integer) -> Self {
                Self(number)
            }

            /// Returns the number of the id.
            pub const fn get(self) -> $integer {
                self.0
            }
        }

        impl ::std::convert::From<$integer> for $name {
            fn from(number: $integer) -> Self {
                Self(number)
            }
        }

        impl ::std::convert::From<$name> for $integer {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = ::std::num::ParseIntError;

            fn from_str(text: &str) -> ::std::result::Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }

        impl ::std::cmp::PartialEq<$integer> for $name {
            fn eq(&self, number: &$integer) -> bool {
                self.0 == *number
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                self.0.fmt(f)
            }
        }

        /// Prints the number alone: logs show whole structures, whose fields name their ids.
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// The id of an archive, which distinguishes it from others on its media driver.
    pub ArchiveId(i64);
    /// The id of a client's control session with an archive.
    pub ControlSessionId(i64);
    /// The id of a request, which the answer and errors about the request repeat, or of a timer of
    /// a cluster, whose event repeats it. Whoever sends the request or schedules the timer chooses
    /// it.
    pub CorrelationId(i64);
    /// The id of a recording in an archive's catalog. An archive counts its recordings from 0.
    pub RecordingId(i64);
    /// The id that an archive gives a replay. It stops the replay, and distinguishes the replay's
    /// image from others.
    ///
    /// ```
    /// # use rusteron_core::ids::ReplaySessionId;
    /// let id = ReplaySessionId::from(3 << 32 | 7);
    /// assert_eq!(id.image_session_id(), 7);
    /// assert_eq!(i64::from(id).to_string(), id.to_string());
    /// ```
    pub ReplaySessionId(i64);
    /// The id of a replication. A client stops the replication with it.
    pub ReplicationId(i64);
}

impl RecordingId {
    /// Returns the id after this one, at which a listing goes on. The highest one stays as it is.
    #[doc(hidden)]
    pub const fn saturating_next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl ReplaySessionId {
    /// Returns the session id of the replay's image, for `Subscription::image_by_session_id`: the
    /// low 32 bits. The upper bits count the archive's replays.
    ///
    /// Corresponds to the conversion to `int32_t` that users of `aeron_archive_start_replay` write.
    #[doc(alias = "aeron_archive_start_replay")]
    pub const fn image_session_id(self) -> i32 {
        self.get() as i32
    }
}
