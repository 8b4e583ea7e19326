//! Errors of methods that take ownership.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use rusteron_client::Subscription;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::replay_merge::ReplayMerge;

/// The error of starting a merge, with the archive and the subscription.
pub type ReplayMergeError = Returned<(Archive, Subscription)>;

/// The error of ending a merge, with the merge.
pub type ReplayMergeCloseError = Returned<ReplayMerge>;

/// The error of a method that takes ownership, with what it was given.
///
/// The operator `?` converts it to an [`ArchiveError`], and drops what was given.
pub struct Returned<T>(Box<Content<T>>);

struct Content<T> {
    error: ArchiveError,
    /// Never locked: the lock makes the error `Sync`, which general error types need.
    given: Mutex<T>,
}

impl<T> Returned<T> {
    pub(super) fn new(error: ArchiveError, given: T) -> Self {
        Self(Box::new(Content { error, given: Mutex::new(given) }))
    }

    /// Returns the reason.
    ///
    /// Has no counterpart in C, which leaves what it was given to the caller.
    pub fn error(&self) -> &ArchiveError {
        &self.0.error
    }

    fn given(self) -> (ArchiveError, T) {
        let Content { error, given } = *self.0;
        (error, given.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ReplayMergeError {
    /// Returns the reason, and the arguments of
    /// [`ReplayMergeBuilder::start`](crate::ReplayMergeBuilder::start) unchanged.
    ///
    /// Has no counterpart in C, which leaves what it was given to the caller.
    pub fn into_parts(self) -> (ArchiveError, Archive, Subscription) {
        let (error, (archive, subscription)) = self.given();
        (error, archive, subscription)
    }
}

impl ReplayMergeCloseError {
    /// Returns the merge, which has not been ended.
    ///
    /// Has no counterpart in C, which leaves the merge to the caller.
    pub fn into_merge(self) -> ReplayMerge {
        self.given().1
    }
}

impl<T> From<Returned<T>> for ArchiveError {
    fn from(returned: Returned<T>) -> Self {
        returned.0.error
    }
}

impl<T> fmt::Display for Returned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.error(), f)
    }
}

/// Writes the reason, as `Display` does.
impl<T> fmt::Debug for Returned<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T> std::error::Error for Returned<T> {}
