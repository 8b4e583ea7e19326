//! The messages with which an archive answers.

use std::ffi::c_char;
use std::slice;

use rusteron_core::cnc::{i32_at, i64_at};
use rusteron_sys::archive as sys;

use crate::ids::{ControlSessionId, CorrelationId};
use crate::recording_descriptor::{RecordingDescriptor, RecordingSubscriptionDescriptor};
use crate::recording_event::{HEADER, SCHEMA, text_bytes, u16_at};

const CONTROL_RESPONSE: u16 = 1;
const RECORDING_DESCRIPTOR: u16 = 22;
const RECORDING_SUBSCRIPTION_DESCRIPTOR: u16 = 23;
const RECORDING_SIGNAL: u16 = 24;

/// A message to a session.
#[derive(Debug)]
pub(super) enum Message {
    Response { correlation_id: CorrelationId, relevant_id: i64, code: Code, text: String },
    Recording { correlation_id: CorrelationId, descriptor: RecordingDescriptor },
    Subscription { correlation_id: CorrelationId, descriptor: RecordingSubscriptionDescriptor },
    Signal(sys::aeron_archive_recording_signal_t),
}

/// The result of a request, in the archive's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Ok,
    Error,
    RecordingUnknown,
    SubscriptionUnknown,
}

impl Message {
    /// Decodes a message to this session. Returns `None` for a message to another session, one that
    /// no request expects, and a truncated one, which the shim has refused before.
    pub(super) fn decode(message: &[u8], control_session_id: ControlSessionId) -> Option<Self> {
        let block_length = usize::from(u16_at(message, 0)?);
        if u16_at(message, 4)? != SCHEMA {
            return None;
        }
        let template = u16_at(message, 2)?;
        let (block, texts) = message.get(HEADER..)?.split_at_checked(block_length)?;
        let (session, correlation_id) = (i64_at(block, 0)?, CorrelationId::new(i64_at(block, 8)?));
        if control_session_id != session {
            return None;
        }
        Some(match template {
            CONTROL_RESPONSE => Self::Response {
                correlation_id,
                relevant_id: i64_at(block, 16)?,
                code: Code::from_number(i32_at(block, 24)?)?,
                text: String::from_utf8_lossy(text_bytes(texts)?.0).into_owned(),
            },
            RECORDING_DESCRIPTOR => {
                Self::Recording { correlation_id, descriptor: recording(block, texts)? }
            }
            RECORDING_SUBSCRIPTION_DESCRIPTOR => {
                Self::Subscription { correlation_id, descriptor: subscription(block, texts)? }
            }
            RECORDING_SIGNAL => Self::Signal(sys::aeron_archive_recording_signal_t {
                control_session_id: control_session_id.get(),
                recording_id: i64_at(block, 16)?,
                subscription_id: i64_at(block, 24)?,
                position: i64_at(block, 32)?,
                recording_signal_code: i32_at(block, 40)?,
            }),
            _ => return None,
        })
    }
}

impl Code {
    fn from_number(number: i32) -> Option<Self> {
        Some(match number {
            0 => Self::Ok,
            1 => Self::Error,
            2 => Self::RecordingUnknown,
            3 => Self::SubscriptionUnknown,
            _ => return None,
        })
    }
}

fn recording(block: &[u8], texts: &[u8]) -> Option<RecordingDescriptor> {
    let (stripped_channel, rest) = text_bytes(texts)?;
    let (original_channel, rest) = text_bytes(rest)?;
    let (source_identity, _) = text_bytes(rest)?;
    let raw = sys::aeron_archive_recording_descriptor_t {
        control_session_id: i64_at(block, 0)?,
        correlation_id: i64_at(block, 8)?,
        recording_id: i64_at(block, 16)?,
        start_timestamp: i64_at(block, 24)?,
        stop_timestamp: i64_at(block, 32)?,
        start_position: i64_at(block, 40)?,
        stop_position: i64_at(block, 48)?,
        initial_term_id: i32_at(block, 56)?,
        segment_file_length: i32_at(block, 60)?,
        term_buffer_length: i32_at(block, 64)?,
        mtu_length: i32_at(block, 68)?,
        session_id: i32_at(block, 72)?,
        stream_id: i32_at(block, 76)?,
        stripped_channel: address(stripped_channel),
        stripped_channel_length: stripped_channel.len(),
        original_channel: address(original_channel),
        original_channel_length: original_channel.len(),
        source_identity: address(source_identity),
        source_identity_length: source_identity.len(),
    };
    // SAFETY: the texts are parts of the message, with their lengths.
    Some(unsafe { RecordingDescriptor::from_raw(&raw) })
}

fn subscription(block: &[u8], texts: &[u8]) -> Option<RecordingSubscriptionDescriptor> {
    let (stripped_channel, _) = text_bytes(texts)?;
    let raw = sys::aeron_archive_recording_subscription_descriptor_t {
        control_session_id: i64_at(block, 0)?,
        correlation_id: i64_at(block, 8)?,
        subscription_id: i64_at(block, 16)?,
        stream_id: i32_at(block, 24)?,
        stripped_channel: address(stripped_channel),
        stripped_channel_length: stripped_channel.len(),
    };
    // SAFETY: as in `recording`.
    Some(unsafe { RecordingSubscriptionDescriptor::from_raw(&raw) })
}

/// Returns the address for C's structure, through which nothing is written.
fn address(text: &[u8]) -> *mut c_char {
    text.as_ptr().cast_mut().cast()
}

/// Returns the message that C passes to a handler.
///
/// # Safety
/// `buffer` has `length` readable bytes for the lifetime, unless the length is 0.
pub(super) unsafe fn bytes<'a>(buffer: *const u8, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller guarantees `length` readable bytes.
    unsafe { slice::from_raw_parts(buffer, length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_to_other_sessions_are_passed_over() {
        let block = [7_i64, 1, 2, 3, 4, 5].map(i64::to_le_bytes).concat();
        let header = [block.len() as u16, RECORDING_SIGNAL, SCHEMA, 0].map(u16::to_le_bytes);
        let message = [header.concat(), block].concat();
        let of_session = |id| Message::decode(&message, id).is_some();
        assert_eq!([7, 8].map(|id| of_session(ControlSessionId::new(id))), [true, false]);
    }
}
