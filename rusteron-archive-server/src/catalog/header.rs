//! The header of the catalog's file.

use crate::catalog::CatalogError;
use crate::ids::RecordingId;

/// The length of the header, and the offset of the first entry.
pub(super) const HEADER_LENGTH: usize = 32;
/// The version that is written: 3.1.0. Any version of this major is read.
pub(super) const VERSION: i32 = 0x0003_0100;
/// Entries begin at multiples of this from the end of the header.
pub(super) const ALIGNMENT: usize = 64;

pub(super) const NEXT_ID_OFFSET: usize = 8;
const LENGTH_OFFSET: usize = 4;
const ALIGNMENT_OFFSET: usize = 16;

/// Returns the header of a catalog without entries.
pub(super) fn empty() -> Vec<u8> {
    let mut bytes = vec![0; HEADER_LENGTH];
    bytes[..4].copy_from_slice(&VERSION.to_le_bytes());
    bytes[LENGTH_OFFSET..][..4].copy_from_slice(&(HEADER_LENGTH as i32).to_le_bytes());
    bytes[ALIGNMENT_OFFSET..][..4].copy_from_slice(&(ALIGNMENT as i32).to_le_bytes());
    bytes
}

/// Checks that the format is this server's.
pub(super) fn check(bytes: &[u8; HEADER_LENGTH]) -> Result<(), CatalogError> {
    let version = i32_at(bytes, 0);
    if major(version) != major(VERSION) {
        return Err(CatalogError::Version { found: version });
    }
    let alignment = i32_at(bytes, ALIGNMENT_OFFSET);
    if alignment != ALIGNMENT as i32 {
        return Err(CatalogError::Alignment { found: alignment });
    }
    if next_id(bytes).get() < 0 {
        let reason = format!("next recording id {}: must not be negative", next_id(bytes));
        return Err(CatalogError::Corrupt { offset: NEXT_ID_OFFSET, reason });
    }
    Ok(())
}

/// Returns the id of the next recording, as the file has it.
pub(super) fn next_id(content: &[u8]) -> RecordingId {
    RecordingId::new(i64_at(content, NEXT_ID_OFFSET))
}

/// Returns the first number of a version.
pub(super) fn major(version: i32) -> i32 {
    (version >> 16) & 0xff
}

/// Returns a version's numbers, joined by dots.
pub(super) fn version_text(version: i32) -> String {
    format!("{}.{}.{}", major(version), (version >> 8) & 0xff, version & 0xff)
}

/// Reads a number of 32 bits, which must lie within `bytes`.
pub(super) fn i32_at(bytes: &[u8], offset: usize) -> i32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[offset..][..4]);
    i32::from_le_bytes(number)
}

/// Reads a number of 64 bits, which must lie within `bytes`.
pub(super) fn i64_at(bytes: &[u8], offset: usize) -> i64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[offset..][..8]);
    i64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_of_java_is_ours() {
        let bytes = empty();
        assert_eq!(bytes[..8], [0, 1, 3, 0, 32, 0, 0, 0]);
        assert_eq!(
            bytes[8..],
            [0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        check(bytes.first_chunk().expect("32 bytes")).expect("our own header");
    }

    #[test]
    fn other_formats_are_refused_by_name() {
        let refusal = |offset: usize, bytes: &[u8]| {
            let mut header = empty();
            header[offset..][..bytes.len()].copy_from_slice(bytes);
            check(header.first_chunk().expect("32 bytes")).expect_err("another format").to_string()
        };
        for major in [0, 1, 2] {
            let text = refusal(0, &[7, 1, major, 0]);
            assert!(
                text.starts_with(&format!(
                    "archive.catalog: incompatible catalog file version {major}.1.7, archive software is 3.1.0"
                )),
                "{text}"
            );
            assert!(text.contains("ArchiveTool") && text.contains("migrate"), "{text}");
        }
        assert!(
            refusal(0, &[0, 0, 4, 0]).contains("4.0.0, archive software is 3.1.0: use a server")
        );
        assert!(refusal(ALIGNMENT_OFFSET, &[0]).contains("migrate"));
        assert!(refusal(ALIGNMENT_OFFSET, &[63]).ends_with("alignment 63: must be 64"));
        assert!(refusal(NEXT_ID_OFFSET, &[0xff; 8]).contains("next recording id -1"));
    }
}
