//! A storage in memory for tests: its changes are logged, can fail, and can be lost in part by a crash.
//!
//! A crash is no event here but a question to the log: [`after_kill`](FaultyStorage::after_kill) and
//! [`power_cut`](FaultyStorage::power_cut) build what a later process finds if it happened behind a given change.
//! So one run of a script serves every crash of it.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::{PAGE_LENGTH, Storage, StorageFile, SyncLevel};

#[cfg(test)]
mod power_cut;

#[cfg(test)]
pub(crate) use power_cut::PowerCut;

const PAGE: u64 = PAGE_LENGTH as u64;

/// A file, whatever its names: its number in order of creation.
type FileId = usize;

/// A change that was made. The log has no reads, and no changes that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Create { file: FileId, name: String, length: u64 },
    Write { file: FileId, offset: u64, bytes: Vec<u8> },
    SetLength { file: FileId, length: u64 },
    Sync { file: FileId, level: SyncLevel },
    Rename { from: String, to: String },
    Remove { name: String },
    SyncDir,
}

/// A directory in memory. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct FaultyStorage(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// What was there before the first change of the log.
    initial: Disk,
    disk: Disk,
    log: Vec<Change>,
    fault: Option<Fault>,
    is_stopped: bool,
    read_failure: Option<io::ErrorKind>,
    space: Option<u64>,
    hides_holes: bool,
}

struct Fault {
    /// Changes that still succeed.
    changes: usize,
    /// The error of the change behind them. `None` stops the storage.
    error: Option<io::ErrorKind>,
}

#[derive(Clone, Default)]
struct Disk {
    names: BTreeMap<String, FileId>,
    files: Vec<Content>,
}

/// A page's bytes, which copies of a disk share.
type Page = Arc<Vec<u8>>;

#[derive(Clone, Default)]
struct Content {
    length: u64,
    /// Pages by number. Those that are missing are holes.
    pages: BTreeMap<u64, Page>,
}

impl fmt::Debug for FaultyStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("FaultyStorage")
            .field("names", &state.disk.names)
            .field("changes", &state.log.len())
            .finish()
    }
}

