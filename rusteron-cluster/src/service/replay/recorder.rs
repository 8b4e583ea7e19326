//! Everything that a service does to the outside, recorded instead of sent.

use std::fmt::{self, Display};
use std::io::IoSlice;

use rusteron_client::{Action, Error, OfferError, Position, Publication};
use rusteron_core::RecordingId;

use crate::codec::{Message, MessageHeader};
use crate::ids::{ClusterSessionId, CorrelationId};
use crate::service::error::TerminationCause;
use crate::service::network::{Claim, Network, SnapshotContent};
use crate::service::session::HEADER_LENGTH;
use crate::service::snapshot_reader::{OnMessage, SnapshotSource};
use crate::service::snapshot_writer::{SnapshotError, SnapshotSink};

/// Bytes of a message that are shown.
const SHOWN: usize = 60;

/// Something that a service did to the outside.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// An answer to a client.
    Answer {
        /// The session of the client.
        session_id: ClusterSessionId,
        /// The bytes of the answer.
        message: Vec<u8>,
    },
    /// A request to close a session.
    SessionClosed {
        /// The session.
        session_id: ClusterSessionId,
    },
    /// A timer that was set.
    TimerScheduled {
        /// The id of the timer.
        correlation_id: CorrelationId,
        /// The deadline in the unit of the cluster's time.
        deadline: i64,
    },
    /// A timer that was cancelled.
    TimerCancelled {
        /// The id of the timer.
        correlation_id: CorrelationId,
    },
    /// A message to the services of the cluster.
    Message(
        /// The bytes of the message.
        Vec<u8>,
    ),
    /// A snapshot of the state, with the open sessions.
    Snapshot {
        /// Length in bytes, of all messages of the snapshot.
        length: usize,
        /// The digest of all messages of the snapshot.
        digest: u64,
    },
    /// An error that a container would record.
    Error(
        /// The text of the error.
        String,
    ),
    /// The end of the container.
    End(
        /// The text of the cause.
        String,
    ),
}

impl Effect {
    /// The effect of a message to the consensus module. `None` for acknowledgements.
    pub(super) fn decode(message: &[u8]) -> Option<Self> {
        let (header, body) = MessageHeader::split(message)?;
        Some(match Message::decode(header, body)? {
            Message::ScheduleTimer(timer) => Self::TimerScheduled {
                correlation_id: CorrelationId::new(timer.correlation_id),
                deadline: timer.deadline,
            },
            Message::CancelTimer(timer) => {
                Self::TimerCancelled { correlation_id: CorrelationId::new(timer.correlation_id) }
            }
            Message::CloseSession(close) => {
                Self::SessionClosed { session_id: ClusterSessionId::new(close.cluster_session_id) }
            }
            Message::SessionMessageHeader(_) => {
                Self::Message(message.get(HEADER_LENGTH..)?.to_vec())
            }
            _ => return None,
        })
    }

    pub(super) fn answer(session_id: ClusterSessionId, parts: &[IoSlice<'_>]) -> Self {
        Self::Answer { session_id, message: parts.iter().flat_map(|part| part.to_vec()).collect() }
    }

    /// Adds the effect to a digest.
    pub(super) fn digest(&self, digest: &mut Digest) {
        match self {
            Self::Answer { session_id, message } => {
                digest.add(1, &session_id.get().to_le_bytes());
                digest.add(2, message);
            }
            Self::SessionClosed { session_id } => digest.add(3, &session_id.get().to_le_bytes()),
            Self::TimerScheduled { correlation_id, deadline } => {
                digest.add(4, &correlation_id.get().to_le_bytes());
                digest.add(5, &deadline.to_le_bytes());
            }
            Self::TimerCancelled { correlation_id } => {
                digest.add(6, &correlation_id.get().to_le_bytes());
            }
            Self::Message(message) => digest.add(7, message),
            Self::Snapshot { digest: content, .. } => digest.add(8, &content.to_le_bytes()),
            Self::Error(text) => digest.add(9, text.as_bytes()),
            Self::End(text) => digest.add(10, text.as_bytes()),
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer { session_id, message } => {
                write!(f, "answer to session {session_id}: {}", Shown(message))
            }
            Self::SessionClosed { session_id } => write!(f, "close of session {session_id}"),
            Self::TimerScheduled { correlation_id, deadline } => {
                write!(f, "timer {correlation_id} at {deadline}")
            }
            Self::TimerCancelled { correlation_id } => {
                write!(f, "timer {correlation_id} cancelled")
            }
            Self::Message(message) => write!(f, "message to services: {}", Shown(message)),
            Self::Snapshot { length, digest } => {
                write!(f, "snapshot of {length} bytes with digest {digest:016x}")
            }
            Self::Error(text) => write!(f, "error: {text}"),
            Self::End(text) => write!(f, "end: {text}"),
        }
    }
}

/// Bytes as text, up to a length.
pub(super) struct Shown<'a>(pub(super) &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(SHOWN)];
        write!(f, "{} bytes \"{}\"", self.0.len(), shown.escape_ascii())?;
        if shown.len() < self.0.len() { f.write_str("…") } else { Ok(()) }
    }
}

