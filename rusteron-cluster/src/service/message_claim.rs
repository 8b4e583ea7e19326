//! Claimed ranges of a service.

use std::fmt;
use std::ops::{Deref, DerefMut};

use rusteron_client::{BufferClaim, OfferError};

use crate::service::client_session::HEADER_LENGTH;

/// A range claimed for one message to the services of the cluster.
///
/// A claim dereferences to the message's bytes. Commit it: dropping a claim aborts it, and the
/// message is lost on this member only.
#[must_use = "dropping a claim aborts it"]
pub struct MessageClaim<'a> {
    claim: BufferClaim<'a>,
}

impl<'a> MessageClaim<'a> {
    /// `claim` is at least as long as the header.
    pub(crate) fn new(mut claim: BufferClaim<'a>, header: &[u8; HEADER_LENGTH]) -> Self {
        claim[..HEADER_LENGTH].copy_from_slice(header);
        Self { claim }
    }

    /// Sends the message.
    ///
    /// # Errors
    /// [`OfferError::Unblocked`] if the claim was held for so long that the media driver has
    /// unblocked its range.
    pub fn commit(self) -> Result<(), OfferError> {
        self.claim.commit().map(drop)
    }

    /// Aborts the claim.
    pub fn abort(self) {
        self.claim.abort();
    }
}

impl Deref for MessageClaim<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.claim[HEADER_LENGTH..]
    }
}

impl DerefMut for MessageClaim<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.claim[HEADER_LENGTH..]
    }
}

impl fmt::Debug for MessageClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageClaim").field("length", &self.len()).finish_non_exhaustive()
    }
}
