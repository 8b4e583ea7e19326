//! The distinct errors in a mark file: the writer, and what remains of a former owner's.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::cnc::epoch;
use crate::cnc::error_log::{
    self, ALIGNMENT, FIRST_OBSERVATION, LAST_OBSERVATION, LENGTH, OBSERVATION_COUNT,
};
use crate::dir_access::DirAccess;
use crate::mark_file::{MappedFile, now};

/// Saves the errors of a former owner beside its mark file, as `PREFIX-TIME-error.log` with the time in milliseconds
/// since 1970. `start` and `length` are those of the log as the file's header has them, in bytes. If they are
/// impossible, or there are no errors, nothing is saved.
///
/// # Errors
/// Those of the operating system.
pub fn save_errors(
    path: &Path,
    prefix: &str,
    mut file: &File,
    start: i32,
    length: i32,
    access: DirAccess,
) -> io::Result<()> {
    let Ok(start) = u64::try_from(start) else { return Ok(()) };
    let Ok(length) = u64::try_from(length) else { return Ok(()) };
    // Enough for thousands of errors, whatever the file says.
    let length = length.min(16 << 20);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(length).read_to_end(&mut bytes)?;
    let entries = error_log::entries(&bytes);
    if entries.is_empty() {
        return Ok(());
    }
    let mut text = String::new();
    for entry in &entries {
        text += &format!(
            "{} observations from {} to {} ms since 1970:\n{}\n\n",
            entry.observation_count,
            epoch::millis(entry.first_observation),
            epoch::millis(entry.last_observation),
            entry.text
        );
    }
    let saved = path.with_file_name(format!("{prefix}-{}-error.log", now()));
    access.create_file(&saved)?.write_all(text.as_bytes())?;
    log::warn!("errors in {} were saved in {}", path.display(), saved.display());
    Ok(())
}

/// The longest text of an error, in bytes. The rest is cut off.
const MAX_TEXT_LENGTH: usize = 8 * 1024;

/// Writes distinct errors: an error that is observed again is counted.
///
/// Corresponds to `org.agrona.concurrent.errors.DistinctErrorLog`.
#[derive(Debug)]
pub struct DistinctErrorLog {
    length: usize,
    /// The unused bytes of the log.
    free: Range<usize>,
    /// The offsets of the entries, by text.
    entries: HashMap<Box<str>, usize>,
}

impl DistinctErrorLog {
    /// Creates the writer of a log of zeros in these bytes of a file.
    pub fn new(bytes: Range<usize>) -> Self {
        Self { length: bytes.len(), free: bytes, entries: HashMap::new() }
    }

    /// Records an observation at a time in milliseconds since 1970. Returns `false` if the log is
    /// full.
    pub fn record(&mut self, file: &MappedFile, now: i64, text: &str) -> bool {
        self.record_within(self.length, file, now, text)
    }

    /// As [`record`](Self::record), for errors that fill no more than the first `share` bytes of
    /// the log, so that there is room for others.
    pub fn record_within(&mut self, share: usize, file: &MappedFile, now: i64, text: &str) -> bool {
        let text = cut(text);
        if let Some(offset) = self.entries.get(text) {
            file.i32_at(offset + OBSERVATION_COUNT).fetch_add(1, Ordering::AcqRel);
            file.i64_at(offset + LAST_OBSERVATION).store(now, Ordering::Release);
            return true;
        }
        let length = error_log::HEADER_LENGTH + text.len();
        if length + self.length.saturating_sub(share) > self.free.len() {
            return false;
        }
        let offset = self.free.start;
        file.write(offset + error_log::HEADER_LENGTH, text.as_bytes());
        file.i32_at(offset + OBSERVATION_COUNT).store(1, Ordering::Relaxed);
        file.i64_at(offset + FIRST_OBSERVATION).store(now, Ordering::Relaxed);
        file.i64_at(offset + LAST_OBSERVATION).store(now, Ordering::Relaxed);
        // Last, because readers look for the length.
        file.i32_at(offset + LENGTH).store(length as i32, Ordering::Release);
        self.free.start = (offset + length).next_multiple_of(ALIGNMENT).min(self.free.end);
        self.entries.insert(text.into(), offset);
        true
    }
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT_LENGTH);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_errors_are_counted_until_full() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&[0; 256]).expect("written");
        let map = MappedFile::new(&file, 256).expect("mapped");
        let mut log = DistinctErrorLog::new(64..192);
        assert!(log.record(&map, 10, "first"));
        assert!(log.record(&map, 20, "second"));
        assert!(log.record(&map, 30, "first"));
        assert!(log.record_within(64, &map, 35, "first"));
        assert!(!log.record_within(64, &map, 35, "third"));
        // The entries take 32 bytes each; 64 are left.
        assert!(!log.record(&map, 40, &"x".repeat(41)));
        assert!(log.record(&map, 50, &"y".repeat(40)));
        assert!(!log.record(&map, 60, "z"));
        assert!(log.record(&map, 70, "second"));
        let mut bytes = Vec::new();
        file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("read");
        assert!(bytes[192..].iter().all(|byte| *byte == 0));
        let entries = error_log::entries(&bytes[64..192]);
        let entries: Vec<_> = entries
            .iter()
            .map(|entry| {
                let millis = entry.last_observation.duration_since(std::time::UNIX_EPOCH);
                let millis = millis.expect("after 1970").as_millis();
                (entry.text.as_str(), entry.observation_count, millis)
            })
            .collect();
        assert_eq!(entries, [("first", 3, 35), ("second", 2, 70), (&"y".repeat(40), 1, 50)]);
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let text = "a".to_owned() + &"é".repeat(MAX_TEXT_LENGTH);
        assert_eq!(cut(&text).len(), MAX_TEXT_LENGTH - 1);
        assert_eq!(cut("short"), "short");
    }
}
