//! The I/O that the state machine of a container needs.

use std::fmt::Display;
use std::io::IoSlice;
use std::ops::{Deref, DerefMut};

use rusteron_client::{Aeron, BufferClaim, OfferError, Position, Publication};
use rusteron_core::RecordingId;

use crate::ids::ClusterSessionId;
use crate::service::error::TerminationCause;
use crate::service::snapshot_writer::{SnapshotError, SnapshotSink};

/// The outside of a container's state machine. Tests have a scripted one.
pub(crate) trait Network {
    /// Offers a message to the consensus module, once.
    fn offer(&mut self, parts: &[IoSlice<'_>]) -> Result<Position, OfferError>;

    /// Length of the longest message to the consensus module, with its header.
    fn max_message_length(&self) -> usize;

    /// Length of the longest claim, with its header.
    fn max_payload_length(&self) -> usize;

    /// Claims a range for a message to the consensus module, once.
    fn try_claim(&mut self, length: usize) -> Result<Claim<'_>, OfferError>;

    /// Idles if there was no work, and keeps everything but the service alive. An error ends the
    /// container.
    fn idle(&mut self, work_count: usize) -> Result<(), TerminationCause>;

    /// Adds a publication to a client. Waits for the media driver.
    fn add_response_publication(
        &mut self,
        channel: &str,
        stream_id: i32,
    ) -> Result<Publication, rusteron_client::Error>;

    /// Called with each answer of a member that does not lead. The answer goes nowhere.
    fn mock_answer(&mut self, _session_id: ClusterSessionId, _parts: &[IoSlice<'_>]) {}

    /// Counts an error and records its text.
    fn record_error(&mut self, error: &dyn Display);

    /// Records a snapshot, and returns the id of the recording.
    fn record_snapshot(
        &mut self,
        content: &mut dyn SnapshotContent,
    ) -> Result<RecordingId, SnapshotError>;

    /// Returns the id of the Aeron client.
    fn client_id(&self) -> i64;

    /// Returns the Aeron client, if there is one.
    fn aeron(&self) -> Option<&Aeron> {
        None
    }
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

/// The content of a snapshot.
pub(crate) trait SnapshotContent {
    /// Writes all of it.
    fn write(&mut self, sink: &mut dyn SnapshotSink) -> Result<(), SnapshotError>;

    /// Does the service's background work while the archive is awaited, before and after the
    /// content was written.
    fn on_idle(&mut self, network: &mut dyn Network) -> Result<(), TerminationCause>;
}
