//! The publication to a cluster, and claims on it.

use std::ops::{Deref, DerefMut};

use rusteron_client::{
    Aeron, AnyPublication, BufferClaim, Error, ErrorKind, ExclusivePublication, OfferError,
    Position, Publication, Registration, UncheckedChannel,
};

use crate::client::context::ClusterContext;
use crate::client::session_header::SessionHeader;
use crate::stream::poll_or_request;

/// The stream and kind of publications to the cluster.
#[derive(Debug, Clone)]
pub(crate) struct IngressStream {
    pub(crate) stream_id: i32,
    pub(crate) is_exclusive: bool,
}

impl IngressStream {
    pub(crate) fn new(context: &ClusterContext) -> Self {
        Self {
            stream_id: context.ingress_stream_id(),
            is_exclusive: context.is_ingress_exclusive(),
        }
    }
}

/// A publication that is being added, or has been added, or could not be added yet.
#[derive(Debug, Default)]
pub(crate) struct PendingIngress {
    exclusive: Option<Registration<ExclusivePublication>>,
    shared: Option<Registration<Publication>>,
    pub(crate) added: Option<AnyPublication>,
}

impl PendingIngress {
    /// Requests the publication if necessary. Returns whether it has been added.
    ///
    /// The channel was checked when it was made.
    pub(crate) fn poll(
        &mut self,
        aeron: &Aeron,
        channel: &str,
        stream: &IngressStream,
    ) -> Result<bool, Error> {
        let (channel, id) = (UncheckedChannel(channel), stream.stream_id);
        if self.added.is_none() {
            self.added = if stream.is_exclusive {
                let request = || aeron.async_add_exclusive_publication(channel, id);
                poll_or_request(&mut self.exclusive, request)?.map(AnyPublication::from)
            } else {
                let request = || aeron.async_add_publication(channel, id);
                poll_or_request(&mut self.shared, request)?.map(AnyPublication::from)
            };
        }
        Ok(self.added.is_some())
    }
}

/// Returns whether a request to the media driver may succeed if it is repeated.
pub(crate) fn is_temporary(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ResourceTemporarilyUnavailable
            | ErrorKind::BufferFull
            | ErrorKind::DriverBufferFull
    )
}

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

rusteron_core::impl_debug!(IngressClaim<'_>: len());
