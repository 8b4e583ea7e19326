//! Log buffers and other files of a driver that another process changes while they are used.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::input::{Input, patch};

pub const TERM_LENGTH: u64 = 64 << 10;
const METADATA: u64 = 3 * TERM_LENGTH;
const LOG_LENGTH: u64 = METADATA + 4096;

/// Offsets of fields in the metadata, see `aeron_logbuffer_metadata_t`: tails, active term count,
/// end of stream, connected, transports, correlation id, initial term id, header length, MTU, term
/// length, page size, default header, revoked.
const FIELDS: [u64; 16] = [0, 4, 8, 12, 16, 20, 24, 128, 136, 140, 256, 264, 268, 272, 276, 280];

/// A file of the driver, and what its changed bytes were before, the last change last.
pub struct Shared {
    pub file: File,
    before: Vec<(u64, Vec<u8>)>,
}

impl Shared {
    pub fn open(path: &Path) -> Option<Self> {
        let file = File::options().read(true).write(true).open(path).ok()?;
        Some(Self { file, before: Vec::new() })
    }

    /// The log buffer of a publication.
    pub fn log(aeron_dir: &Path, original_registration_id: i64) -> Option<Self> {
        Self::open(&aeron_dir.join(format!("publications/{original_registration_id}.logbuffer")))
    }

    pub fn number(&self, offset: u64) -> i32 {
        let mut bytes = [0; 4];
        self.file.read_exact_at(&mut bytes, offset).expect("a file of the driver");
        i32::from_le_bytes(bytes)
    }

    pub fn change(&mut self, input: &mut Input<'_>, offset: u64, end: u64) {
        let patch = patch(input, offset, |offset| self.number(offset));
        let length = patch.bytes.len().min((end - offset) as usize);
        let mut before = vec![0; length];
        self.file.read_exact_at(&mut before, offset).expect("a file of the driver");
        self.before.push((offset, before));
        self.file.write_all_at(&patch.bytes[..length], offset).expect("a file of the driver");
    }

    /// Changes a header of a frame, or a field of the metadata.
    pub fn change_log(&mut self, input: &mut Input<'_>) {
        let offset = match input.byte() % 4 {
            3 => METADATA + input.choose(&FIELDS),
            term => {
                let frame = u64::from(input.half()) * 32 % TERM_LENGTH;
                let field = input.choose(&[0, 4, 5, 6, 8, 12, 16, 20, 24]);
                u64::from(term) * TERM_LENGTH + frame + field
            }
        };
        self.change(input, offset, LOG_LENGTH);
    }

    pub fn restore(&mut self) {
        for (offset, bytes) in self.before.drain(..).rev() {
            self.file.write_all_at(&bytes, offset).expect("a file of the driver");
        }
    }
}
