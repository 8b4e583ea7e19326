//! Message headers, layouts of messages, and reading and writing fields one after the other.

/// The id of the cluster's schema.
pub const SCHEMA_ID: u16 = 111;
/// The version of the schema in which messages are written.
pub const SCHEMA_VERSION: u16 = 17;

/// The header of a message: its type, and the version and block length of its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHeader {
    /// Length of the sender's fields in bytes, without variable data.
    pub block_length: u16,
    /// The id of the message's layout.
    pub template_id: u16,
    /// The id of the schema that describes the message.
    pub schema_id: u16,
    /// The sender's version of the schema.
    pub version: u16,
}

impl MessageHeader {
    /// Length of the encoded header in bytes.
    pub const LENGTH: usize = 8;

    /// Splits a message into its header and the bytes behind the header. Returns `None` if the
    /// message is shorter than a header.
    #[inline]
    pub fn split(message: &[u8]) -> Option<(Self, &[u8])> {
        let (header, body) = message.split_first_chunk::<{ Self::LENGTH }>()?;
        let [b0, b1, t0, t1, s0, s1, v0, v1] = *header;
        let header = Self {
            block_length: u16::from_le_bytes([b0, b1]),
            template_id: u16::from_le_bytes([t0, t1]),
            schema_id: u16::from_le_bytes([s0, s1]),
            version: u16::from_le_bytes([v0, v1]),
        };
        Some((header, body))
    }

    /// Returns the encoded header.
    pub const fn to_bytes(self) -> [u8; Self::LENGTH] {
        let [b0, b1] = self.block_length.to_le_bytes();
        let [t0, t1] = self.template_id.to_le_bytes();
        let [s0, s1] = self.schema_id.to_le_bytes();
        let [v0, v1] = self.version.to_le_bytes();
        [b0, b1, t0, t1, s0, s1, v0, v1]
    }
}

/// The layout of a message.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The message's name in Aeron's schema.
    pub name: &'static str,
    /// The message's id in Aeron's schema.
    pub template_id: u16,
    /// Length of all fields in bytes.
    pub block_length: u16,
    /// The fields of fixed length, in order.
    pub fields: &'static [FieldLayout],
    /// The variable data behind the fields, in order.
    pub data: &'static [DataLayout],
}

/// A field of fixed length.
#[derive(Debug, Clone, Copy)]
pub struct FieldLayout {
    /// The field's name here: `snake_case` of the name in the schema.
    pub name: &'static str,
    /// The field's type.
    pub kind: FieldKind,
    /// The value of an absent field.
    pub null: i64,
    /// The version of the schema that added the field.
    pub since: u16,
}

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// 32 bits, with a sign. Enumerations have this type, too.
    I32,
    /// 64 bits, with a sign.
    I64,
}

impl FieldKind {
    /// Length of an encoded field in bytes.
    pub const fn length(self) -> u16 {
        match self {
            Self::I32 => 4,
            Self::I64 => 8,
        }
    }
}

/// Variable data: a length of 32 bits, and as many bytes.
#[derive(Debug, Clone, Copy)]
pub struct DataLayout {
    /// The name here: `snake_case` of the name in the schema.
    pub name: &'static str,
    /// The content.
    pub kind: DataKind,
    /// The version of the schema that added the data.
    pub since: u16,
}

/// The content of variable data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataKind {
    /// ASCII text.
    Ascii,
    /// Any bytes.
    Bytes,
}

/// Reads the fields of a message in the order of its layout.
///
/// A field is present if it ends within the sender's block and the sender's version has the field.
/// Variable data begins behind the sender's block, which may be longer than the known fields.
pub(crate) struct Reader<'a> {
    block: &'a [u8],
    data: &'a [u8],
    offset: usize,
    version: u16,
}

impl<'a> Reader<'a> {
    /// Returns `None` if the message is shorter than the block.
    #[inline]
    pub(crate) fn new(header: MessageHeader, body: &'a [u8]) -> Option<Self> {
        let (block, data) = body.split_at_checked(usize::from(header.block_length))?;
        Some(Self { block, data, offset: 0, version: header.version })
    }

    #[inline]
    fn next<const N: usize>(&mut self, since: u16) -> Option<[u8; N]> {
        let start = self.offset;
        self.offset += N;
        if self.version < since {
            return None;
        }
        self.block.get(start..)?.first_chunk().copied()
    }

    #[inline]
    pub(crate) fn i32(&mut self, null: i32, since: u16) -> i32 {
        self.next(since).map_or(null, i32::from_le_bytes)
    }

    #[inline]
    pub(crate) fn i64(&mut self, null: i64, since: u16) -> i64 {
        self.next(since).map_or(null, i64::from_le_bytes)
    }

    /// Reads variable data. Returns `None` if the data is truncated. Data that the sender's version
    /// does not have is empty.
    #[inline]
    pub(crate) fn data(&mut self, since: u16) -> Option<&'a [u8]> {
        if self.version < since {
            return Some(&[]);
        }
        let (length, rest) = self.data.split_first_chunk()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (data, rest) = rest.split_at_checked(length)?;
        self.data = rest;
        Some(data)
    }
}

/// Writes the fields of a message in the order of its layout.
pub(crate) struct Writer<'a> {
    rest: &'a mut [u8],
}

impl<'a> Writer<'a> {
    pub(crate) fn new(target: &'a mut [u8]) -> Self {
        Self { rest: target }
    }

    /// Returns `None` if the target has no space left.
    #[inline]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let (target, rest) = std::mem::take(&mut self.rest).split_at_mut_checked(bytes.len())?;
        target.copy_from_slice(bytes);
        self.rest = rest;
        Some(())
    }

    #[inline]
    pub(crate) fn i32(&mut self, value: i32) -> Option<()> {
        self.bytes(&value.to_le_bytes())
    }

    #[inline]
    pub(crate) fn i64(&mut self, value: i64) -> Option<()> {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn data(&mut self, data: &[u8]) -> Option<()> {
        self.bytes(&u32::try_from(data.len()).ok()?.to_le_bytes())?;
        self.bytes(data)
    }
}
