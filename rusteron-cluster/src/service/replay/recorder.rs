//! A network that sends nothing, and records what a service does.

use std::fmt::Display;
use std::io::IoSlice;

use rusteron_client::{Error, OfferError, Position, Publication};

use crate::service::error::TerminationCause;
use crate::service::message_claim::Claim;
use crate::service::network::Network;
use crate::service::replay::effect::Effect;
use crate::service::replay::snapshot::Snapshot;
use crate::service::snapshot_writer::{SnapshotError, SnapshotSink};

/// Length of the longest message to the consensus module, with Aeron's default channel.
const MAX_MESSAGE_LENGTH: usize = 16 * 1024;

/// A network that sends nothing, and records what a service does.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    effects: Vec<Effect>,
    snapshot: Option<Snapshot>,
}

impl Recorder {
    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Returns the effects since the last call.
    pub(super) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Returns the snapshot that was taken since the last call.
    pub(super) fn take_snapshot(&mut self) -> Option<Snapshot> {
        self.snapshot.take()
    }
}

fn check(length: usize) -> Result<(), OfferError> {
    let max_message_length = MAX_MESSAGE_LENGTH;
    if length > max_message_length {
        return Err(OfferError::MessageTooLong { length, max_message_length });
    }
    Ok(())
}

impl Network for Recorder {
    fn offer(&mut self, parts: &[IoSlice<'_>]) -> Result<Position, OfferError> {
        let message: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        check(message.len())?;
        self.effects.extend(Effect::decode(&message));
        Ok(0)
    }

    fn try_claim(&mut self, length: usize) -> Result<Claim<'_>, OfferError> {
        check(length)?;
        Ok(Claim::Recorded { bytes: vec![0; length], network: self })
    }

    fn idle(&mut self, _work_count: usize) -> Result<(), TerminationCause> {
        std::thread::yield_now();
        Ok(())
    }

    fn add_response_publication(
        &mut self,
        _channel: &str,
        _stream_id: i32,
    ) -> Result<Publication, Error> {
        // Only leaders answer, and the service never leads here.
        Err(Error::from(OfferError::NotConnected))
    }

    fn mock_answer(&mut self, session_id: i64, parts: &[IoSlice<'_>]) {
        self.effects.push(Effect::answer(session_id, parts));
    }

    fn record_error(&mut self, error: &dyn Display) {
        self.effects.push(Effect::Error(error.to_string()));
    }

    fn record_snapshot(
        &mut self,
        content: &mut dyn FnMut(&mut dyn SnapshotSink) -> Result<(), SnapshotError>,
    ) -> Result<i64, SnapshotError> {
        let mut snapshot = Snapshot::default();
        content(&mut snapshot)?;
        self.effects.push(snapshot.effect());
        self.snapshot = Some(snapshot);
        Ok(0)
    }

    fn client_id(&self) -> i64 {
        0
    }
}
