//! Descriptions of the messages, for tests that compare them with Aeron's schema.

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
