//! Settings of contexts, and their environment variables.

use std::ffi::OsStr;
use std::fmt::Display;
use std::ops::RangeInclusive;
#[cfg(feature = "service")]
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rusteron_core::scan;

use crate::error::ClusterError;

/// A parsed value, or a text that says which values are accepted.
pub(crate) type Parsed<T> = std::result::Result<T, String>;

/// Makes a context from the table of its settings: the structure, Aeron's defaults, setters, getters
/// and `from_env`. A setting has the name of its setter, its own name, its kind, its default, and
/// maybe a variable with a parser and a check of its values. The first block has fields without a
/// plain setter and getter.
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        $context:ident { $($other:ident: $other_type:ty = $other_default:expr;)* }

        $(
            $(#[$doc:meta])*
            $set:ident, $get:ident: $kind:ident $(($type:ty))? = $default:expr
                $(, $name:literal => $parse:expr)? $(, check $check:expr)?;
        )+
    ) => {
        $(#[$attribute])*
        #[derive(Clone)]
        pub struct $context {
            $($get: $crate::settings::field!($kind $(($type))?),)+
            $(pub(crate) $other: $other_type,)*
        }

        impl $context {
            /// Returns Aeron's defaults. Reads no environment variables.
            pub fn new() -> Self {
                Self { $($get: $default,)+ $($other: $other_default,)* }
            }

            /// Returns Aeron's defaults, changed by environment variables:
            ///
            /// | Variable | Setting |
            /// |---|---|
            $($(#[doc = concat!(
                "| `", $name, "` | [`", stringify!($set), "`](Self::", stringify!($set), ") |"
            )])?)+
            ///
            /// The names are those of Java's properties. Durations are written `500ms` or `5s`, or in
            /// nanoseconds; lengths in bytes, or `64k` or `1m`. An empty variable counts as absent. The
            /// media driver's directory comes from `AERON_DIR`, as always.
            /// [`rusteron_client::load_properties`] sets variables from properties in Java's format.
            ///
            /// # Errors
            /// [`InvalidArgument`](crate::ClusterErrorKind::InvalidArgument) for a variable that cannot
            /// be parsed or is out of range, with its name, its value, and the accepted values.
            pub fn from_env() -> $crate::error::Result<Self> {
                Self::from_variables(|name| std::env::var_os(name))
            }

            fn from_variables(
                variable: impl Fn(&str) -> Option<std::ffi::OsString>,
            ) -> $crate::error::Result<Self> {
                let mut context = Self::new();
                $($(if let Some(value) = variable($name).filter(|value| !value.is_empty()) {
                    context.$get = ($parse)(&value).map_err(|accepted: String| {
                        $crate::settings::invalid($name, &value, &accepted)
                    })?;
                })?)+
                $(
                    // Aeron's defaults pass their checks, so a refused value is the variable's.
                    let _name = [$($name,)? stringify!($get)][0];
                    $(($check)(_name, &context.$get)?;)?
                )+
                Ok(context)
            }

            #[cfg(test)]
            const VARIABLES: &'static [&'static str] = &[$($($name,)?)+];

            $(
                $(#[$doc])*
                pub fn $set(
                    &mut self,
                    value: $crate::settings::argument!($kind $(($type))?),
                ) -> $crate::error::Result<&mut Self> {
                    let value: $crate::settings::field!($kind $(($type))?) =
                        $crate::settings::stored!($kind, value);
                    $(($check)(stringify!($get), &value)?;)?
                    self.$get = value;
                    Ok(self)
                }

                #[doc = concat!(
                    "Returns the value that [`", stringify!($set), "`](Self::", stringify!($set),
                    ") sets."
                )]
                pub fn $get(&self) -> $crate::settings::returned!($kind $(($type))?) {
                    $crate::settings::lent!($kind, self.$get)
                }
            )+
        }

        /// As [`new`](Self::new).
        impl Default for $context {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}

// The kinds of settings: a type that is `Copy`, one that is lent, one that may be absent, texts and paths.
macro_rules! field {
    (text) => { String };
    (path) => { std::path::PathBuf };
    (optional_path) => { Option<std::path::PathBuf> };
    (optional($type:ty)) => { Option<$type> };
    ($kind:ident($type:ty)) => { $type };
}

