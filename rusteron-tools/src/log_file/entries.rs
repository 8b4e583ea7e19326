//! The entries of a term.

use std::io::{self, Read, Seek, SeekFrom};

use serde::Serialize;

use super::frame::{Flags, Frame, FrameType, HEADER_LENGTH};
use super::{Fields, LogFile};

/// An entry of a term, in the term's order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "entry", rename_all = "lowercase")]
pub(crate) enum Entry {
    Frame(Frame),
    /// Zeros before a later frame. Either frames are missing, or the stream starts within the term.
    Gap {
        partition: usize,
        offset: u64,
        length: u64,
    },
    /// Bytes that are no frame. Frames behind a fault cannot be found.
    Fault {
        partition: usize,
        offset: u64,
        reason: String,
    },
}

/// An iterator over the entries of a term; made by [`LogFile::entries`].
#[derive(Debug)]
pub(crate) struct Entries<'a, R> {
    log: &'a mut LogFile<R>,
    partition: usize,
    payload_limit: usize,
    /// `None` after the last entry.
    offset: Option<u64>,
    /// The offset in the term that the source has come to. `None` before the first read.
    read_offset: Option<u64>,
}

impl<R: Read + Seek> Iterator for Entries<'_, R> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let offset = self.offset.filter(|&offset| offset < self.term_length())?;
        let (entry, next) = match self.entry(offset) {
            Ok((entry, next)) => (entry, next),
            Err(reason) => {
                let partition = self.partition;
                (Some(Entry::Fault { partition, offset, reason }), None)
            }
        };
        self.offset = next;
        entry
    }
}

impl<'a, R: Read + Seek> Entries<'a, R> {
    pub(super) fn new(log: &'a mut LogFile<R>, partition: usize, payload_limit: usize) -> Self {
        Self { log, partition, payload_limit, offset: Some(0), read_offset: None }
    }

    fn term_length(&self) -> u64 {
        self.log.metadata.term_length.unsigned_abs().into()
    }

    /// Returns the entry at an offset within the term, and the offset of the next entry.
    fn entry(&mut self, offset: u64) -> Result<(Option<Entry>, Option<u64>), String> {
        let header = self.header(offset)?;
        let header = Fields(&header);
        let frame_length = header.i32(0);
        if frame_length == 0 {
            return self.gap(offset);
        }
        // Negative until the publisher commits the frame.
        let length = u64::from(frame_length.unsigned_abs());
        if length < HEADER_LENGTH {
            return Err(format!("a frame length of {frame_length}, less than a header's"));
        }
        let end = offset + length.next_multiple_of(HEADER_LENGTH);
        if end > self.term_length() {
            return Err(format!("a frame length of {frame_length}, beyond the end of the term"));
        }
        let metadata = &self.log.metadata;
        let term_id = header.i32(20);
        let frame_type = FrameType::from(header.u16(6));
        let mut frame = Frame {
            partition: self.partition,
            offset,
            position: metadata.position(term_id, offset as i64),
            length: frame_length.unsigned_abs(),
            committed: frame_length > 0,
            version: header.u8(4),
            flags: Flags(header.u8(5)),
            frame_type,
            term_offset: header.i32(8),
            session_id: header.i32(12),
            stream_id: header.i32(16),
            term_id,
            reserved_value: header.i64(24),
            payload: Vec::new(),
        };
        let wanted = (length - HEADER_LENGTH).min(self.payload_limit as u64);
        if frame_type != FrameType::Padding && wanted > 0 {
            frame.payload = vec![0; wanted as usize];
            self.read(offset + HEADER_LENGTH, &mut frame.payload)?;
        }
        Ok((Some(Entry::Frame(frame)), Some(end)))
    }

