//! A network that sends nothing, and records what a service does.

use std::fmt::Display;
use std::io::IoSlice;

use rusteron_client::{Error, OfferError, Position, Publication};

use crate::service::error::TerminationCause;
use crate::service::message_claim::Claim;
use crate::service::network::{Network, SnapshotContent};
use crate::service::replay::effect::Effect;
use crate::service::replay::snapshot::{MAX_PAYLOAD_LENGTH, Snapshot};
use crate::service::snapshot_writer::SnapshotError;

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

fn check(length: usize, max_message_length: usize) -> Result<(), OfferError> {
    if length > max_message_length {
        return Err(OfferError::MessageTooLong { length, max_message_length });
    }
    Ok(())
}

impl Network for Recorder {
    fn offer(&mut self, parts: &[IoSlice<'_>]) -> Result<Position, OfferError> {
        let message: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        check(message.len(), MAX_MESSAGE_LENGTH)?;
        self.effects.extend(Effect::decode(&message));
        Ok(0)
    }

    fn max_message_length(&self) -> usize {
        MAX_MESSAGE_LENGTH
    }

    fn max_payload_length(&self) -> usize {
        MAX_PAYLOAD_LENGTH
    }

    fn try_claim(&mut self, length: usize) -> Result<Claim<'_>, OfferError> {
        // A claim is one fragment.
        check(length, MAX_PAYLOAD_LENGTH)?;
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

    fn record_snapshot(&mut self, content: &mut dyn SnapshotContent) -> Result<i64, SnapshotError> {
        let mut snapshot = Snapshot::default();
        content.write(&mut snapshot)?;
        self.effects.push(snapshot.effect());
        self.snapshot = Some(snapshot);
        Ok(0)
    }

    fn client_id(&self) -> i64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_fit_one_fragment_offers_need_not() {
        let mut recorder = Recorder::default();
        let too_long = |length, max_message_length| {
            Some(OfferError::MessageTooLong { length, max_message_length })
        };
        assert_eq!(recorder.try_claim(1376).err(), None);
        assert_eq!(recorder.try_claim(1377).err(), too_long(1377, 1376));
        assert_eq!(recorder.offer(&[IoSlice::new(&[0; 16 * 1024])]).err(), None);
        let error = recorder.offer(&[IoSlice::new(&[0; 16 * 1024 + 1])]).err();
        assert_eq!(error, too_long(16 * 1024 + 1, 16 * 1024));
    }
}
