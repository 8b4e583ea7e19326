//! Checksums of frames and catalog entries.

/// An algorithm. A recorded frame has the checksum of its payload, aligned to 32 bytes, in place of the session id; a
/// catalog entry has that of its descriptor in its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// CRC-32 as in zip files: ISO-HDLC.
    Crc32,
    /// CRC-32C: Castagnoli.
    Crc32c,
}

impl Checksum {
    /// Returns the checksum of some bytes.
    pub(crate) fn of(self, bytes: &[u8]) -> i32 {
        let checksum = match self {
            Self::Crc32 => crc32fast::hash(bytes),
            Self::Crc32c => crc32c::crc32c(bytes),
        };
        checksum as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_have_the_published_check_values() {
        assert_eq!(Checksum::Crc32.of(b"123456789"), 0xcbf4_3926_u32 as i32);
        assert_eq!(Checksum::Crc32c.of(b"123456789"), 0xe306_9283_u32 as i32);
    }

    /// The payload and session id of a frame in Aeron's test of catalogs.
    #[test]
    fn crc_32_is_java_s() {
        assert_eq!(Checksum::Crc32.of(&[0; 224]), 1_025_596_259);
    }
}