/// A digest that is the same in all processes and releases: FNV-1a of 64 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digest(u64);

impl Digest {
    pub(super) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(super) fn add(&mut self, kind: u8, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes();
        for byte in [kind].iter().chain(&length).chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    pub(super) fn value(self) -> u64 {
        self.0
    }
}

/// Length of the longest message, and of the longest fragment, with Aeron's defaults for IPC.
const MAX_SNAPSHOT_MESSAGE_LENGTH: usize = 8 * 1024 * 1024;
const MAX_PAYLOAD_LENGTH: usize = 1408 - 32;

/// A snapshot in memory: its messages, and those that were read.
#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    messages: Vec<Vec<u8>>,
    next: usize,
}

impl Snapshot {
    pub(super) fn push(&mut self, message: &[u8]) {
        self.messages.push(message.to_vec());
    }

    pub(super) fn effect(&self) -> Effect {
        let mut digest = Digest::new();
        self.messages.iter().for_each(|message| digest.add(0, message));
        let length = self.messages.iter().map(Vec::len).sum();
        Effect::Snapshot { length, digest: digest.value() }
    }
}

impl SnapshotSink for Snapshot {
    fn offer(&mut self, message: &[u8]) -> Result<Position, OfferError> {
        check(message.len(), MAX_SNAPSHOT_MESSAGE_LENGTH)?;
        self.push(message);
        Ok(0)
    }

    fn max_message_length(&self) -> usize {
        MAX_SNAPSHOT_MESSAGE_LENGTH
    }

    fn max_payload_length(&self) -> usize {
        MAX_PAYLOAD_LENGTH
    }
}

impl SnapshotSource for Snapshot {
    fn poll(
        &mut self,
        handler: &mut OnMessage<'_>,
        fragment_limit: usize,
    ) -> Result<usize, SnapshotError> {
        let mut count = 0;
        while let Some(message) = self.messages.get(self.next).filter(|_| count < fragment_limit) {
            let action = handler(message);
            if action == Action::Abort {
                break;
            }
            self.next += 1;
            count += 1;
            if action == Action::Break {
                break;
            }
        }
        Ok(count)
    }

    fn is_at_end(&mut self) -> bool {
        self.next == self.messages.len()
    }
}

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

    fn mock_answer(&mut self, session_id: ClusterSessionId, parts: &[IoSlice<'_>]) {
        self.effects.push(Effect::answer(session_id, parts));
    }

    fn record_error(&mut self, error: &dyn Display) {
        self.effects.push(Effect::Error(error.to_string()));
    }

    fn record_snapshot(
        &mut self,
        content: &mut dyn SnapshotContent,
    ) -> Result<RecordingId, SnapshotError> {
        let mut snapshot = Snapshot::default();
        content.write(&mut snapshot)?;
        self.effects.push(snapshot.effect());
        self.snapshot = Some(snapshot);
        Ok(RecordingId::new(0))
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
