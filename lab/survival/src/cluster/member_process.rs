//! The processes of a member.

use clap::ValueEnum;

/// The processes of a member, in the order of their start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Process {
    /// Our media driver, and our archive
    Driver,
    /// Java's consensus module, and Java's archive
    Module,
    /// A ledger
    Service,
}

impl Process {
    pub(super) const ALL: [Self; 3] = [Self::Driver, Self::Module, Self::Service];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Module => "module",
            Self::Service => "service",
        }
    }
}
