//! The header in front of an application's messages.

use crate::codec::{self, MessageHeader};
use crate::ids::{ClusterSessionId, LeadershipTermId};

/// The header in front of every message from a client to a cluster.
///
/// [`ClusterClient`](crate::ClusterClient) writes it itself. Use this type for messages on a
/// publication of your own: offer the header and the message as two parts. After a change of
/// leader, set the new term; the leader drops messages of other terms.
///
/// ```
/// use std::io::IoSlice;
///
/// use rusteron_client::{OfferError, Position, Publication};
/// use rusteron_cluster::SessionHeader;
///
/// fn send(
///     publication: &Publication,
///     header: &SessionHeader,
///     message: &[u8],
/// ) -> Result<Position, OfferError> {
///     publication.offer_parts(&[IoSlice::new(header.as_bytes()), IoSlice::new(message)])
/// }
/// ```
///
/// Corresponds to `io.aeron.cluster.client.IngressSessionDecorator`.
#[doc(alias("IngressSessionDecorator", "SESSION_HEADER_LENGTH"))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionHeader {
    bytes: [u8; Self::LENGTH],
}

/// Offsets behind the message header.
const TERM: usize = MessageHeader::LENGTH;
const SESSION: usize = TERM + size_of::<i64>();

impl SessionHeader {
    /// Length of the header in bytes: 32.
    pub const LENGTH: usize = codec::SessionMessageHeader::LENGTH;

    /// Returns the header of a session's messages in a leader's term.
    pub fn new(leadership_term_id: LeadershipTermId, cluster_session_id: ClusterSessionId) -> Self {
        let timestamp = 0;
        let header = codec::SessionMessageHeader {
            leadership_term_id: leadership_term_id.get(),
            cluster_session_id: cluster_session_id.get(),
            timestamp,
        };
        Self { bytes: header.to_bytes() }
    }

    /// Sets the leader's term.
    pub fn set_leadership_term_id(&mut self, leadership_term_id: LeadershipTermId) {
        self.bytes[TERM..SESSION].copy_from_slice(&leadership_term_id.get().to_le_bytes());
    }

    /// Returns the leader's term.
    pub fn leadership_term_id(&self) -> LeadershipTermId {
        LeadershipTermId::new(self.i64_at::<TERM>())
    }

    /// Returns the id of the session.
    pub fn cluster_session_id(&self) -> ClusterSessionId {
        ClusterSessionId::new(self.i64_at::<SESSION>())
    }

    /// Returns the encoded header.
    #[inline]
    pub fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.bytes
    }

    #[inline]
    fn i64_at<const OFFSET: usize>(&self) -> i64 {
        self.bytes[OFFSET..].first_chunk().copied().map_or(0, i64::from_le_bytes)
    }
}

rusteron_core::impl_debug!(SessionHeader: leadership_term_id(), cluster_session_id());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_codec() {
        let mut header = SessionHeader::new(3.into(), (-7).into());
        for term in [3, i64::MAX, -1] {
            header.set_leadership_term_id(LeadershipTermId::new(term));
            let message = codec::SessionMessageHeader {
                leadership_term_id: term,
                cluster_session_id: -7,
                timestamp: 0,
            };
            assert_eq!(header.as_bytes()[..], message.to_vec());
            assert_eq!(
                (header.leadership_term_id(), header.cluster_session_id()),
                (term.into(), (-7).into())
            );
        }
    }
}
