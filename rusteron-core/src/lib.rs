//! The layer below rusteron's crates: what the Aeron client, the media driver, the archive, the cluster and the tools
//! share, and what needs no client.
//!
//! Programs use [`rusteron-client`](https://docs.rs/rusteron-client), which re-exports what they need of this crate.
//! This crate is for those who wrap further C code of Aeron. It may change in every release: the other crates depend on
//! its exact version.
//!
//! | module | holds |
//! |---|---|
//! | [`error`] | errors of calls that may wait, and of the message path |
//! | [`idle`] | idle strategies of loops |
//! | [`ids`](mod@ids) | ids as types of their own |
//! | [`agent`] | agents, their runners and invokers, the shutdown signal |
//! | [`ffi`] | results, texts, arguments and closures of C functions; forks |
//! | [`log_buffer`] | frames, and the atomic steps by which processes share them |
//! | [`channel`] | channel URIs, and the checks before C reads them |
//! | [`cnc`] | a driver's command-and-control file: counters, errors, losses |
//! | [`files`] | files that other processes use, too |
//! | `mark_file` | mark files of archive and cluster, with the feature `mark-file` |
//! | [`own_dirs`] | directories of embedded drivers and archives, and what killed processes leave of them
//! | [`panic`](mod@panic) | panics of user code, caught |
//! | [`printable`] | texts of others, made safe to print |
//! | `program` | exit statuses and output of rusteron's own programs, with the feature `program`
//! | [`sbe`] | messages in SBE, made of tables |
//! | [`scan`] | numbers, sizes and durations, as C reads and writes them |
//! | [`settings`] | texts and ranges of settings, and the settings of contexts |
//! | [`threads`] | bounds that explain why a type stays on its thread |

pub mod agent;
pub mod channel;
pub mod cnc;
mod credentials;
pub mod dir_access;
pub mod error;
pub mod ffi;
pub mod files;
pub mod idle;
pub mod ids;
pub mod log_buffer;
#[cfg(feature = "mark-file")]
pub mod mark_file;
mod named;
mod nearest;
pub mod own_dirs;
pub mod panic;
pub mod printable;
#[cfg(feature = "program")]
pub mod program;
mod properties;
pub mod sbe;
pub mod scan;
pub mod settings;
pub mod threads;
mod version;

pub use credentials::CredentialsSupplier;
pub use error::{Error, ErrorKind, Result};
pub use ids::RecordingId;
pub use nearest::nearest;
pub use properties::{load_properties, load_properties_file};
pub use version::{AERON_VERSION, AeronVersion};

/// Implements `Debug` of errors as `Display`: Rust prints the error that `main` returns by its `Debug`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_display {
    ($($type:ty),+) => {
        $(impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        })+
    };
}

/// Implements `Debug` by some fields and methods of a type: `impl_debug!(Counter: id, value());`. Parameters of the
/// implementation stand in brackets: `impl_debug!([T] Request<T>: id);`.
#[doc(hidden)]
#[macro_export]
macro_rules! impl_debug {
    ($([$($generics:tt)+])? $type:ident $(<$parameter:tt>)? $(: $($name:ident $(($($none:tt)*))?),+)?) => {
        impl $(<$($generics)+>)? ::std::fmt::Debug for $type $(<$parameter>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $($(.field(stringify!($name), &self.$name $(($($none)*))?))+)?
                    .finish_non_exhaustive()
            }
        }
    };
}
