//! Making a mark file, and overwriting one of a former owner.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::dir_access::DirAccess;
use crate::files;
use crate::mark_file::{
    ACTIVITY_OFFSET, HEADER_LENGTH, MappedFile, PID_OFFSET, START_OFFSET, VERSION_OFFSET,
};

/// Makes an empty file. Returns `None` if the file exists.
///
/// # Errors
/// Those of the operating system.
pub fn open_new(path: &Path, access: DirAccess) -> io::Result<Option<File>> {
    match access.create_file(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the header and zeros to the whole file, and maps it.
///
/// # Errors
/// The operating system's error, for example if the disk is full.
pub fn write_whole(file: &mut File, header: &[u8], length: usize) -> io::Result<MappedFile> {
    file.rewind()?;
    file.write_all(header)?;
    write_zeros(file, length)?;
    MappedFile::new(file, length)
}

/// Writes header and zeros, except for the timestamp, which the caller has claimed, and for the version.
///
/// # Errors
/// The operating system's error, for example if the disk is full.
pub fn overwrite(file: &mut File, header: &[u8], length: usize) -> io::Result<()> {
    for part in [0..VERSION_OFFSET, VERSION_OFFSET + 4..ACTIVITY_OFFSET, START_OFFSET..header.len()]
    {
        file.seek(SeekFrom::Start(part.start as u64))?;
        file.write_all(&header[part])?;
    }
    write_zeros(file, length)
}

/// Returns whether the making of a file was cut short before its header was written: at most the
/// timestamp and the process id, by which it is claimed, are there.
pub fn is_unmade(header: &[u8]) -> bool {
    let is_claim = |offset: usize| {
        (ACTIVITY_OFFSET..START_OFFSET).contains(&offset)
            || (PID_OFFSET..PID_OFFSET + size_of::<i64>()).contains(&offset)
    };
    header.len() < HEADER_LENGTH
        || header.iter().enumerate().all(|(offset, &byte)| byte == 0 || is_claim(offset))
}

/// Lengthens a file that ends within its header, of which it has `length` bytes, so that it can be
/// claimed. Bytes are appended only, and none is lost that another starter has written meanwhile.
///
/// # Errors
/// The operating system's error, for example if the disk is full.
pub fn complete_header(path: &Path, length: usize) -> io::Result<()> {
    let mut file = files::open(path, OpenOptions::new().append(true))?;
    file.write_all(&vec![0; HEADER_LENGTH.saturating_sub(length)])
}

/// Writes zeros from the end of the header to the end of the file, so that the disk has space for
/// them.
fn write_zeros(file: &mut File, length: usize) -> io::Result<()> {
    file.seek(SeekFrom::Start(HEADER_LENGTH as u64))?;
    let count = (length - HEADER_LENGTH) as u64;
    io::copy(&mut io::repeat(0).take(count), file).map(|_| ())
}

/// Removes a link file, and makes one that names a directory. Never opens the old file, which may be
/// a pipe.
///
/// # Errors
/// Those of the operating system.
pub fn replace_link(link: &Path, dir: Option<&Path>, access: DirAccess) -> io::Result<()> {
    match fs::remove_file(link) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let Some(dir) = dir else { return Ok(()) };
    access.create_file(link)?.write_all(dir.to_string_lossy().as_bytes())
}
