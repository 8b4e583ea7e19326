//! A claimed range of the ingress.

use std::fmt;
use std::ops::{Deref, DerefMut};

use rusteron_client::{BufferClaim, OfferError, Position};

use crate::client::session_header::SessionHeader;

/// A range of the ingress claimed for one message, which is written into it without a copy.
///
/// A claim dereferences to the message's bytes, behind the session header. Otherwise as
/// [`rusteron_client::BufferClaim`]: [`commit`](Self::commit) sends the message, and dropping the
/// claim aborts it. The slice starts at a multiple of 32 bytes in memory.
///
/// ```
/// use rusteron_client::OfferError;
/// use rusteron_cluster::ClusterClient;
///
/// fn send(cluster: &mut ClusterClient, value: u64) -> Result<(), OfferError> {
///     let mut claim = cluster.try_claim(8)?;
///     claim.copy_from_slice(&value.to_le_bytes());
///     claim.commit()?;
///     Ok(())
/// }
/// ```
#[must_use = "dropping a claim aborts it"]
pub struct IngressClaim<'a> {
    claim: BufferClaim<'a>,
}

impl<'a> IngressClaim<'a> {
    /// `claim` is at least as long as the header.
    #[inline]
    pub(crate) fn new(mut claim: BufferClaim<'a>, header: &SessionHeader) -> Self {
        claim[..SessionHeader::LENGTH].copy_from_slice(header.as_bytes());
        Self { claim }
    }

    /// Sends the message, and returns the position of the ingress after it.
    ///
    /// Does not block, does not allocate.
    ///
    /// # Errors
    /// [`OfferError::Unblocked`] if the claim was held for so long that the media driver has
    /// unblocked its range. The cluster does not get the message.
    #[inline]
    pub fn commit(self) -> Result<Position, OfferError> {
        self.claim.commit()
    }

    /// Aborts the claim: the cluster skips its range. Dropping the claim does the same.
    #[inline]
    pub fn abort(self) {
        self.claim.abort();
    }
}

impl Deref for IngressClaim<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.claim[SessionHeader::LENGTH..]
    }
}

impl DerefMut for IngressClaim<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.claim[SessionHeader::LENGTH..]
    }
}

impl fmt::Debug for IngressClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IngressClaim").field("length", &self.len()).finish_non_exhaustive()
    }
}
