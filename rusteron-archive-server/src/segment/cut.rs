//! The end of a stopped recording in its files.

use std::io;

use crate::segment::frame::Header;
use crate::segment::geometry::{DELETED_SUFFIX, Geometry, parse_name};
use crate::storage::{Storage, StorageFile, SyncLevel};

/// Tells whether a frame begins at a position, as far as its header tells: Java checks no more.
///
/// # Errors
/// That of the storage, and [`io::ErrorKind::UnexpectedEof`] if the segment ends before.
pub(crate) fn is_at_frame(
    storage: &dyn Storage,
    geometry: &Geometry,
    position: i64,
) -> io::Result<bool> {
    let file = storage.open(&geometry.name(geometry.base(position)))?;
    let Some(header) = header_at(&*file, geometry.offset(position))? else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let (term_id, term_offset) = (geometry.term_id(position), geometry.term_offset(position));
    Ok(geometry.frame_check().check_place(&header, term_id, term_offset).is_ok())
}

/// Makes the segment that holds a position end there. The file keeps its length.
pub(crate) fn cut(
    storage: &dyn Storage,
    geometry: &Geometry,
    position: i64,
    level: SyncLevel,
) -> io::Result<()> {
    let mut file = storage.open(&geometry.name(geometry.base(position)))?;
    file.set_length(geometry.offset(position))?;
    file.set_length(geometry.segment_length as u64)?;
    file.sync(level)
}

/// Tells whether no frame begins where a segment does. That of the first segment of a recording may
/// begin later.
pub(crate) fn is_empty(storage: &dyn Storage, name: &str) -> io::Result<bool> {
    Ok(header_at(&*storage.open(name)?, 0)?.unwrap_or_default() == Header::default())
}

/// Moves the segments behind the end of a recording out of the way of those to come. Otherwise
/// recovery after a crash would take their frames for the recording's. Those with frames get
/// another name, by which they are deleted with the recording: an interrupted truncation has left
/// them, or the catalog is an older copy, and nothing else has what they hold. Returns their names.
///
/// The segment at the end gets its length, which may be another one than it had before a
/// replication described the empty recording anew.
pub(crate) fn clear_behind(
    storage: &dyn Storage,
    geometry: &Geometry,
    end: i64,
    level: SyncLevel,
) -> io::Result<Vec<String>> {
    let base = geometry.base(end);
    let is_behind = |name: &String| {
        parse_name(name).is_some_and(|(id, its)| id == geometry.recording_id && its > base)
    };
    let behind: Vec<_> = storage.names()?.into_iter().filter(is_behind).collect();
    let mut renamed = Vec::new();
    for name in &behind {
        if is_empty(storage, name)? {
            storage.remove(name)?;
            continue;
        }
        let new_name = format!("{name}{DELETED_SUFFIX}");
        if storage.length(&new_name)?.is_some() {
            let text =
                format!("{name} cannot be renamed: {new_name} exists: move one of them away");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        storage.rename(name, &new_name)?;
        renamed.push(new_name);
    }
    if !behind.is_empty() && level != SyncLevel::None {
        storage.sync_dir()?;
    }
    let name = geometry.name(base);
    let Some(length) = storage.length(&name)? else { return Ok(renamed) };
    let header = header_at(&*storage.open(&name)?, geometry.offset(end))?;
    if length != geometry.segment_length as u64 || header != Some(Header::default()) {
        cut(storage, geometry, end, level)?;
    }
    Ok(renamed)
}

fn header_at(file: &dyn StorageFile, offset: u64) -> io::Result<Option<Header>> {
    let mut header = Header::default();
    let length = file.read_at(&mut header, offset)?;
    Ok((length == header.len()).then_some(header))
}
