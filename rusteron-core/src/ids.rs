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
    /// The id of a recording in an archive's catalog. An archive counts its recordings from 0.
    pub RecordingId(i64);
}

impl RecordingId {
    /// Returns the id after this one, at which a listing goes on. The highest one stays as it is.
    #[doc(hidden)]
    pub const fn saturating_next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}
