//! Errors of starting and of ending a merge. Each gives back what the caller had passed.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use rusteron_client::Subscription;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::replay_merge::replay_merge::{Parts, ReplayMerge};

/// The error of ending a merge, with the merge.
#[derive(Debug)]
pub struct ReplayMergeCloseError(Box<Open>);

#[derive(Debug)]
struct Open {
    error: ArchiveError,
    /// As in [`Refused`].
    merge: Mutex<ReplayMerge>,
}

impl ReplayMergeCloseError {
    pub(super) fn new(error: ArchiveError, merge: ReplayMerge) -> Self {
        Self(Box::new(Open { error, merge: Mutex::new(merge) }))
    }

    /// Returns the reason.
    ///
    /// Has no counterpart in C, which leaves the merge to the caller.
    pub fn error(&self) -> &ArchiveError {
        &self.0.error
    }

    /// Returns the merge, which has not been ended.
    ///
    /// Has no counterpart in C, which leaves the merge to the caller.
    pub fn into_merge(self) -> ReplayMerge {
        self.0.merge.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops the merge.
impl From<ReplayMergeCloseError> for ArchiveError {
    fn from(error: ReplayMergeCloseError) -> Self {
        error.0.error
    }
}

impl fmt::Display for ReplayMergeCloseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.error(), f)
    }
}

impl std::error::Error for ReplayMergeCloseError {}

/// The error of starting a merge, with the archive and the subscription.
#[derive(Debug)]
pub struct ReplayMergeError(Box<Refused>);

#[derive(Debug)]
struct Refused {
    error: ArchiveError,
    /// Only `Debug` locks it. The lock makes the error `Sync`, which general error types need.
    parts: Mutex<Parts>,
}

impl ReplayMergeError {
    pub(super) fn new(error: ArchiveError, parts: Parts) -> Self {
        Self(Box::new(Refused { error, parts: Mutex::new(parts) }))
    }

    /// Returns the reason.
    ///
    /// Has no counterpart in C, which leaves what it was given to the caller.
    pub fn error(&self) -> &ArchiveError {
        &self.0.error
    }

    /// Returns the reason, and the arguments of
    /// [`ReplayMergeBuilder::start`](crate::ReplayMergeBuilder::start) unchanged.
    ///
    /// Has no counterpart in C, which leaves what it was given to the caller.
    pub fn into_parts(self) -> (ArchiveError, Archive, Subscription) {
        let Refused { error, parts } = *self.0;
        let Parts { subscription, archive } =
            parts.into_inner().unwrap_or_else(PoisonError::into_inner);
        (error, archive, subscription)
    }
}

/// Drops archive and subscription.
impl From<ReplayMergeError> for ArchiveError {
    fn from(error: ReplayMergeError) -> Self {
        error.into_parts().0
    }
}

impl fmt::Display for ReplayMergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.error(), f)
    }
}

impl std::error::Error for ReplayMergeError {}
