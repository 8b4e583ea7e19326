//! The end of a stopped recording in its files.

use std::io;

use crate::segment::frame::Header;
use crate::segment::geometry::{Geometry, parse_name};
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

/// Removes what an interrupted truncation has left behind the end of a recording. Otherwise its segments would be in the way
/// of those to come, and after a crash recovery would take its frames for the recording's. The segment at the end gets its
/// length, which may be another one than it had before a replication described the empty recording anew.
pub(crate) fn clear_behind(
    storage: &dyn Storage,
    geometry: &Geometry,
    end: i64,
    level: SyncLevel,
) -> io::Result<()> {
    let base = geometry.base(end);
    let is_behind = |name: &String| {
        parse_name(name).is_some_and(|(id, its)| id == geometry.recording_id && its > base)
    };
    let behind: Vec<_> = storage.names()?.into_iter().filter(is_behind).collect();
    for name in &behind {
        storage.remove(name)?;
    }
    if !behind.is_empty() && level != SyncLevel::None {
        storage.sync_dir()?;
    }
    let name = geometry.name(base);
    let Some(length) = storage.length(&name)? else { return Ok(()) };
    let header = header_at(&*storage.open(&name)?, geometry.offset(end))?;
    if length == geometry.segment_length as u64 && header == Some(Header::default()) {
        return Ok(());
    }
    cut(storage, geometry, end, level)
}

fn header_at(file: &dyn StorageFile, offset: u64) -> io::Result<Option<Header>> {
    let mut header = Header::default();
    let length = file.read_at(&mut header, offset)?;
    Ok((length == header.len()).then_some(header))
}