impl FaultyStorage {
    fn from_disk(disk: Disk) -> Self {
        let state = State { initial: disk.clone(), disk, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all changes so far.
    pub(crate) fn log(&self) -> Vec<Change> {
        self.state().log.clone()
    }

    /// Returns the number of changes so far.
    pub(crate) fn changes(&self) -> usize {
        self.state().log.len()
    }

    /// Lets one change fail without effect, after `changes` others.
    pub(crate) fn fail_after(&self, changes: usize, error: io::ErrorKind) {
        self.state().fault = Some(Fault { changes, error: Some(error) });
    }

    /// Stops after `changes` changes: everything fails from then on, as if the process had ended.
    pub(crate) fn stop_after(&self, changes: usize) {
        self.state().fault = Some(Fault { changes, error: None });
    }

    /// Ends a stop, as if only what was attempted meanwhile had failed.
    pub(crate) fn resume(&self) {
        let mut state = self.state();
        (state.fault, state.is_stopped) = (None, false);
    }

    /// Lets all reads of files fail, or none.
    pub(crate) fn fail_reads(&self, error: Option<io::ErrorKind>) {
        self.state().read_failure = error;
    }

    /// Limits the bytes in pages of all files. Without a limit, space is endless.
    pub(crate) fn limit_space(&self, bytes: Option<u64>) {
        self.state().space = bytes;
    }

    /// Behaves as a file system that does not tell holes.
    pub(crate) fn hide_holes(&self) {
        self.state().hides_holes = true;
    }

    /// Returns a file's whole content.
    pub(crate) fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let content = state.disk.file(name)?;
        let mut bytes = vec![0; content.length as usize];
        content.read(&mut bytes, 0);
        Some(bytes)
    }

    /// Returns what is there if the process is killed behind the first `changes` changes of the log: all of them, and the
    /// first `pages` pages of the next one if that is a write.
    pub(crate) fn after_kill(&self, changes: usize, pages: usize) -> Self {
        let state = self.state();
        let mut disk = state.initial.clone();
        state.log[..changes].iter().for_each(|change| disk.apply(change));
        if let Some(Change::Write { file, offset, bytes }) = state.log.get(changes) {
            for (_, part) in pages_of(*offset, bytes.len()).take(pages) {
                disk.files[*file].write(&bytes[part.clone()], offset + part.start as u64);
            }
        }
        Self::from_disk(disk)
    }

    /// Returns what can be there if power fails behind the first `changes` changes of the log: what was synced, and any part of
    /// the rest.
    #[cfg(test)]
    pub(crate) fn power_cut(&self, changes: usize) -> PowerCut {
        let state = self.state();
        PowerCut::new(&state.initial, &state.log[..changes])
    }

    /// Returns what is there after a power cut if `survivors` says how much of the rest survives: see
    /// [`PowerCut::survive`].
    #[cfg(test)]
    pub(crate) fn after_power_cut(
        &self,
        changes: usize,
        survivors: &mut dyn FnMut(usize) -> usize,
    ) -> Self {
        self.power_cut(changes).survive(survivors)
    }
}

impl State {
    fn change(&mut self, mut change: Change) -> io::Result<()> {
        self.check_running()?;
        if let Some(fault) = &mut self.fault {
            if fault.changes > 0 {
                fault.changes -= 1;
            } else {
                let error = fault.error;
                self.fault = None;
                self.is_stopped = error.is_none();
                self.check_running()?;
                return Err(error.unwrap_or(io::ErrorKind::Other).into());
            }
        }
        let is_cut = match &mut change {
            Change::Write { file, offset, bytes } => {
                let length = self.fitting_length(*file, *offset, bytes.len());
                let is_cut = length < bytes.len();
                bytes.truncate(length);
                is_cut
            }
            _ => false,
        };
        self.disk.apply(&change);
        self.log.push(change);
        if is_cut { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn check_running(&self) -> io::Result<()> {
        if self.is_stopped { Err(io::Error::other("the storage has stopped")) } else { Ok(()) }
    }

    fn usable_space(&self) -> u64 {
        let pages = |file: &FileId| self.disk.files[*file].pages.len() as u64;
        let used = self.disk.names.values().map(pages).sum::<u64>() * PAGE;
        self.space.map_or(i64::MAX as u64, |space| space.saturating_sub(used))
    }

    /// Returns how many bytes of a write have space.
    fn fitting_length(&self, file: FileId, offset: u64, length: usize) -> usize {
        let mut space = self.usable_space();
        for (number, part) in pages_of(offset, length) {
            if !self.disk.files[file].pages.contains_key(&number) {
                match space.checked_sub(PAGE) {
                    Some(rest) => space = rest,
                    None => return part.start,
                }
            }
        }
        length
    }
}

impl Disk {
    fn file(&self, name: &str) -> Option<&Content> {
        self.names.get(name).map(|&file| &self.files[file])
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Create { .. } => {
                self.files.push(Content::default());
                rename(&mut self.names, change);
            }
            Change::Rename { .. } | Change::Remove { .. } => rename(&mut self.names, change),
            _ => {}
        }
        if let Change::Create { file, .. }
        | Change::Write { file, .. }
        | Change::SetLength { file, .. } = change
        {
            self.files[*file].apply(change);
        }
    }
}

/// Applies a change of names.
fn rename(names: &mut BTreeMap<String, FileId>, change: &Change) {
    match change {
        Change::Create { file, name, .. } => {
            names.insert(name.clone(), *file);
        }
        Change::Rename { from, to } => {
            if let Some(file) = names.remove(from) {
                names.insert(to.clone(), file);
            }
        }
        Change::Remove { name } => {
            names.remove(name);
        }
        _ => {}
    }
}

impl Content {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { offset, bytes, .. } => self.write(bytes, *offset),
            Change::Create { length, .. } | Change::SetLength { length, .. } => {
                self.set_length(*length);
            }
            _ => {}
        }
    }

    fn write(&mut self, bytes: &[u8], offset: u64) {
        for (number, part) in pages_of(offset, bytes.len()) {
            let page = self.pages.entry(number).or_insert_with(|| Arc::new(vec![0; PAGE_LENGTH]));
            let start = (offset + part.start as u64 - number * PAGE) as usize;
            Arc::make_mut(page)[start..][..part.len()].copy_from_slice(&bytes[part]);
        }
        self.length = self.length.max(offset + bytes.len() as u64);
    }

