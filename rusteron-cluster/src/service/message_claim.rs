//! Claimed ranges of a service.

use std::io::IoSlice;
use std::ops::{Deref, DerefMut};

use rusteron_client::BufferClaim;

use crate::service::error::NotSent;
use crate::service::network::Network;
use crate::service::session::HEADER_LENGTH;

/// A range claimed for one message to the services of the cluster.
///
/// A claim dereferences to the message's bytes. Commit it: dropping a claim aborts it, and the
/// message is lost on this member only.
#[must_use = "dropping a claim aborts it"]
pub struct MessageClaim<'a> {
    claim: Claim<'a>,
}

/// A range for a message to the consensus module.
pub(crate) enum Claim<'a> {
    /// In the log buffer of a publication.
    Published(BufferClaim<'a>),
    /// In memory. The network gets the message when the claim is committed.
    Recorded { bytes: Vec<u8>, network: &'a mut dyn Network },
}

impl Deref for Claim<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Published(claim) => claim,
            Self::Recorded { bytes, .. } => bytes,
        }
    }
}

impl DerefMut for Claim<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Published(claim) => claim,
            Self::Recorded { bytes, .. } => bytes,
        }
    }
}

impl<'a> MessageClaim<'a> {
    /// `claim` is at least as long as the header.
    pub(crate) fn new(mut claim: Claim<'a>, header: &[u8; HEADER_LENGTH]) -> Self {
        claim[..HEADER_LENGTH].copy_from_slice(header);
        Self { claim }
    }

    /// Sends the message.
    ///
    /// # Errors
    /// [`OfferError::Unblocked`](rusteron_client::OfferError::Unblocked) if the claim was held for so
    /// long that the media driver has unblocked its range.
    pub fn commit(self) -> Result<(), NotSent> {
        match self.claim {
            Claim::Published(claim) => claim.commit()?,
            Claim::Recorded { bytes, network } => network.offer(&[IoSlice::new(&bytes)])?,
        };
        Ok(())
    }

    /// Aborts the claim.
    pub fn abort(self) {
        if let Claim::Published(claim) = self.claim {
            claim.abort();
        }
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

rusteron_core::impl_debug!(MessageClaim<'_>: len());
