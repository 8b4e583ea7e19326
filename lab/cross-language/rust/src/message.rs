//! Messages in the layout of `schema.xml`: an envelope of 24 bytes, and a body.

use std::collections::BTreeMap;

use crate::body::{Body, DEPTH_LIMIT, Kind, Malformed, NODE_LIMIT, Value};
use crate::contract::{LIST_LIMIT, Status};

const SCHEMA_ID: u16 = 3001;
const SCHEMA_VERSION: u16 = 0;
const HEADER_LENGTH: usize = 8;
const NODE_LENGTH: usize = 16;

/// The message header of SBE.
struct Header {
    block_length: u16,
    template_id: u16,
}

impl Header {
    /// Reads a header. Versions only add fields, so each version is accepted.
    fn read(message: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader { rest: message };
        let [block_length, template_id, schema_id, _version] =
            [reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?];
        if schema_id != SCHEMA_ID {
            return Err(Malformed::new(format!("schema {schema_id}, not {SCHEMA_ID}")));
        }
        Ok(Self { block_length, template_id })
    }
}

fn write_header(buffer: &mut Vec<u8>, block_length: u16, template_id: u16) {
    for field in [block_length, template_id, SCHEMA_ID, SCHEMA_VERSION] {
        buffer.extend_from_slice(&field.to_le_bytes());
    }
}

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
}

impl Envelope {
    /// Returns the envelope of a response or callback response.
    pub fn answer(template: Template, correlation_id: i64, status: Status) -> Self {
        Self { template, correlation_id, code: status as u8 }
    }

    /// Replaces the content of a buffer by this envelope.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        buffer.clear();
        write_header(buffer, BLOCK_LENGTH as u16, self.template as u16);
        buffer.extend_from_slice(&self.correlation_id.to_le_bytes());
        buffer.extend_from_slice(&[self.code, 0, 0, 0, 0, 0, 0, 0]);
    }

    /// Reads the envelope of a message. Returns the envelope and the body.
    ///
    /// # Errors
    /// The message is too short, or has another schema or an unknown template.
    pub fn read(message: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let header = Header::read(message)?;
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
        Ok((Self { template, correlation_id, code: block[8] }, body))
    }
}

impl Body {
    /// Appends this body to a buffer.
    ///
    /// # Errors
    /// The body has more elements, or longer keys, than the layout allows.
    pub fn write(&self, buffer: &mut Vec<u8>) -> Result<(), Malformed> {
        let text = write_head(self, buffer)?;
        buffer.extend_from_slice(text);
        Ok(())
    }

    /// Reads a body of a kind, which has to end with the bytes.
    ///
    /// # Errors
    /// The bytes are not exactly one body of the kind.
    pub fn read(kind: Kind, bytes: &[u8]) -> Result<Self, Malformed> {
        let header = Header::read(bytes)?;
        if header.template_id != kind as u16 {
            return Err(Malformed::new(format!(
                "template {}, not {} of {kind:?}",
                header.template_id, kind as u16
            )));
        }
        let mut reader = Reader { rest: &bytes[HEADER_LENGTH..] };
        let mut block = Reader { rest: reader.bytes(usize::from(header.block_length))? };
        let body = match kind {
            Kind::Void => Body::Void,
            Kind::Integer => Body::Integer(block.i64()?),
            Kind::Text => Body::Text(reader.text()?.to_owned()),
            Kind::Integers => Body::Integers(reader.integers()?),
            Kind::CreateObject => {
                Body::CreateObject { initial_value: block.i64()?, amount: block.i64()? }
            }
            Kind::CallObject => Body::CallObject { object_id: block.i64()?, amount: block.i64()? },
            Kind::ObjectValue => Body::ObjectValue { object_id: block.i64()?, value: block.i64()? },
            Kind::Value => Body::Value(reader.value()?),
        };
        match reader.rest.len() {
            0 => Ok(body),
            rest => Err(Malformed::new(format!("{rest} bytes after the body"))),
        }
    }
}

/// Appends a body up to its text. Returns the text's bytes, which follow: a long text need not be copied.
pub(crate) fn write_head<'a>(body: &'a Body, buffer: &mut Vec<u8>) -> Result<&'a [u8], Malformed> {
    let template = body.kind() as u16;
    match body {
        Body::Void => write_header(buffer, 0, template),
        Body::Integer(value) => {
            write_header(buffer, 8, template);
            buffer.extend_from_slice(&value.to_le_bytes());
        }
        Body::Text(text) => {
            write_header(buffer, 0, template);
            write_text_length(buffer, text)?;
            return Ok(text.as_bytes());
        }
        Body::Integers(values) => {
            write_header(buffer, 0, template);
            write_group(buffer, 8, values.len(), LIST_LIMIT)?;
            for value in values {
                buffer.extend_from_slice(&value.to_le_bytes());
            }
        }
        Body::CreateObject { initial_value: first, amount: second }
        | Body::CallObject { object_id: first, amount: second }
        | Body::ObjectValue { object_id: first, value: second } => {
            write_header(buffer, 16, template);
            buffer.extend_from_slice(&first.to_le_bytes());
            buffer.extend_from_slice(&second.to_le_bytes());
        }
        Body::Value(value) => {
            write_header(buffer, 0, template);
            write_group(buffer, NODE_LENGTH, value.node_count(), NODE_LIMIT)?;
            write_node(buffer, "", value)?;
        }
    }
    Ok(&[])
}

fn write_group(
    buffer: &mut Vec<u8>,
    block_length: usize,
    count: usize,
    limit: usize,
) -> Result<(), Malformed> {
    if count > limit {
        return Err(Malformed::new(format!("{count} elements: at most {limit}")));
    }
    buffer.extend_from_slice(&(block_length as u16).to_le_bytes());
    buffer.extend_from_slice(&(count as u16).to_le_bytes());
    Ok(())
}

