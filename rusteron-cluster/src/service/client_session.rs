//! Answering the client of a session.

use std::io::IoSlice;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use rusteron_client::{BufferClaim, OfferError, Position};

use crate::codec;
use crate::ids::{ClusterSessionId, LeadershipTermId};
use crate::service::error::{NotSent, ServiceError, ServiceResult, TerminationCause};
use crate::service::network::Network;
use crate::service::session::{HEADER_LENGTH, SessionInfo};
use crate::service::state::State;
use crate::service::types::Role;
use crate::stream::offer_behind;

/// Attempts of a request to close a session.
const CLOSE_ATTEMPTS: usize = 3;

/// An open session, to answer its client or to close it.
///
/// Only the leader's answers reach the client. Other members' calls return [`Sent::Mocked`], and do
/// nothing. Results therefore differ between members: the state of a service must not depend on
/// them.
///
/// A client that reads too slowly, or has gone, makes offers fail on the leader alone. A loop
/// without an end stops the whole cluster. [`offer_or_close`](Self::offer_or_close) retries up to a
/// deadline, and then closes the session.
///
/// Corresponds to `io.aeron.cluster.service.ClientSession`.
#[must_use]
pub struct ClientSession<'a> {
    info: &'a mut SessionInfo,
    network: &'a mut dyn Network,
    scratch: &'a mut Vec<u8>,
    end: &'a mut Option<TerminationCause>,
    role: Role,
    leadership_term_id: Option<LeadershipTermId>,
    time: i64,
}

/// The outcome of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sent {
    /// The answer is on its way to the client; the position of the stream behind it.
    At(Position),
    /// This member does not lead. The answer went nowhere.
    #[doc(alias = "MOCKED_OFFER")]
    Mocked,
}

impl<'a> ClientSession<'a> {
    pub(crate) fn find(
        state: &'a mut State,
        network: &'a mut dyn Network,
        session_id: ClusterSessionId,
    ) -> Option<Self> {
        let State { sessions, scratch, end, role, leadership_term_id, time, .. } = state;
        Some(Self {
            info: sessions.get_mut(&session_id)?,
            network,
            scratch,
            end,
            role: *role,
            leadership_term_id: *leadership_term_id,
            time: *time,
        })
    }

    /// Offers a message to the client until it is accepted. Asks the cluster to
    /// [close](Self::close) the session if that takes longer than `timeout`, or cannot succeed.
    ///
    /// Blocks for up to `timeout`, which delays all other clients. Does nothing for a session that
    /// is [closing](SessionInfo::is_closing), so a client that has gone delays them once. Members
    /// that do not lead send nothing, and return at once.
    ///
    /// # Errors
    /// [`ServiceError::Terminate`] if the container ends.
    pub fn offer_or_close(&mut self, message: &[u8], timeout: Duration) -> ServiceResult {
        if self.info.is_closing() {
            return Ok(());
        }
        let mut since = None;
        loop {
            match self.offer(message) {
                Ok(_) => return Ok(()),
                // The clock decides about the answer only, never about the state.
                Err(not_sent)
                    if not_sent.is_retryable()
                        && since.get_or_insert_with(Instant::now).elapsed() < timeout => {}
                Err(not_sent) => {
                    let id = self.info.id();
                    let text = format!("session {id} is closed without an answer: {not_sent}");
                    match not_sent.is_retryable() {
                        // The client is no error of the service.
                        true => ::log::warn!("{text}"),
                        false => self.network.record_error(&text),
                    }
                    return self.close().map(drop);
                }
            }
            self.idle()?;
        }
    }

    /// Offers a message to the client, once.
    ///
    /// # Errors
    /// Nothing has been sent. [`OfferError::NotConnected`] also means that the client's channel is
    /// not valid. [`OfferError::MessageTooLong`] counts 32 bytes of header.
    pub fn offer(&mut self, message: &[u8]) -> Result<Sent, NotSent> {
        self.offer_parts(&[IoSlice::new(message)])
    }

