//! Frames and recordings for tests.

use rusteron_core::log_buffer::{
    BEGIN_FLAG, END_FLAG, FLAGS, HEADER_LENGTH, TERM_ID, TERM_OFFSET, TYPE, TYPE_DATA, TYPE_PAD,
    align,
};

use crate::ids::RecordingId;
use crate::segment::Geometry;
use crate::segment::checksum::Checksum;
use crate::segment::frame::{self, Header};

pub(crate) const STREAM_ID: i32 = 1001;
pub(crate) const SESSION_ID: i32 = -99;

/// A recording with two terms of 64 KiB in a segment.
pub(crate) const GEOMETRY: Geometry = Geometry {
    recording_id: RecordingId::new(3),
    start_position: 0,
    initial_term_id: 7,
    term_length: 64 << 10,
    segment_length: 128 << 10,
    stream_id: STREAM_ID,
};

/// Returns the header of a frame of `length` bytes, header included.
pub(crate) fn header(length: usize, frame_type: u16, term_id: i32, term_offset: usize) -> Header {
    let mut header = [0; HEADER_LENGTH];
    header[..4].copy_from_slice(&(length as i32).to_le_bytes());
    header[FLAGS] = BEGIN_FLAG | END_FLAG;
    header[TYPE..][..2].copy_from_slice(&frame_type.to_le_bytes());
    header[TERM_OFFSET..][..4].copy_from_slice(&(term_offset as i32).to_le_bytes());
    frame::set_session_id(&mut header, SESSION_ID);
    header[TERM_ID..][..4].copy_from_slice(&term_id.to_le_bytes());
    frame::set_stream_id(&mut header, STREAM_ID);
    header
}

/// Returns a data frame, aligned.
pub(crate) fn data(payload: &[u8], term_id: i32, term_offset: usize) -> Vec<u8> {
    let length = HEADER_LENGTH + payload.len();
    let mut frame = header(length, TYPE_DATA, term_id, term_offset).to_vec();
    frame.extend_from_slice(payload);
    frame.resize(align(length), 0);
    frame
}

/// Returns the header of padding of `length` bytes, header included. Segments have no more of it.
pub(crate) fn padding(length: usize, term_id: i32, term_offset: usize) -> Header {
    header(length, TYPE_PAD, term_id, term_offset)
}

/// Puts the checksum of a frame in place of its session id.
pub(crate) fn put_checksum(frame: &mut [u8], checksum: Checksum) {
    let computed = checksum.of(&frame[HEADER_LENGTH..]);
    frame::set_session_id(frame, computed);
}
