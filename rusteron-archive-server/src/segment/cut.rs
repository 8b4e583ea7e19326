//! The end of a stopped recording in its files.

use std::io;

use crate::segment::frame::Header;
use crate::segment::geometry::{DELETED_SUFFIX, Geometry, parse_name};
use crate::storage::{Storage, StorageFile, SyncLevel};

/// The bytes of one read of what is kept.
const PIECE_LENGTH: usize = 64 << 10;

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

/// Moves what the segments have behind the end of a recording out of the way of what is to come.
/// Otherwise recovery after a crash would take these frames for the recording's. Files with frames
/// get another name, by which they are deleted with the recording: an interrupted truncation or a
/// full disk has left them, or the catalog is an older copy, and nothing else has what they hold.
/// Returns their names.
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
    let mut kept = Vec::new();
    for name in &behind {
        if is_empty(storage, name)? {
            storage.remove(name)?;
            continue;
        }
        let new_name = format!("{name}{DELETED_SUFFIX}");
        if storage.length(&new_name)?.is_some() {
            return Err(exists(name, &new_name));
        }
        storage.rename(name, &new_name)?;
        kept.push(new_name);
    }
    if !behind.is_empty() && level != SyncLevel::None {
        storage.sync_dir()?;
    }
    let name = geometry.name(base);
    let Some(length) = storage.length(&name)? else { return Ok(kept) };
    let header = header_at(&*storage.open(&name)?, geometry.offset(end))?;
    let has_more = header.is_some_and(|header| header != Header::default());
    if has_more {
        kept.insert(0, keep_behind(storage, geometry, end, level)?);
    }
    if has_more || header.is_none() || length != geometry.segment_length as u64 {
        cut(storage, geometry, end, level)?;
    }
    Ok(kept)
}

/// Copies what the segment that holds a position has from there on into a file, before it is cut
/// off. There, everything lies at the same offset. Returns the file's name, which is that of a
/// segment behind the end.
///
/// # Errors
/// The storage's error, or [`io::ErrorKind::AlreadyExists`] if the file has something else.
pub(crate) fn keep_behind(
    storage: &dyn Storage,
    geometry: &Geometry,
    position: i64,
    level: SyncLevel,
) -> io::Result<String> {
    let name = geometry.name(geometry.base(position));
    let kept = format!("{name}{DELETED_SUFFIX}");
    let (file, offset) = (storage.open(&name)?, geometry.offset(position));
    if storage.length(&kept)?.is_some() {
        // A process that has ended between this and the cut has left the same.
        let old = storage.open(&kept)?;
        let mut bytes = vec![0; PIECE_LENGTH];
        each_piece(&*file, offset, |at, piece| {
            let length = old.read_at(&mut bytes[..piece.len()], at)?;
            if bytes[..length] == *piece { Ok(()) } else { Err(exists(&name, &kept)) }
        })?;
        return Ok(kept);
    }
    // It gets its name when it is whole.
    let part = format!("{kept}.part");
    if storage.length(&part)?.is_some() {
        storage.remove(&part)?;
    }
    let mut copy = storage.create(&part, file.length()?)?;
    each_piece(&*file, offset, |at, piece| {
        let is_empty = piece.iter().all(|&byte| byte == 0);
        if is_empty { Ok(()) } else { copy.write_all_at(piece, at) }
    })
    .and_then(|()| copy.sync(level))
    .inspect_err(|_| {
        // It would take space that a full disk has not got.
        let _ = storage.remove(&part);
    })?;
    storage.rename(&part, &kept)?;
    if level != SyncLevel::None {
        storage.sync_dir()?;
    }
    Ok(kept)
}

/// Reads a file from an offset to its end.
fn each_piece(
    file: &dyn StorageFile,
    offset: u64,
    mut each: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let (mut offset, mut bytes) = (offset, vec![0; PIECE_LENGTH]);
    loop {
        let length = file.read_at(&mut bytes, offset)?;
        if length == 0 {
            return Ok(());
        }
        each(offset, &bytes[..length])?;
        offset += length as u64;
    }
}

fn exists(name: &str, kept: &str) -> io::Error {
    let text = format!(
        "{name} has more, which cannot be kept as {kept}: that exists: move one of them away"
    );
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}

fn header_at(file: &dyn StorageFile, offset: u64) -> io::Result<Option<Header>> {
    let mut header = Header::default();
    let length = file.read_at(&mut header, offset)?;
    Ok((length == header.len()).then_some(header))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::RecordingId;
    use crate::segment::sample;
    use crate::storage::faulty::{Change, FaultyStorage};

    const GEOMETRY: Geometry = Geometry {
        recording_id: RecordingId::new(3),
        start_position: 0,
        initial_term_id: 7,
        term_length: 64 << 10,
        segment_length: 64 << 10,
        stream_id: sample::STREAM_ID,
    };

    /// Keeps what a segment has behind its first 64 bytes.
    fn keep(storage: &FaultyStorage) -> io::Result<String> {
        keep_behind(storage, &GEOMETRY, 64, SyncLevel::None)
    }

    #[test]
    fn what_is_kept_and_cut_is_synced() {
        let storage = FaultyStorage::default();
        let level = SyncLevel::Data;
        let mut file = storage.create("3-0.rec", 64 << 10).expect("a segment");
        file.write_all_at(&[1; 128], 0).expect("bytes");
        keep_behind(&storage, &GEOMETRY, 64, level).expect("kept");
        cut(&storage, &GEOMETRY, 64, level).expect("cut");
        let log = storage.log();
        let synced = |file| log.contains(&Change::Sync { file, level });
        assert!(synced(0) && synced(1), "{log:?}");
    }

    #[test]
    fn kept_bytes_are_never_replaced() {
        let storage = FaultyStorage::default();
        let mut file = storage.create("3-0.rec", 64 << 10).expect("a segment");
        file.write_all_at(&[1; 128], 0).expect("bytes");
        // A process that has ended before the cut has left the same.
        for _ in 0..2 {
            assert_eq!(keep(&storage).expect("kept"), "3-0.rec.del");
        }
        let kept = storage.content("3-0.rec.del").expect("the bytes");
        assert_eq!(kept.len(), 64 << 10);
        assert!(kept[..64].iter().all(|&byte| byte == 0) && kept[64..128] == [1; 64]);
        file.write_all_at(&[2], 100).expect("another byte");
        let error = keep(&storage).expect_err("the file has other bytes");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(
            error.to_string().starts_with("3-0.rec has more, which cannot be kept as"),
            "{error}"
        );
        assert_eq!(storage.content("3-0.rec.del"), Some(kept));
    }
}
