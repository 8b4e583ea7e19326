//! Numbers in the bytes of a file.

/// Little-endian numbers in bytes. All offsets lie within the bytes.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(&self, offset: usize) -> [u8; N] {
        let bytes = self.0.get(offset..).and_then(|bytes| bytes.first_chunk());
        bytes.copied().unwrap_or([0; N])
    }

    pub(super) fn u8(&self, offset: usize) -> u8 {
        u8::from_le_bytes(self.bytes(offset))
    }

    pub(super) fn u16(&self, offset: usize) -> u16 {
        u16::from_le_bytes(self.bytes(offset))
    }

    pub(super) fn i32(&self, offset: usize) -> i32 {
        i32::from_le_bytes(self.bytes(offset))
    }

    pub(super) fn i64(&self, offset: usize) -> i64 {
        i64::from_le_bytes(self.bytes(offset))
    }
}
