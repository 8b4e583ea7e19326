//! Envelopes: the first 24 bytes of each message.

use crate::binary::{self, HEADER_LENGTH};
use crate::{Encoding, Malformed, Status};

/// Length of message header and block. The body follows.
pub const ENVELOPE_LENGTH: usize = HEADER_LENGTH + BLOCK_LENGTH;
/// The correlation id of a response to a message without a readable envelope.
pub const NO_CORRELATION_ID: i64 = -1;

const BLOCK_LENGTH: usize = 16;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Template {
    /// Caller to server: starts a call.
    Request = 1,
    /// Server to caller: ends a call.
    Response = 2,
    /// Server to caller, during a call.
    CallbackRequest = 3,
    /// Caller to server: answers a callback.
    CallbackResponse = 4,
}

/// The fields of an envelope, which all four templates have at the same offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// The kind of the message.
    pub template: Template,
    /// The number of the call, which the caller chooses.
    pub correlation_id: i64,
    /// Number of the operation in a request, number of the status in responses.
    pub code: u8,
    /// Number of the body's encoding.
    pub encoding: u8,
}

impl Envelope {
    /// Returns the envelope of a response or callback response.
    pub fn answer(template: Template, id: i64, status: Status, encoding: Encoding) -> Self {
        Self { template, correlation_id: id, code: status as u8, encoding: encoding as u8 }
    }

    /// Replaces the content of a buffer by this envelope.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        buffer.clear();
        binary::write_header(buffer, BLOCK_LENGTH as u16, self.template as u16);
        buffer.extend_from_slice(&self.correlation_id.to_le_bytes());
        buffer.extend_from_slice(&[self.code, self.encoding, 0, 0, 0, 0, 0, 0]);
    }

    /// Reads the envelope of a message. Returns the envelope and the body.
    ///
    /// # Errors
    /// The message is too short, or has another schema or an unknown template.
    pub fn read(message: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let header = binary::Header::read(message)?;
        let template = match header.template_id {
            1 => Template::Request,
            2 => Template::Response,
            3 => Template::CallbackRequest,
            4 => Template::CallbackResponse,
            other => return Err(Malformed::new(format!("no message has template {other}"))),
        };
        let block_length = usize::from(header.block_length);
        if block_length < BLOCK_LENGTH || message.len() - HEADER_LENGTH < block_length {
            return Err(Malformed::new(format!(
                "block length {block_length} in a message of {} bytes",
                message.len()
            )));
        }
        let (block, body) = message[HEADER_LENGTH..].split_at(block_length);
        let correlation_id = i64::from_le_bytes(block[..8].try_into().expect("eight bytes"));
        Ok((Self { template, correlation_id, code: block[8], encoding: block[9] }, body))
    }
}
