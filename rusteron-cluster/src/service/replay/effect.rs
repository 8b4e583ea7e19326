//! Everything that a service does to the outside.

use std::fmt;
use std::io::IoSlice;

use crate::codec::{self, MessageHeader};
use crate::service::session::HEADER_LENGTH;

/// Bytes of a message that are shown.
const SHOWN: usize = 60;

/// Something that a service did to the outside.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// An answer to a client.
    Answer {
        /// The session of the client.
        session_id: i64,
        /// The bytes of the answer.
        message: Vec<u8>,
    },
    /// A request to close a session.
    SessionClosed {
        /// The session.
        session_id: i64,
    },
    /// A timer that was set.
    TimerScheduled {
        /// The id of the timer.
        correlation_id: i64,
        /// The deadline in the unit of the cluster's time.
        deadline: i64,
    },
    /// A timer that was cancelled.
    TimerCancelled {
        /// The id of the timer.
        correlation_id: i64,
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
        Some(match header.template_id {
            codec::ScheduleTimer::TEMPLATE_ID => {
                let timer = codec::ScheduleTimer::decode(header, body)?;
                let codec::ScheduleTimer { correlation_id, deadline } = timer;
                Self::TimerScheduled { correlation_id, deadline }
            }
            codec::CancelTimer::TEMPLATE_ID => {
                let correlation_id = codec::CancelTimer::decode(header, body)?.correlation_id;
                Self::TimerCancelled { correlation_id }
            }
            codec::CloseSession::TEMPLATE_ID => {
                let session_id = codec::CloseSession::decode(header, body)?.cluster_session_id;
                Self::SessionClosed { session_id }
            }
            codec::SessionMessageHeader::TEMPLATE_ID => {
                Self::Message(message.get(HEADER_LENGTH..)?.to_vec())
            }
            _ => return None,
        })
    }

    pub(super) fn answer(session_id: i64, parts: &[IoSlice<'_>]) -> Self {
        Self::Answer { session_id, message: parts.iter().flat_map(|part| part.to_vec()).collect() }
    }

    /// Adds the effect to a digest.
    pub(super) fn digest(&self, digest: &mut Digest) {
        match self {
            Self::Answer { session_id, message } => {
                digest.add(1, &session_id.to_le_bytes());
                digest.add(2, message);
            }
            Self::SessionClosed { session_id } => digest.add(3, &session_id.to_le_bytes()),
            Self::TimerScheduled { correlation_id, deadline } => {
                digest.add(4, &correlation_id.to_le_bytes());
                digest.add(5, &deadline.to_le_bytes());
            }
            Self::TimerCancelled { correlation_id } => {
                digest.add(6, &correlation_id.to_le_bytes());
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
