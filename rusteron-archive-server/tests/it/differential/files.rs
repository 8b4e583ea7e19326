//! Directories of two archives that have recorded the same streams.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::script::TERM_LENGTH;

/// Where the entries of a catalog begin, and where the bytes of a descriptor in an entry do.
const HEADER: usize = 32;
/// The fields of an entry that differ between two archives: the control session, start and stop time.
const OWN_FIELDS: [usize; 3] = [32, 56, 64];

fn long(bytes: &[u8], offset: usize) -> i64 {
    i64::from_le_bytes(*bytes[offset..].first_chunk().expect("a field"))
}

/// The offsets of a catalog's entries.
fn entries(catalog: &[u8]) -> Vec<usize> {
    let mut entries = Vec::new();
    let mut entry = HEADER;
    while let Some(length) = catalog.get(entry..).and_then(<[u8]>::first_chunk) {
        let length = i32::from_le_bytes(*length);
        if length <= 0 {
            break;
        }
        entries.push(entry);
        entry += HEADER + length as usize;
    }
    entries
}

/// The names of all files in a directory.
fn names(dir: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(dir).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
}

/// A recording that can be found.
pub(crate) struct Recording {
    pub(crate) id: i64,
    pub(crate) start: i64,
    /// −1 while it is active.
    pub(crate) stop: i64,
    pub(crate) stream: i32,
    /// There are files of segments before the start.
    pub(crate) has_detached: bool,
}

/// The valid recordings of a catalog, which may be in use.
pub(crate) fn recordings(dir: &Path) -> Vec<Recording> {
    let catalog = fs::read(dir.join("archive.catalog")).expect("a catalog");
    let is_valid = |entry: &usize| catalog[entry + 4] == 1;
    let names: Vec<_> = names(dir).collect();
    let read = |entry: usize| {
        let (id, start) = (long(&catalog, entry + 48), long(&catalog, entry + 72));
        let base = |name: &String| {
            let name = name.strip_suffix(".rec")?.strip_prefix(&format!("{id}-"))?;
            name.parse::<i64>().ok()
        };
        // The first segment begins in the term of the start.
        let has_detached = names.iter().filter_map(base).any(|base| base <= start - TERM_LENGTH);
        let stream = (long(&catalog, entry + 104) >> 32) as i32;
        Recording { id, start, stop: long(&catalog, entry + 80), stream, has_detached }
    };
    entries(&catalog).into_iter().filter(is_valid).map(read).collect()
}

/// The segments of recordings that have frames. Whether a recording that is stopped at once has a segment is a matter of
/// time.
fn segments(dir: &Path, catalog: &[u8]) -> BTreeSet<String> {
    let empty: Vec<_> = entries(catalog)
        .into_iter()
        .filter(|entry| long(catalog, entry + 72) == long(catalog, entry + 80))
        .map(|entry| format!("{}-", long(catalog, entry + 48)))
        .collect();
    let is_empty = |name: &str| empty.iter().any(|prefix| name.starts_with(prefix));
    names(dir).filter(|name| name.ends_with(".rec") && !is_empty(name)).collect()
}

/// The catalog without what differs between two archives.
fn catalog(dir: &Path) -> Vec<u8> {
    let mut bytes = fs::read(dir.join("archive.catalog")).expect("a catalog");
    for entry in entries(&bytes) {
        for field in OWN_FIELDS {
            bytes[entry + field..][..8].fill(0);
        }
    }
    bytes
}

/// Compares all segments, and the catalogs but for times and sessions.
pub(crate) fn compare(ours: &Path, java: &Path) -> Result<(), String> {
    let catalogs = [ours, java].map(catalog);
    compare_bytes("archive.catalog", &catalogs[0], &catalogs[1])?;
    let names = [ours, java].map(|dir| segments(dir, &catalogs[0]));
    if names[0] != names[1] {
        return Err(format!("segments: {names:?}"));
    }
    for name in &names[0] {
        let [first, second] = [ours, java].map(|dir| fs::read(dir.join(name)).expect("a segment"));
        compare_bytes(name, &first, &second)?;
    }
    Ok(())
}

fn compare_bytes(name: &str, ours: &[u8], java: &[u8]) -> Result<(), String> {
    if ours.len() != java.len() {
        return Err(format!("{name}: {} and {} bytes", ours.len(), java.len()));
    }
    match ours.iter().zip(java).position(|(ours, java)| ours != java) {
        None => Ok(()),
        Some(at) => {
            let around = at & !15..(at | 15) + 1;
            let [ours, java] = [ours, java].map(|it| it.get(around.clone()));
            Err(format!("{name} at {at}: {ours:?} and {java:?}"))
        }
    }
}
