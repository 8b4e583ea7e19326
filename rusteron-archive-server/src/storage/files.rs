//! Real files.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusteron_core::dir_access::DirAccess;
use rusteron_core::files;

use super::{Storage, StorageFile, SyncLevel};

/// `ZFS_SUPER_MAGIC`.
#[cfg(target_os = "linux")]
const ZFS_MAGIC: rustix::fs::FsWord = 0x2fc1_2fc1;

/// A directory of the file system.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Existing files are opened for reading only.
    is_read_only: bool,
    access: DirAccess,
    /// Whose owner and mode new files get instead.
    model: Option<fs::Metadata>,
    /// For syncs.
    #[cfg(unix)]
    handle: File,
}

impl Directory {
    /// Opens a directory, which is created if it is missing.
    pub(crate) fn open(path: &Path, access: DirAccess) -> io::Result<Self> {
        access.create_dir(path)?;
        Ok(Self { access, ..Self::open_existing(path, false)? })
    }

    /// As [`open_existing`](Self::open_existing), for a tool, whose user may be another one than
    /// the archive's: new files get the owner and the mode of the file of this name.
    pub(crate) fn open_of_archive(
        path: &Path,
        is_read_only: bool,
        model: &str,
    ) -> io::Result<Self> {
        let model = fs::metadata(path.join(model)).ok();
        Ok(Self { model, ..Self::open_existing(path, is_read_only)? })
    }

    /// Opens an existing directory, perhaps one of a file system or an owner that does not permit writes.
    fn open_existing(path: &Path, is_read_only: bool) -> io::Result<Self> {
        fs::read_dir(path)?;
        Ok(Self {
            path: path.to_owned(),
            is_read_only,
            access: DirAccess::default(),
            model: None,
            #[cfg(unix)]
            handle: File::open(path)?,
        })
    }
}

impl Storage for Directory {
    fn path(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(!self.is_read_only);
        Ok(Box::new(files::open(&self.path.join(name), &options)?))
    }

    fn create(&self, name: &str, length: u64) -> io::Result<Box<dyn StorageFile>> {
        let path = self.path.join(name);
        let file = self.access.create_file(&path)?;
        let modelled = self.model.as_ref().map_or(Ok(()), |model| resemble(&file, model));
        if let Err(error) = modelled.and_then(|()| file.set_len(length)) {
            // Otherwise the file would be in the way of the next attempt.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(Box::new(file))
    }

    fn length(&self, name: &str) -> io::Result<Option<u64>> {
        match fs::metadata(self.path.join(name)) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn modified(&self, name: &str) -> io::Result<SystemTime> {
        fs::metadata(self.path.join(name))?.modified()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        // The archive's own names are ASCII, so those that are no UTF-8 belong to somebody else.
        fs::read_dir(&self.path)?
            .filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose())
            .collect()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    #[cfg(unix)]
    fn sync_dir(&self) -> io::Result<()> {
        self.handle.sync_all()
    }

    /// Does nothing: Windows keeps names durable by itself, and has no call for it.
    #[cfg(windows)]
    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }

    fn usable_space(&self) -> io::Result<u64> {
        files::usable_space(&self.path)
    }
}

impl StorageFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut length = 0;
        while length < bytes.len() {
            match read_some_at(self, &mut bytes[length..], offset + length as u64) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(length)
    }

    /// In one call, usually.
    #[cfg(target_os = "linux")]
    fn read_both_at(&self, first: &mut [u8], rest: &mut [u8], offset: u64) -> io::Result<usize> {
        let expected = first.len();
        let buffers = &mut [io::IoSliceMut::new(first), io::IoSliceMut::new(rest)];
        match rustix::io::preadv(self, buffers, offset) {
            Ok(length) if length >= expected => {
                let read = length - expected;
                let more = StorageFile::read_at(self, &mut rest[read..], offset + length as u64)?;
                Ok(length + more)
            }
            Ok(0) => Ok(0),
            Ok(_) | Err(rustix::io::Errno::INTR) => {
                let length = StorageFile::read_at(self, first, offset)?;
                if length < expected {
                    return Ok(length);
                }
                Ok(length + StorageFile::read_at(self, rest, offset + length as u64)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(unix)]
    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }

    #[cfg(windows)]
    fn write_all_at(&mut self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match std::os::windows::fs::FileExt::seek_write(self, bytes, offset)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => {
                    bytes = &bytes[count..];
                    offset += count as u64;
                }
            }
        }
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self, level: SyncLevel) -> io::Result<()> {
        match level {
            SyncLevel::None => Ok(()),
            SyncLevel::Data => self.sync_data(),
            SyncLevel::All => self.sync_all(),
        }
    }

