//! A copy of the parts of `cnc.dat` that reports need, made by reads.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::slice;

use crate::cnc::shared_memory::SharedMemory;
use crate::cnc::{CncConstants, CountersReader, i32_at, i64_at};
use crate::error::{Error, ErrorKind, Result};
use crate::files;

/// Counters and error log of a driver's file at one moment, and the file itself.
#[derive(Debug)]
pub(crate) struct CncCopy {
    file: File,
    pub(crate) constants: CncConstants,
    heartbeat_millis: i64,
    /// The counters' metadata, their values and the error log, which follow each other in the file.
    words: Vec<u64>,
}

/// `AERON_CNC_VERSION_AND_META_DATA_LENGTH`.
const HEADER_LENGTH: usize = 128;
/// `AERON_COUNTERS_VALUES_BUFFER_LENGTH_MAX`. The metadata have four times the length of the values.
const MAX_COUNTER_VALUES_LENGTH: i32 = 500 << 20;
/// The major version of the layout that this crate reads.
const MAJOR: u8 = 0;

impl CncCopy {
    /// Copies the file. `None` if there is no file, and if the file is not complete, as while a driver makes it, or
    /// another process shortens it.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => Ok(None),
            kind => Err(Error::new(ErrorKind::Io(kind), format!("{}: {error}", path.display()))),
        };
        let file = match files::open(path, OpenOptions::new().read(true)) {
            Ok(file) => file,
            // Not a regular file.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Ok(None),
            Err(error) => return failed(error),
        };
        let mut header = [0; HEADER_LENGTH];
        if let Err(error) = read_exact_at(&file, &mut header, 0) {
            return failed(error);
        }
        let Some(constants) = constants(&header) else { return Ok(None) };
        let [_, major, minor, patch] = constants.cnc_version.to_be_bytes();
        if constants.cnc_version == 0 {
            return Ok(None);
        }
        if major != MAJOR {
            let path = path.display();
            let text = format!("{path}: CnC version not compatible: file={major}.{minor}.{patch}");
            return Err(Error::new(ErrorKind::IncompatibleDriver, text));
        }
        if let Some(excess) = excess(&constants) {
            let text = format!("{}: no CnC file of a driver: {excess}", path.display());
            return Err(Error::new(ErrorKind::IncompatibleDriver, text));
        }
        Self::read_buffers(file, constants).or_else(failed)
    }

    fn read_buffers(file: File, constants: CncConstants) -> io::Result<Option<Self>> {
        let Some([to_driver, to_clients, metadata, values, errors]) = lengths(&constants) else {
            return Ok(None);
        };
        // The sums of a few 32-bit lengths fit 64 bits, but not the addresses of each machine.
        let sum = |lengths: &[usize]| lengths.iter().map(|length| *length as u64).sum::<u64>();
        let start = sum(&[HEADER_LENGTH, to_driver, to_clients]);
        let length = sum(&[metadata, values, errors]);
        // A length beyond the end would reserve memory for nothing.
        if file.metadata()?.len() < start + length {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let mut words = Vec::new();
        words.try_reserve_exact(length.div_ceil(8))?;
        words.resize(length.div_ceil(8), 0_u64);
        // SAFETY: the words are initialised, any bytes make a word, and this is their only reference.
        let bytes = unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), length) };
        read_exact_at(&file, bytes, start)?;
        let heartbeat_millis = read_heartbeat(&file, to_driver)?;
        Ok(Some(Self { file, constants, heartbeat_millis, words }))
    }

    /// Reads the heartbeat again. If the file has been shortened, it is the copied one.
    pub(crate) fn heartbeat_millis(&self) -> i64 {
        let to_driver = lengths(&self.constants).map_or(0, |[to_driver, ..]| to_driver);
        read_heartbeat(&self.file, to_driver).unwrap_or(self.heartbeat_millis)
    }

    pub(crate) fn counters(&self) -> CountersReader<'_> {
        let [metadata, values, _] = self.parts();
        CountersReader::new(values, metadata)
    }

    pub(crate) fn error_log(&self) -> SharedMemory<'_> {
        self.parts()[2]
    }

    fn parts(&self) -> [SharedMemory<'_>; 3] {
        // SAFETY: the words live as long as `self`, which lends them for reading only.
        let copy = unsafe { SharedMemory::new(self.words.as_ptr().cast(), self.words.len() * 8) };
        let [.., metadata, values, errors] = lengths(&self.constants).unwrap_or_default();
        let part = |offset, length| copy.part(offset, length).unwrap_or(copy);
        [part(0, metadata), part(metadata, values), part(metadata + values, errors)]
    }
}

/// Parses `aeron_cnc_metadata_t`.
fn constants(header: &[u8]) -> Option<CncConstants> {
    Some(CncConstants {
        cnc_version: i32_at(header, 0)?,
        to_driver_buffer_length: i32_at(header, 4)?,
        to_clients_buffer_length: i32_at(header, 8)?,
        counter_metadata_buffer_length: i32_at(header, 12)?,
        counter_values_buffer_length: i32_at(header, 16)?,
        error_log_buffer_length: i32_at(header, 20)?,
        client_liveness_timeout: i64_at(header, 24)?,
        start_timestamp: i64_at(header, 32)?,
        pid: i64_at(header, 40)?,
        file_page_size: i32_at(header, 48)?,
    })
}

/// Returns which length exceeds what a driver can have. A sparse file can have the length in fact, and a copy of it would
/// take that much memory.
fn excess(constants: &CncConstants) -> Option<String> {
    let CncConstants { counter_metadata_buffer_length, counter_values_buffer_length, .. } =
        constants;
    let lengths = [
        ("metadata", *counter_metadata_buffer_length, 4 * MAX_COUNTER_VALUES_LENGTH),
        ("values", *counter_values_buffer_length, MAX_COUNTER_VALUES_LENGTH),
    ];
    let (name, length, max) = lengths.into_iter().find(|(_, length, max)| length > max)?;
    Some(format!("counter {name} of {length} bytes: at most {max} in Aeron"))
}

/// Returns the lengths of the buffers, in the order of the file. `None` if one is negative.
fn lengths(constants: &CncConstants) -> Option<[usize; 5]> {
    let lengths = [
        constants.to_driver_buffer_length,
        constants.to_clients_buffer_length,
        constants.counter_metadata_buffer_length,
        constants.counter_values_buffer_length,
        constants.error_log_buffer_length,
    ];
    let lengths = lengths.map(|length| usize::try_from(length).ok());
    let [Some(a), Some(b), Some(c), Some(d), Some(e)] = lengths else { return None };
    Some([a, b, c, d, e])
}

/// Reads the consumer's heartbeat from the trailer of the buffer of commands, as
/// `aeron_mpsc_rb_consumer_heartbeat_time_value` does. Negative if the buffer has an impossible length.
fn read_heartbeat(file: &File, to_driver_length: usize) -> io::Result<i64> {
    const TRAILER_LENGTH: usize = 768;
    const HEARTBEAT: usize = 640;
    let capacity = to_driver_length.checked_sub(TRAILER_LENGTH);
    let Some(capacity) = capacity.filter(|capacity| capacity.is_power_of_two()) else {
        return Ok(-1);
    };
    let mut bytes = [0; 8];
    read_exact_at(file, &mut bytes, (HEADER_LENGTH + capacity + HEARTBEAT) as u64)?;
    Ok(i64::from_ne_bytes(bytes))
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !bytes.is_empty() {
        match file.seek_read(bytes, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                bytes = &mut bytes[count..];
                offset += count as u64;
            }
        }
    }
    Ok(())
}
