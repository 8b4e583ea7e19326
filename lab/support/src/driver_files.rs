//! Files of a driver, and changes to them as another process in the driver's directory could make them.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use rusteron_client::{Position, PublicationConstants};
use rusteron_media_driver::MediaDriver;

const HEADER_LENGTH: u64 = 128;
const BROADCAST_TRAILER_LENGTH: u64 = 128;
const RING_TRAILER_LENGTH: u64 = 768;
const RECORD_HEADER_LENGTH: usize = 8;

/// The `cnc.dat` of a driver that runs.
#[derive(Debug)]
pub struct ForgedCnc(File);

impl ForgedCnc {
    pub fn open(dir: &Path) -> Self {
        let file = File::options().read(true).write(true).open(dir.join("cnc.dat"));
        Self(file.expect("the file"))
    }

    /// Reads bytes at an offset in the file.
    fn read<const N: usize>(&self, offset: u64) -> [u8; N] {
        let mut bytes = [0; N];
        let mut file = &self.0;
        file.seek(SeekFrom::Start(offset)).expect("an offset");
        file.read_exact(&mut bytes).expect("bytes");
        bytes
    }

    /// Writes bytes at an offset in the file.
    pub fn write(&self, offset: u64, bytes: &[u8]) {
        let mut file = &self.0;
        file.seek(SeekFrom::Start(offset)).expect("an offset");
        file.write_all(bytes).expect("bytes");
    }

    /// The start of a buffer and its length: 0 to driver, 1 to clients, 2 the counters' metadata, 3 their
    /// values.
    pub fn buffer(&self, index: u64) -> (u64, u64) {
        let length = |index| u64::from(u32::from_ne_bytes(self.read(4 + 4 * index)));
        (HEADER_LENGTH + (0..index).map(length).sum::<u64>(), length(index))
    }

    pub fn write_counter(&self, counter_id: i32, value: i64) {
        self.write(self.buffer(3).0 + 128 * counter_id as u64, &value.to_ne_bytes());
    }

    /// Sends a command to the driver, with any length in its record's header. No client may send meanwhile.
    pub fn command_record(&self, length: i32, type_id: i32, message: &[u8]) {
        let (start, buffer_length) = self.buffer(0);
        let capacity = buffer_length - RING_TRAILER_LENGTH;
        let tail_offset = start + capacity + 128;
        let tail = i64::from_ne_bytes(self.read(tail_offset));
        let offset = tail as u64 % capacity;
        let aligned_length = (RECORD_HEADER_LENGTH + message.len()).next_multiple_of(8);
        let until_end = (capacity - offset) as usize;
        if aligned_length > until_end {
            const PADDING: i32 = -1;
            let filling = vec![0; until_end - RECORD_HEADER_LENGTH];
            self.command_record(until_end as i32, PADDING, &filling);
            return self.command_record(length, type_id, message);
        }
        let next = tail + aligned_length as i64;
        self.write(tail_offset, &next.to_ne_bytes());
        self.write(start + offset + 4, &[&type_id.to_ne_bytes(), message].concat());
        // The driver reads the record from now on.
        self.write(start + offset, &length.to_ne_bytes());
    }

    /// Sends a message to all clients, as the driver does.
    pub fn broadcast(&self, type_id: i32, message: &[u8]) {
        self.broadcast_record((RECORD_HEADER_LENGTH + message.len()) as i32, type_id, message);
    }

    /// Sends a record with any length in its header. The tail moves behind the message. The driver must not
    /// send meanwhile.
    pub fn broadcast_record(&self, length: i32, type_id: i32, message: &[u8]) {
        let (start, buffer_length) = self.buffer(1);
        let capacity = buffer_length - BROADCAST_TRAILER_LENGTH;
        let tail = |index: u64| start + capacity + 8 * index;
        let cursor = i64::from_ne_bytes(self.read(tail(1)));
        let next = cursor + (RECORD_HEADER_LENGTH + message.len()).next_multiple_of(8) as i64;
        let offset = cursor as u64 % capacity;
        let record = [&length.to_ne_bytes(), &type_id.to_ne_bytes(), message].concat();
        assert!(offset + record.len() as u64 <= capacity, "no padding here");
        // The intended tail, the record, its position, the tail.
        self.write(tail(0), &next.to_ne_bytes());
        self.write(start + offset, &record);
        self.write(tail(2), &cursor.to_ne_bytes());
        self.write(tail(1), &next.to_ne_bytes());
    }
}

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
