//! The archive of a member of a cluster.

use std::process::Command;

use crate::child_process::{folder_of_archives, program_in};
use crate::program::without_settings;

/// The media driver and archive of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberArchive {
    /// `archiving_media_driver` of `rusteron-archive-server`, in a process of its own.
    Rust,
    /// Java's, in the process of the consensus module.
    Java,
}

impl MemberArchive {
    /// Returns the program without arguments, unless the process of the consensus module has both.
    pub fn program(self) -> Option<Command> {
        let program = || {
            program_in(&folder_of_archives(), "archiving_media_driver", "rusteron-archive-server")
        };
        (self == Self::Rust).then(|| without_settings(program()))
    }
}

/// Rust's, unless the variable `RUSTERON_CLUSTER_ARCHIVE` is `java`.
impl Default for MemberArchive {
    fn default() -> Self {
        match std::env::var("RUSTERON_CLUSTER_ARCHIVE").as_deref() {
            Err(_) | Ok("rust") => Self::Rust,
            Ok("java") => Self::Java,
            Ok(other) => panic!("RUSTERON_CLUSTER_ARCHIVE={other}: must be rust or java"),
        }
    }
}
