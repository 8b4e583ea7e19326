//! The header of every message.

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
