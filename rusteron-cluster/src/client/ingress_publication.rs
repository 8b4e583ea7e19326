//! The publication to a cluster, and claims on it.

use std::io::IoSlice;
use std::ops::{Deref, DerefMut};
use std::{fmt, mem};

use rusteron_client::{
    Aeron, AnyPublication, AsChannel, BufferClaim, Error, ErrorKind, ExclusivePublication,
    OfferError, Position, Publication, Publisher, Registration, UncheckedChannel,
};

use crate::channel::IngressChannel;
use crate::client::session_header::SessionHeader;

/// The most parts that are offered in several fragments without allocating.
const PARTS_ON_STACK: usize = 16;

/// Offers the parts of a message behind a header.
#[inline]
pub(crate) fn offer_parts(
    publication: &mut AnyPublication,
    header: &[u8],
    parts: &[IoSlice<'_>],
) -> Result<Position, OfferError> {
    if parts.len() < PARTS_ON_STACK {
        let mut all = [IoSlice::new(&[]); PARTS_ON_STACK];
        all[0] = IoSlice::new(header);
        // `IoSlice` is `Copy`, but its lifetime is that of the array.
        for (target, part) in all[1..].iter_mut().zip(parts) {
            *target = IoSlice::new(part);
        }
        return publication.offer_parts(&all[..=parts.len()]);
    }
    offer_many_parts(publication, header, parts)
}

#[cold]
fn offer_many_parts(
    publication: &mut AnyPublication,
    header: &[u8],
    parts: &[IoSlice<'_>],
) -> Result<Position, OfferError> {
    let mut all = Vec::with_capacity(parts.len() + 1);
    all.push(IoSlice::new(header));
    all.extend(parts.iter().map(|part| IoSlice::new(part)));
    publication.offer_parts(&all)
}

/// Sends a message of the protocol in one fragment.
pub(crate) fn send(
    publication: &mut AnyPublication,
    length: usize,
    encode: impl FnOnce(&mut [u8]) -> Option<()>,
) -> Result<Position, OfferError> {
    let mut claim = publication.try_claim(length)?;
    // The claim is as long as the message.
    let encoded = encode(&mut claim);
    debug_assert!(encoded.is_some());
    claim.commit()
}

/// The stream and kind of publications to the cluster.
#[derive(Debug, Clone)]
pub(crate) struct IngressStream {
    pub(crate) stream_id: i32,
    pub(crate) is_exclusive: bool,
}

/// A publication that is being added, or has been added, or could not be added yet.
#[derive(Debug)]
pub(crate) enum PendingIngress {
    /// Not requested yet, or the last request failed for the moment.
    Idle,
    Exclusive(Registration<ExclusivePublication>),
    Shared(Registration<Publication>),
    Added(Box<AnyPublication>),
}

impl PendingIngress {
    /// Requests the publication if necessary. Returns whether it has been added.
    pub(crate) fn poll(
        &mut self,
        aeron: &Aeron,
        channel: &IngressChannel,
        stream: &IngressStream,
    ) -> Result<bool, Error> {
        if matches!(self, Self::Idle) {
            *self = match channel {
                IngressChannel::Uri(uri) => Self::request(aeron, uri, stream)?,
                IngressChannel::Named(text) => {
                    Self::request(aeron, UncheckedChannel(text), stream)?
                }
            };
        }
        let added = match self {
            Self::Idle => Ok(None),
            Self::Exclusive(adding) => adding.poll().map(|added| added.map(AnyPublication::from)),
            Self::Shared(adding) => adding.poll().map(|added| added.map(AnyPublication::from)),
            Self::Added(_) => return Ok(true),
        };
        match added {
            Ok(None) => Ok(false),
            Ok(Some(publication)) => {
                *self = Self::Added(Box::new(publication));
                Ok(true)
            }
            Err(error) => {
                // The next poll requests it again, if the caller polls again.
                *self = Self::Idle;
                Err(error)
            }
        }
    }

    fn request(
        aeron: &Aeron,
        channel: impl AsChannel,
        stream: &IngressStream,
    ) -> Result<Self, Error> {
        Ok(if stream.is_exclusive {
            Self::Exclusive(aeron.async_add_exclusive_publication(channel, stream.stream_id)?)
        } else {
            Self::Shared(aeron.async_add_publication(channel, stream.stream_id)?)
        })
    }

    /// Returns the publication, once, after it has been added.
    pub(crate) fn take(&mut self) -> Option<AnyPublication> {
        match mem::replace(self, Self::Idle) {
            Self::Added(publication) => Some(*publication),
            other => {
                *self = other;
                None
            }
        }
    }

    pub(crate) fn added(&mut self) -> Option<&mut AnyPublication> {
        match self {
            Self::Added(publication) => Some(publication),
            _ => None,
        }
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

impl fmt::Debug for IngressClaim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IngressClaim").field("length", &self.len()).finish_non_exhaustive()
    }
}