    /// Returns the gap at an offset, or `None` if the rest of the term is zeros.
    fn gap(&mut self, offset: u64) -> Result<(Option<Entry>, Option<u64>), String> {
        let mut end = offset;
        while end < self.term_length() && Fields(&self.header(end)?).i32(0) == 0 {
            end += HEADER_LENGTH;
        }
        if end == self.term_length() {
            return Ok((None, None));
        }
        let gap = Entry::Gap { partition: self.partition, offset, length: end - offset };
        Ok((Some(gap), Some(end)))
    }

    fn header(&mut self, offset: u64) -> Result<[u8; HEADER_LENGTH as usize], String> {
        let mut header = [0; HEADER_LENGTH as usize];
        self.read(offset, &mut header)?;
        Ok(header)
    }

    /// Fills `bytes` with those from an offset in the term.
    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), String> {
        let end = offset + bytes.len() as u64;
        if end > self.term_length() {
            return Err("the end of the term".to_owned());
        }
        let start = self.partition as u64 * self.term_length() + offset;
        let source = &mut self.log.source;
        let moved = match self.read_offset.replace(end) {
            // Keeps the buffer, unlike `seek`.
            Some(read_offset) => source.seek_relative(offset as i64 - read_offset as i64),
            None => source.seek(SeekFrom::Start(start)).map(drop),
        };
        moved.and_then(|()| source.read_exact(bytes)).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                "cannot be read: the file has become shorter".to_owned()
            }
            _ => format!("cannot be read: {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::log_file::tests::{Builder, TERM_LENGTH};

    fn entries(log: &mut LogFile<Cursor<Vec<u8>>>) -> Vec<Entry> {
        log.entries(0, 100).collect()
    }

    #[track_caller]
    fn frame(entry: &Entry) -> &Frame {
        match entry {
            Entry::Frame(frame) => frame,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn fault(entry: &Entry) -> (u64, &str) {
        match entry {
            Entry::Fault { offset, reason, .. } => (*offset, reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn frames_up_to_the_last() {
        let mut log = Builder::new()
            .frame(32 + 5, 1, b"hello")
            .frame(64, 0, b"xxx")
            .frame(-32, 1, b"")
            .open();
        let entries = entries(&mut log);
        assert_eq!(entries.len(), 3, "{entries:?}");
        let first = frame(&entries[0]);
        assert_eq!((first.length, first.committed, first.frame_type), (37, true, FrameType::Data));
        assert_eq!((first.session_id, first.stream_id, first.reserved_value), (-7, 1001, 99));
        assert_eq!(
            (first.payload.as_slice(), first.flags.to_string()),
            (&b"hello"[..], "begin+end".into())
        );
        let padding = frame(&entries[1]);
        assert_eq!((padding.offset, padding.position), (64, 64));
        assert_eq!((padding.frame_type, padding.payload.len()), (FrameType::Padding, 0));
        let claim = frame(&entries[2]);
        assert_eq!((claim.offset, claim.length, claim.committed), (128, 32, false));
    }

    #[test]
    fn gap_before_a_frame() {
        let mut builder = Builder::new().frame(32, 1, b"");
        builder.offset += 64;
        let mut log = builder.frame(32, 1, b"").open();
        let found = entries(&mut log);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[1], Entry::Gap { partition: 0, offset: 32, length: 64 });
        assert_eq!(frame(&found[2]).offset, 96);
    }

    #[test]
    fn impossible_lengths_are_faults() {
        for length in [1, 31, -31, i32::MAX, i32::MIN, TERM_LENGTH as i32] {
            let mut builder = Builder::new().frame(32, 1, b"");
            builder.put(32, &length.to_le_bytes());
            let found = entries(&mut builder.open());
            assert_eq!(found.len(), 2, "{length}: {found:?}");
            let (offset, reason) = fault(&found[1]);
            assert_eq!(offset, 32);
            assert!(reason.contains(&length.to_string()), "{reason}");
        }
    }

    #[test]
    fn frame_may_end_with_its_term() {
        let mut log = Builder::new().frame(TERM_LENGTH as i32, 1, b"x").open();
        let found = entries(&mut log);
        assert_eq!((found.len(), frame(&found[0]).payload.len()), (1, 100));
    }
}