macro_rules! argument {
    (text) => { impl Into<String> };
    (path) => { impl Into<std::path::PathBuf> };
    (optional_path) => { impl Into<std::path::PathBuf> };
    ($kind:ident($type:ty)) => { $type };
}

macro_rules! stored {
    (text, $value:ident) => {
        $value.into()
    };
    (path, $value:ident) => {
        $value.into()
    };
    (optional_path, $value:ident) => {
        Some($value.into())
    };
    (optional, $value:ident) => {
        Some($value)
    };
    ($kind:ident, $value:ident) => {
        $value
    };
}

macro_rules! returned {
    (text) => { &str };
    (path) => { &std::path::Path };
    (optional_path) => { Option<&std::path::Path> };
    (optional($type:ty)) => { Option<&$type> };
    (reference($type:ty)) => { &$type };
    (value($type:ty)) => { $type };
}

macro_rules! lent {
    (value, $value:expr) => {
        $value
    };
    (optional_path, $value:expr) => {
        $value.as_deref()
    };
    (optional, $value:expr) => {
        $value.as_ref()
    };
    ($kind:ident, $value:expr) => {
        &$value
    };
}

pub(crate) use {argument, field, lent, returned, settings, stored};

pub(crate) fn invalid(name: &str, value: &OsStr, accepted: &str) -> ClusterError {
    ClusterError::invalid(format!("{name}={}: {accepted}", value.to_string_lossy()))
}

/// Returns the check of a setting that refuses a value outside a range.
#[cfg(feature = "service")]
pub(crate) fn within<T: PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&str, &T) -> crate::error::Result<()> {
    move |name, value| match range.contains(value) {
        true => Ok(()),
        false => Err(ClusterError::invalid(format!("{name}={value}: {}", accepted(&range)))),
    }
}

fn accepted<T: Display>(range: &RangeInclusive<T>) -> String {
    format!("from {} to {}", range.start(), range.end())
}

pub(crate) fn text(value: &OsStr) -> Parsed<String> {
    value.to_str().map(str::to_owned).ok_or_else(|| "must be UTF-8".to_owned())
}

#[cfg(feature = "service")]
pub(crate) fn path(value: &OsStr) -> Parsed<PathBuf> {
    Ok(PathBuf::from(value))
}

/// Parses a value of a type that says itself which texts it accepts.
pub(crate) fn parsed<T: FromStr<Err: Display>>(value: &OsStr) -> Parsed<T> {
    text(value)?.parse().map_err(|error: T::Err| error.to_string())
}

pub(crate) fn number<T: FromStr + PartialOrd + Display>(
    range: RangeInclusive<T>,
) -> impl Fn(&OsStr) -> Parsed<T> {
    move |value| {
        let number = text(value)?.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| accepted(&range))
    }
}

/// Parses the id of a stream, which can be any number of 32 bits.
pub(crate) fn stream_id(value: &OsStr) -> Parsed<i32> {
    number(i32::MIN..=i32::MAX)(value)
}

/// Parses a length: a number of bytes, or a number with `k`, `m` or `g`.
#[cfg(feature = "service")]
pub(crate) fn length(range: RangeInclusive<usize>) -> impl Fn(&OsStr) -> Parsed<usize> {
    move |value| {
        let length = scan::size(&text(value)?).and_then(|length| length.try_into().ok());
        length.filter(|length| range.contains(length)).ok_or_else(|| accepted(&range))
    }
}

/// Parses a duration: a number with `ns`, `us`, `ms` or `s`, or nanoseconds.
pub(crate) fn duration(value: &OsStr) -> Parsed<Duration> {
    let accepted = || "a duration such as 500ms or 5s".to_owned();
    scan::duration(&text(value)?).ok_or_else(accepted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_long_durations_are_refused() {
        assert_eq!(duration("7us".as_ref()), Ok(Duration::from_micros(7)));
        for text in ["9223372037s", "18446744073709551615s"] {
            assert!(duration(text.as_ref()).is_err(), "{text}");
        }
    }

    #[cfg(feature = "service")]
    #[test]
    fn too_long_lengths_are_refused() {
        let length = |text: &str| length(1..=usize::MAX)(text.as_ref());
        assert_eq!(length("7k"), Ok(7 << 10));
        for text in ["18446744073709551615", "18446744073709551615k"] {
            assert!(length(text).is_err(), "{text}");
        }
    }
}
