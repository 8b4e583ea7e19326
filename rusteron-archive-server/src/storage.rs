//! The files of an archive's directory, behind a trait: a test can stop, fail or lose any operation.

use std::time::SystemTime;
use std::{fmt, io};

mod files;

#[cfg(any(test, fuzzing))]
#[cfg_attr(fuzzing, allow(dead_code, reason = "most of it is for tests"))]
pub(crate) mod faulty;

pub(crate) use files::Directory;

/// The unit of the page cache, in bytes. After a crash, each page of a file is there as a whole, or not at all.
pub(crate) const PAGE_LENGTH: usize = 4096;

/// A directory of files. Names are plain file names.
pub(crate) trait Storage: Send + Sync + fmt::Debug {
    /// Returns the path of a file, which errors have where those of Java's archive do.
    fn path(&self, name: &str) -> String;

    /// Opens an existing file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;

    /// Creates a file of `length` bytes, all of them a hole. The file's name is durable after [`sync_dir`](Self::sync_dir).
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there is a file of that name.
    fn create(&self, name: &str, length: u64) -> io::Result<Box<dyn StorageFile>>;

    /// Returns a file's length in bytes, or `None` if there is no file of that name.
    fn length(&self, name: &str) -> io::Result<Option<u64>>;

    /// Returns when a file was changed last.
    fn modified(&self, name: &str) -> io::Result<SystemTime>;

    /// Returns the names of all files, in no particular order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Renames a file, and replaces one that has the name already.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Open handles keep its content until they are dropped.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes all names durable: files created, renamed and removed so far.
    fn sync_dir(&self) -> io::Result<()>;

    /// Returns the number of bytes that this process may still write.
    fn usable_space(&self) -> io::Result<u64>;
}

/// An open file. Reads and writes are positional.
pub(crate) trait StorageFile: Send + fmt::Debug {
    /// Fills the bytes from a file offset. Returns fewer only at the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills two buffers as one, first `first`, then `rest`, as [`read_at`](Self::read_at) does.
    fn read_both_at(&self, first: &mut [u8], rest: &mut [u8], offset: u64) -> io::Result<usize> {
        let length = self.read_at(first, offset)?;
        if length < first.len() {
            return Ok(length);
        }
        Ok(length + self.read_at(rest, offset + length as u64)?)
    }

    /// Writes all bytes at a file offset, and lengthens the file if they exceed it. After an error, some of them may have
    /// been written.
    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Returns the file's length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Cuts the file, or lengthens it by a hole.
    fn set_length(&mut self, length: u64) -> io::Result<()>;

    /// Makes the content durable, as far as `level` asks for it.
    fn sync(&mut self, level: SyncLevel) -> io::Result<()>;

    /// Returns the offset, from `offset` on, of the first byte that has never been written. It is the file's length if
    /// there is none, and also if the file system or platform does not tell holes.
    fn first_hole(&self, offset: u64) -> io::Result<u64>;
}

/// How durable a write is when it returns: `aeron.archive.file.sync.level`, and the catalog's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum SyncLevel {
    /// It survives the process, and the operating system writes it when it likes.
    #[default]
    None = 0,
    /// It survives a power cut.
    Data = 1,
    /// So do times and other metadata that reading does not need.
    All = 2,
}

impl SyncLevel {
    /// Returns the level with Aeron's number.
    pub(crate) fn from_number(level: i64) -> Option<Self> {
        [Self::None, Self::Data, Self::All].into_iter().find(|&known| known as i64 == level)
    }
}
