//! Syncs of several files at once.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use crate::storage::{StorageFile, SyncLevel};

/// The most threads for syncs. More files wait for each other.
const MAX_THREADS: usize = 19;

/// A file with its sync done, or the error of the sync.
pub(crate) type Synced = io::Result<Box<dyn StorageFile>>;

/// Syncs the files of several recordings in the time of the slowest, not in the sum of times: the file system commits
/// them together.
///
/// One file is synced on the caller's thread, each further one on a thread of its own. Threads start when they are
/// needed first, and end with this.
#[derive(Debug)]
pub(crate) struct Syncs {
    level: SyncLevel,
    threads: Vec<SyncThread>,
}

impl Syncs {
    pub(crate) fn new(level: SyncLevel) -> Self {
        Self { level, threads: Vec::new() }
    }

    /// Syncs all files, and returns them in the same order once all are done.
    pub(crate) fn sync(&mut self, files: Vec<Box<dyn StorageFile>>) -> Vec<Synced> {
        self.start_threads(files.len().saturating_sub(1).min(MAX_THREADS));
        let count = self.threads.len();
        // The number of a file's thread; the number behind the last stands for the caller's, whose turn comes last.
        let thread_of = |number: usize| number % (count + 1);
        let mut results = Vec::with_capacity(files.len());
        for (number, file) in files.into_iter().enumerate() {
            let sent = match self.threads.get(thread_of(number)) {
                Some(thread) => thread.requests.send(file).map_err(|mpsc::SendError(file)| file),
                None => Err(file),
            };
            results.push(sent.err());
        }
        let mut results: Vec<Option<Synced>> =
            results.into_iter().map(|own| own.map(|file| sync(file, self.level))).collect();
        for (number, result) in results.iter_mut().enumerate() {
            if let (None, Some(thread)) = (&result, self.threads.get(thread_of(number))) {
                *result = thread.results.recv().ok();
            }
        }
        let ended = || Err(io::Error::other("the thread of the sync has ended"));
        results.into_iter().map(|result| result.unwrap_or_else(ended)).collect()
    }

    /// Starts the threads that are missing. If the operating system refuses one, there are fewer.
    fn start_threads(&mut self, count: usize) {
        while self.threads.len() < count {
            match SyncThread::start(self.level) {
                Ok(thread) => self.threads.push(thread),
                Err(error) => {
                    log::warn!("recorder: no thread for syncs: {error}");
                    return;
                }
            }
        }
    }
}

fn sync(mut file: Box<dyn StorageFile>, level: SyncLevel) -> Synced {
    file.sync(level)?;
    Ok(file)
}

/// A thread that syncs files, one after the other.
#[derive(Debug)]
struct SyncThread {
    requests: Sender<Box<dyn StorageFile>>,
    results: Receiver<Synced>,
    thread: JoinHandle<()>,
}

impl SyncThread {
    fn start(level: SyncLevel) -> io::Result<Self> {
        let (requests, files) = mpsc::channel();
        let (sender, results) = mpsc::channel();
        let run = move || {
            for file in files {
                if sender.send(sync(file, level)).is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("archive-sync".to_owned()).spawn(run)?;
        Ok(Self { requests, results, thread })
    }
}

impl Drop for Syncs {
    fn drop(&mut self) {
        for SyncThread { requests, thread, .. } in self.threads.drain(..) {
            drop(requests);
            // A panic has been reported, and has ended the recording.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;

    /// Syncs only together with others.
    #[derive(Debug)]
    struct Meeting(usize, Option<Arc<Barrier>>, bool);

    impl StorageFile for Meeting {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Ok(0)
        }
        fn write_all_at(&mut self, _: &[u8], _: u64) -> io::Result<()> {
            Ok(())
        }
        fn length(&self) -> io::Result<u64> {
            Ok(self.0 as u64)
        }
        fn set_length(&mut self, _: u64) -> io::Result<()> {
            Ok(())
        }
        fn sync(&mut self, level: SyncLevel) -> io::Result<()> {
            assert_eq!(level, SyncLevel::Data);
            if let Some(barrier) = &self.1 {
                barrier.wait();
            }
            if self.2 { Err(io::Error::other("no sync")) } else { Ok(()) }
        }
        fn first_hole(&self, _: u64) -> io::Result<u64> {
            Ok(0)
        }
    }

    fn lengths(synced: Vec<Synced>) -> Vec<Option<u64>> {
        synced.into_iter().map(|file| file.ok().map(|file| file.length().unwrap())).collect()
    }

    #[test]
    fn syncs_are_done_at_once_and_keep_their_order() {
        let mut syncs = Syncs::new(SyncLevel::Data);
        for count in [1, 2, 5, 20, 3] {
            let barrier = Arc::new(Barrier::new(count));
            let file = |number| {
                let barrier = Some(Arc::clone(&barrier));
                Box::new(Meeting(number, barrier, number == 2)) as Box<dyn StorageFile>
            };
            let synced = lengths(syncs.sync((0..count).map(file).collect()));
            let expected = |number: usize| (number != 2).then_some(number as u64);
            assert_eq!(synced, (0..count).map(expected).collect::<Vec<_>>());
        }
        assert_eq!(syncs.threads.len(), MAX_THREADS);
    }

    #[test]
    fn more_files_than_threads_wait_for_each_other() {
        let mut syncs = Syncs::new(SyncLevel::Data);
        let file = |number| Box::new(Meeting(number, None, false)) as Box<dyn StorageFile>;
        let synced = lengths(syncs.sync((0..100).map(file).collect()));
        assert_eq!(synced, (0..100).map(Some).collect::<Vec<_>>());
        assert!(syncs.sync(Vec::new()).is_empty());
    }
}
