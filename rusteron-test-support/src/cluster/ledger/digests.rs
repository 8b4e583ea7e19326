//! Digests of ledgers at positions of the log.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file to which a ledger appends `POSITION DIGEST`. Restarts of the ledger go on with the same file.
#[derive(Debug)]
pub struct DigestFile(File);

impl DigestFile {
    /// Opens a file, and makes it if it is missing.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(File::options().create(true).append(true).open(path)?))
    }

    /// Appends a line by one call, so that a kill leaves no half of it.
    pub(super) fn append(&self, position: i64, digest: u64) -> io::Result<()> {
        (&self.0).write_all(format!("{position} {digest:016x}\n").as_bytes())
    }
}

/// Digests by position, of several ledgers.
#[derive(Debug, Default)]
pub struct Digests {
    /// The digest, and the file that had it first.
    by_position: BTreeMap<i64, (u64, PathBuf)>,
    /// Lines whose position another line had before, with the same digest.
    repeated: usize,
}

impl Digests {
    /// Reads files of ledgers.
    ///
    /// # Errors
    /// Two digests differ at the same position, or a file cannot be read.
    pub fn read(files: impl IntoIterator<Item = PathBuf>) -> Result<Self, String> {
        let mut digests = Self::default();
        for file in files {
            let text = fs::read_to_string(&file)
                .map_err(|error| format!("{}: {error}", file.display()))?;
            for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
                let parsed = line.trim_end().split_once(' ').and_then(|(position, digest)| {
                    Some((position.parse().ok()?, u64::from_str_radix(digest, 16).ok()?))
                });
                let (position, digest) =
                    parsed.ok_or_else(|| format!("{}: {line:?}", file.display()))?;
                digests.add(position, digest, &file)?;
            }
        }
        Ok(digests)
    }

    /// Adds a digest from a source, such as a file.
    ///
    /// # Errors
    /// The digest of another source differs at this position.
    pub fn add(&mut self, position: i64, digest: u64, source: &Path) -> Result<(), String> {
        let (first, file) =
            self.by_position.entry(position).or_insert_with(|| (digest, source.to_owned()));
        if *first != digest {
            return Err(format!(
                "position {position}: digest {first:x} in {}, {digest:x} in {}",
                file.display(),
                source.display()
            ));
        }
        self.repeated += usize::from(file != source);
        Ok(())
    }

    /// The last position with a digest.
    pub fn last_position(&self) -> Option<i64> {
        self.by_position.last_key_value().map(|(&position, _)| position)
    }

    pub fn contains(&self, position: i64) -> bool {
        self.by_position.contains_key(&position)
    }

    /// The number of digests that were compared with the digest of another file.
    pub fn compared(&self) -> usize {
        self.repeated
    }
}