    fn set_length(&mut self, length: u64) {
        self.length = length;
        self.pages.retain(|number, _| number * PAGE < length);
        if let Some(page) = self.pages.get_mut(&(length / PAGE)) {
            Arc::make_mut(page)[(length % PAGE) as usize..].fill(0);
        }
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> usize {
        let length = self.length.saturating_sub(offset).min(bytes.len() as u64) as usize;
        for (number, part) in pages_of(offset, length) {
            let start = (offset + part.start as u64 - number * PAGE) as usize;
            match self.pages.get(&number) {
                Some(page) => {
                    let length = part.len();
                    bytes[part].copy_from_slice(&page[start..][..length]);
                }
                None => bytes[part].fill(0),
            }
        }
        length
    }
}

/// Splits bytes of a file by pages: each page's number, and the range of the bytes that lie in it.
fn pages_of(offset: u64, length: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let end = offset + length as u64;
    let numbers = offset / PAGE..end.div_ceil(PAGE);
    numbers.filter(move |_| length > 0).map(move |number| {
        let start = (number * PAGE).max(offset) - offset;
        let end = ((number + 1) * PAGE).min(end) - offset;
        (number, start as usize..end as usize)
    })
}

impl Storage for FaultyStorage {
    fn path(&self, name: &str) -> String {
        format!("dir/{name}")
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let state = self.state();
        state.check_running()?;
        let file = *state.disk.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(FaultyFile { storage: self.clone(), file }))
    }

    fn create(&self, name: &str, length: u64) -> io::Result<Box<dyn StorageFile>> {
        let mut state = self.state();
        if state.disk.names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = state.disk.files.len();
        state.change(Change::Create { file, name: name.to_owned(), length })?;
        Ok(Box::new(FaultyFile { storage: self.clone(), file }))
    }

    fn length(&self, name: &str) -> io::Result<Option<u64>> {
        let state = self.state();
        state.check_running()?;
        Ok(state.disk.file(name).map(|content| content.length))
    }

    /// No time passes.
    fn modified(&self, name: &str) -> io::Result<SystemTime> {
        let known = self.length(name)?.map(|_| SystemTime::UNIX_EPOCH);
        known.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let state = self.state();
        state.check_running()?;
        Ok(state.disk.names.keys().cloned().collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.disk.file(from).ok_or(io::ErrorKind::NotFound)?;
        state.change(Change::Rename { from: from.to_owned(), to: to.to_owned() })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.disk.file(name).ok_or(io::ErrorKind::NotFound)?;
        state.change(Change::Remove { name: name.to_owned() })
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.state().change(Change::SyncDir)
    }

    fn usable_space(&self) -> io::Result<u64> {
        let state = self.state();
        state.check_running()?;
        Ok(state.usable_space())
    }
}

#[derive(Debug)]
struct FaultyFile {
    storage: FaultyStorage,
    file: FileId,
}

impl StorageFile for FaultyFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.storage.state();
        state.check_running()?;
        match state.read_failure {
            Some(error) => Err(error.into()),
            None => Ok(state.disk.files[self.file].read(bytes, offset)),
        }
    }

    fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let bytes = bytes.to_vec();
        self.storage.state().change(Change::Write { file: self.file, offset, bytes })
    }

    fn length(&self) -> io::Result<u64> {
        let state = self.storage.state();
        state.check_running()?;
        Ok(state.disk.files[self.file].length)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.storage.state().change(Change::SetLength { file: self.file, length })
    }

    fn sync(&mut self, level: SyncLevel) -> io::Result<()> {
        self.storage.state().change(Change::Sync { file: self.file, level })
    }

    fn first_hole(&self, offset: u64) -> io::Result<u64> {
        let state = self.storage.state();
        state.check_running()?;
        let content = &state.disk.files[self.file];
        if state.hides_holes {
            return Ok(content.length);
        }
        let mut hole = offset;
        while content.pages.contains_key(&(hole / PAGE)) {
            hole = (hole / PAGE + 1) * PAGE;
        }
        Ok(hole.min(content.length))
    }
}
