//! Reading and writing the fields of a message one after the other.

use crate::codec::message_header::MessageHeader;

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