fn write_text(buffer: &mut Vec<u8>, text: &str) -> Result<(), Malformed> {
    write_text_length(buffer, text)?;
    buffer.extend_from_slice(text.as_bytes());
    Ok(())
}

fn write_text_length(buffer: &mut Vec<u8>, text: &str) -> Result<(), Malformed> {
    let length = u32::try_from(text.len())
        .map_err(|_| Malformed::new(format!("a text of {} bytes", text.len())))?;
    buffer.extend_from_slice(&length.to_le_bytes());
    Ok(())
}

fn write_node(buffer: &mut Vec<u8>, key: &str, value: &Value) -> Result<(), Malformed> {
    let (kind, children, bits, text) = match value {
        Value::Null => (0, 0, 0, ""),
        Value::Bool(value) => (1, 0, i64::from(*value), ""),
        Value::Integer(value) => (2, 0, *value, ""),
        Value::Number(value) => (3, 0, value.to_bits() as i64, ""),
        Value::Text(text) => (4, 0, 0, text.as_str()),
        Value::List(values) => (5, values.len(), 0, ""),
        Value::Map(values) => (6, values.len(), 0, ""),
    };
    buffer.extend_from_slice(&[kind, 0, 0, 0]);
    buffer.extend_from_slice(&(children as u32).to_le_bytes());
    buffer.extend_from_slice(&bits.to_le_bytes());
    let key_length = u16::try_from(key.len())
        .map_err(|_| Malformed::new(format!("a key of {} bytes: at most 65534", key.len())))?;
    buffer.extend_from_slice(&key_length.to_le_bytes());
    buffer.extend_from_slice(key.as_bytes());
    write_text(buffer, text)?;
    match value {
        Value::List(values) => values.iter().try_for_each(|value| write_node(buffer, "", value)),
        Value::Map(values) => {
            values.iter().try_for_each(|(key, value)| write_node(buffer, key, value))
        }
        _ => Ok(()),
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        if length > self.rest.len() {
            return Err(Malformed::new(format!("{length} bytes, of which {}", self.rest.len())));
        }
        let (bytes, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        Ok(self.bytes(N)?.try_into().expect("as many bytes"))
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    fn text(&mut self) -> Result<&'a str, Malformed> {
        let length = self.u32()? as usize;
        utf8(self.bytes(length)?)
    }

    /// Reads the size of a group whose entries have at least a length. Returns the entries' length and
    /// number.
    fn group(&mut self, least: usize) -> Result<(usize, usize), Malformed> {
        let block_length = usize::from(self.u16()?);
        let count = usize::from(self.u16()?);
        if block_length < least {
            return Err(Malformed::new(format!("entries of {block_length} bytes, not {least}")));
        }
        // A count that lies allocates no memory.
        if block_length * count > self.rest.len() {
            return Err(Malformed::new(format!("{count} entries in {} bytes", self.rest.len())));
        }
        Ok((block_length, count))
    }

    fn integers(&mut self) -> Result<Vec<i64>, Malformed> {
        let (block_length, count) = self.group(8)?;
        let entry = |bytes: &[u8]| i64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
        Ok(self.bytes(block_length * count)?.chunks_exact(block_length).map(entry).collect())
    }

    fn value(&mut self) -> Result<Value, Malformed> {
        let (block_length, mut count) = self.group(NODE_LENGTH)?;
        let (_, value) = self.node(block_length, &mut count, DEPTH_LIMIT)?;
        match count {
            0 => Ok(value),
            _ => Err(Malformed::new(format!("{count} nodes after the value"))),
        }
    }

    /// Reads a node and its children. Returns key and value.
    fn node(
        &mut self,
        block_length: usize,
        count: &mut usize,
        depth: usize,
    ) -> Result<(&'a str, Value), Malformed> {
        if depth == 0 {
            return Err(Malformed::new(format!("a value deeper than {DEPTH_LIMIT}")));
        }
        *count = count.checked_sub(1).ok_or_else(|| Malformed::new("a child is missing"))?;
        let mut block = Reader { rest: self.bytes(block_length)? };
        let [kind, ..] = block.array::<4>()?;
        let (children, bits) = (block.u32()?, block.i64()?);
        let key_length = usize::from(self.u16()?);
        let key = utf8(self.bytes(key_length)?)?;
        let text = self.text()?;
        let value = match kind {
            0 => Value::Null,
            1 if bits == 0 || bits == 1 => Value::Bool(bits == 1),
            2 => Value::Integer(bits),
            3 => {
                let number = f64::from_bits(bits as u64);
                if !number.is_finite() {
                    return Err(Malformed::new(format!("the number {number}")));
                }
                Value::Number(number)
            }
            4 => Value::Text(text.to_owned()),
            5 => {
                let mut values = Vec::new();
                for _ in 0..children {
                    values.push(self.node(block_length, count, depth - 1)?.1);
                }
                Value::List(values)
            }
            6 => {
                let mut values = BTreeMap::new();
                for _ in 0..children {
                    let (key, value) = self.node(block_length, count, depth - 1)?;
                    if key.contains('\0') {
                        return Err(Malformed::new("U+0000 in a key"));
                    }
                    if values.insert(key.to_owned(), value).is_some() {
                        return Err(Malformed::new("a key occurs twice"));
                    }
                }
                Value::Map(values)
            }
            _ => return Err(Malformed::new(format!("a node of kind {kind} with bits {bits}"))),
        };
        Ok((key, value))
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, Malformed> {
    simdutf8::compat::from_utf8(bytes).map_err(|error| Malformed::new(error.to_string()))
}