    /// Offers one message whose bytes lie in several slices, once. More than seven slices
    /// allocate.
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    pub fn offer_parts(&mut self, parts: &[IoSlice<'_>]) -> Result<Sent, NotSent> {
        if self.role != Role::Leader {
            self.network.mock_answer(self.info.id(), parts);
            return Ok(Sent::Mocked);
        }
        let header = self.header();
        let mut publication = self.info.publication().ok_or(OfferError::NotConnected)?;
        Ok(Sent::At(offer_behind::<8>(&header, &mut publication, parts)?))
    }

    /// Claims a range for a message of `length` bytes to the client, once. The message is written
    /// into it without a copy.
    ///
    /// `length` is at most [`max_claim_length`](SessionInfo::max_claim_length), on all members
    /// alike.
    ///
    /// # Errors
    /// As for [`offer`](Self::offer). [`OfferError::MessageTooLong`] for a longer message. A leader
    /// whose media driver has a smaller MTU than Aeron's default refuses shorter messages, too.
    pub fn try_claim(&mut self, length: usize) -> Result<SessionClaim<'_>, NotSent> {
        let max_message_length = self.info.max_claim_length();
        if length > max_message_length {
            return Err(NotSent::too_long(length, max_message_length));
        }
        if self.role != Role::Leader {
            if self.scratch.len() < length {
                self.scratch.resize(length, 0);
            }
            let bytes = &mut self.scratch[..length];
            // As a claimed range of a publication.
            bytes.fill(0);
            return Ok(SessionClaim::Mocked(MockedClaim {
                bytes,
                session_id: self.info.id(),
                network: self.network,
            }));
        }
        let header = self.header();
        let publication = self.info.publication().ok_or(OfferError::NotConnected)?;
        let mut claim = publication.try_claim(length + HEADER_LENGTH)?;
        claim[..HEADER_LENGTH].copy_from_slice(&header);
        Ok(SessionClaim::Claimed(claim))
    }

    /// Asks the cluster to close the session. Every member's service asks; the leader's request
    /// counts. The session stays open until
    /// [`on_session_close`](crate::ClusteredService::on_session_close).
    ///
    /// Returns `false` if the consensus module did not take the request in three attempts. Call
    /// again then.
    ///
    /// # Errors
    /// [`ServiceError::Terminate`] if the container ends.
    pub fn close(&mut self) -> ServiceResult<bool> {
        if self.info.is_closing() {
            return Ok(true);
        }
        let request = codec::CloseSession { cluster_session_id: self.info.id().get() }.to_bytes();
        for _ in 0..CLOSE_ATTEMPTS {
            if self.network.offer(&[IoSlice::new(&request)]).is_ok() {
                self.info.set_closing(true);
                return Ok(true);
            }
            self.idle()?;
        }
        Ok(false)
    }

    fn idle(&mut self) -> ServiceResult {
        self.network.idle(0).map_err(|cause| {
            *self.end = Some(cause);
            ServiceError::Terminate
        })
    }

    fn header(&self) -> [u8; HEADER_LENGTH] {
        let header = codec::SessionMessageHeader {
            leadership_term_id: LeadershipTermId::number_of(self.leadership_term_id),
            cluster_session_id: self.info.id().get(),
            timestamp: self.time,
        };
        header.to_bytes()
    }
}

impl Deref for ClientSession<'_> {
    type Target = SessionInfo;

    fn deref(&self) -> &SessionInfo {
        self.info
    }
}

rusteron_core::impl_debug!(ClientSession<'_>: info);

/// A range claimed for one message to a client.
///
/// A claim dereferences to the message's bytes. On members that do not lead, the bytes go nowhere.
#[must_use = "dropping a claim aborts it"]
pub enum SessionClaim<'a> {
    #[doc(hidden)]
    Claimed(BufferClaim<'a>),
    #[doc(hidden)]
    Mocked(MockedClaim<'a>),
}

/// A claim of a member that does not lead.
#[doc(hidden)]
#[allow(missing_debug_implementations, reason = "the claim around it has one")]
pub struct MockedClaim<'a> {
    bytes: &'a mut [u8],
    session_id: ClusterSessionId,
    network: &'a mut dyn Network,
}

impl SessionClaim<'_> {
    /// Sends the message.
    ///
    /// # Errors
    /// [`OfferError::Unblocked`] if the claim was held for so long that the media driver has
    /// unblocked its range.
    pub fn commit(self) -> Result<Sent, NotSent> {
        match self {
            Self::Claimed(claim) => Ok(Sent::At(claim.commit()?)),
            Self::Mocked(MockedClaim { bytes, session_id, network }) => {
                network.mock_answer(session_id, &[IoSlice::new(bytes)]);
                Ok(Sent::Mocked)
            }
        }
    }

    /// Aborts the claim.
    pub fn abort(self) {
        if let Self::Claimed(claim) = self {
            claim.abort();
        }
    }
}

impl Deref for SessionClaim<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Claimed(claim) => &claim[HEADER_LENGTH..],
            Self::Mocked(claim) => claim.bytes,
        }
    }
}

impl DerefMut for SessionClaim<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Claimed(claim) => &mut claim[HEADER_LENGTH..],
            Self::Mocked(claim) => claim.bytes,
        }
    }
}

rusteron_core::impl_debug!(SessionClaim<'_>: len());
