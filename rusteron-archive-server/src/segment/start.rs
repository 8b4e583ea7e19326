//! Where the frames of a segment begin.

use std::io;

use rusteron_core::log_buffer::HEADER_LENGTH;

use crate::segment::frame::{FrameFault, Header};
use crate::segment::geometry::Geometry;
use crate::storage::Storage;

/// The most bytes of one read.
const CHUNK_LENGTH: usize = 256 << 10;

/// Why a file is not a segment of a recording.
#[derive(Debug)]
pub(crate) enum StartFault {
    Length(u64),
    /// No frame begins in the first term.
    NoFrame,
    /// The first frame is of another place or stream.
    Frame(FrameFault),
    Io(io::Error),
}

/// Returns the position of the first frame of the segment with a base, and `None` if there is no file.
///
/// Only the first segment of a recording does not begin with a frame. Its hole is read, which can be a whole term.
pub(crate) fn find_start(
    storage: &dyn Storage,
    geometry: &Geometry,
    base: i64,
) -> Result<Option<i64>, StartFault> {
    let name = geometry.name(base);
    let Some(length) = storage.length(&name).map_err(StartFault::Io)? else { return Ok(None) };
    if length != geometry.segment_length as u64 {
        return Err(StartFault::Length(length));
    }
    let file = storage.open(&name).map_err(StartFault::Io)?;
    let term_length = geometry.term_length as usize;
    let mut chunk = vec![0; CHUNK_LENGTH.min(term_length)];
    // Headers are as long as frames are aligned, so none lies in two chunks.
    for chunk_start in (0..term_length).step_by(chunk.len()) {
        if file.read_at(&mut chunk, chunk_start as u64).map_err(StartFault::Io)? < chunk.len() {
            return Err(StartFault::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        let mut headers = chunk.chunks_exact(HEADER_LENGTH).filter_map(<[u8]>::first_chunk);
        let Some(index) = headers.clone().position(has_length) else { continue };
        let Some(header) = headers.nth(index) else { continue };
        let offset = chunk_start + index * HEADER_LENGTH;
        let check = geometry.frame_check();
        check.check_place(header, geometry.term_id(base), offset).map_err(StartFault::Frame)?;
        return Ok(Some(base + offset as i64));
    }
    Err(StartFault::NoFrame)
}

fn has_length(header: &Header) -> bool {
    let [a, b, c, d, ..] = *header;
    i32::from_le_bytes([a, b, c, d]) > 0
}