    #[cfg(target_os = "linux")]
    fn first_hole(&self, offset: u64) -> io::Result<u64> {
        let length = StorageFile::length(self)?;
        // With compression, ZFS makes holes of zeros that were written.
        if rustix::fs::fstatfs(self)?.f_type == ZFS_MAGIC {
            return Ok(length);
        }
        // Moves the file's own offset, which positional reads and writes do not use.
        match rustix::fs::seek(self, rustix::fs::SeekFrom::Hole(offset)) {
            Ok(hole) => Ok(hole),
            // From the end of the file on, there is no hole.
            Err(rustix::io::Errno::NXIO | rustix::io::Errno::INVAL) => Ok(length),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn first_hole(&self, _offset: u64) -> io::Result<u64> {
        StorageFile::length(self)
    }
}

/// Gives a file the owner and the mode of another one. Only the superuser may change owners.
#[cfg(unix)]
fn resemble(file: &File, model: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;

    let _ = std::os::unix::fs::fchown(file, Some(model.uid()), Some(model.gid()));
    file.set_permissions(model.permissions())
}

#[cfg(not(unix))]
fn resemble(_: &File, _: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn read_some_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_some_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::PAGE_LENGTH;

    fn directory() -> (tempfile::TempDir, Directory) {
        let parent = tempfile::tempdir().unwrap();
        let directory =
            Directory::open(&parent.path().join("archive"), DirAccess::default()).unwrap();
        (parent, directory)
    }

    #[test]
    #[cfg(unix)]
    fn only_regular_files_are_opened() {
        let (_parent, directory) = directory();
        let pipe = directory.path.join("archive.catalog");
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", directory.path.join("0-0.rec")).unwrap();
        for name in ["archive.catalog", "0-0.rec", "."] {
            assert_eq!(directory.open(name).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn files_read_what_was_written() {
        let (_parent, directory) = directory();
        let mut file = directory.create("0-0.rec", 100).unwrap();
        file.write_all_at(b"abc", 98).unwrap();
        assert_eq!(file.length().unwrap(), 101);
        for level in [SyncLevel::None, SyncLevel::Data, SyncLevel::All] {
            file.sync(level).unwrap();
        }
        directory.sync_dir().unwrap();

        let mut bytes = [7; 8];
        let file = directory.open("0-0.rec").unwrap();
        assert_eq!(file.read_at(&mut bytes, 96).unwrap(), 5);
        assert_eq!(bytes, *b"\0\0abc\x07\x07\x07");
        assert_eq!(file.read_at(&mut bytes, 101).unwrap(), 0);

        for (offset, length, expected) in [
            (97, 4, *b"\0abc\x07\x07\x07\x07"),
            (98, 3, *b"abc\x07\x07\x07\x07\x07"),
            (95, 6, *b"\0\0\0abc\x07\x07"),
            (101, 0, [7; 8]),
        ] {
            let (mut first, mut rest) = ([7; 4], [7; 4]);
            assert_eq!(file.read_both_at(&mut first, &mut rest, offset).unwrap(), length);
            assert_eq!([first, rest].concat(), expected);
        }
        assert_eq!(file.read_at(&mut bytes, 1 << 40).unwrap(), 0);
    }

    /// The kernel refuses to sync sockets, and would not be asked for nothing.
    #[test]
    #[cfg(unix)]
    fn syncs_reach_the_kernel() {
        use std::os::{fd::OwnedFd, unix::net::UnixStream};

        let (_parent, mut directory) = directory();
        let mut socket = File::from(OwnedFd::from(UnixStream::pair().unwrap().0));
        let is_refused = |outcome: io::Result<()>| outcome.is_err();
        let levels = [SyncLevel::None, SyncLevel::Data, SyncLevel::All];
        assert_eq!(levels.map(|level| is_refused(socket.sync(level))), [false, true, true]);
        directory.handle = socket;
        assert!(is_refused(directory.sync_dir()));
    }

    #[test]
    fn files_cut_and_lengthened_end_in_zeros() {
        let (_parent, directory) = directory();
        let mut file = directory.create("a", 0).unwrap();
        file.write_all_at(&[7; 64], 0).unwrap();
        file.set_length(32).unwrap();
        file.set_length(64).unwrap();
        let mut bytes = [1; 64];
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 64);
        assert_eq!((&bytes[..32], &bytes[32..]), (&[7; 32][..], &[0; 32][..]));
    }

    #[test]
    fn files_have_names_and_lengths() {
        let (_parent, directory) = directory();
        directory.create("a", 5).unwrap();
        directory.create("b", 6).unwrap();
        let again = directory.create("a", 5).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        directory.rename("a", "c").unwrap();
        directory.remove("b").unwrap();
        assert_eq!(directory.names().unwrap(), ["c"]);
        assert_eq!(directory.length("c").unwrap(), Some(5));
        assert_eq!(directory.length("a").unwrap(), None);
        assert_eq!(directory.open("a").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(directory.usable_space().unwrap() > 0);
    }

    #[test]
    fn failed_creation_leaves_no_file() {
        let (_parent, directory) = directory();
        // More than a file's length can be anywhere.
        directory.create("a", u64::MAX).unwrap_err();
        assert_eq!(directory.length("a").unwrap(), None);
    }

    #[test]
    fn directory_is_a_file_fails() {
        let file = tempfile::NamedTempFile::new().unwrap();
        Directory::open(file.path(), DirAccess::default()).unwrap_err();
    }

    /// File systems need not tell holes, but a hole that is told must be one.
    #[test]
    fn first_hole_is_behind_what_was_written() {
        const PAGE: u64 = PAGE_LENGTH as u64;
        let (_parent, directory) = directory();
        let mut file = directory.create("a", 100 * PAGE).unwrap();
        file.write_all_at(&[0; 2 * PAGE_LENGTH], 10 * PAGE).unwrap();
        let hole = file.first_hole(10 * PAGE).unwrap();
        assert!((12 * PAGE..=100 * PAGE).contains(&hole), "{hole}");
        assert_eq!(file.first_hole(100 * PAGE).unwrap(), 100 * PAGE);
        assert_eq!(file.first_hole(101 * PAGE).unwrap(), 100 * PAGE);
    }
}
