//! The log buffer file of a publication.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;

use rusteron_client::{Position, PublicationConstants};
use rusteron_media_driver::MediaDriver;

/// The log buffer of a publication.
pub fn log_file(driver: &MediaDriver, original_registration_id: i64) -> File {
    let name = format!("publications/{original_registration_id}.logbuffer");
    let path = driver.aeron_dir().join(name);
    File::options().read(true).write(true).open(path).expect("the log buffer")
}

/// The bytes of the log buffer between two positions of one term. No subscriber has read them yet, so that
/// the driver has not cleaned any.
pub fn log_bytes(
    driver: &MediaDriver,
    publication: &PublicationConstants,
    positions: Range<Position>,
) -> Vec<u8> {
    let mut log = log_file(driver, publication.original_registration_id);
    let start = positions.start % (3 * publication.term_buffer_length as Position);
    let mut bytes = vec![0; (positions.end - positions.start) as usize];
    log.seek(SeekFrom::Start(start as u64)).expect("an offset in the log buffer");
    log.read_exact(&mut bytes).expect("the frames");
    bytes
}

/// Changes a frame as the driver does when it unblocks a publication: see
/// `aeron_term_unblocker_unblock`.
pub fn unblock(log: &File, offset: u64, length: i32) {
    let mut log = log;
    log.seek(SeekFrom::Start(offset + 6)).expect("an offset");
    log.write_all(&0_u16.to_ne_bytes()).expect("the type");
    log.seek(SeekFrom::Start(offset)).expect("an offset");
    log.write_all(&length.to_ne_bytes()).expect("the length");
}

/// Reads the ends of a log's terms from its metadata: the tail counters and the count of terms.
pub fn log_tails(log: &File, term_length: usize) -> ([i64; 3], i32) {
    let mut bytes = [0; 28];
    let mut log = log;
    log.seek(SeekFrom::Start(3 * term_length as u64)).expect("the metadata");
    log.read_exact(&mut bytes).expect("tails");
    let tail = |index: usize| {
        i64::from_ne_bytes(bytes[8 * index..8 * index + 8].try_into().expect("8 bytes"))
    };
    let count = i32::from_ne_bytes(bytes[24..].try_into().expect("4 bytes"));
    ([tail(0), tail(1), tail(2)], count)
}
